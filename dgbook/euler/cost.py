"""Flops and bytes of each operator, counted from the algorithm and not from a kernel."""

from __future__ import annotations

import numpy as np

from dgbook.arguments import check_choice
from dgbook.euler.tables import MAX_ORDER, Tables
from dgbook.gpu.cost import Cost

INDEX_BYTES = 4
FIELDS = 4
PAPER = ("volume", "face", "add", "rhs", "update", "check")
"""The parts of a stage as chen runs them, one kernel each, and the look for impossible states."""
FLUX_FLOPS = {"roe": 130, "rusanov": 59, "hllc": 111}
"""Of a numerical flux at a point; a division and a root count as one, abs, min and max as none."""
POINT_FLOPS = 32
"""Of J grad r . F and J grad s . F at a point, from the state there."""
STAGES = 4


def surface_nodes(order: int) -> int:
    """Nodes of a triangle that lie on an edge: 3p, and the only one there is for p = 0."""
    return max(1, 3 * order)


def costs(
    order: int,
    K: int,
    dtype: str | np.dtype,
    edges: int | None = None,
    flux: str = "roe",
) -> dict[str, Cost]:
    """The cost of each operator on K triangles, as a dictionary.

    "volume", "face", "add", "rhs" and "update" are the paper's kernels, "check" looks for states
    that no gas can have, "paper" is a stage of the six, "atomic" a stage of the five that remain
    if edges add to the residual themselves, and "fused" a stage in one pass. All are
    means over the four stages of a step, where stages differ. With Nq and Ne points in an element
    and on an edge, Nfp = p+1 nodes on an edge, E edges and R flops a numerical flux,

    =======  ====================================  ==============================================
    part     flops                                 words
    =======  ====================================  ==============================================
    volume   K Nq (24 Np + 32)                     K (4 Np + 4 Np + 4 geometry)
    face     E Ne (24 Nfp + R + 4)                 K 4 surface nodes + E (8 Nfp + 3 geometry + 4
                                                   links)
    add      K 12 Nfp                              K (2 x 4 surface nodes + 12 Nfp + 6 links)
    rhs      K (8 Np^2 + 4 Np)                     K (4 Np + 4 Np + 1 geometry)
    update   K 14 Np                               K 17 Np
    check    K 1.5 Np                              K Np
    atomic   as paper                              as paper, less E 8 Nfp + K (12 Nfp + 6 links)
    fused    K (Nq (24 Np + 32) + 24 Ne Np         K (13 Np + 4 geometry + 3 links)
             + 13 Np) + E Ne (16 Nfp + R)
    =======  ====================================  ==============================================

    and the tables once: phi and its two weighted derivatives at the Nq points, the basis on an
    edge, M^-1. Words are reals, but for links, which are 32-bit integers.

    *Volume*: at a point 8 Np flops interpolate the four fields, 32 make the fluxes along the two
    contravariant directions, 16 Np test them; the weights are in the table of the derivatives.
    *Face*: 16 Nfp flops interpolate both sides, 4 bring in the length of the edge, 8 Nfp test; the
    sum for the right element is that for the left with the other sign. *Add* touches the nodes on
    the surface only.

    *Atomic*: each edge adds its 8 Nfp sums to the residuals of both elements. The memory reads and
    writes the residual at the nodes on the surface, as for *add*. The sums that *face* stores and
    *add* reads again never travel, and neither do the links of *add*. There are as many additions.

    *Update*: the classical method as it stands in equation (9). Stages 1 to 3 give the next state
    and the sum so far, 4 flops a degree of freedom, and move 4, 5 and 5 words; stage 4 moves 3 with
    2 flops: 17/4 words and 14/4 flops on average. *Check* reads the state once a step.

    *Fused*: least work, so each flux once, whether a kernel computes it for both sides (as ours, an
    element a thread) or hands it over. M^-1 and 1/J are in the tables and the geometry, whose four
    numbers dr_a/dx_b also hold the normals, so that one lifts from the 3 Ne points of the edges to
    Np nodes.

    **RK4 without slopes.** With

        u1 = un + dt/2 f(un),  u2 = un + dt/2 f(u1),  u3 = un + dt f(u2)

    all slopes but the last can be had back from the states, f(un) = 2 (u1 - un) / dt and so on, and

        un + dt/6 (f(un) + 2 f(u1) + 2 f(u2) + f(u3)) = (-un + u1 + 2 u2 + u3)/3 + dt/6 f(u3).

    No sum of slopes is stored. Stage 1 reads un and writes u1: 2 words a degree of freedom. Stages
    2 and 3 read the state to differentiate and un, and write: 3 each. Stage 4 reads four states and
    writes one, over un: 5. On average 13/4 words. Kernels that carry the sum of
    slopes along would move 3, 5, 5 and 3, on average 4. Flops: 2, 2, 2 and 7, on average 13/4.

    Parameters
    ----------
    order : int
        0 to 6.
    K : int
        Triangles.
    dtype : {"float64", "float32"}
    edges : int, optional
        E; 3 K / 2 if not given, as on a periodic mesh.
    flux : {"roe", "rusanov", "hllc"}

    Raises
    ------
    ValueError
        If an argument is out of range.
    """
    if order not in range(MAX_ORDER + 1) or K < 1:
        raise ValueError(f"order = {order}, K = {K}; allowed: 0 to {MAX_ORDER}, at least 1")
    check_choice("flux", flux, FLUX_FLOPS)
    tables, word, R = Tables(order), np.dtype(dtype).itemsize, FLUX_FLOPS[flux]
    Np, Nfp, Nq, Ne = tables.Np, tables.Nfp, tables.Nq, tables.Ne
    E = 3 * K // 2 if edges is None else edges
    surface = FIELDS * surface_nodes(order)
    point = 24 * Np + POINT_FLOPS
    in_volume, on_edge, mass = 3 * Nq * Np * word, Ne * Nfp * word, Np * Np * word
    parts = {
        "volume": Cost(K * Nq * point, K * (8 * Np + 4) * word + in_volume),
        "face": Cost(
            E * Ne * (24 * Nfp + R + 4),
            (K * surface + E * (8 * Nfp + 3)) * word + E * 4 * INDEX_BYTES + on_edge,
        ),
        "add": Cost(K * 12 * Nfp, K * ((2 * surface + 12 * Nfp) * word + 6 * INDEX_BYTES)),
        "rhs": Cost(K * (8 * Np * Np + 4 * Np), K * (8 * Np + 1) * word + mass),
        "update": Cost(K * 14 * Np, K * 17 * Np * word),
        "check": Cost(K * 6 * Np // STAGES, K * Np * word),
    }
    lift = 3 * Ne * Np * word
    fused = Cost(
        K * (Nq * point + 3 * Ne * FIELDS * 2 * Np + 13 * Np) + E * Ne * (16 * Nfp + R),
        K * ((13 * Np + 4) * word + 3 * INDEX_BYTES) + in_volume + on_edge + lift,
    )
    paper = sum((parts[p] for p in PAPER), Cost(0, 0))
    stored = (8 * E + 12 * K) * Nfp * word + 6 * K * INDEX_BYTES  # by face, and read by add
    atomic = Cost(paper.flops, paper.bytes - stored)
    return parts | {"paper": paper, "atomic": atomic, "fused": fused}
