"""Elimination, assembly and the whole Newton loop on a real device: against the CPU."""

import numpy as np
import pytest
from hdg_cases import scrambled

from dgbook import hdg
from dgbook.gpu import Device, device
from dgbook.gpu.libraries import batched_solve
from dgbook.hdg import system
from dgbook.hdg.discretization import discretize, on_device
from dgbook.hdg.exact import Couette
from dgbook.hdg.solver import direct, memory_bytes
from dgbook.hdg.system import linearize, residual, start, to_device
from dgbook.lab import hdg_solve as measure_solve
from dgbook.lab.floor import Ceilings
from dgbook.lab.measuring import Sweep
from dgbook.lab.session import Session
from dgbook.mesh import box

GPU = device()
pytestmark = pytest.mark.skipif(GPU.kind != "cuda", reason=GPU.sentence)


def given(*x):
    return [np.sin(x[0] + 2 * x[-1])]


def source(*x):
    return [1 + x[0] * x[-1]]


def swirl(*x):
    return [np.exp(x[(a + 1) % len(x)]) for a in range(len(x))]


def gas(dim):
    """With a condition of each kind."""
    stream = hdg.Stream(0.4, (1.0, 0.1, 0.2)[:dim])
    boundary = {
        "x-": hdg.FarField(stream),
        "x+": stream,
        "y-": "adiabatic",
        "y+": "slip",
        "z-": hdg.Isothermal(1.1),
        "z+": "slip",
    }
    names = box((1,) * dim).boundary
    return hdg.NavierStokes(5.0, 0.4, {name: boundary[name] for name in names})


def mixed(dim):
    return {name: hdg.Neumann(given) for name in box((1,) * dim).boundary} | {"x-": given}


def problem_of(name, dim):
    if name == "gas":
        return gas(dim)
    if name == "convection":
        return hdg.ConvectionDiffusion(source, mixed(dim), swirl)
    return hdg.Poisson(source, mixed(dim))


def somewhere(d, rng):
    """A state near the beginning that nothing is special about."""
    state = start(d)
    u = state.u * (1 + 0.01 * rng.standard_normal(state.u.shape))
    trace = state.trace * (1 + 0.01 * rng.standard_normal(state.trace.shape))
    return hdg.State(u, trace)


