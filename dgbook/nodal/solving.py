"""What solvers on simplices share: states, the time loop, norms and errors."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
from tqdm.auto import tqdm

from dgbook.arguments import bytes_text, check_choice
from dgbook.element import NodalElement, barycentric, simplex_quadrature
from dgbook.gpu import Device
from dgbook.gpu.device import as_device
from dgbook.mesh import Mesh, nodes_xyz
from dgbook.nodal.cores import CoreLauncher
from dgbook.nodal.launching import Launches, pieces
from dgbook.time import steps
from dgbook.time.stepping import Stages

DTYPES = ("float32", "float64")
ELEMENTS_AT_A_TIME = 2**13
"""Elements whose errors are found together: at their quadrature points states are tenfold."""
LOOK_EVERY = 64
"""Steps after which a run is looked at, see `EnergyWatch`."""
KEEP_AFTER = 16
"""Looks after which a state of a device is copied to the host for the first time."""
GROWTH = 10.0
"""The energy of a closed system grows by rounding only; so many times as much is refused."""
ADVICE = ". Take float32, a lower order or a coarser mesh"
ABSURD = 1e12
"""Where a wave comes in, so many times the energy of a domain that is full of it is refused."""


class BlowUpError(RuntimeError):
    """A run has left what its equations allow.

    Attributes
    ----------
    time : float
        Of the last good state that was kept.
    state : (n, K, Np) array
        That state.
    """

    def __init__(self, message: str, time: float, state: np.ndarray) -> None:
        super().__init__(message)
        self.time, self.state = time, state


class NodalSolver(ABC):
    """Nodal DG in space and Runge-Kutta in time, for a family of equations.

    A family derives its own solver, says what its fields are and how it takes a step.

    Attributes
    ----------
    fields : tuple of str
        Names of the n unknowns.
    reference : module
        The family's NumPy operator, with `rhs`, `boundary_data` and `as_fields`.
    cores : type
        The family's launcher on processor cores, whatever the path and the plan.
    mesh : Mesh
    element : NodalElement
    dtype : numpy.dtype
    device : Device
    x : (dim, K, Np) float64
        Coordinates of the nodes.
    jacobian : (K,) float64
        Determinant of dx/dr of each element.
    """

    checked: ClassVar[bool] = False
    """Whether `_fault` can find something, so that it has to be asked."""

    fields: tuple[str, ...]
    reference: ClassVar[ModuleType]
    cores: ClassVar[type[CoreLauncher]]
    jacobian: np.ndarray
    operator: Any

    def __init__(self, mesh: Mesh, order: int, dtype: str, device: Device | str) -> None:
        if not isinstance(mesh, Mesh):
            raise TypeError(f"mesh = {mesh!r}; allowed: a Mesh")
        check_choice("dtype", np.dtype(dtype).name, DTYPES)
        self.mesh = mesh
        self.element = NodalElement(mesh.dim, order)
        self.dtype = np.dtype(dtype)
        self.device = as_device(device)
        self.x = nodes_xyz(mesh, self.element.nodes)

    def take_path(
        self,
        path: str,
        plan: Any,
        paths: Mapping[str, tuple],
        flux: str = "",
        fused: Collection[str] = ("",),
    ) -> None:
        """Take a path through the kernels and a plan, if there is such a path for this flux.

        Parameters
        ----------
        path, plan
            What the caller chose; a plan of None is the best one known.
        paths : mapping
            By name what makes the launcher, and behind it the types of its plans.
        flux : str
        fused : collection of str
            The fluxes that the path "fused" knows.

        Raises
        ------
        TypeError, ValueError
            If there is not, or the plan is another path's.
        """
        check_choice("path", path, paths)
        make, *kinds = paths[path]
        if plan is not None and not isinstance(plan, tuple(kinds)):
            allowed = " or ".join(kind.__name__ for kind in kinds)
            raise TypeError(f"plan = {plan!r}; allowed with path {path!r}: a {allowed}")
        if path == "fused" and flux not in fused:
            allowed = ", ".join(map(repr, fused))
            raise ValueError(
                f"flux = {flux!r} with path 'fused'; allowed: {allowed}, or path 'paper'"
            )
        self.path, self._plan, self._make = path, plan, make

    @cached_property
    def launcher(self) -> Any:
        """The operator on the device, made when first needed."""
        if self.device.kind == "cpu":
            return self.cores(self.operator, self.device)
        return self._make(self.operator, self.device, self._plan)

    # -- what a family says ------------------------------------------------------------------

    @abstractmethod
    def _default_dt(self, u: np.ndarray, t: float, t_end: float) -> float:
        """The longest step of a run from the state u at time t to t_end that is given none."""

    @abstractmethod
    def rhs(self, u: np.ndarray, t: float = 0.0) -> np.ndarray:
        """du/dt, (n, K, Np)."""

    @abstractmethod
    def _stepper(self, u: np.ndarray, t: float, dt: float, done: int) -> Any:
        """On a device: what `HostStepper` is on the host, for steps dt from u at t + done dt."""

    def _fields(self, values: Any, shape: tuple[int, ...]) -> np.ndarray:
        """What a function of space returned, as an array (n, *shape)."""
        return self.reference.as_fields(values, shape)

    @abstractmethod
    def _host_stepper(self, u: np.ndarray, dt: float) -> HostStepper:
        """What takes the steps on the host."""

    @abstractmethod
    def _numbers(self) -> tuple[int, int]:
        """How many numbers a run holds for each element at the same time.

        Returns
        -------
        int
            For each field: in states, at face nodes or at quadrature points.
        int
            For geometry and links.
        """

    def _energy_weights(self, elements: slice | np.ndarray) -> np.ndarray:
        """What the square of each field is weighted with in the energy, (n, m) for m elements."""
        return np.ones((len(self.fields), len(self.jacobian[elements])))

    def _amplitude(self) -> float:
        """The largest value of a field that comes in through the boundary; inf if nobody knows."""
        return math.inf if self.operator.sources else 0.0

    def _fault(self, u: np.ndarray) -> tuple[str, int] | None:
        """What the equations forbid of a state, and the first element that has it; or None.

        The state may be that of the first elements only.
        """
        return None

    def _failure(self, what: str, time: float, element: int, state: Any) -> BlowUpError:
        """The error for what `_fault` found after a time at which `state` was good."""
        return BlowUpError(f"{what} in element {element} after t = {time:.6g}", time, state)

    def outgoing(self, elements: np.ndarray, faces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What the flux of a neighbor needs of traces, and a trace for which it is the same.

        Parameters
        ----------
        elements, faces : (m,) ints

        Returns
        -------
        pack, unpack : (m, r, n), (m, n, r) float64
            Matrices from n fields to r numbers, and back.

        Raises
        ------
        ValueError
            If the flux needs all fields.
        """
        raise ValueError(
            f"traces = 'flux' of {', '.join(self.fields)}: their flux needs all of them; allowed: "
            "'whole'"
        )

    def watch(self, march: March) -> Watch:
        """What looks at the states of a march, from where it is now.

        Raises
        ------
        ValueError
            If the energy of its state is not finite.
        """
        return EnergyWatch(self, march)

    # -- what all have -----------------------------------------------------------------------

    def interpolate(self, function: Callable) -> np.ndarray:
        """Nodal values of a function of (x, [y, z]) that returns the n fields, (n, K, Np)."""
        return self._fields(function(*self.x), self.x.shape[1:]).astype(self.dtype)

    def run(
        self,
        u: np.ndarray,
        t_end: float,
        dt: float | str | None = None,
        t: float = 0.0,
        progress: bool = False,
        observe: Callable[[float, np.ndarray], None] | None = None,
        every: int = 1,
    ) -> np.ndarray:
        """Solve from time t to t_end.

        Parameters
        ----------
        u : (n, K, Np) array
            The state at time t; it is not changed.
        t_end : float
        dt : float or "local", optional
            The longest step; the interval is divided evenly. "local", for Maxwell's and the
            acoustic equations, gives each element steps of its own, where these are expected to be
            faster than global ones: see `dgbook.nodal.local`, and `LinearSolver.local_steps` for
            what is chosen. A step is then one after which all elements are at the same time again.
            If not given, that of the family's
            ``stable_dt``. Linear equations take ``accurate_dt()`` if it is shorter, and
            ``cfl_dt()`` where that needs fewer than 50 steps, since to find the longest stable step
            costs 20 to 100 right-hand sides; give ``dt=solver.stable_dt()`` to runs in many short
            pieces, which then find it once.
        t : float
        progress : bool
            Show a progress bar.
        observe : function, optional
            Called as ``observe(time, state)`` after every so many steps, and after the last one.
        every : int

        Returns
        -------
        (n, K, Np) array
            The state at t_end.

        Raises
        ------
        ValueError
            If the times or the step are not finite or not in order, u has another shape or is not
            finite, `every` is not positive, or there are no local steps for this problem.
        BlowUpError
            If a state is not finite, or has an energy that it cannot have.
        """
        if every < 1:
            raise ValueError(f"every = {every}; allowed: 1 or more steps")
        march = self.march(u, t_end, dt, t)
        watch = self.watch(march)
        bar = tqdm(total=march.count, disable=not progress, desc="time steps", leave=False)
        with bar:
            while march.done < march.count:
                watch.step()
                bar.update()
                if observe and (march.done % every == 0 or march.done == march.count):
                    watch.look(closely=True)
                    observe(march.time, march.state())
        watch.look(closely=True)
        return march.state()

    def march(
        self,
        u: np.ndarray,
        t_end: float,
        dt: float | None = None,
        t: float = 0.0,
        done: int = 0,
    ) -> March:
        """What `run` loops over, for those who want a loop of their own, or to resume one.

        Parameters
        ----------
        u : (n, K, Np) array
            The state `done` steps after time t.
        t_end, dt, t
            As in `run`.
        done : int
            Steps that are behind. A march that is resumed, with the same t, t_end and dt, takes
            exactly the steps that were left of the first one.

        Raises
        ------
        ValueError
            As in `run`, if `done` is not from 0 to the number of steps, or u is no state from
            which the family's equations can start.
        MemoryError
            If memory does not suffice; the message says what a run needs.
        """
        u = self._state(u)
        if fault := self._fault(u):
            what, k = fault
            raise ValueError(f"u has {what} in element {k}; allowed: positive")
        check_number(dt)
        count, dt = steps(t, t_end, self._default_dt(u, t, t_end) if dt is None else dt)
        check_done(done, count)
        with self._enough_memory():
            stepper = (
                self._host_stepper(u, dt)
                if self.device.kind == "reference"
                else self._stepper(u, t, dt, done)
            )
        return March(stepper, t, dt, count, done)

    @contextmanager
    def _enough_memory(self) -> Iterator[None]:
        """Inside, a MemoryError says what a run needs."""
        try:
            yield
        except MemoryError as error:  # CuPy's is one too
            raise MemoryError(f"{self.needs()}, and there was less{ADVICE}") from error

    def memory_bytes(self) -> int:
        """About how many bytes of the device's memory a run takes, or of the host's on the CPU."""
        values, geometry = self._numbers()
        return self.mesh.K * (len(self.fields) * values + geometry) * self.dtype.itemsize

    def needs(self) -> str:
        """`memory_bytes` in a sentence."""
        what = f"{self.mesh.K} elements of order {self.element.order} in {self.dtype}"
        return f"{what} need about {bytes_text(self.memory_bytes())}"

    def l2_error(self, u: np.ndarray, exact: Callable, t: float) -> float:
        """The L2 norm of u - exact(x, ..., t), over all fields.

        By quadrature exact to degree 2N+2 in each element, not at the nodes, where the error of an
        interpolant is zero.
        """
        u = self._state(u)
        points, weights = simplex_quadrature(self.mesh.dim, 2 * self.element.order + 2)
        interpolation = self.element.interpolation(points).T
        corners = barycentric(points)
        total = 0.0
        for some in pieces(self.mesh.owned, ELEMENTS_AT_A_TIME):
            values = u[:, some].astype(np.float64) @ interpolation
            x = corners @ self.mesh.vertices[self.mesh.elements[some]]
            values -= self._fields(exact(*np.moveaxis(x, 2, 0), t), values.shape[1:])
            total += np.einsum("akq,akq,k,q->", values, values, self.jacobian[some], weights)
        return float(np.sqrt(total))

    def energy(self, u: np.ndarray) -> float:
        """The integral over the domain of half the squared fields, in the family's weights."""
        u = self._state(u)
        total = 0.0
        for some in pieces(self.mesh.owned, ELEMENTS_AT_A_TIME):
            values = u[:, some].astype(np.float64)
            weights = self.energy_weights(np.arange(some.start, some.stop))
            total += energy_of(values, self.element.mass, weights)
        return float(total)

    def energy_weights(self, elements: np.ndarray) -> np.ndarray:
        """What `energy_of` takes, (n, m): half of matter times Jacobian, and 0 of ghosts.

        Parameters
        ----------
        elements : (m,) ints
        """
        owned = elements < self.mesh.owned
        return self._energy_weights(elements) * (owned * self.jacobian[elements] / 2)

    def energy_limit(self, u: np.ndarray) -> float:
        """The energy that no state has to which u can lead.

        A closed system loses energy or keeps it: `GROWTH` times what u has is more than rounding
        does. Where a wave of known amplitude comes in, the limit is `ABSURD` times the energy of u
        and of a domain full of that wave; where nobody knows what comes in, there is none.

        Raises
        ------
        ValueError
            If u has no finite energy.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            begin = self.energy(u)
        if not math.isfinite(begin):
            raise ValueError(f"u has the energy {begin}; allowed: finite")
        uniform = self._uniform_energy()
        amplitude = self._amplitude()
        if amplitude:
            return ABSURD * (begin + amplitude**2 * uniform)
        smallest = float(np.finfo(self.dtype).tiny)  # below it, rounding is not relative
        return GROWTH * begin + max(smallest**2 * uniform, np.finfo(np.float64).tiny)

    def _uniform_energy(self) -> float:
        """The energy of fields that are 1."""
        weights = self.energy_weights(np.arange(self.mesh.owned))
        return float(weights.sum() * self.element.mass.sum())

    def integral(self, u: np.ndarray) -> np.ndarray:
        """The integral of each field over the domain, (n,)."""
        own = slice(self.mesh.owned)
        u = self._state(u)[:, own].astype(np.float64)
        return (u @ self.element.mass.sum(axis=0)) @ self.jacobian[own]

    def _state(self, u: np.ndarray) -> np.ndarray:
        u = np.asarray(u)
        shape = (len(self.fields), self.mesh.K, self.element.Np)
        if u.shape != shape:
            raise ValueError(f"u has shape {u.shape}; allowed: (fields, K, Np) = {shape}")
        if u.dtype.kind not in "fiu":
            raise TypeError(f"u has dtype {u.dtype}; allowed: real numbers")
        return np.ascontiguousarray(u, self.dtype)


def energy_of(values: Any, mass: Any, weights: Any) -> Any:
    """The energy of some elements, on the host or on a device that has all three arrays.

    Parameters
    ----------
    values : (n, m, Np) array of float64
    mass : (Np, Np) array
    weights : (n, m) array
        See `NodalSolver.energy_weights`.
    """
    return (weights * (values * (values @ mass)).sum(axis=-1)).sum()


@dataclass
class March:
    """A run, step by step; `NodalSolver.march` makes it.

    Attributes
    ----------
    stepper : object
        Takes the steps, on a device or the host.
    start : float
        Time of step 0.
    dt : float
    count : int
        Steps of the whole run.
    done : int
        Those that are behind.
    """

    stepper: Any
    start: float
    dt: float
    count: int
    done: int
    _seen: np.ndarray | None = field(default=None, init=False, repr=False)

    @property
    def time(self) -> float:
        """Now. Not accumulated: a sum of rounded steps would drift."""
        return self.start + self.done * self.dt

    def step(self) -> None:
        """Take the next step. If it is interrupted, the state is lost."""
        self._seen = None
        self.stepper.step(self.time)
        self.done += 1

    def state(self) -> np.ndarray:
        """A copy of the state, (n, K, Np)."""
        return self.stepper.download() if self._seen is None else self._seen.copy()

    def seen(self) -> np.ndarray:
        """The state for those who do not change it: a device is asked once between two steps."""
        if self._seen is None:
            self._seen = self.stepper.download()
        return self._seen

    def raw(self) -> np.ndarray:
        """A copy of the state as the kernels hold it: on the way to `state` it may be rounded."""
        return self.stepper.raw()

    def restore(self, state: np.ndarray, raw: np.ndarray) -> bool:
        """Go on from where `state` and `raw` returned these two, to the last bit.

        Returns
        -------
        bool
            Whether `raw` is that state for these kernels, too. If not, it was made by others with a
            layout of their own, and nothing has changed.
        """
        before = self.raw()
        if raw.shape != before.shape or raw.dtype != before.dtype:
            return False
        self._seen = None
        self.stepper.restore(raw)
        same = np.array_equal(self.state(), state, equal_nan=True)
        if not same:
            self.stepper.restore(before)
        return same


class Watch(ABC):
    """Takes the steps of a march, and looks at its states now and then.

    Parameters
    ----------
    march : March
    """

    def __init__(self, march: March) -> None:
        self.march = march

    def step(self) -> None:
        """Take the next step, and look at the state every `LOOK_EVERY` steps.

        Raises
        ------
        BlowUpError
            As `look`.
        """
        with np.errstate(over="ignore", invalid="ignore"):  # it is looked at below
            self.march.step()
        if self.march.done % LOOK_EVERY == 0:
            self.look()

    @abstractmethod
    def look(self, closely: bool = False) -> None:
        """Look at the state; closely, if somebody is about to see or to keep it.

        Raises
        ------
        BlowUpError
            If it is not what the equations allow.
        """


class EnergyWatch(Watch):
    """Looks at the energy, which must be finite and below `NodalSolver.energy_limit`.

    On a device, what is looked at now and then is the sum of squares of what the kernels hold, one
    pass over memory. It is no energy, as elements differ in size and matter, but what blows up
    takes it along: the energy is asked for where that sum has grown `GROWTH`-fold since the last
    time or is NaN, and whenever the state is to be looked at closely or kept.

    The last state that was looked at closely is kept on the host, and others in between: copying
    takes as long as dozens of steps, so it is done after `KEEP_AFTER` looks, twice, four times,
    eight times as many. On the host itself each state that is looked at is kept.
    """

    def __init__(self, solver: NodalSolver, march: March) -> None:
        super().__init__(march)
        self.solver = solver
        self.host = solver.device.is_host
        self.first = march.done
        # When a device's state is kept in any case.
        self.next = march.done + KEEP_AFTER * LOOK_EVERY
        self.kept = march.seen()
        self.limit = solver.energy_limit(self.kept)
        self.squares = 0.0 if self.host else march.stepper.squares()
        self.kept_time = self.time = march.time

    def look(self, closely: bool = False) -> None:
        """As `Watch.look`."""
        march = self.march
        squares = math.nan if self.host else march.stepper.squares()
        calm = squares <= GROWTH * self.squares  # NaN compares false
        keep = closely or self.host or march.done >= self.next
        if keep or not calm:
            with np.errstate(over="ignore", invalid="ignore"):
                energy = self._energy()
            if not (math.isfinite(energy) and energy <= self.limit):
                raise BlowUpError(
                    f"the run has blown up: the energy is {energy:.4g} at t = {march.time:.6g}, "
                    f"and all was well until t = {self.time:.6g}. A smaller dt, matter that "
                    "differs less, or a mesh without slivers may help; this error's `state` is the "
                    f"last good one that was kept, of t = {self.kept_time:.6g}",
                    self.kept_time,
                    self.kept,
                )
            self.squares = squares
        if keep:
            self.kept, self.kept_time = march.seen(), march.time
            self.next = max(self.next, march.done + march.done - self.first)
        self.time = march.time

    def _energy(self) -> float:
        """That of the newest state, where it is."""
        if self.host:
            return self.solver.energy(self.march.seen())
        return self.march.stepper.energy(self.solver)


class OnDevice:
    """What has a state on a device, in the layout of its launcher.

    Attributes
    ----------
    launcher : object with `device` and `download`
    state : array of the device
        The newest one.
    """

    launcher: Any
    state: Any

    def download(self) -> np.ndarray:
        """The newest state as a NumPy array."""
        return self.launcher.download(self.state)

    def raw(self) -> np.ndarray:
        """The newest state in the launcher's layout."""
        return self.launcher.device.to_numpy(self.state)

    def restore(self, raw: np.ndarray) -> None:
        """Replace the newest state by what `raw` returned."""
        self.state[:] = self.launcher.device.array(raw)

    def squares(self) -> float:
        """The sum of squares of the newest state in the launcher's layout, in fp64."""
        return self.launcher.device.sum_of_squares(self.state)

    def energy(self, solver: NodalSolver) -> float:
        """The energy of the newest state, by the device; see `NodalSolver.energy`."""
        mass = self.launcher.device.array(self._mass(solver))
        total = 0.0
        for values, elements in self.launcher.values(self.state):
            weights = self.launcher.device.array(solver.energy_weights(elements))
            total = total + energy_of(values.astype(np.float64), mass, weights)
        return float(total)

    def _mass(self, solver: NodalSolver) -> np.ndarray:
        """The mass matrix of what the launcher's states hold of an element, (Np, Np)."""
        return solver.element.mass


