"""Local time steps: which element takes which step, when, and whether it pays.

Elements are sorted into clusters: those of cluster c take steps 2^c times as long as the smallest.
Neighbors are at most one cluster apart. A step is one of Taylor's: inside of an element the
equations give all time derivatives of the polynomials there, V u, V^2 u, ..., V^N u, after which
there are none, so that the integral over a step is known at its beginning,

    Q = h u + h^2/2 V u + ... + h^(N+1)/(N+1)! V^N u.

What an upwind flux damps at a rate r overshoots where r h > 2, see `damping`. Of all shapes and
orders tried the longest stable step was 2.0 to 2.9 over the largest r; there is no proof.

Since the flux is linear, what goes through a face during a step is the flux of both sides' Q. Where
the neighbor's steps are twice as long, it is that of half of its step; where they are half as long,
that of the sum of two. Both sides take the same integrals, so that nothing is lost between them.

References
----------
Dumbser, Kaeser and Toro, "An arbitrary high-order discontinuous Galerkin method for elastic waves
on unstructured meshes - V. Local time stepping and p-adaptivity", Geophys. J. Int. 171, 2007.
Breuer, Heinecke and Bader, "Petascale local time stepping for the ADER-DG finite element method",
IPDPS 2016.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.interpolate import LinearNDInterpolator

from dgbook.element import NodalElement, multi_indices
from dgbook.mesh import Mesh, along_a_curve
from dgbook.time import steps

SHORTER = np.linspace(1, 0.5, 13)[:-1]
"""By what all steps may be shortened: some elements then move to a cluster of longer steps."""
SHARES = 8
"""Of the faces of an element together: how finely what damps it is interpolated."""
MOST_CLUSTERS = 12
"""2^11 smallest steps in the longest; meshes tried had up to 8 clusters."""


@dataclass(frozen=True, eq=False)
class Clusters:
    """Elements by the length of their steps.

    Attributes
    ----------
    number : (K,) ints
        c: an element takes steps of 2^c dt.
    dt : float
        The smallest step.
    """

    number: np.ndarray
    dt: float

    @property
    def last(self) -> int:
        """The number of the cluster with the longest steps."""
        return int(self.number.max())

    @property
    def period(self) -> int:
        """Smallest steps in the longest one, after which all elements are at the same time."""
        return 2**self.last

    @property
    def counts(self) -> np.ndarray:
        """Elements of each cluster, (last + 1,)."""
        return np.bincount(self.number)

    @property
    def updates(self) -> int:
        """Steps of elements in a period."""
        return int(self.counts @ (self.period >> np.arange(self.last + 1)))


def graded(neighbors: np.ndarray, number: np.ndarray) -> np.ndarray:
    """The largest numbers up to those given that differ by at most one between neighbors, (K,).

    Parameters
    ----------
    neighbors : (K, faces) ints
        -1 on the boundary.
    number : (K,) ints
    """
    far = np.iinfo(number.dtype).max - 1
    while True:
        around = np.where(neighbors >= 0, number[neighbors], far).min(axis=1)
        lower = np.minimum(number, around + 1)
        if np.array_equal(lower, number):
            return number
        number = lower


def damping(element: NodalElement, face_scale: np.ndarray) -> np.ndarray:
    """A bound of the rate at which upwind fluxes of speed 1 damp what is in each element, (K,).

    The rate is the largest eigenvalue of sum_f Fs_f M^-1 M_f, with the mass matrices of the element
    and its faces: a convex function of the Fs, which is nowhere above its linear interpolation
    between points. No face is larger than the other three together, so that the Fs over their sum
    are in the octahedron of shares up to 1/2, in which `SHARES` says where these points are.

    Parameters
    ----------
    element : NodalElement
        A tetrahedron.
    face_scale : (K, 4)
        Fs.
    """
    root = np.linalg.cholesky(element.mass)
    lifts = element.lift.reshape(element.Np, 4, element.Nfp)
    forms = []  # R^-1 M_f R^-T with M = R R^T, of which M^-1 M_f has the eigenvalues
    for f in range(4):
        face_mass = np.zeros_like(element.mass)
        face_mass[:, element.face_nodes[f]] = element.mass @ lifts[:, f]
        forms.append(np.linalg.solve(root, np.linalg.solve(root, face_mass).T))
    points = multi_indices(3, SHARES) / SHARES
    points = points[points.max(axis=1) <= 0.5]
    largest = np.linalg.eigvalsh(np.tensordot(points, forms, 1))[:, -1]
    total = face_scale.astype(np.float64).sum(axis=1)
    shares = 0.25 + (1 - 1e-9) * (face_scale / total[:, None] - 0.25)  # not outside by rounding
    return total * LinearNDInterpolator(points[:, 1:], largest)(shares[:, 1:])


@dataclass(frozen=True)
class Costs:
    """What steps cost, in units of one Runge-Kutta stage of one element.

    Attributes
    ----------
    update : float
        A Taylor step of an element.
    tick : float
        To begin with Taylor steps, however few elements end theirs together.
    stage : float
        To begin with a Runge-Kutta stage of all elements.
    """

    update: float
    tick: float
    stage: float

    def of_period(self, clusters: Clusters) -> float:
        """A period of local steps."""
        return self.update * clusters.updates + self.tick * (clusters.period + 1)

    def of_step(self, K: int, stages: int) -> float:
        """A global step of K elements."""
        return stages * (K + self.stage)


@dataclass(frozen=True, eq=False)
class Choice:
    """Clusters, and what a run with them costs beside one with global steps.

    Attributes
    ----------
    clusters : Clusters
    count : int
        Periods of the run.
    work, global_work : float
        Of the run, as `Costs` has it.
    """

    clusters: Clusters
    count: int
    work: float
    global_work: float

    @property
    def pays(self) -> bool:
        """Whether local steps are expected to be the faster ones."""
        return self.work < self.global_work

    @property
    def sentence(self) -> str:
        """What was chosen, and why."""
        clusters, ratio = self.clusters, self.global_work / self.work
        if not self.pays:
            return (
                f"global time steps: local ones are expected to take {1 / ratio:.1f} times as long "
                f"on this mesh"
            )
        counts = ", ".join(map(str, clusters.counts))
        saved = len(clusters.number) * clusters.period / clusters.updates
        return (
            f"local time steps from {clusters.dt:.4g} to {clusters.period * clusters.dt:.4g}, each "
            f"of {counts} elements twice as long as the one before: {saved:.1f} times fewer "
            f"updates, {ratio:.1f} times less work than global steps"
        )


def choose(
    mesh: Mesh,
    limits: np.ndarray,
    span: float,
    costs: Costs,
    stages: int,
    global_dt: float,
) -> Choice:
    """The clusters with which a run is expected to be the fastest.

    All steps may be shorter than need be, so that more elements fit a cluster of longer steps, and
    the clusters of the longest steps are merged where they are so small, or the run so short, that
    they save nothing.

    Parameters
    ----------
    mesh : Mesh
    limits : (K,)
        The longest step of each element.
    span : float
        Time from the beginning to the end of the run.
    costs : Costs
    stages : int
        Of a global step.
    global_dt : float
        The longest global step.
    """
    count, _ = steps(0.0, span, global_dt)
    global_work = count * costs.of_step(mesh.K, stages)
    best: Choice | None = None
    for share in SHORTER:
        dt = float(limits.min()) * share
        exact = np.log2(limits / dt) + 1e-12
        number = np.clip(exact.astype(np.int64), 0, MOST_CLUSTERS - 1)
        number = graded(mesh.neighbors, number)
        for last in range(int(number.max()) + 1):
            clusters = Clusters(np.minimum(number, last), dt)
            count, longest = steps(0.0, span, clusters.period * dt)
            work = count * costs.of_period(clusters)
            if best is None or work < best.work:
                clusters = replace(clusters, dt=longest / clusters.period)
                best = Choice(clusters, count, work, global_work)
    return best


def taylor_weights(order: int, late: Any, h: Any) -> Iterator[Any]:
    """For j = 0 to N the integral of s^j / j! over s from `late` to late + h."""
    for j in range(order + 1):
        yield ((late + h) ** (j + 1) - late ** (j + 1)) / math.factorial(j + 1)


def taylor_sums(order: int, clusters: Clusters) -> np.ndarray:
    """With what a step sums its expansion, of each cluster, (last + 1, N + 1, 3).

    Of V^j u to the polynomial at the end of the step, to its integral over the step, and to that
    over the first half.
    """
    h = clusters.dt * 2.0 ** np.arange(clusters.last + 1)
    powers = [h**j / math.factorial(j) for j in range(order + 1)]
    whole, half = (list(taylor_weights(order, 0.0, s)) for s in (h, h / 2))
    return np.moveaxis(np.array([powers, whole, half]), 2, 0).swapaxes(1, 2)


# ------------------------------------------------------------------------------ what comes in


class Given:
    """What is given on the boundary, integrated over the step of the element there.

    Parameters
    ----------
    operator : a family's operator
    as_fields : function
        Of the family's reference.
    nothing : (n, nb, Nfp) array
        What `boundary_data` of the reference returns where nothing is given.
    number : (K,) ints
        Of each element's cluster.
    order : int
        N: Gauss's points make the integral as exact as the steps are, of order N + 1.

    Attributes
    ----------
    data : (n, nb, Nfp) array
        Values at nodes; where nothing is given, zero.
    """

    def __init__(
        self,
        operator: Any,
        as_fields: Callable[[Any, tuple[int, ...]], np.ndarray],
        nothing: np.ndarray,
        number: np.ndarray,
        order: int,
    ) -> None:
        self.as_fields, self.data = as_fields, nothing
        self.points, self.weights = gauss_points(order)
        cluster = number[operator.trace.boundary_faces[:, 0]]
        self.parts: list[list[tuple[np.ndarray, np.ndarray, Callable]]] = []
        for c in range(int(number.max()) + 1):
            mine = []
            for faces, function in operator.sources:
                some = np.asarray(faces)[cluster[faces] == c]
                if len(some):
                    mine.append((some, operator.boundary_points[:, some], function))
            self.parts.append(mine)

    def integrate(self, c: int, end: float, h: float) -> None:
        """Set the data of cluster c for a step h that ends at `end`."""
        for some, at, function in self.parts[c]:
            times = end + (self.points - 1) * h
            values = (self.as_fields(function(*at, t), at.shape[1:]) for t in times)
            terms = zip(self.weights, values, strict=True)
            self.data[:, some] = h * sum(weight * value for weight, value in terms)


def gauss_points(order: int) -> tuple[np.ndarray, np.ndarray]:
    """Points in the unit interval, and weights, exact to that order."""
    points, weights = np.polynomial.legendre.leggauss(order // 2 + 1)
    return (1 + points) / 2, weights / 2


def given_to(solver: Any, clusters: Clusters) -> Given:
    """What is given on the boundary of a solver's domain."""
    operator, reference = solver.operator, solver.reference
    nothing = reference.boundary_data(replace(operator, sources=()), 0.0)
    return Given(operator, reference.as_fields, nothing, clusters.number, solver.element.order)


