"""The kernels of a linear system: volume, surface, and fused."""

from .fused import make_fused
from .surface import make_surface
from .volume import make_volume

__all__ = ["make_fused", "make_surface", "make_volume"]
