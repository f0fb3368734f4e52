"""What is measured of whole solutions: where the time goes on a GPU, and what others take."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator
from scipy.sparse.linalg import gmres as scipy_gmres

from dgbook.gpu import Device, libraries
from dgbook.gpu import device as find_device
from dgbook.gpu.roofline import Ceilings
from dgbook.gpu.timing import FEWEST_SAMPLES, Timing
from dgbook.hdg.blocks import BlockMatrix, random_matrix
from dgbook.hdg.cost import matrix_bytes, solution_cost
from dgbook.hdg.cpu import CoreProduct
from dgbook.hdg.cylinder import cylinder_mesh
from dgbook.hdg.discretisation import Discretisation, discretise, on_device
from dgbook.hdg.exact import Sines
from dgbook.hdg.krylov import Gmres, product_on
from dgbook.hdg.plan import Shape
from dgbook.hdg.preconditioner import PRECONDITIONERS
from dgbook.hdg.problem import FarField, NavierStokes, Poisson, Problem, Stream
from dgbook.hdg.solver import Result, direct, newton
from dgbook.hdg.system import linearise, start, to_device, to_host
from dgbook.measuring import Rows
from dgbook.mesh import Mesh, box
from dgbook.records import measured_row

SOLVED_ORDERS = (3,)
TOLERANCE, MAX_STEPS = 1e-9, 30
"""Of Newton's method."""
SAME = 1e-5
"""Of the largest number in u: by how much solutions may differ whose residuals are small."""


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
        Of `RIVALS`, those that are not too slow to wait for.
    variants : tuple of str
        Of `VARIANTS`.
    restart : int
    """

    name: str
    dim: int
    cells: int
    layers: int | None = None
    rivals: tuple[str, ...] = ()
    variants: tuple[str, ...] = ("schwarz", "schwarz:single", "jacobi")
    restart: int = 100

    @property
    def mesh(self) -> Mesh:
        """Triangles or tetrahedra."""
        if self.name == "cylinder":
            return cylinder_mesh(self.cells, layers=self.layers)
        return box((self.cells,) * self.dim)

    @property
    def problem(self) -> Problem:
        """Diffusion with u = sin(pi x) sin(pi y) [sin(pi z)], or a flow at Re = 20, M = 0.1."""
        if self.name == "cylinder":
            boundary = {"cylinder": "adiabatic", "farfield": FarField(Stream(0.1))}
            return NavierStokes(20.0, 0.1, boundary)
        exact = Sines()
        return Poisson(exact.source((0.0,) * self.dim, 1.0), exact)

    @property
    def accuracy(self) -> float:
        """Of a trace system: of the only one, or of one among Newton's steps."""
        return 1e-4 if self.name == "cylinder" else 1e-8

    def gmres(self, device: Device, **options: Any) -> Gmres:
        """What solves the trace systems."""
        return Gmres(
            device,
            restart=self.restart,
            tolerance=self.accuracy,
            max_iterations=10_000,
            **options,
        )


VARIANTS = {
    "schwarz": {},
    "schwarz:single": {"single": True},
    "jacobi": {"preconditioner": "jacobi"},
}
"""Of `Gmres` on the GPU, by the path of a row."""

CASES = (
    Case("poisson", 2, 64, rivals=("splu", "gmres", "cores", "cupy")),
    Case("poisson", 2, 128, rivals=("splu", "cores", "cupy")),
    Case("poisson", 2, 256, rivals=("splu", "cores", "cupy")),
    Case("poisson", 3, 8, rivals=("splu", "gmres", "cores", "cupy")),
    Case("poisson", 3, 16, rivals=("gmres", "cores", "cupy")),
    Case("poisson", 3, 32, rivals=("cupy",)),
    Case("cylinder", 2, 62, 63, ("splu", "cores"), ("schwarz", "schwarz:single"), 500),
)


# ----------------------------------------------------------------------------------------- rivals


def on_host(d: Discretisation, linear: Callable[[BlockMatrix, Any], Any]) -> Result:
    """A solution with elements condensed by NumPy."""
    return newton(d, start(d), TOLERANCE, MAX_STEPS, linear, find_device("cpu"))


def by_splu(case: Case, d: Discretisation) -> dict[str, Any]:
    """SciPy's sparse direct solver, with the host's elimination."""
    result = on_host(d, direct)
    return {"result": result, "seconds": result.seconds}


def by_scipys_gmres(case: Case, d: Discretisation) -> dict[str, Any]:
    """SciPy's GMRES with compressed rows and the same preconditioner, on one core."""
    seconds: dict[str, float] = {"set up": 0.0, "cycles": 0.0}
    steps: list[int] = []

    def linear(matrix: BlockMatrix, rhs: np.ndarray) -> np.ndarray:
        begin = time.perf_counter()
        A, M = matrix.to_csr(), PRECONDITIONERS["schwarz"](matrix).to_csr()
        prepared = time.perf_counter()
        # SciPy's preconditioner is on the left, where it changes what the residual is.
        AM = LinearOperator(A.shape, lambda v: A @ (M @ v))
        norms: list[float] = []
        y, _ = scipy_gmres(
            AM,
            rhs.ravel(),
            rtol=case.accuracy,
            restart=case.restart,
            maxiter=100,
            callback=norms.append,
            callback_type="pr_norm",
        )
        seconds["set up"] += prepared - begin
        seconds["cycles"] += time.perf_counter() - prepared
        steps.append(len(norms))
        return (M @ y).reshape(rhs.shape)

    result = on_host(d, linear)
    return {"result": result, "seconds": parts(result, seconds), "iterations": steps}


