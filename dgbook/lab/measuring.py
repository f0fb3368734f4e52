"""What measurements share: problems, rows, cores, counters, and the command that records."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numba
import numpy as np

from dgbook.element import space_dimension
from dgbook.gpu import Device
from dgbook.gpu import device as find_device
from dgbook.gpu.timing import Timing, profiled
from dgbook.gpu.tune import Result
from dgbook.lab import records
from dgbook.lab.numbers import live
from dgbook.lab.profile import COUNTERS, COUNTS, counters
from dgbook.lab.roofline import ceilings
from dgbook.lab.session import Session
from dgbook.mesh import Mesh, box

Rows = Iterator[dict[str, Any]]
MESHES = Path(__file__).parents[2] / "chapters" / "meshes"
"""The book's."""
SAME = ("gpu", "driver", "cuda", "versions", "commit")
"""What two parts of one record have in common."""


# -------------------------------------------------------------------------------------- problems


@lru_cache(maxsize=2)
def cube(cells: int) -> Mesh:
    """The unit cube in cells^3 cubes of six tetrahedra."""
    return box((cells,) * 3)


def cells_for(dofs: int, order: int, fields: int) -> int:
    """Cells along each edge of a cube with about so many degrees of freedom."""
    return max(1, round((dofs / (6 * fields * space_dimension(3, order))) ** (1 / 3)))


def smaller_cubes(cells: int) -> list[int]:
    """Cells along each edge of up to 12 cubes, of 3 to so many; about 1.4 times as many in each."""
    return sorted({max(3, round(cells * 2 ** (-i / 2))) for i in range(12)})


def small_dt(face_scale: np.ndarray) -> float:
    """A step so short that a state hardly changes, however often a stage is repeated."""
    return 1e-3 / float(face_scale.max())


# ------------------------------------------------------------------------------------------ rows


def trial_rows(result: Result, row_of: Callable[[Timing], dict[str, Any]]) -> Rows:
    """A row for each plan that was timed; ``row_of(timing)`` makes one without its plan."""
    for trial in result.trials:
        if not trial.failure:
            yield row_of(Timing((trial.seconds_median,))) | {
                "plan": trial.plan,
                "seconds_iqr": trial.seconds_iqr,
                "samples": trial.samples,
            }


@contextmanager
def on_cores(cores: int) -> Iterator[None]:
    """Inside, Numba's parallel loops take so many cores of this machine's processor."""
    before = numba.get_num_threads()
    numba.set_num_threads(cores)
    try:
        yield
    finally:
        numba.set_num_threads(before)


def all_cores() -> int:
    """How many cores Numba knows of."""
    return numba.config.NUMBA_NUM_THREADS


# -------------------------------------------------------------------------------------- counters


def counted(rows: Sequence[dict[str, Any]], program: str, launches: Sequence[int] = ()) -> Rows:
    """Rows with "counters", in percent: how busy the parts of the GPU are.

    Parameters
    ----------
    rows : sequence of dict
    program : str
        Python that launches what the rows are about, in their order; see `launch_counted`.
    launches : sequence of int, optional
        Kernels that each row is about, whose mean is taken; 1 of each if not given.
    """
    launched = iter(counters(program))
    for measured, number in zip(rows, launches or [1] * len(rows), strict=True):
        parts = [next(launched) for _ in range(number)]
        yield measured | {
            "counters": {name: float(np.mean([p[name] for p in parts])) for name in parts[0]}
        }


