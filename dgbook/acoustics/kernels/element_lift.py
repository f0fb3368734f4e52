"""The nodal lift kernel with one thread per element."""

import numpy as np

from dgbook.gpu import cuda, jit


def make_element_lift(shape, plan):
    """Kernel that adds the lifted fluxes, one thread per element.

    A matrix product, blocked as in `make_element_volume`: K_S threads
    load a sub-block of LIFT, `rows` by `columns`, into shared memory,
    and each applies it to its element, one value of each field at a
    time.

    Arguments, all flat:

    flux (4 4Nfp K,)   the output of `make_element_flux`
    lift (4 Nfp rows,) LIFT, column by column; zeros fill the columns up
                       to whole blocks of rows
    out (4 Np K,)      du/dt, to which the kernel adds
    """
    real = np.dtype(shape.dtype).type
    Np, Nf, T, rows = shape.Np, shape.Nf, plan.K_S, plan.rows_S
    columns, padded = plan.columns, -(-Np // rows) * rows
    entries = columns * rows

    @jit
    def element_lift(flux, lift, out):
        L = cuda.shared.array(entries, real, alignment=16)
        du = cuda.local.array((rows, 4), real)
        x = np.uint32(cuda.threadIdx.x)
        size = np.uint32(out.size // 4)
        values = np.uint32(flux.size // 4)
        K = np.uint32(values // Nf)
        element = np.uint32(cuda.blockIdx.x * T + x)
        # Spare threads of the last block repeat the last element.
        k = np.uint32(min(element, K - 1))
        row = np.uint32(cuda.blockIdx.y * rows)
        while row < Np:
            for r in range(rows):
                for c in range(4):
                    du[r, c] = real(0)
            first = np.uint32(0)
            while first < Nf:
                # Load a sub-block of LIFT into shared memory.
                cuda.syncthreads()
                i = x
                while i < entries:
                    m = np.uint32(first + i // rows)
                    if m < Nf:
                        L[i] = lift[m * padded + row + i % rows]
                    i = np.uint32(i + T)
                cuda.syncthreads()
                # Each of its columns times one value of each field.
                m = np.uint32(0)
                while m < columns and first + m < Nf:
                    i = np.uint32((first + m) * K + k)
                    q = np.uint32(rows * m)
                    for c in range(4):
                        v = flux[np.uint32(c * values + i)]
                        for r in range(rows):
                            du[r, c] += L[q + r] * v
                    m = np.uint32(m + 1)
                first = np.uint32(first + columns)
            # Add the sums to du/dt.
            for r in range(rows):
                if element < K and row + r < Np:
                    i = np.uint32((row + r) * K + k)
                    for c in range(4):
                        out[c * size + i] += du[r, c]
            row = np.uint32(row + cuda.gridDim.y * rows)

    return element_lift
