"""What is measured of whole solutions: where the time goes on a GPU, and what others take."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator
from scipy.sparse.linalg import gmres as scipy_gmres

from dgbook.gpu import Device, libraries
from dgbook.gpu import device as find_device
from dgbook.gpu.timing import FEWEST_SAMPLES, Timing
from dgbook.hdg.blocks import BlockMatrix
from dgbook.hdg.cost import matrix_bytes, solution_cost
from dgbook.hdg.discretization import Discretization, discretize, on_device
from dgbook.hdg.exact import cylinder_mesh
from dgbook.hdg.krylov import Gmres, forcing_term, gmres, product_on
from dgbook.hdg.plan import Shape
from dgbook.hdg.preconditioner import (
    PRECONDITIONERS,
    Sparse,
    TwoLevel,
    coarse_space,
    for_pyamg,
)
from dgbook.hdg.problem import FarField, NavierStokes, Poisson, Problem, Stream
from dgbook.hdg.solver import Result, direct, newton
from dgbook.hdg.system import linearize, start, to_device, to_host
from dgbook.lab.measuring import Rows, Sweep
from dgbook.lab.rivals.ngsolve import solve_diffusion
from dgbook.lab.session import Session, Subject
from dgbook.mesh import Mesh, box

SOLVED_ORDERS = (3,)
TOLERANCE, MAX_STEPS = 1e-9, 30
"""Of Newton's method."""
SAME = 1e-5
"""Of the largest number in u: by how much solutions may differ whose residuals are small."""
SAME_PROBLEM = 0.1
"""The same for the root mean square of another method's: on a cube of 8 cells, where the source's
jump is inside elements, it differs by 0.04, and half as much on every 1.6 times finer mesh."""
LIMIT = 20.0
"""Seconds that a rival on the host may take."""
RESTART = 100
"""Of GMRES, in every row and every rival's but CuPy's."""
FIXED, LEAST = 1e-4, 1e-6
"""What GMRES leaves of the right-hand side of a step of Newton's method: in rows of "fixed" always,
and at the least, where a forcing term decides. (With 1e-4 as the least Newton's method takes a step
more at the cylinder of 24: 319 iterations in place of 281, and 358 with 1e-4 always.)"""
COARSE = ("schwarz+coarse:single", "jacobi+coarse", "schwarz+coarse")


def source(*x: np.ndarray) -> list[np.ndarray]:
    """A right-hand side that no few eigenfunctions hold: waves of several lengths, and a jump.

    GMRES solves for a single sine in far fewer steps than for anything that a problem has.
    """
    return [formula(np, lambda t: t > 0, x)]


def formula(functions: Any, positive: Callable[[Any], Any], x: Sequence[Any]) -> Any:
    """That of `source`, by the sine, cosine and exponential of any library: NumPy or NGSolve."""
    sin, cos, exp = functions.sin, functions.cos, functions.exp
    waves = sin(13 * x[0] + 7 * x[1]) + exp(x[0] * x[1]) * cos(5 * x[1] - 3 * x[0] * x[0])
    return (waves + 3 * positive(x[0] - 0.37)) * (1 + cos(9 * x[-1] * x[0]))


def nothing(*x: np.ndarray) -> list[np.ndarray]:
    """The value on the boundary."""
    return [0 * x[0]]


