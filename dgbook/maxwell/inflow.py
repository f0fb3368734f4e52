"""What comes in through the boundary, g in u^+ = M u^- + g, evaluated where the fields are."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from dgbook.gpu import Device, Kernel
from dgbook.maxwell import reference
from dgbook.maxwell.kernels.incident import make_incident, make_tick
from dgbook.maxwell.problem import PlaneWave, Scatterer

THREADS = 128


@lru_cache(maxsize=64)
def kernels(Nfp: int, shape: str, dtype: str) -> tuple[Kernel, Kernel]:
    """The kernels `incident` and `tick`, each compiled once for equal arguments."""
    return make_incident(Nfp, shape, dtype), make_tick()


class Inflow:
    """The boundary data of an operator on a device.

    Plane waves, incident or on a scatterer, are evaluated by a kernel, which can be recorded with
    the rest of a time step. Other functions are evaluated by Python, once a stage: the device then
    waits for the host.

    Attributes
    ----------
    data : array of 6 nb Nfp
        g of field f at node i of boundary face b, at index (f nb + b) Nfp + i; a single zero if
        there is no boundary.
    live : bool
        Whether Python has to run in every stage.
    """

    def __init__(self, operator: reference.Operator, device: Device) -> None:
        self.operator, self.device = operator, device
        nb = len(operator.trace.boundary_faces)
        self.Nfp = operator.element.Nfp
        self.real = operator.lift.dtype
        self.data = device.zeros(max(1, 6 * nb * self.Nfp), self.real)
        waves = [self._wave(faces, function) for faces, function in operator.sources]
        self.live = any(wave is None for wave in waves)
        self.waves = [] if self.live else waves
        self.step = device.zeros(1, np.int64)

    def start(self, t: float, dt: float, step: int = 0) -> None:
        """Begin with a step, of those dt long of which number 0 is at time t."""
        self.t, self.dt = t, dt
        self.step[:] = step

    def evaluate(self, late: float) -> None:
        """g at the current step's time plus `late`; launches only, unless `live`."""
        if self.live:
            t = self.t + int(self.device.to_numpy(self.step)[0]) * self.dt + late
            g = reference.boundary_data(self.operator, t)
            self.data[:] = self.device.array(g.astype(self.real).ravel())
        for faces, phase, amplitude, wave in self.waves:
            blocks = -(-phase.size // THREADS)
            self._kernels(wave)[0][blocks, THREADS](
                faces,
                phase,
                amplitude,
                self.step,
                float(self.t),
                float(self.dt),
                float(late),
                float(wave.parameter),
                self.data,
            )

    def tick(self) -> None:
        """The step is over."""
        if self.live:
            self.step += 1
        elif self.waves:
            self._kernels(self.waves[0][3])[1][1, 1](self.step)

    def _kernels(self, wave: PlaneWave) -> tuple[Kernel, Kernel]:
        return kernels(self.Nfp, wave.shape, self.real.name)

    def _wave(self, faces: np.ndarray, function: Any) -> tuple[Any, Any, Any, PlaneWave] | None:
        """Arrays of a plane wave's kernel, or None for another function."""
        wave = function.incident if isinstance(function, Scatterer) else function
        if not isinstance(wave, PlaneWave):
            return None
        amplitude = np.array([*wave.polarization, *wave.magnetic])
        if isinstance(function, Scatterer):
            amplitude = np.concatenate([-2 * amplitude[:3], np.zeros(3)])
        points = self.operator.boundary_points[:, faces]
        phase = wave.delay + np.tensordot(wave.direction, points, axes=1)
        return (
            self.device.array(faces.astype(np.int64)),
            self.device.array(phase.ravel()),
            self.device.array(amplitude.astype(self.real)),
            wave,
        )
