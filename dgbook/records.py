"""Measurements with their origin: record files, and numbers labelled LIVE, RECORDED or PAPER.

A *record* is one JSON file in `chapters/records/`: what was measured on one GPU on one day, with
the ceilings of that GPU measured in the same run. A *labelled number* is a value with its unit and
where it came from; formatting one that has no label is an error, so none can reach a page.
"""

from __future__ import annotations

import datetime
import html
import json
import math
import os
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import dgbook

if TYPE_CHECKING:
    from dgbook.gpu import Device
    from dgbook.gpu.roofline import Ceilings
    from dgbook.gpu.timing import Timing

LABELS = ("LIVE", "RECORDED", "PAPER")
CEILINGS = ("copy_TBps", "fp32_TFLOPs", "fp64_TFLOPs")
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
        Of the same GPU in the same run: "copy_TBps", "fp32_TFLOPs", "fp64_TFLOPs".
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
        found = self.select(**keys)
        if len(found) != 1:
            asked = ", ".join(f"{k}={v!r}" for k, v in keys.items())
            here = "; ".join(
                ", ".join(f"{k}={row.get(k)!r}" for k in ("path", "language", "order", "dtype"))
                for row in (found or self.rows)[:12]
            )
            raise ValueError(
                f"{len(found)} rows of record {self.name!r} have {asked}; one is needed. "
                f"{'They are' if found else 'Rows there'}: {here}"
            )
        return found[0]


def measured_row(
    path: str,
    language: str,
    order: int | None,
    dtype: Any,
    size: Mapping[str, Any],
    dofs: int | None,
    plan: Any,
    cost: Any,
    timing: Timing,
    ceiling: Ceilings,
    device: Device,
) -> dict[str, Any]:
    """A row of a record: an operator whose cost is known, timed on a device.

    Parameters
    ----------
    path, language, order, dtype, size, dofs
        As in the row, see `validate`.
    plan : dataclass or None
    cost : object with `flops` and `bytes`
    timing, ceiling, device
        From ``dgbook.gpu.timing.measure`` and ``dgbook.gpu.roofline.ceilings`` on that device.
    """
    from dgbook.gpu.roofline import floor_seconds
    from dgbook.gpu.timing import beyond_cache

    floor = floor_seconds(cost.bytes, cost.flops, dtype, ceiling)
    return {
        "path": path,
        "language": language,
        "order": order,
        "dtype": np.dtype(dtype).name,
        "size": dict(size),
        "dofs": dofs,
        "plan": {} if plan is None else asdict(plan),
        **timing.as_row(),
        "flops": cost.flops,
        "bytes": cost.bytes,
        "floor_seconds": floor,
        "efficiency": floor / timing.median,
        "beyond_cache": beyond_cache(cost.bytes, device),
        "host_bound": timing.host_bound,
    }


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
        there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
        with tempfile.TemporaryFile(dir=there):
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
    found = [
        record
        for record in records
        if record.name == name and (gpu is None or gpu.lower() in record.gpu.lower())
    ]
    if not found:
        names = sorted({path.stem for path in folder.glob("*.json")})
        raise FileNotFoundError(
            f"no record {name!r}{f' of a GPU called {gpu!r}' if gpu else ''} in {folder}; "
            f"there {'are ' + ', '.join(names) if names else 'is none at all'}"
        )
    return max(found, key=lambda record: record.date)


def exists(name: str) -> bool:
    """Whether this checkout of the book has a record of that name."""
    try:
        load(name)
    except FileNotFoundError:
        return False
    return True


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
    checkout = Path(__file__).resolve().parent.parent
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
    checkout = Path(__file__).resolve().parent.parent
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


# ------------------------------------------------------------------------------ labelled numbers


# Dimension of each unit that a row can be read in, and the unit's size.
_RATES = {
    "seconds_median": {"s": 1.0, "ms": 1e-3, "us": 1e-6},
    "bytes": {"GB/s": 1e9, "TB/s": 1e12},
    "flops": {"GFLOP/s": 1e9, "TFLOP/s": 1e12},
    "dofs": {"MDOF/s": 1e6, "GDOF/s": 1e9},
    "efficiency": {"efficiency": 1.0},
}
UNITS = tuple(unit for units in _RATES.values() for unit in units)


