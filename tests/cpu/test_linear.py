"""The linear family's reference: rates, exact identities, and an independent assembly."""

import math
import tracemalloc
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import stopped_clock
from numpy.polynomial import Legendre, Polynomial

from dgbook import linear
from dgbook.cli import linear as command
from dgbook.cli import options, running
from dgbook.cli.main import main
from dgbook.element import NodalElement, space_dimension
from dgbook.gpu import device
from dgbook.lab import linear as measure
from dgbook.lab import records
from dgbook.lab.floor import Ceilings
from dgbook.lab.records import load, validate
from dgbook.lab.rivals import linear as matmul
from dgbook.linear import cost, plan, problem, reference
from dgbook.mesh import box, build, face_vertices, geometric_factors, make_periodic, read
from dgbook.nodal.trace import WAYS, trace
from dgbook.time import lsrk45

DATA = Path(__file__).parents[1] / "data"
RANDOM = np.random.default_rng(1)
VELOCITY = (1.0, 0.7, -0.4)


def solver(mesh, order, system, *arguments, **options):
    return linear.Solver(mesh, order, system, *arguments, device="cpu", **options)


def wavy(*x):
    return np.sin(2 * np.pi * sum(x))


def unstructured_cube(periodic=True):
    mesh = read(DATA / "periodic_cube.msh")
    for axis in "xyz" if periodic else "":
        mesh = make_periodic(mesh, axis + "-", axis + "+")
    return mesh


def meshes(dim):
    """A uniform periodic mesh and one that is neither uniform nor aligned with the axes."""
    uniform = box((4, 2, 2)[:dim], periodic=True)
    if dim == 3:
        return uniform, unstructured_cube()
    walled = box((4, 2)[:dim])
    vertices = walled.vertices.copy()
    inner = ((vertices > 0) & (vertices < 1)).all(axis=1)
    vertices[inner] += np.random.default_rng(2).uniform(-0.08, 0.08, (inner.sum(), dim))
    sides = {
        name: [walled.elements[k, face_vertices(dim)[f]] for k, f in faces]
        for name, faces in walled.boundary.items()
    }
    skewed = build(vertices, walled.elements, sides)
    for axis in "xy"[:dim]:
        skewed = make_periodic(skewed, axis + "-", axis + "+")
    return uniform, skewed


def random_state(s):
    return RANDOM.standard_normal((s.system.n, s.mesh.K, s.element.Np))


def error_at(s, exact, t_end):
    """The error at t_end with steps so small that time adds nothing."""
    share = 0.75 if s.element.order < 5 else 0.2
    u = s.run(s.interpolate(lambda *x: exact(*x, 0.0)), t_end, dt=share * s.cfl_dt())
    return s.l2_error(u, exact, t_end)


# ------------------------------------------------------------------------------------ convergence


@pytest.mark.parametrize("order", range(1, 9))
def test_advection_1d_converges_with_order_N_plus_1(order):
    cells = (16, 32) if order < 4 else (4, 8)
    exact = linear.transported(1.0, wavy)
    coarse, fine = (
        error_at(solver(box(K, periodic=True), order, linear.advection(1.0)), exact, 0.5)
        for K in cells
    )
    assert abs(np.log2(coarse / fine) - (order + 1)) < 0.1


@pytest.mark.parametrize("condition", ["wall", "soft"])
@pytest.mark.parametrize("order", [1, 2, 3, 5, 8])
def test_standing_wave_1d_converges_with_order_N_plus_1(order, condition):
    exact = linear.standing_wave((3,), 1.5, condition)
    cells = (16, 32) if order < 3 else (4, 8)
    coarse, fine = (
        error_at(solver(box(K), order, linear.wave(1, 1.5), boundary=condition), exact, 0.4)
        for K in cells
    )
    assert abs(np.log2(coarse / fine) - (order + 1)) < 0.2


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize("dim", [2, 3])
def test_advection_converges(dim, order):
    system, exact = linear.advection(VELOCITY[:dim]), linear.transported(VELOCITY[:dim], wavy)
    if dim == 3:  # a function of two coordinates needs few cells in the third
        exact = linear.transported(VELOCITY, lambda x, y, z: np.sin(2 * np.pi * (x + y)))
    coarse, fine = (
        error_at(solver(box(cells[:dim], periodic=True), order, system), exact, 0.05)
        for cells in (((4, 4, 1), (8, 8, 2)) if order > 1 else ((8, 8, 2), (16, 16, 4)))
    )
    assert abs(np.log2(coarse / fine) - (order + 1)) < 0.35


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("dim", [2, 3])
def test_standing_wave_converges(dim, order):
    exact = linear.standing_wave((1, 1, 1)[:dim])
    cells = {2: (4, 8), 3: (2, 4) if order > 1 else (4, 8)}[dim]
    coarse, fine = (
        error_at(solver(box((c,) * dim), order, linear.wave(dim), boundary="wall"), exact, 0.1)
        for c in cells
    )
    assert abs(np.log2(coarse / fine) - (order + 1)) < 0.35


