"""The paper's operator on a device: volume and edge integrals, their sum, M^-1, Runge-Kutta."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache, partial
from typing import Any

import numpy as np

from dgbook.euler.kernels.add import make_add
from dgbook.euler.kernels.check import make_check
from dgbook.euler.kernels.face import make_face, trace_table
from dgbook.euler.kernels.rhs import make_rhs
from dgbook.euler.kernels.volume import gradient_table, make_volume
from dgbook.euler.plan import HEALTHY, FusedShape, PaperPlan
from dgbook.euler.reference import Operator
from dgbook.euler.tables import Tables
from dgbook.gpu import Device, Kernel
from dgbook.gpu.plan import choose
from dgbook.nodal.launching import Launcher, Launches
from dgbook.time import rk4

FIELDS = 4


@lru_cache(maxsize=256)
def kernels(tables: Tables, flux: str, plan: PaperPlan) -> dict[str, Kernel]:
    """The paper's kernels by name, each compiled once for equal arguments."""
    update = rk4.make_update(tables.dtype)
    return {
        "volume": make_volume(tables, plan),
        "face": make_face(tables, flux, plan),
        "add": make_add(tables, plan),
        "rhs": make_rhs(tables, plan),
        "intermediate": update.intermediate,
        "final": update.final,
        "check": make_check(tables.Np, tables.dtype, plan.layout),
    }


