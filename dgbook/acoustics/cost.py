"""Flops and bytes of each operator, counted from the algorithm and not from a kernel."""

from __future__ import annotations

from collections.abc import Iterable
from math import comb

import numpy as np

from dgbook.arguments import check_choice
from dgbook.gpu.cost import Cost
from dgbook.nodal.bernstein import nonzeros

INDEX_BYTES = 4
FIELDS = 4
FACES = 4
PARTS = {
    "node": ("volume", "surface", "update"),
    "element": ("volume", "flux", "lift", "update"),
    "factored": ("volume", "surface", "update"),
    "optimal": ("volume", "surface", "update"),
    "unblocked": ("volume", "surface", "update"),
}
"""The kernels of a stage by each of the paper's sets, see ``dgbook.acoustics.plan``."""


def costs(name: str, order: int, K: int, dtype: str | np.dtype) -> dict[str, Cost]:
    """The cost of each kernel of a set on K elements, and of a stage by all of them, "paper".

    **Nodal sets**, "node" and "element". With Np nodes, Nf = 4 Nfp face nodes and S nodes on the
    surface an element takes

    =========  =========================  ======================================================
    operator   flops                      words
    =========  =========================  ======================================================
    volume     24 Np^2 + 36 Np            4 Np + 4 Np + 11 geometry and material
    flux       18 Nf                      4 S + 4 Nf + 4 Nf + 28 of faces, links
    lift       8 Nf Np + 4 Np             4 Nf + 2 x 4 Np
    surface    18 Nf + 8 Nf Np + 4 Np     4 S + 4 Nf + 2 x 4 Np + 28 of faces, links
    update     16 Np                      5 x 4 Np
    =========  =========================  ======================================================

    and the matrices once, 3 Np^2 and Nf Np words. *Volume*: 12 products with an entry of D, then at
    a node 15 flops for the gradient, 17 for the divergence, 4 for the material. *Flux*: 4 jumps, 5
    for n.[v], 3 for each of the two equations and 3 that spread the second over the components; Fs
    and material are in the weights. *Update*: two fused multiply-adds a degree of freedom.

    **Bernstein sets.** D, L, E and s are the nonzeros of one barycentric derivative, of L_0, of E_L
    and of four sweeps (``dgbook.nodal.bernstein.nonzeros``):

    =========  ==============================  =================================================
    operator   flops                           words
    =========  ==============================  =================================================
    volume     32 D + 48 Np                    4 Np + 4 Np + 11 geometry and material
    surface    12 Nf + 8 L + 3 Nf + 8 E        4 S + 4 Nf + 2 x 4 Np + 26 of faces and material,
    factored   + 8 Np                          links
    optimal,   12 Nf + 8 L + 2 s + 36 Np       as above
    unblocked
    update     16 Np                           5 x 4 Np
    =========  ==============================  =================================================

    and, once, the tables that chan2015 stores, columns as integers: of the volume 16 and 4 a row,
    of L_0 its 8 (4 at N = 1) and of E_L its padded width, of the sweep 4 and 4 and the 4 places.
    *Volume*: 4 derivatives of 4 fields, 12 differences of them, and as above 36. *Surface*: the
    flux has rank 1 (``dgbook.acoustics.problem``), so that L_0 and the sweep take one scalar a face
    point, of 12 flops; E_L takes four. From the four sweeps a point gathers 7 flops each.

    Raises
    ------
    ValueError
        If the name is unknown, or the order or the number of elements not positive.
    """
    check_choice("name", name, PARTS)
    _check(order, K)
    word = np.dtype(dtype).itemsize
    Np, Nf, surface_nodes = sizes(order)
    state, links = FIELDS * Np, FACES * INDEX_BYTES
    traces = FIELDS * (surface_nodes + Nf)
    element_bytes = K * (2 * state + 11) * word
    update = Cost(K * 16 * Np, K * 5 * state * word)
    if name in ("node", "element"):
        faces = 7 * FACES
        matrices = {"D": 3 * Np * Np * word, "L": Np * Nf * word}
        lift = 8 * Nf * Np + 4 * Np
        parts = {
            "volume": Cost(K * (24 * Np * Np + 36 * Np), element_bytes + matrices["D"]),
            "flux": Cost(K * 18 * Nf, K * ((traces + FIELDS * Nf + faces) * word + links)),
            "lift": Cost(K * lift, K * (FIELDS * Nf + 2 * state) * word + matrices["L"]),
            "surface": Cost(
                K * (18 * Nf + lift),
                K * ((traces + 2 * state + faces) * word + links) + matrices["L"],
            ),
        }
    else:
        entries = nonzeros(order)
        D, L, E = (entries[key] for key in ("Bernstein derivative", "L_0", "E_L"))
        flux = 12 * Nf + 8 * L
        if name == "factored":
            flops = flux + 3 * Nf + 8 * E + 8 * Np
            lift_table = entries["E_L stored"] * (word + INDEX_BYTES)
        else:
            flops = flux + 2 * entries["sweep"] + 36 * Np
            lift_table = Np * (4 * word + 8 * INDEX_BYTES)
        face_table = Nf // FACES * (4 if order == 1 else 8) * (word + INDEX_BYTES)
        parts = {
            "volume": Cost(
                K * (32 * D + 48 * Np), element_bytes + Np * (4 * word + 16 * INDEX_BYTES)
            ),
            "surface": Cost(
                K * flops,
                K * ((traces + 2 * state + 6 * FACES + 2) * word + links) + face_table + lift_table,
            ),
        }
    parts["update"] = update
    parts = {part: parts[part] for part in PARTS[name]}
    return parts | {"paper": _sum(parts.values())}


