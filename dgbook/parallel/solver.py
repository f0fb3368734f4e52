"""A solver for a mesh in parts: one of a family's own solvers for each part, in step."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np

from dgbook.arguments import check_choice, host_bytes
from dgbook.gpu import Device
from dgbook.gpu.device import as_device
from dgbook.mesh import Mesh
from dgbook.nodal import solving
from dgbook.nodal.launching import EDGE, INTERIOR
from dgbook.nodal.linear import (
    LinearSolver,
    accurate_step,
    few_steps,
    noise,
    resolved_period,
    safe_step,
    usual_method,
)
from dgbook.nodal.solving import EnergyWatch, NodalSolver, Watch, check_done, check_number
from dgbook.nodal.spectrum import VECTORS, Found, field_of_values
from dgbook.parallel.halo import Halo, ends
from dgbook.parallel.peers import PeerHalo, PeerRanks
from dgbook.parallel.pieces import Piece, cut, divide
from dgbook.parallel.transport import MpiRanks, NcclRanks, OneProcess, Transport
from dgbook.time import steps
from dgbook.time.stability import longest_steps

TRACES = ("whole", "flux")
HOST = "reference"
"""The kind of device on which steps are NumPy's, by the reference; others have launchers."""
CHECK_SELDOM = 32
"""Steps of launchers between two looks for what the equations forbid: a look copies the state."""

State = list[np.ndarray]
"""Of each part of this process the fields (n, K, Np), ghosts included."""