class PaperLauncher(Launcher):
    """An operator's arrays on a device in the paper's layout, and its kernels launched on them.

    ::

        launcher = PaperLauncher(operator, device)
        u = launcher.upload(values)
        work = launcher.work(u)
        launcher.step(u, work, (data, data, data), dt)

    A state is flat. In the paper's layout, "element", all degrees of freedom of an element lie
    side by side, at (element, field, node); in the layout "field" at (field, node, element).
    Geometry and links have the element, or the edge, fastest in either. The parts of a right-hand
    side can be launched, and timed, one by one; they leave in the arrays

    residual        R^v after `volume`, R after `add` (or `face`, with atomic additions)
    left, right     R^{f,l} and R^{f,r}, of the p+1 nodes on an edge in its running order. All
                    other entries are zero with this basis; the paper stores these, too.

    Parameters
    ----------
    operator : reference.Operator
        Its dtype is the kernels'.
    device : Device
        "cuda" or "simulator".
    plan : PaperPlan, optional
        If not given, what the tuner remembers for this GPU, or the paper's.

    Attributes
    ----------
    bad : (1,) int32 array of the device
        The smallest number of an element with an impossible node after a step, or `HEALTHY`; the
        steps put it there, whoever reads it resets it.

    Raises
    ------
    ValueError
        If the mesh is too large for 32-bit indices.
    """

    def __init__(self, operator: Operator, device: Device, plan: PaperPlan | None = None) -> None:
        tables = self.tables = operator.tables
        super().__init__(operator, device, tables.dtype)
        self.K, self.E = operator.mesh.K, len(operator.edges)
        self.size = FIELDS * tables.Np * self.K
        edge_size = FIELDS * tables.Nfp * self.E
        self._check_indices(max(self.size, edge_size))
        J = operator.jacobian
        geometry = np.vstack([operator.normal.T, operator.edge_jacobian])
        self.arrays = {
            "phi": self._flat(tables.phi_volume, self.real),
            "gradient": self._flat(gradient_table(tables), self.real),
            "metric": self._flat(J * operator.rx, self.real),
            "links": self._flat(operator.edges.T, np.int32),
            "kinds": self._flat(_or_one_zero(operator.kinds), np.int32),
            "geometry": self._flat(geometry, self.real),
            "nodes": self._flat(tables.edge_nodes, np.int32),
            "trace": self._flat(trace_table(tables), self.real),
            "edges": self._flat(operator.element_edges.T, np.int32),
            "sides": self._flat(operator.element_sides.T, np.int32),
            "inverse_mass": self._flat(tables.inverse_mass, self.real),
            "inverse_jacobian": self._flat(1 / J, self.real),
        }
        self.bad = device.array(np.array([HEALTHY], np.int32))
        self.residual = self.zeros()
        self.left, self.right = (device.zeros(edge_size, self.real) for _ in range(2))
        self._load(plan or choose(PaperPlan, FusedShape(tables.order, tables.dtype), device))

    def _load(self, plan: PaperPlan) -> None:
        self.plan = plan
        self.kernels = kernels(self.tables, self.operator.flux, plan.compiled)

    # -- states ----------------------------------------------------------------------------

    def part(self, states: Any, places: slice) -> Any:
        """States, flat (..., entries), of some elements: (..., 4, places, Np) on the device."""
        stack, Np = states.shape[:-1], self.tables.Np
        if self.plan.layout == "element":
            return states.reshape(*stack, -1, FIELDS, Np)[..., places, :, :].swapaxes(-3, -2)
        return states.reshape(*stack, FIELDS, Np, -1)[..., places].swapaxes(-1, -2)

    def work(self, u: Any) -> tuple[Any, Any, Any]:
        """What a step needs beside the state u: slope, next stage's state, sum of slopes."""
        return self.zeros(), self.zeros(), self.zeros()

    # -- launches --------------------------------------------------------------------------

    def _launch(self, name: str, threads: int, *arguments: Any) -> None:
        block = self.plan.threads
        self.kernels[name][-(-threads // block), block](*arguments)

    def volume(self, u: Any) -> None:
        """residual = R^v."""
        a = self.arrays
        self._launch("volume", self.K, u, a["phi"], a["gradient"], a["metric"], self.residual)

    def face(self, u: Any, data: Any) -> None:
        """left, right = R^{f,l}, R^{f,r}; with atomic additions residual += R^f."""
        atomic = self.plan.race == "atomic"
        out = (self.residual, self.residual) if atomic else (self.left, self.right)
        names = ("links", "kinds", "geometry", "nodes", "trace")
        self._launch("face", self.E, u, data, *(self.arrays[name] for name in names), *out)

    def add(self) -> None:
        """residual += what left and right hold for each element."""
        names = ("edges", "sides", "nodes")
        arrays = (self.arrays[name] for name in names)
        self._launch("add", self.K, self.left, self.right, *arrays, self.residual)

    def invert(self, out: Any) -> None:
        """out = - M^-1 residual / J: the paper's Res2RHS."""
        a = self.arrays
        self._launch("rhs", self.K, self.residual, a["inverse_mass"], a["inverse_jacobian"], out)

    def rhs(self, u: Any, data: Any, out: Any) -> None:
        """out = du/dt; `data` are the given states outside, flat (4 nb Ne,), or one zero."""
        integrals = partial(self.volume, u), partial(self.face, u, data)
        if self.plan.concurrent:
            self.device.concurrently(*integrals)
        else:
            for launch in integrals:
                launch()
        if self.plan.race == "split":
            self.add()
        self.invert(out)

    def check(self, u: Any) -> None:
        """bad = min(bad, the first element of u with an impossible node)."""
        self._launch("check", self.size // FIELDS, u, self.bad)

    def step(self, u: Any, work: tuple[Any, Any, Any], data: tuple[Any, ...], dt: float) -> None:
        """A step of the classical Runge-Kutta method, in place: chen, equation (9).

        Parameters
        ----------
        u : array
            The state at t; afterwards at t + dt.
        work : tuple
            As `work` made it.
        data : three arrays
            The given states outside at t, t + dt/2 and t + dt.
        dt : float
        """
        for launch, _ in self.stages(u, work, data, dt):
            launch()

    def stages(
        self, u: Any, work: tuple[Any, Any, Any], data: tuple[Any, ...], dt: float
    ) -> Iterator[Launches]:
        """As `step`, stage by stage."""
        slope, v, total = work

        def intermediate(stage: int, at: Any, start: Any) -> None:
            self.rhs(at, data[(stage + 1) // 2], slope)
            a, b = (self.real(dt * x) for x in (rk4.A[stage + 1], rk4.B[stage]))
            self._launch("intermediate", self.size, slope, u, start, total, v, a, b)

        def final() -> None:
            self.rhs(v, data[2], slope)
            self._launch("final", self.size, slope, total, u, self.real(dt * rk4.B[3]))
            self.check(u)

        yield partial(intermediate, 0, u, u), v
        yield partial(intermediate, 1, v, total), v
        yield partial(intermediate, 2, v, total), v
        yield final, u


def _or_one_zero(values: np.ndarray) -> np.ndarray:
    """The values, or one that nobody reads where there are none: no kernel takes an empty array."""
    return values if values.size else np.zeros(1)
