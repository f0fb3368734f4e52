"""Plane waves that come in through the boundary: their kernel's arrays and launches."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from dgbook.gpu import Device, Kernel
from dgbook.maxwell.kernels.incident import make_incident
from dgbook.maxwell.problem import PlaneWave, Scatterer
from dgbook.maxwell.reference import Operator
from dgbook.nodal.incoming import Launch

THREADS = 128


@lru_cache(maxsize=64)
def kernel(Nfp: int, shape: str, dtype: str) -> Kernel:
    """The kernel, compiled once for equal arguments."""
    return make_incident(Nfp, shape, dtype)


def launches(operator: Operator, device: Device) -> list[Launch] | None:
    """Of each function on the boundary the launch that evaluates it; None if one is unknown.

    Known are plane waves, incident or on a scatterer.
    """
    evaluations = [
        _launch(operator, device, faces, function) for faces, function in operator.sources
    ]
    return None if None in evaluations else evaluations


def _launch(
    operator: Operator, device: Device, faces: np.ndarray, function: Callable
) -> Launch | None:
    wave = function.incident if isinstance(function, Scatterer) else function
    if not isinstance(wave, PlaneWave):
        return None
    amplitude = np.array([*wave.polarization, *wave.magnetic])
    if isinstance(function, Scatterer):
        amplitude = np.concatenate([-2 * amplitude[:3], np.zeros(3)])
    phase = wave.delay + np.tensordot(wave.direction, operator.boundary_points[:, faces], axes=1)
    dtype = operator.lift.dtype
    incident = kernel(operator.element.Nfp, wave.shape, dtype.name)
    arrays = (
        device.array(faces.astype(np.int64)),
        device.array(phase.ravel()),
        device.array(amplitude.astype(dtype)),
    )
    grid, parameter = (-(-phase.size // THREADS), THREADS), float(wave.parameter)

    def launch(step: Any, start: float, dt: float, late: float, data: Any) -> None:
        incident[grid](*arrays, step, start, dt, late, parameter, data)

    return launch
