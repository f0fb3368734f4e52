"""The incident field at the boundary, computed on the device."""

import math

import numpy as np

from dgbook.gpu import cuda, jit


def make_signal(shape):
    """Device function for a wave's signal.

    s is the time since the signal's origin passed.
    """
    gaussian = shape == "gaussian"

    @jit(device=True)
    def signal_at(s, parameter):
        if gaussian:
            return math.exp(-((s / parameter) ** 2))
        periods = parameter * s / (2 * math.pi)
        rise = math.sin(math.pi * min(max(periods, 0.0), 2.0) / 4)
        return rise * rise * math.sin(parameter * s)

    return signal_at


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
    real, signal_at = np.dtype(dtype).type, make_signal(shape)

    @jit
    def incident(
        faces, phase, amplitude, step, t, dt, late, parameter, data
    ):
        i = cuda.grid(1)
        if i < phase.size:
            # The signal at this node's time minus phase.
            s = t + step[0] * dt + late - phase[i]
            signal = signal_at(s, parameter)
            # Each field is its amplitude times the signal.
            place = faces[i // Nfp] * Nfp + i % Nfp
            for f in range(6):
                g = amplitude[f] * real(signal)
                data[f * (data.size // 6) + place] = g

    return incident


def make_incident_integral(Nfp, shape, dtype):
    """Kernel for the integral of g over steps that end with a tick.

    As `make_incident`, of the first `count` nodes. On face number j it
    is a step of 2^cluster[j] dt that ends with the tick, (tick + 1) dt
    after clock[0]. Gauss's points are in the interval from -1, the
    beginning of the step, to 0.
    """
    real, signal_at = np.dtype(dtype).type, make_signal(shape)

    @jit
    def incident_integral(
        faces, cluster, count, phase, amplitude, points, weights, clock,
        tick, dt, parameter, data
    ):  # fmt: skip
        i = cuda.grid(1)
        if i < count:
            h = dt * (1 << cluster[i // Nfp])
            s = clock[0] + (tick + 1) * dt - phase[i]
            signal = 0.0
            for q in range(points.size):
                at = s + points[q] * h
                signal += weights[q] * signal_at(at, parameter)
            place = faces[i // Nfp] * Nfp + i % Nfp
            for f in range(6):
                g = amplitude[f] * real(h * signal)
                data[f * (data.size // 6) + place] = g

    return incident_integral


def make_incident_points(Nfp, shape, dtype, faces_of_block):
    """Kernel for g on the same faces, at Bernstein control points.

    One thread per face node, and faces_of_block faces per block. A
    thread evaluates the signal at its node. After a barrier, it
    computes one control point from the signal at all nodes of its face.
    The arguments are those of make_incident, and

    matrix (Nfp Nfp,) fp64, row by row: control points from node values
    """
    real, signal_at = np.dtype(dtype).type, make_signal(shape)
    threads = faces_of_block * Nfp

    @jit
    def incident_points(
        faces,
        phase,
        matrix,
        amplitude,
        step,
        t,
        dt,
        late,
        parameter,
        data,
    ):
        signals = cuda.shared.array(threads, np.float64)
        thread = cuda.threadIdx.x
        i = cuda.blockIdx.x * threads + thread
        # The signal at this node's time minus phase.
        if i < phase.size:
            s = t + step[0] * dt + late - phase[i]
            signals[thread] = signal_at(s, parameter)
        cuda.syncthreads()
        if i < phase.size:
            # The control point; each field is its amplitude times this.
            node, point = thread - thread % Nfp, i % Nfp
            signal = 0.0
            for q in range(Nfp):
                signal += matrix[point * Nfp + q] * signals[node + q]
            place = faces[i // Nfp] * Nfp + point
            for f in range(6):
                g = amplitude[f] * real(signal)
                data[f * (data.size // 6) + place] = g

    return incident_points
