"""Wrong fused kernels of the Euler equations: the right one but for one mistake in its text."""

from functools import partial

import mistakes

from dgbook.euler.kernels.fused import make_edge, make_fused, make_gather, make_update, make_volume

FACTORIES = (make_volume, make_gather, make_edge, make_update, make_fused)
Mistake = partial(mistakes.Mistake, functions=FACTORIES)
MISTAKES = [
    Mistake("the flux comes in", "+= lift[f, q, i] * F[c]", "-= lift[f, q, i] * F[c]"),
    Mistake(
        "the neighbor's nodes in its own order", "edge_nodes[g, Nfp - 1 - j]", "edge_nodes[g, j]"
    ),
    Mistake("the neighbor's edge is mine", "edge_nodes[g, Nfp", "edge_nodes[f, Nfp"),
    Mistake("the length of the edge is forgotten", "F[c] *= Fs", "F[c] *= zero + 1"),
    Mistake("an edge has its normal inward", "(-rx if f == 1", "(rx if f == 1"),
    Mistake(
        "the volume has the sign of the edges", "+= projection[q, i, 0]", "-= projection[q, i, 0]"
    ),
    Mistake("the pressure does no work", "r * (w[3] + p)", "r * w[3]"),
    Mistake("nothing is mirrored at a wall", "x - twice * nx", "x"),
    Mistake("values at points are taken for nodes", "value += nodal[j, q]", "value += (j == q)"),
    Mistake("the outside of another edge", "n // 2) * Ne + q", "n // 4) * Ne + q"),
    Mistake(
        "neighbors are read from an old state",
        "* stride]\n            gather(state, column, f, link, u,",
        "* stride]\n            gather(state, column, f, link, base,",
    ),
    Mistake("the own state is an old one", "= u[first + i * WARP]", "= base[first + i * WARP]"),
    Mistake("the second slope counts once", "second + second", "second"),
    Mistake("the last stage is forgotten", "(u[at] - v)", "(v - v)"),
    Mistake(
        "the step is not added up from its start", "third * change + v", "third * change + one[at]"
    ),
    Mistake(
        "NaN passes for a gas",
        "gas and w[0] > zero and p > zero",
        "gas and not w[0] <= zero and not p <= zero",
    ),
    Mistake("the pressure is not looked at", "zero and p > zero", "zero"),
    Mistake("the element's place for its name", "0, names[k]", "0, k"),
    Mistake("every stage is checked", "stage == LAST and not gas", "not gas"),
]
