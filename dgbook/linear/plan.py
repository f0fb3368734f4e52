"""How the kernels of a linear system are launched, and which launches are legal."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from math import comb
from typing import Self

import numpy as np

from dgbook.arguments import check_counts
from dgbook.gpu.plan import Capability, LaunchPlan, rows_of, varied

MAX_ACCUMULATORS = 24


@dataclass(frozen=True)
class Shape:
    """The sizes that kernels close over: dimensions, fields, nodes an element and a face, type."""

    dim: int
    n: int
    Np: int
    Nfp: int
    dtype: str

    @property
    def Nf(self) -> int:
        """Face nodes of an element, (dim+1) Nfp."""
        return (self.dim + 1) * self.Nfp

    @property
    def order(self) -> int:
        """N, of which the polynomials have dimension Np."""
        return next(N for N in count() if comb(N + self.dim, self.dim) >= self.Np)


@dataclass(frozen=True)
class Plan(LaunchPlan):
    """Who works on what: a thread a node, a row of threads an element, several rows a block.

    Parameters
    ----------
    elements_per_block : int
        Rows of Np threads in a block. Threads of different rows share nothing but the cache lines
        of D and LIFT; with more rows there are fewer idle lanes in the last warp.
    elements_inline : int
        Elements that each row of the fused kernel works on at a time. An entry of D or LIFT is
        loaded once for all of them; each costs registers and shared memory.
    """

    elements_per_block: int
    elements_inline: int = 1

    def __post_init__(self) -> None:
        check_counts(self)

    @classmethod
    def default(cls, shape: Shape, capability: Capability = None, variant: str = "") -> Self:
        """About 128 threads, and more elements inline if D is larger.

        With several fields an entry of D serves them all, so that fewer elements are needed.
        """
        inline = 2 if shape.Np <= 10 else 4 if shape.Np <= 56 else 8
        counts = [e for e in (8, 4, 2, 1) if e <= max(1, inline // shape.n)]
        return varied(cls(max(1, 128 // shape.Np)), shape, elements_inline=counts)[0]

    def subject(self, shape: Shape) -> str:
        return f"linear/fused/{shape.dim}d/{shape.n}"

    def block(self, shape: Shape) -> int:
        return self.elements_per_block * shape.Np

    def shared_bytes(self, shape: Shape) -> int:
        """States and fluxes of all elements of the fused kernel."""
        slots = self.elements_per_block * self.elements_inline
        return slots * shape.n * (shape.Np + shape.Nf) * np.dtype(shape.dtype).itemsize

    def illegal(self, shape: Shape, capability: Capability = None) -> str:
        """One limit is the compiler's.

        It must unroll the loop over the accumulators to keep them in registers, and does so up to
        24 of them.
        """
        accumulators = shape.dim * shape.n * self.elements_inline
        if self.elements_inline > 1 and accumulators > MAX_ACCUMULATORS:
            return f"{accumulators} accumulators a thread; allowed: {MAX_ACCUMULATORS}"
        return super().illegal(shape, capability)

    def candidates(self, shape: Shape, capability: Capability = None) -> list[Self]:
        """Blocks of about 64, 128 and 256 threads, 1 to 8 elements inline."""
        rows = rows_of(shape.Np, (64, 128, 256))
        return varied(self, shape, elements_per_block=rows, elements_inline=(1, 2, 4, 8))
