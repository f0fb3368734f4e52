"""Wrong fused kernels of Maxwell's equations in the Bernstein basis: the right one but once."""

from functools import partial

import mistakes

from dgbook.maxwell.kernels.bernstein_fused import (
    make_add_faces,
    make_bernstein_fused,
    make_curl,
    make_first_half,
    make_flux,
    make_moves,
    make_outside,
    make_raise,
    make_second_half,
    make_stage,
    make_tangential,
)
from dgbook.nodal.kernels.lift_face import make_lift_face, make_lift_to_face, make_sweep_face
from dgbook.nodal.kernels.teams import make_meet

FACTORIES = (
    make_meet,
    make_lift_to_face,
    make_sweep_face,
    make_lift_face,
    make_tangential,
    make_outside,
    make_flux,
    make_curl,
    make_raise,
    make_add_faces,
    make_first_half,
    make_second_half,
    make_moves,
    make_stage,
    make_bernstein_fused,
)
Mistake = partial(mistakes.Mistake, functions=FACTORIES)

FETCHED = "u, k)\n        meet()\n"
LIFT = "        meet()\n        lift("
UPDATE = "        meet()\n        update("
MISTAKES = [
    Mistake("no barrier after the states are fetched", FETCHED, FETCHED.replace("meet()", "pass")),
    Mistake("no barrier before the lift", LIFT, "        lift("),
    Mistake("no barrier before the update", UPDATE, "        update("),
    Mistake("teams of several warps, no barrier but a warp's", "lanes == WARP", "lanes >= WARP"),
    Mistake("L_0 weighs its diagonal by N + 2", "b2 * b2 + 2 * N + 3", "b2 * b2 + 2 * N + 1"),
    Mistake("L_0 forgets a neighbor", "(y[down] + y[down + 1])", "y[down]"),
    Mistake("slices keep their sign", "-real(i + 1)", "real(i + 1)"),
    Mistake("a slice from the wrong row", "s[old + q + length]", "s[old + q + length - 1]"),
    Mistake("the first vertex is forgotten", "return e_1 - e_0, e_2", "return e_1, e_2"),
    Mistake("the jump is a sum", "E_1 - e_1, E_2 - e_2", "E_1 + e_1, E_2 - e_2"),
    Mistake("the jump turns the wrong way", "-zeta if f % 2 else zeta", "zeta"),
    Mistake("the impedances are swapped", "(one - zeta) * h_1", "zeta * h_1"),
    Mistake("the neighbor's points in the order of one", "meeting[way * Nfp + j], n", "word, n"),
    Mistake("a wall keeps its sign", "mirror, conductor, Z = walls[m]", "mirror, conductor, Z = 1"),
    Mistake(
        "the boundary data are forgotten",
        "conductor * h_2 + Z * along(m + 5, 3, data, p, walls)",
        "conductor * h_2",
    ),
    Mistake("a curl has the wrong sign", "x_z - z_x", "z_x - x_z"),
    Mistake("a derivative in the wrong direction", "state[z + row]", "state[z + up]"),
    Mistake("E and H are exchanged", "curl(x + 1, row", "curl(x, row"),
    Mistake("degrees are raised without a factor", "add(c, real(a_2)", "add(c, real(1)"),
    Mistake("the lift of a face turns the wrong way", "if f % 2 else (-B, A)", "if f else (-B, A)"),
    Mistake("the face behind vertex 0 has two edges", "if f == 0:", "if f < 0:"),
    Mistake("what was lifted is not scaled", "weight * lifted[p],", "lifted[p],"),
    Mistake("the metric is not symmetric", "g13 * x + g23 * y", "g13 * x + g12 * y"),
    Mistake("the residual is not scaled", "r += a * res[q]", "r += res[q]"),
]
FACTORED = [
    Mistake("the state is forgotten", "r += b * state[p]", "r += zero"),
    Mistake("the array is forgotten", "if a != zero:", "if a < zero:"),
]
"""Of stages of a factored method."""
