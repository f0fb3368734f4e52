"""Local time steps on a GPU: the arrays of their kernel."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from dgbook.gpu import Device, Kernel
from dgbook.maxwell.kernels.local import make_local
from dgbook.maxwell.launch import fused
from dgbook.maxwell.plan import FusedShape
from dgbook.maxwell.reference import Operator
from dgbook.nodal.local import Clusters
from dgbook.nodal.local_device import LocalStage


@lru_cache(maxsize=64)
def kernel(shape: FusedShape, rows: int) -> Kernel:
    """The kernel, compiled once for equal arguments."""
    return make_local(shape, rows)


class LocalLauncher(LocalStage):
    """Taylor steps in clusters, of the upwind flux; components are those of `fused.FusedLauncher`.

    Parameters
    ----------
    operator : Operator
        In either basis.
    device : Device
        "cuda" or "simulator".
    clusters : Clusters
    """

    def __init__(self, operator: Operator, device: Device, clusters: Clusters) -> None:
        element, dtype = operator.element, operator.lift.dtype.name
        shape = FusedShape(element.order, dtype, fused.has_materials(operator))
        super().__init__(operator, device, shape, clusters, element, 6 * shape.even_Np)

    def _kernel(self, rows: int) -> Kernel:
        return kernel(self.shape, rows)

    def _described(self) -> tuple[np.ndarray, np.ndarray]:
        return fused.geometry(self.operator), fused.boundary(self.operator)

    def _tangents(self) -> np.ndarray:
        return fused.tangents()

    def components(self, elements: np.ndarray) -> np.ndarray:
        """What a state holds of the fields in some elements, (elements, 6, 6) float64."""
        return fused.components(*fused.bases(self.operator, elements))
