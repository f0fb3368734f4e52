"""Flux gather: the flux at all face nodes, by pairs (Algorithm 3)."""

import numpy as np

from dgbook.gpu import cuda, jit
from dgbook.maxwell.microblocks import (
    COUNTS,
    END,
    EXTERIOR,
    FETCH_MINUS,
    FETCH_PLUS,
    INTERIOR,
    LIST_MINUS,
    LIST_PLUS,
    LIST_STORE,
    MIRROR,
    NORMAL,
    PAIRS,
    SCALE,
    STORE_MINUS,
    STORE_PLUS,
    UPWINDING,
    Z_MINUS,
    Z_PLUS,
)
from dgbook.maxwell.plan import DESCRIPTOR_INTEGERS, DESCRIPTOR_REALS


@jit(device=True)
def cross(n, i, v, j, result):
    """The cross product n[i:i+3] x v[j:j+3], into result[0:3]."""
    result[0] = n[i + 1] * v[j + 2] - n[i + 2] * v[j + 1]
    result[1] = n[i + 2] * v[j] - n[i] * v[j + 2]
    result[2] = n[i] * v[j + 1] - n[i + 1] * v[j]


def make_gather(shape, places, plan):
    """Kernel for sJ n.(F - F*) at all face nodes of all six fields.

    klockner2009, Algorithm 3. A block of Nfp x w_p threads works for
    M_B microblocks. A row of Nfp threads takes one face pair after
    another, and stores the flux of both sides if both lie in the block.
    Fluxes go to shared memory in any order, and from there to global
    memory in one contiguous piece. The paper has one loop for each of
    three categories of face pairs. They have most steps in common, so
    here one loop treats all pairs; the descriptors are sorted, and a
    pair's place tells its category.

    With the jump D of u, let nH = n x DH and nE = n x DE. The flux is
    sJ / (Z^- + Z^+) times

    minus side  (Z^+ nH - a n x nE, -Z^- (nE + a Z^+ n x nH))
    plus side   (Z^- nH + a n x nE, -Z^+ (nE - a Z^- n x nH))

    Arguments, all flat (dgbook.maxwell.microblocks names their words):

    u (6 n_M N_pM,)        the state; textures in 2009, today plain
                           loads through L1
    data (6 nb Nfp,)       g in u^+ = M u^- + g on the boundary
    counts, integers, reals
                           the descriptors, `places` of them per block
    lists (n Nfp,)         index lists
    flux (6 n_M N_fM,)     written, except for the padding
    """
    real = np.dtype(shape.dtype).type
    Nfp, N_fM, used = shape.Nfp, shape.N_fM, shape.K_M * shape.Nf
    w_p, threads = plan.w_p, plan.w_p * Nfp
    buffer = plan.M_B * N_fM
    integers_size = places * DESCRIPTOR_INTEGERS
    reals_size = places * DESCRIPTOR_REALS

    @jit
    def gather(u, data, counts, integers, reals, lists, flux):
        d = cuda.shared.array(integers_size, np.uint32)
        g = cuda.shared.array(reals_size, real)
        f = cuda.shared.array((6, buffer), real)
        minus = cuda.local.array(6, real)
        jump = cuda.local.array(6, real)
        nH = cuda.local.array(3, real)
        nE = cuda.local.array(3, real)
        nnH = cuda.local.array(3, real)
        nnE = cuda.local.array(3, real)
        x, e = np.uint32(cuda.threadIdx.x), np.uint32(cuda.threadIdx.y)
        block = np.uint32(cuda.blockIdx.x)
        thread = np.uint32(e * Nfp + x)
        size = np.uint32(u.size // 6)
        data_size = np.uint32(data.size // 6)
        interior = counts[block * COUNTS + INTERIOR]
        exterior = counts[block * COUNTS + EXTERIOR]
        pairs = counts[block * COUNTS + PAIRS]

        # Load the descriptors of the block's pairs into shared memory.
        i = thread
        while i < pairs * DESCRIPTOR_INTEGERS:
            d[i] = integers[block * integers_size + i]
            i += threads
        i = thread
        while i < pairs * DESCRIPTOR_REALS:
            g[i] = reals[block * reals_size + i]
            i += threads
        cuda.syncthreads()

        while e < pairs:
            # u^- at this thread's node of the face, and D = u^+ - u^-.
            p, q = e * DESCRIPTOR_INTEGERS, e * DESCRIPTOR_REALS
            i = d[p + FETCH_MINUS] + lists[d[p + LIST_MINUS] * Nfp + x]
            for c in range(6):
                minus[c] = u[c * size + i]
            if e < exterior:
                i = d[p + FETCH_PLUS]
                i += lists[d[p + LIST_PLUS] * Nfp + x]
                for c in range(6):
                    jump[c] = u[c * size + i] - minus[c]
            else:
                i = d[p + FETCH_PLUS] + x
                for c in range(6):
                    plus = g[q + MIRROR + c // 3] * minus[c]
                    jump[c] = plus + data[c * data_size + i] - minus[c]
            # nH = n x DH, nE = n x DE, then n x nH and n x nE.
            cross(g, q + NORMAL, jump, 3, nH)
            cross(g, q + NORMAL, jump, 0, nE)
            cross(g, q + NORMAL, nH, 0, nnH)
            cross(g, q + NORMAL, nE, 0, nnE)
            scale, a = g[q + SCALE], g[q + UPWINDING]
            Zm, Zp = g[q + Z_MINUS], g[q + Z_PLUS]
            # Minus side: (Z^+ nH - a n x nE, -Z^- (nE + a Z^+ n x nH)).
            i = d[p + STORE_MINUS] + x
            for c in range(3):
                f[c, i] = scale * (Zp * nH[c] - a * nnE[c])
                f[c + 3, i] = -scale * Zm * (nE[c] + a * Zp * nnH[c])
            # Plus side, if in this block, in its own order:
            # (Z^- nH + a n x nE, -Z^+ (nE - a Z^- n x nH)).
            if e < interior:
                i = d[p + STORE_PLUS]
                i += lists[d[p + LIST_STORE] * Nfp + x]
                for c in range(3):
                    f[c, i] = scale * (Zm * nH[c] + a * nnE[c])
                    f[c + 3, i] = (
                        -scale * Zp * (nE[c] - a * Zm * nnH[c])
                    )
            e += w_p
        cuda.syncthreads()

        # All fluxes of the block go to global memory in one piece.
        size = np.uint32(flux.size // 6)
        i = thread
        while i < counts[block * COUNTS + END]:
            if i % N_fM < used:
                for c in range(6):
                    flux[c * size + block * buffer + i] = f[c, i]
            i += threads

    return gather
