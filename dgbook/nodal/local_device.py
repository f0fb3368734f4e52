"""Local time steps on a GPU: arrays, launches, and the recording of a period."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from dgbook.element import NodalElement, space_dimension
from dgbook.gpu import Device, Kernel
from dgbook.gpu.layout import padded
from dgbook.gpu.limits import MAX_THREADS, REGISTERS, STATIC_SHARED_LIMIT, WARP, architecture
from dgbook.gpu.source import CudaKernel
from dgbook.nodal.fused import (
    SPARE,
    ElementByElement,
    FusedPlan,
    NodalShape,
    for_threads,
    lengthened,
)
from dgbook.nodal.kernels.taylor import NOWHERE
from dgbook.nodal.local import Clusters, Layout, ending, given_to, layout, taylor_sums
from dgbook.nodal.solving import OnDevice
from dgbook.nodal.trace import WAYS, Trace

Give = Callable[[Any, int, int, Any], None]
"""``give(clock, tick, last, data)`` puts into `data` what is given on the boundary, integrated over
the steps that end with a tick, of the clusters up to the last. The period began at time clock[0].
"""
MOST_THREADS = 192
"""Of a block, where an element has fewer nodes."""
THREAD_REGISTERS = {4: ((2, 68), (99, 100)), 8: ((3, 100), (99, 130))}
"""Of CUDA C++, by the size of a number, up to an order.