def fused_cost(
    basis: str, order: int, K: int, dtype: str | np.dtype, factored: bool = False
) -> Cost:
    """The least cost of a whole stage of a rank-1 flux on K elements of uniform matter.

    An element takes 4 x 4 Np words, the 6 of its metric and 4 links, whatever the basis. Velocities
    are kept as their contravariant components, v^i = (dr_i/dx).v:

    - the divergence is the sum of dv^i/dr_i, so that 6 products with an entry of D, and not 12,
      make the volume; 15 flops apply the metric to grad p and 3 make the divergence;
    - n.v on a face is v^i but for a factor, or the sum of the three: a flux is 8 flops;
    - one scalar is lifted from each face; at a point 28 flops spread the four, 16 advance in time.

    =========  ======================================================================
    basis      flops
    =========  ======================================================================
    nodal      12 Np^2 + 2 Nf Np + 62 Np + 8 Nf
    bernstein  55 M + 8 L + 2 s + 44 Np + 8 Nf
    =========  ======================================================================

    *Bernstein*: D is a derivative in degree N-1, at its M = C(N+2, 3) points 8 flops of differences
    and 15 of the metric, and an elevation of four quantities, four entries a column, 32. L and s
    are as in `costs`. By dense matrices a stage in the Bernstein basis costs what a nodal one does,
    see ``launch.bernstein_fused.launcher``. Nodal matrices are read once for all elements; the
    Bernstein ones are known in closed form and cost nothing, so that their floor is memory's, at
    every order.

    If `factored`, it is the mean of the two stages of a factor, see `dgbook.time.ndb14_factored`:
    2.5 x 4 Np words, and 8 flops at a point to advance in time.

    Raises
    ------
    ValueError
        If the basis is unknown, or the order or the number of elements not positive.
    """
    if basis not in ("nodal", "bernstein"):
        raise ValueError(f"basis = {basis!r}; allowed are 'nodal', 'bernstein'")
    _check(order, K)
    word = np.dtype(dtype).itemsize
    Np, Nf, _ = sizes(order)
    flops, once = 8 * Nf - 8 * factored * Np, 0
    words = (10 if factored else 16) * Np
    if basis == "nodal":
        flops += 12 * Np * Np + 2 * Nf * Np + 62 * Np
        once = (3 * Np * Np + Nf * Np) * word
    else:
        entries = nonzeros(order)
        flops += 55 * comb(order + 2, 3) + 8 * entries["L_0"] + 2 * entries["sweep"] + 44 * Np
    return Cost(K * flops, K * ((words + 6) * word + FACES * INDEX_BYTES) + once)


def sizes(order: int) -> tuple[int, int, int]:
    """Np, Nf = 4 Nfp, and how many of the Np nodes lie on the surface: all but those of N - 4."""
    Np = comb(order + 3, 3)
    return Np, FACES * comb(order + 2, 2), Np - comb(max(order - 1, 0), 3)


def _sum(parts: Iterable[Cost]) -> Cost:
    return sum(parts, Cost(0, 0))


def _check(order: int, K: int) -> None:
    if order < 1 or K < 1:
        raise ValueError(f"order = {order}, K = {K}; allowed: at least 1")
