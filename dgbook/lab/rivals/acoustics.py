"""A nodal stage by matrix products, cuBLAS on a GPU: the rival of every kernel."""

from __future__ import annotations

from typing import Any

from dgbook.acoustics.launch.nodal import NodalLauncher
from dgbook.acoustics.plan import ElementPlan, Shape
from dgbook.acoustics.reference import Operator
from dgbook.gpu import Device
from dgbook.lab.rivals.combine import make_combine

THREADS = 256


class ProductStage:
    """Fluxes by the paper's kernel, D and LIFT by matrix products, the rest by one more kernel.

    This is how chan2015 describes DG with cuBLAS (section 4.2.1): with an element next to an
    element all of them make one wide matrix a field, (Np, K), and one product applies D or LIFT to
    it. The derivatives and the lifted fluxes go through memory.

    Parameters
    ----------
    operator : Operator
        In the nodal basis.
    device : Device
        "cuda" or "simulator".
    """

    def __init__(self, operator: Operator, device: Device) -> None:
        plan = ElementPlan.default(Shape(operator.order, operator.weights.dtype.name))
        self.operator, self.launcher = operator, NodalLauncher(operator, device, plan)
        shape, K, real = self.launcher.shape, self.launcher.K, self.launcher.real
        basis = operator.basis
        self.derivative = device.array(basis.derivative.reshape(-1, shape.Np))  # (3 Np, Np)
        self.lift = device.array(basis.lift_matrix)
        self.flux = self.launcher.work["flux"].reshape(4, shape.Nf, K)
        self.derivatives = device.zeros((4, 3 * shape.Np, K), real)
        self.lifted = device.zeros((4, shape.Np, K), real)
        self.combine = make_combine(shape)

    def stage(self, u: Any, res: Any, data: Any, a: float, b: float, dt: float) -> None:
        """res = a res + dt du/dt, u += b res; states and `data` as `NodalLauncher` has them.

        States are those of an `ElementPlan`, with entry (field, node, element).
        """
        launcher, arrays = self.launcher, self.launcher.arrays
        launcher.flux(u, data)
        fields = u.reshape(4, launcher.shape.Np, launcher.K)
        for c in range(4):
            self.lift.dot(self.flux[c], out=self.lifted[c])
            self.derivative.dot(fields[c], out=self.derivatives[c])
        made = self.derivatives.ravel(), self.lifted.ravel()
        scalars = (launcher.real(value) for value in (a, b, dt))
        blocks = -(-launcher.K * launcher.shape.Np // THREADS)
        self.combine[blocks, THREADS](
            *made, arrays["rst_xyz"], arrays["material"], res, u, *scalars
        )
