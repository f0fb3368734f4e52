"""How the products with a trace matrix are launched, and which launches are legal."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import Self

import numpy as np

from dgbook.arguments import check_choice, check_counts
from dgbook.gpu.limits import WARP
from dgbook.gpu.plan import Capability, LaunchPlan, varied

METHODS = ("paper", "fused", "sliced", "wide", "bulk")
CUDA = ("wide", "bulk")
LOAD = 16
"""Bytes that a thread can load at once."""
HOPPER = (9, 0)
"""The first compute capability that has bulk copies."""
BLOCK_BYTES = 2**17
"""Of the matrix, for a block with bulk copies: with more the last blocks keep others waiting."""
BARRIER = 8
"""Bytes of a barrier in shared memory."""


@dataclass(frozen=True)
class Shape:
    """The sizes that kernels close over.

    Attributes
    ----------
    m : int
        Unknowns of a face.
    blocks : int
        Blocks of a row.
    dtype : str
    """

    m: int
    blocks: int
    dtype: str

    @property
    def order(self) -> int:
        """What the tuner calls it: m."""
        return self.m

    @property
    def q(self) -> int:
        """Columns of a face's rows: those of all its blocks."""
        return self.blocks * self.m

    @property
    def itemsize(self) -> int:
        """Bytes of a number."""
        return np.dtype(self.dtype).itemsize

    @property
    def vector(self) -> int:
        """Numbers of a load of 16 bytes."""
        return LOAD // self.itemsize

    @property
    def stride(self) -> int:
        """Numbers from a face's x in shared memory to the next: an odd number of 16 bytes.

        So lanes that work for different faces read different banks.
        """
        return self.vector * (-(-self.q // self.vector) | 1)


def tile_faces(shape: Shape, rows: int) -> int:
    """Faces that so many rows can belong to, at most, where they begin at a multiple of `rows`."""
    return -(-(shape.m - gcd(rows, shape.m) + rows) // shape.m)


@dataclass(frozen=True)
class Plan(LaunchPlan):
    """Who works on what.

    Parameters
    ----------
    method : {"paper", "fused", "sliced", "wide", "bulk"}
        paper: the inflated vector and Algorithm 2, a thread an output, columns one after the other.
        fused: the same without inflating, x read where it is. sliced: slices of 32 rows, x in
        shared memory. wide: the same in CUDA C++ with loads of 16 bytes. bulk: slices come to
        shared memory by bulk copies, from compute capability 9.0 on.
    warps : int
        Of a block.
    split : int
        Warps that share a slice: each sums up every so-manieth column. It divides `warps`.
    unroll : int
        Loads of a thread that are under way together; in bulk those that one copy stands for.
    resident : int
        Blocks that a multiprocessor should hold: the compiler limits the registers of wide and
        bulk.
    stages : int
        Of bulk: copies that a warp has under way together.
    turns : int
        Of bulk: tiles that a block works on, one after the other. With more than one the copies for
        the next tile are under way while the block gathers x for it.

    Raises
    ------
    TypeError, ValueError
        If a count is no positive integer, or the method unknown.
    """

    method: str
    warps: int = 8
    split: int = 1
    unroll: int = 8
    resident: int = 1
    stages: int = 1
    turns: int = 1

    variants = ("wide", "sliced")

    def __post_init__(self) -> None:
        check_choice("method", self.method, METHODS)
        check_counts(self, "warps", "split", "unroll", "resident", "stages", "turns")

    @property
    def threads(self) -> int:
        """Of a block."""
        return WARP * self.warps

    @property
    def tile_rows(self) -> int:
        """Rows that a block works on at a time."""
        return WARP * self.warps // self.split

    @classmethod
    def default(cls, shape: Shape, capability: Capability = None, variant: str = "") -> Self:
        """As many warps share a slice as leave each two turns of loads or more.

        And more of them where x would not fit into shared memory.
        """
        variant = variant or "wide"
        if variant not in CUDA:
            unroll = 8 if variant == "sliced" else 1
            return varied(cls(variant, unroll=unroll), shape, warps=(8, 4, 2, 1))[0]
        warps, unroll = (8, 8) if variant == "wide" else (4, 4)
        splits = [split for split in (1, 2, 4, 8) if split <= warps]
        enough = [s for s in splits if shape.q // shape.vector >= 2 * unroll * s] or [1]
        for split in (enough[-1], *(s for s in splits if s > enough[-1])):
            plan = cls(variant, warps, split, unroll, 32 // warps)
            if variant == "bulk":
                plan = _bulk_plan(shape, warps, split, unroll, 4)
            if not plan.illegal(shape, max(capability or HOPPER, HOPPER)):
                return plan
        raise ValueError(f"m = {shape.m}: x of two faces has no room in shared memory")

    def subject(self, shape: Shape) -> str:
        """Under which the tuner's `order` is m."""
        return f"hdg/{self.method}/{shape.blocks}"

    @property
    def dynamic(self) -> bool:
        return self.method == "bulk"

    def block(self, shape: Shape) -> int:
        return self.threads

    def shared_bytes(self, shape: Shape) -> int:
        """x of the faces of a block's rows, partial sums, and stages of bulk."""
        if self.method in ("paper", "fused"):
            return 0
        stride = shape.q if self.method == "sliced" else shape.stride
        gathered = tile_faces(shape, self.tile_rows) * stride * shape.itemsize
        partial = self.threads * shape.itemsize if self.split > 1 else 0
        if self.method != "bulk":
            return gathered + partial
        stage = WARP * (self.unroll * LOAD + shape.q % shape.vector * shape.itemsize)
        return gathered + self.warps * self.stages * (stage + BARRIER) + partial

    def illegal(self, shape: Shape, capability: Capability = None) -> str:
        """Why this plan cannot run, or an empty string; without a capability on any device."""
        if self.warps % self.split:
            return f"split = {self.split}; allowed: what divides warps = {self.warps}"
        alone = Plan(self.method, self.warps, unroll=self.unroll)
        if self.method not in CUDA and self != alone:
            return "Numba's kernels take warps and unroll only"
        if self.method == "wide" and (self.stages, self.turns) != (1, 1):
            return "stages and turns are for bulk copies"
        if self.method == "bulk" and (capability or HOPPER) < HOPPER:
            return f"no bulk copies for compute capability {capability}; allowed: from {HOPPER}"
        return super().illegal(shape, capability or HOPPER)

    def candidates(self, shape: Shape, capability: Capability = None) -> list[Self]:
        """This plan first, then those of its method."""
        plans, method = [self], self.method
        if method not in CUDA:
            unrolls = (4, 8, 16) if method == "sliced" else (1,)
            plans += varied(self, shape, warps=(2, 4, 8, 16), unroll=unrolls)
        for warps in (4, 8) if method in CUDA else ():
            splits = (s for s in (1, 2, 4, 8) if s <= warps and 4 * s <= shape.q // shape.vector)
            for split in (1, *(s for s in splits if s > 1)):
                if method == "wide":
                    # as many warps as the registers for so many loads allow
                    for unroll, together in ((4, 40), (8, 32), (12, 24), (16, 16)):
                        plans.append(Plan(method, warps, split, unroll, together // warps))
                else:
                    for most, stages in ((4, 4), (8, 2), (8, 4)):
                        for turns in (None, 1, 16):
                            plans.append(_bulk_plan(shape, warps, split, most, stages, turns))
        return list(dict.fromkeys(p for p in plans if not p.illegal(shape, capability)))


def _bulk_plan(
    shape: Shape, warps: int, split: int, most: int, stages: int, turns: int | None = None
) -> Plan:
    """Copies of equal size, of up to `most` loads a thread; as many turns as make `BLOCK_BYTES`."""
    part = max(1, -(-(shape.q // shape.vector) // split))
    unroll = -(-part // -(-part // most))
    tile_bytes = warps // split * WARP * shape.q * shape.itemsize
    turns = turns or max(1, min(16, BLOCK_BYTES // tile_bytes))
    resident = max(1, 32 // warps)
    return Plan("bulk", warps, split, unroll, resident, stages, turns)
