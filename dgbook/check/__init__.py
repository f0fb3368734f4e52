"""How kernels are proven without a GPU: the simulator, its log of accesses, the compilers."""

from dgbook.check.simulator import (
    BarrierError,
    OutOfRangeError,
    RaceError,
    SimulatorError,
    UndefinedReadError,
)

__all__ = [
    "BarrierError",
    "OutOfRangeError",
    "RaceError",
    "SimulatorError",
    "UndefinedReadError",
]