def test_unstructured_tetrahedra_converge_in_the_order():
    """On one mesh each order more must win at least a factor of 3 for a smooth solution."""
    exact = linear.transported(VELOCITY, lambda x, y, z: np.sin(2 * np.pi * (x + y)))
    errors = [
        error_at(solver(unstructured_cube(), N, linear.advection(VELOCITY)), exact, 0.05)
        for N in range(1, 5)
    ]
    assert (np.array(errors[:-1]) > 3 * np.array(errors[1:])).all()
    assert errors[-1] < 1e-2


@pytest.mark.parametrize("order", [2, 4])
def test_inflow_that_changes_in_time(order):
    exact = linear.transported(1.0, lambda x: np.sin(3 * x))
    coarse, fine = (
        error_at(
            solver(box(K), order, linear.advection(1.0), boundary={"x-": exact, "x+": "outflow"}),
            exact,
            1.5,  # all that was inside at first has left
        )
        for K in (4, 8)
    )
    assert abs(np.log2(coarse / fine) - (order + 1)) < 0.2


def test_absorbing_boundaries_let_a_pulse_out():
    s = solver(box(24), 6, linear.wave(1), boundary="absorbing")
    u = s.interpolate(lambda x: [np.exp(-200 * (x - 0.5) ** 2), 0.0])
    assert s.energy(s.run(u, 1.2)) < 1e-9 * s.energy(u)


# --------------------------------------------------------------------------------------- identities


@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("flux", problem.FLUXES)
def test_a_constant_state_stays(dim, flux):
    for mesh in meshes(dim):
        for system in (linear.advection(VELOCITY[:dim]), linear.wave(dim)):
            s = solver(mesh, 4, system, flux)
            du = s.rhs(np.ones((system.n, mesh.K, s.element.Np)))
            assert np.abs(du).max() < 1e-11


@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("flux", problem.FLUXES)
def test_integrals_are_conserved(dim, flux):
    for mesh in meshes(dim):
        for system in (linear.advection(VELOCITY[:dim]), linear.wave(dim)):
            s = solver(mesh, 3, system, flux)
            du = s.rhs(random_state(s))
            assert np.abs(s.integral(du)).max() < 1e-12 * np.abs(du).max()


@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("flux", problem.FLUXES)
def test_energy_changes_by_the_jumps_alone(dim, flux):
    """dE/dt = - 1/2 sum over faces of the integral of [u] . |A_n| [u]; 0 for the central flux."""
    for mesh in meshes(dim):
        for system in (linear.advection(VELOCITY[:dim]), linear.wave(dim, 2.0)):
            s = solver(mesh, 3, system, flux)
            u = random_state(s)
            rate = energy_rate(s, u)
            geometry, t = geometric_factors(mesh), s.operator.trace
            flat = u.reshape(system.n, -1)
            jump = flat[:, t.interior] - flat[:, t.exterior]
            w, R = np.linalg.eigh(system.normal_matrix(geometry.normals))
            modulus = (R * np.abs(w)[..., None, :]) @ np.swapaxes(R, -1, -2)
            # Each face is seen from both sides: 1/4 each.
            expected = -0.25 * np.einsum(
                "kf,akfi,kfab,ij,bkfj->",
                geometry.face_jacobian,
                jump,
                modulus,
                s.element.face_mass,
                jump,
                optimize=True,
            )
            scale = abs(expected)
            assert abs(rate - (expected if flux == "upwind" else 0)) < 1e-12 * scale


@pytest.mark.parametrize("condition", ["wall", "soft"])
@pytest.mark.parametrize("dim", [1, 2, 3])
def test_walls_do_no_work(dim, condition):
    mesh = unstructured_cube(periodic=False) if dim == 3 else box((3, 2)[:dim])
    for flux in problem.FLUXES:
        s = solver(mesh, 3, linear.wave(dim), flux, boundary=condition)
        u = random_state(s)
        rate, scale = energy_rate(s, u), np.abs(s.rhs(u)).max()
        assert abs(rate) < 1e-11 * scale if flux == "central" else rate < 0


