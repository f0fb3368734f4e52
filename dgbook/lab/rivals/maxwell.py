"""The reference on a GPU's arrays: what one gets without writing a kernel."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dgbook.gpu import Device
from dgbook.lab.rivals import on_device
from dgbook.maxwell import reference
from dgbook.maxwell.reference import Operator


class ArrayStage:
    """A stage by the reference's own lines on a device's arrays, the rival of every kernel.

    Parameters
    ----------
    operator : Operator
        Boundary data g are left out: walls and absorbing boundaries only.
    device : Device
    """

    def __init__(self, operator: Operator, device: Device) -> None:
        moved = on_device(operator, device)
        self.operator = replace(moved, trace=on_device(operator.trace, device))
        self.real = operator.lift.dtype.type
        faces = len(operator.trace.boundary_faces)
        self.factors = device.array(
            1 / np.stack(3 * [operator.epsilon] + 3 * [operator.mu])[..., None]
        )
        self.data = device.zeros((6, faces, operator.element.Nfp), self.real)

    def stage(self, u: Any, res: Any, a: float, b: float, dt: float) -> None:
        """res = a res + dt du/dt, u += b res, in place; arrays (6, K, Np) of the device."""
        flux = reference.fluxes(self.operator, reference.jumps(self.operator, u, self.data))
        rhs = reference.volume(self.operator, u) + reference.lift(self.operator, flux)
        res *= self.real(a)
        res += self.real(dt) * (self.factors * rhs)
        u += self.real(b) * res