def in_unit(row: Mapping[str, Any], unit: str) -> float:
    """Read a row of a record in a unit.

    Parameters
    ----------
    row : mapping
        A row as `validate` describes it.
    unit : str
        "s", "ms", "us", "GB/s", "TB/s", "GFLOP/s", "TFLOP/s", "MDOF/s", "GDOF/s" or "efficiency"
        (floor / measured, between 0 and 1).

    Raises
    ------
    ValueError
        If the unit is another one, or the row has nothing to measure in it.
    """
    for key, units in _RATES.items():
        if unit not in units:
            continue
        if not row.get(key):
            raise ValueError(f"this row has {key} = {row.get(key)!r}: it cannot be read in {unit}")
        seconds = 1.0 if key in ("seconds_median", "efficiency") else row["seconds_median"]
        return row[key] / seconds / units[unit]
    raise ValueError(f"unit = {unit!r}; allowed are {', '.join(UNITS)}")


@dataclass(frozen=True)
class Number:
    """A value with its unit, its label and its source.

    Text, format and HTML all carry the label: `42.9 GB/s  [RECORDED NVIDIA H200, 2026-11-20]`.
    A number without a label can be made but not shown.

    Parameters
    ----------
    value : float
    unit : str
        "" for a plain ratio.
    label : str
        "LIVE", "RECORDED" or "PAPER"; of a quotient of two, both, joined by "/".
    source : str
        Device, record or paper.
    """

    value: float
    unit: str = ""
    label: str = ""
    source: str = ""

    def __post_init__(self) -> None:
        if isinstance(self.value, bool) or not isinstance(
            self.value, int | float | np.integer | np.floating
        ):
            raise TypeError(f"value = {self.value!r}; a number is needed")
        if self.label and any(part not in LABELS for part in self.label.split("/")):
            raise ValueError(f"label = {self.label!r}; allowed are {', '.join(LABELS)}")

    def __format__(self, specification: str) -> str:
        self._check()
        return f"{self.text(specification)}  [{self.label} {self.source}]"

    def __str__(self) -> str:
        return format(self)

    def __repr__(self) -> str:
        return format(self) if self.label else f"Number({self.value!r}, {self.unit!r}, no label)"

    def __truediv__(self, other: Number) -> Number:
        """How many times `other` goes into this number, with both origins kept."""
        if not isinstance(other, Number):
            return NotImplemented
        if self.unit != other.unit:
            raise ValueError(f"a ratio needs one unit, not {self.unit!r} and {other.unit!r}")
        self._check()
        other._check()
        same = (self.label, self.source) == (other.label, other.source)
        return Number(
            self.value / other.value,
            "×",
            self.label if same else f"{self.label}/{other.label}",
            self.source if same else f"{self.source} / {other.source}",
        )

    def text(self, specification: str = "", unit: bool = True) -> str:
        """Value and unit without the label, for a place that shows the label by itself."""
        value = format(self.value, specification) if specification else significant(self.value)
        return f"{value} {self.unit}" if unit and self.unit else value

    def _repr_html_(self) -> str:
        self._check()
        return f"{html.escape(self.text())} {badge(self.label, self.source)}"

    def _check(self) -> None:
        if not self.label or not self.source:
            raise ValueError(
                f"{self.text()} has no {'source' if self.label else 'label'}: make it with live(), "
                "recorded() or paper(), so that the page says where it comes from"
            )


def live(value: Any, unit: str, device: Any = None) -> Number:
    """A number measured in this run, on this device.

    Parameters
    ----------
    value : float, mapping or dgbook.gpu.timing.Timing
        The number; or a row in the form that records have, or a timing, read by `in_unit`.
    unit : str
    device : dgbook.gpu.Device, optional
        Where it was measured; `dgbook.gpu.device()` if not given.
    """
    if device is None:
        from dgbook.gpu import device as find

        device = find()
    row = value.as_row() if hasattr(value, "as_row") else value
    number = in_unit(row, unit) if isinstance(row, Mapping) else row
    return Number(number, _shown(unit), "LIVE", device.name)


