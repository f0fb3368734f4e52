"""Elements on processor cores: their integrals, the elimination of u, and the blocks they add.

It is what `local` says in NumPy, with vectors of elements (`nodal.lanes`). What a problem knows,
its fluxes and their derivatives at points, comes from its own functions of NumPy: of all work that
is the smallest part. Kernels integrate and eliminate.

**Fewer products.** All columns of a tangent at a quadrature point follow from u there, from the
trace, and from the parts of q along each g_h, which are (Q_h z) at the point. So what multiplies u
and each of these parts is integrated first, as a small matrix of nodes, (Np, Np) in the volume and
(Nfp, Nfp) on a face, since the basis of a face is that of its nodes. One product with all Q_h then
makes the columns of z. `local` integrates each of the Nz columns instead.

**Elimination.** With K = [K_uu K_uh R_u; K_hu K_hh R_h] the first n_c Np steps of Gauss's algorithm
leave H and the right-hand side where K_hh and R_h were, and the way back makes the response of u of
the upper rows. Four steps at a time go through the rest of the matrix. Each lane has its own
pivots, the largest numbers of its columns of K_uu, as LAPACK would choose them.
"""

from __future__ import annotations

import sys
from typing import Any

import numba
import numpy as np

from dgbook.hdg import local
from dgbook.hdg.discretization import Discretization
from dgbook.nodal.cores import Sources, aligned
from dgbook.nodal.lanes import (
    by_rows,
    lanes,
    load,
    product,
    product_of_two,
    rows_together,
    store,
)

# ------------------------------------------------------------------------------- small systems


@numba.njit
def _take_one(a, ld, L, p, first, last, begin, end):
    """a[i, j] -= a[i, p] a[p, j] for rows i and columns j from one to another."""
    for i in range(first, last):
        f = load(a, (i * ld + p) * L)
        for j in range(begin, end):
            at = (i * ld + j) * L
            store(a, at, load(a, at) - f * load(a, (p * ld + j) * L))


@numba.njit
def _take_four(a, ld, L, p, first, last, begin, end):
    """The same with the columns and rows p to p + 3; two rows i at a time."""
    line = ld * L
    for i in range(first, last - 1, 2):
        x, y = i * line, (i + 1) * line
        x0, y0 = load(a, x + p * L), load(a, y + p * L)
        x1, y1 = load(a, x + (p + 1) * L), load(a, y + (p + 1) * L)
        x2, y2 = load(a, x + (p + 2) * L), load(a, y + (p + 2) * L)
        x3, y3 = load(a, x + (p + 3) * L), load(a, y + (p + 3) * L)
        for at in range(begin * L, end * L, L):
            u = p * line + at
            u0, u1 = load(a, u), load(a, u + line)
            u2, u3 = load(a, u + 2 * line), load(a, u + 3 * line)
            store(a, x + at, load(a, x + at) - x0 * u0 - x1 * u1 - x2 * u2 - x3 * u3)
            store(a, y + at, load(a, y + at) - y0 * u0 - y1 * u1 - y2 * u2 - y3 * u3)
    if (last - first) % 2:
        for k in range(4):
            _take_one(a, ld, L, p + k, last - 1, last, begin, end)


@numba.njit
def _pivot(a, ld, L, p, most, start):
    """Bring the largest number of column p to row p, in each lane; whether there is one.

    Rows from p to `most` are looked at and exchanged from column `start` on.
    """
    found = True
    for lane in range(L):
        best, row = abs(a[(p * ld + p) * L + lane]), p
        for i in range(p + 1, most):
            size = abs(a[(i * ld + p) * L + lane])
            if size > best:
                best, row = size, i
        if not (best > 0.0 and best < np.inf):
            found = False
        if row != p:
            for j in range(start, ld):
                x, y = (p * ld + j) * L + lane, (row * ld + j) * L + lane
                a[x], a[y] = a[y], a[x]
    return found


