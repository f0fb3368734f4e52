"""Search launch plans by timing them, and remember every timing on disk.

What is remembered: one line of JSON for each plan measured, in one file a device. A line is written
as soon as its plan is measured, so an interrupted search loses nothing and goes on where it
stopped. What is read is treated as if a stranger had written it: a line that no search writes
counts as forgotten, and so does a plan that is none of its kernel's. Timings made by another
version of dgbook are not believed: its kernels may differ. Plans that failed are tried again by the
next search, since the fault may have been the caller's; those that left the device unusable are
not.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import random
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
from tqdm.auto import tqdm

import dgbook
from dgbook.gpu.device import Device, as_device
from dgbook.gpu.limits import MAX_THREADS
from dgbook.gpu.timing import FEWEST_SAMPLES, measurable, measure

DEEPEST = 4
"""Levels of lists in a plan's field."""


@dataclasses.dataclass(frozen=True)
class Trial:
    """One plan, measured or failed.

    Attributes
    ----------
    plan : dict
        The plan's fields.
    seconds_median, seconds_iqr : float
        Infinite and 0 where the plan failed.
    samples : int
        0 where the plan failed.
    failure : str
        Why the plan cannot run, or an empty string.
    fatal : bool
        Whether it left the device unusable.
    """

    plan: dict[str, Any]
    seconds_median: float = float("inf")
    seconds_iqr: float = 0.0
    samples: int = 0
    failure: str = ""
    fatal: bool = False


@dataclasses.dataclass(frozen=True)
class Result:
    """What a search found.

    Attributes
    ----------
    plan : object
        The fastest plan, as it was given.
    trials : tuple of Trial
        One for each plan, in the order in which they were given.
    measured : int
        How many of them this search measured; the others were remembered.
    """

    plan: Any
    trials: tuple[Trial, ...]
    measured: int

    @property
    def seconds(self) -> float:
        """Median seconds of the fastest plan."""
        return self.ranking[0].seconds_median

    @property
    def ranking(self) -> tuple[Trial, ...]:
        """The trials, fastest first, failed ones last."""
        return tuple(sorted(self.trials, key=lambda trial: trial.seconds_median))


def tune(
    name: str,
    plans: Iterable[Any],
    run: Callable[[Any], Callable[[], Any]],
    device: Device | str | None = None,
    order: int = 0,
    dtype: Any = "float32",
    samples: int = FEWEST_SAMPLES,
    folder: str | os.PathLike | None = None,
    progress: bool = True,
) -> Result:
    """Time every plan that is not remembered yet and return the fastest of all.

    Parameters
    ----------
    name : str
        Of what is tuned, "family/operator": "maxwell/lift".
    plans : iterable of frozen dataclasses or of dicts
        Of numbers, strings, booleans, None, and tuples of them.
    run : function
        ``run(plan)`` prepares a plan and returns a function without arguments that launches it;
        that one is timed. Where either raises, the plan has failed and the reason is written down.
    device : Device or its name, optional
    order, dtype
        What else the winner depends on.
    samples : int
        Of each timing, at least 20.
    folder : path, optional
        Where to remember; `cache_folder()` without it.
    progress : bool
        Show a progress bar with the best so far.

    Returns
    -------
    Result

    Raises
    ------
    ValueError
        If there is no plan or a plan cannot be written as JSON, or samples are too few.
    TypeError
        If a plan is neither a dataclass nor a dict.
    RuntimeError
        If all plans failed (the reasons are in the message), or for the simulator, or if a plan
        has left the device unusable: then restart Python and call again, the search goes on
        after that plan. Also if the folder cannot be written, before anything is measured, or the
        disk becomes full.
    MemoryError
        If `run` runs out of memory, which says nothing about the plan.
    KeyboardInterrupt
        Passed on; what was measured so far is remembered.
    """
    plans = list(plans)
    if not plans:
        raise ValueError(f"plans of {name!r} are empty; allowed: at least one plan")
    if samples < FEWEST_SAMPLES:
        raise ValueError(f"samples = {samples}; allowed: at least {FEWEST_SAMPLES}")
    as_dicts = [_as_dict(plan) for plan in plans]
    keys = [_canonical(fields) for fields in as_dicts]
    device = measurable(device)
    what = _subject(name, device, order, dtype)
    path = _path(device, folder)
    _require_writable(path)

    known = {
        _canonical(trial.plan): trial
        for trial in _trials(path, what)
        if not trial.failure or trial.fatal
    }
    first = {}
    for i, key in enumerate(keys):
        first.setdefault(key, i)
    missing = [i for key, i in first.items() if key not in known]
    # Shuffled, by a fixed seed: a device that grows warm does not favor a family of neighbors,
    # and an interrupted search has seen plans of all kinds.
    random.Random(0).shuffle(missing)
    with tqdm(missing, desc=f"tuning {name}", disable=not progress, leave=False) as bar:
        for i in bar:
            known[keys[i]] = trial = _try(plans[i], as_dicts[i], run, device, samples)
            _append(path, what, trial)
            best_so_far = min(known[k].seconds_median for k in keys if k in known)
            bar.set_postfix_str(f"best {best_so_far * 1e6:.4g} us")
            if trial.fatal:
                raise RuntimeError(
                    f"plan {trial.plan} left {device.name} unusable ({trial.failure}). Restart "
                    "Python and tune again: the search goes on after that plan."
                )

    trials = tuple(known[k] for k in keys)
    fastest = min(range(len(plans)), key=lambda i: trials[i].seconds_median)
    if trials[fastest].failure:
        reasons = "; ".join(f"{trial.plan}: {trial.failure}" for trial in trials[:5])
        raise RuntimeError(f"all {len(trials)} plans of {name!r} failed: {reasons}")
    return Result(plans[fastest], trials, len(missing))


