"""The Bernstein-Bezier kernels of acoustics, thread by thread, against the reference."""

from dataclasses import replace

import acoustics_cases
import numpy as np
import pytest
from acoustics_cases import expected_surface, expected_volume, operators, tried
from broken import acoustics_sparse as broken

from dgbook.acoustics import reference
from dgbook.acoustics.launch.sparse import BernsteinLauncher
from dgbook.acoustics.plan import SURFACES, BernsteinPlan, Shape
from dgbook.check import SimulatorError
from dgbook.gpu import device
from dgbook.nodal.bernstein import bernstein_basis
from dgbook.time import lsrk45

SIMULATOR = device("simulator")


def make_case(order, dtype="float64", plan=None, **options):
    random = np.random.default_rng(order)
    return acoustics_cases.make_case(
        BernsteinLauncher, plan, SIMULATOR, order, dtype, "bernstein", random, **options
    )


def plan_of(surface, K=4):
    return BernsteinPlan(K, K, K, surface)


CASES = {
    "periodic 1": dict(order=1, periodic=True),
    "periodic 2 upwind fp32": dict(order=2, dtype="float32", flux="upwind", periodic=True),
    "boundary 1 fp32": dict(order=1, dtype="float32", cells=(2, 1, 1)),
    "boundary 2": dict(order=2, cells=(2, 1, 1)),
    "boundary 3 upwind": dict(order=3, flux="upwind"),
    "boundary 3 fp32": dict(order=3, dtype="float32"),
    "boundary 4": dict(order=4),
}


@pytest.fixture(params=[(name, surface) for name in CASES for surface in SURFACES], ids=str)
def case(request):
    name, surface = request.param
    return make_case(**CASES[name], plan=plan_of(surface))


def test_volume(case):
    u, out = case.launcher.upload(case.u), case.poisoned
    case.launcher.volume(u, out)
    case.assert_close(case.launcher.download(out), expected_volume(case.double, case.u))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_columns_from_a_word_a_row(order, dtype):
    """The same numbers in the same order: no bit differs."""
    case = make_case(order, dtype)
    plan = replace(case.launcher.plan, columns="computed")
    states = []
    for launcher in (case.launcher, case.launcher.planned(plan)):
        out = case.poisoned
        launcher.volume(launcher.upload(case.u), out)
        states.append(launcher.download(out))
    assert np.isfinite(states).all() and np.array_equal(*states)


def test_surface_adds(case):
    launcher = case.launcher
    u, out = launcher.upload(case.u), launcher.upload(case.res)
    launcher.surface(u, case.data, out)
    expected = case.res + expected_surface(case.double, case.u, case.t)
    case.assert_close(launcher.download(out), expected)


def test_rhs(case):
    launcher = case.launcher
    u, out = launcher.upload(case.u), case.poisoned
    launcher.rhs(u, case.data, out)
    expected = reference.rhs(case.double, case.u.astype(float), case.t)
    case.assert_close(launcher.download(out), expected)
    assert np.array_equal(launcher.download(u), case.u)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("stage", [0, 3])
def test_a_stage_in_place(stage, surface, dtype):
    case = make_case(2, dtype, plan_of(surface))
    launcher, dt = case.launcher, 1e-2
    u, res = launcher.upload(case.u), launcher.upload(case.res)
    launcher.stage(u, res, u, case.data, lsrk45.A[stage], lsrk45.B[stage], dt)
    rhs = reference.rhs(case.double, case.u.astype(float), case.t)
    expected = lsrk45.A[stage] * case.res + dt * rhs
    case.assert_close(launcher.download(res), expected)
    case.assert_close(launcher.download(u), case.u + lsrk45.B[stage] * expected)
    assert launcher.in_place


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("sizes", [(1, 1, 1), (5, 2, 3), (2, 7, 20)])
def test_every_block_size(sizes, surface):
    """12 elements: blocks that are full, that are not, and a block for more than there are."""
    case = make_case(2, plan=BernsteinPlan(*sizes, surface), cells=(2, 1, 1))
    launcher = case.launcher
    u, res = launcher.upload(case.u), launcher.upload(case.res)
    launcher.stage(u, res, u, case.data, 0.5, 0.25, 1e-2)
    rhs = reference.rhs(case.double, case.u.astype(float), case.t)
    expected = 0.5 * case.res + 1e-2 * rhs
    case.assert_close(launcher.download(u), case.u + 0.25 * expected)


