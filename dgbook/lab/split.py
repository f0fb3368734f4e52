"""A stage of Maxwell's equations in five kernels, in the fused kernel's layout: two algebras."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dgbook.arguments import check_choice
from dgbook.gpu import Device, Kernel, cuda, jit
from dgbook.maxwell.kernels.fused import GHOST, make_flux
from dgbook.maxwell.launch.fused import FusedLauncher, has_materials
from dgbook.maxwell.plan import FusedShape
from dgbook.maxwell.reference import Operator
from dgbook.nodal.fused import SPARE, FusedPlan, lengthened
from dgbook.nodal.trace import WAYS
from dgbook.time import lsrk45

THREADS = 256  # about as many in a block
ALGEBRAS = ("vectors", "covariant")
VECTOR_WORDS = 9 + 4 * 4  # dr/dx; normal and Fs of each face


# ------------------------------------------------------------ kernels, vectors in space


def make_gather_six(shape):
    """Kernel for the upwind flux: six numbers per face node.

    klockner2009, equation (4), in vacuum. A thread has point i of face
    f of element k. flux holds Fs n x (dH - n x dE) / 2 and
    Fs n x (-dE - n x dH) / 2, where d means exterior minus interior;
    entry (k, c, p) is component c at face node p of element k.
    """
    real = np.dtype(shape.dtype).type
    size, Nfp = 6 * shape.even_Np, shape.Nfp
    points, one, half = 4 * Nfp, real(1), real(0.5)

    @jit
    def gather_six(
        u, links, opposite, face_nodes, elements, mirrors, flux
    ):  # fmt: skip
        p = np.uint32(cuda.grid(1))
        k, f = np.uint32(p // points), np.uint32(p // Nfp % 4)
        i = np.uint32(p % Nfp)
        v = np.uint32(k * size + 6 * face_nodes[f * Nfp + i])
        link = links[4 * k + f]
        way, neighbor = link % WAYS, link // WAYS
        w, keep_E, keep_H = v, one, one
        if way < GHOST:
            w = neighbor * size + 6 * opposite[way * Nfp + i]
        else:  # a wall reflects the fields
            keep_E = mirrors[2 * neighbor]
            keep_H = mirrors[2 * neighbor + 1]
        # The six jumps.
        E1 = keep_E * u[w] - u[v]
        E2 = keep_E * u[w + 1] - u[v + 1]
        E3 = keep_E * u[w + 2] - u[v + 2]
        H1 = keep_H * u[w + 3] - u[v + 3]
        H2 = keep_H * u[w + 4] - u[v + 4]
        H3 = keep_H * u[w + 5] - u[v + 5]
        # dH - n x dE, and -dE - n x dH.
        g = np.uint32(k * 25 + 9 + 4 * f)
        n1, n2, n3 = elements[g], elements[g + 1], elements[g + 2]
        A1 = H1 - (n2 * E3 - n3 * E2)
        A2 = H2 - (n3 * E1 - n1 * E3)
        A3 = H3 - (n1 * E2 - n2 * E1)
        B1 = -E1 - (n2 * H3 - n3 * H2)
        B2 = -E2 - (n3 * H1 - n1 * H3)
        B3 = -E3 - (n1 * H2 - n2 * H1)
        # Times n, and half of Fs.
        s = half * elements[g + 3]
        q = np.uint32(6 * k * points + p % points)
        flux[q] = s * (n2 * A3 - n3 * A2)
        flux[q + points] = s * (n3 * A1 - n1 * A3)
        flux[q + 2 * points] = s * (n1 * A2 - n2 * A1)
        flux[q + 3 * points] = s * (n2 * B3 - n3 * B2)
        flux[q + 4 * points] = s * (n3 * B1 - n1 * B3)
        flux[q + 5 * points] = s * (n1 * B2 - n2 * B1)

    return gather_six


def make_lift_six(shape, plan):
    """Kernel for LIFT times six numbers per face node.

    One thread per node, one row of threads per element. An entry of
    LIFT, once loaded, serves all six fields.
    """
    real = np.dtype(shape.dtype).type
    Np, points, rows = shape.Np, 4 * shape.Nfp, plan.rows
    words, threads, zero = 6 * points * rows, rows * Np, real(0)

    @jit
    def lift_six(flux, matrix, lifted):
        f = cuda.shared.array(words, real)
        r = cuda.local.array(6, real)
        lane = np.uint32(cuda.threadIdx.x)
        row = np.uint32(cuda.threadIdx.y)
        block = np.uint32(cuda.blockIdx.x)
        p = np.uint32(row * Np + lane)
        while p < words:
            f[p] = flux[block * words + p]
            p = np.uint32(p + threads)
        for c in range(6):
            r[c] = zero
        cuda.syncthreads()
        j = np.uint32(0)
        while j < points:
            l = matrix[j * Np + lane]
            for c in range(6):
                r[c] += l * f[(6 * row + c) * points + j]
            j = np.uint32(j + 1)
        k = np.uint32(block * rows + row)
        for c in range(6):
            lifted[(6 * k + c) * Np + lane] = r[c]

    return lift_six


def make_differentiate_18(shape, plan):
    """Kernel for d/dx, d/dy and d/dz of all six fields.

    18 products with each column of D. Entry (k, 3 q + d, n) of the
    result is d/dx_d of field q.
    """
    real = np.dtype(shape.dtype).type
    Np, rows, size = shape.Np, plan.rows, 6 * shape.even_Np
    words, threads, zero = rows * size, rows * Np, real(0)

    @jit
    def differentiate_18(u, matrix, elements, derivative):
        state = cuda.shared.array(words, real)
        d = cuda.local.array(18, real)
        lane = np.uint32(cuda.threadIdx.x)
        row = np.uint32(cuda.threadIdx.y)
        block = np.uint32(cuda.blockIdx.x)
        p = np.uint32(row * Np + lane)
        while p < words:
            state[p] = u[block * words + p]
            p = np.uint32(p + threads)
        for x in range(18):
            d[x] = zero
        cuda.syncthreads()
        m, v = np.uint32(0), np.uint32(row * size)
        while m < Np:
            for r in range(3):
                D = matrix[(3 * m + r) * Np + lane]
                for q in range(6):
                    d[3 * q + r] += D * state[v + q]
            m, v = np.uint32(m + 1), np.uint32(v + 6)
        # From the reference axes to x, y and z.
        k = np.uint32(block * rows + row)
        for q in range(6):
            for x in range(3):
                total = zero
                for r in range(3):
                    total += elements[25 * k + 3 * r + x] * d[3 * q + r]
                derivative[(18 * k + 3 * q + x) * Np + lane] = total

    return differentiate_18


def make_assemble_18(shape, plan):
    """Kernel for du/dt: curls of 12 of the 18 derivatives, and lifts."""
    real = np.dtype(shape.dtype).type
    Np, rows, size = shape.Np, plan.rows, 6 * shape.even_Np
    words, threads, zero = rows * size, rows * Np, real(0)
    padding = size - 6 * Np

    @jit
    def assemble_18(derivative, lifted, du):
        rate = cuda.shared.array(words, real)
        lane = np.uint32(cuda.threadIdx.x)
        row = np.uint32(cuda.threadIdx.y)
        block = np.uint32(cuda.blockIdx.x)
        k = np.uint32(block * rows + row)
        for c in range(3):
            # curl_c v = d v_b / dx_a - d v_a / dx_b
            a, b = (c + 1) % 3, (c + 2) % 3
            q = 18 * k * Np + lane
            i, j = q + (3 * b + a) * Np, q + (3 * a + b) * Np
            curl_E = derivative[i] - derivative[j]
            i, j = i + 9 * Np, j + 9 * Np
            curl_H = derivative[i] - derivative[j]
            v = np.uint32(row * size + 6 * lane + c)
            q = (6 * k + c) * Np + lane
            rate[v] = curl_H + lifted[q]
            rate[v + 3] = lifted[q + 3 * Np] - curl_E
        if lane < padding:  # a node that makes Np even
            rate[row * size + 6 * Np + lane] = zero
        cuda.syncthreads()
        p = np.uint32(row * Np + lane)
        while p < words:
            du[block * words + p] = rate[p]
            p = np.uint32(p + threads)

    return assemble_18


# ---------------------------------------------------------- kernels, covariant components


def make_gather_two(shape):
    """Kernel for the upwind flux: two numbers per face node.

    They are those of `make_flux`; entry (k, c, p) is component c at
    face node p of element k.
    """
    Nfp, size = shape.Nfp, 6 * shape.even_Np
    points, flux_at = 4 * Nfp, make_flux(shape)

    @jit
    def gather_two(
        u, data, links, opposite, tangents, face_nodes, geometry,
        boundary, flux
    ):  # fmt: skip
        p = np.uint32(cuda.grid(1))
        k, f = np.uint32(p // points), np.uint32(p // Nfp % 4)
        i = np.uint32(p % Nfp)
        v = np.uint32(k * size + 6 * face_nodes[f * Nfp + i])
        q = np.uint32(2 * k * points + p % points)
        flux[q], flux[q + points] = flux_at(
            k, f, i, u, v, u, data, links, opposite, tangents,
            geometry, boundary)  # fmt: skip

    return gather_two


def make_lift_two(shape, plan):
    """Kernel for LIFT times two numbers per face node.

    The two sums of a face become six numbers behind its lift, along
    dual tangents of that face.
    """
    real = np.dtype(shape.dtype).type
    Np, Nfp, rows = shape.Np, shape.Nfp, plan.rows
    points, geometry_words = 4 * Nfp, shape.geometry
    words, threads, zero = 2 * points * rows, rows * Np, real(0)

    @jit
    def lift_two(flux, matrix, geometry, lifted):
        s = cuda.shared.array(words, real)
        c = cuda.local.array(6, real)
        lane = np.uint32(cuda.threadIdx.x)
        row = np.uint32(cuda.threadIdx.y)
        block = np.uint32(cuda.blockIdx.x)
        p = np.uint32(row * Np + lane)
        while p < words:
            s[p] = flux[block * words + p]
            p = np.uint32(p + threads)
        for x in range(6):
            c[x] = zero
        cuda.syncthreads()
        k = np.uint32(block * rows + row)
        for f in range(4):
            A, B = zero, zero
            j = np.uint32(f * Nfp)
            while j < (f + 1) * Nfp:
                l = matrix[j * Np + lane]
                v = np.uint32(2 * row * points + j)
                A += l * s[v]
                B += l * s[v + points]
                j = np.uint32(j + 1)
            g = np.uint32(k * geometry_words + 6 + 3 * f)
            E1, E2 = (B, -A) if f % 2 else (-B, A)
            H1 = geometry[g + 2] * A - geometry[g + 1] * B
            H2 = geometry[g] * B - geometry[g + 1] * A
            t1, t2 = 1 if f < 2 else 0, 2 if f < 3 else 1
            c[t1] += E1
            c[t2] += E2
            c[3 + t1] += H1
            c[3 + t2] += H2
            if f == 0:
                c[0] -= E1 + E2
                c[3] -= H1 + H2
        for x in range(6):
            lifted[(6 * k + x) * Np + lane] = c[x]

    return lift_two


def make_differentiate_12(shape, plan):
    """Kernel for the derivatives that the curls need, and no others.

    12 products with each column of D: no covariant component is
    differentiated along its own direction. Entries (k, 6 h + q, n) are,
    for h = 0 (E) and 1 (H), d_2 z, d_3 y, d_3 x, d_1 z, d_1 y, d_2 x.
    """
    real = np.dtype(shape.dtype).type
    Np, rows, size = shape.Np, plan.rows, 6 * shape.even_Np
    words, threads, zero = rows * size, rows * Np, real(0)

    @jit
    def differentiate_12(u, matrix, derivative):
        state = cuda.shared.array(words, real)
        d = cuda.local.array(12, real)
        lane = np.uint32(cuda.threadIdx.x)
        row = np.uint32(cuda.threadIdx.y)
        block = np.uint32(cuda.blockIdx.x)
        p = np.uint32(row * Np + lane)
        while p < words:
            state[p] = u[block * words + p]
            p = np.uint32(p + threads)
        for q in range(12):
            d[q] = zero
        cuda.syncthreads()
        m, v = np.uint32(0), np.uint32(row * size)
        while m < Np:
            D1 = matrix[3 * m * Np + lane]
            D2 = matrix[(3 * m + 1) * Np + lane]
            D3 = matrix[(3 * m + 2) * Np + lane]
            for h in range(2):
                x, y = state[v + 3 * h], state[v + 3 * h + 1]
                z = state[v + 3 * h + 2]
                d[6 * h] += D2 * z
                d[6 * h + 1] += D3 * y
                d[6 * h + 2] += D3 * x
                d[6 * h + 3] += D1 * z
                d[6 * h + 4] += D1 * y
                d[6 * h + 5] += D2 * x
            m, v = np.uint32(m + 1), np.uint32(v + 6)
        k = np.uint32(block * rows + row)
        for q in range(12):
            derivative[(12 * k + q) * Np + lane] = d[q]

    return differentiate_12


def make_assemble_12(shape, plan):
    """Kernel for du/dt: curls and lifts, times the element's metric."""
    real = np.dtype(shape.dtype).type
    Np, rows, size = shape.Np, plan.rows, 6 * shape.even_Np
    words, threads, zero = rows * size, rows * Np, real(0)
    geometry_words, padding = shape.geometry, size - 6 * Np

    @jit
    def assemble_12(derivative, lifted, geometry, du):
        rate = cuda.shared.array(words, real)
        lane = np.uint32(cuda.threadIdx.x)
        row = np.uint32(cuda.threadIdx.y)
        block = np.uint32(cuda.blockIdx.x)
        k = np.uint32(block * rows + row)
        g = np.uint32(k * geometry_words)
        g11, g12, g13 = geometry[g], geometry[g + 1], geometry[g + 2]
        g22, g23 = geometry[g + 3], geometry[g + 4]
        g33 = geometry[g + 5]
        for h in range(2):
            # J curl H for E, and -J curl E for H.
            q = (12 * k + 6 * (1 - h)) * Np + lane
            sign = real(1 - 2 * h)
            x = derivative[q] - derivative[q + Np]
            y = derivative[q + 2 * Np] - derivative[q + 3 * Np]
            z = derivative[q + 4 * Np] - derivative[q + 5 * Np]
            q = (6 * k + 3 * h) * Np + lane
            x = sign * x + lifted[q]
            y = sign * y + lifted[q + Np]
            z = sign * z + lifted[q + 2 * Np]
            v = np.uint32(row * size + 6 * lane + 3 * h)
            rate[v] = g11 * x + g12 * y + g13 * z
            rate[v + 1] = g12 * x + g22 * y + g23 * z
            rate[v + 2] = g13 * x + g23 * y + g33 * z
        if lane < padding:  # a node that makes Np even
            rate[row * size + 6 * Np + lane] = zero
        cuda.syncthreads()
        p = np.uint32(row * Np + lane)
        while p < words:
            du[block * words + p] = rate[p]
            p = np.uint32(p + threads)

    return assemble_12


