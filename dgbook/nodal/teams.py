"""Kernels in which teams of threads work on a few elements together: plans and launches."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from dgbook.arguments import check_choice, check_counts
from dgbook.gpu.limits import WARP, architecture, resident_blocks
from dgbook.gpu.plan import Capability, LaunchPlan
from dgbook.nodal.fused import LANGUAGES, SPARE, FusedStage, NodalShape


@dataclass(frozen=True)
class TeamPlan(LaunchPlan):
    """Who works on what in a fused kernel of the Bernstein basis; each family derives its own.

    Parameters
    ----------
    language : {"cuda", "numba"}
        CUDA C++ or Numba: the same algorithm.
    lanes : int
        Threads of a team, a multiple of 32. A team of 32 waits for no other threads.
    elements : int
        Elements that a team works on at a time: their points are dealt to its threads.
    teams : int
        Teams per block.
    blocks : int
        Blocks that a multiprocessor should hold, CUDA C++ only: the compiler limits the registers.
    unroll : int
        Iterations, in flight together, of the loop over points that ends a stage; CUDA C++ only.

    Raises
    ------
    TypeError, ValueError
        If a count is no positive integer, or the language unknown.
    """

    language: str
    lanes: int
    elements: int
    teams: int
    blocks: int = 1
    unroll: int = 1

    variants = LANGUAGES

    def __post_init__(self) -> None:
        check_choice("language", self.language, LANGUAGES)
        check_counts(self, "lanes", "elements", "teams", "blocks", "unroll")

    @property
    def dynamic(self) -> bool:
        return self.language == "cuda"

    @property
    def elements_of_block(self) -> int:
        """Elements per block."""
        return self.teams * self.elements

    def block(self, shape: Any) -> int:
        return self.teams * self.lanes

    def illegal(self, shape: Any, capability: Capability = None) -> str:
        if self.lanes % WARP:
            return f"lanes = {self.lanes}; allowed: multiples of {WARP}"
        if self.elements_of_block > SPARE:
            return f"{self.elements_of_block} elements per block; allowed: {SPARE}"
        return super().illegal(shape, capability)

    def fitting(self, shape: Any, registers: int, capability: Capability) -> Self:
        """With the blocks that fit on a multiprocessor if a thread has so many registers."""
        limits, shared = architecture(capability or (7, 5)), self.shared_bytes(shape)
        fit = resident_blocks(limits, self.block(shape), registers, shared)
        return replace(self, blocks=max(1, fit))


def macros(plan: TeamPlan, shape: NodalShape) -> dict[str, Any]:
    """What every kernels/bernstein_fused/kernel.cu is compiled with."""
    return {
        "REAL": np.dtype(shape.dtype),
        "VECTOR": "float4" if shape.itemsize == 4 else "double2",
        "ORDER": shape.order,
        "LANES": plan.lanes,
        "ELEMENTS": plan.elements,
        "TEAMS": plan.teams,
        "BLOCKS": plan.blocks,
        "UNROLL": plan.unroll,
    }


class TeamStage(FusedStage):
    """A whole stage by a `TeamPlan`.

    Attributes
    ----------
    shape : NodalShape
    """

    shape: NodalShape

    def _block(self) -> tuple[int, int, int]:
        plan, shape = self.plan, self.shape
        return plan.elements_of_block, plan.block(shape), plan.shared_bytes(shape)