@pytest.mark.parametrize("condition", ["outflow", "absorbing"])
@pytest.mark.parametrize("flux", problem.FLUXES)
def test_open_boundaries_only_lose_energy(condition, flux):
    """Where M = 0 the energy falls by u . |A_n| u / 2 on the boundary, whatever the flux inside."""
    for system in (linear.wave(2), linear.advection((1.0, -0.5))):
        s = solver(box((2, 3)), 3, system, flux, boundary=condition)
        assert energy_rate(s, random_state(s)) < 0


def energy_rate(s, u):
    """d/dt of the integral of u.u/2, by the mass matrix."""
    weighted = s.rhs(u) @ s.element.mass
    return np.einsum("aki,aki,k->", u, weighted, s.operator.jacobian)


@pytest.mark.parametrize("flux", problem.FLUXES)
def test_time_steps_keep_or_lose_energy(flux):
    s = solver(box((3, 3), periodic=True), 3, linear.wave(2), flux)
    u = s.interpolate(lambda x, y: [wavy(x, y), 0 * x, wavy(x)])
    energies = [s.energy(u)]
    for _ in range(5):
        u = s.run(u, 0.1)
        energies.append(s.energy(u))
    assert all(np.diff(energies) < 0)  # the method loses a little too, at fifth order
    if flux == "central":
        assert energies[-1] > 0.99999 * energies[0]


@pytest.mark.parametrize("order", [1, 3, 5])
@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("flux", problem.FLUXES)
def test_polynomials_are_differentiated_exactly(dim, order, flux):
    """A polynomial of degree N that continues outside has no jumps: du/dt = -sum A_d du/dx_d."""
    mesh = unstructured_cube(periodic=False) if dim == 3 else box((3, 2)[:dim])
    system = linear.wave(dim, 0.5)
    slopes = RANDOM.uniform(-1, 1, (system.n, dim))
    polynomials = [Polynomial(RANDOM.uniform(-1, 1, order + 1)) for _ in slopes]

    def fields(*x_and_t):
        along = np.tensordot(slopes, np.array(x_and_t[:dim]), axes=1)
        return [p(z) for p, z in zip(polynomials, along, strict=True)]

    s = solver(mesh, order, system, flux, boundary=fields)
    along = np.tensordot(slopes, s.x, axes=1)
    slope = np.array([p.deriv()(z) for p, z in zip(polynomials, along, strict=True)])
    expected = -np.einsum("dab,bd,b...->a...", system.matrices, slopes, slope)
    assert np.abs(s.rhs(s.interpolate(fields)) - expected).max() < 1e-9


def weak_form_1d(vertices, order, velocity):
    """The semi-discrete matrix of periodic upwind advection, from Legendre polynomials.

    Weak form with the coefficients of P_0 .. P_N in each element, by Gauss quadrature: an
    assembly that shares nothing with the package.
    """
    x, w = np.polynomial.legendre.leggauss(order + 1)
    basis = [Legendre.basis(i) for i in range(order + 1)]
    K, n = len(vertices) - 1, order + 1
    stiffness = np.array([[np.sum(w * p.deriv()(x) * q(x)) for q in basis] for p in basis])
    mass = np.array([2 / (2 * i + 1) for i in range(n)])
    left, right = (np.array([p(end) for p in basis]) for end in (-1, 1))
    matrix = np.zeros((K, n, K, n))
    for k, h in enumerate(np.diff(vertices)):
        scale = velocity * 2 / h / mass[:, None]
        matrix[k, :, k] += scale * stiffness
        if velocity > 0:  # the state comes from the left at both ends
            matrix[k, :, k] -= scale * np.outer(right, right)
            matrix[k, :, k - 1] += scale * np.outer(left, right)
        else:
            matrix[k, :, k] += scale * np.outer(left, left)
            matrix[k, :, (k + 1) % K] -= scale * np.outer(right, left)
    return matrix.reshape(K * n, K * n), basis