class Solver:
    """Solves on a mesh in parts what a family's solver solves on a whole one, with the same bits.

    ::

        solver = parallel.Solver(lambda part: maxwell.Solver(part.mesh, 4), mesh, parts=3)
        u = solver.run(solver.interpolate(start), t_end=1.0)
        whole = solver.gather(u)

    The mesh is divided by METIS. In one process there are several parts, with copies between them;
    with a communicator of MPI each rank has one part, and all ranks call the same methods. Before
    each stage traces on the faces between parts travel. On GPUs, one for each rank, they travel by
    NCCL, while the interior is computed, if the family's kernels can take it apart from the edge;
    and a time step is one recording of all that, unless Python has to run in every stage. With
    `PeerRanks` in place of the communicator GPUs write them into one another's memory instead.

    A state is a list, an array for each part of this process; see `gather` and `scatter`.

    Parameters
    ----------
    make : function
        ``make(piece)`` is the family's solver on ``piece.mesh``. What the family wants for each
        element, such as matter, it gives for ``piece.elements`` of the whole mesh, and conditions
        for all names in the whole mesh's boundary. The launches of a device are those of one kernel
        per stage.
    mesh : Mesh
        The whole mesh, on all ranks.
    parts : int
        How many there are in this process.
    comm : mpi4py.MPI.Comm or Transport, optional
        Instead of `parts`: a part for each rank, or a transport of one's own.
    traces : {"whole", "flux"}
        What parts send of a face: all fields, or as many numbers as the flux of the other side
        needs, 2 of 6 of Maxwell's equations and 1 of 4 of the acoustic ones, with fluxes that allow
        it. With "flux" the solution is another one by rounding.

    Raises
    ------
    TypeError, ValueError, RuntimeError
        As `divide` does, and `make`; ValueError also for `parts` and `comm` together, and for
        traces "flux" of equations or of a flux that need all fields. RuntimeError also where ranks
        share a GPU, and without NCCL.

    Attributes
    ----------
    pieces : list of Piece
        The parts of this process.
    solvers : list of NodalSolver
        One for each.
    transport : Transport
    mesh : Mesh
        The whole one.
    """

    def __init__(
        self,
        make: Callable[[Piece], NodalSolver],
        mesh: Mesh,
        parts: int = 1,
        comm: Any = None,
        traces: str = "whole",
    ) -> None:
        check_choice("traces", traces, TRACES)
        if comm is not None and parts != 1:
            raise ValueError(f"parts = {parts} with comm; allowed: one of them")
        ready = isinstance(comm, Transport)
        self.transport: Transport = (
            comm if ready else OneProcess(parts) if comm is None else MpiRanks(comm)
        )
        self.mesh, self.traces = mesh, traces
        owner = divide(mesh, self.transport.parts)
        self.pieces = [cut(mesh, owner, number) for number in self.transport.mine]
        self.solvers = [make(one) for one in self.pieces]
        first = self.solvers[0]
        self.fields, self.element, self.dtype = first.fields, first.element, first.dtype
        self.device: Device = first.device
        self._sent = len(self.fields)  # numbers of a node
        if traces == "flux":
            pack, _ = first.outgoing(*np.zeros((2, 1), int))  # raises where it cannot be less
            self._sent = pack.shape[1]
        if comm is not None and not ready and self.device.kind == "cuda":
            self.transport = NcclRanks(comm)
        if isinstance(first, LinearSolver) and first.asked_method == "auto":
            # Of the whole mesh; parts alone might differ.
            about = self.element.order, self.cfl_dt(), self.resolved_period
            chosen = usual_method(first.methods, *about)
            for solver in self.solvers:
                solver.method = chosen

    # -- states ------------------------------------------------------------------------------

    def interpolate(self, function: Callable) -> State:
        """As `NodalSolver.interpolate`."""
        return [solver.interpolate(function) for solver in self.solvers]

    def scatter(self, whole: np.ndarray) -> State:
        """This process's pieces of a state (n, K, Np) of the whole mesh."""
        return [np.ascontiguousarray(whole[:, piece.elements]) for piece in self.pieces]

    def gather(self, u: State) -> np.ndarray | None:
        """The whole state (n, K, Np) in the process that leads, None in others."""
        own = [values[:, : p.mesh.owned] for p, values in zip(self.pieces, u, strict=True)]
        collected = self.transport.collected(([piece.owned for piece in self.pieces], own))
        if collected is None:
            return None
        whole = np.empty((len(self.fields), self.mesh.K, self.element.Np), self.dtype)
        for elements, values in collected:
            for k, some in zip(elements, values, strict=True):
                whole[:, k] = some
        return whole

    def rhs(self, u: State, t: float = 0.0) -> State:
        """du/dt, with ghosts that nobody has computed; what `u` has in ghosts is not looked at."""
        u = [values.copy() for values in u]
        self._between_calls.exchange(u)
        return [solver.rhs(values, t) for solver, values in zip(self.solvers, u, strict=True)]

    @cached_property
    def _between_calls(self) -> Halo:
        return self.halo(True)

    def halo(self, host: bool) -> Halo | PeerHalo:
        """What exchanges traces of states (n, K, Np) on the host, or of what steps hold."""
        places = [_on_host(one) if host else one.launcher.entries for one in self.solvers]
        traces = None
        if self.traces == "flux":
            traces = [one.outgoing if host else partial(_held, one) for one in self.solvers]
        faces = self.element.face_nodes
        both = ends(self.pieces, places, traces, faces, self.dtype)
        device = as_device(HOST) if host else self.device
        stored = isinstance(self.transport, PeerRanks) and not device.is_host
        return (PeerHalo if stored else Halo)(both, self.transport, device, self.dtype)

    # -- time --------------------------------------------------------------------------------

    run = NodalSolver.run
    energy_limit = NodalSolver.energy_limit

    def march(
        self,
        u: State,
        t_end: float,
        dt: float | None = None,
        t: float = 0.0,
        done: int = 0,
    ) -> March:
        """As `NodalSolver.march`."""
        u = [solver._state(values) for solver, values in zip(self.solvers, u, strict=True)]
        if fault := self._fault(u):
            what, k = fault
            raise ValueError(f"u has {what} in element {k}; allowed: positive")
        check_number(dt)
        count, dt = steps(t, t_end, self._default_dt(u, t, t_end) if dt is None else dt)
        check_done(done, count)
        return March(Stepper(self, u, t, dt, done), t, dt, count, done)

    def watch(self, march: March) -> Watch:
        """As `NodalSolver.watch`."""
        return StepWatch(march) if self.solvers[0].checked else EnergyWatch(self, march)

    def cfl_dt(self) -> float:
        """As `LinearSolver.cfl_dt`: the shortest of all parts."""
        return self._least(solver.cfl_dt() for solver in self.solvers)

    @cached_property
    def spectrum(self) -> Found | None:
        """As `LinearSolver.spectrum`; all processes search together."""
        state = sum(solver.x[0].nbytes for solver in self.solvers) * len(self.fields)
        state = state // 8 * self.dtype.itemsize
        memory = self.device.memory_bytes or host_bytes()
        fits = self.memory_bytes() + (VECTORS + VECTORS // 2) * state <= memory
        if not all(self.transport.everyone(fits)):
            return None
        product = Product(self)
        stable = partial(longest_steps, self.method)
        summed = Summed(self.device, self.transport)
        return field_of_values(product, product.start(), stable, product.energies, summed)

    def stable_dt(self) -> float:
        """As `LinearSolver.stable_dt`, to rounding: it is that of sums in another order."""
        return self.cfl_dt() if self.spectrum is None else safe_step(self.method, self.spectrum)

    @cached_property
    def resolved_period(self) -> float:
        """As `LinearSolver.resolved_period`, of the elements of all parts."""
        mine = [
            (piece.owned, *(a[: piece.mesh.owned] for a in (solver.jacobian, solver._speeds())))
            for piece, solver in zip(self.pieces, self.solvers, strict=True)
        ]
        found = [piece for process in self.transport.everyone(mine) for piece in process]
        elements, jacobian, speeds = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
        order = np.argsort(elements)
        return resolved_period(self.element, jacobian[order], speeds[order])

    def accurate_dt(self) -> float:
        """As `LinearSolver.accurate_dt`."""
        return accurate_step(self.method, self.resolved_period)

    @property
    def method(self) -> Any:
        """The Runge-Kutta method, see `LinearSolver`."""
        return self.solvers[0].method

    def _default_dt(self, u: State, t: float, t_end: float) -> float:
        if not isinstance(self.solvers[0], LinearSolver):
            both = zip(self.solvers, u, strict=True)
            return self._least(solver._default_dt(values, t, t_end) for solver, values in both)
        dt = self.cfl_dt()
        if few_steps(t, t_end, dt):
            return dt
        return max(dt, min(self.stable_dt(), self.accurate_dt()))

    # -- what all families' solvers have -------------------------------------------------------

    def energy(self, u: State) -> float:
        """As `NodalSolver.energy`."""
        return self._sum(u, lambda solver, values: solver.energy(values))

    def entropy(self, u: State) -> float:
        """As `euler.Solver.entropy`, of a flow."""
        return self._sum(u, lambda solver, values: solver.entropy(values))

    def l2_error(self, u: State, exact: Callable, t: float) -> float:
        """As `NodalSolver.l2_error`."""
        return math.sqrt(self._sum(u, lambda one, values: one.l2_error(values, exact, t) ** 2))

    def integral(self, u: State) -> np.ndarray:
        """As `NodalSolver.integral`."""
        return self._sum(u, lambda solver, values: solver.integral(values))

    def bytes_sent(self) -> int:
        """What all parts together send to others before a stage."""
        faces = sum(len(message.faces) for piece in self.pieces for message in piece.sends)
        values = self._sent * self.element.face_nodes.shape[1]
        return self.transport.total(faces) * values * self.dtype.itemsize

    def memory_bytes(self) -> int:
        """About how many bytes a run takes in this process."""
        return sum(solver.memory_bytes() for solver in self.solvers)

    def _sum(self, u: State, measure: Callable) -> Any:
        """The sum of something over all parts of all processes."""
        mine = [measure(solver, values) for solver, values in zip(self.solvers, u, strict=True)]
        return self.transport.total(sum(mine))

    def _least(self, values: Any) -> float:
        return min(self.transport.everyone(min(values)))

    def _uniform_energy(self) -> float:
        return self.transport.total(sum(solver._uniform_energy() for solver in self.solvers))

    def _amplitude(self) -> float:
        return max(self.transport.everyone(max(one._amplitude() for one in self.solvers)))

    def _fault(self, u: State) -> tuple[str, int] | None:
        """What the equations forbid of a state, and the first element that has it, of all parts."""
        if not self.solvers[0].checked:
            return None
        mine = []
        for piece, solver, values in zip(self.pieces, self.solvers, u, strict=True):
            order = np.argsort(piece.owned)  # the first element is the one with the lowest number
            if fault := solver._fault(values[:, order]):
                what, k = fault
                mine.append((int(piece.owned[order[k]]), what))
        found = [fault for process in self.transport.everyone(mine) for fault in process]
        return min(found)[::-1] if found else None


def _on_host(solver: NodalSolver) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Where values are in a state (n, K, Np), see `Halo`."""
    K, Np = solver.mesh.K, solver.element.Np
    first = np.arange(len(solver.fields))[:, None, None] * (K * Np)
    return lambda elements, nodes: first + (elements[:, None] * Np + nodes)


def _held(
    solver: NodalSolver, elements: np.ndarray, faces: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """`NodalSolver.outgoing` for what a launcher's states hold of the fields."""
    pack, unpack = solver.outgoing(elements, faces)
    matrices = solver.launcher.components(elements)
    return pack @ np.linalg.inv(matrices), matrices @ unpack


class Stepper:
    """Time steps of all parts of a process together, stage by stage.

    On the host an exchange precedes each stage. On devices one follows it, for the next stage; it
    needs new traces from the edges only. On a GPU all of it is recorded, edges, messages and
    interiors in streams of their own: an edge waits for messages and for the stage before, messages
    wait for edges, and an interior, whose elements meet no ghosts, for the stage before.

    Parameters
    ----------
    solver : Solver
    u : State
    t, dt, done
        As of `NodalSolver._stepper`.
    """

    def __init__(self, solver: Solver, u: State, t: float, dt: float, done: int) -> None:
        self.solver = solver
        host = solver.device.kind == HOST
        self.steppers = [
            one._host_stepper(values, dt) if host else one._stepper(values, t, dt, done)
            for one, values in zip(solver.solvers, u, strict=True)
        ]
        halo = solver.halo(host)
        self.through = partial(_through_on_host, halo)
        if not host:
            in_ranges = solver.solvers[0].launcher.in_ranges
            self.through = partial(_through, halo, solver.device, in_ranges)
            halo.exchange([stepper.state for stepper in self.steppers])
        self.kept, self.kept_time, self.since = u, t + done * dt, 0  # the last look
        self.look_every = 1 if host else CHECK_SELDOM
        self.replay = None
        # What is recorded by one process must be by all, or their messages would not meet.
        recorded = not host and all(stepper.replay for stepper in self.steppers)
        if all(solver.transport.everyone(recorded)):
            self.replay = [
                solver.device.capture(
                    partial(self.through, [one._stages(start, 0.0) for one in self.steppers])
                )
                for start in range(len(self.steppers[0].states))
            ]

    def step(self, t: float) -> None:
        """One step from time t.

        Raises
        ------
        BlowUpError
            In all processes, if the family's equations forbid what a part has after it.
        """
        if not self.since:
            self.kept_time = t
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):  # looked at afterwards
            self._step(t)
        self.since += 1
        if self.solver.solvers[0].checked and self.since >= self.look_every:
            self.check()

    def _step(self, t: float) -> None:
        if not self.replay:
            self.through([partial(stepper.stages, t) for stepper in self.steppers])
            return
        self.replay[self.steppers[0].current]()
        for stepper in self.steppers:
            stepper.done()

    def check(self) -> None:
        """Look for what the equations forbid, in the steps since the last look.

        Raises
        ------
        BlowUpError
            If it is there; the state is that of the last look.
        """
        if not self.since:
            return
        state = self.download()
        if fault := self.solver._fault(state):
            what, element = fault
            raise self.solver.solvers[0]._failure(what, self.kept_time, element, self.kept)
        self.kept, self.since = state, 0

    def download(self) -> State:
        """The newest state."""
        return [stepper.download() for stepper in self.steppers]

    def raw(self) -> State:
        """The newest state as steps hold it: on the host control points, where these are held."""
        host = self.solver.device.kind == HOST
        return [stepper.raw() for stepper in self.steppers] if host else self.download()

    def squares(self) -> float:
        """The sum of squares of what the kernels of all processes hold."""
        return self.solver.transport.total(sum(stepper.squares() for stepper in self.steppers))

    def energy(self, solver: Solver) -> float:
        """As `NodalSolver.energy`, of the newest states where they are."""
        both = zip(self.steppers, solver.solvers, strict=True)
        return solver.transport.total(sum(stepper.energy(one) for stepper, one in both))


