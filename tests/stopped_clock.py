"""What is measured, without a GPU: kernels run once, in the simulator, and take a millisecond."""

from dgbook.gpu import device
from dgbook.gpu.timing import Timing
from dgbook.gpu.tune import Result, Trial
from dgbook.lab import records
from dgbook.lab.floor import Ceilings

SIMULATOR = device("simulator")
CEILING = Ceilings(copy_TBps=4.0, fp32_TFLOPs=60.0, fp64_TFLOPs=30.0, method="made up")
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
    monkeypatch.setattr("dgbook.gpu.timing.beyond_cache", lambda *_: True)


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


def made(measure, family, what, orders, dtypes, size):
    """The rows of a record, checked as they are when it is saved."""
    rows = list(measure.RECORDS[what](orders, dtypes, size, SIMULATOR, CEILING))
    records.validate(content(f"{family}/{what}", rows))
    return rows
