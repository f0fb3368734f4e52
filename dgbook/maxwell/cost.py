"""Flops and bytes of each operator, counted from the algorithm and not from a kernel."""

from __future__ import annotations

import numpy as np

from dgbook.gpu.cost import Cost
from dgbook.nodal.bernstein import nonzeros

INDEX_BYTES = 4
FIELDS = 6
FACES = 4
PAPER = ("gather", "lift", "differentiate", "assemble", "update")
"""The parts of the operator as klockner2009 runs them, one kernel each, and the time step."""


def surface_nodes(order: int) -> int:
    """Nodes of a tetrahedron that lie on a face: all but those of an element of order N - 4."""
    return nodes(order) - nodes(order - 4)


def nodes(order: int) -> int:
    """Np = (N+1)(N+2)(N+3)/6; 0 below order 0."""
    return max(0, (order + 1) * (order + 2) * (order + 3) // 6)


def costs(order: int, K: int, dtype: str | np.dtype, factored: bool = False) -> dict[str, Cost]:
    """The cost of each operator on K elements of uniform matter, as a dictionary.

    "gather", "lift", "differentiate", "assemble" and "update" are the paper's kernels, "paper" the
    five one after the other, "fused" a whole stage in one pass, with the algebra of chapter 6, and
    "bernstein" one in the Bernstein basis. With Nf = 4 Nfp, an element takes

    =============  ===============================  ===========================================
    operator       flops                            words
    =============  ===============================  ===========================================
    gather         66 Nf                            6 surface nodes + 6 Nf + 16 geometry, links
    lift           12 Nf Np                         6 Nf + 6 Np
    differentiate  36 Np^2 + 90 Np                  6 Np + 18 Np + 9 geometry
    assemble       18 Np                            12 Np + 6 Np + 6 Np
    update         24 Np                            5 x 6 Np
    fused          24 Np^2 + 4 Nf Np + 108 Np       4 x 6 Np + 6 geometry, links
                   + 40 Nf
    bernstein      66 M + 16 L + 4 s + 102 Np       4 x 6 Np + 6 geometry, links
                   + 40 Nf
    =============  ===============================  ===========================================

    The flux at a face node: 6 jumps, and 30 flops each for E and H (two cross products with n, the
    sum between them, a scale that holds Fs). A derivative in x, y or z is a sum of three
    products, and the curls need 12 of the 18. D and LIFT are read once for all elements.

    In the fused stage 12 products with an entry of D make both curls, and the flux has two
    components a face to lift; at a node 30 flops apply the element's metric, 6 make the curls, 48
    spread the lifted fluxes and 24 advance in time. The metric's six numbers are all the geometry.

    In the Bernstein basis a curl has 3 flops per number at the M = C(N+2, 3) points of degree N-1,
    and its elevation four products per column. Eight numbers per face point are lifted, by L
    entries of L_0 for one face and s of the sweeps from all four, see ``nodal.bernstein.nonzeros``.
    These matrices are known in closed form and cost no memory.

    If `factored`, "fused" and "bernstein" are the mean of the two stages of a factor, see
    `dgbook.time.ndb14_factored`: both read u and write an array, which the second reads before.
    That makes 2.5 x 6 Np words and not 4, and 2 flops per degree of freedom to advance in time.

    Raises
    ------
    ValueError
        If the order or the number of elements is not positive.
    """
    if order < 1 or K < 1:
        raise ValueError(f"order = {order}, K = {K}; allowed: at least 1")
    word = np.dtype(dtype).itemsize
    Np, Nf = nodes(order), FACES * (order + 1) * (order + 2) // 2
    D, L = 3 * Np * Np * word, Np * Nf * word
    links = FACES * INDEX_BYTES
    moved, advanced = (2.5, 2) if factored else (4, 4)  # words and flops of a degree of freedom
    parts = {
        "gather": Cost(
            K * 66 * Nf,
            K * ((FIELDS * (surface_nodes(order) + Nf) + 4 * FACES) * word + links),
        ),
        "lift": Cost(K * 2 * FIELDS * Nf * Np, K * FIELDS * (Nf + Np) * word + L),
        "differentiate": Cost(
            K * FIELDS * 3 * (2 * Np * Np + 5 * Np),
            K * (FIELDS * (1 + 3) * Np + 9) * word + D,
        ),
        "assemble": Cost(K * 18 * Np, K * FIELDS * (2 + 1 + 1) * Np * word),
        "update": Cost(K * 4 * FIELDS * Np, K * 5 * FIELDS * Np * word),
    }
    fused = Cost(
        K * (24 * Np * Np + 4 * Nf * Np + (84 + 6 * advanced) * Np + 40 * Nf),
        K * (int(moved * FIELDS * Np + 6) * word + links) + D + L,
    )
    entries, M = nonzeros(order), nodes(order - 1)
    sparse = 66 * M + 16 * entries["L_0"] + 4 * entries["sweep"]
    bernstein = Cost(
        K * (sparse + (78 + 6 * advanced) * Np + 40 * Nf),
        K * (int(moved * FIELDS * Np + 6) * word + links),
    )
    paper = sum((parts[p] for p in PAPER), Cost(0, 0))
    return parts | {"paper": paper, "fused": fused, "bernstein": bernstein}