@pytest.mark.parametrize("order", [1, 2, 5, 8])
@pytest.mark.parametrize("velocity", [1.3, -0.6])
def test_strong_form_equals_an_independent_weak_form(order, velocity):
    vertices = np.array([0.0, 0.1, 0.35, 0.5, 0.8, 1.0])
    line = np.stack([np.arange(5), np.arange(1, 6)], axis=1)
    mesh = build(vertices[:, None], line, {"x-": [[0]], "x+": [[5]]})
    s = solver(make_periodic(mesh, "x-", "x+"), order, linear.advection(velocity))
    matrix, basis = weak_form_1d(vertices, order, velocity)
    coefficients = RANDOM.standard_normal((mesh.K, order + 1))
    nodal = np.stack([p(s.element.nodes[:, 0]) for p in basis])
    expected = (matrix @ coefficients.ravel()).reshape(coefficients.shape) @ nodal
    du = s.rhs((coefficients @ nodal)[None])[0]
    assert np.abs(du - expected).max() < 1e-11 * np.abs(expected).max()


def amplification(z):
    """|R(z)| of the Runge-Kutta method."""
    u, res = np.ones_like(z), np.zeros_like(z)
    for a, b in zip(lsrk45.A, lsrk45.B, strict=True):
        res = a * res + z * u
        u = u + b * res
    return np.abs(u)


def eigenvalues(s):
    """Of the semi-discrete operator, column by column."""
    unit = np.eye(s.system.n * s.mesh.K * s.element.Np)
    columns = [s.rhs(e.reshape(s.system.n, s.mesh.K, -1)).ravel() for e in unit]
    return np.linalg.eigvals(np.stack(columns, axis=1))


@pytest.mark.parametrize("flux", problem.FLUXES)
@pytest.mark.parametrize(
    ("dim", "orders", "cells"), [(1, (1, 2, 4, 8), 6), (2, (1, 2, 4), 2), (3, (1, 2), 1)]
)
def test_the_default_step_is_stable(dim, orders, cells, flux):
    """Every eigenvalue, times 4/3 dt, is damped; times 6 dt, some are not at low order."""
    for order in orders:
        # Along a face diagonal is the worst: on some elements every face counts.
        directions = [VELOCITY[:dim], (1.0, 0.0, 1.0)[:dim]]
        solvers = [
            solver(
                box((cells,) * dim, 0.0, (1.0, 1.3, 0.6)[:dim], periodic=True),
                order,
                linear.advection(v),
                flux,
            )
            for v in directions
        ]
        solvers.append(solver(box((cells,) * dim), order, linear.wave(dim), flux, boundary="wall"))
        for s in solvers:
            z = s.cfl_dt() * eigenvalues(s)
            assert amplification(4 / 3 * z).max() < 1 + 1e-7
            assert order > 2 or amplification(6 * z).max() > 1


# ------------------------------------------------------------------------------- parts and costs


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_traces_meet(dim):
    element = NodalElement(dim, 4)
    x = RANDOM.uniform(size=dim)
    for mesh in meshes(dim):
        t = trace(mesh, element)
        # A periodic function has one value at both sides of every face.
        s = solver(mesh, 4, linear.advection(VELOCITY[:dim]))
        values = np.cos(2 * np.pi * (s.x - x[:, None, None])).prod(axis=0).ravel()
        assert np.abs(values[t.interior] - values[t.exterior]).max() < 1e-12
        assert len(np.unique(t.exterior)) == len(np.unique(t.interior))
        assert_links_lead_there(t)
        assert t.ghosts == 0 and (t.exterior_or_ghost == t.exterior).all()


def test_indices_that_32_bits_cannot_hold_are_refused():
    """2^26 elements with 32 ways to meet each are 2^31 links; ghosts are elements, too."""
    boundary = np.zeros((1, 2), np.int32)
    large = SimpleNamespace(dim=3, K=2**26 - 1, boundary_faces=boundary)
    with pytest.raises(ValueError, match=f"need indices up to {2**31}; allowed: {2**31 - 1}"):
        trace(large, NodalElement(3, 2))


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_ghosts_stand_behind_the_elements(dim):
    mesh, element = box((2, 1, 1)[:dim]), NodalElement(dim, 2)
    t = trace(mesh, element)
    assert t.ghosts == len(mesh.boundary_faces)
    k, f = mesh.boundary_faces.T
    assert (t.exterior[k, f] == t.interior[k, f]).all()
    first = (mesh.K + np.arange(t.ghosts)) * element.Np
    assert (t.exterior_or_ghost[k, f] == first[:, None] + np.arange(element.Nfp)).all()
    inside = mesh.neighbors >= 0
    assert (t.exterior_or_ghost[inside] == t.exterior[inside]).all()
    assert_links_lead_there(t)


