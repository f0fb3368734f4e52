"""Record files: what was measured on one GPU on one day.

A *record* is one JSON file in `chapters/records/`, with the ceilings of that GPU measured in the
same run.
"""

from __future__ import annotations

import datetime
import json
import math
import os
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import dgbook

CEILINGS = ("copy_TBps", "fp32_TFLOPs", "fp64_TFLOPs")
TENSOR_CEILINGS = ("fp32_tensor_TFLOPs", "fp64_tensor_TFLOPs")
FEWEST_SAMPLES = 20

# ------------------------------------------------------------------------------------- records


@dataclass(frozen=True)
class Record:
    """One run of measurements on one GPU.

    Attributes
    ----------
    name : str
        What was measured, "family/thing": "maxwell/stage".
    gpu, compute_capability, driver, cuda : str
    versions : dict of str to str
        Packages that the measurement depends on.
    commit : str
        The revision of this repository, ending in "+changes" where files differed from it.
    date : str
        ISO 8601, at least the day.
    ceilings : dict
        Of the same GPU in the same run: "copy_TBps", "fp32_TFLOPs", "fp64_TFLOPs", and where
        tensor cores were measured "fp32_tensor_TFLOPs", "fp64_tensor_TFLOPs".
    rows : tuple of dict
        One measurement each; `validate` says what a row holds. Further keys are allowed.
    """

    name: str
    gpu: str
    compute_capability: str
    driver: str
    cuda: str
    versions: dict[str, str]
    commit: str
    date: str
    ceilings: dict[str, float]
    rows: tuple[dict[str, Any], ...]

    @property
    def source(self) -> str:
        """Where its numbers come from, as a label says it: "NVIDIA H200, 2026-11-20"."""
        return f"{self.gpu}, {self.date[:10]}"

    def select(self, **keys: Any) -> tuple[dict[str, Any], ...]:
        """All rows whose fields equal `keys`: `record.select(path="fused", dtype="float32")`."""
        return tuple(row for row in self.rows if all(row.get(k) == v for k, v in keys.items()))

    def row(self, **keys: Any) -> dict[str, Any]:
        """The one row whose fields equal `keys`.

        Raises
        ------
        ValueError
            If no row or more than one fits; the message says which.
        """
        rows = self.select(**keys)
        if len(rows) != 1:
            asked = ", ".join(f"{k}={v!r}" for k, v in keys.items())
            here = "; ".join(
                ", ".join(f"{k}={row.get(k)!r}" for k in ("path", "language", "order", "dtype"))
                for row in (rows or self.rows)[:12]
            )
            raise ValueError(
                f"{len(rows)} rows of record {self.name!r} have {asked}; one is needed. "
                f"{'They are' if rows else 'Rows there'}: {here}"
            )
        return rows[0]


def validate(content: Mapping[str, Any]) -> None:
    """Check that a dictionary is a record.

    A row holds `path`, `language`, `order`, `dtype`, `size` (a dict), `dofs`, `plan` (a dict),
    `seconds_median`, `seconds_iqr`, `samples`, `flops`, `bytes`, `floor_seconds` and `efficiency`,
    and may hold more: `run` (its `date` and `commit`), where one was measured in another run than
    the record's, whose ceilings it is held against, on the same kind of GPU. `order` and `dofs` are
    None where a measurement has none (a copy, a launch); `floor_seconds` and `efficiency` are None,
    both, only where a row moves and computes nothing.

    Raises
    ------
    TypeError
        If `content` is not a mapping.
    ValueError
        Naming the field at fault ("rows[3].samples"), its value and what is allowed.
    """
    if not isinstance(content, Mapping):
        raise TypeError(f"a record is a mapping, not a {type(content).__name__}")
    for key in ("name", "gpu", "compute_capability", "driver", "cuda", "commit", "date"):
        _text(content, key)
    if not re.fullmatch(r"[a-z0-9_]+(/[a-z0-9_]+)+", content["name"]):
        _reject("name", content["name"], 'lower-case words joined by "/", like "maxwell/stage"')
    if not re.fullmatch(r"\d+\.\d+", content["compute_capability"]):
        _reject("compute_capability", content["compute_capability"], 'two numbers, like "9.0"')
    try:
        datetime.datetime.fromisoformat(content["date"])
    except ValueError:
        _reject("date", content["date"], 'an ISO 8601 date, like "2026-11-20"')
    versions = _mapping(content, "versions")
    for package, version in versions.items():
        if not isinstance(version, str) or not version:
            _reject(f"versions[{package!r}]", version, "a version as text")
    ceilings = _mapping(content, "ceilings")
    for key in CEILINGS:
        _number(ceilings, key, "ceilings.", positive=True)
    for key in TENSOR_CEILINGS:
        if key in ceilings:
            _number(ceilings, key, "ceilings.", positive=True)
    rows = content.get("rows")
    if isinstance(rows, str) or not isinstance(rows, Sequence) or not rows:
        _reject("rows", rows, "at least one measurement")
    for i, row in enumerate(rows):
        _validate_row(row, f"rows[{i}].")


