"""Wrong fused kernels of acoustics: the right one but for one mistake in its text."""

from functools import partial

import mistakes

from dgbook.acoustics.kernels.fused import make_columns, make_flux, make_fused

Mistake = partial(mistakes.Mistake, functions=(make_flux, make_columns, make_fused))
BARRIER = "        cuda.syncthreads()\n"
MISTAKES = [
    Mistake("the jump is a sum", "= u[w] - p, into", "= u[w] + p, into"),
    Mistake(
        "the neighbor's face is taken for mine",
        "inflow(way // 6, u, w)",
        "inflow(f, u, w)",
    ),
    Mistake(
        "what flows out of the neighbor is subtracted",
        "into + inflow(way // 6",
        "into - inflow(way // 6",
    ),
    Mistake(
        "face 0 has the wrong sign",
        "return -(field[v + w1] + field[v + w2]",
        "return (field[v + w1] + field[v + w2]",
    ),
    Mistake(
        "the neighbor's nodes in the order of ghosts", "opposite[way * Nfp + i]", "opposite[i]"
    ),
    Mistake("a wall keeps the velocity", "= into - boundary[m + 1] * into", "= into - into"),
    Mistake("the first field's data comes in for all", "(d + 1) * faces", "0 * faces"),
    Mistake("a derivative in the wrong direction", "1] += d1 * p", "1] += d2 * p"),
    Mistake("div v forgets a direction", "c[i, e, 0] += d3 * state[w + w3]", "pass"),
    Mistake(
        "face 0 counts for one component only", "if f == 0 or f == x:", "if f == x or f + 1 == x:"
    ),
    Mistake(
        "the lift is that of the first face", "j = np.uint32(f * Nfp)", "j = np.uint32(0 * Nfp)"
    ),
    Mistake("the metric is not symmetric", "= g12 * x + g22 * y", "= g13 * x + g22 * y"),
    Mistake(
        "no barrier before the fluxes",
        BARRIER + "        p = thread\n        while p < flux",
        "        p = thread\n        while p < flux",
    ),
    Mistake("no barrier before the lift", BARRIER + "\n        for f", "\n        for f"),
    Mistake(
        "no barrier before du/dt takes the place of the state",
        BARRIER + "\n        for e",
        "\n        for e",
    ),
    Mistake(
        "no barrier before the update",
        BARRIER + "        p = thread\n        while p < state_words:\n            k",
        "        p = thread\n        while p < state_words:\n            k",
    ),
    Mistake("the residual is not scaled", "r += a * res[k]", "r += res[k]"),
    Mistake("the new state forgets the old", "= u[k] + b * r", "= b * r"),
]
FACTORED = [
    Mistake("the state is forgotten", "r += b * u[k]", "r += zero"),
    Mistake("the array is forgotten", "if a != zero:", "if a < zero:"),
]
"""Of stages of a factored method."""
