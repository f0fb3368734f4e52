"""Maxwell's fused kernels in the Bernstein basis, thread by thread, against the reference."""

import math
from dataclasses import replace

import numpy as np
import pytest
from broken import maxwell_bernstein_fused as broken
from broken import maxwell_bernstein_fused_cuda as broken_cuda
from emulation import ROUNDINGS, EmulationError, device_of, emulate, needs_compiler
from fused_stages import Case
from maxwell_cases import BOUNDARY, scrambled
from team_cases import PLANS, check_every_plan, check_refused

from dgbook.check import RaceError, SimulatorError
from dgbook.element import NodalElement, multi_indices
from dgbook.element.bernstein import lattice_position
from dgbook.gpu import device, jit
from dgbook.gpu.limits import architecture
from dgbook.maxwell import reference
from dgbook.maxwell.launch.bernstein_fused import BernsteinFusedLauncher, meeting, tables
from dgbook.maxwell.launch.fused import FusedLauncher, tangents
from dgbook.maxwell.plan import BernsteinFusedPlan, FusedShape
from dgbook.mesh import box
from dgbook.nodal.bernstein import bernstein_basis
from dgbook.nodal.kernels.lift_face import make_lift_face

SIMULATOR = device("simulator")
T = 0.3
SMALL = BernsteinFusedPlan("numba", 32, 2, 2)


def make(
    order,
    dtype="float64",
    plan=SMALL,
    device=SIMULATOR,
    materials=True,
    periodic=False,
    cells=(1, 1, 1),
):
    """A launcher, the same operator in float64, random states and boundary data at t = 0.3."""
    random = np.random.default_rng(order)
    mesh = box(cells, upper=(1.0, 0.8, 1.3), periodic=periodic)
    if not periodic:
        mesh = scrambled(mesh, random, 0.15 / max(cells))
    epsilon, mu = random.uniform(0.5, 2, (2, mesh.K)) if materials else (2.0, 3.0)
    boundary, element = {} if periodic else BOUNDARY, NodalElement(3, order)
    operator, double = (
        reference.assemble(mesh, element, "upwind", epsilon, mu, boundary, precision, "bernstein")
        for precision in (dtype, "float64")
    )
    u, res = random.standard_normal((2, 6, mesh.K, element.Np)).astype(dtype)
    data = reference.boundary_data(double, T)
    return Case(
        launcher=BernsteinFusedLauncher(operator, device, plan),
        u=u,
        res=res,
        data=(data if data.size else np.zeros(1)).astype(dtype).ravel(),
        rhs=reference.rhs(double, u.astype(np.float64), T),
    )


CASES = {
    "1": dict(order=1, cells=(2, 1, 1)),
    "1 periodic fp32": dict(order=1, dtype="float32", periodic=True, cells=(2, 1, 1)),
    "2 uniform": dict(order=2, materials=False),
    "2 fp32": dict(order=2, dtype="float32"),
    "2 periodic": dict(order=2, periodic=True, cells=(2, 1, 1)),
    "3 fp32": dict(order=3, dtype="float32"),
    "4": dict(order=4, plan=BernsteinFusedPlan("numba", 32, 1, 2)),
    "5": dict(order=5, plan=BernsteinFusedPlan("numba", 64, 1, 1)),
}


@pytest.mark.parametrize("name", CASES)
def test_a_stage(name):
    """6 or 12 different elements, all boundaries, and blocks of which the last is not full."""
    make(**CASES[name]).check_stage()


@pytest.mark.parametrize("plan", PLANS)
def test_every_plan_computes_the_same(plan):
    """More numbers to lift than threads, or fewer; one team or two in a block."""
    check_every_plan(make(2), "numba", *plan)


@pytest.mark.parametrize("order", [3, 7])
def test_the_default_plan(order):
    shape = FusedShape(order, "float32")
    make(order, "float32", BernsteinFusedPlan.default(shape, None, "numba")).check_stage(4)


def test_rhs_writes_only_du_dt_and_reads_nothing_of_it():
    make(2).check_rhs()


def test_the_first_stage_does_not_read_the_residual():
    make(1).check_first_stage()


@pytest.mark.parametrize(("order", "dtype"), [(1, "float64"), (2, "float32")])
def test_the_stages_of_a_factor(order, dtype):
    case = make(order, dtype).with_factors()
    case.check_factor()
    case.check_rhs()


def test_a_stage_in_place_is_refused():
    """A neighbor would find the new state: the simulator sees the race between blocks."""
    case = make(1, plan=BernsteinFusedPlan("numba", 32, 2, 1))
    with pytest.raises(RaceError):
        case.stage_in_place()