def ranked(
    name: str,
    device: Device | str | None = None,
    order: int = 0,
    dtype: Any = "float32",
    folder: str | os.PathLike | None = None,
) -> list[dict[str, Any]]:
    """All plans remembered for a kernel on a device, the fastest first.

    Lists in a plan have become tuples, so that ``Plan(**fields)`` is the dataclass that was tuned.
    """
    device = as_device(device)
    trials = _trials(_path(device, folder), _subject(name, device, order, dtype))
    ordered = sorted(trials, key=lambda trial: trial.seconds_median)
    return [trial.plan for trial in ordered if not trial.failure]


def read(file: Path, name: str, order: int, dtype: Any) -> list[dict[str, Any]]:
    """The plans of a kernel in a file of timings, in its order.

    Whichever version of dgbook made them, and also those of which no time was recorded.
    """
    what = {"name": name, "order": int(order), "dtype": np.dtype(dtype).name}
    plans = (
        line.get("plan")
        for line in _lines(file)
        if what.items() <= line.items() and not line.get("failure")
    )
    return [
        {key: _tuples(value) for key, value in plan.items()}
        for plan in plans
        if isinstance(plan, dict)
    ]


def forget(
    name: str | None = None,
    device: Device | str | None = None,
    order: int | None = None,
    dtype: Any = None,
    folder: str | os.PathLike | None = None,
) -> int:
    """Forget the timings on a device that match what is given; without a name all of them.

    To be called after a kernel was changed: its old timings are still remembered.

    Returns
    -------
    int
        How many timings were forgotten.
    """
    device = as_device(device)
    path = _path(device, folder)
    wanted = {
        "name": name,
        "order": order,
        "dtype": None if dtype is None else np.dtype(dtype).name,
    }
    wanted = {field: value for field, value in wanted.items() if value is not None}
    lines = _sound_lines(path)
    kept = [line for line in lines if any(line.get(f) != v for f, v in wanted.items())]
    if len(kept) < len(lines):
        # Written beside and moved, so that an interruption leaves the old file or the new one.
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            new = Path(folder) / path.name
            new.write_text("".join(json.dumps(line) + "\n" for line in kept), encoding="utf-8")
            os.replace(new, path)
    return len(lines) - len(kept)


def cache_folder() -> Path:
    """Where timings are remembered: the system's folder for caches that belong to a user.

    ``$XDG_CACHE_HOME/dgbook`` or ``~/.cache/dgbook``; ``~/Library/Caches/dgbook`` on macOS,
    ``%LOCALAPPDATA%\\dgbook\\Cache`` on Windows.
    """
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return (Path(local) if local else Path.home() / "AppData" / "Local") / "dgbook" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "dgbook"
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (given if given.is_absolute() else Path.home() / ".cache") / "dgbook"


# ---------------------------------------------------------------------------------------- one plan


def _try(
    plan: Any,
    fields: dict[str, Any],
    run: Callable[[Any], Callable[[], Any]],
    device: Device,
    samples: int,
) -> Trial:
    try:
        timing = measure(run(plan), device, samples=samples)
    except MemoryError:
        raise
    except Exception as error:  # whatever a launch raises is the reason why the plan is illegal
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        return Trial(fields, failure=reason, fatal=not _is_alive(device))
    return Trial(fields, timing.median, timing.iqr, timing.samples)


def _is_alive(device: Device) -> bool:
    """Whether the device still works: after an illegal address CUDA refuses everything."""
    try:
        device.synchronize()
        return bool(device.to_numpy(device.zeros(1, np.float32))[0] == 0)
    except Exception:  # its kind does not matter: a device that works raises nothing here
        return False


def _as_dict(plan: Any) -> dict[str, Any]:
    if dataclasses.is_dataclass(plan) and not isinstance(plan, type):
        return dataclasses.asdict(plan)
    if isinstance(plan, Mapping):
        return dict(plan)
    raise TypeError(f"plan {plan!r} is a {type(plan).__name__}; allowed are dataclasses and dicts")


def _canonical(fields: dict[str, Any]) -> str:
    """One text for equal plans, whatever the order of their fields."""
    try:
        return json.dumps(fields, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"plan {fields} cannot be written as JSON ({error}); allowed are numbers, strings, "
            "booleans, None, and tuples of them"
        ) from None


# ---------------------------------------------------------------------------------------- on disk


def file_name(gpu: str) -> str:
    """Of the file of timings on a GPU of that name."""
    return (re.sub(r"[^A-Za-z0-9]+", "-", gpu).strip("-") or "device") + ".jsonl"


