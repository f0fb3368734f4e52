"""What the kernel of local time steps needs to know of Maxwell."""

import numpy as np

from dgbook.gpu import jit
from dgbook.maxwell.kernels.fused import make_flux
from dgbook.nodal.kernels.taylor import Parts, make_taylor


def make_parts(shape):
    """The upwind flux, two numbers per face node, and curls.

    All is as in the fused kernel, of integrals in place of fields.
    Regions hold x_i . E and x_i . (Z H) node by node.
    """
    words, flux_at = shape.geometry, make_flux(shape)

    @jit(device=True)
    def flux_to(
        work, to, k, f, i, v, u, data, links, opposite, tangents,
        geometry, boundary
    ):  # fmt: skip
        work[to], work[to + 1] = flux_at(
            k, f, i, work, v, u, data, links, opposite, tangents,
            geometry, boundary)  # fmt: skip

    @jit(device=True)
    def add_column(c, d1, d2, d3, work, v):
        x, y, z = work[v], work[v + 1], work[v + 2]
        c[3] += d3 * y
        c[3] -= d2 * z
        c[4] += d1 * z
        c[4] -= d3 * x
        c[5] += d2 * x
        c[5] -= d1 * y
        x, y, z = work[v + 3], work[v + 4], work[v + 5]
        c[0] += d2 * z
        c[0] -= d3 * y
        c[1] += d3 * x
        c[1] -= d1 * z
        c[2] += d1 * y
        c[2] -= d2 * x

    @jit(device=True)
    def add_face(c, f, lifted, geometry, k):
        A, B = lifted[0], lifted[1]
        g = np.uint32(k * words + 6 + 3 * f)
        g11, g12, g22 = geometry[g], geometry[g + 1], geometry[g + 2]
        t1, t2 = 1 if f < 2 else 0, 2 if f < 3 else 1
        E1, E2 = (B, -A) if f % 2 else (-B, A)
        H1, H2 = g22 * A - g12 * B, g11 * B - g12 * A
        c[t1] += E1
        c[t2] += E2
        c[3 + t1] += H1
        c[3 + t2] += H2
        if f == 0:
            c[0] -= E1 + E2
            c[3] -= H1 + H2

    @jit(device=True)
    def finish(c, geometry, k):
        g = np.uint32(k * words)
        g11, g12, g13 = geometry[g], geometry[g + 1], geometry[g + 2]
        g22, g23 = geometry[g + 3], geometry[g + 4]
        g33 = geometry[g + 5]
        for h in range(0, 6, 3):
            x, y, z = c[h], c[h + 1], c[h + 2]
            c[h] = g11 * x + g12 * y + g13 * z
            c[h + 1] = g12 * x + g22 * y + g23 * z
            c[h + 2] = g13 * x + g23 * y + g33 * z

    return Parts(
        width=6,
        size=6 * shape.even_Np,
        numbers=2,
        flux_to=flux_to,
        add_column=add_column,
        add_face=add_face,
        finish=finish,
    )


def make_local(shape, plan):
    """The kernel `taylor` of Maxwell's equations."""
    return make_taylor(shape, plan.rows, make_parts(shape))