@dataclass(frozen=True)
class Case:
    """A problem whose solution is timed.

    Attributes
    ----------
    name : {"poisson", "cylinder"}
    dim, cells : int
        Cells along each edge of a square or a cube, or edges of the cylinder.
    layers : int or None
        Around the cylinder.
    rivals : tuple of str
        Of `RIVALS`, those that are likely to end within `LIMIT`.
    variants : tuple of str
        Of `VARIANTS`. The last one's row has the rivals too.
    """

    name: str
    dim: int
    cells: int
    layers: int | None = None
    rivals: tuple[str, ...] = ()
    variants: tuple[str, ...] = COARSE

    @property
    def small(self) -> Case:
        """The same on next to no elements: it compiles what the case runs, whatever its size."""
        return replace(self, cells=8 if self.name == "cylinder" else 2, layers=1)

    @property
    def mesh(self) -> Mesh:
        """Triangles or tetrahedra."""
        if self.name == "cylinder":
            return cylinder_mesh(self.cells, layers=self.layers)
        return box((self.cells,) * self.dim)

    @property
    def problem(self) -> Problem:
        """Diffusion with `source`, or a flow at Re = 20, M = 0.1."""
        if self.name == "cylinder":
            boundary = {"cylinder": "adiabatic", "farfield": FarField(Stream(0.1))}
            return NavierStokes(20.0, 0.1, boundary)
        return Poisson(source, nothing)

    @property
    def accuracy(self) -> float:
        """Of a trace system: of the only one, or the highest of those of Newton's steps."""
        return 1e-8 if self.problem.linear else LEAST

    def discretized(self, order: int) -> Discretization:
        """The problem on its mesh, on the host."""
        return discretize(self.problem, self.mesh, order)

    def gmres(self, device: Device, **options: Any) -> Gmres:
        """What solves the trace systems; those of Newton's steps with a forcing term."""
        defaults = {
            "restart": RESTART,
            "tolerance": self.accuracy,
            "max_iterations": 10_000,
            "forcing": not self.problem.linear,
        }
        return Gmres(device, **defaults | options)


VARIANTS = {
    "jacobi": {"preconditioner": "jacobi", "coarse": False},
    "schwarz": {"coarse": False},
    "schwarz+coarse:single": {"single": True},
    "jacobi+coarse": {"preconditioner": "jacobi"},
    "schwarz+coarse:fixed": {"forcing": False, "tolerance": FIXED},
    "schwarz+coarse": {},
}
"""Of `Gmres` on the GPU, by the path of a row. "fixed" is for Newton's method only: every step is
solved to `FIXED`. A forcing term saves iterations, and may cost steps."""
LINEAR = tuple(name for name in VARIANTS if name != "schwarz+coarse:fixed")
NEWTON = "schwarz+coarse:fixed", "schwarz+coarse"

ALL = "splu", "gmres", "pyamg", "cores", "ngsolve", "cupy"
CASES = (
    Case("poisson", 2, 16, variants=COARSE[2:]),
    Case("poisson", 2, 64, None, ALL, LINEAR),
    Case(
        "poisson", 2, 128, None, ("splu", "pyamg", "ngsolve", "cupy"), ("schwarz", "schwarz+coarse")
    ),
    Case("poisson", 2, 256, None, ("pyamg", "ngsolve", "cupy"), ("schwarz", *COARSE[1:])),
    Case("poisson", 2, 512, None, ("ngsolve", "cupy"), COARSE[2:]),
    Case("poisson", 3, 8, None, ALL, LINEAR),
    Case("poisson", 3, 24, None, ("ngsolve", "cupy"), ("schwarz", *COARSE[1:])),
    Case("poisson", 3, 32, None, ("ngsolve",), variants=COARSE[2:]),
    Case("cylinder", 2, 24, None, ("splu", "cores"), NEWTON),
    Case("cylinder", 2, 40, None, ("splu",), NEWTON),
    Case("cylinder", 2, 62, 63, (), NEWTON),
)
"""Of sizes at which 20 solutions on a GPU take seconds, and so does each rival on the host.

The last is the paper's own mesh: 188,480 unknowns (Table 1).
"""


# ----------------------------------------------------------------------------------------- rivals


def on_host(d: Discretization, linear: Callable[[BlockMatrix, Any], Any]) -> Result:
    """A solution with elements condensed on the processor's cores."""
    return newton(d, start(d), TOLERANCE, MAX_STEPS, linear, find_device("cpu"))


def by_splu(case: Case, d: Discretization) -> dict[str, Any]:
    """SciPy's sparse direct solver, with the host's elimination."""
    result = on_host(d, direct)
    return {"u": result.u, "seconds": result.seconds}