def by_our_gmres(case: Case, d: Discretisation) -> dict[str, Any]:
    """`Gmres` on all cores of the host."""
    tiny = random_matrix(box((1, 1)), 1, 1, "float64", np.random.default_rng(0))
    x = np.zeros((tiny.faces, tiny.m))
    CoreProduct(tiny, parallel=True)(x, x.copy())  # compiles
    linear = case.gmres(find_device("cpu"))
    result = on_host(d, linear)
    steps = [solution.iterations for solution in linear.solutions]
    return {"result": result, "seconds": parts(result, spent(linear)), "iterations": steps}


def by_cupys_gmres(case: Case, d: Discretisation) -> dict[str, Any]:
    """CuPy's GMRES on the GPU, with our product and preconditioner; of a linear problem."""
    device = find_device("cuda")
    begin = to_device(start(d), device)
    there = on_device(d, device)
    for _ in range(2):  # the first time kernels are compiled
        system = linearise(there, begin)
        product = product_on(system.matrix, device)
        inverse = product_on(PRECONDITIONERS["schwarz"](system.matrix), device)
        device.synchronize()
        before = time.perf_counter()
        limits = case.restart, case.accuracy
        x, cycles = libraries.gmres(product, inverse, system.rhs.reshape(-1), *limits)
        device.synchronize()
        seconds = {"cycles": time.perf_counter() - before}
    state = to_host(system.recover(x.reshape(system.rhs.shape)), device)
    steps = [cycles * case.restart]  # it looks at the ends of cycles only
    return {"result": Result(d, state, ()), "seconds": seconds, "iterations": steps}


RIVALS: dict[str, Callable[[Case, Discretisation], dict[str, Any]]] = {
    "splu": by_splu,
    "gmres": by_scipys_gmres,
    "cores": by_our_gmres,
    "cupy": by_cupys_gmres,
}
"""On the host SciPy's direct solver, SciPy's GMRES, and ours; on the GPU CuPy's GMRES."""


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
    case: Case, d: Discretisation, device: Device, options: dict[str, Any], samples: int
) -> tuple[Result, Gmres, list[dict[str, float]]]:
    """Solutions on a device, by the host's clock, after one that is not counted."""
    found, begin = [], start(d)
    for _ in range(samples + 1):
        linear = case.gmres(device, **options)
        result = newton(d, begin, TOLERANCE, MAX_STEPS, linear, device)
        found.append(parts(result, spent(linear)))
    return result, linear, found[1:]


def solve_rows(
    orders: Iterable[int],
    dtypes: Iterable[str],
    dims: Iterable[int],
    nbytes: float,
    device: Device,
    ceiling: Ceilings,
    cases: Iterable[Case] = CASES,
) -> Rows:
    """Time to solution: diffusion on squares and cubes, and a flow past a cylinder.

    On the GPU from a discretisation and a state on the host to the solution on the host, 20 times,
    with each of the case's variants; "seconds" are medians of its parts. What takes long on the
    host is done once: the discretisation, which is not in the sum, and "rivals".

    Parameters
    ----------
    orders, dtypes, dims, device, ceiling
        Orders of `SOLVED_ORDERS` and double precision only.
    nbytes
        Not used: meshes have their sizes.
    cases : iterable of Case
    """
    if "float64" not in dtypes:
        return
    for case in (c for c in cases if c.dim in dims):
        for order in (p for p in orders if p in SOLVED_ORDERS):
            begin = time.perf_counter()
            d = discretise(case.problem, case.mesh, order)
            seconds = time.perf_counter() - begin
            others = {name: RIVALS[name](case, d) for name in case.rivals}
            for path in case.variants:
                row = variant_row(case, d, path, others, device, ceiling)
                yield row | {"seconds": {"discretise": seconds} | row["seconds"]}


def variant_row(
    case: Case,
    d: Discretisation,
    path: str,
    others: dict[str, dict[str, Any]],
    device: Device,
    ceiling: Ceilings,
) -> dict[str, Any]:
    """A row about one way to solve one problem.

    Raises
    ------
    RuntimeError
        If a solution on the host is another one.
    """
    result, linear, found = timed(case, d, device, VARIANTS[path], FEWEST_SAMPLES)
    for name, other in others.items():
        difference = abs(other["result"].u - result.u).max() / abs(result.u).max()
        if not difference < SAME:
            raise RuntimeError(f"{case.name}, {name}: solutions differ by {difference:.1e}")
    timing = Timing(tuple(sum(seconds.values()) for seconds in found), host_bound=True)
    shape = Shape(d.m, 2 * case.dim + 1, "float64")
    faces = d.faces.count
    steps = [solution.iterations for solution in linear.solutions]
    of_M = 1 if path == "jacobi" else shape.blocks
    unknowns = d.n_c * d.element.Np, (case.dim + 1) * d.m
    cost = solution_cost(
        shape, faces, d.mesh.K, unknowns, steps, of_M, case.restart, path.endswith("single")
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
    rivals = {
        name: {key: value for key, value in other.items() if key != "result"}
        for name, other in others.items()
    }
    more = {
        "seconds": {name: float(np.median([s[name] for s in found])) for name in found[0]},
        "iterations": steps,
        "products": [solution.products for solution in linear.solutions],
        "residuals": list(result.history),
        "restart": case.restart,
        "rivals": rivals,
    }
    dofs = faces * d.m
    return more | measured_row(
        path, "cuda", d.element.order, "float64", size, dofs, None, cost, timing, ceiling, device
    )
