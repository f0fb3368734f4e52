"""A stage as dense matrix products and array expressions: what one would write without a kernel."""

from __future__ import annotations

from typing import Any

from dgbook.linear.solver import Launcher
from dgbook.time import lsrk45


def stage(launcher: Launcher, u: Any, res: Any, number: int, dt: float) -> None:
    """res = A_s res + dt du/dt, u += B_s res, by the array library's own operations.

    On a GPU the products with D and LIFT are calls of cuBLAS, and each expression is a kernel of
    CuPy's that passes over memory once: the rival that a kernel of one's own must beat.

    Parameters
    ----------
    launcher : Launcher
        Whose arrays are used, and whose device.
    u, res : (n, K Np + ghosts) arrays of the device
        Changed in place, but for the ghosts.
    number : int
        The stage s, 0 to 4.
    dt : float
    """
    a, n, Np, Nfp = launcher.arrays, launcher.shape.n, launcher.shape.Np, launcher.shape.Nfp
    nodes = launcher.nodes
    state = u[:, :nodes].reshape(-1, Np)
    du_dr = [(state @ a["derivative"][i]).reshape(n, -1, Np) for i in range(launcher.shape.dim)]
    minus = u[:, :nodes].reshape(n, -1, Np)[:, :, a["interior"]]
    plus = u[:, a["exterior"].ravel()].reshape(minus.shape)
    jump = (minus - plus).reshape(*minus.shape[:2], -1, Nfp)
    for f in range(n):
        rhs = 0
        for g in range(n):
            for i, du in enumerate(du_dr):
                rhs = rhs - a["speeds"][:, i, f, g, None] * du[g]
        flux = 0
        for g in range(n):
            flux = flux + a["face_matrix"][:, :, f, g, None] * jump[g]
        rhs = rhs + flux.reshape(len(flux), -1) @ a["lift"]
        res[f, :nodes] *= launcher.real(lsrk45.A[number])
        res[f, :nodes] += launcher.real(dt) * rhs.reshape(-1)
    u[:, :nodes] += launcher.real(lsrk45.B[number]) * res[:, :nodes]
