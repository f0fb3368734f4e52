"""Local time steps on a GPU: the arrays of their kernel."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from dgbook.acoustics.kernels.local import make_local
from dgbook.acoustics.launch import fused
from dgbook.acoustics.plan import Shape
from dgbook.acoustics.reference import Operator
from dgbook.element import NodalElement
from dgbook.gpu import Device, Kernel
from dgbook.nodal.local import Clusters
from dgbook.nodal.local_device import LocalStage


@lru_cache(maxsize=64)
def kernel(shape: Shape, rows: int) -> Kernel:
    """The kernel, compiled once for equal arguments."""
    return make_local(shape, rows)


class LocalLauncher(LocalStage):
    """Taylor steps in clusters, of fluxes of rank 1; components are those of `fused.FusedLauncher`.

    Parameters
    ----------
    operator : Operator
        In either basis.
    device : Device
        "cuda" or "simulator".
    clusters : Clusters
    """

    def __init__(self, operator: Operator, device: Device, clusters: Clusters) -> None:
        shape = Shape(operator.order, operator.weights.dtype.name)
        element = NodalElement(3, operator.order)
        super().__init__(operator, device, shape, clusters, element, shape.size)

    def _kernel(self, rows: int) -> Kernel:
        return kernel(self.shape, rows)

    def _described(self) -> tuple[np.ndarray, np.ndarray]:
        return fused.geometry(self.operator), fused.boundary(self.operator)

    def _derivative(self) -> np.ndarray:
        return -self.element.derivative

    def components(self, elements: np.ndarray) -> np.ndarray:
        """What a state holds of the fields in some elements, (elements, 4, 4) float64."""
        return fused.components(self.operator, elements)