def assert_links_lead_there(t):
    neighbor, way = np.divmod(t.links, WAYS)
    assert len(t.opposite) <= WAYS
    assert (neighbor[..., None] * t.Np + t.opposite[way] == t.exterior_or_ghost).all()


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_jump_matrices_are_consistent(dim):
    """Upwind: A_n^- of a normal and of its opposite add up to -|A_n|; M^2 = 1 at walls."""
    normals = RANDOM.standard_normal((5, dim))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    system = linear.wave(dim, 3.0)
    ours, theirs = (problem.jump_matrix(system, s * normals, "upwind") for s in (1, -1))
    matrix = system.normal_matrix(normals)
    assert np.allclose(ours - theirs, matrix)
    assert np.allclose((ours + theirs) @ (ours + theirs), matrix @ matrix)
    assert np.allclose(system.speed(normals), 3.0)
    for condition in ("wall", "soft"):
        M = problem.mirror(system, condition, normals)
        assert np.allclose(M @ M, np.eye(system.n))


@pytest.mark.parametrize("dim", [1, 3])
@pytest.mark.parametrize("n", [1, 2])
def test_costs_count_the_operations(dim, n):
    """The table of `costs`, counted again from the parts of the algorithm."""
    system = linear.advection(VELOCITY[:dim]) if n == 1 else linear.wave(dim)
    element = NodalElement(dim, 3)
    shape = plan.Shape(dim, system.n, element.Np, element.Nfp, "float32")
    counted = cost.costs(shape, 10, system)
    r, r_flux = (1, 1) if n == 1 else (2, 1)
    assert cost.ranks(system, "upwind") == (r, r_flux)
    products = 2 * r * dim * element.Np**2 + 2 * r_flux * element.Np * shape.Nf
    extra = 2 * dim * r * system.n * element.Np + shape.Nf * system.n * (1 + 2 * r_flux)
    update = 4 * system.n * element.Np
    assert counted["fused"].flops == counted["split"].flops == 10 * (products + extra + update)
    assert counted["split"].bytes == sum(
        counted[key].bytes for key in ("volume", "surface", "update")
    )
    assert counted["split"].trace_bytes == 10 * system.n * shape.Nf * 4  # those of the surface
    factor = cost.costs(shape, 10, system, factored=True)["fused"]
    dofs = 10 * system.n * element.Np
    assert counted["fused"].bytes - factor.bytes == 1.5 * dofs * 4
    assert counted["fused"].flops - factor.flops == 2 * dofs


@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_costs_count_the_bytes_of_the_arrays(dim, dtype):
    """Of advection every array of the fused stage is least, but for the face matrices."""
    mesh, system = box((3, 2, 2)[:dim], periodic=True), linear.advection(VELOCITY[:dim])
    s = linear.Solver(mesh, 3, system, dtype=dtype, device="simulator")
    a, counted = s.launcher.arrays, cost.costs(s.shape, mesh.K, system)
    state = s.launcher.zeros().nbytes
    inputs = sum(a[key].nbytes for key in ("speeds", "links", "derivative", "lift"))
    assert counted["fused"].bytes == 4 * state + inputs
    assert counted["volume"].bytes == 2 * state + a["speeds"].nbytes + a["derivative"].nbytes
    assert counted["update"].bytes == 5 * state
    assert counted["fused"].trace_bytes == s.operator.trace.exterior.size * s.dtype.itemsize