@pytest.mark.parametrize("order", [3, 4])
def test_states_survive_the_way_to_the_device(order):
    """With as many pairs as points, and with one more."""
    case = make(order)
    case.check_the_way_to_the_device()
    assert not case.launcher.in_place


@pytest.mark.parametrize("name", ["geometry", "boundary", "meeting", "links", "points", "weights"])
def test_wrong_arrays_are_noticed(name):
    case = make(2)
    case.launcher.arrays[name] = np.roll(case.launcher.arrays[name], 1)
    with pytest.raises((AssertionError, SimulatorError)):
        case.check_stage()


# -- tables --------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [1, 2, 5, 9, 15])
def test_positions_in_a_word_are_those_of_the_lattice(order):
    """Of b + e_j of degree N and of a - e_j of degree N - 1."""
    unit, a = np.eye(4, dtype=int), multi_indices(3, order)
    word = tables(order)["points"]
    assert (word < 2**32).all()
    lower, up = word >> 12 & 1023, word >> 22
    row, n = a[:, 0] + a[:, 1] + 1, np.arange(len(a))
    assert np.array_equal(np.stack([word >> 4 * i & 15 for i in range(3)], 1), a[:, 1:])
    inner = a[:, 0] > 0
    for j, step in ((1, 1), (2, row), (3, up)):
        found = (n + step)[inner]
        assert np.array_equal(found, lattice_position(order, (a - unit[0] + unit[j])[inner]))
    for j, step in ((0, 0), (1, 1), (2, row), (3, up)):
        has = a[:, j] > 0
        expected = lattice_position(order - 1, (a - unit[j])[has])
        assert np.array_equal((lower - step)[has], expected)


def test_what_meets_is_what_the_tangents_say():
    """My two edges, from my first vertex to the others, in the neighbor's x_1, x_2, x_3."""
    word = meeting(np.zeros((25, 3), int))[:, 0]
    corner = np.pad(np.eye(3), ((1, 0), (0, 0)))
    first, second, third = (corner[word >> 16 + 2 * i & 3] for i in range(3))
    found = np.stack([second - first, third - first], axis=1)
    assert np.array_equal(found[:24], tangents()[..., :3])
    assert not found[24].any()


@pytest.mark.parametrize("order", [1, 2, 4, 8])
def test_a_thread_lifts_a_face_as_the_basis_does(order):
    """In whole numbers times b! and twice what they lift to times a!, exact up to rounding."""
    basis, lookup = bernstein_basis(order), tables(order)
    element = basis.element
    flux = np.random.default_rng(1).integers(-9, 10, element.Nfp).astype(float)
    c = multi_indices(2, order)
    scale = np.array([math.prod(map(math.factorial, i)) for i in c.tolist()])
    lifted = np.zeros(element.Np)
    lift_face = make_lift_face(FusedShape(order, "float64"))

    @jit
    def lift(y, s):
        lift_face(y, 0, s, 0)

    lift[1, 1](flux * scale, lifted)
    swept = basis.sweep(flux)
    positions = np.stack([lookup["slices"] & 65535, lookup["slices"] >> 16], 2).reshape(-1, 4)
    for f in range(4):
        found = lookup["weights"] * lifted[positions[:, f]] / 2
        expected = swept[basis.sweep_places[:, f]]
        assert np.abs(found - expected).max() < 1e-14 * np.abs(expected).max()


# -- plans ---------------------------------------------------------------------------------------


def test_shared_memory_is_what_the_kernels_divide():
    """Of order 2, an element: 10 points and 4 of curls of six numbers, and eight planes.

    In CUDA C++ a plane has 3 vectors of fp32, or 5 of fp64, and there are 24 numbers of geometry.
    """
    plan = BernsteinFusedPlan("numba", 32, 5, 4)
    assert plan.shared_bytes(FusedShape(2, "float32")) == 20 * (60 + 24 + 8 * (6 + 10)) * 4
    cuda = replace(plan, language="cuda")
    assert cuda.shared_bytes(FusedShape(2, "float32")) == 20 * ((60 + 24 + 96 + 24) * 4 + 16)
    assert cuda.shared_bytes(FusedShape(2, "float64")) == 20 * ((60 + 24 + 80 + 24) * 8 + 16)


def test_illegal_plans_are_refused():
    shape, plan = FusedShape(6, "float64"), BernsteinFusedPlan("cuda", 32, 1, 4)
    assert not plan.illegal(shape, (9, 0))
    check_refused(plan, shape)
    with pytest.raises(ValueError, match="bytes shared"):
        make(2).launcher.planned(BernsteinFusedPlan("numba", 64, 40, 2))
    with pytest.raises(ValueError, match="language"):
        BernsteinFusedPlan("fortran", 32, 1, 1)


