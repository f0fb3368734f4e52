"""What solvers of linear equations add: Runge-Kutta stages, and the longest step that is stable."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from types import ModuleType
from typing import Any, ClassVar

import numpy as np

from dgbook.arguments import check_choice, host_bytes
from dgbook.element import NodalElement
from dgbook.gpu import Device
from dgbook.mesh import Mesh
from dgbook.nodal.incoming import CombinedIncoming, Incoming, Launch
from dgbook.nodal.launching import PIECE, Launches, pieces
from dgbook.nodal.local import (
    Choice,
    Clusters,
    CoreLocalSteps,
    Costs,
    HostLocalSteps,
    choose,
    damping,
)
from dgbook.nodal.local_cores import LocalCores
from dgbook.nodal.local_device import DeviceLocalSteps, Give, LocalStage
from dgbook.nodal.solving import (
    DeviceStepper,
    HostStepper,
    March,
    NodalSolver,
    check_done,
    check_number,
)
from dgbook.nodal.spectrum import VECTORS, Found, field_of_values
from dgbook.time import lsrk45, ndb14, ndb14_factored, steps
from dgbook.time.factors import through
from dgbook.time.stability import accurate_angle, longest_steps

METHODS = {"lsrk45": lsrk45, "ndb14": ndb14, "ndb14_factored": ndb14_factored}
"""By name the Runge-Kutta methods that the kernels can take, the first two with two registers."""
FEW_STEPS = 50
"""Where ``cfl_dt()`` needs fewer steps than this, looking for a longer one costs about as much."""
SAFETY = 0.95
"""Of the longest step that the eigenvalues found allow; they are known to a percent or two."""
FIELD_SAFETY = 0.97
"""And of the one that the field of values allows: the search has seen nearly all of it."""
NOISE = 2**20
"""Random numbers, repeated where a state has more: it has a part of every eigenvector."""
ERROR, PERIODS = 1e-6, 10
"""A wave that a mesh resolves to this error after so many periods gets steps that add no more."""
WAVELENGTH = (
    *(2039.6, 106.58, 26.146, 10.774, 5.791, 3.6346, 2.5186, 1.8642),
    *(1.4518, 1.1707, 0.97178, 0.82404, 0.71175, 0.62314, 0.55263),
)
"""Elements per wavelength with that error, on a uniform line with the upwind flux: N = 1 to 15."""


LOCAL = 1.95
"""The longest Taylor step times the rate at which fluxes damp; 2 is where they overshoot."""
USUAL = (3.4, 4.7, 5.9, 6.6, 7.3, 7.8, 8.1)
"""`stable_dt` over `cfl_dt` with LSRK4(5), on the graded mesh of an airplane: N = 1 to 7."""
REACH = 4.657
"""How far LSRK4(5) is stable on the real axis."""
FACTORED_STAGE = 0.88
"""What a stage of the factored form costs, in those of the low-storage form.

The record maxwell/factored has 0.79 to 0.96.
"""
UPDATE = 1.6
"""What a Taylor step of an element costs, in Runge-Kutta stages: measured on cores, N = 2 and 3."""
PASS, GIVEN = 4_000, 30_000
"""Numbers of a state that a stage could treat while a pass over elements begins, and while Python
evaluates what comes in."""
GPU_UPDATE = {"cuda": {4: 0.72, 8: 0.96}, "numba": {4: 0.98, 8: 1.05}}
"""N + 1 times this a Taylor step of an element costs on a GPU, by the language of its kernel and
the size of a number, in stages of the Bernstein basis in CUDA C++.

Maxwell's equations on an H200, a launch for all of 706,108 elements. In CUDA C++ 0.80 and 2.11 ns
per element in fp32 at N = 2 and 3, beside stages of 0.378 and 0.726; in fp64 at N = 3 4.77 beside
1.24. In Numba, at N = 3, 2.84 and 5.20. Other orders and acoustics are not measured.
"""
NODAL_STAGE = {4: 1.4, 8: 1.15}
"""What a stage of the nodal basis costs, in those of the Bernstein basis, by the size of a number.

