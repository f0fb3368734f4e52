"""Flops and bytes of each operator, counted from the algorithm and not from a kernel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dgbook.linear.plan import Shape
from dgbook.linear.problem import System, jump_matrix

INDEX_BYTES = 4


@dataclass(frozen=True)
class Cost:
    """The least work of an operator.

    Attributes
    ----------
    flops : int
        Additions and multiplications.
    bytes : int
        Each input read once, each output written once.
    trace_bytes : int
        What comes on top if no cache keeps u: the neighbors' traces, read again. No part of
        `bytes`, nor of a floor.
    """

    flops: int
    bytes: int
    trace_bytes: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.flops + other.flops,
            self.bytes + other.bytes,
            self.trace_bytes + other.trace_bytes,
        )


def ranks(system: System, flux: str) -> tuple[int, int]:
    """Ranks of A_n and of the jump matrix F, along the x axis.

    A matrix of rank r takes n fields to r combinations and those to n fields; a derivative or a
    lift between the two is applied r times and not n times.
    """
    along_x = np.eye(system.dim)[0]
    return (
        int(np.linalg.matrix_rank(system.normal_matrix(along_x))),
        max(int(np.linalg.matrix_rank(jump_matrix(system, s * along_x, flux))) for s in (1, -1)),
    )


def costs(
    shape: Shape, K: int, system: System, flux: str = "upwind", factored: bool = False
) -> dict[str, Cost]:
    """The cost of each operator on K elements, as a dictionary.

    "volume", "surface" and "update" are the operators, "split" the three one after the other, and
    "fused" a whole stage in one pass. With r and r_F the ranks of A_n and F, an element takes

    ========  ========================================  ==========================================
    operator  flops                                     words
    ========  ========================================  ==========================================
    volume    2 dim r Np^2 + 2 dim r n Np               n Np (u) + n Np (rhs) + geometry
    surface   (n + 2 r_F n) Nf + 2 r_F Np Nf            n Np (u) + 2 n Np (rhs) + geometry, links
    update    4 n Np                                    5 n Np
    fused     all of these                              4 n Np (u, res; res, new) + geometry, links
    ========  ========================================  ==========================================

    Geometry is dim min(n^2, dim) words, from which the face matrices follow, and links are dim+1
    indices. D and LIFT are read once for all elements. The update's multiplication by dt is left
    out: D and LIFT could hold it.

    If `factored`, "fused" is the mean of the two stages of a factor, see
    `dgbook.time.ndb14_factored`: 2.5 n Np words, and 2 n Np flops to advance in time.
    """
    dim, n, Np, Nf = shape.dim, shape.n, shape.Np, shape.Nf
    word = np.dtype(shape.dtype).itemsize
    r, r_flux = ranks(system, flux)
    geometry = dim * min(n * n, dim) * word
    links = (dim + 1) * INDEX_BYTES
    derivative, lift = dim * Np * Np * word, Np * Nf * word
    traces = n * Nf * word

    volume = Cost(
        K * (2 * dim * r * Np * Np + 2 * dim * r * n * Np),
        K * (2 * n * Np * word + geometry) + derivative,
    )
    surface = Cost(
        K * ((n + 2 * r_flux * n) * Nf + 2 * r_flux * Np * Nf),
        K * (3 * n * Np * word + geometry + links) + lift,
        K * traces,
    )
    update = Cost(K * 4 * n * Np, K * 5 * n * Np * word)
    split = volume + surface + update
    moved, spared = (2.5, 2) if factored else (4, 0)
    fused = Cost(
        split.flops - K * spared * n * Np,
        K * (int(moved * n * Np * word) + geometry + links) + derivative + lift,
        K * traces,
    )
    return {
        "volume": volume,
        "surface": surface,
        "update": update,
        "split": split,
        "fused": fused,
    }
