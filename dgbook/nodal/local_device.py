"""Local time steps on a GPU: arrays, launches, and the recording of a period."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import Any

import numpy as np

from dgbook.element import NodalElement, space_dimension
from dgbook.gpu import Device, Kernel
from dgbook.gpu.layout import padded
from dgbook.gpu.limits import MAX_THREADS, STATIC_SHARED_LIMIT, WARP
from dgbook.nodal.fused import SPARE, ElementByElement, NodalShape, lengthened
from dgbook.nodal.kernels.taylor import NOWHERE
from dgbook.nodal.local import Clusters, Layout, ending, given_to, layout, taylor_sums
from dgbook.nodal.trace import WAYS, Trace

MOST_THREADS = 256
"""Of a block, where an element has fewer nodes."""
INPUTS = (
    *("now", "later", "groups", "opposite", "tangents", "face_nodes", "geometry", "boundary"),
    *("levels", "weights", "derivative", "lift", "vandermonde"),
)
"""Arrays in the order of the kernel's arguments, behind those that change."""


class LocalStage(ElementByElement):
    """Taylor steps in clusters, a launch per tick; families derive their own.

    A state is flat: element by element, sorted by cluster, field by field, coefficients of
    orthonormal polynomials sorted by degree; then room for `SPARE` more elements. Term j of an
    expansion has degree N - j, so that fewer and fewer modes are left to differentiate. Integrals,
    which neighbors read, are values at nodes, node by node.

    Parameters
    ----------
    operator : a family's operator
    device : Device
        "cuda" or "simulator".
    shape : NodalShape
    clusters : Clusters
    element : NodalElement
    size : int
        Numbers of an element in a region.

    Attributes
    ----------
    rows : int
        Elements of a block.

    Raises
    ------
    ValueError
        For a mesh too large for 32-bit indices, or elements too large for shared memory.
    """

    def __init__(
        self,
        operator: Any,
        device: Device,
        shape: NodalShape,
        clusters: Clusters,
        element: NodalElement,
        size: int,
    ) -> None:
        super().__init__(operator, device, shape.dtype)
        self.shape, self.element = shape, element
        self.layout = layout(operator.mesh, clusters.number, 1)
        self.order = self.layout.order
        K, N = operator.mesh.K, element.order
        self.size = (K + SPARE) * shape.fields * shape.Np
        region = (self.layout.region + SPARE) * size
        self._check_indices(region)
        self.integrals = tuple(device.zeros(region, self.real) for _ in range(2))

        now, later = links(self.layout, operator.trace)
        to_modes, to_nodes = element.inverse_vandermonde, element.vandermonde
        derivative = (to_modes @ self._derivative() @ to_nodes)[:, : shape.lower]
        geometry, boundary = self._described()
        integers = {
            "now": lengthened(now),
            "later": lengthened(later),
            "groups": lengthened(groups(self.layout)),
            "opposite": operator.trace.opposite,
            "face_nodes": element.face_nodes,
            "levels": np.array([space_dimension(3, N - j) for j in range(N + 1)]),
        }
        reals = {
            "tangents": self._tangents(),
            "geometry": lengthened(geometry[self.order]),
            "boundary": np.append(boundary, 0.0),  # no array is empty
            "weights": taylor_sums(N, clusters),
            "derivative": derivative.transpose(2, 0, 1),
            "lift": (to_modes @ element.lift).T,
            "vandermonde": to_nodes.T,
        }
        self.arrays = self._on_device(integers, reals)
        self._load(usual_rows(shape))

    def _load(self, plan: int) -> None:
        """Take a number of elements per block."""
        shared = 2 * plan * self.shape.fields * self.shape.Np * self.shape.itemsize
        if shared > STATIC_SHARED_LIMIT or plan * self.shape.Np > MAX_THREADS:
            raise ValueError(
                f"order = {self.shape.order} in {self.shape.dtype} with local time steps: {plan} "
                f"elements of {self.shape.Np} nodes in a block share {shared} bytes; allowed: "
                f"{STATIC_SHARED_LIMIT}, and {MAX_THREADS} nodes"
            )
        self.rows, self.kernel = plan, self._kernel(plan)

    # -- what a family says ------------------------------------------------------------------

    @abstractmethod
    def _kernel(self, rows: int) -> Kernel:
        """The kernel for so many elements per block."""

    @abstractmethod
    def _described(self) -> tuple[np.ndarray, np.ndarray]:
        """What describes elements, (K, ...), and boundary faces, (nb, ...)."""

    def _derivative(self) -> np.ndarray:
        """Derivatives of nodal values, (3, Np, Np), as the equations have them."""
        return self.element.derivative

    def _tangents(self) -> np.ndarray:
        """Of each way to meet, where the flux needs them."""
        return np.zeros(1)

    # -- states ------------------------------------------------------------------------------

    @property
    def elements(self) -> np.ndarray:
        """The number of the element at each place of a state, (K,)."""
        return self.order

    def _in_element(self) -> tuple[int, np.ndarray]:
        fields, Np = self.shape.fields, self.shape.Np
        return fields * Np, np.arange(fields * Np).reshape(fields, Np)

    def upload(self, u: np.ndarray) -> Any:
        """A state (fields, K, Np) of nodal values on the device."""
        return super().upload(u.astype(np.float64) @ self.element.inverse_vandermonde.T)

    def part(self, states: Any, places: slice) -> Any:
        """States, flat (..., entries), at some places: (..., fields, places, Np) on the device."""
        fields, Np = self.shape.fields, self.shape.Np
        modes = states.reshape(*states.shape[:-1], -1, fields, Np)[..., places, :, :]
        back = self.device.array(np.linalg.inv(self.components(self.order[places])))
        values = back @ (modes.astype(np.float64) @ self.device.array(self.element.vandermonde.T))
        return values.swapaxes(-3, -2)

    # -- launches ----------------------------------------------------------------------------

    def advance(self, state: Any, data: Any, tick: int, last: int, begins: bool) -> None:
        """End the steps of the clusters up to the last that end with a tick, and begin the next.

        Before the first tick, which is that of number 0, there is none to end.
        """
        count = int(self.layout.ends[last])
        numbers = tick + 1, count, tick >= 0, begins, self.layout.halves
        self.kernel[-(-count // self.rows), (self.shape.Np, self.rows)](
            *map(np.uint32, numbers),
            state,
            *self.integrals,
            data,
            *(self.arrays[name] for name in INPUTS),
        )


def usual_rows(shape: NodalShape) -> int:
    """Elements of a block: what leaves the fewest threads of its warps idle, of few the fewest."""
    most = max(1, MOST_THREADS // shape.Np)
    least = -(-most // 3)

    def idle(rows: int) -> float:
        return padded(rows * shape.Np, WARP) / (rows * shape.Np)

    return min(range(least, most + 1), key=idle)


def links(made: Layout, trace: Trace) -> np.ndarray:
    """``trace.links`` to places in a region, for either of two tables, (2, K, 4), by place.

    In place of a ghost stands the number of its boundary face.
    """
    there, way = np.divmod(trace.links, WAYS)
    outside = there >= trace.K
    return (np.where(outside, there - trace.K, made.meets) * WAYS + way)[:, made.order]


def groups(made: Layout) -> np.ndarray:
    """Of each place the words of `dgbook.nodal.kernels.taylor`, (K, 3)."""
    G = len(made.cluster)
    longer = np.where(made.longer >= 0, G + made.longer, NOWHERE)
    shorter = np.where(made.shorter >= 0, G + made.sums + made.shorter, NOWHERE)
    return np.stack([made.cluster, longer, shorter], axis=1)


class DeviceLocalSteps:
    """Clustered Taylor steps on a device, in one launch per tick and one more per period.

    A period is recorded once and replayed where Python has nothing to do between the ticks, as
    nothing comes in through the boundary.

    Parameters
    ----------
    solver : LinearSolver
    launcher : LocalStage
    u : (n, K, Np) array
        Where the run begins.
    clusters : Clusters
    """

    def __init__(
        self, solver: Any, launcher: LocalStage, u: np.ndarray, clusters: Clusters
    ) -> None:
        self.launcher, self.clusters = launcher, clusters
        self.state = launcher.upload(u)
        self.given = given_to(solver, clusters)
        values = self.given.data
        self.data = launcher.device.zeros(max(1, values.size), values.dtype)
        self.replay = None
        if not solver.operator.sources:
            launches = partial(period, launcher, self.state, self.data, clusters)
            self.replay = launcher.device.capture(launches)

    def step(self, t: float) -> None:
        """A period from time t, for all elements."""
        if self.replay:
            self.replay()
        else:
            period(self.launcher, self.state, self.data, self.clusters, partial(self._give, t))

    def _give(self, t: float, tick: int, last: int) -> None:
        """What comes in over the steps that end with a tick, of the clusters up to the last."""
        dt = self.clusters.dt
        for c in range(last + 1):
            self.given.integrate(c, t + (tick + 1) * dt, 2**c * dt)
        self.data[:] = self.launcher.device.array(self.given.data.ravel())

    def download(self) -> np.ndarray:
        """The state as nodal values."""
        return self.launcher.download(self.state)

    def raw(self) -> np.ndarray:
        """The state in the launcher's layout."""
        return self.launcher.device.to_numpy(self.state)

    def restore(self, raw: np.ndarray) -> None:
        """Replace the state by what `raw` returned."""
        self.state[:] = self.launcher.device.array(raw)

    def squares(self) -> float:
        """The sum of squares of the state in the launcher's layout, in fp64."""
        return self.launcher.device.sum_of_squares(self.state)


def period(
    launcher: LocalStage, state: Any, data: Any, clusters: Clusters, give: Any = None
) -> None:
    """The launches of a period; before those of a tick ``give(tick, last)`` if there is such."""
    launcher.advance(state, data, -1, clusters.last, True)
    for tick in range(clusters.period):
        last = ending(tick, clusters.last)
        if give:
            give(tick, last)
        launcher.advance(state, data, tick, last, tick + 1 < clusters.period)