The record maxwell/bases, N = 1 to 4: 1.31 to 1.49 in fp32, 1.05 to 1.17 in fp64.
"""
GPU_TICK, GPU_STAGE = 17_000, 3_000
"""On a GPU, in numbers per multiprocessor: what a stage could treat while a launch of Taylor steps
begins and its threads wait for each other, or one of a stage. Measured with the above, on meshes of
7,623 to 706,108 elements: launches for 19 to 1,777 elements take 14 to 18 microseconds, and stages
2 to 3 more than in proportion to the elements."""
GPU_GIVEN = 100_000
"""The same while Python evaluates what comes in: estimated, not measured."""


class LinearSolver(NodalSolver):
    """Nodal DG in space and low-storage or factored Runge-Kutta in time, for linear equations.

    Attributes
    ----------
    asked_method : str
        The name of the Runge-Kutta method, or "auto".
    local_cores : type
        The family's launcher of local time steps on processor cores, if it has one.
    local_stage : type
        And that on a GPU.
    basis : str
        "nodal" or "bernstein", of families with local time steps.
    """

    local_cores: ClassVar[type[LocalCores]]
    local_stage: ClassVar[type[LocalStage]]
    basis: str

    def __init__(
        self, mesh: Mesh, order: int, dtype: str, device: Device | str, method: str
    ) -> None:
        check_choice("method", method, ("auto", *METHODS))
        super().__init__(mesh, order, dtype, device)
        self.asked_method = method

    @cached_property
    def method(self) -> ModuleType:
        """The Runge-Kutta method; of "auto" the one of `usual_method`."""
        if self.asked_method != "auto":
            return METHODS[self.asked_method]
        return usual_method(self.methods, self.element.order, self.cfl_dt(), self.resolved_period)

    @property
    def methods(self) -> tuple[ModuleType, ...]:
        """Those of which "auto" is one: LSRK4(5), and 14 stages, factored if kernels can."""
        return lsrk45, ndb14_factored if self._takes_stages else ndb14

    @property
    def _takes_stages(self) -> bool:
        """Whether a kernel takes a stage at once, so that it can be one of a factored method."""
        return self.path == "fused" or self.device.is_host

    @property
    def factored(self) -> bool:
        """Whether the method is a product of short steps, see `dgbook.time.ndb14_factored`."""
        return self.method is ndb14_factored

    def take_path(
        self,
        path: str,
        plan: Any,
        paths: Mapping[str, tuple],
        flux: str = "",
        fused: Collection[str] = ("",),
    ) -> None:
        """As `NodalSolver.take_path`.

        Raises
        ------
        ValueError
            Also for a factored method on a device with kernels that take no whole stage.
        """
        super().take_path(path, plan, paths, flux, fused)
        if self.asked_method == "ndb14_factored" and not self._takes_stages:
            raise ValueError(
                f"method = 'ndb14_factored' with path {path!r}; allowed: path 'fused', whose "
                "kernel takes a stage at once, or another method"
            )

    @cached_property
    def launcher(self) -> Any:
        """The operator on the device, made when first needed, for stages of the method."""
        launcher = super().launcher
        return launcher.with_factors() if self.factored else launcher

    def memory_bytes(self) -> int:
        """As `NodalSolver.memory_bytes`; with a factored method kernels need no residual."""
        state = self.mesh.K * len(self.fields) * self.element.Np * self.dtype.itemsize
        saved = self.factored and self.device.kind != "reference"
        return super().memory_bytes() - saved * state

    # -- what a family says ------------------------------------------------------------------

    @abstractmethod
    def cfl_dt(self) -> float:
        """A stable step by a closed formula, several times as short as need be."""

    @abstractmethod
    def _speeds(self) -> np.ndarray:
        """Of the fastest wave in each element, (K,)."""

    def _damped(self) -> np.ndarray:
        """In each element the speed times the most that a flux damps beside upwind's, (K,).

        Of families with local time steps; upwind's is that of two equal impedances.

        Raises
        ------
        ValueError
            Of others, and of a flux that damps nothing.
        """
        check_number("local")

    def _local_launcher(self, clusters: Clusters) -> LocalCores | LocalStage:
        """The launcher of local time steps."""
        make = self.local_cores if self.device.kind == "cpu" else self.local_stage
        return make(self.operator, self.device, clusters)

    def _integrals(self, clusters: Clusters) -> Sequence[Give] | None:
        """What integrates incoming fields on the device; None if Python has to."""
        return None if self.operator.sources else ()

    def _launches(self) -> Sequence[Launch] | None:
        """What evaluates incoming fields on the device, see `Incoming`."""
        return None if self.operator.sources else ()

    def _unknowns(self, u: Any) -> Any:
        """What the operator works on, of nodal values (..., Np) of the host or a device."""
        return u

    def _nodal(self, unknowns: Any) -> Any:
        """Nodal values of what the operator works on."""
        return unknowns

    # -- what all have -----------------------------------------------------------------------

    def rhs(self, u: np.ndarray, t: float = 0.0) -> np.ndarray:
        """du/dt, (n, K, Np)."""
        u = self._state(u)
        if self.device.kind == "reference":
            return self._nodal(self.reference.rhs(self.operator, self._unknowns(u), t))
        incoming, out = self.incoming(), self.launcher.zeros()
        incoming.evaluate(t)
        self.launcher.rhs(self.launcher.upload(u, self._unknowns), incoming.data, out)
        return self.launcher.download(out, self._nodal)

    def incoming(self) -> Incoming:
        """What comes in through the boundary, on the device."""
        given = self.operator, self.device, self.reference.boundary_data, self._launches()
        if self.factored:
            return CombinedIncoming(*given, self.method.TIMES, self.method.WEIGHTS)
        return Incoming(*given)

    @cached_property
    def spectrum(self) -> Found | None:
        """The operator's field of values in the energy norm, and eigenvalues.

        It is found once, by Arnoldi's method with the right-hand sides of this solver on its
        device, 20 to 100 of them, and `spectrum.VECTORS` states of memory. None where memory does
        not hold those states.
        """
        shape = (len(self.fields), self.mesh.K, self.element.Np)
        state = int(np.prod(shape)) * self.dtype.itemsize
        memory = self.device.memory_bytes or host_bytes()
        if self.memory_bytes() + (VECTORS + VECTORS // 2) * state > memory:
            return None
        start = np.resize(noise(self.dtype), shape)
        if self.device.kind != "reference":
            start = self.launcher.upload(start)
        stable = partial(longest_steps, self.method)
        return field_of_values(self._product(), start, stable, self._energies, self.device)

    def stable_dt(self) -> float:
        """A step close to the longest that is stable.

        With it the operator's field of values lies inside of the Runge-Kutta method's region of
        stability, and its eigenvalues with some room to spare, see `dgbook.nodal.spectrum`.
        Where these are not found it is ``cfl_dt()``. The first call computes it, later ones
        remember it.
        """
        return self.cfl_dt() if self.spectrum is None else safe_step(self.method, self.spectrum)

    @cached_property
    def resolved_period(self) -> float:
        """Of the shortest wave that the elements resolve, see `accurate_dt`."""
        return resolved_period(self.element, self.jacobian, self._speeds())

    def accurate_dt(self) -> float:
        """The step above which the Runge-Kutta method's own error may show.

        Of a wave that elements of this order resolve to `ERROR` after `PERIODS` periods, time adds
        no more to the error. The elements are those of a mesh that is uniform, as large as this one
        has them: the median by volume of the time in which a wave crosses an element, a corner of a
        cube. Where the mesh is graded its smallest elements make `stable_dt` shorter.
        """
        return accurate_step(self.method, self.resolved_period)

    def _default_dt(self, u: np.ndarray, t: float, t_end: float) -> float:
        """The shorter of ``stable_dt()`` and ``accurate_dt()``, but not below ``cfl_dt()``.

        Where ``cfl_dt()`` takes fewer than `FEW_STEPS`, it is that.
        """
        dt = self.cfl_dt()
        if few_steps(t, t_end, dt):
            return dt
        return max(dt, min(self.stable_dt(), self.accurate_dt()))

    def local_steps(self, span: float) -> Choice:
        """Local time steps for a run that takes so much time, and whether they pay.

        Raises
        ------
        ValueError
            If the family has none, the flux is the central one, or the mesh is in parts.
        """
        rates = self._damped()
        if self.mesh.ghosts:
            check_number("local")
        limits = LOCAL / (rates * damping(self.element, self.operator.face_scale))
        order, shortest = self.element.order, self.cfl_dt()
        usual = usual_step(self.method, order, shortest, self.resolved_period)
        numbers = len(self.fields) * self.element.Np
        costs = self._costs(numbers)
        return choose(self.mesh, limits, span, costs, len(self.method.A), usual)

    def _costs(self, numbers: int) -> Costs:
        """What local steps cost on this device; elements have so many numbers."""
        if self.device.is_host:
            begin = (PASS + GIVEN * bool(self.operator.sources)) / numbers
            return Costs(UPDATE, begin, begin)
        size, given = self.dtype.itemsize, GPU_GIVEN * (self._launches() is None)
        unit = NODAL_STAGE[size] if self.basis == "nodal" else 1.0
        update = GPU_UPDATE[self.local_stage.languages[0]][size] * (self.element.order + 1)
        each = (self.device.multiprocessors or 1) / numbers / unit
        return Costs(update / unit, (GPU_TICK + given) * each, (GPU_STAGE + given) * each)

    def march(
        self,
        u: np.ndarray,
        t_end: float,
        dt: float | str | None = None,
        t: float = 0.0,
        done: int = 0,
    ) -> March:
        """As `NodalSolver.march`; with dt="local" a step is a period of local time steps.

        Where `local_steps` expects them to be slower than global ones, it says so, by a warning,
        and takes those.
        """
        if dt != "local":
            return super().march(u, t_end, dt, t, done)
        steps(t, t_end, 1.0)  # are the times in order?
        choice = self.local_steps(t_end - t)
        if not choice.pays:
            warnings.warn(choice.sentence, stacklevel=2)
            return super().march(u, t_end, None, t, done)
        u, clusters, count = self._state(u), choice.clusters, choice.count
        check_done(done, count)
        with self._enough_memory():
            if self.device.kind == "reference":
                stepper = HostLocalSteps(self, u, clusters)
            else:
                launcher, on_cores = self._local_launcher(clusters), self.device.kind == "cpu"
                kernels = CoreLocalSteps if on_cores else DeviceLocalSteps
                stepper = kernels(self, launcher, u, clusters)
        return March(stepper, t, clusters.period * clusters.dt, count, done)

    def _units(self, dtype: np.dtype | type) -> np.ndarray:
        """Nodal values of each unknown of an element alone, (Np, Np), computed in `dtype`."""
        return self._nodal(np.eye(self.element.Np, dtype=dtype)[None])[0]

    def _energies(self, rows: Any) -> np.ndarray:
        """Inner products in the energy norm of the operator's unknowns, by twos, on the host."""
        on_host = self.device.kind == "reference"
        shape = (len(rows), len(self.fields), self.mesh.K, self.element.Np)
        elements = np.arange(self.mesh.K) if on_host else self.launcher.elements
        # From unknowns to coefficients of orthonormal polynomials, and what fields count for.
        unit = self._units(self.dtype)
        modes = np.asarray(unit @ self.element.inverse_vandermonde.T, like=rows)
        weights = np.sqrt(self._energy_weights(slice(None)) * self.jacobian)
        sums = np.zeros((len(rows), len(rows)))
        for places in pieces(self.mesh.K, PIECE // 8):
            if on_host:
                values = rows.reshape(shape)[:, :, places]
            else:
                values = self.launcher.part(rows, places)
            weight = np.asarray(weights[:, elements[places]], like=rows)
            flat = (values @ modes * weight[..., None]).reshape(len(rows), -1)
            sums += self.device.to_numpy(flat @ flat.T)
        return sums

    def _product(self) -> Callable[[Any, Any], None]:
        """``apply(x, y)``: y = du/dt of the state x, both on the device, where nothing comes in."""
        if self.device.kind == "reference":
            closed = replace(self.operator, sources=())

            def apply(x: np.ndarray, y: np.ndarray) -> None:
                y[:] = self.reference.rhs(closed, x)

            return apply
        launcher, nothing = self.launcher, self.incoming().data
        return lambda x, y: launcher.rhs(x, nothing, y)

    def _host_stepper(self, u: np.ndarray, dt: float) -> HostSteps:
        return FactoredHostSteps(self, u, dt) if self.factored else HostSteps(self, u, dt)

    def _stepper(self, u: np.ndarray, t: float, dt: float, done: int) -> DeviceSteps:
        return DeviceSteps(self, u, t, dt, done)


def require_damping(flux: str) -> None:
    """Raise a ValueError for the central flux, with which local time steps are not stable."""
    if flux == "central":
        raise ValueError(
            "dt = 'local' with flux 'central', which damps nothing, so that the energy grows; "
            "allowed: a number, or another flux"
        )


def few_steps(t: float, t_end: float, dt: float) -> bool:
    """Whether there are so few steps that to look for longer ones would cost about as much."""
    count, _ = steps(t, t_end, dt)
    return count < FEW_STEPS


def usual_step(method: ModuleType, order: int, shortest: float, period: float) -> float:
    """What a solver's default step is likely to be with a method, without a search.

    The longest stable step is estimated by that on the mesh of an airplane, see `USUAL`.

    Parameters
    ----------
    method : module
        Of `METHODS`.
    order : int
    shortest : float
        ``cfl_dt()``.
    period : float
        `LinearSolver.resolved_period`.
    """
    reach = float(longest_steps(method, np.array([-1.0]))[0])
    stable = USUAL[min(order, len(USUAL)) - 1] * shortest * reach / REACH
    return max(shortest, min(stable, accurate_step(method, period)))


def usual_method(
    methods: Collection[ModuleType], order: int, shortest: float, period: float
) -> ModuleType:
    """Of some methods the one whose stages for the same time are expected to cost least.

    LSRK4(5) where its error is what limits both steps, as on uniform meshes at high order, and else
    the 14 stages. The parameters are those of `usual_step`.
    """

    def cost(method: ModuleType) -> float:
        each = FACTORED_STAGE if method is ndb14_factored else 1.0
        return each * len(method.A) / usual_step(method, order, shortest, period)

    return min(methods, key=cost)


def name_of(method: ModuleType) -> str:
    """The name of one of `METHODS`."""
    return next(name for name, one in METHODS.items() if one is method)


def safe_step(method: ModuleType, spectrum: Found) -> float:
    """The longest step of which `LinearSolver.stable_dt` says that it is stable."""
    of_field = longest_steps(method, spectrum.field).min()
    of_eigenvalues = longest_steps(method, spectrum.eigenvalues).min()
    return float(min(FIELD_SAFETY * of_field, SAFETY * of_eigenvalues))


def resolved_period(element: NodalElement, jacobian: np.ndarray, speeds: np.ndarray) -> float:
    """That of `LinearSolver.resolved_period`, of all elements' determinants and speeds, (K,)."""
    crossing = 2 * jacobian ** (1 / element.dim) / speeds
    order = np.argsort(crossing)
    volume = np.cumsum(jacobian[order])
    median = crossing[order][np.searchsorted(volume, volume[-1] / 2)]
    return WAVELENGTH[element.order - 1] * median


def accurate_step(method: ModuleType, period: float) -> float:
    """The step of `LinearSolver.accurate_dt`."""
    return period * accurate_angle(method, ERROR, PERIODS) / (2 * np.pi)


def noise(dtype: np.dtype) -> np.ndarray:
    """The random numbers of which the search for eigenvalues begins with as many as it needs."""
    return np.random.default_rng(0).standard_normal(NOISE, np.float32).astype(dtype)


class HostSteps(HostStepper):
    """Time steps by NumPy, in the operator's unknowns."""

    def __init__(self, solver: LinearSolver, u: np.ndarray, dt: float) -> None:
        super().__init__(solver, solver._unknowns(u), dt, solver.method.stages)

    def _rhs(self, u: np.ndarray, t: float) -> np.ndarray:
        return self.solver.reference.rhs(self.solver.operator, u, t)

    def download(self) -> np.ndarray:
        """A copy of the state, as nodal values."""
        return self.solver._nodal(self.u).copy()


class FactoredHostSteps(HostSteps):
    """The same by a factored method; what is given is evaluated once at each time of a step."""

    def stages(self, t: float) -> Iterator[np.ndarray]:
        """As `HostStepper.stages`."""
        solver, operator, method = self.solver, self.solver.operator, self.solver.method
        given = []
        for faces, function in operator.sources:
            at = operator.boundary_points[:, faces]
            values = (function(*at, t + time * self.dt) for time in method.TIMES)
            given.append((faces, [solver._fields(value, at.shape[1:]) for value in values]))

        def rate(v: np.ndarray, stage: int) -> np.ndarray:
            weights = method.WEIGHTS[stage]
            sources = tuple((faces, partial(_combined, weights, values)) for faces, values in given)
            slope = solver.reference.rhs(replace(operator, sources=sources), v, t)
            slope[:, solver.mesh.owned :] = 0
            return slope

        return through(method.STAGES, rate, self.u, self.dt)


def _combined(
    weights: Sequence[float], values: Sequence[np.ndarray], *place_and_time: Any
) -> np.ndarray:
    """A function on the boundary whose values in a stage are known."""
    return np.tensordot(weights, values, axes=1)


class DeviceSteps(DeviceStepper):
    """Time steps by a launcher, in the operator's unknowns."""

    def __init__(self, solver: LinearSolver, u: np.ndarray, t: float, dt: float, done: int) -> None:
        launcher, self.dt, self.method = solver.launcher, dt, solver.method
        self.nodal = solver._nodal
        self.incoming = solver.incoming()
        self.incoming.start(t, dt, done)
        self.factored = solver.factored
        self.res = None if self.factored else launcher.zeros()
        states = [launcher.upload(u, solver._unknowns)]
        if not launcher.in_place:
            states.append(launcher.zeros())  # the first stage fills it
        super().__init__(launcher, states, self.incoming.live, len(self.method.A))

    def _stages(self, start: int, t: float) -> Callable[[], Iterator[Launches]]:
        numbers = self.method, self.dt, start, t
        if self.factored:
            return partial(_factored_step, self.launcher, self.incoming, self.states, *numbers)
        return partial(_step, self.launcher, self.incoming, self.states, self.res, *numbers)

    def download(self) -> np.ndarray:
        """The newest state as nodal values."""
        return self.launcher.download(self.state, self.nodal)

    def _mass(self, solver: LinearSolver) -> np.ndarray:
        units = solver._units(np.float64)
        return units @ solver.element.mass @ units.T


def _step(
    launcher: Any,
    incoming: Incoming,
    states: list[Any],
    res: Any,
    method: ModuleType,
    dt: float,
    start: int,
    t: float,
) -> Iterator[Launches]:
    """The stages of a step from states[start] at time t, see `DeviceStepper._stages`."""
    for stage, (a, b, c) in enumerate(zip(method.A, method.B, method.C, strict=True)):
        u, new = (states[(start + stage + i) % len(states)] for i in range(2))
        incoming.stage(t, c * dt)
        yield partial(launcher.stage, u, res, new, incoming.data, a, b, dt), new
    incoming.tick()


def _factored_step(
    launcher: Any,
    incoming: CombinedIncoming,
    states: list[Any],
    method: ModuleType,
    dt: float,
    start: int,
    t: float,
) -> Iterator[Launches]:
    """The same of a factored method: each stage changes the array that the last one has read."""
    incoming.step_begins(t)
    for stage, (a, b, tau) in enumerate(method.STAGES):
        u, new = (states[(start + stage + i) % 2] for i in range(2))
        incoming.combine(stage)
        yield partial(launcher.stage, u, new, new, incoming.data, a, b, tau * dt), new
    incoming.tick()
