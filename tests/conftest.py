"""For every tier: options for fewer cases and other random numbers; less garbage collection."""

import gc
from collections.abc import Callable
from functools import partial
from numbers import Integral

import numpy as np
import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--one-case",
        action="store_true",
        help="run one case of each test that has several: the first of one test, the second of "
        "the next, and so on",
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
    if not config.getoption("--one-case"):
        return
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    # Another place from test to test, so that all precisions and kinds of settings are met.
    chosen = [of_test[place % len(of_test)] for place, of_test in enumerate(cases.values())]
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = chosen