class DeviceStepper(OnDevice, ABC):
    """Time steps on a device, recorded once and replayed where no Python has to run between.

    A kernel that reads neighbors and writes the new state in one pass writes it beside the old
    one. Where a step has an odd number of stages, steps then start from either array in turn: two
    recordings.

    Parameters
    ----------
    launcher : object with `device` and `download`
    states : list of one or two arrays of the device
        The first is where the run begins.
    live : bool
        Whether Python has to run in every stage: then nothing is recorded.
    writes : int
        How often a step writes a new state beside the old one, its stages.
    """

    def __init__(self, launcher: Any, states: list[Any], live: bool, writes: int) -> None:
        self.launcher, self.states, self.writes = launcher, states, writes
        self.current = 0  # which of the states is the newest
        self.replay = None
        if not live:
            self.replay = [
                launcher.device.capture(partial(_all_of, self._stages(start, 0.0)))
                for start in range(len(states))
            ]

    @abstractmethod
    def _stages(self, start: int, t: float) -> Callable[[], Iterator[Launches]]:
        """What goes through the stages of a step from states[start] and time t.

        A recording keeps it, and this object keeps the recording: it should hold arrays and not
        this object, or both keep the device's memory until Python looks for circles.
        """

    def step(self, t: float) -> None:
        """One step from time t, of which recordings know nothing."""
        if self.replay:
            self.replay[self.current]()
        else:
            _all_of(self._stages(self.current, t))
        self.done()

    def stages(self, t: float) -> Iterator[Launches]:
        """The same stage by stage, each of which has to be launched before the next."""
        yield from self._stages(self.current, t)()
        self.done()

    def done(self) -> None:
        """A step has been taken, here or by somebody who has recorded its stages."""
        self.current = (self.current + self.writes) % len(self.states)

    @property
    def state(self) -> Any:
        """The newest state, on the device."""
        return self.states[self.current]