def recorded(record: Record, row: Mapping[str, Any], unit: str) -> Number:
    """A number of a record, read in `unit` by `in_unit`.

    Raises
    ------
    ValueError
        If the row is not one of the record's.
    """
    if not any(row is own or row == own for own in record.rows):
        raise ValueError(
            f"this row is not one of record {record.name!r}: take it from record.row(...)"
        )
    return Number(in_unit(row, unit), _shown(unit), "RECORDED", record.source)


def paper(name: str, place: str, value: float, unit: str = "") -> Number:
    """A number that a paper prints.

    Parameters
    ----------
    name : str
        "klockner2009", "roca2011", "chen", "chan2015" or "magee2017".
    place : str
        "Table 2", "Figure 8(a)", or a section: "Section 6".
    value : float
    unit : str

    Raises
    ------
    ValueError
        If the paper is another one or has no such table or figure.
    """
    from dgbook import reproduce

    if re.match(r"(tab|fig)", place.lower()):
        place = reproduce.find(name, place)[0].number
    return Number(value, unit, "PAPER", f"{reproduce.paper(name).name}, {place}")


def significant(value: float, digits: int = 3) -> str:
    """A number to `digits` significant digits, without an exponent between 0.001 and a million.

    >>> significant(42.871), significant(0.0123), significant(123456.0)
    ('42.9', '0.0123', '123456')
    """
    if isinstance(value, int | np.integer):
        return str(value)
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    rounded = float(f"{value:.{digits - 1}e}")
    exponent = math.floor(math.log10(abs(rounded)))
    if exponent < -3 or exponent >= 6:
        return f"{value:.{digits - 1}e}"
    return f"{value:.{max(0, digits - 1 - exponent)}f}"


def badge(label: str, source: str = "") -> str:
    """The label as HTML: legible with no style sheet, colored by the book's.

    Raises
    ------
    ValueError
        If `label` is not LIVE, RECORDED, PAPER or two of them joined by "/".
    """
    parts = label.split("/")
    for part in parts:
        if part not in LABELS:
            raise ValueError(f"label = {label!r}; allowed are {', '.join(LABELS)}")
    spans = "/".join(
        f'<span class="dg-label label-{part.lower()}" style="border:1px solid currentColor;'
        f'border-radius:0.7em;padding:0 0.45em;font-size:0.75em;white-space:nowrap">{part}</span>'
        for part in parts
    )
    return f"{spans} <small>{html.escape(source)}</small>" if source else spans


def _shown(unit: str) -> str:
    return "" if unit == "efficiency" else unit


# --------------------------------------------------------------------------------------- tables