What was the fastest on an H200 for Maxwell's equations, in fp32 at N = 2 and 3 and in fp64 at 3. At
N = 2, and in fp64, some then spill, but more threads wait for memory: 1.21 and 1.15 times faster
than without. Above, not measured, nothing spills.
"""
INPUTS = (
    *("now", "later", "groups", "opposite", "tangents", "face_nodes", "geometry", "boundary"),
    *("weights", "derivative", "lift", "vandermonde"),
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
    plan : FusedPlan
        Its `elements_inline` is 1, in Numba also `nodes_inline`.

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
        self.region = self.layout.region + SPARE
        self._check_indices(2 * self.region * size)
        self.integrals = device.zeros(2 * self.region * size, self.real)

        now, later = links(self.layout, operator.trace)
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
        }
        self.arrays = self._on_device(integers, reals)
        language = "numba" if device.kind == "simulator" else self.languages[0]
        self._load(usual_plan(shape, language))

    def _load(self, plan: FusedPlan) -> None:
        limit, shared = STATIC_SHARED_LIMIT, self._shared_bytes(plan)
        if plan.language == "cuda" and self.device.compute_capability:
            limit = architecture(self.device.compute_capability).shared_block
        if shared > limit or plan.block(self.shape) > MAX_THREADS:
            raise ValueError(
                f"order = {self.shape.order} in {self.shape.dtype} with local time steps: "
                f"{plan.block(self.shape)} threads share {shared} bytes; allowed: {MAX_THREADS} "
                f"and {limit}"
            )
        self.plan, self.kernel = plan, self._kernel(plan)
        self.arrays = self.arrays | self._on_device({}, self._matrices(plan))

    def _matrices(self, plan: FusedPlan) -> dict[str, np.ndarray]:
        """Of modes, and from and to nodes, as threads read them."""
        element, shape = self.element, self.shape
        to_modes, to_nodes = element.inverse_vandermonde, element.vandermonde
        derivative = (to_modes @ self._derivative() @ to_nodes)[:, : shape.lower].transpose(2, 0, 1)
        pair = 2 if plan.language == "cuda" else 1
        columns = np.zeros((padded(shape.Np, pair), 3, shape.lower))
        columns[: shape.Np] = derivative
        columns = columns.reshape(-1, pair, 3, shape.lower).transpose(0, 2, 3, 1)
        lifts = (to_modes @ element.lift).reshape(shape.Np, 4, 1, -1).transpose(1, 3, 2, 0)
        return {
            "derivative": np.append(columns, np.zeros(pair)),  # a thread's last mode may be none
            "lift": np.stack([for_threads(lift, plan, shape) for lift in lifts]),
            "vandermonde": for_threads(to_nodes.T[:, None], plan, shape),
        }

    def _shared_bytes(self, plan: FusedPlan) -> int:
        """Shared memory of a block."""
        return 2 * plan.rows * self.shape.fields * self.shape.Np * self.shape.itemsize

    # -- what a family says ------------------------------------------------------------------

    languages: ClassVar[tuple[str, ...]] = ("numba",)
    """In which there is a kernel, the fastest first."""

    @abstractmethod
    def _kernel(self, plan: FusedPlan) -> Kernel | CudaKernel:
        """The plan's kernel."""

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

    def _put(self, state: Any, some: slice, values: Any) -> None:
        """As `ElementByElement._put`, of nodal values."""
        modes = self.device.array(self.element.inverse_vandermonde.T)
        super()._put(state, some, values.astype(np.float64) @ modes)

    def part(self, states: Any, places: slice) -> Any:
        """States, flat (..., entries), at some places: (..., fields, places, Np) on the device."""
        fields, Np = self.shape.fields, self.shape.Np
        modes = states.reshape(*states.shape[:-1], -1, fields, Np)[..., places, :, :]
        back = np.linalg.inv(self.device.array(self.components(self.order[places])))
        values = back @ (modes.astype(np.float64) @ self.device.array(self.element.vandermonde.T))
        return values.swapaxes(-3, -2)

    # -- launches ----------------------------------------------------------------------------

    def advance(self, state: Any, data: Any, tick: int, last: int, begins: bool) -> None:
        """End the steps of the clusters up to the last that end with a tick, and begin the next.

        Before the first tick, which is that of number 0, there is none to end.
        """
        count, plan = int(self.layout.ends[last]), self.plan
        numbers = tick + 1, count, tick >= 0, begins, self.layout.halves
        numbers = tuple(map(np.uint32, numbers))
        arrays = [self.arrays[name] for name in INPUTS]
        blocks = -(-count // plan.rows)
        if plan.language == "cuda":
            block, shared = plan.block(self.shape), self._shared_bytes(plan)
            faces = np.uint32(self.operator.trace.ghosts)
            self.kernel[blocks, block, shared](
                *numbers, np.uint32(self.region), state, self.integrals, data, *arrays, faces
            )
        else:
            half = self.integrals.size // 2
            regions = self.integrals[:half], self.integrals[half:]
            block = plan.lanes(self.shape), plan.rows
            levels = self.arrays["levels"]
            self.kernel[blocks, block](*numbers, state, *regions, data, levels, *arrays)


def usual_plan(shape: NodalShape, language: str) -> FusedPlan:
    """Blocks that leave the fewest threads of their warps idle, of few threads.

    In fp32 from N = 3 on, two turns of a loop are under way together: measured on an H200 at N = 3,
    where it is 1.11 times as fast.
    """
    nodes = 2 if language == "cuda" and shape.itemsize == 4 else 1
    lanes = -(-shape.Np // nodes)
    most = max(1, MOST_THREADS // lanes)

    def idle(rows: int) -> float:
        return padded(rows * lanes, WARP) / (rows * lanes)

    rows = min(range(-(-most // 3), most + 1), key=idle)
    plan = FusedPlan(language, rows, 1, nodes)
    if language == "numba":
        return plan
    registers = next(r for N, r in THREAD_REGISTERS[shape.itemsize] if shape.order <= N)
    blocks = REGISTERS // (registers * plan.block(shape))
    unroll = 2 if shape.itemsize == 4 and shape.order >= 3 else 1
    return replace(plan, blocks=max(1, blocks), unroll=unroll)


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


class DeviceLocalSteps(OnDevice):
    """Clustered Taylor steps on a device, in one launch per tick and one more per period.

    A period is recorded once and replayed, unless functions have to be evaluated by Python between
    the ticks, since they come in through the boundary.

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
        self.clock = launcher.device.zeros(1, np.float64)  # when the period begins
        self.replay, givers = None, solver._integrals(clusters)
        if givers is not None:
            give = partial(_launch_all, givers, self.clock, self.data)
            launches = partial(period, launcher, self.state, self.data, clusters, give)
            self.replay = launcher.device.capture(launches)

    def step(self, t: float) -> None:
        """A period from time t, for all elements."""
        if self.replay:
            self.clock[:] = t
            self.replay()
        else:
            period(self.launcher, self.state, self.data, self.clusters, partial(self._give, t))

    def _give(self, t: float, tick: int, last: int) -> None:
        """What comes in over the steps that end with a tick, of the clusters up to the last."""
        dt = self.clusters.dt
        for c in range(last + 1):
            self.given.integrate(c, t + (tick + 1) * dt, 2**c * dt)
        self.data[:] = self.launcher.device.array(self.given.data.ravel())


def period(
    launcher: LocalStage,
    state: Any,
    data: Any,
    clusters: Clusters,
    give: Callable[[int, int], None],
) -> None:
    """The launches of a period; before that of a tick ``give(tick, last)`` sets the data."""
    launcher.advance(state, data, -1, clusters.last, True)
    for tick in range(clusters.period):
        last = ending(tick, clusters.last)
        give(tick, last)
        launcher.advance(state, data, tick, last, tick + 1 < clusters.period)


def _launch_all(givers: Sequence[Give], clock: Any, data: Any, tick: int, last: int) -> None:
    """What comes in by launches."""
    for give in givers:
        give(clock, tick, last, data)