def check_number(dt: float | str | None) -> None:
    """Raise a ValueError if a step is given by a word."""
    if isinstance(dt, str):
        raise ValueError(
            f"dt = {dt!r}; allowed: a number, or none for the default. 'local' is for Maxwell's "
            "and the acoustic equations, on a mesh that is not in parts"
        )


def check_done(done: int, count: int) -> None:
    """Raise a ValueError unless so many of `count` steps can be behind."""
    if not 0 <= done <= count:
        raise ValueError(f"done = {done}; allowed: 0 to {count}, the number of steps")


def _all_of(stages: Callable[[], Iterator[Launches]]) -> None:
    """Launch all stages of a step."""
    for launch, _ in stages():
        launch()


class HostStepper:
    """Time steps by NumPy, with the solver's own right-hand side.

    Parameters
    ----------
    solver : NodalSolver
    u : (n, K, Np) array
        Where the run begins; it is copied.
    dt : float
    method : function
        ``method(rhs, u, t, dt)`` goes through the stages of a step and changes u in place, see
        `dgbook.time.stepping.Stages`.
    """

    def __init__(self, solver: NodalSolver, u: np.ndarray, dt: float, method: Stages) -> None:
        self.solver, self.u, self.dt, self.method = solver, u.copy(), dt, method

    def step(self, t: float) -> None:
        """One step from time t."""
        for _ in self.stages(t):
            pass

    def stages(self, t: float) -> Iterator[np.ndarray]:
        """The same stage by stage; yields the array whose ghosts the next stage reads."""
        return self.method(self._rate, self.u, t, self.dt)

    def _rate(self, u: np.ndarray, t: float) -> np.ndarray:
        """du/dt, which is zero in ghosts: others compute it."""
        rate = self._rhs(u, t)
        rate[:, self.solver.mesh.owned :] = 0
        return rate

    def _rhs(self, u: np.ndarray, t: float) -> np.ndarray:
        return self.solver.rhs(u, t)

    def download(self) -> np.ndarray:
        """A copy of the state."""
        return self.u.copy()

    def raw(self) -> np.ndarray:
        """A copy of the state in its own layout, which is the same here."""
        return self.u.copy()

    def restore(self, raw: np.ndarray) -> None:
        """Replace the state by what `raw` returned."""
        self.u[:] = raw