@pytest.mark.parametrize("system", [linear.advection(VELOCITY), linear.wave(3)])
def test_the_matrix_product_stage_is_a_stage(system):
    """The rival of the benchmarks computes the same stage as the reference."""
    boundary = None if system.n == 1 else "wall"
    mesh = box((2, 1, 1), periodic=system.n == 1)
    s = linear.Solver(mesh, 3, system, boundary=boundary, device="simulator")
    u, res = random_state(s), random_state(s)
    state, residual = s.launcher.upload(u), s.launcher.upload(res)
    matmul.stage(s.launcher, state, residual, 2, 1e-3)
    expected = lsrk45.A[2] * res + 1e-3 * reference.rhs(s.operator, u)
    assert np.allclose(s.launcher.download(residual), expected, rtol=1e-12, atol=1e-12)
    assert np.allclose(
        s.launcher.download(state), u + lsrk45.B[2] * expected, rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("n", [1, 4])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_plans_are_legal_and_never_run_out(dim, n, dtype):
    for order in range(1, 11):
        element = NodalElement(dim, order)
        shape = plan.Shape(dim, n, element.Np, element.Nfp, dtype)
        found = plan.Plan.default(shape).candidates(shape)
        assert plan.Plan.default(shape) in found
        for p in found:
            assert p.elements_per_block * shape.Np <= 1024
            assert p.shared_bytes(shape) <= 48 * 1024
    assert "allowed" in plan.Plan(1024).illegal(plan.Shape(dim, n, 4, 3, dtype))


# ----------------------------------------------------------------------------------------- states


def test_float32_stays_float32_and_agrees():
    single, double = (
        solver(box((3, 3), periodic=True), 4, linear.advection((1.0, 0.5)), dtype=dtype)
        for dtype in ("float32", "float64")
    )
    u = single.run(single.interpolate(wavy), 0.2)
    v = double.run(double.interpolate(wavy), 0.2)
    assert u.dtype == np.float32 and v.dtype == np.float64
    assert 1e-9 < np.abs(u - v).max() < 1e-5


def test_run_divides_the_interval_and_leaves_its_input():
    s = solver(box(4, periodic=True), 3, linear.advection(1.0))
    u = s.interpolate(wavy)
    before = u.copy()
    assert np.array_equal(s.run(u, 1.0, t=1.0), u)
    half = s.run(u, 0.5, dt=0.01)
    assert np.allclose(s.run(half, 1.0, dt=0.01, t=0.5), s.run(u, 1.0, dt=0.01), atol=1e-14)
    assert np.array_equal(u, before)


def test_l2_error_is_an_integral():
    """Of u_h = 0 and exact = x: the norm of x on [0, 1] is 1/sqrt(3)."""
    s = solver(box((3, 2)), 2, linear.wave(2), boundary="wall")
    zero = np.zeros((3, s.mesh.K, s.element.Np))
    assert np.isclose(s.l2_error(zero, lambda x, y, t: [x, 0, 0], 0.0), 3**-0.5, rtol=1e-13)
    # Exact to degree 2N + 2: that of x^3 is 1/sqrt(7).
    assert np.isclose(s.l2_error(zero, lambda x, y, t: [0, x**3, 0], 0.0), 7**-0.5, rtol=1e-13)
    u = s.interpolate(lambda x, y: [x, 1.0, y])
    assert np.isclose(s.energy(u), (1 / 3 + 1 + 1 / 3) / 2, rtol=1e-13)
    assert np.allclose(s.integral(u), [0.5, 1, 0.5], rtol=1e-13)


WALLS = dict.fromkeys(("x-", "x+"), "wall")


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"order": 0}, ValueError, "order"),
        ({"order": 2.0}, TypeError, "order"),
        ({"mesh": "cube.msh"}, TypeError, "mesh"),
        ({"system": "wave"}, TypeError, "system"),
        ({"system": linear.wave(2)}, ValueError, "dimensions"),
        ({"flux": "upwnd"}, ValueError, "flux = 'upwnd'"),
        ({"boundary": None}, ValueError, "no condition for 'x\\+', 'x-'"),
        ({"boundary": {**WALLS, "top": "wall"}}, ValueError, "there is no 'top'"),
        ({"boundary": {**WALLS, "x+": "stone"}}, ValueError, "condition = 'stone'"),
        ({"boundary": 3}, TypeError, "boundary = 3"),
        ({"boundary": lambda x, t: [x]}, ValueError, "returned 1 fields"),
        ({"system": linear.advection(1.0)}, ValueError, "turns a vector round"),
        ({"dtype": "float16"}, ValueError, "dtype"),
        ({"device": "gpu"}, ValueError, "device"),
        ({"path": "fast"}, ValueError, "path"),
        ({"plan": linear.Plan(2000)}, ValueError, "threads"),
    ],
)
def test_bad_arguments_are_refused(change, error, words):
    arguments = {"mesh": box(3), "order": 2, "system": linear.wave(1), "boundary": WALLS} | change
    with pytest.raises(error, match=words):
        s = linear.Solver(**{"device": "cpu"} | arguments)
        s.rhs(np.zeros((2, 3, 3)))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda s, u: s.run(u[:, :2], 1.0), ValueError, "u has shape"),
        (lambda s, u: s.run(u * 1j, 1.0), TypeError, "complex"),
        (lambda s, u: s.run(u, -1.0), ValueError, "t_end"),
        (lambda s, u: s.run(u, np.inf), ValueError, "t_end"),
        (lambda s, u: s.run(u, 1.0, dt=0.0), ValueError, "dt"),
        (lambda s, u: s.interpolate(lambda x: [x, x]), ValueError, "returned 2 fields"),
        (lambda s, u: linear.advection(0.0), ValueError, "velocity"),
        (lambda s, u: linear.advection([1.0] * 4), ValueError, "velocity"),
        (lambda s, u: linear.wave(4), ValueError, "dim"),
        (lambda s, u: linear.wave(1, -1.0), ValueError, "speed"),
        (lambda s, u: linear.standing_wave((0,)), ValueError, "modes"),
        (lambda s, u: linear.standing_wave((1,), condition="open"), ValueError, "condition"),
        (lambda s, u: linear.System("x", ("a",), np.zeros((1, 2, 2))), ValueError, "shape"),
        (
            lambda s, u: linear.System("x", ("a", "b"), [[[0.0, 1.0], [0.0, 0.0]]]),
            ValueError,
            "symmetric",
        ),
        (
            lambda s, u: linear.System("x", ("a", "b"), np.zeros((1, 2, 2)), vector=(2,)),
            ValueError,
            "vector",
        ),
        (lambda s, u: linear.Plan(0), ValueError, "elements_per_block"),
        (lambda s, u: linear.Plan(2, 1.0), TypeError, "elements_inline"),
        (lambda s, u: trace(s.mesh, NodalElement(2, 1)), ValueError, "element.dim"),
    ],
)
def test_bad_calls_are_refused(call, error, words):
    s = solver(box(3, periodic=True), 2, linear.advection(1.0))
    with pytest.raises(error, match=words):
        call(s, np.zeros((1, 3, 3)))


