"""What the kernel of local time steps needs to know of acoustics."""

import numpy as np

from dgbook.acoustics.kernels.fused import GEOMETRY, make_flux
from dgbook.gpu import jit
from dgbook.nodal.kernels.taylor import Parts, make_taylor


def make_parts(shape):
    """The flux, one number per face node, and div v and grad p.

    All is as in the fused kernel, of integrals in place of fields.
    Regions hold p and W_i = J grad r_i . v.
    """
    w1, w2, w3 = (shape.place(c) for c in (1, 2, 3))
    flux_at = make_flux(shape)

    @jit(device=True)
    def flux_to(
        work, to, k, f, i, v, u, data, links, opposite, tangents,
        geometry, boundary
    ):  # fmt: skip
        work[to] = flux_at(
            k, f, i, work, v, u, data, links, opposite, geometry,
            boundary)  # fmt: skip

    @jit(device=True)
    def add_column(c, d1, d2, d3, work, v):
        p = work[v]
        c[1] += d1 * p
        c[2] += d2 * p
        c[3] += d3 * p
        c[0] += d1 * work[v + w1]
        c[0] += d2 * work[v + w2]
        c[0] += d3 * work[v + w3]

    @jit(device=True)
    def add_face(c, f, lifted, geometry, k):
        q = geometry[np.uint32(k * GEOMETRY + 16 + f)] * lifted[0]
        c[0] += lifted[0]
        for x in range(1, 4):
            if f == 0 or f == x:
                c[x] += q

    @jit(device=True)
    def finish(c, geometry, k):
        g = np.uint32(k * GEOMETRY)
        g11, g12, g13 = geometry[g], geometry[g + 1], geometry[g + 2]
        g22, g23 = geometry[g + 3], geometry[g + 4]
        g33 = geometry[g + 5]
        x, y, z = c[1], c[2], c[3]
        c[0] = geometry[g + 6] * c[0]
        c[1] = g11 * x + g12 * y + g13 * z
        c[2] = g12 * x + g22 * y + g23 * z
        c[3] = g13 * x + g23 * y + g33 * z

    return Parts(
        width=shape.width,
        size=shape.size,
        numbers=1,
        flux_to=flux_to,
        add_column=add_column,
        add_face=add_face,
        finish=finish,
    )


def make_local(shape, plan):
    """The kernel `taylor` of the acoustic equations."""
    return make_taylor(shape, plan.rows, make_parts(shape))
