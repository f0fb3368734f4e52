"""The fused Bernstein-Bezier kernels, thread by thread, against the reference."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from acoustics_cases import device_data, operators
from broken import acoustics_bernstein_fused as broken
from emulation import ROUNDINGS, device_of, emulate, needs_compiler
from fused_stages import Case
from team_cases import PLANS, check_every_plan, check_refused

from dgbook.acoustics import reference
from dgbook.acoustics.launch.bernstein_fused import (
    BYTES,
    BernsteinFusedLauncher,
    by_vectors,
    tables,
)
from dgbook.acoustics.plan import BernsteinFusedPlan, Shape
from dgbook.check import RaceError, SimulatorError
from dgbook.gpu import device
from dgbook.nodal.bernstein import bernstein_basis

SIMULATOR = device("simulator")
T = 0.3
SMALL = BernsteinFusedPlan("numba", 32, 2, 2)


def make(order, dtype="float64", plan=SMALL, device=SIMULATOR, **options):
    """A launcher, the same operator in float64, random states and boundary data at t = 0.3."""
    random = np.random.default_rng(order)
    operator, double = operators(order, dtype, "bernstein", random, **options)
    u, res = random.standard_normal((2, 4, double.mesh.K, double.basis.element.Np)).astype(dtype)
    return Case(
        launcher=BernsteinFusedLauncher(operator, device, plan),
        u=u,
        res=res,
        data=SIMULATOR.array(device_data(double, T, dtype)),
        rhs=reference.rhs(double, u.astype(np.float64), T),
    )


CASES = {
    "1": dict(order=1, cells=(2, 1, 1)),
    "1 periodic fp32": dict(order=1, dtype="float32", periodic=True, cells=(2, 1, 1)),
    "2 upwind": dict(order=2, flux="upwind"),
    "2 fp32": dict(order=2, dtype="float32", flux="upwind"),
    "2 periodic": dict(order=2, periodic=True, cells=(2, 1, 1)),
    "3 fp32": dict(order=3, dtype="float32"),
    "4 upwind": dict(order=4, flux="upwind", plan=BernsteinFusedPlan("numba", 32, 1, 2)),
    "5": dict(order=5, plan=BernsteinFusedPlan("numba", 64, 1, 1)),
}


@pytest.mark.parametrize("name", CASES)
def test_a_stage(name):
    """6 or 12 different elements, all boundaries, and blocks of which the last is not full."""
    make(**CASES[name]).check_stage()


@pytest.mark.parametrize("plan", PLANS)
def test_every_plan_computes_the_same(plan):
    """A face point a thread, two, or many threads without one; one team or two in a block."""
    check_every_plan(make(2), "numba", *plan)


@pytest.mark.parametrize("order", [3, 7])
def test_the_default_plan(order):
    make(
        order, "float32", BernsteinFusedPlan.default(Shape(order, "float32"), None, "numba")
    ).check_stage(4)


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


def test_states_survive_the_way_to_the_device():
    case = make(3)
    case.check_the_way_to_the_device()
    assert not case.launcher.in_place


@pytest.mark.parametrize("name", ["geometry", "boundary", "opposite", "links", "weights"])
def test_wrong_arrays_are_noticed(name):
    case = make(2)
    case.launcher.arrays[name] = np.roll(case.launcher.arrays[name], 1)
    with pytest.raises((AssertionError, SimulatorError)):
        case.check_stage()


@needs_compiler
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("order", range(1, 10))
def test_cuda(order, dtype, tmp_path):
    """On the CPU: teams of a warp, and larger ones; with asynchronous copies and without."""
    capability = ((7, 5), (9, 0))[order % 2]
    plan = BernsteinFusedPlan.default(Shape(order, dtype), capability, "cuda")
    flux = ("upwind", "penalty")[order // 2 % 2]
    case = make(order, dtype, plan, device_of(capability), flux=flux, cells=(3, 2, 1))
    case.roundings = ROUNDINGS
    emulate(case.launcher, tmp_path)
    case.check_stage()
    case.check_rhs()
    case.check_first_stage()
    case.check_ranges()


@needs_compiler
@pytest.mark.parametrize(("order", "dtype"), [(2, "float64"), (3, "float32"), (6, "float32")])
def test_cuda_with_factors(order, dtype, tmp_path):
    capability = ((7, 5), (9, 0))[order % 2]
    plan = BernsteinFusedPlan.default(Shape(order, dtype), capability, "cuda")
    case = make(order, dtype, plan, device_of(capability), cells=(3, 2, 1)).with_factors()
    case.roundings = ROUNDINGS
    emulate(case.launcher, tmp_path)
    case.check_factor()
    case.check_rhs()


# -- tables --------------------------------------------------------------------------------------


def halves(words):
    """The two positions in each word, behind each other, in points."""
    return np.stack([words & 65535, words >> 16], axis=-1).reshape(len(words), -1) // BYTES


@pytest.mark.parametrize("order", [1, 2, 4, 8])
def test_slices_without_factors_are_those_of_the_basis(order):
    """In whole numbers: each t is the sum of three, and the weights take the factorials back."""
    basis, lookup = bernstein_basis(order), tables(order, 4)
    element, N = basis.element, order
    flux = np.random.default_rng(1).integers(-9, 10, element.Nfp)
    fluxes = [int(value) for value in flux[::-1]]
    row = lookup["nodes"][:, 0] >> 16
    t = []
    for j, (square, r) in enumerate(zip(lookup["squares"].astype(int).tolist(), row, strict=True)):
        total = (sum(square[:3]) + 2 * N + 3) * fluxes[j] * square[3]
        pairs = ((-1, -r - 1), (1, -r), (r + 1, r + 2))
        for factor, places in zip(square[:3], pairs, strict=True):
            if factor:
                near = [j + p for p in places]
                total += factor * sum(fluxes[i] * int(lookup["squares"][i, 3]) for i in near)
        t.append(total)
    slices = list(t)
    for n in range(N - 1, -1, -1):
        t = [t[j] + t[j + row[j] + 1] + t[j + row[j] + 2] for j in range((n + 1) * (n + 2) // 2)]
        slices += t
    swept = basis.sweep(flux.astype(float))
    positions = halves(lookup["rows"])[:, 4:]
    for a, own, weights, places in zip(
        element.multi_indices, positions, lookup["weights"][:, 1], basis.sweep_places, strict=True
    ):
        for f in range(4):
            denominator = 2 * (a[f] + 1) * math.prod(math.factorial(i) for i in a)
            exact = Fraction((-1) ** int(a[f]) * int(slices[own[f]]), int(denominator))
            assert float(exact) == pytest.approx(swept[places[f]], rel=1e-12, abs=1e-9)
            assert float(exact) == pytest.approx(weights[f] * slices[own[f]], rel=1e-12)


@pytest.mark.parametrize("order", [1, 3, 6])
def test_derivatives_by_way_of_a_lower_degree(order):
    """Four loads of u and four of its derivatives, in place of 16; differences in two places."""
    basis, lookup = bernstein_basis(order), tables(order, 4)
    u = np.random.default_rng(2).standard_normal(basis.element.Np)
    low, high = lookup["corners"].T
    b = [low % 65536 // BYTES, low % 65536 // BYTES + 1, (low >> 16) // BYTES, high // BYTES]
    places, factors = halves(lookup["rows"])[:, :4], lookup["weights"][:, 0]
    for m in range(1, 4):
        derivative = (factors * (u[b[m]] - u[b[0]])[places]).sum(axis=1)
        expected = 2 * basis.differentiate(u[None, None])[0, m - 1, 0]
        assert np.abs(derivative - expected).max() < 1e-13 * np.abs(expected).max()


def test_tables_of_cuda_lie_vector_by_vector():
    """Of three points with eight numbers each: in fp64 four vectors of two, in fp32 two of four."""
    table = np.arange(24).reshape(3, 2, 4)
    doubles = by_vectors(table, 8)[:, :, 0]
    assert doubles.tolist() == [[0, 8, 16], [2, 10, 18], [4, 12, 20], [6, 14, 22]]
    assert by_vectors(table, 4)[1].tolist() == [[4, 5, 6, 7], [12, 13, 14, 15], [20, 21, 22, 23]]


# -- plans ---------------------------------------------------------------------------------------


def test_shared_memory_is_what_the_kernels_divide():
    """Of order 2, an element: 4 derivatives, 6 fluxes, 10 states and 10 entries of slices."""
    plan = BernsteinFusedPlan("numba", 32, 5, 4)
    assert plan.shared_bytes(Shape(2, "float32")) == 20 * 30 * 16
    assert replace(plan, language="cuda").shared_bytes(Shape(2, "float64")) == 20 * (140 * 8 + 16)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        (("fortran", 32, 1, 1), ValueError),
        (("numba", 0, 1, 1), ValueError),
        (("cuda", 32, 1.5, 1), TypeError),
        (("cuda", 32, 1, 1, -1), ValueError),
        (("cuda", 32, 1, 1, 1, True), TypeError),
    ],
)
def test_wrong_plans_are_refused(fields, error):
    with pytest.raises(error, match="allowed"):
        BernsteinFusedPlan(*fields)


def test_illegal_plans_are_refused():
    shape, plan = Shape(6, "float64"), BernsteinFusedPlan("cuda", 32, 1, 4)
    assert not plan.illegal(shape)
    check_refused(plan, shape)
    assert "faces" in replace(plan, elements=5).illegal(shape)
    assert not replace(plan, teams=8).illegal(shape, (9, 0))
    with pytest.raises(ValueError, match="bytes shared"):
        make(2).launcher.planned(BernsteinFusedPlan("numba", 64, 40, 2))


@pytest.mark.parametrize("capability", [None, (7, 5), (8, 0), (9, 0)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_default_plans_are_legal(dtype, capability):
    for order in range(1, 13):
        for language in ("cuda", "numba"):
            plan = BernsteinFusedPlan.default(Shape(order, dtype), capability, language)
            assert plan.language == language
            assert not plan.illegal(Shape(order, dtype), capability)


def test_the_tuner_gets_the_default_and_others():
    for language in ("cuda", "numba"):
        for order in range(1, 10):
            shape = Shape(order, "float32")
            start = BernsteinFusedPlan.default(shape, (9, 0), language)
            found = start.candidates(shape, (9, 0))
            assert found[0] == start
            assert 6 <= len(found) == len(set(found)) < 20
            assert not any(plan.illegal(shape, (9, 0)) for plan in found)


def test_operators_of_another_kind_are_refused():
    random, plan = np.random.default_rng(0), BernsteinFusedPlan("numba", 32, 1, 1)
    with pytest.raises(ValueError, match="nodal"):
        BernsteinFusedLauncher(operators(1, "float32", "nodal", random)[0], SIMULATOR, plan)
    with pytest.raises(ValueError, match="central"):
        operator = operators(1, "float32", "bernstein", random, "central")[0]
        BernsteinFusedLauncher(operator, SIMULATOR, plan)


# -- wrong kernels -------------------------------------------------------------------------------


@pytest.mark.parametrize("mistake", broken.MISTAKES, ids=lambda m: m.name)
def test_wrong_kernels_are_rejected(mistake):
    make(2, plan=BernsteinFusedPlan("numba", 64, 6, 1)).check_rejected(mistake)


@pytest.mark.parametrize("mistake", broken.FACTORED, ids=lambda m: m.name)
def test_wrong_kernels_for_factors_are_rejected(mistake):
    make(2).check_rejected_factor(mistake)