@numba.njit
def _eliminate(a, rows, ld, n, L):
    """The first n steps of Gauss's algorithm for matrices of vectors (rows, ld), with n pivots.

    Pivots are looked for in the first n rows. False where there is none.
    """
    found, p = True, 0
    while p < n:
        width = 4 if (n - p) % 4 == 0 else 1
        for k in range(p, p + width):
            found = _pivot(a, ld, L, k, n, p) and found
            inverse = 1.0 / load(a, (k * ld + k) * L)
            for i in range(k + 1, rows):
                at = (i * ld + k) * L
                store(a, at, load(a, at) * inverse)
            _take_one(a, ld, L, k, k + 1, rows, k + 1, p + width)
        for k in range(p, p + width - 1):
            _take_one(a, ld, L, k, k + 1, p + width, p + width, ld)
        if width == 4:
            _take_four(a, ld, L, p, p + 4, rows, p + 4, ld)
        else:
            _take_one(a, ld, L, p, p + 1, rows, p + 1, ld)
        p += width
    return found


@numba.njit
def _way_back(a, ld, n, L):
    """Solve with the triangle that `_eliminate` left in the first n rows and columns."""
    p = n
    while p > 0:
        width = 4 if p >= 4 else 1
        p -= width
        for k in range(p + width - 1, p - 1, -1):
            inverse = 1.0 / load(a, (k * ld + k) * L)
            for j in range(n, ld):
                at = (k * ld + j) * L
                store(a, at, load(a, at) * inverse)
            _take_one(a, ld, L, k, p, k, n, ld)
        if width == 4:
            _take_four(a, ld, L, p, 0, p, n, ld)
        else:
            _take_one(a, ld, L, p, 0, p, n, ld)


