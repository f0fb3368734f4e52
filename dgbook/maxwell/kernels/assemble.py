"""Operator assembly: curls and lifted fluxes over eps and mu."""

import numpy as np

from dgbook.gpu import cuda, jit


def make_assemble(shape):
    """Kernel for du/dt, from derivatives and lifted fluxes.

    dE/dt = (curl H + lifted) / epsilon
    dH/dt = (-curl E + lifted) / mu

    One thread per node computes all six fields. The differentiation
    kernel has treated the fields one by one, as the paper does; the
    curls combine them, and need 12 of the 18 derivatives.

    Arguments, all flat:

    derivative (18 n_M N_pM,)  entry (field, d, node)
    lifted (6 n_M N_pM,)
    material (n_M K_M 2,)      1/epsilon and 1/mu
    out (6 n_M N_pM,)          written, except for the padding
    """
    Np, K_M, N_pM = shape.Np, shape.K_M, shape.N_pM

    @jit
    def assemble(derivative, lifted, material, out):
        node = np.uint32(
            cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
        )
        size = np.uint32(out.size // 6)
        i = np.uint32(node % N_pM)
        if node < size and i < K_M * Np:
            slot = np.uint32(node // N_pM * K_M + i // Np)
            inverse_epsilon = material[2 * slot]
            inverse_mu = material[2 * slot + 1]
            # For each component: curl plus lifted flux, over eps or mu.
            for c in range(3):
                # curl_c v = d v_b / dx_a - d v_a / dx_b
                a, b = (c + 1) % 3, (c + 2) % 3
                j = (3 * b + a) * size + node
                k = (3 * a + b) * size + node
                curl_E = derivative[j] - derivative[k]
                j, k = j + 9 * size, k + 9 * size
                curl_H = derivative[j] - derivative[k]
                i = c * size + node
                j = i + 3 * size
                out[i] = inverse_epsilon * (lifted[i] + curl_H)
                out[j] = inverse_mu * (lifted[j] - curl_E)

    return assemble
