"""Wrong fused kernels of Maxwell's equations in the Bernstein basis in CUDA C++."""

from functools import partial

from mistakes import CudaMistake as Mistake

Block = partial(Mistake, order=9)  # teams of two warps
Fp64 = partial(Mistake, dtype="float64")
FETCHED = "links, res, a);\n    meet();\n"
FLUXES = "boundary, faces);\n    meet();\n"
LIFTED = "* PLANE));\n    meet();\n"
MISTAKES = [
    Mistake("no barrier after the states are fetched", FETCHED, FETCHED.replace("meet()", "")),
    Mistake("no barrier before the lift", FLUXES, FLUXES.replace("meet()", "")),
    Mistake("no barrier before the update", LIFTED, LIFTED.replace("meet()", "")),
    Block("two warps meet as one", "LANES == 32", "LANES >= 32"),
    Mistake("copies are not waited for", "    wait_for_copies();\n", ""),
    Mistake("L_0 forgets two neighbors", "REAL(q * q) * (y", "REAL(0) * (y"),
    Fp64("L_0 weighs its diagonal by N + 2", "2 * ORDER + 3", "2 * ORDER + 1"),
    Mistake("the multi-index has no factorial", "* (factorial(q) *", "* (factorial(0) *"),
    Mistake("slices keep their sign", "s = -REAL(i)", "s = REAL(i)"),
    Fp64("the last of a slice is not kept", " || p == NP - 1", ""),
    Mistake("the jump is a sum", "jump1 = outer.E1 - inner.E1", "jump1 = outer.E1 + inner.E1"),
    Mistake("the neighbor's points in the order of one", "meeting[way * NFP + j]", "meeting[j]"),
    Mistake("vertices have three bits", "HIGH + 2 * i", "HIGH + 3 * i"),
    Mistake("a curl has the wrong sign", "(z_2.y - z_0.y) - (y_3.y", "(z_2.y - z_0.y) + (y_3.y"),
    Fp64("a derivative of the wrong field", "(x_3.y - x_0.y) - (z_1.y", "(x_3.x - x_0.x) - (z_1.y"),
    Mistake("one degree is not raised", "j < 4; ++j)\n        if", "j < 3; ++j)\n        if"),
    Mistake("faces are those of the first element", "room.planes + e * PLANE,", "room.planes,"),
    Mistake("what was lifted is not scaled", "weight * lifted[c]", "lifted[c]"),
    Fp64("the metric is not symmetric", "metric[3] * rate[f + 1]", "metric[2] * rate[f + 1]"),
    Mistake("the residual is not scaled", "a * old[c].y + dt", "old[c].y + dt"),
    Mistake(
        "all teams of a block have the elements of the first",
        "blockIdx.x * TEAMS + threadIdx.x / LANES",
        "blockIdx.x * TEAMS",
    ),
]
FACTORED = [
    Mistake("the state is forgotten", "old[c].x += b * v.x, old[c]", "old[c]"),
    Fp64("what is written is what the other form writes", "if (FACTORED)", "if (b > 1)"),
]
"""Of stages of a factored method."""