@numba.njit(parallel=True, cache=True)
def _invert_patches(sources, values, members, slots, share, L, works, own, result):
    """What `preconditioner.schwarz` adds to blocks of two faces, and in `own` to those of one.

    False where the matrix of an element is singular.
    """
    count, n = members.shape
    m, bad = values.shape[2], 0
    size = n * m
    ld = 2 * size
    for group in numba.prange(-(-count // L)):
        a = works[numba.get_thread_id()]
        for lane in range(L):
            k = min(group * L + lane, count - 1)
            for i in range(n):
                for j in range(n):
                    for r in range(m):
                        line = (i * m + r) * ld
                        for c in range(m):
                            value = values[members[k, i], slots[k, i, j], r, c]
                            a[(line + j * m + c) * L + lane] = value
                            unit = 1.0 if i == j and r == c else 0.0
                            a[(line + size + j * m + c) * L + lane] = unit
        if not _eliminate(a, size, ld, size, L):
            bad += 1
        _way_back(a, ld, size, L)
        for lane in range(min(L, count - group * L)):
            k = group * L + lane
            for i in range(n):
                factor, face = share[members[k, i]], members[k, i]
                for j in range(n):
                    for r in range(m):
                        line = (i * m + r) * ld + size + j * m
                        for c in range(m):
                            value = factor * a[(line + c) * L + lane]
                            if i == j:
                                own[k, i, r, c] = value
                            else:
                                result[face, slots[k, i, j], r, c] = value
    return bad == 0


# ------------------------------------------------------------------------------------- integrals


@numba.njit
def _clear(a, first, size):
    """Zeros."""
    a[first : first + size] = 0.0


@numba.njit
def _integrals(sizes, tables, constant, work, along, G, to, between):
    """The integrals of -(d phi_i / d r_a) phi_l times numbers at the points, summed over a.

    They are (Np, Np), row i at `to` + i `between`. Numbers that are the same at all points stand at
    one of them.
    """
    dim, Np, Nq, L, rows = sizes[0], sizes[2], sizes[4], sizes[6], sizes[7]
    slopes, phi, masses = tables[0], tables[1], tables[2]
    if constant:
        for i in range(Np):
            for l in range(Np):
                total = masses[i * Np + l] * load(work, along)
                for d in range(1, dim):
                    entry = masses[(d * Np + i) * Np + l]
                    total = total + entry * load(work, along + d * Nq * L)
                store(work, to + i * between + l * L, total)
        return
    for i in range(Np):
        half = G + i % 2 * Nq * L
        for q in range(Nq):
            total = slopes[i * Nq + q] * load(work, along + q * L)
            for d in range(1, dim):
                entry = slopes[(d * Np + i) * Nq + q]
                total = total + entry * load(work, along + (d * Nq + q) * L)
            store(work, half + q * L, total)
        if i % 2:
            product_of_two(rows, Np, Nq, phi, 0, work, G, Nq * L, work, to + (i - 1) * between,
                           between, False)  # fmt: skip
        elif i == Np - 1:
            product(rows, Np, Nq, phi, 0, work, G, work, to + i * between, False)


@numba.njit
def _volume(a, first, sizes, tables, geometry, values, work, begin):
    """Rows of R_u of a group of elements and their derivatives, without what the faces add."""
    dim, n, Np, Nfp, Nq, _, L, rows, outer, _, count = sizes
    _, _, _, Q_u, Q_h, tested = tables[:6]
    jacobian, rx = geometry[0], geometry[1]
    by_u, by_q, f, source = values
    outside = (dim + 1) * Nfp
    nu, ld = n * Np, n * (Np + outside) + 1
    # What multiplies along each g_d; G for two rows; integrals of u and of parts of q; a column.
    along = begin
    G = along + (dim + 1) * Nq * L
    M = G + 2 * Nq * L
    parts = M + Np * Np * L
    column = parts + dim * Np * Np * L
    for c in range(n):
        for lane in range(L):
            k = min(first + lane, count - 1)
            for q in range(Nq):
                for d in range(dim):
                    total = 0.0
                    for e in range(dim):
                        total += rx[d, e, k] * f[c, e, k, q]
                    work[along + (d * Nq + q) * L + lane] = jacobian[k] * total
                work[along + (dim * Nq + q) * L + lane] = jacobian[k] * source[c, k, q]
        product(rows, Np, (dim + 1) * Nq, tested, 0, work, along, work, column, False)
        for i in range(Np):
            store(a, ((c * Np + i) * ld + ld - 1) * L, load(work, column + i * L))
        for b in range(n):
            any_part = False
            for t in range(dim + 1):
                some = False
                points = by_q.shape[5] if t else by_u.shape[4]
                for lane in range(L):
                    k = min(first + lane, count - 1)
                    same = min(k, (by_q.shape[4] if t else by_u.shape[3]) - 1)
                    for q in range(points):
                        for d in range(dim):
                            total = 0.0
                            for e in range(dim):
                                part = 0.0
                                if t == 0:
                                    part = by_u[c, e, b, same, q]
                                else:
                                    for o in range(dim):
                                        part += rx[t - 1, o, k] * by_q[c, e, b, o, same, q]
                                total += rx[d, e, k] * part
                            some = some or total != 0.0
                            work[along + (d * Nq + q) * L + lane] = jacobian[k] * total
                any_part = any_part or (some and t > 0)
                to, between = M, Np * L
                if t:
                    to, between = parts + (t - 1) * Np * L, dim * Np * L
                if some:
                    _integrals(sizes, tables, points == 1, work, along, G, to, between)
                else:
                    for i in range(Np):
                        _clear(work, to + i * between, Np * L)
            at_u, at_h = (c * Np * ld + b * Np) * L, (c * Np * ld + nu + b * outside) * L
            width, line = dim * Np, ld * L
            for i in range(Np):
                for l in range(0, Np * L, L):
                    store(a, at_u + i * line + l, load(work, M + i * Np * L + l))
                if not any_part:
                    _clear(a, at_h + i * line, outside * L)
            if not any_part:
                continue
            for i in range(0, Np - 1, 2):
                x, row = parts + i * width * L, i * line
                product_of_two(
                    rows, Np, width, Q_u, 0, work, x, width * L, a, at_u + row, line, True
                )
                product_of_two(
                    outer, outside, width, Q_h, 0, work, x, width * L, a, at_h + row, line, False
                )
            if Np % 2:
                x, row = parts + (Np - 1) * width * L, (Np - 1) * line
                product(rows, Np, width, Q_u, 0, work, x, a, at_u + row, True)
                product(outer, outside, width, Q_h, 0, work, x, a, at_h + row, False)


@numba.njit
def _face_matrix(face, sizes, tables, work, D, M, X):
    """The integrals of psi_j times a part of what flows through a face, as columns of z.

    `D` is where the numbers at the points begin that multiply the trace, u, and the parts of q;
    `X` where (Nfp, Nz) vectors go.
    """
    dim, _, Np, Nfp, _, Nqf, L, rows, outer, facing, _ = sizes
    psi, Q_u, Q_h, nodes = tables[6], tables[7], tables[8], tables[10]
    outside = (dim + 1) * Nfp
    Nz, points, width = Np + outside, Nqf * L, dim * Nfp
    _clear(work, X, Nfp * Nz * L)
    any_part = False
    for t in range(2 + dim):
        some = False
        for i in range(D + t * points, D + (t + 1) * points):
            some = some or work[i] != 0.0
        any_part = any_part or (some and t > 1)
        for j in range(Nfp):
            line = X + j * Nz * L
            to = line + (Np + face * Nfp) * L if t == 0 else M + (j * dim + max(0, t - 2)) * Nfp * L
            if some:
                of, x = j * Nfp * Nqf, D + t * points
                product(facing, Nfp, Nqf, psi, of, work, x, work, to, False)
            else:
                _clear(work, to, Nfp * L)
            if t == 1:
                for l in range(Nfp):
                    store(work, line + nodes[face, l] * L, load(work, to + l * L))
    if any_part:
        for j in range(Nfp):
            x, line = M + j * width * L, X + j * Nz * L
            product(rows, Np, width, Q_u, face * Np * width, work, x, work, line, True)
            of, line = face * outside * width, line + Np * L
            product(outer, outside, width, Q_h, of, work, x, work, line, True)


@numba.njit
def _face(a, face, first, sizes, tables, geometry, values, conditions, work, begin):
    """What a face adds to rows of R_u of a group of elements, and its rows of R_h."""
    dim, n, Np, Nfp, _, Nqf, L, _, _, facing, count = sizes
    weights, nodes, tested = tables[9], tables[10], tables[11]
    rx, normals, face_jacobian = geometry[1], geometry[2], geometry[3]
    by_u, by_q, S, dS, jump, trace, hhat = values
    numbers, P, Q, data = conditions
    outside = (dim + 1) * Nfp
    nu, ld, Nz = n * Np, n * (Np + outside) + 1, Np + outside
    points, terms = Nqf * L, (2 + dim) * Nqf * L
    # What multiplies the trace, u and parts of q: of hhat and of b. Integrals. The fluxes.
    D = begin
    E = D + n * n * terms
    M = E + n * n * terms
    X = M + Nfp * dim * Nfp * L
    flux = X + Nfp * Nz * L
    column = flux + 2 * n * points

    boundary = False
    for lane in range(L):
        k = min(first + lane, count - 1)
        boundary = boundary or numbers[k, face] >= 0
        same_u, same_q = min(k, by_u.shape[4] - 1), min(k, by_q.shape[5] - 1)
        for q in range(Nqf):
            at_u, at_q = min(q, by_u.shape[5] - 1), min(q, by_q.shape[6] - 1)
            w = face_jacobian[face, k] * weights[q]
            here = q * L + lane
            for c in range(n):
                work[flux + c * points + here] = w * hhat[face, c, k, q]
                work[flux + (n + c) * points + here] = -w * hhat[face, c, k, q]
                for b in range(n):
                    to = D + (c * n + b) * terms + here
                    A = 0.0
                    for e in range(dim):
                        A += normals[face, e, k] * by_u[face, c, e, b, same_u, at_u]
                    if dS.size:
                        A += dS[face, c, b, k, q] * jump[face, c, k, q]
                    work[to + points] = 0.0
                    if b == c:
                        A -= S[face, c, k, q]
                        work[to + points] = w * S[face, c, k, q]
                    work[to] = w * A
                    for h in range(dim):
                        total = 0.0
                        for e in range(dim):
                            part = 0.0
                            for o in range(dim):
                                part += rx[h, o, k] * by_q[face, c, e, b, o, same_q, at_q]
                            total += normals[face, e, k] * part
                        work[to + (2 + h) * points] = w * total
    if boundary:
        for i in range(E, E + n * n * terms):
            work[i] = -work[i - n * n * terms]
        for lane in range(L):
            k = min(first + lane, count - 1)
            bc = numbers[k, face]
            if bc < 0:
                continue
            for q in range(Nqf):
                w = face_jacobian[face, k] * weights[q]
                here = q * L + lane
                for c in range(n):
                    total = data[c, bc, q]
                    for b in range(n):
                        total += P[c, b, bc, q] * hhat[face, b, k, q]
                        total += Q[c, b, bc, q] * trace[face, b, k, q]
                        for t in range(2 + dim):
                            part = 0.0
                            for e in range(n):
                                at = D + (e * n + b) * terms + t * points + here
                                part += P[c, e, bc, q] * work[at]
                            work[E + (c * n + b) * terms + t * points + here] = part
                        work[E + (c * n + b) * terms + here] += w * Q[c, b, bc, q]
                    work[flux + (n + c) * points + here] = w * total

    for c in range(n):
        row_h = nu + c * outside + face * Nfp
        for b in range(n):
            # First for hhat, then for b where that is not -hhat.
            for turn in range(1 + boundary):
                _face_matrix(
                    face, sizes, tables, work, D + (turn * n * n + c * n + b) * terms, M, X
                )
                sign = 1.0 if turn else -1.0
                for j in range(Nfp):
                    x = X + j * Nz * L
                    upper, lower = (c * Np + nodes[face, j]) * ld, (row_h + j) * ld
                    for l in range(Nz):
                        at = b * Np + l if l < Np else nu + b * outside + l - Np
                        value = load(work, x + l * L)
                        if turn == 0:
                            to = (upper + at) * L
                            store(a, to, load(a, to) + value)
                        store(a, (lower + at) * L, sign * value)
        for turn in range(2):
            x = flux + (turn * n + c) * points
            product(facing, Nfp, Nqf, tested, 0, work, x, work, column, False)
            for j in range(Nfp):
                value = load(work, column + j * L)
                to = ((c * Np + nodes[face, j]) * ld + ld - 1) * L
                if turn == 0:
                    store(a, to, load(a, to) + value)
                else:
                    store(a, ((row_h + j) * ld + ld - 1) * L, value)


@numba.njit(parallel=True, cache=True)
def _condense(
    sources, sizes, tables, geometry, inside, faces, conditions, works, H, rhs, response, offset
):
    """Some elements after the elimination of u, see `local.Condensed`; False if one is singular."""
    dim, n, Np, Nfp, L, count = sizes[0], sizes[1], sizes[2], sizes[3], sizes[6], sizes[10]
    nu, nt = n * Np, n * (dim + 1) * Nfp
    ld, bad = nu + nt + 1, 0
    for group in numba.prange(-(-count // L)):
        work = works[numba.get_thread_id()]
        a, begin, first = work, (nu + nt) * ld * L, group * L
        _volume(a, first, sizes, tables, geometry, inside, work, begin)
        for face in range(dim + 1):
            _face(a, face, first, sizes, tables, geometry, faces, conditions, work, begin)
        if not _eliminate(a, nu + nt, ld, nu, L):
            bad += 1
        _way_back(a, ld, nu, L)
        for lane in range(min(L, count - first)):
            k = first + lane
            for i in range(nu):
                for j in range(nt):
                    response[k, i, j] = a[(i * ld + nu + j) * L + lane]
                offset[k, i] = a[(i * ld + ld - 1) * L + lane]
            for i in range(nt):
                for j in range(nt):
                    H[k, i, j] = a[((nu + i) * ld + nu + j) * L + lane]
                rhs[k, i] = -a[((nu + i) * ld + ld - 1) * L + lane]
    return bad == 0


# ----------------------------------------------------------------------------------------- systems


@numba.njit(parallel=True, cache=True)
def _add(sources, n, side, numbers, second, to_element, slots, given, known, H, parts, rhs, values):
    """Add some elements' shares of the faces of which they are the first, or the second side.

    No two of them add to the same block then. `known` is what given traces change by.
    """
    count, sides, Nfp = to_element.shape
    outside = sides * Nfp
    for k in numba.prange(count):
        for f in range(sides):
            if second[k, f] != side:
                continue
            face = numbers[k, f]
            for c in range(n):
                for i in range(Nfp):
                    row, mine = c * outside + f * Nfp + to_element[k, f, i], c * Nfp + i
                    total = parts[k, row]
                    for j in range(n * outside):
                        total -= H[k, row, j] * known[k, j]
                    rhs[face, mine] += total
                    for g in range(sides):
                        if given[numbers[k, g]]:
                            continue
                        slot = slots[k, f, g]
                        for b in range(n):
                            for j in range(Nfp):
                                column = b * outside + g * Nfp + to_element[k, g, j]
                                values[face, slot, mine, b * Nfp + j] += H[k, row, column]


@numba.njit(parallel=True, cache=True)
def _respond(sources, response, offset, change, du):
    """du = -(offset + response times the change of the trace), (count, n_c Np)."""
    count, rows, columns = response.shape
    for k in numba.prange(count):
        for i in range(rows):
            total = offset[k, i]
            for j in range(columns):
                total += response[k, i, j] * change[k, j]
            du[k, i] = -total


SOURCES = Sources(sys.modules[__name__])
NUMBERS = 2**22
"""Of the largest array of a stack of elements, at most."""


def works(size: int) -> np.ndarray:
    """Working memory for so many numbers of each thread, each from a line of the cache on."""
    size = -(-size // 8) * 8
    threads = numba.get_num_threads()
    return aligned(threads * size, float).reshape(threads, size)


def schwarz_inverses(
    values: np.ndarray, members: np.ndarray, slots: np.ndarray, share: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Blocks of `preconditioner.schwarz`, computed in float64.

    Parameters
    ----------
    values : (faces, nb, m, m) array
    members : (K, n) array
        The faces of each element.
    slots : (K, n, n) array
        ``[k, i, j]``: which block in the row of face i of the element belongs to face j.
    share : (faces,) array
        By which a face's rows are multiplied.

    Returns
    -------
    own : (K, n, m, m) array
        What each element adds to the block of a face with itself.
    result : (faces, nb, m, m) array
        All other blocks.

    Raises
    ------
    numpy.linalg.LinAlgError
        If an element's matrix is singular.
    """
    (K, n), m, L = members.shape, values.shape[2], lanes(float)
    own, result = np.empty((K, n, m, m), values.dtype), np.zeros_like(values)
    room = works(2 * (n * m) ** 2 * L)
    if not _invert_patches(SOURCES, values, members, slots, share, L, room, own, result):
        raise np.linalg.LinAlgError("Singular matrix")
    return own, result


def respond(response: np.ndarray, offset: np.ndarray, change: np.ndarray) -> np.ndarray:
    """The change of u, (k, n_c Np), where the trace of k elements changes, (k, n_c nf Nfp)."""
    du = np.empty_like(offset)
    _respond(SOURCES, response, offset, np.ascontiguousarray(change), du)
    return du


def stack_size(d: Discretization) -> int:
    """Elements that are taken together: as many as fit near the caches, and some for each core."""
    dim, points = d.mesh.dim, len(d.tables.volume.weights)
    largest = max((d.m * (dim + 1)) ** 2, (d.n_c * dim) ** 2 * points)
    return max(16 * lanes(float), NUMBERS // largest)


class Elements:
    """The elements of a discretization on processor cores.

    Parameters
    ----------
    d : Discretization
        Of the host.
    """

    def __init__(self, d: Discretization) -> None:
        self.d, self.L = d, lanes(float)
        dim, Np, Nfp, tables = d.mesh.dim, d.element.Np, d.element.Nfp, d.tables
        nodes, volume, face = d.element.face_nodes, tables.volume, tables.faces[0]
        outside, Nq, Nqf = (dim + 1) * Nfp, len(volume.weights), len(face.weights)
        self.rows = rows_together(Np), rows_together(outside), rows_together(Nfp)
        self.sizes = dim, d.n_c, Np, Nfp, Nq, Nqf, self.L
        phi, slopes = volume.value[:, :Np], -volume.weights[:, None] * tables.dphi
        psi = face.trace[:, Np : Np + Nfp]
        Q = tables.gradient  # (dim, Np, Nz)
        tested = np.concatenate([*slopes, -volume.weights[:, None] * phi]).T
        weighted = psi.T[:, None] * psi.T  # (j, l, q)
        of_faces = [Q[:, nodes[f]].reshape(dim * Nfp, -1).T for f in range(dim + 1)]
        self.tables = (
            np.ascontiguousarray(slopes.transpose(0, 2, 1)).ravel(),
            by_rows(phi.T),
            (slopes.transpose(0, 2, 1) @ phi).ravel(),
            by_rows(Q.reshape(dim * Np, -1).T[:Np]),
            by_rows(Q.reshape(dim * Np, -1).T[Np:]),
            by_rows(tested),
            np.concatenate([by_rows(part) for part in weighted]),
            np.concatenate([by_rows(part[:Np]) for part in of_faces]),
            np.concatenate([by_rows(part[Np:]) for part in of_faces]),
            face.weights,
            np.ascontiguousarray(nodes, np.int64),
            by_rows(psi.T),
        )
        Nz, n = Np + outside, d.n_c
        inner = (dim + 3) * Nq + (dim + 1) * Np * Np + Np
        outer = 2 * n * n * (2 + dim) * Nqf + Nfp * (dim * Nfp + Nz + 1) + 2 * n * Nqf
        self.room = (n * Nz * (n * Nz + 1) + max(inner, outer)) * self.L

    def linearize(
        self, state: local.State, jump: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """``values``, ``rhs``, ``response`` and ``offset`` of a `System` at a state.

        Parameters
        ----------
        state : State
        jump : (faces, m) array
            What given traces have to change by; zero elsewhere. Their columns are zero.

        Raises
        ------
        numpy.linalg.LinAlgError
            If u cannot be eliminated from an element.
        """
        d, faces = self.d, self.d.faces
        K, n = d.mesh.K, d.n_c
        nu, nt = n * d.element.Np, n * (d.mesh.dim + 1) * d.element.Nfp
        values = np.zeros((*faces.columns.shape, d.m, d.m))
        rhs, response, offset = np.zeros(jump.shape), np.empty((K, nu, nt)), np.empty((K, nu))
        size = min(K, stack_size(d))
        room, H, parts = works(self.room), np.empty((size, nt, nt)), np.empty((size, nt))
        for first in range(0, K, size):
            some = slice(first, min(first + size, K))
            count = some.stop - first
            answers = H[:count], parts[:count], response[some], offset[some]
            self._condense(state, some, room, answers)
            known = local.local_traces(d, jump, some).transpose(1, 0, 2).reshape(count, nt)
            seen = faces.numbers[some], faces.second[some], faces.to_element[some]
            seen = (*map(np.ascontiguousarray, (*seen, faces.slots[some])), d.given)
            for side in (False, True):
                _add(SOURCES, n, side, *seen, known, *answers[:2], rhs, values)
        return values, rhs, response, offset

    def _condense(self, state: Any, some: slice, room: np.ndarray, answers: tuple) -> None:
        """Eliminate u from some elements, with what the problem knows at their points."""
        d = self.d
        z = local.local_unknowns(d, state, some)
        volume = d.tables.volume
        u = z @ volume.value.T
        q = local.gradient_at(d, z, volume.gradient, some)
        a = d.coefficients[:, some]
        inside = (*d.problem.flux_derivatives(u, q, a), d.problem.flux(u, q, a), d.source[:, some])
        sides = [_at_face(d, z, f, some) for f in range(len(d.tables.faces))]
        sides = [np.stack(parts) for parts in zip(*sides, strict=True)]
        conditions = d.boundary_number[some], d.conditions.flux, d.conditions.trace
        geometry = d.jacobian[some], d.rx[..., some], d.normals[..., some]
        done = _condense(
            SOURCES,
            (*self.sizes, *self.rows, len(answers[0])),
            self.tables,
            _c_order(*geometry, d.face_jacobian[:, some]),
            _c_order(*inside),
            _c_order(*sides),
            _c_order(*conditions, d.conditions.data),
            room,
            *answers,
        )
        if not done:
            raise np.linalg.LinAlgError("Singular matrix")


def _at_face(d: Discretization, z: np.ndarray, face: int, some: slice) -> tuple[np.ndarray, ...]:
    """What the problem knows at the points of a face."""
    at, problem = local.on_face(d, z, face, some), d.problem
    S = problem.stabilization(at.trace, at.normal, at.a)
    dS = problem.stabilization_derivative(at.trace, at.normal, at.a)
    dS = np.empty((0, 0, 0, 0)) if dS is None else dS
    jump = at.u - at.trace
    hhat = (problem.flux(at.trace, at.q, at.a) * at.normal).sum(axis=1) + S * jump
    S = np.broadcast_to(S, jump.shape)
    return (*problem.flux_derivatives(at.trace, at.q, at.a), S, dS, jump, at.trace, hhat)


def _c_order(*arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    return tuple(map(np.ascontiguousarray, arrays))