def launch_sums(rows: Sequence[dict[str, Any]], program: str, launches: Sequence[int]) -> Rows:
    """Rows with "counters", in percent, and "counts", per degree of freedom.

    Where Nsight Compute may not count, a line says so, and rows are as they were.

    Parameters
    ----------
    rows : sequence of dict
    program : str
        See `counted`.
    launches : sequence of int
        Kernels that each row is about: their percentages are averaged over their times, their
        numbers added; of registers it is the largest.
    """
    try:
        launched = iter(
            counters(program, COUNTERS | {f"{n} counted": m for n, m in COUNTS.items()})
        )
    except RuntimeError as trouble:
        print(f"no counters: {trouble}", flush=True)
        yield from rows
        return
    for measured, number in zip(rows, launches, strict=True):
        parts = [next(launched) for _ in range(number)]
        counted = {name: [p[f"{name} counted"] for p in parts] for name in COUNTS}
        percent = {name: [p[name] for p in parts] for name in COUNTERS}
        yield measured | {
            "counters": {
                name: float(np.average(values, weights=counted["nanoseconds"]))
                for name, values in percent.items()
            },
            "counts": {name: sum(values) / measured["dofs"] for name, values in counted.items()}
            | {"registers": max(counted["registers"])},
        }


def launch_counted(functions: Sequence[Callable[[], None]]) -> None:
    """Call each function once to warm up and once where `dgbook.lab.profile.counters` looks."""
    for function in functions:
        function()
    with profiled():
        for function in functions:
            function()


# ---------------------------------------------------------------------------------- command line


def add_bench_arguments(
    parser: argparse.ArgumentParser,
    family: str,
    names: Iterable[str],
    parts: str = "orders and precisions",
) -> None:
    """The options of `bench` but for those that say how much is measured, of which `parts` tells.

    The first name is the record that is made if none is given.
    """
    names = list(names)
    parser.add_argument(
        "what",
        nargs="*",
        default=names[:1],
        metavar="RECORD",
        help=f"{', '.join(names)}: which records are made, under {family}/",
    )
    parser.add_argument("--out", help="folder for the records; chapters/records if not given")
    parser.add_argument(
        "--add",
        action="store_true",
        help=f"keep what today's record has of other {parts}: it is made part by part",
    )


def bench(
    arguments: argparse.Namespace,
    family: str,
    known: Mapping[str, Callable[..., Rows]],
    size: int,
    orders: Mapping[str, Sequence[int]],
) -> None:
    """The records of a family whose problems have an order, a precision and a size.

    Parameters
    ----------
    arguments : argparse.Namespace
        With `what`, `dtypes`, `out` and `add`.
    family : str
    known : mapping of str to function
        By the record's name what makes its rows: ``make(order, dtype, size, session)``.
    size : int
        How large the problems are, in the family's own terms.
    orders : mapping of str to sequence of int
        Of each record.

    Raises
    ------
    ValueError
        If there is no such record, or what is to be added to was measured by another version.
    """
    make_records(
        arguments,
        family,
        {name: partial(each_part, make) for name, make in known.items()},
        lambda what: (orders[what], arguments.dtypes, size),
        lambda what, row: row["order"] in orders[what] and row["dtype"] in arguments.dtypes,
        line,
    )


@dataclass(frozen=True)
class Sweep:
    """The parameters that a record's rows go through.

    Attributes
    ----------
    dims, orders : sequence of int
        Dimensions, and orders of the elements.
    dtypes : sequence of str
        Precisions.
    nbytes : float
        Of a large matrix, where the record does not have sizes of its own.
    """

    dims: Sequence[int]
    orders: Sequence[int]
    dtypes: Sequence[str]
    nbytes: float

    def points(self) -> Iterator[tuple[int, int, str]]:
        """Dimension, order and precision, the last one running fastest."""
        return product(self.dims, self.orders, self.dtypes)

    def limited(self, orders: Collection[int], dtypes: Collection[str] | None = None) -> Sweep:
        """The part of it with these orders and, if given, these precisions."""
        return replace(
            self,
            orders=tuple(order for order in self.orders if order in orders),
            dtypes=tuple(name for name in self.dtypes if dtypes is None or name in dtypes),
        )


def each_part(
    make: Callable[..., Rows],
    orders: Iterable[int],
    dtypes: Sequence[str],
    size: int,
    session: Session,
) -> Rows:
    """What a function makes of each order and precision."""
    for order in orders:
        for dtype in dtypes:
            yield from make(order, dtype, size, session)