def _path(device: Device, folder: str | os.PathLike | None) -> Path:
    return (cache_folder() if folder is None else Path(folder)) / file_name(device.name)


def _subject(name: str, device: Device, order: int, dtype: Any) -> dict[str, Any]:
    """What a timing is about: all that it depends on but the plan."""
    return {
        "name": name,
        "device": device.name,
        "order": int(order),
        "dtype": np.dtype(dtype).name,
        "dgbook": dgbook.__version__,
    }


def _require_writable(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not path.is_file():  # a pipe would keep us waiting for a reader
            raise OSError("it is not a file")
        with path.open("ab"):
            pass
    except OSError as error:
        raise _not_writable(path, error) from error


def _not_writable(path: Path, error: OSError) -> RuntimeError:
    return RuntimeError(
        f"timings cannot be remembered in {path} ({error}); give tune(..., folder=...) "
        "a folder that can be written"
    )


def _append(path: Path, what: Mapping[str, Any], trial: Trial) -> None:
    """Add a line in one write that is on the disk before this returns."""
    line = {**what, **dataclasses.asdict(trial)}
    if trial.failure:
        line["seconds_median"] = None  # JSON has no infinity
    text = json.dumps(line, allow_nan=False).encode() + b"\n"
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            if size:
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":  # an interrupted write: do not let it spoil this line
                    text = b"\n" + text
        with path.open("ab", buffering=0) as file:
            file.write(text)
            os.fsync(file.fileno())
    except OSError as error:
        raise _not_writable(path, error) from error


def _lines(path: Path) -> Sequence[Mapping[str, Any]]:
    """The lines of a file that are JSON objects; where it cannot be read, none.

    A torn line is as good as not written. A pipe in the file's place would keep us waiting.
    """
    try:
        return _parsed(path.read_bytes().decode(errors="replace")) if path.is_file() else ()
    except OSError:
        return ()


@lru_cache(maxsize=1)
def _parsed(text: str) -> Sequence[Mapping[str, Any]]:
    """Kept: every choice of a plan asks, and 7,500 lines take 0.05 seconds to parse."""
    parsed = []
    for line in text.splitlines():
        try:
            parsed.append(json.loads(line))
        except (ValueError, RecursionError):  # not JSON; or too many digits, or brackets
            continue
    return [line for line in parsed if isinstance(line, dict)]


def _sound_lines(path: Path) -> list[Mapping[str, Any]]:
    """The lines of a file that a search can have written."""
    return [line for line in _lines(path) if _is_sound(line)]


def _is_sound(line: Mapping[str, Any]) -> bool:
    """Whether a search can have written a line: its trial's fields are what trials have."""
    plan, seconds, iqr, samples, failure, fatal = (
        line.get(field.name) for field in dataclasses.fields(Trial)
    )
    if not (isinstance(plan, dict) and all(_is_plain(value) for value in plan.values())):
        return False
    if not (isinstance(failure, str) and type(fatal) is bool and type(samples) is int):
        return False
    if failure:
        return seconds is None
    timed = all(type(value) in (int, float) and math.isfinite(value) for value in (seconds, iqr))
    return timed and seconds > 0 and iqr >= 0 and samples >= FEWEST_SAMPLES and not fatal


def _is_plain(value: Any, depth: int = 0) -> bool:
    """Whether JSON's value is one that a plan's field can have."""
    if isinstance(value, list):
        return depth < DEEPEST and all(_is_plain(part, depth + 1) for part in value)
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, str | int)


def as_plan(kind: type, values: Mapping[str, Any]) -> Any | None:
    """A plan of these values, or None if `kind` cannot have them."""
    hints = get_type_hints(kind)
    names = [field.name for field in dataclasses.fields(kind)]
    if values.keys() != set(names) or not all(_fits(values[name], hints[name]) for name in names):
        return None
    try:
        return kind(**values)
    except (TypeError, ValueError):  # it says itself what it allows
        return None


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value has the type of a plan's field; no count of a launch is above 1024."""
    parts = get_args(hint)
    if get_origin(hint) is tuple:
        return (
            isinstance(value, tuple) and len(value) == len(parts) and all(map(_fits, value, parts))
        )
    if parts:
        return any(_fits(value, part) for part in parts)
    return type(value) is hint and (hint is not int or abs(value) <= MAX_THREADS)


def _trials(path: Path, what: Mapping[str, Any]) -> Sequence[Trial]:
    """All trials about one subject; where a plan has several, the last."""
    trials: dict[str, Trial] = {}
    fields = [field.name for field in dataclasses.fields(Trial)]
    for line in _sound_lines(path):
        if any(line.get(key) != value for key, value in what.items()):
            continue
        values = {field: line[field] for field in fields}
        values["plan"] = {key: _tuples(value) for key, value in line["plan"].items()}
        if values["seconds_median"] is None:
            values["seconds_median"] = float("inf")
        trials[_canonical(values["plan"])] = Trial(**values)
    return list(trials.values())


def _tuples(value: Any) -> Any:
    """JSON makes lists of tuples; a plan has tuples."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