def _validate_row(row: Any, at: str) -> None:
    if not isinstance(row, Mapping):
        _reject(at.rstrip("."), row, "a mapping")
    for key in ("path", "language", "dtype"):
        _text(row, key, at)
    try:
        np.dtype(row["dtype"])
    except TypeError:
        _reject(f"{at}dtype", row["dtype"], 'a NumPy dtype name, like "float32"')
    for key in ("size", "plan"):
        _mapping(row, key, at)
    for key in ("order", "dofs"):
        if key not in row or row[key] is not None:
            _integer(row, key, at, lowest=0)
    _integer(row, "samples", at, lowest=FEWEST_SAMPLES)
    median = _number(row, "seconds_median", at, positive=True)
    _number(row, "seconds_iqr", at)
    work = _number(row, "flops", at) + _number(row, "bytes", at)
    if row.get("floor_seconds") is None and row.get("efficiency") is None:
        for key in ("floor_seconds", "efficiency"):
            if key not in row or work > 0:
                _reject(f"{at}{key}", row.get(key), "a number, since this row has flops or bytes")
        return
    floor = _number(row, "floor_seconds", at, positive=True)
    efficiency = _number(row, "efficiency", at, positive=True)
    if not math.isclose(efficiency, floor / median, rel_tol=1e-3, abs_tol=5e-4):
        quotient = f"floor_seconds / seconds_median = {floor / median:.4g}"
        _reject(f"{at}efficiency", efficiency, quotient)


def save(record: Record | Mapping[str, Any], folder: str | Path | None = None) -> Path:
    """Write a record to `folder` and return its path.

    The file's name is made from the record's name, GPU and day, so a second run on the same day
    replaces the first; the file is written beside its place and then moved there, so that a run
    that is interrupted leaves the older one whole.

    Raises
    ------
    ValueError
        If it is not a valid record; nothing is written then.
    FileNotFoundError
        If `folder` is None and this is not a checkout of the book's repository.
    RuntimeError
        If `folder` cannot be written; what was measured is then in a file of its own, which the
        message names.
    """
    content = asdict(record) if isinstance(record, Record) else dict(record)
    validate(content)
    folder = default_folder() if folder is None else Path(folder)
    parts = (_slug(content["name"]), _slug(content["gpu"]), content["date"][:10])
    name = "__".join(parts) + ".json"
    try:
        return _write(content, folder, name)
    except OSError as error:
        kept = _write(content, Path(tempfile.mkdtemp(prefix="dgbook-")), name)
        raise RuntimeError(
            f"{folder} cannot be written to, {error.strerror}: the record is in {kept}"
        ) from error


