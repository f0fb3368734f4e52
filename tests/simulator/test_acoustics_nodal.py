"""The nodal kernels of acoustics, thread by thread, against the reference."""

from dataclasses import replace
from types import SimpleNamespace

import acoustics_cases
import numpy as np
import pytest
from acoustics_cases import expected_surface, expected_volume, operators, scales, tried
from broken import acoustics_nodal as broken

from dgbook.acoustics import reference
from dgbook.acoustics.launch.nodal import NodalLauncher
from dgbook.acoustics.plan import ElementPlan, NodePlan, Shape
from dgbook.check import SimulatorError
from dgbook.gpu import device
from dgbook.time import lsrk45

SIMULATOR = device("simulator")


def make_case(order, dtype="float64", plan=None, **options):
    random = np.random.default_rng(order)
    return acoustics_cases.make_case(
        NodalLauncher, plan, SIMULATOR, order, dtype, "nodal", random, **options
    )


CASES = {
    "periodic 1": dict(order=1, periodic=True),
    "periodic 2 upwind fp32": dict(order=2, dtype="float32", flux="upwind", periodic=True),
    "boundary 1 fp32": dict(order=1, dtype="float32", cells=(2, 1, 1)),
    "boundary 2": dict(order=2, cells=(2, 1, 1)),
    "boundary 2 central": dict(order=2, flux="central"),
    "boundary 3 fp32": dict(order=3, dtype="float32"),
    "boundary 4 upwind": dict(order=4, flux="upwind"),
}


@pytest.fixture(params=CASES)
def options(request):
    return CASES[request.param]


@pytest.fixture(params=[True, False], ids=["node", "element"])
def by_node(request):
    return request.param


def plan_of(by_node):
    """Blocks that hold two elements, or five and a last one that is not full; odd sub-blocks."""
    return NodePlan(2, 2, 2) if by_node else ElementPlan(5, 4, 2, 3, 4, 7)


def test_volume(options, by_node):
    case = make_case(**options, plan=plan_of(by_node))
    out = case.poisoned
    case.launcher.volume(case.launcher.upload(case.u), out)
    case.assert_close(case.launcher.download(out), expected_volume(case.double, case.u))


def test_surface(options, by_node):
    """It adds to what is there."""
    case = make_case(**options, plan=plan_of(by_node))
    out = case.launcher.upload(case.res)
    case.launcher.surface(case.launcher.upload(case.u), case.data, out)
    expected = case.res + expected_surface(case.double, case.u, case.t)
    case.assert_close(case.launcher.download(out), expected)


def test_rhs(options, by_node):
    case = make_case(**options, plan=plan_of(by_node))
    u, out = case.launcher.upload(case.u), case.poisoned
    before = u.copy()
    case.launcher.rhs(u, case.data, out)
    case.assert_close(case.launcher.download(out), case.rhs)
    assert np.array_equal(u, before)


@pytest.mark.parametrize("stage", [0, 3])
def test_a_stage_in_place(stage, by_node):
    case = make_case(2, "float32", plan_of(by_node))
    launcher, dt = case.launcher, 1e-2
    u, res = launcher.upload(case.u), launcher.upload(case.res)
    launcher.stage(u, res, u, case.data, lsrk45.A[stage], lsrk45.B[stage], dt)
    expected = lsrk45.A[stage] * case.res + dt * case.rhs
    case.assert_close(launcher.download(res), expected)
    case.assert_close(launcher.download(u), case.u + lsrk45.B[stage] * expected)
    assert launcher.in_place


def test_flux_before_the_lift():
    """The flux kernel alone: kappa Fs flux_p and Fs flux_v / rho at every face node."""
    case = make_case(2, plan=plan_of(False))
    case.launcher.work["flux"][:] = np.nan
    case.launcher.flux(case.launcher.upload(case.u), case.data)
    op = case.double
    flux = reference.fluxes(op, reference.jumps(op, case.u, reference.boundary_data(op, case.t)))
    expected = scales(op)[..., None] * op.face_scale[..., None] * flux
    found = case.launcher.work["flux"].reshape(4, -1, op.mesh.K).swapaxes(1, 2)
    case.assert_close(found, expected.reshape(found.shape))


@pytest.mark.parametrize(
    "plan",
    [
        NodePlan(1, 1, 1),
        NodePlan(5, 4, 3),
        NodePlan(9, 9, 9),
        ElementPlan(1, 2, 1),
        ElementPlan(32, 32, 4, 1, 1, 1),
        ElementPlan(4, 3, 2, 4, 8, 10),
        ElementPlan(4, 4, 2, 4, 3, 64),  # the sub-block has more columns than the matrix
        ElementPlan(6, 6, 1, 3, 4, 4, parts=2),  # four and three blocks of rows in two parts
        ElementPlan(6, 6, 1, 8, 24, 8, parts=3),  # more parts than blocks of rows
    ],
    ids=str,
)
def test_every_kind_of_plan(plan):
    """Of 6 elements with 10 nodes."""
    case = make_case(2, plan=plan)
    out = case.poisoned
    case.launcher.rhs(case.launcher.upload(case.u), case.data, out)
    case.assert_close(case.launcher.download(out), case.rhs)


