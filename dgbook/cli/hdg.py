"""Hybridized methods on the command line: python -m dgbook run | bench | tune hdg."""

from __future__ import annotations

import argparse
import math
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dgbook.arguments import LEAST_MACH, MOST_MACH, check_integer, check_memory, check_range
from dgbook.cli import options, running
from dgbook.cli.fields.hdg import write_fields
from dgbook.element import MAX_ORDER
from dgbook.gpu import Device
from dgbook.gpu import device as find_device
from dgbook.hdg.discretization import discretize
from dgbook.hdg.exact import Couette, Sines, cylinder_mesh, wake_length
from dgbook.hdg.krylov import Gmres, GmresError
from dgbook.hdg.launch import shape_of
from dgbook.hdg.local import State
from dgbook.hdg.plan import METHODS
from dgbook.hdg.preconditioner import PRECONDITIONERS
from dgbook.hdg.problem import (
    ConvectionDiffusion,
    FarField,
    Isothermal,
    NavierStokes,
    Poisson,
    Problem,
    Stream,
)
from dgbook.hdg.solver import NewtonError, Result, check_room, memory_bytes, solve
from dgbook.hdg.system import to_host
from dgbook.lab import hdg as measure
from dgbook.lab import measuring
from dgbook.lab.numbers import live
from dgbook.mesh import Mesh, box
from dgbook.nodal.cores import use_threads

