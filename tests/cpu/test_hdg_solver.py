"""Solving: Newton's method and its errors, the direct solver, the flow past a cylinder."""

import numpy as np
import pytest
from hdg_cases import Alien, AlienDevice

from dgbook import hdg
from dgbook.hdg import krylov
from dgbook.hdg.discretization import discretize
from dgbook.hdg.exact import Couette, CylinderFlow, cylinder_mesh, flow_past_cylinder, wake_length
from dgbook.hdg.solver import Result, direct
from dgbook.hdg.system import start
from dgbook.mesh import box, geometric_factors

rng = np.random.default_rng(5)
COUETTE = Couette()


# -- Newton's method -----------------------------------------------------------------------------


def test_a_linear_problem_takes_one_step():
    result = hdg.solve(
        hdg.Poisson(lambda x, y: [1.0], lambda x, y: [x * y]), box((4, 4)), 3, max_steps=1
    )
    assert len(result.history) == 2 and result.history[1] < 1e-12 < result.history[0]


def test_steps_are_shortened_where_a_whole_one_leads_to_no_gas():
    """From a stream ten times as fast as the walls allow."""
    fast = hdg.Stream(0.15, (8.0, 0.0))
    calls = []

    def counted(matrix, rhs):
        calls.append(rhs)
        return direct(matrix, rhs)

    result = hdg.solve(COUETTE.gas, box((2, 2)), 1, initial=fast, linear_solver=counted)
    assert len(calls) == len(result.history) - 1 > 4
    assert (np.diff(result.history) < 0).all()
    usual = hdg.solve(COUETTE.gas, box((2, 2)), 1)
    np.testing.assert_allclose(result.u, usual.u, atol=1e-8)


def test_steps_that_are_too_long_are_halved():
    """Directions 2.5 times Newton's: whole steps raise the residual by 1.5, halves leave 1/4."""
    result = hdg.solve(
        COUETTE.gas, box((2, 2)), 1, linear_solver=lambda A, b: 2.5 * direct(A, b), tolerance=1e-6
    )
    history = np.array(result.history)
    np.testing.assert_allclose(history[-3:] / history[-4:-1], 0.25, atol=0.01)


def test_a_solution_is_where_newton_ends_and_where_it_may_begin():
    result = hdg.solve(COUETTE.gas, box((2, 2)), 2, tolerance=1e-9)
    again = hdg.solve(COUETTE.gas, box((2, 2)), 2, initial=result.state, tolerance=1e-9)
    assert len(again.history) == 1 and again.state is result.state


def test_steps_can_be_watched():
    seen = []
    result = hdg.solve(
        COUETTE.gas, box((2, 2)), 1, observe=lambda residual, state: seen.append((residual, state))
    )
    assert tuple(residual for residual, _ in seen) == result.history
    assert seen[-1][1] is result.state and len({id(state) for _, state in seen}) == len(seen)


def test_newton_says_when_it_did_not_arrive():
    with pytest.raises(hdg.NewtonError, match="after 1 steps the residual is") as caught:
        hdg.solve(COUETTE.gas, box((2, 2)), 1, max_steps=1)
    error = caught.value
    assert isinstance(error, RuntimeError) and len(error.history) == 2
    # What it had reached is where one may go on.
    result = hdg.solve(COUETTE.gas, box((2, 2)), 1, initial=error.state)
    assert result.history[0] == error.history[-1]

    with pytest.raises(hdg.NewtonError, match="cannot be lowered along Newton's direction"):
        hdg.solve(COUETTE.gas, box((2, 2)), 1, linear_solver=lambda A, b: -direct(A, b))


def test_a_small_pivot_costs_the_direct_solver_no_digits():
    """Whichever unknown is eliminated first, the next pivot is 1e-6: six digits are lost at first.

    The determinant is near -4; the residual gives the digits back.
    """
    A = np.array([[1, 1, 1], [1, 1, -1], [1, -1, 1]]) - 1e-6 * np.tri(3, k=-1) * [1, -1, 1]
    columns = np.array([[0, 1, 2], [1, 0, 2], [2, 0, 1]], np.int32)
    matrix = hdg.BlockMatrix(np.take_along_axis(A, columns, 1)[..., None, None], columns)
    x = np.array([[1.0], [np.pi], [-np.e]])
    np.testing.assert_allclose(direct(matrix, A @ x), x, rtol=1e-14)


