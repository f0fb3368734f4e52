"""The reference on a GPU's arrays: what one gets without writing a kernel."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from dgbook.euler import reference
from dgbook.euler.reference import Operator
from dgbook.gpu import Device
from dgbook.lab.rivals import on_device
from dgbook.time import rk4

TABLES = ("phi_volume", "w_volume", "dphi_volume", "inverse_mass", "phi_trace", "w_edge")


def moved(operator: Operator, device: Device) -> Operator:
    """The same operator with its arrays on a device, for the functions of `reference`.

    The kinds of boundary edges stay on the host, which asks them which edges are walls.
    """
    tables = {
        name: device.array(getattr(operator.tables, name)) for name in (*TABLES, "edge_nodes")
    }
    known = {name: getattr(operator.tables, name) for name in ("Np", "dtype")}
    device_operator = on_device(operator, device, but=("kinds",))
    return replace(device_operator, tables=SimpleNamespace(**tables, **known))


class ArraySteps:
    """Runge-Kutta steps by the reference's own lines on a device's arrays: every kernel's rival.

    Parameters
    ----------
    operator : Operator
        On a periodic mesh: states outside are left out.
    device : Device

    Raises
    ------
    ValueError
        If there is a boundary.
    """

    def __init__(self, operator: Operator, device: Device) -> None:
        if len(operator.kinds):
            raise ValueError(f"operator has {len(operator.kinds)} boundary edges; allowed: none")
        self.operator = moved(operator, device)
        self.data = device.zeros((4, 0, operator.tables.Ne), operator.tables.dtype)

    def rhs(self, u: Any, t: float = 0.0) -> Any:
        """du/dt, an array (4, K, Np) of the device."""
        return reference.slope(self.operator, u, self.data)

    def step(self, u: Any, dt: float) -> None:
        """A step in place; u is an array (4, K, Np) of the device."""
        rk4.advance(self.rhs, u, 0.0, dt)
