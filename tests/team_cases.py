"""What tests ask of all kernels in which teams of threads share a few elements."""

from dataclasses import replace
from typing import Any

PLANS = [(32, 1, 1), (32, 5, 1), (32, 9, 1), (64, 1, 2), (96, 4, 1), (128, 16, 1)]
"""Lanes, elements and teams: more work than threads, or less; one team or two in a block."""


def check_every_plan(case: Any, language: str, *plan: int) -> None:
    """A stage of that plan, by the launcher of a case."""
    kind = type(case.launcher.plan)
    case.launcher = case.launcher.planned(kind(language, *plan))
    case.check_stage()


def check_candidates(case: Any) -> None:
    """A stage and du/dt by every third of the plans that the tuner tries."""
    launcher = case.launcher
    plans = launcher.plan.candidates(launcher.shape, launcher.device.compute_capability)
    for plan in plans[1::3]:
        case.launcher = launcher.planned(plan)
        case.check_stage()
        case.check_rhs()


def check_again_and_again(case: Any, numbers: int) -> None:
    """A barrier that is missing would show as other bits: 20 times."""
    u, first = case.launcher.upload(case.u), case.poisoned()
    case.launcher.rhs(u, case.data, first)
    for _ in range(20):
        out = case.poisoned()
        case.launcher.rhs(u, case.data, out)
        assert (out[:numbers] == first[:numbers]).all()


def resident_warps(plan: Any, shape: Any, found: Any) -> int:
    """Of a multiprocessor, after a look at what the compiler says of the plan's kernel."""
    assert found.spill_bytes == 0, found
    assert found.stack_bytes == 0, found
    assert (found.fp64_instructions > 0) == (shape.itemsize == 8), found
    dynamic = plan.shared_bytes(shape) if plan.language == "cuda" else 0
    assert found.shared_bytes + dynamic == plan.shared_bytes(shape)
    resident = found.blocks_per_multiprocessor(plan.block(shape), dynamic)
    assert resident >= plan.blocks, found
    return resident * plan.block(shape) // 32


def check_refused(plan: Any, shape: Any) -> None:
    """Plans like one of a warp with one element that no device can run; it has order 6, fp64."""
    assert "lanes = 40" in replace(plan, lanes=40).illegal(shape)
    assert "threads" in replace(plan, lanes=320).illegal(shape)
    assert "elements" in replace(plan, lanes=1024, elements=129, teams=1).illegal(shape)
    assert "shared" in replace(plan, teams=8).illegal(shape, (7, 5))