# ------------------------------------------------------------------------------- launcher and plans


def test_states_survive_the_way_to_the_device(by_node):
    case = make_case(1, "float32", plan_of(by_node))
    assert np.array_equal(case.launcher.download(case.launcher.upload(case.u)), case.u)
    flat = case.launcher.upload(case.u)
    expected = case.u[0, 0, :4] if by_node else case.u[0, :4, 0]
    assert np.array_equal(flat[:4], expected)


def test_planned_changes_kernels_and_layout():
    case = make_case(1, plan=NodePlan(1, 1, 1))
    for plan in (NodePlan(3, 2, 1), plan_of(False)):
        other = case.launcher.planned(plan)
        assert other.arrays["faces"] is case.launcher.arrays["faces"]
        assert other.plan is plan and case.launcher.plan == NodePlan(1, 1, 1)
        u, out = other.upload(case.u), case.poisoned
        other.rhs(u, case.data, out)
        case.assert_close(other.download(out), case.rhs)
    out = case.poisoned
    case.launcher.rhs(case.launcher.upload(case.u), case.data, out)
    case.assert_close(case.launcher.download(out), case.rhs)


def test_threads_and_shared_memory():
    """Order 4, 35 nodes and 15 on a face."""
    shape = Shape(4, "float64")
    node = NodePlan(7, 4, 3)
    assert node.block(shape) == {"volume": 245, "surface": 240, "update": 105}
    assert node.shared_bytes(shape) == {"volume": 32 * 245, "surface": 32 * 240}
    element = ElementPlan(64, 96, 2, 4, 6, 16)
    assert element.block(shape) == {"volume": 64, "flux": 96, "lift": 96, "update": 70}
    assert element.shared_bytes(shape) == {"volume": 3 * 64 * 8, "lift": 96 * 8}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("order", [1, 4, 9, 15])
def test_default_and_candidate_plans_are_legal(order, dtype):
    shape = Shape(order, dtype)
    for kind, name in ((NodePlan, "node"), (ElementPlan, "element")):
        assert not kind.default(shape).illegal(shape)
        plans = tried(name, order, dtype)
        assert plans and not any(plan.illegal(shape) for plan in plans)


def test_bad_plans_are_refused():
    for plan, message in (
        (NodePlan(257, 1, 1), "volume: 1028 threads"),
        (NodePlan(1, 86, 1), "surface: 1032 threads"),
        (ElementPlan(1025, 1, 1), "volume: 1025 threads"),
        (ElementPlan(1, 1, 257), "update: 1028 threads"),
        (ElementPlan(1, 1, 1, columns=513), "volume: 49248 bytes"),
        (ElementPlan(1, 1, 1, rows_V=9), "108 accumulators"),
        (ElementPlan(1, 1, 1, rows_S=25), "100 accumulators"),
    ):
        assert message in plan.illegal(Shape(1, "float64"))
    case = make_case(1)
    with pytest.raises(ValueError, match="1028 threads"):
        case.launcher.planned(NodePlan(257, 1, 1))
    with pytest.raises(ValueError, match="K_V = 0; allowed: 1 or more"):
        NodePlan(0, 1, 1)
    with pytest.raises(TypeError, match=r"columns = 2\.0; allowed: an integer"):
        ElementPlan(1, 1, 1, columns=2.0)


def test_a_bernstein_operator_is_refused():
    bernstein = operators(1, "float64", "bernstein", np.random.default_rng(1))[0]
    with pytest.raises(ValueError, match="allowed: 'nodal'"):
        NodalLauncher(bernstein, SIMULATOR)


def test_a_mesh_beyond_32_bits_is_refused():
    operator = make_case(1).launcher.operator
    huge = replace(operator, mesh=SimpleNamespace(K=2**27))
    with pytest.raises(ValueError, match="allowed: less than 4294967296"):
        NodalLauncher(huge, SIMULATOR)


# ------------------------------------------------------------------------------------ wrong kernels


@pytest.mark.parametrize("mistake", broken.MISTAKES, ids=lambda m: m.name)
def test_wrong_kernels_are_rejected(mistake):
    """Six elements of different material and geometry, boundaries of all kinds."""
    case = make_case(2, plan=NodePlan(4, 4, 1) if mistake.by_node else plan_of(False))
    launcher = case.launcher
    launcher.kernels[mistake.kernel] = mistake.make(launcher.shape, launcher.plan)
    out = launcher.zeros()
    try:
        launcher.rhs(launcher.upload(case.u), case.data, out)
    except SimulatorError:
        return
    assert "barrier" not in mistake.name, "races are refused, whatever they compute"
    found, expected = launcher.download(out), case.rhs
    assert not np.abs(found - expected).max() < 1e-2 * np.abs(expected).max()
