"""Boundaries, meshes and operators on which all kernels of the acoustic equations are tested."""

import numpy as np
from maxwell_cases import scrambled

from dgbook.acoustics import reference
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