def ending(tick: int, last: int) -> int:
    """The last cluster whose steps end with the tick of that number; they begin with the next."""
    after = tick + 1
    return min(last, (after & -after).bit_length() - 1)


# ----------------------------------------------------------------------------- the definition


class HostLocalSteps:
    """Clustered Taylor steps in NumPy, tick by tick on all elements: the definition of right.

    In every smallest step, a *tick*, the traces of both sides are integrated from the expansion
    that the element made when its own step began.

    Parameters
    ----------
    solver : LinearSolver
    u : (n, K, Np) array
        Where the run begins.
    clusters : Clusters
    """

    def __init__(self, solver: Any, u: np.ndarray, clusters: Clusters) -> None:
        self.solver, self.clusters = solver, clusters
        self.u = solver._unknowns(u).copy()
        self.order = solver.element.order
        self.given = given_to(solver, clusters)
        weights = solver._energy_weights(slice(None))
        self.matter = weights[..., None].astype(u.dtype)

    def step(self, t: float) -> None:
        """A period from time t, for all elements."""
        solver, clusters, N = self.solver, self.clusters, self.order
        operator, reference, dt = solver.operator, solver.reference, clusters.dt
        u, own = self.u, 2**clusters.number
        expansion = np.zeros((N + 1, *u.shape), u.dtype)
        gained, begun = np.zeros_like(u), np.zeros(len(own), int)
        for tick in range(clusters.period):
            due = tick % own == 0
            begun[due] = tick
            derivative = u
            for j in range(N + 1):
                expansion[j][:, due] = derivative[:, due]
                if j < N:
                    derivative = reference.volume(operator, expansion[j]) / self.matter
            late = ((tick - begun) * dt)[:, None]
            integral = self._sum(expansion, taylor_weights(N, late, dt))
            data = np.zeros_like(self.given.data)
            ends = (tick + 1) % own == 0
            k = operator.trace.boundary_faces[:, 0]
            for c in range(ending(tick, clusters.last) + 1):
                self.given.integrate(c, t + (tick + 1) * dt, 2**c * dt)
            data[:, ends[k]] = operator.basis.face_from_nodal(self.given.data[:, ends[k]])
            jumps = reference.jumps(operator, integral, data)
            flux = reference.fluxes(operator, jumps)
            gained += reference.lift(operator, flux) / self.matter
            h = (own * dt)[:, None]
            powers = (h**j / math.factorial(j) for j in range(N + 1))
            u[:, ends] = (self._sum(expansion, powers) + gained)[:, ends]
            gained[:, ends] = 0

    def _sum(self, expansion: np.ndarray, weights: Iterator[np.ndarray]) -> np.ndarray:
        """The expansion with these weights, each (K, 1), in its own precision."""
        terms = zip(expansion, weights, strict=True)
        return sum(term * weight.astype(term.dtype) for term, weight in terms)

    def download(self) -> np.ndarray:
        """A copy of the state, as nodal values."""
        return self.solver._nodal(self.u).copy()

    def raw(self) -> np.ndarray:
        """A copy of the state in its own layout."""
        return self.u.copy()

    def restore(self, raw: np.ndarray) -> None:
        """Replace the state by what `raw` returned."""
        self.u[:] = raw