def by_scipys_gmres(case: Case, d: Discretization) -> dict[str, Any]:
    """SciPy's GMRES with compressed rows and the same preconditioner, on one core."""
    host, space = find_device("cpu"), coarse_space(d)
    seconds: dict[str, float] = {"set up": 0.0, "cycles": 0.0}
    steps: list[int] = []

    def linear(matrix: BlockMatrix, rhs: np.ndarray) -> np.ndarray:
        begin = time.perf_counter()
        A, S = matrix.to_csr(), Sparse(PRECONDITIONERS["schwarz"](matrix).to_csr(), host)
        two = TwoLevel(matrix, space, S, host)
        z = np.empty(A.shape[0])
        prepared = time.perf_counter()

        def M(v: np.ndarray) -> np.ndarray:
            two(v, z)
            return z

        # SciPy's preconditioner is on the left, where it changes what the residual is.
        AM = LinearOperator(A.shape, lambda v: A @ M(v))
        norms: list[float] = []
        y, _ = scipy_gmres(
            AM,
            rhs.ravel(),
            rtol=case.accuracy,
            restart=RESTART,
            maxiter=100,
            callback=norms.append,
            callback_type="pr_norm",
        )
        seconds["set up"] += prepared - begin
        seconds["cycles"] += time.perf_counter() - prepared
        steps.append(len(norms))
        return M(y).reshape(rhs.shape)

    result = on_host(d, linear)
    return {"u": result.u, "seconds": parts(result, seconds), "iterations": steps}


def by_pyamg(case: Case, d: Discretization) -> dict[str, Any]:
    """PyAMG's smoothed aggregation for the trace system itself, with conjugate gradients."""
    import pyamg

    seconds: dict[str, float] = {}
    norms: list[float] = []

    def linear(matrix: BlockMatrix, rhs: np.ndarray) -> np.ndarray:
        begin = time.perf_counter()
        hierarchy = pyamg.smoothed_aggregation_solver(for_pyamg(matrix.to_csr()))
        prepared = time.perf_counter()
        limits = {"tol": case.accuracy, "maxiter": 1000, "accel": "cg"}
        x = hierarchy.solve(rhs.ravel(), residuals=norms, **limits)
        seconds["set up"] = prepared - begin
        seconds["cycles"] = time.perf_counter() - prepared
        return x.reshape(rhs.shape)

    result = on_host(d, linear)
    return {
        "u": result.u,
        "seconds": parts(result, seconds),
        "iterations": [len(norms) - 1],
    }


def by_ngsolve(case: Case, d: Discretization) -> dict[str, Any]:
    """NGSolve's own hybridized method and preconditioner, on all cores of the host."""
    return solve_diffusion(d, formula, case.accuracy)


def by_our_gmres(case: Case, d: Discretization) -> dict[str, Any]:
    """`Gmres` on all cores of the host."""
    linear = case.gmres(find_device("cpu"))
    result = on_host(d, linear)
    steps = [solution.iterations for solution in linear.solutions]
    return {"u": result.u, "seconds": parts(result, spent(linear)), "iterations": steps}


def by_cupys_gmres(case: Case, d: Discretization) -> dict[str, Any]:
    """CuPy's GMRES on the GPU, with our product and preconditioner; of a linear problem.

    It learns the residual at the ends of cycles only. So it gets the length that is best for it:
    as many vectors as ours took.
    """
    device = find_device("cuda")
    for each in (case.small.discretized(d.element.order), d):  # the first compiles
        system = linearize(on_device(each, device), to_device(start(each), device))
        b = system.rhs.reshape(-1)
        product = product_on(system.matrix, device)
        inverse = product_on(PRECONDITIONERS["schwarz"](system.matrix), device)
        if (space := coarse_space(each)).count:
            inverse = TwoLevel(system.matrix, space, inverse, device)
        ours = gmres(product, b, device, inverse, None, RESTART, case.accuracy, 10_000)
        restart = min(RESTART, max(1, ours.iterations))
        device.synchronize()
        before = time.perf_counter()
        x, cycles = libraries.gmres(product, inverse, b, restart, case.accuracy)
        device.synchronize()
        seconds = {"cycles": time.perf_counter() - before}
    state = to_host(system.recover(x.reshape(system.rhs.shape)), device)
    return {"u": state.u, "seconds": seconds, "iterations": [cycles * restart]}


ON_HOST: dict[str, Callable[[Case, Discretization], dict[str, Any]]] = {
    "splu": by_splu,
    "gmres": by_scipys_gmres,
    "pyamg": by_pyamg,
    "cores": by_our_gmres,
    "ngsolve": by_ngsolve,
}
"""SciPy's direct solver, SciPy's GMRES, PyAMG, ours, and NGSolve, which is measured if it is there:
``pip install ngsolve``."""
ON_ALL_CORES = "cores", "ngsolve"