PROBLEMS = ("poisson", "convection", "couette", "cylinder")
GAS = ("couette", "cylinder")
WALLS = ("adiabatic", "isothermal", "slip")
WORDS = (*WALLS, "farfield")


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `run`."""
    parser.add_argument(
        "--problem",
        default="poisson",
        choices=PROBLEMS,
        help="diffusion or convection-diffusion with a known solution; a gas between plates, with "
        "a known solution; a gas past a cylinder, or what is in the mesh file",
    )
    domain = parser.add_mutually_exclusive_group()
    domain.add_argument(
        "--mesh", type=Path, help="Gmsh file, 2.2 or 4.1; without it a square, a cube or a ring"
    )
    domain.add_argument("--cells", type=int, default=8, help="of square or cube, along each axis")
    domain.add_argument(
        "--around", type=int, default=32, help="edges of the cylinder, a multiple of 2"
    )
    parser.add_argument("--radius", type=float, default=40.0, help="where the ring ends")
    parser.add_argument(
        "--dim", type=int, default=2, choices=(2, 3), help="3 for poisson and convection only"
    )
    parser.add_argument("--order", type=int, default=3, help="polynomial degree p")
    parser.add_argument(
        "--device",
        default="auto",
        help="where elements are condensed and GMRES runs: auto, cuda, cpu, which is compiled "
        "kernels on processor cores, or reference, by which NumPy condenses them",
    )
    parser.add_argument(
        "--threads", type=int, metavar="N", help="cores that kernels take; all if not given"
    )
    parser.add_argument(
        "--linear",
        default="gmres",
        choices=("direct", "gmres"),
        help="how trace systems are solved; direct is on the host",
    )
    parser.add_argument(
        "--preconditioner",
        default="schwarz",
        choices=PRECONDITIONERS,
        help="of GMRES: elements or faces by themselves, after a coarse level",
    )
    parser.add_argument("--restart", type=int, default=100, help="vectors of GMRES")
    parser.add_argument(
        "--tolerance", type=float, default=1e-9, help="of all residuals together, for a gas"
    )
    parser.add_argument("--max-steps", type=int, default=30, help="of Newton's method")
    parser.add_argument("--output", type=Path, help="a .vtu file for ParaView")

    physics = parser.add_argument_group("the problem")
    physics.add_argument(
        "--velocity",
        type=float,
        nargs="+",
        metavar="C",
        help="of convection, as many numbers as dimensions; 1 along all axes if not given",
    )
    physics.add_argument("--diffusivity", type=float, default=0.01, help="of convection")
    physics.add_argument(
        "--reynolds",
        type=float,
        help="of a gas; if not given, 1 between plates and 20 past a cylinder",
    )
    physics.add_argument(
        "--mach", type=float, help="of a gas; if not given, 0.15 between plates and 0.1 in a stream"
    )
    physics.add_argument("--angle", type=float, default=0.0, help="of the stream, in degrees")
    physics.add_argument(
        "--boundary",
        action="append",
        default=[],
        metavar="NAME=CONDITION",
        help=f"of a gas past a body: {', '.join(WORDS)}; without NAME for all boundaries; may be "
        "repeated, the last counts. Where nothing is said adiabatic, but farfield where that is "
        "the boundary's name",
    )
    physics.add_argument(
        "--temperature",
        type=float,
        default=1.0,
        help="of isothermal walls, in units of the stream's",
    )


def run(arguments: argparse.Namespace) -> None:
    """Solve a steady problem by hybridization, and write a file for ParaView."""
    _check(arguments)
    check_integer("order", arguments.order, 0, MAX_ORDER)
    case = CASES[arguments.problem](arguments)
    device = find_device(arguments.device)
    if device.kind == "simulator":
        raise ValueError("--device simulator; allowed are auto, cuda, cpu and reference")
    if arguments.threads is not None:
        use_threads(arguments.threads)
    linear = _linear(arguments, device)
    n_c = len(case.problem.names(case.mesh.dim))
    needs = check_room(case.mesh, arguments.order, n_c, device, linear)
    # Whatever else is wrong is found here: discretizing takes a small part of a step.
    discretize(case.problem, case.mesh, arguments.order)
    print(_description(case, arguments.order, n_c, needs, device), flush=True)
    begin = time.perf_counter()
    # Where a step of Newton's is too long, there may be no gas between nodes: it is halved then.
    with np.errstate(invalid="ignore"):
        result = _solved(case, arguments, device, linear)
    print(f"solved in {time.perf_counter() - begin:.1f} s")
    for line in case.findings(result):
        print(line)
    if arguments.output:
        write_fields(arguments.output, result)
        print(f"written: {arguments.output}")


# --------------------------------------------------------------------------------------- problems


@dataclass(frozen=True)
class Case(ABC):
    """A problem on a mesh."""

    problem: Problem
    mesh: Mesh
    about: str

    @abstractmethod
    def findings(self, result: Result) -> Iterator[str]:
        """What there is to say about a solution, in lines."""


class Scalar(Case):
    """One field, whose exact value is known."""

    def findings(self, result: Result) -> Iterator[str]:
        """Errors of u, of q and of the post-processed u."""
        exact = Sines()
        yield f"L2 error of u {result.l2_error(exact):.3e}"
        yield f"L2 error of q {result.l2_error(exact.gradient, lambda u, q: q):.3e}"
        yield f"L2 error of u, post-processed {result.postprocessed_error(exact):.3e}"


def _poisson(arguments: argparse.Namespace) -> Case:
    exact, dim = Sines(), arguments.dim
    problem = Poisson(exact.source((0.0,) * dim, 1.0), exact)
    return Scalar(problem, _square(arguments), "diffusion, u = sin(pi x) sin(pi y) ...")


def _convection(arguments: argparse.Namespace) -> Case:
    exact = Sines()
    velocity = tuple(arguments.velocity or (1.0,) * arguments.dim)
    if len(velocity) != arguments.dim:
        raise ValueError(f"--velocity {velocity}; allowed: {arguments.dim} numbers")
    options.check_finite("--velocity", *velocity)
    kappa = arguments.diffusivity
    check_range(f"--diffusivity {kappa}", kappa)
    problem = ConvectionDiffusion(exact.source(velocity, kappa), exact, velocity, kappa)
    about = f"velocity {velocity}, diffusivity {kappa:g}, u = sin(pi x) sin(pi y) ..."
    return Scalar(problem, _square(arguments), about)


def _square(arguments: argparse.Namespace) -> Mesh:
    if arguments.mesh is not None:
        return running.mesh_from(arguments.mesh, arguments.dim)
    K = running.elements_in_box("--cells", arguments.cells, arguments.dim)
    _refuse_large(f"--cells {arguments.cells}", K, arguments)
    return box((arguments.cells,) * arguments.dim)


@dataclass(frozen=True)
class Plates(Case):
    """Couette's flow."""

    exact: Couette

    def findings(self, result: Result) -> Iterator[str]:
        """Errors of the fields, of the shear stress and of the temperature's slope."""
        gas, flow = self.problem, self.exact
        yield f"L2 error of u {result.l2_error(flow):.3e}"
        stress = result.l2_error(flow.shear_stress, lambda u, q: gas.stress(u, q)[0, 1])
        yield f"L2 error of tau_xy {stress:.3e}"
        slope = result.l2_error(
            flow.temperature_slope, lambda u, q: gas.temperature_gradient(u, q)[1]
        )
        yield f"L2 error of dT/dy {slope:.3e}"


