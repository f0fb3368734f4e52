"""The incident field at the boundary, computed on the device."""

import math

import numpy as np

from dgbook.gpu import cuda, jit


def make_incident(Nfp, shape, dtype):
    """Kernel for g on those boundary faces where a plane wave enters.

    One thread per face node. The signal's argument, time minus phase,
    is computed in fp64 whatever the precision of the fields, since
    after thousands of periods fp32 has no digits left for it. Only
    boundary nodes pay for it. Arguments:

    faces (m,)        which of the nb boundary faces
    phase (m Nfp,)    fp64, the time at which the signal's origin passes
    amplitude (6,)    amplitude of each field
    step (1,)         number of the time step, counted on the device
    t, dt             fp64: the time of step 0, and the length of a step
    late              how much later than the step's start this stage is
    parameter         the signal's parameter, fp64
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
            # The signal at this node's time minus phase.
            s = t + step[0] * dt + late - phase[i]
            if gaussian:
                signal = math.exp(-((s / parameter) ** 2))
            else:
                periods = parameter * s / (2 * math.pi)
                periods = min(max(periods, 0.0), 2.0)
                rise = math.sin(math.pi * periods / 4)
                signal = rise * rise * math.sin(parameter * s)
            # Each field is its amplitude times the signal.
            place = faces[i // Nfp] * Nfp + i % Nfp
            for f in range(6):
                g = amplitude[f] * real(signal)
                data[f * (data.size // 6) + place] = g

    return incident