def within_limit(name: str, case: Case, d: Discretization) -> dict[str, Any] | None:
    """A rival of `ON_HOST` in a process of its own, or None if it takes longer than `LIMIT`.

    SciPy's factorization heeds no exception: only its process can be ended. Python is started and
    the problem discretized there before time counts.
    """
    program = "from dgbook.lab import hdg_solve; hdg_solve.answer()"
    # SciPy's rivals get one core: NumPy would share products among all that are too small for it.
    # Where all work, Numba's threads sleep while they wait, since others have the cores then.
    one = dict.fromkeys(("OMP_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    cores = {"OMP_WAIT_POLICY": "passive"} if name in ON_ALL_CORES else one
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=pickle.dumps((name, case, d.element.order, LIMIT)),
        stdout=subprocess.PIPE,
        env=os.environ | cores,
        check=False,
    )
    if done.returncode == -signal.SIGALRM:
        return None
    done.check_returncode()
    return pickle.loads(done.stdout)


def answer() -> None:
    """What such a process does: asked by its input, it writes what the rival found."""
    name, case, order, limit = pickle.load(sys.stdin.buffer)
    d = case.discretized(order)
    ON_HOST[name](case.small, case.small.discretized(order))  # compiles what the rival runs
    signal.setitimer(signal.ITIMER_REAL, limit)  # its signal ends the process
    solution = ON_HOST[name](case, d)
    signal.setitimer(signal.ITIMER_REAL, 0)
    pickle.dump(solution, sys.stdout.buffer)


RIVALS: dict[str, Callable[[Case, Discretization], dict[str, Any] | None]] = {
    **{name: partial(within_limit, name) for name in ON_HOST},
    "cupy": by_cupys_gmres,
}
"""Those on the host, each within the limit, and on the GPU CuPy's GMRES."""


# ------------------------------------------------------------------------------------------- rows


def spent(linear: Gmres) -> dict[str, float]:
    """What GMRES took for all systems, "set up" and "cycles"."""
    return {
        name: sum(solution.seconds[name] for solution in linear.solutions)
        for name in ("set up", "cycles")
    }


def parts(result: Result, solver: dict[str, float]) -> dict[str, float]:
    """Seconds of a solution with "solve" as "set up", "cycles" and what is left of it."""
    seconds = dict(result.seconds)
    rest = seconds.pop("solve") - sum(solver.values())
    return seconds | solver | {"rest": rest}


def timed(
    case: Case, d: Discretization, device: Device, options: dict[str, Any], samples: int
) -> tuple[Result, Gmres, list[dict[str, float]]]:
    """Solutions on a device, by the host's clock, after a small one that compiles."""
    timings = []
    first, counted = ((e, start(e)) for e in (case.small.discretized(d.element.order), d))
    for each, begin in (first, *[counted] * samples):
        linear = case.gmres(device, **options)
        result = newton(each, begin, TOLERANCE, MAX_STEPS, linear, device)
        timings.append(parts(result, spent(linear)))
    return result, linear, timings[1:]


def solve_rows(sweep: Sweep, session: Session) -> Rows:
    """Time to solution: diffusion on squares and cubes, and a flow past a cylinder.

    On the GPU from a discretization and a state on the host to the solution on the host, 20 times,
    with each of the case's variants; "seconds" are medians of its parts, and "seconds_median" has
    all of them but "discretize". What takes long on the host is done once: the discretization,
    which a mesh needs once for any number of solutions and the rivals need too, and "rivals". A
    rival that took longer than `LIMIT` is none of these: "unfinished" has the seconds that it was
    given. Both are in the row of a case's last variant; the others come before any rival begins.

    "tolerance" and "forcing" are those of `Gmres`; "asked" is what each system was solved to.

    Elements of the rivals on the host are condensed by the compiled kernels: of "cores" on all
    cores, of the others on the one that they have.

    Orders of `SOLVED_ORDERS` and double precision only; meshes have their own sizes.

    Raises
    ------
    RuntimeError
        If two solutions differ.
    """
    solved = sweep.limited(SOLVED_ORDERS, ("float64",))
    for case in CASES:
        for dim, order, _ in solved.points():
            if dim == case.dim:
                yield from case_rows(case, order, session)


def case_rows(case: Case, order: int, session: Session) -> Rows:
    """The rows about one problem, see `solve_rows`."""
    case.small.discretized(order)  # what elements of an order share is kept
    begin = time.perf_counter()
    d = case.discretized(order)
    discretization = {"discretize": time.perf_counter() - begin}
    known = None
    for path in case.variants:
        row, u = variant_row(case, d, path, session)
        known = u if known is None else known
        check_same(f"{case.name}, {path}", u, known)
        last = path == case.variants[-1]
        present = [name for name in case.rivals if name != "ngsolve" or find_spec(name)]
        others = {name: RIVALS[name](case, d) for name in present if last}
        done = {name: other for name, other in others.items() if other is not None}
        for name, other in done.items():
            another = name == "ngsolve"
            check_same(f"{case.name}, {name}", other.pop("u"), known, another)
        yield row | {
            "seconds": discretization | row["seconds"],
            "rivals": done,
            "unfinished": {name: LIMIT for name in others if name not in done},
        }


def check_same(what: str, u: np.ndarray, known: np.ndarray, another: bool = False) -> None:
    """Raise RuntimeError for a solution that is another one; `another` method may differ more."""
    if another:
        difference, limit = np.sqrt(((u - known) ** 2).mean() / (known**2).mean()), SAME_PROBLEM
    else:
        difference, limit = abs(u - known).max() / abs(known).max(), SAME
    if not difference < limit:
        raise RuntimeError(f"{what}: solutions differ by {difference:.1e}")


def asked(residuals: Sequence[float], linear: Gmres) -> list[float]:
    """What each system was solved to, of its right-hand side."""
    if not linear.forcing:
        return [linear.tolerance] * len(linear.solutions)
    steps = range(1, len(residuals))
    return [forcing_term(residuals[:n], TOLERANCE, linear.tolerance) for n in steps]


def coarse_numbers(d: Discretization) -> int:
    """Numbers that an application of the coarse level reads for a row of the trace matrix.

    Those of A P, and P's twice; what solves for the coarse level is left out.
    """
    space = coarse_space(d)
    vertices, nl = d.mesh.dim + 1, space.values.shape[1]
    of_element = vertices if nl == d.mesh.dim else vertices * (vertices + 1) // 2
    return (2 * of_element - nl) * d.n_c + 2 * nl


def variant_row(
    case: Case, d: Discretization, path: str, session: Session
) -> tuple[dict[str, Any], np.ndarray]:
    """A row about one way to solve one problem without its rivals, and u."""
    result, linear, timings = timed(case, d, session.device, VARIANTS[path], FEWEST_SAMPLES)
    timing = Timing(tuple(sum(seconds.values()) for seconds in timings), host_bound=True)
    shape = Shape(d.m, 2 * case.dim + 1, "float64")
    faces = d.faces.count
    steps = [solution.iterations for solution in linear.solutions]
    of_M = 1 if path.startswith("jacobi") else shape.blocks
    of_coarse = coarse_numbers(d) if "+coarse" in path else 0
    unknowns = d.n_c * d.element.Np, (case.dim + 1) * d.m
    cost = solution_cost(
        shape, faces, d.mesh.K, unknowns, steps, of_M, of_coarse, RESTART, path.endswith("single")
    )
    size = {
        "problem": case.name,
        "dim": case.dim,
        "cells": case.cells,
        "K": d.mesh.K,
        "m": d.m,
        "faces": faces,
        "matrix_bytes": matrix_bytes(shape, faces),
    }
    more = {
        "seconds": {name: float(np.median([s[name] for s in timings])) for name in timings[0]},
        "iterations": steps,
        "products": [solution.products for solution in linear.solutions],
        "residuals": list(result.history),
        "history": list(linear.solutions[-1].history),
        "restart": RESTART,
        "tolerance": linear.tolerance,
        "forcing": linear.forcing,
        "asked": asked(result.history, linear),
    }
    subject = Subject(d.element.order, "float64", size, faces * d.m)
    return more | session.row(subject, path, "cuda", None, cost, timing), result.u