def test_a_face_has_one_condition():
    shared = box(2)
    both = build(shared.vertices, shared.elements, {"a": [[0], [2]], "b": [[0]]})
    with pytest.raises(ValueError, match="different conditions"):
        solver(both, 1, linear.wave(1), boundary={"a": "wall", "b": "soft"})
    assert solver(both, 1, linear.wave(1), boundary={"a": "wall", "b": "wall"})


# ----------------------------------------------------------------------------------- command line


@pytest.mark.parametrize("system", command.SYSTEMS)
@pytest.mark.parametrize("dim", ["1", "2"])
def test_run_from_the_command_line(system, dim, capsys):
    options = f"--dim {dim} --system {system} --order 3 --cells 4 --t-end 0.1 --device cpu"
    assert main(["run", "linear", *options.split()]) == 0
    printed = capsys.readouterr().out
    assert "LIVE" in printed
    assert float(printed.rpartition("L2 error ")[2]) < 3e-2


@pytest.mark.parametrize("order", [1, 4, 8])
@pytest.mark.parametrize(("dim", "cells"), [(1, 500), (2, 12), (3, 4)])
def test_the_memory_of_a_run_is_as_estimated(dim, cells, order):
    mesh, system = box((cells,) * dim), linear.wave(dim)
    s = linear.Solver(mesh, order, system, boundary="wall", device="reference")
    u = np.zeros((dim + 1, s.mesh.K, s.element.Np))
    s.run(u, 1e-9)
    found = peak(lambda: s.run(u, 1e-9))
    assert 0.7 < (found + u.nbytes) / s.memory_bytes() < 1.3


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_memory_of_a_run_on_a_device_holds_its_arrays(dtype):
    """Three states, and of each element dim A_d, dim+1 F and as many links; little besides."""
    mesh = box((3, 2, 2), periodic=True)
    s = linear.Solver(mesh, 4, linear.wave(3), dtype=dtype, device="simulator")
    arrays = s.launcher.arrays
    held = 3 * s.launcher.zeros().nbytes
    held += sum(arrays[name].nbytes for name in ("speeds", "face_matrix", "links"))
    assert held <= s.memory_bytes() < 1.05 * held