# ----------------------------------------------------------------------------- on processor cores


class CoreLocalSteps:
    """Clustered Taylor steps on processor cores, in one pass per tick and two more per period.

    Parameters
    ----------
    solver : LinearSolver
    launcher : a family's launcher of local steps
        With ``advance(state, data, tick, last, begins)``.
    u : (n, K, Np) array
        Where the run begins.
    clusters : Clusters
    """

    def __init__(self, solver: Any, launcher: Any, u: np.ndarray, clusters: Clusters) -> None:
        self.launcher, self.clusters = launcher, clusters
        self.state = launcher.upload(u)
        self.given = given_to(solver, clusters)
        values = self.given.data
        self.data = values.reshape(-1) if values.size else np.zeros(1, values.dtype)

    def step(self, t: float) -> None:
        """A period from time t, for all elements."""
        launcher, dt = self.launcher, self.clusters.dt
        last, period = self.clusters.last, self.clusters.period
        launcher.advance(self.state, self.data, -1, last, True)
        for tick in range(period):
            upto = ending(tick, last)
            for c in range(upto + 1):
                self.given.integrate(c, t + (tick + 1) * dt, 2**c * dt)
            launcher.advance(self.state, self.data, tick, upto, tick + 1 < period)

    def download(self) -> np.ndarray:
        """The state as nodal values."""
        return self.launcher.download(self.state)

    def raw(self) -> np.ndarray:
        """The state in the launcher's layout."""
        return self.state.copy()

    def restore(self, raw: np.ndarray) -> None:
        """Replace the state by what `raw` returned."""
        self.state[:] = raw


