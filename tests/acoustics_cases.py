"""Boundaries, meshes and operators on which all kernels of the acoustic equations are tested."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from maxwell_cases import scrambled

from dgbook.acoustics import reference
from dgbook.acoustics.plan import KERNEL_SETS, PaperPlan, Shape
from dgbook.gpu import Device
from dgbook.mesh import box


def incoming(x, y, z, t):
    """Four fields that are no solution of anything."""
    return [x + t, y * z, z - x, 1 + t * z]


BOUNDARY = {
    "x-": "soft",
    "x+": "absorbing",
    "y-": incoming,
    "y+": "rigid",
    "z-": "soft",
    "z+": "rigid",
}


def operators(
    order: int,
    dtype: str,
    basis: str,
    random: np.random.Generator,
    flux: str = "penalty",
    cells: tuple[int, int, int] = (1, 1, 1),
    periodic: bool = False,
) -> list[reference.Operator]:
    """An operator in `dtype` and the same in float64, every element of a different material."""
    mesh = box(cells, upper=(1.0, 0.8, 1.3), periodic=periodic)
    if not periodic:
        mesh = scrambled(mesh, random, 0.15 / max(cells))
    kappa, rho = random.uniform(0.5, 2, (2, mesh.K))
    boundary = {} if periodic else BOUNDARY
    return [
        reference.assemble(mesh, order, basis, flux, kappa, rho, boundary, d)
        for d in (dtype, "float64")
    ]


def scales(operator: reference.Operator) -> np.ndarray:
    """What the equations of p and v are multiplied by, kappa and 1/rho; (4, K, 1)."""
    return np.stack([operator.kappa, *3 * [1 / operator.rho]])[..., None]


def expected_volume(operator: reference.Operator, u: np.ndarray) -> np.ndarray:
    """(-kappa div v, -(1/rho) grad p), (4, K, Np)."""
    return scales(operator) * reference.volume(operator, u.astype(float))


def expected_surface(operator: reference.Operator, u: np.ndarray, t: float) -> np.ndarray:
    """The lifted fluxes, as they are added to the volume's part; (4, K, Np)."""
    data = reference.boundary_data(operator, t)
    flux = reference.fluxes(operator, reference.jumps(operator, u.astype(float), data))
    return scales(operator) * reference.lift(operator, flux)


def device_data(operator: reference.Operator, t: float, dtype: str) -> np.ndarray:
    """g on the boundary as kernels get it, flat; one zero where there is no boundary."""
    data = reference.boundary_data(operator, t).ravel()
    return (data if data.size else np.zeros(1)).astype(dtype)


def tried(name: str, order: int, dtype: str) -> list[PaperPlan]:
    """The plans that a tuner tries of a set of kernels, each part's beside the default."""
    (kind, variant), shape = KERNEL_SETS[name], Shape(order, dtype)
    return kind.default(shape, None, variant).candidates(shape)


@dataclass
class Case:
    """A launcher of several kernels, its operator in float64, random states and boundary data.

    Attributes
    ----------
    launcher : StageByKernels
    double : Operator
    u, res : (4, K, Np) array
    data : flat array of the device
        At time `t`.
    roundings : int
        By how many of the largest number a result may be wrong.
    """

    launcher: Any
    double: reference.Operator
    u: np.ndarray
    res: np.ndarray
    data: Any
    roundings: int
    t: float = 0.3

    @property
    def poisoned(self):
        """A state of NaN: what a kernel forgets to write stays one."""
        return self.launcher.device.empty(self.u.size, self.u.dtype)

    @property
    def rhs(self) -> np.ndarray:
        return reference.rhs(self.double, self.u.astype(float), self.t)

    def assert_close(self, computed: np.ndarray, expected: np.ndarray) -> None:
        assert computed.dtype == self.u.dtype
        assert computed.shape == expected.shape
        tolerance = self.roundings * np.finfo(computed.dtype).eps * np.abs(expected).max()
        assert np.abs(computed - expected).max() < tolerance

    def check_parts(self, launcher: Any) -> None:
        """Volume on NaN, and surface on what is there already."""
        u, out = launcher.upload(self.u), self.poisoned
        launcher.volume(u, out)
        self.assert_close(launcher.download(out), expected_volume(self.double, self.u))
        out = launcher.upload(self.res)
        launcher.surface(u, self.data, out)
        expected = self.res + expected_surface(self.double, self.u, self.t)
        self.assert_close(launcher.download(out), expected)
        assert np.array_equal(launcher.download(u), self.u)


def make_case(
    launcher: type,
    plan: Any,
    device: Device,
    order: int,
    dtype: str,
    basis: str,
    random: np.random.Generator,
    roundings: int = 60,
    **options: Any,
) -> Case:
    """A case; `options` as of `operators`."""
    operator, double = operators(order, dtype, basis, random, **options)
    u, res = random.standard_normal((2, 4, double.mesh.K, double.basis.element.Np)).astype(dtype)
    data = device.array(device_data(double, Case.t, dtype))
    return Case(launcher(operator, device, plan), double, u, res, data, roundings)
