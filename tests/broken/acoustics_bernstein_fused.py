"""Wrong fused Bernstein-Bezier kernels: the right one but for one mistake in its text."""

from functools import partial

import mistakes

from dgbook.acoustics.kernels.bernstein_fused import (
    make_bernstein_fused,
    make_flux,
    make_meet,
    make_points,
    make_sweep,
)

FACTORIES = (make_flux, make_meet, make_sweep, make_points, make_bernstein_fused)
Mistake = partial(mistakes.Mistake, functions=FACTORIES)

SLICES = "            meet()\n            count = "
FLUXES = "        meet()\n        sweep("
POINTS = "        meet()\n        i = lane\n        while i < points:"
UPDATE = "        meet()\n        i = lane\n        while i < 4 * points:\n            r ="
MISTAKES = [
    Mistake("no barrier before a slice", SLICES, "            count = "),
    Mistake("no barrier before slice 0", FLUXES, "        sweep("),
    Mistake("no barrier before the last slice is read", POINTS, POINTS.replace("meet()", "pass")),
    Mistake("no barrier before the update", UPDATE, UPDATE.replace("meet()", "pass")),
    Mistake("teams of several warps meet as warps", "lanes == WARP", "lanes >= WARP"),
    Mistake(
        "a slice from points of the wrong row",
        "np.uint32(old + p + r)",
        "np.uint32(old + p)",
    ),
    Mistake("L_0 forgets two neighbors", "x += c_1 * (", "x += c_0 * 0 * ("),
    Mistake("L_0 weighs its diagonal by N + 2", "real(2 * N + 3)", "real(2 * N + 1)"),
    Mistake("the jump is a sum", "(P - p)", "(P + p)"),
    Mistake("both normals point the same way", "(V + inner)", "(V - inner)"),
    Mistake("the neighbor's face is mine", "inward(way // 6, u", "inward(f, u"),
    Mistake("the neighbor's points in the order of one", "opposite[way * Nfp + j]", "opposite[j]"),
    Mistake(
        "the boundary's points from the wrong end",
        "neighbor * Nfp + Nfp - 1 - j",
        "neighbor * Nfp + j",
    ),
    Mistake("a wall keeps its sign", "V = -walls[m + 1] * inner", "V = -inner"),
    Mistake("the boundary data are forgotten", "walls[m] * p + data[w]", "walls[m] * p"),
    Mistake(
        "a derivative in the wrong direction",
        "quads[y, 2] - quads[i, 2]",
        "quads[y, 2] - quads[x, 2]",
    ),
    Mistake("the lift of velocity is not a difference", "geometry[g + 8] * s[0] - ", "-"),
    Mistake("the residual is not scaled", "r += a * res[start + i]", "r += res[start + i]"),
]
FACTORED = [
    Mistake("the state is forgotten", "r += b * u[start + i]", "r += zero"),
    Mistake("the array is forgotten", "if a != zero:", "if a < zero:"),
]
"""Of stages of a factored method."""
