"""Everything that touches a GPU: the only place that imports numba.cuda or CuPy."""

from dgbook.gpu.device import Device, device, versions
from dgbook.gpu.kernel import Kernel, cuda, jit

__all__ = ["Device", "Kernel", "cuda", "device", "jit", "versions"]