def _through_on_host(halo: Halo, begin: list[Callable]) -> None:
    """Go through all stages of a step of all parts; see `HostStepper.stages`."""
    walks = [walk() for walk in begin]
    while states := [u for walk in walks if (u := next(walk, None)) is not None]:
        halo.exchange(states)


def _through(halo: Halo | PeerHalo, device: Device, in_ranges: bool, begin: list[Callable]) -> None:
    """The same on a device, see `DeviceStepper.stages`; ghosts have traces before and after it."""

    def arrived() -> None:
        """Wait for messages: there are none yet."""

    for stages in zip(*(walk() for walk in begin), strict=True):
        launches, written = zip(*stages, strict=True)

        def interiors(launches: tuple = launches) -> None:
            for launch in launches:
                if in_ranges:
                    launch(INTERIOR)

        def edges(launches: tuple = launches, written: State = written) -> None:
            nonlocal arrived
            arrived()
            for launch in launches:
                launch(*([EDGE] if in_ranges else []))
            arrived = device.aside(partial(halo.exchange, written))

        device.concurrently(interiors, edges)
    arrived()


class StepWatch(Watch):
    """Leaves the looking to the steps, which know what the equations forbid."""

    def look(self, closely: bool = False) -> None:
        """As `Watch.look`."""
        if closely:
            self.march.stepper.check()