@dataclass(frozen=True)
class Table:
    """A table of text, counts and labelled numbers; shown by a notebook, or as text by `print`."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    caption: str
    formats: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        indices = range(len(self.columns))
        body = [[self._cell(row, i, plain=True) for i in indices] for row in self.rows]
        head = [self._heading(i, plain=True) for i in indices]
        origin = self._origin
        caption = f"{self.caption} [{origin.label} {origin.source}]" if origin else self.caption
        widths = [max(len(line[i]) for line in [head, *body]) for i in indices]
        text_column = [all(isinstance(row[i], str) for row in self.rows) for i in indices]
        lines = [
            "  ".join(
                cell.ljust(width) if is_text else cell.rjust(width)
                for cell, width, is_text in zip(line, widths, text_column, strict=True)
            )
            for line in [head, *body]
        ]
        rule = "-" * len(lines[0])
        return "\n".join(line.rstrip() for line in [caption, lines[0], rule, *lines[1:]])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        caption, origin = html.escape(self.caption), self._origin
        label = f" {badge(origin.label, origin.source)}" if origin else ""
        indices = range(len(self.columns))
        head = "".join(f'<th scope="col">{self._heading(i, plain=False)}</th>' for i in indices)
        body = ""
        for row in self.rows:
            first, *others = (self._cell(row, i, plain=False) for i in indices)
            cells = "".join(f'<td style="text-align:right">{cell}</td>' for cell in others)
            body += f'<tr><th scope="row">{first}</th>{cells}</tr>'
        # "dataframe" is the class that notebooks and themes know how to draw, light and dark.
        return (
            '<div class="table-scroll" style="overflow-x:auto" role="region" tabindex="0" '
            f'aria-label="{caption}">'
            f'<table class="dataframe"><caption style="text-align:left">{caption}{label}</caption>'
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        )

    def _heading(self, column: int, plain: bool) -> str:
        name, number = self.columns[column], self._common(column)
        here = number is not None and self._origin is None
        if plain:
            return f"{name} [{number.label} {number.source}]" if here else name
        told = [html.escape(number.unit)] if number is not None and number.unit else []
        if here:
            label = badge(number.label, number.source)
            told.append(f'<span style="font-weight:normal">{label}</span>')
        return html.escape(name) + ("<br>" + " ".join(told) if told else "")

    @cached_property
    def _origin(self) -> Number | None:
        """A number that stands for the table if several columns have numbers, all of one origin."""
        found = [(i, n) for row in self.rows for i, n in enumerate(row) if isinstance(n, Number)]
        columns, origins = {i for i, _ in found}, {(n.label, n.source) for _, n in found}
        return found[0][1] if len(columns) > 1 and len(origins) == 1 else None

    def _common(self, column: int) -> Number | None:
        """A number that stands for the column if all its numbers share unit, label and source."""
        numbers = [row[column] for row in self.rows if isinstance(row[column], Number)]
        origins = {(n.unit, n.label, n.source) for n in numbers}
        return numbers[0] if len(origins) == 1 else None

    def _cell(self, row: tuple[Any, ...], column: int, plain: bool) -> str:
        value = row[column]
        specification = self.formats.get(self.columns[column], "")
        if isinstance(value, Number):
            if self._common(column):
                return value.text(specification, unit=plain)
            if self._origin:
                text = value.text(specification)
                return text if plain else html.escape(text)
            if plain:
                return format(value, specification)
            return f"{html.escape(value.text(specification))} {badge(value.label, value.source)}"
        text = "–" if value is None else str(value)
        return text if plain else html.escape(text)


def table(
    rows: Sequence[Sequence[Any]],
    columns: Sequence[str],
    caption: str,
    formats: Mapping[str, str] | None = None,
) -> Table:
    """A table for a chapter: scrolls on a phone, readable by a screen reader, no number unlabelled.

    Parameters
    ----------
    rows : sequence of rows
        Cells are text, integers (orders, counts), `Number` or None (shown as a dash). Where all
        numbers of a column have one unit and origin, the label stands in its heading, else in
        each cell; with the caption, if the numbers of several columns have one origin.
    columns : sequence of str
        The headings; the first column names the rows.
    caption : str
        What the table shows.
    formats : mapping, optional
        Format specification of a column's numbers: {"ours": ".2f"}.

    Raises
    ------
    TypeError
        If a cell is a bare float: it has no label.
    ValueError
        If a number has no label, a row has the wrong length, or `formats` names no column.
    """
    for i, row in enumerate(rows):
        if len(row) != len(columns):
            raise ValueError(
                f"rows[{i}] has {len(row)} cells; the table has {len(columns)} columns"
            )
        for name, value in zip(columns, row, strict=True):
            if isinstance(value, Number):
                value._check()
            elif value is not None and not isinstance(value, str | int | np.integer):
                raise TypeError(
                    f"rows[{i}], {name!r}: {value!r} is a number without a label; wrap it in "
                    "live(), recorded() or paper(), or format it to text if it is no measurement"
                )
    unknown = set(formats or {}) - set(columns)
    if unknown:
        raise ValueError(f"formats = {sorted(unknown)}; the columns are {list(columns)}")
    return Table(tuple(columns), tuple(map(tuple, rows)), caption, dict(formats or {}))