def test_the_direct_solver_agrees_with_a_dense_one():
    system = hdg.assemble(COUETTE.gas, box((3, 2)), 2)
    A = system.matrix.to_csr(drop_zeros=False).toarray()
    x = direct(system.matrix, system.rhs)
    np.testing.assert_allclose(
        x.ravel(), np.linalg.solve(A, system.rhs.ravel()), rtol=1e-8, atol=1e-10
    )


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"tolerance": 0.0}, ValueError, "tolerance = 0.0; allowed: positive"),
        ({"max_steps": 0}, ValueError, "max_steps = 0; allowed: positive"),
        ({"device": "abacus"}, ValueError, "device = 'abacus'"),
        ({"initial": lambda x, y: [x]}, ValueError, "the function returned 1 fields"),
        ({"initial": lambda x, y: [1.0, 0.0, 0.0, -1.0]}, ValueError, "initial is no state"),
        (
            {"initial": hdg.State(np.zeros((4, 2, 3)), np.zeros((5, 8)))},
            ValueError,
            "initial has shapes",
        ),
    ],
)
def test_what_is_refused(options, error, message):
    with pytest.raises(error, match=message):
        hdg.solve(COUETTE.gas, box((2, 2)), 1, **options)


# -- elsewhere -----------------------------------------------------------------------------------


def product_of_aliens(matrix, device):
    """What `krylov.product_on` gives, by NumPy's functions."""

    def product(x, y):
        inflated = x.reshape(matrix.faces, matrix.m)[Alien(matrix.columns)]
        y[:] = (matrix.values @ inflated[..., None])[..., 0].sum(axis=1).reshape(-1)

    return product


CASES = {
    "gas": (COUETTE.gas, 1e-9),
    "diffusion": (hdg.Poisson(lambda x, y: [1.0], lambda x, y: [x * y]), 1e-9),
}


@pytest.mark.parametrize("case", CASES)
def test_the_loop_stays_on_a_device(case, monkeypatch):
    """No array comes to the host but columns of H, sums and, at the end, the state."""
    problem, tolerance = CASES[case]
    mesh = box((5, 4))
    monkeypatch.setattr(krylov, "product_on", product_of_aliens)
    monkeypatch.setattr(krylov, "KernelSpace", krylov.Space)
    there = AlienDevice("cuda", "alien", "", memory_bytes=10**9)
    linear = hdg.Gmres(there, coarse=False, restart=80, tolerance=1e-9)
    AlienDevice.fetched.clear()
    result = hdg.solve(problem, mesh, 2, None, tolerance, linear_solver=linear, device=there)
    looks = [size for size in AlienDevice.fetched if size % 81 == 0]
    others = [size for size in AlienDevice.fetched if size % 81]
    assert max(looks) <= krylov.AHEAD * 81
    assert [s for s in others if s > 1] == [result.u.size, result.trace.size]
    expected = hdg.solve(problem, mesh, 2)
    np.testing.assert_allclose(result.u, expected.u, atol=1e-7)
    np.testing.assert_allclose(result.q, expected.q, atol=1e-6)
    steps = len(result.history) - 1
    assert len(linear.solutions) == steps and isinstance(linear.solutions[0].x, Alien)
    # The host looked now and then: less often than there were steps, and few were in vain.
    iterations = sum(s.iterations for s in linear.solutions)
    products = sum(s.products for s in linear.solutions)
    assert len(looks) < 0.7 * iterations and iterations < products < 1.5 * iterations


def test_a_solver_on_the_host_gets_the_hosts_arrays():
    there = AlienDevice("cuda", "alien", "", memory_bytes=10**9)

    def solver(matrix, rhs):
        assert isinstance(matrix.values, np.ndarray) and isinstance(rhs, np.ndarray)
        return direct(matrix, rhs)

    result = hdg.solve(COUETTE.gas, box((2, 2)), 1, linear_solver=solver, device=there)
    expected = hdg.solve(COUETTE.gas, box((2, 2)), 1)
    np.testing.assert_allclose(result.u, expected.u, atol=1e-10)
    assert set(result.seconds) == {"discretize", "assemble", "solve", "update"}
    with pytest.raises(hdg.NewtonError) as caught:
        hdg.solve(COUETTE.gas, box((2, 2)), 1, max_steps=1, linear_solver=direct, device=there)
    assert isinstance(caught.value.state.u, np.ndarray)


