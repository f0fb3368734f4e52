"""The fused kernel: a stage of quadrature DG in one pass."""

import math

import numpy as np

from dgbook.euler.kernels.riemann import make_flux
from dgbook.euler.problem import GAMMA, WALL
from dgbook.gpu import cuda, jit
from dgbook.gpu.limits import WARP

RATE, NEXT, LAST = range(3)
"""The kinds of stages: see `make_fused`."""


def make_volume(shape, plan, matrices):
    """Device function that adds a point's flux to the nodes' rates.

    It adds M^-1 w_q grad phi_i . F for quadrature point q of an element
    whose state is a column of shared memory. (rx, ry) and (sx, sy) are
    grad r and grad s.
    """
    real, apart = np.dtype(shape.dtype).type, plan.threads
    Np = shape.tables.Np
    interpolation = matrices["interpolation"]
    projection = matrices["projection"]
    zero, one, half, gas = real(0), real(1), real(0.5), real(GAMMA - 1)

    @jit(device=True)
    def add_volume(rate, state, column, q, w, R, S, rx, ry, sx, sy):
        # The state at the point.
        for c in range(4):
            w[c] = zero
        for i in range(Np):
            for c in range(4):
                value = state[(4 * i + c) * apart + column]
                w[c] += interpolation[q, i] * value
        # The flux along r and s.
        inverse = one / w[0]
        vx, vy = w[1] * inverse, w[2] * inverse
        p = gas * (w[3] - half * (w[1] * vx + w[2] * vy))
        r, s = vx * rx + vy * ry, vx * sx + vy * sy
        R[0], S[0] = r * w[0], s * w[0]
        R[1], S[1] = r * w[1] + p * rx, s * w[1] + p * sx
        R[2], S[2] = r * w[2] + p * ry, s * w[2] + p * sy
        R[3], S[3] = r * (w[3] + p), s * (w[3] + p)
        # Add its part to the rates of all nodes.
        for i in range(Np):
            for c in range(4):
                rate[i, c] += projection[q, i, 0] * R[c]
                rate[i, c] += projection[q, i, 1] * S[c]

    return add_volume


