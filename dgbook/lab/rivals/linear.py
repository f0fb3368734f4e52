"""A stage as dense matrix products and array expressions: what one would write without a kernel."""

from __future__ import annotations

from typing import Any

from dgbook.linear.launch import Launcher
from dgbook.time import lsrk45


def stage(launcher: Launcher, u: Any, res: Any, number: int, dt: float) -> None:
    """res = A_s res + dt du/dt, u += B_s res, by the array library's own operations.

    On a GPU the products with D and LIFT are calls of cuBLAS, and each expression is a kernel of
    CuPy's that passes over memory once: the rival that a kernel of one's own must beat.

    Parameters
    ----------
    launcher : Launcher
        Whose arrays are used, and whose device.
    u, res : (n, (K + ghosts) Np) arrays of the device
        Changed in place, but for the ghosts.
    number : int
        The stage s, 0 to 4.
    dt : float
    """
    a, shape, K = launcher.arrays, launcher.shape, launcher.operator.mesh.K
    dim, n, Np, Nfp, nodes = shape.dim, shape.n, shape.Np, shape.Nfp, launcher.nodes
    derivative = a["derivative"].reshape(dim, Np, Np)
    speeds = a["speeds"].reshape(K, dim, n, n)
    face_matrix = a["face_matrix"].reshape(K, dim + 1, n, n)
    lift = a["lift"].reshape(-1, Np)

    state = u[:, :nodes].reshape(-1, Np)
    du_dr = [(state @ D).reshape(n, K, Np) for D in derivative]
    interior = state[:, a["interior"]].reshape(n, K, dim + 1, Nfp)
    jump = interior - u[:, a["exterior"]].reshape(interior.shape)
    for f in range(n):
        rhs = 0
        for g in range(n):
            for i, du in enumerate(du_dr):
                rhs = rhs - speeds[:, i, f, g, None] * du[g]
        flux = 0
        for g in range(n):
            flux = flux + face_matrix[:, :, f, g, None] * jump[g]
        rhs = rhs + flux.reshape(K, -1) @ lift
        res[f, :nodes] *= launcher.real(lsrk45.A[number])
        res[f, :nodes] += launcher.real(dt) * rhs.reshape(-1)
    u[:, :nodes] += launcher.real(lsrk45.B[number]) * res[:, :nodes]