# -- results -------------------------------------------------------------------------------------


def test_results_have_the_shapes_they_promise():
    result = hdg.solve(COUETTE.gas, box((2, 3)), 2)
    K, faces = 12, 2 * 4 + 3 * 3 + 6
    assert result.u.shape == (4, K, 6) and result.q.shape == (4, 2, K, 6)
    assert result.x.shape == (2, K, 6) and result.trace_x.shape == (2, faces, 3)
    assert result.trace.shape == (4, faces, 3)
    assert result.postprocessed().shape == (4, K, 10)
    np.testing.assert_allclose(result.trace, COUETTE(*result.trace_x), rtol=2e-3, atol=2e-3)


# -- the cylinder --------------------------------------------------------------------------------


@pytest.mark.parametrize("around", (8, 22))
def test_the_mesh_around_a_cylinder(around):
    mesh = cylinder_mesh(around, 10.0)
    polygon = around / 2 * np.sin(2 * np.pi / around)
    area = 2 * geometric_factors(mesh).jacobian.sum()
    np.testing.assert_allclose(area, polygon * (10.0**2 - 0.5**2))
    assert {name: len(f) for name, f in mesh.boundary.items()} == {
        "cylinder": around,
        "farfield": around,
    }
    # Its own mirror image: every element has one.
    centers = mesh.vertices[mesh.elements].mean(axis=1)
    gaps = np.linalg.norm(centers[:, None] - centers * [1, -1], axis=2).min(axis=1)
    assert gaps.max() < 1e-12
    for arguments, message in (
        ((7,), "around = 7"),
        ((6,), "around = 6"),
        ((16, 1.0), "radius = 1.0; allowed: more than 1"),
        ((16, 2.0, 0), "layers = 0"),
    ):
        with pytest.raises(ValueError, match=message):
            cylinder_mesh(*arguments)


def test_flow_past_a_cylinder_has_the_drag_and_the_wake_of_the_literature():
    """Re = 20: drag 2.05 and a wake of 0.94 diameters, within a few per cent on 288 triangles."""
    flow = flow_past_cylinder(20.0, 0.1, order=3, around=16, radius=20.0, tolerance=1e-8)
    assert isinstance(flow, CylinderFlow) and flow.result.discretization.mesh.K < 320
    assert abs(flow.drag / 2.05 - 1) < 0.04, flow.drag
    assert abs(flow.wake / 0.94 - 1) < 0.1, flow.wake
    assert abs(flow.lift) < 1e-9
    # Newton from the uniform stream: a handful of steps, the last ones quadratic.
    history = np.array(flow.result.history)
    assert len(history) <= 8
    falling = np.log(history[1:] / history[:-1])
    assert (falling[1:] / falling[:-1])[history[2:] > 1e-9][-1] > 1.6
    # What the cylinder takes from the stream is what the far field lost, and no mass is.
    total = sum(flow.result.boundary_flux(name) for name in ("cylinder", "farfield"))
    np.testing.assert_allclose(total, 0, atol=1e-7)


def test_a_mesh_with_as_many_faces_as_the_papers():
    mesh = cylinder_mesh(62, layers=63)
    assert (3 * mesh.K + len(mesh.boundary_faces)) / 2 == 11780


@pytest.mark.parametrize(("turns", "length"), [(1.7, 1.2), (0.4, 0.0)])
def test_the_wake_ends_where_the_flow_on_the_axis_turns(turns, length):
    """On a made-up state, u = x - turns: with y in it, so that only the axis counts."""

    def state(x, y):
        return [2.0, 2 * (x - turns - 5 * y), 0.0, 50.0]

    d = discretize(hdg.NavierStokes(1.0, 0.2, state), cylinder_mesh(12, 10.0), 2)
    result = Result(d, start(d, state), ())
    np.testing.assert_allclose(wake_length(result), length, atol=1e-12)
