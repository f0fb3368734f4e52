"""Plane waves that come in through the boundary: their kernel's arrays and launches."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from dgbook.gpu import Device, Kernel
from dgbook.maxwell.kernels.incident import (
    make_incident,
    make_incident_integral,
    make_incident_points,
)
from dgbook.maxwell.problem import PlaneWave, Scatterer
from dgbook.maxwell.reference import Operator
from dgbook.nodal.bernstein import BernsteinBasis
from dgbook.nodal.incoming import Launch
from dgbook.nodal.local import Clusters, gauss_points
from dgbook.nodal.local_device import Give

THREADS = 128


@lru_cache(maxsize=64)
def kernel(Nfp: int, shape: str, dtype: str) -> Kernel:
    """The kernel, compiled once for equal arguments."""
    return make_incident(Nfp, shape, dtype)


@lru_cache(maxsize=64)
def kernel_of_points(Nfp: int, shape: str, dtype: str) -> Kernel:
    """That for control points, compiled once for equal arguments."""
    return make_incident_points(Nfp, shape, dtype, faces_of_block(Nfp))


def faces_of_block(Nfp: int) -> int:
    """So many that a block has about `THREADS` threads."""
    return max(1, THREADS // Nfp)


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
    known = _known(operator, faces, function)
    if known is None:
        return None
    wave, amplitude, phase = known
    dtype, Nfp, parameter = operator.lift.dtype, operator.element.Nfp, float(wave.parameter)
    arrays = [device.array(faces.astype(np.int64)), device.array(phase.ravel())]
    if isinstance(operator.basis, BernsteinBasis):
        incident, threads = kernel_of_points(Nfp, wave.shape, dtype.name), faces_of_block(Nfp) * Nfp
        arrays.append(device.array(operator.basis.face_coefficients.ravel()))
    else:
        incident, threads = kernel(Nfp, wave.shape, dtype.name), THREADS
    arrays.append(device.array(amplitude.astype(dtype)))
    grid = -(-phase.size // threads), threads

    def launch(step: Any, start: float, dt: float, late: float, data: Any) -> None:
        incident[grid](*arrays, step, start, dt, late, parameter, data)

    return launch


def _known(
    operator: Operator, faces: np.ndarray, function: Callable
) -> tuple[PlaneWave, np.ndarray, np.ndarray] | None:
    """A plane wave, the amplitudes that come in, and when its origin passes, (faces, Nfp)."""
    wave = function.incident if isinstance(function, Scatterer) else function
    if not isinstance(wave, PlaneWave):
        return None
    amplitude = np.array([*wave.polarization, *wave.magnetic])
    if isinstance(function, Scatterer):
        amplitude = np.concatenate([-2 * amplitude[:3], np.zeros(3)])
    phase = wave.delay + np.tensordot(wave.direction, operator.boundary_points[:, faces], axes=1)
    return wave, amplitude, phase


def integrals(operator: Operator, device: Device, clusters: Clusters) -> list[Give] | None:
    """Of each function on the boundary what launches its integrals; None if one is unknown."""
    givers = [
        _giver(operator, device, clusters, np.asarray(faces), function)
        for faces, function in operator.sources
    ]
    return None if None in givers else givers


def _giver(
    operator: Operator, device: Device, clusters: Clusters, faces: np.ndarray, function: Callable
) -> Give | None:
    cluster = clusters.number[operator.trace.boundary_faces[faces, 0]]
    order = np.argsort(cluster, kind="stable")
    faces, cluster = faces[order], cluster[order]
    known = _known(operator, faces, function)
    if known is None:
        return None
    wave, amplitude, phase = known
    dtype, Nfp = operator.lift.dtype, operator.element.Nfp
    points, weights = gauss_points(operator.element.order)
    kernel = kernel_of_integrals(Nfp, wave.shape, dtype.name)
    places = device.array(faces.astype(np.int64)), device.array(cluster.astype(np.int64))
    arrays = phase.ravel(), amplitude.astype(dtype), points - 1, weights
    arrays = tuple(map(device.array, arrays))
    ends = Nfp * np.searchsorted(cluster, np.arange(clusters.last + 1), side="right")
    dt, parameter = float(clusters.dt), float(wave.parameter)

    def give(clock: Any, tick: int, last: int, data: Any) -> None:
        count = int(ends[last])
        if count:
            numbers = tick, dt, parameter, data
            kernel[-(-count // THREADS), THREADS](*places, count, *arrays, clock, *numbers)

    return give


@lru_cache(maxsize=64)
def kernel_of_integrals(Nfp: int, shape: str, dtype: str) -> Kernel:
    """That for integrals over steps, compiled once for equal arguments."""
    return make_incident_integral(Nfp, shape, dtype)