class March(solving.March):
    """A run of all processes, step by step; `Solver.march` makes it."""

    def restore(self, state: np.ndarray, raw: np.ndarray) -> bool:
        """As `solving.March.restore`, from whole states (n, K, Np) of any number of parts."""
        solver, steppers = self.stepper.solver, self.stepper.steppers
        if solver.device.kind != HOST or raw.shape != state.shape or raw.dtype != state.dtype:
            return False
        before = self.raw()
        for stepper, values in zip(steppers, solver.scatter(raw), strict=True):
            stepper.restore(values)
        both = zip(self.state(), solver.scatter(state), strict=True)
        same = all(solver.transport.everyone(all(np.array_equal(*pair) for pair in both)))
        if not same:
            for stepper, values in zip(steppers, before, strict=True):
                stepper.restore(values)
        return same


class Product:
    """du/dt of all parts of a process as the product of a matrix with one long vector.

    Of ghosts there are zeros in vectors, so that nothing is counted twice.

    Parameters
    ----------
    solver : Solver
        Of linear equations.
    """

    def __init__(self, solver: Solver) -> None:
        self.solver = solver
        self.host = solver.device.kind == HOST
        shapes = [one.x.shape[1:] for one in solver.solvers]
        self.shapes = [
            (len(solver.fields), *shape) if self.host else one.launcher.size
            for one, shape in zip(solver.solvers, shapes, strict=True)
        ]
        self.ends = np.cumsum([0, *(int(np.prod(shape)) for shape in self.shapes)])
        self.products = [one._product() for one in solver.solvers]
        self.halo = solver.halo(self.host)

    def __call__(self, x: Any, y: Any) -> None:
        """y = L x; what x has of ghosts is replaced."""
        states, rates = self._views(x), self._views(y)
        self.halo.exchange(states)
        pieces = self.solver.pieces
        for piece, product, u, rate in zip(pieces, self.products, states, rates, strict=True):
            product(u, rate)
            if self.host:
                rate[:, piece.mesh.owned :] = 0

    def start(self) -> Any:
        """The random vector with which the search of a whole mesh's solver begins, its own part."""
        solver = self.solver
        numbers, Np = noise(solver.dtype), solver.element.Np
        vectors = []
        for piece, one in zip(solver.pieces, solver.solvers, strict=True):
            row = np.arange(len(solver.fields))[:, None] * solver.mesh.K + piece.elements
            values = numbers[(row[..., None] * Np + np.arange(Np)) % len(numbers)]
            values[:, piece.mesh.owned :] = 0
            vectors.append(values if self.host else one.launcher.upload(values))
        start = solver.device.zeros(int(self.ends[-1]), solver.dtype)
        for view, values in zip(self._views(start), vectors, strict=True):
            view[:] = values
        return start

    def energies(self, rows: Any) -> np.ndarray:
        """As `LinearSolver._energies`, of all processes."""
        both = zip(self.solver.solvers, pairwise(self.ends), strict=True)
        mine = [solver._energies(rows[:, first:last]) for solver, (first, last) in both]
        return self.solver.transport.total(sum(mine))

    def _views(self, vector: Any) -> list[Any]:
        """Of each part what it has of a vector."""
        both = zip(self.shapes, pairwise(self.ends), strict=True)
        return [vector[first:last].reshape(shape) for shape, (first, last) in both]


class Summed:
    """A device whose sums are those of all processes, for vectors that are cut among them."""

    def __init__(self, device: Device, transport: Transport) -> None:
        self.device, self.transport = device, transport
        self.zeros, self.subtract = device.zeros, device.subtract

    def sum_of_squares(self, array: Any) -> float:
        """As `Device.sum_of_squares`."""
        return self.transport.total(self.device.sum_of_squares(array))

    def dots(self, rows: Any, vector: Any) -> np.ndarray:
        """As `Device.dots`."""
        return self.transport.total(self.device.dots(rows, vector))
