"""The solver: allocate, loop, look for states that no gas can have, return."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from dgbook.euler import reference
from dgbook.euler.cores import Cores
from dgbook.euler.exact import Stream
from dgbook.euler.launch.fused import FusedLauncher, FusedPlan
from dgbook.euler.launch.paper import PaperLauncher
from dgbook.euler.plan import HEALTHY, PaperPlan
from dgbook.euler.problem import FIELDS, entropy_density, sound_speed, velocity
from dgbook.gpu import Device
from dgbook.mesh import Mesh
from dgbook.nodal.incoming import Incoming
from dgbook.nodal.launching import Launches, pieces
from dgbook.nodal.solving import (
    ELEMENTS_AT_A_TIME,
    BlowUpError,
    DeviceStepper,
    HostStepper,
    March,
    NodalSolver,
    Watch,
)
from dgbook.time import rk4

PATHS = {"fused": (FusedLauncher, FusedPlan), "paper": (PaperLauncher, PaperPlan)}
"""By name the launcher and the plan that it takes; the first is the default."""
CORE_STATES = 7
"""Arrays as large as a state that a run on cores has at the same time."""
REFERENCE_STATES = 11
"""Arrays as large as a state that a run by the reference has at the same time: measured."""
LATE = (0.0, 0.5, 1.0)
"""When states outside are asked for, in steps after the beginning of one."""
ROE = (2.785, 4.159, 3.902, 3.761, 3.350, 3.161, 2.846)
CFL = {"roe": ROE, "hllc": ROE, "rusanov": (2.785, 4.146, 3.786, 3.525, 3.076, 2.817, 2.505)}
"""By flux and degree p, how many times 1 / ((2p+1) c sum_f Fs) the classical Runge-Kutta method's
step may be for a gas at rest on a periodic mesh of right triangles: Fourier analysis of the
linearized operator over all wave vectors. A gas that moves allows more, in these units."""
MARGIN = 0.9
"""The share of it that `Solver.stable_dt` takes, for flows that become faster."""
CHECK_EVERY = 32
"""Steps on a device after which the host asks whether a state was impossible."""


class FlowError(BlowUpError):
    """The flow has left what a gas can be: a density or a pressure is not positive, or not finite.

    Attributes
    ----------
    time : float
        Of the last good state.
    element : int
        The first element at fault after that time.
    state : (4, K, Np) array
        The last good state.
    """

    def __init__(self, what: str, time: float, element: int, state: np.ndarray) -> None:
        super().__init__(
            f"{what} in element {element}, in the steps after t = {time:.6g}: the flow is not "
            "resolved, or the step is too long. Allowed are a finer mesh, another order, the flux "
            "'rusanov' or a smaller dt; this error's `state` is the last good one",
            time,
            state,
        )
        self.element = element


class Solver(NodalSolver):
    """Quadrature DG in space and the classical Runge-Kutta method in time for the Euler equations.

    ::

        vortex = exact.Vortex(period=10.0)
        solver = euler.Solver(box((32, 32), -5.0, 5.0, periodic=True), 2)
        u = solver.interpolate(lambda x, y: vortex(x, y, 0.0))
        u = solver.run(u, t_end=10.0)

    States are NumPy arrays of shape (4, K, Np): density, momentum rho u and rho v, total energy
    rho E.

    Parameters
    ----------
    mesh : Mesh
        Of triangles.
    order : int
        Polynomial degree p, 0 to 6.
    dtype : {"float64", "float32"}
    device : Device or {"auto", "cuda", "cpu", "reference", "simulator"}
        "cpu" is compiled kernels on all processor cores, "reference" the NumPy operator.
    flux : {"roe", "rusanov", "hllc"}
    boundary : condition or dict
        For each name in ``mesh.boundary`` "wall", or a function of (x, y, t) that returns the four
        conservative fields outside, such as `exact.Stream`. A condition alone stands for all names.
        Functions other than streams are evaluated by Python, three times a step: a GPU then waits.
    path : {"fused", "paper"}, optional
        Which kernels: one a stage, the default, or the paper's.
    plan : FusedPlan or PaperPlan, optional
        How they are launched; if not given, what the tuner remembers for this GPU, or a default.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as above; the message names it.
    RuntimeError
        For "cuda" where there is no CUDA device.

    Attributes
    ----------
    x : (2, K, Np) float64
        Coordinates of the nodes.
    operator : reference.Operator
    device : Device
    path : str

    Notes
    -----
    **States that no gas can have.** A density or pressure that is not positive has no speed of
    sound, and a step later everything is NaN. The reference checks every step, at the nodes and
    at all quadrature points, and the state before it is kept: the error knows the step. On a
    device that would be a wait for the host in every step. There a kernel looks at the nodes of
    each new state and writes the number of an element at fault to one integer, which the host reads
    once in 32 steps, when it also copies the state, and before it hands out a state. Where the
    integer tells of a fault, the steps since the copy are taken again, with the host's own check of
    each: error, time and element are those that the host would have found. (Of what is impossible
    at quadrature points only, a device learns when nodes follow.) NaN compares false with
    everything, so that both ask "not p > 0" and not "p <= 0".
    """

    checked = True
    fields = FIELDS
    reference = reference
    cores = Cores

    def __init__(
        self,
        mesh: Mesh,
        order: int,
        dtype: str = "float64",
        device: Device | str = "auto",
        flux: str = "roe",
        boundary: str | Callable | dict[str, str | Callable] | None = None,
        path: str | None = None,
        plan: FusedPlan | PaperPlan | None = None,
    ) -> None:
        self.take_path(path or next(iter(PATHS)), plan, PATHS)
        super().__init__(mesh, order, dtype, device)
        self.operator = reference.assemble(mesh, self.element, flux, boundary, self.dtype.name)
        self.jacobian = self.operator.jacobian

    def rhs(self, u: np.ndarray, t: float = 0.0) -> np.ndarray:
        """du/dt, (4, K, Np)."""
        u = self._state(u)
        if self.device.kind == "reference":
            return reference.rhs(self.operator, u, t)
        out, given = self.launcher.zeros(), incoming(self.operator, self.device)[0]
        given.evaluate(t)
        self.launcher.rhs(self.launcher.upload(u), given.data, out)
        return self.launcher.download(out)

    def stable_dt(self, u: np.ndarray) -> float:
        """A stable step from the state u, 0.9 C / ((2p+1) max_k (|v| + c)_k sum_f Fs).

        C is `CFL`, from the spectrum of the linearized operator with this flux and degree on right
        triangles. On irregular meshes, where the smallest element decides alone, it is cautious.
        A run keeps its step: give it a shorter one if the flow will become faster.
        """
        u = self._state(u).astype(np.float64)
        fastest = (np.hypot(*velocity(u)) + sound_speed(u)).max(axis=1)
        rate = fastest * self.operator.face_scale.sum(axis=1)
        p = self.element.order
        return MARGIN * CFL[self.operator.flux][p] / ((2 * p + 1) * float(rate.max()))

    def _fault(self, u: np.ndarray) -> tuple[str, int] | None:
        return reference.unphysical(self.operator, u)

    def _failure(self, what: str, time: float, element: int, state: np.ndarray) -> FlowError:
        return FlowError(what, time, element, state)

    def _default_dt(self, u: np.ndarray, t: float, t_end: float) -> float:
        return self.stable_dt(u)

    def watch(self, march: March) -> FlowWatch:
        """What looks at the states of a march: its steps do, as the class says."""
        return FlowWatch(march)

    def entropy(self, u: np.ndarray) -> float:
        """The integral of -rho s / (gamma - 1), s = log(p / rho^gamma), by the volume quadrature.

        A smooth flow keeps it, a shock lowers it; where it grows, the scheme is at fault.
        """
        u, tables = self._state(u).astype(np.float64), self.operator.tables
        total = 0.0
        for some in pieces(self.mesh.owned, ELEMENTS_AT_A_TIME):
            density = entropy_density(u[:, some] @ tables.phi_volume.T.astype(np.float64))
            total += float(self.jacobian[some] @ (density @ tables.w_volume.astype(np.float64)))
        return total

    def _numbers(self) -> tuple[int, int]:
        """Fused: the state, its copy and three stages.

        The paper's path: state, copy, slope, stage, sum and residual, and what 3/2 edges an element
        keep for either side. The reference, as measured: 11 states, and 2 more at the points in an
        element and 3 at those of an edge.
        """
        tables = self.operator.tables
        arrays = {
            "fused": (5, 0),
            "paper": (6, 3 * tables.Nfp),
            "cpu": (CORE_STATES, 3 * tables.Nfp),
            "reference": (REFERENCE_STATES, 2 * tables.Nq + 3 * tables.Ne),
        }
        kind = self.device.kind
        states, others = arrays[kind if kind in arrays else self.path]
        return states * tables.Np + others, 32

    def _stepper(self, u: np.ndarray, t: float, dt: float, done: int) -> DeviceSteps:
        return DeviceSteps(self.launcher, u, t + done * dt, dt)

    def _host_stepper(self, u: np.ndarray, dt: float) -> HostSteps:
        return HostSteps(self, u, dt, rk4.stages)


class FlowWatch(Watch):
    """Leaves the looking to the steps, which know what a gas can be."""

    def look(self, closely: bool = False) -> None:
        """Have steps on a device asked about that nobody has asked about yet."""
        if closely:
            self.march.stepper.check()


def incoming(operator: reference.Operator, device: Device) -> tuple[Incoming, ...]:
    """The given states outside at the three times of a step; streams do not change: one, thrice."""
    if all(isinstance(function, Stream) for _, function in operator.sources):
        return 3 * (Incoming(operator, device, reference.boundary_data, ()),)
    return tuple(Incoming(operator, device, reference.boundary_data) for _ in LATE)


class DeviceSteps(DeviceStepper):
    """Time steps by kernels, recorded where states outside do not change.

    Every 32 steps, and whenever a state is handed out, it asks the kernels whether a state since
    the last copy was impossible; see `Solver`.

    Parameters
    ----------
    launcher : FusedLauncher or PaperLauncher
        Others may use it as well: this object has an integer of its own for impossible states.
    u : (4, K, Np) array
    t : float
        Where the steps begin.
    dt : float
    """

    def __init__(
        self, launcher: FusedLauncher | PaperLauncher, u: np.ndarray, t: float, dt: float
    ) -> None:
        launcher = copy.copy(launcher)
        launcher.bad = launcher.device.array(np.array([HEALTHY], np.int32))
        self.incoming, self.dt = incoming(launcher.operator, launcher.device), dt
        for given in self.incoming:
            given.start(t, dt)
        state = launcher.upload(u)
        self.backup = state.copy()
        self.since: list[float] = []  # at which times steps began that the backup does not know
        self.work = launcher.work(state)
        super().__init__(launcher, [state], self.incoming[0].live, len(rk4.B))

    def _stages(self, start: int, t: float) -> Callable[[], Iterator[Launches]]:
        for given, late in zip(self.incoming, LATE, strict=True):
            given.stage(t, late * self.dt)
        data = tuple(given.data for given in self.incoming)
        return partial(self.launcher.stages, self.states[start], self.work, data, self.dt)

    def step(self, t: float) -> None:
        """One step from time t.

        Raises
        ------
        FlowError
            If this or an earlier step ended in a state that no gas can have.
        """
        super().step(t)
        self.since.append(t)
        if len(self.since) == CHECK_EVERY:
            self.check()

    def check(self) -> None:
        """Ask whether a step since the last copy failed, and copy the state if none did.

        Raises
        ------
        FlowError
            Of the first step that ended in a state that no gas can have.
        """
        if not self.since:
            return
        if int(self.launcher.device.to_numpy(self.launcher.bad)[0]) != HEALTHY:
            self._retrace()
        self.backup[:] = self.state
        self.since = []

    def _retrace(self) -> None:
        """Take the steps since the backup again, and look at each state as the host does.

        If that finds nothing, rounding told apart what is zero here and a little less there.
        """
        operator = self.launcher.operator
        self.state[:] = self.backup
        self.launcher.bad[:] = HEALTHY
        before = super().download()
        for t in self.since:
            super().step(t)
            after = super().download()
            if fault := reference.unphysical(operator, after):
                what, element = fault
                raise FlowError(what, t, element, before)
            before = after

    def download(self) -> np.ndarray:
        """The newest state as a NumPy array; raises `FlowError` as `step` does."""
        self.check()
        return super().download()

    def raw(self) -> np.ndarray:
        """The newest state in the launcher's layout; raises `FlowError` as `step` does."""
        self.check()
        return super().raw()

    def restore(self, raw: np.ndarray) -> None:
        """Replace the newest state by what `raw` returned."""
        super().restore(raw)
        self.backup[:] = self.state
        self.since = []


class HostSteps(HostStepper):
    """Time steps by NumPy, each of them checked."""

    def check(self) -> None:
        """Nothing: `step` has looked."""

    def step(self, t: float) -> None:
        """One step from time t.

        Raises
        ------
        FlowError
            If it ends in a state that no gas can have.
        """
        before = self.u.copy()
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):  # checked below
            super().step(t)
            fault = reference.unphysical(self.solver.operator, self.u)
        if fault:
            what, element = fault
            raise FlowError(what, t, element, before)