@pytest.mark.parametrize("order", [1, 4, 8])
@pytest.mark.parametrize(("dim", "cells"), [(1, 1000), (2, 20), (3, 6)])
def test_the_memory_of_mesh_and_geometry_is_as_estimated(dim, cells, order):
    system = linear.advection(measure.VELOCITY[:dim])
    found = peak(lambda: solver(box((cells,) * dim, periodic=True), order, system))
    K, Np = math.factorial(dim) * cells**dim, space_dimension(dim, order)
    each, node = running.SET_UP_BYTES[dim]
    assert 0.8 < found / (K * (each + node * Np)) < 1.5  # of few elements tables count
    found = peak(lambda: box((cells,) * dim))
    assert 0.9 < found / (K * running.MESH_BYTES[dim]) < 1.2


def peak(function):
    """Bytes that a call takes at most, beyond those taken before."""
    tracemalloc.start()
    function()
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found


def test_measuring_needs_a_gpu(capsys):
    if device().kind == "cuda":
        pytest.skip("there is a GPU")
    for verb in ("bench", "tune"):
        assert main([verb, "linear"]) == 1
        assert "CUDA" in capsys.readouterr().err


def test_a_measured_row_is_a_row_of_a_record(monkeypatch):
    """Of the CPU's path, which can be measured everywhere."""
    monkeypatch.setattr(measure, "NUMPY_DOFS", 500)
    ceiling = Ceilings(copy_TBps=1.0, fp32_TFLOPs=10.0, fp64_TFLOPs=5.0)
    s = solver(box((2, 1, 1), periodic=True), 2, linear.advection(measure.VELOCITY))
    (row,) = measure.measured(s, ceiling, ("numpy",))
    keys = ("gpu", "driver", "cuda", "commit")
    made_up = dict.fromkeys(keys, "none") | {"date": "2000-01-01", "versions": {}}
    validate(
        {"name": "linear/stage", "compute_capability": "9.0", "ceilings": ceiling.as_dict()}
        | made_up
        | {"rows": [row]}
    )
    recorded = load("linear/stage").rows[0]
    assert set(row) == set(recorded) and list(row["size"]) == list(recorded["size"])
    assert row["dofs"] == row["size"]["K"] * 10 and 250 < row["dofs"] < 1000
    assert "LIVE" in measure.line(row, s.device)


def test_a_record_is_measured_and_written(tmp_path, monkeypatch, capsys):
    """In the simulator, by a clock that stands still."""
    here = {k: v for k, v in stopped_clock.content("a/b", []).items() if k not in ("name", "rows")}
    monkeypatch.setattr(measure, "measure", stopped_clock.timed)
    monkeypatch.setattr("dgbook.lab.session.beyond_cache", lambda *_: True)
    monkeypatch.setattr(command, "find_device", lambda _: stopped_clock.SIMULATOR)
    monkeypatch.setattr(command, "ceilings", lambda _: stopped_clock.CEILING)
    monkeypatch.setattr(records, "environment", lambda _: here)
    options = f"--dim 1 --orders 1 --dtypes float32 --dofs 8 --out {tmp_path}".split()
    for name, more in (("stage", "--paths split fused"), ("plans", ""), ("numbering", "")):
        assert main(["bench", "linear", name, *options, *more.split()]) == 0
        rows = records.load(f"linear/{name}", tmp_path).rows
        *lines, last = capsys.readouterr().out.splitlines()
        assert len(lines) == len(rows) and all("LIVE" in line for line in lines)
        assert last.startswith(f"written: {tmp_path}")
        if name == "stage":
            assert [row["path"] for row in rows] == ["split", "fused"]
        elif name == "numbering":
            assert [row["numbering"] for row in rows] == ["generated", "curve", "random"]
            assert len({row["floor_seconds"] for row in rows}) == 1
        else:
            plans = [row["plan"] for row in rows]
            assert len(plans) > 1 and all(plans.count(plan) == 1 for plan in plans)
            assert str(plans[-1]) in lines[-1]


def test_orders_are_written_as_a_range():
    assert list(options.orders("3")) == [3]
    assert list(options.orders("2..4")) == [2, 3, 4]


@pytest.mark.parametrize("text", ["", "x", "3..", "5..2", "-1..2", "1..16", "1..2..3"])
def test_orders_that_are_none_are_refused(text):
    with pytest.raises(options.argparse.ArgumentTypeError, match="allowed: an order or FROM"):
        options.orders(text)


@pytest.mark.parametrize("given", ["--cells 0", "--t-end -1.0", "--t-end inf"])
def test_wrong_options_of_a_run_are_refused(given, capsys):
    assert main(["run", "linear", *given.split()]) == 2
    assert f"{given}; allowed" in capsys.readouterr().err