# --------------------------------------------------------------------------- for the kernels


@dataclass(frozen=True, eq=False)
class Layout:
    """Where kernels hold what elements know of each other.

    Elements stand in groups of as many as a vector has lanes, each of one cluster, and groups are
    sorted by cluster. At the end of each tick the first groups finish their steps and begin the
    next: one launch does both. It reads integrals Q from one *region* and writes to another, so
    that no element sees a neighbor's next step. Of cluster c, in tick n, bit c of n says which
    region it is. A region has, in units of groups,

    - Q of all groups;
    - of groups with a neighbor of longer steps, the sum of Q over two steps, in the region of the
      neighbor;
    - of groups with a neighbor of shorter steps, the integral over half of the step: over the first
      half in region 0, over the second in region 1. It is there twice, as bit c of n says.

    Attributes
    ----------
    order : (groups * lanes,) ints
        The element at each place, -1 where there is none.
    place : (K,) ints
        And where each element is.
    cluster : (groups,) int32
    ends : (last + 1,) ints
        How many groups there are up to each cluster.
    longer, shorter : (groups,) int32
        The number of a group among those with a neighbor of longer, or of shorter steps; -1 of
        others.
    sums, halves : int
        How many have a neighbor of longer, and of shorter steps.
    meets : (2, K, faces) ints
        Where the neighbor's values are in region 0, group * lanes + lane; the own place where there
        is none. Two tables, by bit c + 1 of n, which differ toward neighbors of longer steps.
    """

    order: np.ndarray
    place: np.ndarray
    cluster: np.ndarray
    ends: np.ndarray
    longer: np.ndarray
    shorter: np.ndarray
    sums: int
    halves: int
    meets: np.ndarray

    @property
    def region(self) -> int:
        """Groups in a region."""
        return len(self.cluster) + self.sums + 2 * self.halves


