"""The lift of a Bernstein basis by one thread per face and number."""

import numpy as np

from dgbook.gpu import jit


def make_lift_to_face(shape):
    """Device function for slice 0: L_0 (chan2015, section 3.1.2).

    For control points times b!, where b is their multi-index, and
    without its factor 1/2, which the derivatives lack, too, it is

        sum_j (b_j + 1)^2 y_b
        + sum_k b_k^2 sum_{j != k} y_{b + e_j - e_k}.
    """
    real, N = np.dtype(shape.dtype).type, shape.order

    @jit(device=True)
    def lift_to_face(y, Y, s, S):
        # Slice 0, from six neighbors on the face; the first is y[Y].
        j = 0
        for r in range(N + 1):
            length = N + 1 - r
            for q in range(length):
                b0, b1, b2 = N - q - r, q, r
                squares = b0 * b0 + b1 * b1 + b2 * b2 + 2 * N + 3
                x = real(squares) * y[Y + j]
                up, down = Y + j + length, Y + j - length - 1
                if b0 > 0:
                    x += real(b0 * b0) * (y[Y + j + 1] + y[up])
                if b1 > 0:
                    x += real(b1 * b1) * (y[Y + j - 1] + y[up - 1])
                if b2 > 0:
                    x += real(b2 * b2) * (y[down] + y[down + 1])
                s[S + j] = x
                j += 1

    return lift_to_face


def make_sweep_face(shape):
    """Device function for the other slices, each from the one before.

    A point takes three entries (chan2015, Algorithm 1). For control
    points times b!, slice i + 1 is
    s_b = -(i + 1) / (i + 2) sum_j s_{b + e_j}.
    """
    real = np.dtype(shape.dtype).type
    N, Nfp = shape.order, shape.Nfp

    @jit(device=True)
    def sweep_face(s, S):
        # Slice by slice, each from the one before.
        old, new = S, S + Nfp
        for i in range(N):
            ratio = -real(i + 1) / real(i + 2)
            for r in range(N - i):
                length = N + 1 - i - r
                for q in range(length - 1):
                    x = s[old + q] + s[old + q + 1]
                    s[new] = ratio * (x + s[old + q + length])
                    new += 1
                old += length
            old += 1  # the last row, of one point

    return sweep_face


def make_lift_face(shape):
    """Device function for the lift of one number from one face.

    From control points of the face times b!, it computes all slices,
    which are control points of the tetrahedron times a!. No other
    thread accesses them meanwhile, so that it needs no barrier. A slice
    of degree n has rows of n + 1, n, ..., 1 points.
    """
    lift_to_face = make_lift_to_face(shape)
    sweep_face = make_sweep_face(shape)

    @jit(device=True)
    def lift_face(y, Y, s, S):
        lift_to_face(y, Y, s, S)
        sweep_face(s, S)

    return lift_face