@pytest.mark.parametrize("capability", [None, (7, 5), (8, 0), (9, 0)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_default_plans_are_legal(dtype, capability):
    """Up to order 10, in fp64 too; a multiprocessor holds the blocks that they promise."""
    limits = architecture(capability or (7, 5))
    for order in range(1, 11):
        shape = FusedShape(order, dtype)
        for language in ("cuda", "numba"):
            plan = BernsteinFusedPlan.default(shape, capability, language)
            assert plan.language == language
            assert not plan.illegal(shape, capability)
            assert plan.blocks * plan.shared_bytes(shape) <= limits.shared


def test_the_tuner_gets_the_default_and_others():
    for language in ("cuda", "numba"):
        for order in range(1, 10):
            shape = FusedShape(order, "float32")
            start = BernsteinFusedPlan.default(shape, (9, 0), language)
            found = start.candidates(shape, (9, 0))
            assert found[0] == start
            assert 5 <= len(found) == len(set(found)) < 20
            assert not any(plan.illegal(shape, (9, 0)) for plan in found)


def test_operators_of_another_kind_are_refused():
    mesh, element = box((1, 1, 1)), NodalElement(3, 1)
    with pytest.raises(ValueError, match="nodal"):
        BernsteinFusedLauncher(reference.assemble(mesh, element), SIMULATOR)
    with pytest.raises(ValueError, match="central"):
        operator = reference.assemble(mesh, element, "central", basis="bernstein")
        BernsteinFusedLauncher(operator, SIMULATOR)
    with pytest.raises(ValueError, match="Bernstein"):
        FusedLauncher(reference.assemble(mesh, element, basis="bernstein"), SIMULATOR)


# -- wrong kernels, and CUDA C++ -----------------------------------------------------------------


@pytest.mark.parametrize("mistake", broken.MISTAKES, ids=lambda m: m.name)
def test_wrong_kernels_are_rejected(mistake):
    make(2, plan=BernsteinFusedPlan("numba", 64, 6, 1)).check_rejected(mistake)


@pytest.mark.parametrize("mistake", broken.FACTORED, ids=lambda m: m.name)
def test_wrong_kernels_for_factors_are_rejected(mistake):
    make(2).check_rejected_factor(mistake)


def make_cuda(order, dtype, capability, plan=None):
    """As on a device of this capability; 36 elements, which no plan takes in one block."""
    shape, on = FusedShape(order, dtype), device_of(capability)
    plan = plan or BernsteinFusedPlan.default(shape, capability, "cuda")
    return replace(
        make(order, dtype, plan, on, materials=order % 3 > 0, cells=(3, 2, 1)), roundings=ROUNDINGS
    )


@needs_compiler
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("order", range(1, 10))
def test_cuda(order, dtype, tmp_path):
    """On the CPU: teams of a warp, and larger ones; with asynchronous copies and without."""
    case = make_cuda(order, dtype, ((7, 5), (9, 0))[order % 2])
    emulate(case.launcher, tmp_path)
    case.check_stage()
    case.check_rhs()
    case.check_first_stage()
    case.check_ranges()


@needs_compiler
@pytest.mark.parametrize(("order", "dtype"), [(2, "float64"), (3, "float32"), (6, "float32")])
def test_cuda_with_factors(order, dtype, tmp_path):
    case = make_cuda(order, dtype, ((7, 5), (9, 0))[order % 2]).with_factors()
    emulate(case.launcher, tmp_path)
    case.check_factor()
    case.check_rhs()


@needs_compiler
@pytest.mark.parametrize("mistake", broken_cuda.FACTORED, ids=lambda m: m.name)
def test_wrong_cuda_with_factors_is_rejected(mistake, tmp_path):
    case = make_cuda(mistake.order, mistake.dtype, mistake.capability)
    case.check_rejected_cuda_factor(mistake, tmp_path)


@needs_compiler
@pytest.mark.parametrize("plan", [(32, 1, 3), (32, 5, 1), (96, 4, 1), (128, 7, 2)])
def test_every_plan_computes_the_same_in_cuda(plan, tmp_path):
    case = make_cuda(2, "float32", (9, 0), BernsteinFusedPlan("cuda", *plan, unroll=3))
    emulate(case.launcher, tmp_path)
    case.check_stage()


@needs_compiler
@pytest.mark.parametrize("mistake", broken_cuda.MISTAKES, ids=lambda m: m.name)
def test_wrong_cuda_is_rejected(mistake, tmp_path):
    case = make_cuda(mistake.order, mistake.dtype, mistake.capability)
    case.launcher.kernel = mistake.make(case.launcher.kernel)
    emulate(case.launcher, tmp_path)
    with pytest.raises((AssertionError, EmulationError)):
        case.check_stage()