def _couette(arguments: argparse.Namespace) -> Case:
    if arguments.mesh is not None:
        raise ValueError("--mesh with --problem couette: the plates are at y = 0 and y = 1")
    flow = Couette(arguments.reynolds or 1.0, arguments.mach or 0.15)
    about = f"Couette's flow, Reynolds number {flow.reynolds:g}, Mach number {flow.mach:g}"
    return Plates(flow.gas, _square(arguments), about, flow)


@dataclass(frozen=True)
class Body(Case):
    """A body in a stream."""

    walls: tuple[str, ...]
    direction: tuple[float, float]
    has_wake: bool

    def findings(self, result: Result) -> Iterator[str]:
        """Forces on the walls, over half the stream's dynamic pressure, and the wake's length."""
        along, across = np.array(self.direction), np.array([-self.direction[1], self.direction[0]])
        for name in self.walls:
            force = 2 * result.boundary_flux(name)[1:3]
            yield f"{name}: drag {along @ force:.4f}, lift {across @ force:.4f}"
        if self.has_wake:
            yield f"wake {wake_length(result):.4f} diameters long"


def _body(arguments: argparse.Namespace) -> Case:
    if arguments.mesh is None:
        K = round(arguments.around**2 * math.log(2 * arguments.radius) / math.pi)  # squares, cut
        _refuse_large(f"--around {arguments.around}", max(1, K), arguments)
        mesh = cylinder_mesh(arguments.around, arguments.radius)
    else:
        mesh = running.mesh_from(arguments.mesh, 2)
    names = list(mesh.boundary)
    far = ["farfield=farfield"] if "farfield" in names else []
    words = running.words_of(far + arguments.boundary, names, WORDS, "adiabatic")
    walls = tuple(name for name, word in words.items() if word in WALLS)
    if not walls or len(walls) == len(names):
        given = ", ".join(f"{name}={word}" for name, word in words.items())
        raise ValueError(f"--boundary: {given}; allowed: a wall and a farfield at least")
    angle = math.radians(arguments.angle)
    direction = math.cos(angle), math.sin(angle)
    mach = arguments.mach or 0.1
    conditions = {
        "isothermal": Isothermal(arguments.temperature),
        "farfield": FarField(Stream(mach, direction)),
    }
    boundary = {name: conditions.get(word, word) for name, word in words.items()}
    problem = NavierStokes(arguments.reynolds or 20.0, mach, boundary)
    about = (
        f"a stream at Reynolds number {problem.reynolds:g} of the unit of length, Mach number "
        f"{mach:g}, {arguments.angle:g} degrees; boundaries "
        + ", ".join(f"{name}={word}" for name, word in words.items())
    )
    has_wake = arguments.mesh is None and arguments.angle == 0
    return Body(problem, mesh, about, walls, direction, has_wake)


CASES = dict(zip(PROBLEMS, (_poisson, _convection, _couette, _body), strict=True))


# ---------------------------------------------------------------------------------------- solving


