"""Wrong fused kernels of Maxwell's equations: the right one but for one mistake in its text."""

from functools import partial

import mistakes

from dgbook.maxwell.kernels.fused import make_curl, make_flux, make_fused

Mistake = partial(mistakes.Mistake, functions=(make_flux, make_curl, make_fused))
BARRIER = "        cuda.syncthreads()\n\n        m, d"
LAST_BARRIER = "        cuda.syncthreads()\n        p = thread\n        while p < state_words:"
MISTAKES = [
    Mistake("the jump is a sum", "E1 - e1, E2 - e2", "E1 + e1, E2 + e2"),
    Mistake("the electric flux turns the wrong way", "-zeta if f % 2 else zeta", "zeta"),
    Mistake(
        "a derivative in the wrong direction",
        "rates[i, e, 3] -= d2 * z",
        "rates[i, e, 3] -= d1 * z",
    ),
    Mistake("a curl has the wrong sign", "rates[i, e, 4] -= d3 * x", "rates[i, e, 4] += d3 * x"),
    Mistake(
        "the neighbor's nodes in the order of ghosts", "opposite[way * Nfp + i]", "opposite[i]"
    ),
    Mistake("the neighbor's tangents are mine", "at = 8 * way", "at = 48 * f"),
    Mistake("the impedances are swapped", "(one - zeta) * h1", "zeta * h1"),
    Mistake(
        "the lift is that of the first face", "j = np.uint32(f * Nfp)", "j = np.uint32(0 * Nfp)"
    ),
    Mistake("the metric of a face is transposed", "g22 * A - g12 * B", "g11 * A - g12 * B"),
    Mistake("a wall keeps its sign", "E1, E2 = boundary[m] * e1", "E1, E2 = boundary[m + 1] * e1"),
    Mistake("the boundary data are forgotten", "E1, E2 = E1 + t1 * E, E2 + t2 * E", "pass"),
    Mistake("no barrier before the products", BARRIER, "        m, d"),
    Mistake(
        "no barrier before the update",
        LAST_BARRIER,
        LAST_BARRIER.replace("cuda.syncthreads()", "pass"),
    ),
    Mistake("the residual is not scaled", "r += a * res[k]", "r += res[k]"),
]
FACTORED = [
    Mistake("the state is forgotten", "r += b * u[k]", "r += zero"),
    Mistake("the array is forgotten", "if a != zero:", "if a < zero:"),
]
"""Of stages of a factored method."""