# ------------------------------------------------------------------------------ launches


class SplitLauncher(FusedLauncher):
    """A stage in five kernels, with the fused kernel's arrays; elements in the mesh's order.

    The state stands as for the fused kernel: element by element, node by node, six numbers. What
    the kernels leave for one another stands component by component within an element.

    Parameters
    ----------
    operator : Operator
        With the upwind flux; of vectors in a vacuum only.
    device : Device
    algebra : {"vectors", "covariant"}
        "vectors": E and H along x, y and z, whose curls take 18 products, and six fluxes per face
        node; "covariant": x_i . E and x_i . (Z H), 12 products and two fluxes.

    Raises
    ------
    ValueError
        For another flux or algebra, or vectors in matter or with data on the boundary.
    """

    in_place = True

    def __init__(self, operator: Operator, device: Device, algebra: str) -> None:
        check_choice("algebra", algebra, ALGEBRAS)
        self.algebra = algebra
        if algebra == "vectors" and (has_materials(operator) or operator.sources):
            raise ValueError("operator: vectors take a vacuum whose boundary has no data")
        shape = FusedShape(operator.element.order, operator.lift.dtype.name)
        super().__init__(operator, device, default_plan(shape))
        K = operator.trace.K + SPARE
        Np, points = self.shape.Np, 4 * self.shape.Nfp
        numbers = {"vectors": (6, 18), "covariant": (2, 12)}[algebra]
        self.work = {
            "flux": device.zeros(K * numbers[0] * points, self.real),
            "lifted": device.zeros(K * 6 * Np, self.real),
            "derivative": device.zeros(K * numbers[1] * Np, self.real),
            "du": self.zeros(),
        }
        if algebra == "vectors":
            self.arrays = self.arrays | self._on_device({}, vector_arrays(operator))

    def _order(self) -> np.ndarray:
        return np.arange(self.operator.trace.K)

    def _bases(self, elements: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if self.algebra == "covariant":
            return super()._bases(elements)
        same = np.broadcast_to(np.eye(3), (len(self.order[elements]), 3, 3))
        return same, same

    def _kernel(self, plan: FusedPlan) -> Mapping[str, Kernel]:
        makers = {
            "vectors": (make_gather_six, make_lift_six, make_differentiate_18, make_assemble_18),
            "covariant": (make_gather_two, make_lift_two, make_differentiate_12, make_assemble_12),
        }[self.algebra]
        gather, *others = makers
        names = ("lift", "differentiate", "assemble")
        made = {name: make(self.shape, plan) for name, make in zip(names, others, strict=True)}
        update = lsrk45.make_update(self.real)
        return {"gather": gather(self.shape)} | made | {"update": update}

    def rhs(self, u: Any, data: Any, out: Any) -> None:
        """out = du/dt; `data` are g on the boundary."""
        a, work, plan = self.arrays, self.work, self.plan
        K = self.operator.trace.K
        blocks, block = -(-K // plan.rows), (self.shape.Np, plan.rows)
        points = -(-K * 4 * self.shape.Nfp // THREADS), THREADS
        neighbors = a["links"], a["opposite"]
        if self.algebra == "vectors":
            elements, mirrors = a["elements"], a["mirrors"]
            self.kernel["gather"][points](
                u, *neighbors, a["face_nodes"], elements, mirrors, work["flux"]
            )
            of_lift, of_derivative, of_assembly = (), (elements,), ()
        else:
            named = (a[name] for name in ("tangents", "face_nodes", "geometry", "boundary"))
            self.kernel["gather"][points](u, data, *neighbors, *named, work["flux"])
            of_lift, of_derivative, of_assembly = (a["geometry"],), (), (a["geometry"],)
        self.kernel["lift"][blocks, block](work["flux"], a["lift"], *of_lift, work["lifted"])
        self.kernel["differentiate"][blocks, block](
            u, a["derivative"], *of_derivative, work["derivative"]
        )
        self.kernel["assemble"][blocks, block](
            work["derivative"], work["lifted"], *of_assembly, out
        )

    def stage(self, u: Any, res: Any, new: Any, data: Any, a: float, b: float, dt: float) -> None:
        """res = a res + dt du/dt, new = u + b res; `new` is u."""
        du = self.work["du"]
        self.rhs(u, data, du)
        scalars = (self.real(value) for value in (a, b, dt))
        self.kernel["update"][-(-u.size // THREADS), THREADS](du, res, u, *scalars)


def default_plan(shape: FusedShape) -> FusedPlan:
    """About 256 threads in a block, one node of one element for each: no tiles."""
    return FusedPlan("numba", max(1, THREADS // shape.Np), 1, 1)


def vector_arrays(operator: Operator) -> dict[str, np.ndarray]:
    """What kernels on vectors know of elements, (K, 25), and of boundary faces, (nb, 2).

    dr_r/dx_d, and of each face its normal and Fs; how many of E and of H a boundary mirrors.
    """
    faces = np.concatenate([operator.normals, operator.face_scale[..., None]], axis=2)
    K = operator.trace.K
    elements = np.concatenate([operator.rst_xyz.reshape(K, 9), faces.reshape(K, 16)], axis=1)
    return {"elements": lengthened(elements), "mirrors": np.append(operator.mirrors, 0.0)}
