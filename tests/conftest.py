"""For every tier: options for fewer cases and other random numbers; less garbage collection."""

import gc
from collections.abc import Callable
from functools import partial
from numbers import Integral, Real

import numpy as np
import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--kinds-once",
        action="store_true",
        help="of a test's cases, run the first and those with a parameter's value that is new, "
        "where numbers, of elements and orders say, are not new",
    )
    parser.addoption(
        "--shift-seeds",
        type=int,
        default=0,
        metavar="N",
        help="add N to every seed that is a number, in tests and in what they call",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Before test files are imported: some have one generator for all of their tests."""
    if shift := config.getoption("--shift-seeds"):
        np.random.default_rng = partial(_shifted, np.random.default_rng, shift)


def _shifted(
    default_rng: Callable[[object], np.random.Generator], shift: int, seed: object = None
) -> np.random.Generator:
    return default_rng(seed + shift if isinstance(seed, Integral) else seed)


def pytest_collection_finish() -> None:
    """A tenth of the time of compilers and simulators in Python goes into looking for cycles."""
    gc.freeze()
    gc.set_threshold(50_000, 10, 10)


@pytest.hookimpl(trylast=True)  # of the tests that `-k` leaves
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--kinds-once"):
        return
    seen: set[tuple[str, ...]] = set()
    chosen, others = [], []
    for item in items:
        test = item.nodeid.partition("[")[0]
        parameters = item.callspec.params if hasattr(item, "callspec") else {}
        # By their texts, since arrays are not hashable.
        kinds = {(test, name, repr(value)) for name, value in parameters.items() if _tells(value)}
        (others if kinds | {(test,)} <= seen else chosen).append(item)
        seen |= kinds | {(test,)}
    items[:] = chosen
    config.hook.pytest_deselected(items=others)


def _tells(value: object) -> bool:
    return isinstance(value, bool) or not isinstance(value, Real)