def _check(arguments: argparse.Namespace) -> None:
    """Raise ValueError or FileNotFoundError for what no problem can have."""
    for name in ("tolerance", "max_steps"):
        options.check_positive(f"--{name.replace('_', '-')}", getattr(arguments, name))
    ranges = {"reynolds": (), "mach": (LEAST_MACH, MOST_MACH), "temperature": ()}
    for name, limits in ranges.items():
        value = getattr(arguments, name)
        if value is not None:
            check_range(f"--{name} {value}", value, *limits)
    options.check_count("--around", arguments.around, np.iinfo(np.int32).max)
    check_range(f"--radius {arguments.radius}", arguments.radius)
    options.check_finite("--angle", arguments.angle)
    if arguments.problem in GAS and arguments.dim != 2:
        raise ValueError(f"--dim {arguments.dim} with --problem {arguments.problem}; allowed: 2")
    if arguments.boundary and arguments.problem != "cylinder":
        raise ValueError(
            f"--boundary with --problem {arguments.problem}: the exact solution is given on all "
            "boundaries; allowed with cylinder"
        )
    output = arguments.output
    if output is None:
        return
    if output.suffix != ".vtu":
        raise ValueError(f"--output {output}; allowed: a name that ends in .vtu")
    running.check_place("--output", output)
    running.refuse_mesh_as_output(arguments.mesh, output)


def _refuse_large(option: str, K: int, arguments: argparse.Namespace) -> None:
    """Raise a ValueError if the host cannot hold a mesh of K elements or its systems."""
    dim, device = arguments.dim, find_device(arguments.device)
    n_c = 4 if arguments.problem in GAS else 1
    about = dim, K, (dim + 1) * K // 2, arguments.order, n_c, device, _linear(arguments, device)
    needs = max(K * running.MESH_BYTES[dim], memory_bytes(*about)[0])
    check_memory(f"{option}, {K} elements of order {arguments.order}, needs", needs)


def _linear(arguments: argparse.Namespace, device: Device) -> Gmres | None:
    """What solves trace systems; nothing for the direct solver."""
    if arguments.linear == "direct":
        return None
    # Newton's method corrects what a system's solution lacks.
    tolerance = 1e-6 if arguments.problem in GAS else 1e-10
    place = find_device("cpu") if device.is_host else device
    limits = {"restart": arguments.restart, "tolerance": tolerance}
    # Measured on processor cores: half to two thirds of the iterations.
    forcing = arguments.problem in GAS and device.is_host
    return Gmres(place, arguments.preconditioner, **limits, forcing=forcing)


def _description(case: Case, order: int, n_c: int, needs: str, device: Device) -> str:
    """What is about to be computed."""
    mesh = case.mesh
    kind = {2: "triangles", 3: "tetrahedra"}[mesh.dim]
    faces = ((mesh.dim + 1) * mesh.K + len(mesh.boundary_faces)) // 2
    nodes = math.comb(order + mesh.dim - 1, mesh.dim - 1)
    return "\n".join(
        [
            device.sentence,
            f"{mesh.K} {kind} of order {order}, {faces} faces: {faces * n_c * nodes} unknowns of "
            f"the trace, {n_c * nodes} a face",
            case.about,
            needs,
        ]
    )


def _solved(
    case: Case, arguments: argparse.Namespace, device: Device, linear: Gmres | None
) -> Result:
    """The solution; residuals are shown as they come.

    The state before a step that fails, or that somebody interrupts, is written beside the output.
    """
    about = case.problem, case.mesh, arguments.order
    options = {"device": device, "linear_solver": linear}
    if case.problem.linear:
        result = solve(*about, **options)
        print(f"residual {result.history[-1]:.3e}, at the start {result.history[0]:.3e}", end="")
        print(_iterations(linear))
        return result
    steps, last = 0, None

    def observe(residual: float, state: State) -> None:
        nonlocal steps, last
        if last is None:
            print(f"residual at the start {residual:.3e}")
        else:
            steps += 1
            print(f"residual after step {steps} {residual:.3e}{_iterations(linear)}", flush=True)
        last = state

    limits = {"tolerance": arguments.tolerance, "max_steps": arguments.max_steps}
    try:
        return solve(*about, **limits, **options, observe=observe)
    except (NewtonError, GmresError, KeyboardInterrupt):
        if steps:  # before the first one there is nothing worth keeping
            _keep(case, arguments, to_host(last, device))
        raise


def _iterations(linear: Gmres | None) -> str:
    """How many GMRES took for the last system."""
    return "" if linear is None else f", GMRES {linear.solutions[-1].iterations} iterations"


