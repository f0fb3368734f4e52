"""The field that comes in through a boundary, computed where it is needed."""

import math

import numpy as np

from dgbook.gpu import cuda, jit


def make_incident(Nfp, shape, dtype):
    """Kernel for g on some boundary faces: a plane wave, or what scatters it.

    A thread a face node. The signal's argument, time minus phase, is taken in
    fp64 whatever the fields are: after thousands of periods nothing else is
    left of it. There are few such nodes. Arguments:

    faces (m,)        which of the nb boundary faces
    phase (m Nfp,)    fp64, the time at which the signal's origin passes
    amplitude (6,)    of each field
    step (1,)         the number of the time step, counted on the device
    t, dt             fp64: the time of step 0, and the step
    late              how much later in the step this stage is
    parameter         of the signal, fp64
    data (6 nb Nfp,)  g, written
    """
    real = np.dtype(dtype).type
    gaussian = shape == "gaussian"

    @jit
    def incident(
        faces, phase, amplitude, step, t, dt, late, parameter, data
    ):
        i = cuda.grid(1)
        if i < phase.size:
            # The signal, at its own time.
            s = t + step[0] * dt + late - phase[i]
            if gaussian:
                signal = math.exp(-((s / parameter) ** 2))
            else:
                periods = parameter * s / (2 * math.pi)
                rise = math.sin(
                    math.pi * min(max(periods, 0.0), 2.0) / 4
                )
                signal = rise * rise * math.sin(parameter * s)
            # Every field has its amplitude of it.
            place = faces[i // Nfp] * Nfp + i % Nfp
            for f in range(6):
                data[f * (data.size // 6) + place] = amplitude[
                    f
                ] * real(signal)

    return incident