def layout(mesh: Mesh, number: np.ndarray, lanes: int) -> Layout:
    """Elements in groups of `lanes`, sorted by cluster and along a curve inside of each."""
    curve = along_a_curve(mesh)
    counts = np.bincount(number)
    groups = -(-counts // lanes)
    ends = np.cumsum(groups)
    order = np.full(ends[-1] * lanes, -1)
    for c, (end, some) in enumerate(zip(ends, groups, strict=True)):
        first = (end - some) * lanes
        order[first : first + counts[c]] = curve[number[curve] == c]
    place = np.empty(mesh.K, np.int64)
    filled = np.flatnonzero(order >= 0)
    place[order[filled]] = filled
    cluster = np.repeat(np.arange(len(counts)), groups).astype(np.int32)

    inside = mesh.neighbors >= 0
    other = np.where(inside, mesh.neighbors, np.arange(mesh.K)[:, None])
    apart = number[other] - number[:, None]
    group, lane = np.divmod(place, lanes)
    numbers = []
    for side in (apart > 0, apart < 0):
        some = np.unique(group[side.any(axis=1)])
        numbers.append(np.full(len(cluster), -1, np.int32))
        numbers[-1][some] = np.arange(len(some))
    longer, shorter = numbers
    sums, halves = (int(side.max(initial=-1)) + 1 for side in numbers)
    G = len(cluster)
    meets = []
    for later in range(2):
        there = np.select(
            [apart < 0, apart > 0],
            [G + longer[group[other]], G + sums + later * halves + shorter[group[other]]],
            group[other],
        )
        meets.append(there * lanes + lane[other])
    return Layout(
        order=order,
        place=place,
        cluster=cluster,
        ends=ends,
        longer=longer,
        shorter=shorter,
        sums=sums,
        halves=halves,
        meets=np.stack(meets),
    )
