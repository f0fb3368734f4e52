"""Everything that touches a GPU: the only place that imports numba.cuda or CuPy."""

from dgbook.gpu.device import Device, device, versions
from dgbook.gpu.kernel import Kernel, cuda, jit
from dgbook.gpu.simulator import (
    BarrierError,
    OutOfRangeError,
    RaceError,
    SimulatorError,
    UndefinedReadError,
)

__all__ = [
    "BarrierError",
    "Device",
    "Kernel",
    "OutOfRangeError",
    "RaceError",
    "SimulatorError",
    "UndefinedReadError",
    "cuda",
    "device",
    "jit",
    "versions",
]