def assert_same(found, expected, roundings=1e4):
    tolerance = roundings * np.finfo(float).eps * max(abs(expected).max(), 1e-3)
    np.testing.assert_allclose(GPU.to_numpy(found), expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("stack", [None, 20_000], ids=["one stack", "stacks"])
@pytest.mark.parametrize(("cells", "order"), [((4, 3), 3), ((2, 2, 1), 2)])
@pytest.mark.parametrize("name", ["poisson", "convection", "gas"])
def test_trace_systems_are_those_of_the_host(name, cells, order, stack, monkeypatch):
    rng = np.random.default_rng(3)
    d = discretize(problem_of(name, len(cells)), scrambled(cells, rng), order)
    state = somewhere(d, rng)
    here = linearize(d, state)
    if stack:
        monkeypatch.setattr(system, "NUMBERS_ON_A_GPU", stack)
    moved, moved_state = on_device(d, GPU), to_device(state, GPU)
    there = linearize(moved, moved_state)
    assert hasattr(there.matrix.values, "__cuda_array_interface__")
    assert_same(there.matrix.values, here.matrix.values)
    for part in ("rhs", "response", "offset"):
        assert_same(getattr(there, part), getattr(here, part))
    for found, expected in zip(residual(moved, moved_state), residual(d, state), strict=True):
        assert_same(found, expected)
    x = rng.uniform(-1, 1, here.rhs.shape)
    found, expected = there.recover(GPU.array(x), 0.5), here.recover(x, 0.5)
    assert_same(found.u, expected.u)
    assert_same(found.trace, expected.trace)


def test_assemble_brings_the_system_to_the_host():
    arguments = problem_of("poisson", 2), box((3, 3)), 2
    found, expected = hdg.assemble(*arguments, device=GPU), hdg.assemble(*arguments)
    assert isinstance(found.matrix.values, np.ndarray) and isinstance(found.response, np.ndarray)
    np.testing.assert_allclose(found.matrix.values, expected.matrix.values, atol=1e-12)
    np.testing.assert_allclose(found.rhs, expected.rhs, atol=1e-13)


@pytest.mark.parametrize("n", [3, 40, 256, 300])
def test_small_systems_of_any_size_are_solved_together(n):
    """Above 256 rows too, where CuPy takes them one by one."""
    rng = np.random.default_rng(n)
    A = rng.standard_normal((7, n, n)) + 2 * n**0.5 * np.eye(n)
    B = rng.standard_normal((7, n, 5))
    found = GPU.to_numpy(batched_solve(GPU.array(A), GPU.array(B)))
    np.testing.assert_allclose(found, np.linalg.solve(A, B), atol=1e-11)


@pytest.mark.parametrize("coarse", [False, True])
@pytest.mark.parametrize("single", [False, True])
def test_the_loop_stays_on_the_device(single, coarse, monkeypatch):
    """Nothing larger than some columns of H comes to the host before the state does."""
    fetched, to_numpy = [], Device.to_numpy

    def watched(self, array):
        fetched.append(array.size)
        return to_numpy(self, array)

    monkeypatch.setattr(Device, "to_numpy", watched)
    linear = hdg.Gmres(GPU, single=single, restart=120, tolerance=1e-6, coarse=coarse)
    result = hdg.solve(Couette().gas, box((8, 8)), 3, linear_solver=linear, device=GPU)
    *looks, u, trace = fetched
    assert (u, trace) == (result.u.size, result.trace.size) and max(looks) <= 16 * 121
    # With so few iterations as a coarse level leaves there is little to look ahead to.
    share = 0.9 if coarse else 0.7
    assert sum(size > 1 for size in looks) < share * sum(s.iterations for s in linear.solutions)
    expected = hdg.solve(Couette().gas, box((8, 8)), 3)
    np.testing.assert_allclose(result.u, expected.u, atol=1e-8)
    np.testing.assert_allclose(result.q, expected.q, atol=1e-6)
    assert len(result.history) <= len(expected.history) + 1
    # Steps that were taken in vain cost less than the looks that they saved.
    assert all(s.products < 1.3 * s.iterations + 10 for s in linear.solutions)
    assert set(result.seconds) == {"discretize", "assemble", "solve", "update"}


@pytest.mark.parametrize("cells", [(12, 12), (4, 4, 4)])
def test_diffusion_converges_as_on_the_host(cells):
    def wave(*x):
        return [np.prod([np.sin(np.pi * s) for s in x], axis=0)]

    problem = hdg.Poisson(lambda *x: [len(x) * np.pi**2 * wave(*x)[0]], wave)
    linear = hdg.Gmres(GPU, tolerance=1e-11)
    result = hdg.solve(problem, box(cells), 2, linear_solver=linear, device="cuda")
    expected = hdg.solve(problem, box(cells), 2)
    np.testing.assert_allclose(result.u, expected.u, atol=1e-9)
    assert abs(result.l2_error(wave) / expected.l2_error(wave) - 1) < 1e-6
    assert result.l2_error(wave) < 1e-2


def test_the_direct_solver_gets_the_matrix_from_the_device():
    result = hdg.solve(Couette().gas, box((4, 4)), 2, linear_solver=direct, device=GPU)
    expected = hdg.solve(Couette().gas, box((4, 4)), 2)
    np.testing.assert_allclose(result.u, expected.u, atol=1e-9)


@pytest.mark.parametrize("dim", [2, 3])
def test_whole_solutions_are_measured(dim, monkeypatch):
    """With CuPy's GMRES as a rival that finds the same."""
    cases = (measure_solve.Case("poisson", dim, 4, None, ("cupy",), measure_solve.LINEAR),)
    session = Session(GPU, Ceilings(4.0, 60.0, 30.0))
    monkeypatch.setattr(measure_solve, "FEWEST_SAMPLES", 2)
    monkeypatch.setattr(measure_solve, "CASES", cases)
    rows = list(measure_solve.solve_rows(Sweep((dim,), (3,), ("float64",), 0), session))
    assert [row["path"] for row in rows] == list(measure_solve.LINEAR)
    (steps,) = rows[-1]["iterations"]
    (theirs,) = rows[-1]["rivals"]["cupy"]["iterations"]
    assert 3 < steps <= theirs
    assert min(rows[0]["seconds"].values()) > -1e-3


def test_memory_is_about_what_is_said_and_what_is_missing_is_told():
    """CuPy's pool is given a limit: as much as is said, and then half of what was taken."""
    import cupy

    mesh, order = box((96, 96)), 3
    linear = hdg.Gmres(GPU, restart=60, tolerance=1e-3)

    def solved():
        try:
            hdg.solve(Couette().gas, mesh, order, linear_solver=linear, max_steps=1, device=GPU)
        except (hdg.NewtonError, hdg.GmresError):
            pass

    pool = cupy.get_default_memory_pool()
    pool.free_all_blocks()
    faces = (3 * mesh.K + len(mesh.boundary_faces)) // 2
    _, needs = memory_bytes(2, mesh.K, faces, order, 4, GPU, linear)
    before = pool.used_bytes()
    try:
        pool.set_limit(size=int(before + 1.2 * needs))
        solved()
        taken = pool.total_bytes() - before
        pool.free_all_blocks()
        pool.set_limit(size=before + taken // 2)
        with pytest.raises(MemoryError, match=r"and there was less\. Take a lower order"):
            solved()
    finally:
        pool.set_limit(size=0)
        pool.free_all_blocks()
    assert 0.2 * needs < taken <= 1.2 * needs