def _write(content: Mapping[str, Any], folder: Path, name: str) -> Path:
    """Write a file beside its place, then move it there."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=".", suffix=".json.part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(content, file, indent=1, ensure_ascii=False, allow_nan=False, default=_plain)
            file.write("\n")
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    return path


def check_folder(folder: str | Path | None = None) -> None:
    """Whether `save` could write to `folder`, asked before there is anything to lose.

    Raises
    ------
    FileNotFoundError
        If `folder` is None and this is not a checkout of the book's repository.
    ValueError
        If it is a file or named like a record, or cannot be written to or made.
    """
    folder = default_folder() if folder is None else Path(folder)
    allowed = "allowed: a folder that can be written to"
    if folder.suffix == ".json":
        raise ValueError(f"--out {folder}: the name of a record; {allowed}")
    try:
        existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as error:
        raise ValueError(f"--out {folder}: {error.strerror}; {allowed}") from error


def load(name: str, folder: str | Path | None = None, gpu: str | None = None) -> Record:
    """The newest record of that name.

    Parameters
    ----------
    name : str
        As in the record: "maxwell/stage".
    folder : path, optional
        Where to look; `chapters/records` of this checkout if not given.
    gpu : str, optional
        A part of the GPU's name, in any case: "h200".

    Raises
    ------
    FileNotFoundError
        If there is no such folder or no such record in it; the message lists what is there.
    ValueError
        If the file is not a valid record.
    """
    folder = default_folder() if folder is None else Path(folder)
    records = [_read(path) for path in sorted(folder.glob(f"{_slug(name)}__*.json"))]
    matching = [
        record
        for record in records
        if record.name == name and (gpu is None or gpu.lower() in record.gpu.lower())
    ]
    if not matching:
        names = sorted({path.stem for path in folder.glob("*.json")})
        raise FileNotFoundError(
            f"no record {name!r}{f' of a GPU called {gpu!r}' if gpu else ''} in {folder}; "
            f"there {'are ' + ', '.join(names) if names else 'is none at all'}"
        )
    return max(matching, key=lambda record: record.date)


def newest(name: str) -> Record | None:
    """The newest record of that name; None where there is none, and a line on how to make it.

    For a page that can do without it.
    """
    try:
        return load(name)
    except FileNotFoundError:
        print(f"No record {name}: python -m dgbook bench makes it on a GPU.")
        return None


def exists(name: str) -> bool:
    """Whether this checkout of the book has a record of that name, valid or not."""
    try:
        return any(default_folder().glob(f"{_slug(name)}__*.json"))
    except FileNotFoundError:  # installed without the book's repository
        return False


def all_records(folder: str | Path | None = None) -> tuple[Record, ...]:
    """Every record in `folder` (see `load`), by file name."""
    folder = default_folder() if folder is None else Path(folder)
    return tuple(_read(path) for path in sorted(folder.glob("*.json")))


def default_folder() -> Path:
    """`chapters/records` of the checkout that this package was imported from.

    Raises
    ------
    FileNotFoundError
        If the package was installed without the book's repository around it.
    """
    checkout = Path(__file__).resolve().parents[2]
    if not (checkout / "chapters").is_dir():
        raise FileNotFoundError(
            "the book's records are in its repository, and dgbook was installed without it: clone "
            "the repository and run `pip install -e .` in it, or pass folder= with the path of its "
            "chapters/records"
        )
    return checkout / "chapters" / "records"


def environment(device: Any = None) -> dict[str, Any]:
    """The fields of a record that say where it was measured.

    Parameters
    ----------
    device : dgbook.gpu.Device, optional
        `dgbook.gpu.device("cuda")` if not given.

    Returns
    -------
    dict
        gpu, compute_capability, driver, cuda, versions, commit, date.

    Raises
    ------
    RuntimeError
        If there is no CUDA device: a record is of a GPU.
    """
    from dgbook.gpu import device as find
    from dgbook.gpu import versions

    device = find("cuda") if device is None else device
    if device.kind != "cuda":
        raise RuntimeError(
            f"a record is of a GPU, and {device.name} is not one: run this on a CUDA device"
        )
    return {
        "gpu": device.name,
        "compute_capability": ".".join(map(str, device.compute_capability)),
        "driver": str(device.driver),
        "cuda": str(device.runtime),
        "versions": versions(),
        "commit": revision(),
        "date": datetime.date.today().isoformat(),
    }


def revision() -> str:
    """The commit of this checkout, "+changes" if files differ from it; else "dgbook VERSION"."""
    checkout = Path(__file__).resolve().parents[2]
    if (checkout / ".git").exists():
        try:
            commit = _git(checkout, "rev-parse", "--short=12", "HEAD")
            changed = _git(checkout, "status", "--porcelain", "--untracked-files=no")
            return commit + ("+changes" if changed else "")
        except (OSError, subprocess.SubprocessError):
            pass  # no git here, or no commit yet: the version has to do
    return f"dgbook {dgbook.__version__}"


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
    return run.stdout.strip()


def _read(path: Path) -> Record:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        validate(content)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path} is not a record: {error}") from error
    return Record(
        **{k: content[k] for k in Record.__dataclass_fields__} | {"rows": tuple(content["rows"])}
    )


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _plain(value: Any) -> Any:
    """NumPy scalars and arrays as JSON knows them."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"a record holds numbers, text, lists and dicts, not a {type(value).__name__}")


def _reject(where: str, value: Any, allowed: str) -> None:
    raise ValueError(f"{where} = {value!r}; allowed: {allowed}")


def _text(content: Mapping[str, Any], key: str, at: str = "") -> None:
    if not isinstance(content.get(key), str) or not content[key].strip():
        _reject(at + key, content.get(key), "text that is not empty")


def _mapping(content: Mapping[str, Any], key: str, at: str = "") -> Mapping[str, Any]:
    if not isinstance(content.get(key), Mapping):
        _reject(at + key, content.get(key), "a mapping")
    return content[key]


def _integer(content: Mapping[str, Any], key: str, at: str, lowest: int) -> None:
    value = content.get(key)
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < lowest:
        _reject(at + key, value, f"an integer of at least {lowest}")


def _number(content: Mapping[str, Any], key: str, at: str, positive: bool = False) -> float:
    value = content.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        _reject(at + key, value, "a number")
    if not math.isfinite(value) or value < 0 or (positive and value == 0):
        _reject(
            at + key,
            value,
            "a finite number above zero" if positive else "a finite number from zero",
        )
    return float(value)
