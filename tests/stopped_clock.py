"""What is measured, without a GPU: kernels run once, in the simulator, and take a millisecond."""

import json
from contextlib import nullcontext

from dgbook.gpu import device
from dgbook.gpu.timing import Timing
from dgbook.gpu.tune import Result, Trial
from dgbook.lab import records
from dgbook.lab.floor import Ceilings
from dgbook.lab.measuring import each_part
from dgbook.lab.session import Session

SIMULATOR = device("simulator")
CEILING = Ceilings(copy_TBps=4.0, fp32_TFLOPs=60.0, fp64_TFLOPs=30.0, method="made up")
SESSION = Session(SIMULATOR, CEILING)
SECONDS = 1e-3


def timed(function, *_):
    """`measure`, which calls the function once."""
    function()
    return Timing((SECONDS,) * 20)


def tuned(name, plans, run, *_, **__):
    """`tune`, which runs the first plan: later ones take a millisecond longer each."""
    plans = list(plans)
    run(plans[0])()
    trials = tuple(Trial(vars(plan), SECONDS * (i + 1), 1e-5, 20) for i, plan in enumerate(plans))
    return Result(plans[0], trials, len(plans))


def stop(monkeypatch, measure):
    """Stop the clock of a family's module `measure`."""
    monkeypatch.setattr(measure, "measure", timed)
    monkeypatch.setattr(measure, "tune", tuned)
    monkeypatch.setattr("dgbook.lab.session.beyond_cache", lambda *_: True)


def two_cores(monkeypatch, module):
    """Let the processor have two cores by a module's functions, however many threads there are."""
    monkeypatch.setattr(module, "all_cores", lambda: 2)
    monkeypatch.setattr(module, "on_cores", lambda cores: nullcontext())


def content(name, rows):
    """A record of these rows."""
    return {
        "name": name,
        "gpu": "none",
        "compute_capability": "9.0",
        "driver": "0",
        "cuda": "0",
        "versions": {},
        "commit": "0",
        "date": "2026-11-21",
        "ceilings": CEILING.as_dict(),
        "rows": rows,
    }


def shapes(rows):
    """By path the names in rows and in their sizes, in order, and the kinds of values in JSON."""
    rows = json.loads(json.dumps(rows, default=records._plain))
    by_path = {}
    for row in rows:
        row.pop("run", None)  # of rows that were measured in another run
        names = tuple((name, type(row[name]).__name__) for name in row)
        by_path.setdefault(row["path"], set()).add((names, tuple(row["size"])))
    return by_path


def same_as_recorded(name, rows):
    """Assert that rows look like those of the book's record: the same names in the same order."""
    recorded = shapes(records.load(name).rows)
    any_path = set().union(*recorded.values())  # the simulator runs some that the record has not
    for path, made in shapes(rows).items():
        assert made <= recorded.get(path, any_path), f"{name}, {path}"


def made(measure, family, what, orders, dtypes, size):
    """The rows of a record, checked as they are when it is saved."""
    rows = list(each_part(measure.RECORDS[what], orders, dtypes, size, SESSION))
    records.validate(content(f"{family}/{what}", rows))
    same_as_recorded(f"{family}/{what}", rows)
    return rows