def _keep(case: Case, arguments: argparse.Namespace, state: State) -> None:
    """Write the last good state, if there is a name to write it to."""
    if arguments.output is None:
        return
    output = arguments.output
    path = output.with_name(f"{output.stem}_last_good.vtu")
    write_fields(path, Result(discretize(case.problem, case.mesh, arguments.order), state, ()))
    print(f"the last good state is in {path}", file=sys.stderr)


GIGABYTES = 2.0
"""Of a matrix: 30 times a large cache."""


def add_bench_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `bench`."""
    measuring.add_bench_arguments(
        parser, "hdg", measure.RECORDS, "dimensions, orders and precisions"
    )
    _add_sizes(parser)


def add_tune_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `tune`."""
    parser.add_argument(
        "--methods", nargs="+", default=("wide", "bulk"), choices=METHODS, help="of the product"
    )
    _add_sizes(parser)


def _add_sizes(parser: argparse.ArgumentParser) -> None:
    options.add_orders(parser, "1..10")
    parser.add_argument(
        "--dims", nargs="+", type=int, default=(2, 3), choices=(2, 3), help="dimensions"
    )
    parser.add_argument(
        "--gigabytes", type=float, default=GIGABYTES, help="of a matrix, 10^9 bytes"
    )


def _sweep(arguments: argparse.Namespace) -> measuring.Sweep:
    nbytes = arguments.gigabytes * 1e9
    return measuring.Sweep(arguments.dims, arguments.orders, arguments.dtypes, nbytes)


def bench(arguments: argparse.Namespace) -> None:
    """Measure the product with a trace matrix on this GPU and write records."""
    sweep = _sweep(arguments)
    measuring.make_records(
        arguments,
        "hdg",
        measure.RECORDS,
        lambda _: (sweep,),
        lambda _, row: _measured_again(arguments, row),
        line,
    )


def tune(arguments: argparse.Namespace) -> None:
    """Time the plans of the product on this GPU and remember the fastest."""
    device = find_device("cuda")
    sweep = _sweep(arguments)
    for order, matrix in measure.matrices(sweep, (sweep.nbytes,), device):
        shape = shape_of(matrix)
        for method in arguments.methods:
            if measure.runs(method, shape, device):
                result = measure.tune_product(matrix, method, device)
                rate = live(matrix.nbytes / result.seconds * 1e-12, "TB/s", device)
                about = f"{(shape.blocks - 1) // 2}D p={order} {shape.dtype}"
                print(f"{about}: {result.plan}, {rate}", flush=True)


def _measured_again(arguments: argparse.Namespace, row: Mapping[str, Any]) -> bool:
    return (
        row["size"]["dim"] in arguments.dims
        and row["order"] in arguments.orders
        and row["dtype"] in arguments.dtypes
    )


def line(row: Mapping[str, Any], device: Device) -> str:
    """A row as a line of text, its numbers labeled LIVE; TB/s count bytes of the matrix."""
    if "iterations" in row:
        return solution_line(row, device)
    duration = live(row["seconds_median"] * 1e6, "us", device)
    rate = live(row["size"]["matrix_bytes"] / row["seconds_median"] * 1e-12, "TB/s", device)
    size = row["size"]
    plan = " ".join(f"{key}={value}" for key, value in row["plan"].items() if key != "method")
    return (
        f"{size['dim']}D p={row['order']} m={size['m']} {row['dtype']} faces={size['faces']} "
        f"{row['path']:14} {duration.text():>11} {rate} {plan}"
    )


def solution_line(row: Mapping[str, Any], device: Device) -> str:
    """A row about a whole solution as a line of text."""
    size = row["size"]
    duration = live(row["seconds_median"], "s", device)
    spent = ", ".join(f"{name} {seconds:.3g}" for name, seconds in row["seconds"].items())
    rivals = row["rivals"].items()
    others = [f"{name} {sum(rival['seconds'].values()):.3g} s" for name, rival in rivals]
    others += [f"{name} over {limit:.3g} s" for name, limit in row["unfinished"].items()]
    return (
        f"{size['problem']} {size['dim']}D p={row['order']} faces={size['faces']} {row['path']:14} "
        f"{duration} ({spent}), iterations {row['iterations']}; "
        f"{', '.join(others) or 'no rivals'}"
    )