def test_what_a_constant_state_loses_is_nothing():
    """In the volume: the differences D_i - D_0 vanish exactly, in fp32 as well."""
    case = make_case(4, "float32")
    u = np.broadcast_to(np.float32([[[0.3]], [[1.7]], [[-2.1]], [[0.9]]]), case.u.shape)
    out = case.poisoned
    case.launcher.volume(case.launcher.upload(u.copy()), out)
    assert not case.launcher.download(out).any()


def test_planned_keeps_the_arrays():
    case = make_case(1, plan=plan_of("factored"))
    other = case.launcher.planned(plan_of("optimal", 3))
    assert other.arrays is case.launcher.arrays and case.launcher.plan.surface == "factored"
    out = case.poisoned
    other.rhs(other.upload(case.u), case.data, out)
    case.assert_close(other.download(out), reference.rhs(case.double, case.u, case.t))


@pytest.mark.parametrize("order", range(1, 16))
def test_shapes_are_those_of_the_basis(order):
    basis, shape = bernstein_basis(order), Shape(order, "float32")
    assert (shape.Np, shape.Nfp) == (basis.element.Np, basis.element.Nfp)
    assert basis.lift_face.quads[0].shape == (shape.face_quads, shape.Nfp, 4)
    assert basis.lift_reduction.quads[0].shape == (shape.lift_quads, shape.Np, 4)
    for dtype in ("float32", "float64"):
        shape = Shape(order, dtype)
        for surface in SURFACES:
            assert not BernsteinPlan.default(Shape(order, dtype), None, surface).illegal(shape)
        for name in ("factored", "optimal", "unblocked"):
            plans = tried(name, order, dtype)
            assert plans and not any(plan.illegal(shape) for plan in plans)


def test_what_cannot_run_is_refused():
    case = make_case(1)
    with pytest.raises(ValueError, match="K_S: 1028 threads per block; allowed: 1024"):
        case.launcher.planned(BernsteinPlan(1, 257, 1))
    with pytest.raises(ValueError, match="K_S: 61440 bytes shared; allowed: 49152"):
        BernsteinLauncher(case.double, SIMULATOR, BernsteinPlan(1, 128, 1))
    with pytest.raises(ValueError, match="surface = 'best'; allowed are 'factored'"):
        BernsteinPlan(1, 1, 1, "best")
    with pytest.raises(ValueError, match="columns = 'all'; allowed are 'stored', 'computed'"):
        BernsteinPlan(1, 1, 1, columns="all")
    with pytest.raises(ValueError, match="K_V = 0; allowed: 1 or more"):
        BernsteinPlan(0, 1, 1)
    with pytest.raises(TypeError, match=r"K_U = 1\.5; allowed: an integer"):
        BernsteinPlan(1, 1, 1.5)
    random = np.random.default_rng(0)
    with pytest.raises(ValueError, match=r"operator.basis is nodal"):
        BernsteinLauncher(operators(1, "float32", "nodal", random)[0], SIMULATOR)
    with pytest.raises(ValueError, match="flux = 'central' has rank 2"):
        BernsteinLauncher(operators(1, "float32", "bernstein", random, "central")[0], SIMULATOR)


# ------------------------------------------------------------------------------------ wrong kernels


@pytest.mark.parametrize(
    "mistake", broken.MISTAKES, ids=lambda m: f"{m.factory.__name__}: {m.name}"
)
def test_wrong_kernels_are_rejected(mistake):
    """Order 2 has two slices after L_0, and more than a warp of threads has each block."""
    plan = plan_of(mistake.surface)
    case = make_case(2, plan=plan)
    launcher = case.launcher
    elements = plan.K_V if mistake.kernel == "volume" else plan.K_S
    launcher.kernels[mistake.kernel] = mistake.make(launcher.shape, elements)
    expected = reference.rhs(case.double, case.u, case.t)
    out = launcher.zeros()
    try:
        launcher.rhs(launcher.upload(case.u), case.data, out)
    except SimulatorError:
        return
    found = launcher.download(out)
    assert not np.abs(found - expected).max() < 1e-2 * np.abs(expected).max()
    assert "barrier" not in mistake.name, "races are refused, whatever they compute"