def make_records(
    arguments: argparse.Namespace,
    family: str,
    known: Mapping[str, Callable[..., Rows]],
    parts: Callable[[str], tuple],
    measured_again: Callable[[str, Mapping[str, Any]], bool],
    shown: Callable[[Mapping[str, Any], Device], str],
) -> None:
    """Measure on this GPU, show every row as it comes, and write records.

    Parameters
    ----------
    arguments : argparse.Namespace
        With `what`, `out` and `add`.
    family : str
    known : mapping of str to function
        By the record's name what makes its rows: ``make(*parts(name), session)``.
    parts : function
        ``parts(name)`` says of a record what is measured, as the function that makes it needs it.
    measured_again : function
        ``measured_again(name, row)``: whether a row of an earlier record is among that.
    shown : function
        ``shown(row, device)``, a row as a line of text.

    Raises
    ------
    ValueError
        If there is no such record, or what is to be added to was measured by another version.
    """
    unknown = sorted(set(arguments.what) - set(known))
    if unknown:
        raise ValueError(f"RECORD = {unknown[0]!r}; allowed are {', '.join(known)}")
    device = find_device("cuda")
    here = records.environment(device)
    earlier = {
        what: earlier_rows(f"{family}/{what}", here, arguments, partial(measured_again, what))
        for what in arguments.what
    }
    session = Session(device, ceilings(device))
    for what in arguments.what:
        name, rows = f"{family}/{what}", known[what](*parts(what), session)
        write_record(name, here, session, rows, shown, arguments.out, earlier[what])


def write_record(
    name: str,
    here: Mapping[str, Any],
    session: Session,
    rows: Iterable[dict[str, Any]],
    shown: Callable[[Mapping[str, Any], Device], str],
    folder: str | None,
    earlier: Sequence[dict[str, Any]] = (),
) -> None:
    """Show every row as it comes, and write them after earlier ones as a record.

    Parameters
    ----------
    name : str
    here : mapping
        From `dgbook.lab.records.environment`.
    session, rows
    shown : function
        ``shown(row, device)``, a row as a line of text.
    folder : str or None
        See `dgbook.lab.records.save`.
    earlier : sequence of dict
    """
    all_rows = [*earlier]
    for row in rows:
        all_rows.append(row)
        print(shown(row, session.device), flush=True)
    content = {"name": name, **here, "ceilings": session.ceiling.as_dict(), "rows": all_rows}
    print("written:", records.save(content, folder), flush=True)


def earlier_rows(
    name: str,
    here: Mapping[str, Any],
    arguments: argparse.Namespace,
    measured_again: Callable[[Mapping[str, Any]], bool],
) -> list[dict[str, Any]]:
    """With --add what today's record of that name has beside the rows that are measured again.

    Each row keeps the floor that it had by the ceilings of its own run.

    Raises
    ------
    ValueError
        If that record was made by another version of something, or on another GPU.
    """
    if not arguments.add:
        return []
    try:
        record = records.load(name, arguments.out)
    except FileNotFoundError:
        return []
    if record.date[:10] != here["date"][:10]:
        return []
    for key in SAME:
        if getattr(record, key) != here[key]:
            raise ValueError(
                f"--add: today's record {name} has {key} = {getattr(record, key)!r}; allowed: "
                f"{here[key]!r}, as here"
            )
    return [row for row in record.rows if not measured_again(row)]


def line(row: Mapping[str, Any], device: Device) -> str:
    """A row as a line of text, its numbers labeled LIVE."""
    duration, rate, efficiency = (
        live(row, unit, device) for unit in ("us", "GDOF/s", "efficiency")
    )
    names = " ".join(row[key] for key in ("basis", "variant", "rung") if row.get(key))
    extra = f" error {row['error']:.3e}" if "error" in row else f" {names}"
    return (
        f"N={row['order']} {row['dtype']} K={row['size']['K']:<8} {row['path']:13} "
        f"{row['language']:5} {duration.text():>11} efficiency {efficiency.text('.2f')} "
        f"{rate}{extra}"
    )