def make_gather(shape, plan, matrices):
    """Device function that fetches the exterior states along edge f.

    They go to shared memory, behind the nodes of the element and in the
    order in which it has the nodes of the edge. At a wall they are the
    element's own states, mirrored. Where states are given at the
    quadrature points, they are the nodal values that interpolate to
    these.
    """
    real, Np = np.dtype(shape.dtype).type, shape.tables.Np
    Nfp = shape.tables.Nfp
    apart, Ne, size = plan.threads, shape.tables.Ne, 4 * shape.tables.Np
    edge_nodes, nodal = matrices["edge_nodes"], matrices["nodal"]
    zero, two = real(0), real(2)

    @jit(device=True)
    def gather(state, column, f, link, u, data, edges, nx, ny):
        # Node by node: from a neighbor, a wall, or given states.
        n, g = np.uint32(link // 4), np.uint32(link % 4)
        for j in range(Nfp):
            far = 4 * (Np + j) * apart + column
            if g < 3:  # the neighbor has the nodes in reverse order
                i = n // WARP * size + 4 * edge_nodes[g, Nfp - 1 - j]
                for c in range(4):
                    at = (i + c) * WARP + n % WARP
                    state[far + c * apart] = u[at]
            elif n % 2 == WALL:
                near = 4 * edge_nodes[f, j] * apart + column
                x, y = state[near + apart], state[near + 2 * apart]
                twice = two * (x * nx + y * ny)
                state[far] = state[near]
                state[far + apart] = x - twice * nx
                state[far + 2 * apart] = y - twice * ny
                state[far + 3 * apart] = state[near + 3 * apart]
            else:
                for c in range(4):
                    value = zero
                    for q in range(Ne):
                        point = (c * edges + n // 2) * Ne + q
                        value += nodal[j, q] * data[point]
                    state[far + c * apart] = value

    return gather


def make_edge(shape, plan, matrices):
    """Device function that adds an edge point's flux to the rates.

    It adds - M^-1 w_q phi_i Fs F* for point q of edge f, from the
    element's states and the exterior states in shared memory.
    """
    real, apart = np.dtype(shape.dtype).type, plan.threads
    Np = shape.tables.Np
    Nfp, edge_nodes = shape.tables.Nfp, matrices["edge_nodes"]
    trace, lift, zero = matrices["trace"], matrices["lift"], real(0)
    riemann = make_flux(shape.flux, shape.dtype)

    @jit(device=True)
    def add_edge(rate, state, column, f, q, left, right, F, nx, ny, Fs):
        # The states on both sides at the point.
        for c in range(4):
            left[c] = right[c] = zero
        for j in range(Nfp):
            near, far = edge_nodes[f, j], Np + j
            for c in range(4):
                t = trace[q, j]
                left[c] += t * state[(4 * near + c) * apart + column]
                right[c] += t * state[(4 * far + c) * apart + column]
        # The flux; add its part to the rates of all nodes.
        riemann(left, right, nx, ny, F)
        for c in range(4):
            F[c] *= Fs
        for i in range(Np):
            for c in range(4):
                rate[i, c] += lift[f, q, i] * F[c]

    return add_edge


def make_update(shape, plan):
    """Device function that writes the new state.

    It reads dt f(u) from the column of shared memory. It returns
    whether the new state is that of a gas, with positive density and
    pressure.
    """
    real, apart = np.dtype(shape.dtype).type, plan.threads
    Np = shape.tables.Np
    zero, half, third = real(0), real(0.5), real(1 / 3)

    @jit(device=True)
    def update(stage, state, column, first, u, base, one, two, out, w):
        gas, i = True, np.uint32(0)
        while i < Np:
            for c in range(4):
                at = first + (4 * i + c) * WARP
                value = state[(4 * i + c) * apart + column]
                if stage == LAST:
                    v, second = base[at], two[at] - base[at]
                    change = (one[at] - v) + second + second
                    change = change + (u[at] - v)
                    value += third * change + v
                elif stage != RATE:
                    value += base[at]
                out[at] = w[c] = value
            # The pressure, times rho / (gamma - 1).
            p = w[0] * w[3] - half * (w[1] * w[1] + w[2] * w[2])
            gas = gas and w[0] > zero and p > zero
            i = np.uint32(i + 1)
        return gas

    return update


def make_fused(shape, plan, matrices):
    """Kernel for a stage: f(u) = du/dt, and a new state from it.

    RATE  out = f(u)
    NEXT  out = base + dt f(u)
    LAST  out = base + ((one - base) + 2 (two - base) + (u - base)) / 3
                + dt f(u)

    One thread per element. In LAST the smallest of the `names` of
    elements whose density or pressure is no longer positive goes to
    `bad`. No thread waits for another one: the barriers of warps only
    keep the compiler from copying shared memory to registers.
    """
    real, tables = np.dtype(shape.dtype).type, shape.tables
    Np, Ne, Nq = tables.Np, tables.Ne, len(matrices["interpolation"])
    threads, words, zero = plan.threads, 4 * tables.Np, real(0)
    columns = 4 * (tables.Np + tables.Nfp) * threads
    add_volume = make_volume(shape, plan, matrices)
    gather = make_gather(shape, plan, matrices)
    add_edge = make_edge(shape, plan, matrices)
    update = make_update(shape, plan)

    @jit(launch_bounds=(threads, plan.blocks))
    def fused(
        u, data, links, geometry, names, base, one, two, out, bad,
        elements, edges, stage, dt, begin
    ):  # fmt: skip
        state = cuda.shared.array(columns, real)
        rate = cuda.local.array((Np, 4), real)
        F = cuda.local.array(4, real)
        left = cuda.local.array(4, real)
        right = cuda.local.array(4, real)
        column = np.uint32(cuda.threadIdx.x)
        # A launch takes the elements from `begin` on.
        k = np.uint32(begin + cuda.blockIdx.x * threads + column)
        stride = np.uint32((elements + WARP - 1) // WARP * WARP)
        if k >= elements:
            return
        first = np.uint32(k // WARP * words * WARP + k % WARP)
        # Load the element's state into its column of shared memory.
        for i in range(words):
            state[i * threads + column] = u[first + i * WARP]
        rx, ry = geometry[k], geometry[k + stride]
        sx, sy = geometry[k + 2 * stride], geometry[k + 3 * stride]
        for i in range(Np):
            for c in range(4):
                rate[i, c] = zero

        # The volume, point by point.
        q = np.uint32(0)
        while q < Nq:
            cuda.syncwarp()
            add_volume(
                rate, state, column, q, left, right, F, rx, ry, sx, sy
            )
            q = np.uint32(q + 1)
        # The edges: normal, exterior states, then point by point.
        f = np.uint32(0)
        while f < 3:
            nx = rx + sx if f == 0 else (-rx if f == 1 else -sx)
            ny = ry + sy if f == 0 else (-ry if f == 1 else -sy)
            Fs = math.sqrt(nx * nx + ny * ny)
            nx, ny = nx / Fs, ny / Fs
            link = links[k + f * stride]
            gather(state, column, f, link, u, data, edges, nx, ny)
            q = np.uint32(0)
            while q < Ne:
                cuda.syncwarp()
                add_edge(
                    rate, state, column, f, q, left, right, F,
                    nx, ny, Fs,
                )  # fmt: skip
                q = np.uint32(q + 1)
            f = np.uint32(f + 1)

        # The update; dt f(u) replaces the state in shared memory.
        for i in range(Np):
            for c in range(4):
                state[(4 * i + c) * threads + column] = dt * rate[i, c]
        gas = update(
            stage, state, column, first, u, base, one, two, out, left
        )
        if stage == LAST and not gas:
            cuda.atomic.min(bad, 0, names[k])

    return fused
