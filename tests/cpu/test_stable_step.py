"""The default time step: close to the longest that is stable, and never beyond."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from dgbook import acoustics, linear, maxwell, parallel
from dgbook.element import simplex_quadrature
from dgbook.mesh import box, read
from dgbook.mesh.build import build
from dgbook.nodal import linear as nodal_linear
from dgbook.nodal.linear import FEW_STEPS, METHODS
from dgbook.time import lsrk45, stability

ROOT = Path(__file__).parents[2]
ORDERS = range(1, 10)
FLUXES = ("upwind", "central")
PERIODIC = box((2, 2, 2), periodic=True)


def one_tetrahedron():
    corners = [[0.0, 0, 0], [1, 0, 0], [0.3, 0.8, 0], [0.2, 0.1, 0.5]]
    return build(np.array(corners), np.arange(4)[None])


def graded():
    """Two cells in each direction, elements four times as long at one end as at the other."""
    mesh = box((2, 2, 2))
    return build(np.expm1(mesh.vertices * np.log(16)) / 15, mesh.elements)


def aeroplane_patch(K):
    """Around the smallest element of the aeroplane's mesh; all else is cut away."""
    mesh = read(ROOT / "chapters/meshes/aeroplane.msh")
    a, b, c, d = np.moveaxis(mesh.vertices[mesh.elements], 1, 0)
    volumes = np.abs(np.einsum("ki,ki->k", np.cross(b - a, c - a), d - a))
    patch = [int(np.argmin(volumes))]
    for k in patch:
        patch += [int(n) for n in mesh.neighbors[k] if n >= 0 and n not in patch]
        if len(patch) >= K:
            break
    return build(mesh.vertices, mesh.elements[patch[:K]])


def contrast(K, ratio=1e3):
    return np.where(np.arange(K) % 2, 1 / ratio, 1.0)


def eigenvalues(solver):
    """Of the semi-discrete operator, column by column."""
    shape = (len(solver.fields), solver.mesh.K, solver.element.Np)
    columns = [solver.rhs(e.reshape(shape)).ravel() for e in np.eye(int(np.prod(shape)))]
    return np.linalg.eigvals(np.stack(columns, axis=1))


def amplification(method, z):
    """The largest |R(z)|, by a step of the method."""
    z = np.minimum(z.real, 0) + 1j * z.imag
    u = method.integrate(lambda u, t: z * u, np.ones_like(z), 0.0, 1.0, 1.0)
    return np.abs(u).max()


def assert_close_to_the_limit(solver, true, least=0.85):
    """Each step up to dt is stable, and at dt / least some step is not."""
    dt, method = solver.stable_dt(), solver.method
    for share in np.linspace(0.1, 1.0, 10):
        assert amplification(method, share * dt * true) < 1 + 1e-9
    assert amplification(method, dt / least * true) > 1 + 1e-6
    # With room to spare, all that the search saw is inside, too.
    assert amplification(method, dt * solver.spectrum.eigenvalues) < 1 + 1e-9
    assert solver.spectrum.products <= 120


# ----------------------------------------------------------------------- against all eigenvalues


@pytest.mark.parametrize("flux", FLUXES)
@pytest.mark.parametrize("order", ORDERS)
def test_acoustics_at_all_orders_in_both_bases(order, flux):
    mesh = one_tetrahedron() if order > 3 else box((1, 1, 1), 0.0, (1.0, 1.3, 0.6))
    made = [
        acoustics.Solver(mesh, order, device="cpu", flux=flux, basis=basis, method=method)
        for basis, method in (("nodal", "lsrk45"), ("bernstein", "lsrk45"), ("nodal", "ndb14"))
    ]
    true = eigenvalues(made[0])
    for solver in made:
        assert_close_to_the_limit(solver, true)
    assert made[0].stable_dt() > 1.7 * made[0].cfl_dt()
    # Each search begins with other numbers, and sees nearly all of the field of values.
    assert made[0].stable_dt() == pytest.approx(made[1].stable_dt(), rel=0.15)


@pytest.mark.parametrize("flux", FLUXES)
@pytest.mark.parametrize("order", ORDERS)
def test_lines_and_periodic_meshes_at_all_orders(order, flux):
    for mesh, system in (
        (box(5), linear.wave(1)),
        (box(4, periodic=True), linear.advection(1.0)),
        (box((2, 2), periodic=True), linear.advection((1.0, 0.3))),
    ):
        boundary = "wall" if mesh.boundary else None
        solver = linear.Solver(mesh, order, system, flux, boundary, device="cpu")
        if solver.element.Np * mesh.K < 300:
            # In one dimension the field of values exceeds the eigenvalues the most.
            assert_close_to_the_limit(solver, eigenvalues(solver), 0.75)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("order", [1, 3, 5, 7])
def test_what_flows_out_does_not_grow_on_its_way(order, method):
    """Eigenvalues alone would allow twice the step, and rounding would grow by orders."""
    far = linear.transported(1.0, lambda x: np.sin(6 * x))
    mesh, system = box(24), linear.advection(1.0)
    sides = {"x-": far, "x+": "outflow"}
    solver = linear.Solver(mesh, order, system, boundary=sides, device="cpu", method=method)
    closed = linear.Solver(box(24, periodic=True), order, system, device="cpu")
    true = stability.longest_steps(METHODS[method], eigenvalues(closed)).min()
    assert 0.65 * true < solver.stable_dt() < true
    nothing = {"x-": lambda x, t: [0 * x], "x+": "outflow"}
    still = linear.Solver(mesh, order, system, boundary=nothing, device="cpu", method=method)
    u = np.random.default_rng(0).standard_normal((1, mesh.K, still.element.Np))
    energies, dt = [still.energy(u)], still.stable_dt()
    still.run(u, 1.0, dt, observe=lambda t, v: energies.append(still.energy(v)))
    assert max(energies) < 2.42**2 * energies[0] and energies[-1] < 0.1 * energies[0]


# ------------------------------------------------------------------------------- and by its error


def wave_error(order, elements, periods):
    """Of a plane wave on a uniform line, so many elements per wavelength, exact in time."""
    solver = linear.Solver(box(3, periodic=True), order, linear.advection(1.0), device="cpu")
    Np, k = solver.element.Np, 2 * np.pi / elements
    rows = np.eye(3 * Np).reshape(-1, 1, 3, Np)
    L = np.stack([solver.rhs(row).ravel() for row in rows], axis=1) / 3  # of elements of length 1
    own, left = L[Np : 2 * Np, Np : 2 * Np], L[Np : 2 * Np, :Np]
    values, vectors = np.linalg.eig(own + left * np.exp(-1j * k))
    x = (solver.element.nodes[:, 0] + 1) / 2
    modes = np.linalg.solve(vectors, np.exp(1j * k * x))
    u = vectors @ (np.exp(values * periods * elements) * modes)
    points, weights = simplex_quadrature(1, 2 * order + 8)
    exact = np.exp(1j * k * (points[:, 0] + 1) / 2)
    return np.sqrt(weights / 2 @ abs(solver.element.interpolation(points) @ u - exact) ** 2)


@pytest.mark.parametrize("order", range(1, 16))
def test_the_wavelength_that_each_order_resolves(order):
    wavelength = nodal_linear.WAVELENGTH[order - 1]
    error = wave_error(order, wavelength, nodal_linear.PERIODS)
    assert error == pytest.approx(nodal_linear.ERROR, rel=2e-3)


@pytest.mark.parametrize(("method", "per_period"), [("lsrk45", 134.4), ("ndb14", 69.35)])
def test_an_accurate_step_turns_by_an_accurate_angle(method, per_period):
    method, periods, error = METHODS[method], nodal_linear.PERIODS, nodal_linear.ERROR
    angle = stability.accurate_angle(method, error, periods)
    assert 2 * np.pi / angle == pytest.approx(per_period, rel=1e-3)
    count = round(2 * np.pi * periods / angle)
    end = method.integrate(lambda u, t: 1j * u, np.ones(1, complex), 0.0, angle * count, angle)
    assert abs(end[0] - np.exp(1j * angle * count)) == pytest.approx(error, rel=0.02)


def test_on_uniform_meshes_of_high_order_the_error_decides():
    solver = maxwell.Solver(box((2, 2, 2)), 7, device="cpu")
    dt = solver._default_dt(np.zeros(0), 0.0, 1e3)
    assert dt == solver.accurate_dt() < 0.7 * solver.stable_dt()
    low = maxwell.Solver(box((2, 2, 2)), 3, device="cpu")
    assert low._default_dt(np.zeros(0), 0.0, 1e3) == low.stable_dt() < low.accurate_dt()
    small = acoustics.Solver(graded(), 7, device="cpu")
    assert small._default_dt(np.zeros(0), 0.0, 1e3) == small.stable_dt() < small.accurate_dt()


@pytest.mark.parametrize(
    ("mesh", "order", "options"),
    [
        (box((1, 1, 1)), 2, {"boundary": "absorbing"}),
        (box((1, 1, 1)), 2, {"epsilon": contrast(6), "mu": contrast(6)[::-1]}),
        (box((1, 1, 1)), 1, {"epsilon": contrast(6), "flux": "central"}),
        (one_tetrahedron(), 7, {"dtype": "float32"}),
        (aeroplane_patch(24), 1, {"boundary": "absorbing"}),
        (aeroplane_patch(8), 3, {}),
    ],
)
def test_maxwell(mesh, order, options):
    true = eigenvalues(maxwell.Solver(mesh, order, device="cpu", **options | {"dtype": "float64"}))
    for method in METHODS:
        solver = maxwell.Solver(mesh, order, device="cpu", method=method, **options)
        assert_close_to_the_limit(solver, true)


@pytest.mark.parametrize(
    ("mesh", "order", "options"),
    [
        (PERIODIC, 1, {}),
        (graded(), 1, {"boundary": "rigid"}),
        (aeroplane_patch(16), 2, {"boundary": "absorbing"}),
        (box((1, 1, 1)), 2, {"kappa": contrast(6), "rho": contrast(6)}),
        (box((1, 1, 1)), 2, {"kappa": contrast(6), "rho": contrast(6), "flux": "penalty"}),
        (box((1, 1, 1)), 2, {"kappa": contrast(6)}),
    ],
)
def test_acoustics_on_graded_meshes_and_in_matter(mesh, order, options):
    solver = acoustics.Solver(mesh, order, device="cpu", **options)
    assert_close_to_the_limit(solver, eigenvalues(solver))


def test_the_aeroplane():
    """A whole mesh in fp32: the real axis is what limits the step, to 3.1 times the formula's."""
    mesh = read(ROOT / "chapters/meshes/aeroplane.msh")
    solver = acoustics.Solver(mesh, 1, "float32", "cpu", boundary="absorbing")
    dt = solver.stable_dt()
    assert 2.8 < dt / solver.cfl_dt() < 3.4
    assert -4.6 < solver.spectrum.field.real.min() * dt < -4.1


# ---------------------------------------------------------------------------- when it is looked for


def test_few_steps_take_the_formula():
    solver = acoustics.Solver(box((1, 1, 1)), 2, device="cpu")
    u, dt = np.zeros((4, 6, 10)), solver.cfl_dt()
    assert solver.march(u, (FEW_STEPS - 1) * dt).count == FEW_STEPS - 1
    assert "spectrum" not in vars(solver)
    march = solver.march(u, FEW_STEPS * dt)
    assert march.dt <= solver.stable_dt() and march.count < FEW_STEPS / 2
    assert solver.march(u, (FEW_STEPS - 1) * dt).count == FEW_STEPS - 1  # whatever is known by now
    assert solver.march(u, FEW_STEPS * dt, dt).count == FEW_STEPS


def test_what_memory_does_not_hold_is_the_formula(monkeypatch):
    mesh = box((2, 2, 2))
    solver = acoustics.Solver(mesh, 2, device="cpu")
    monkeypatch.setattr(
        nodal_linear, "host_bytes", lambda: solver.memory_bytes() + 10 * 4 * 48 * 10 * 8
    )
    solver = acoustics.Solver(mesh, 2, device="cpu")
    assert solver.spectrum is None and solver.stable_dt() == solver.cfl_dt()


def test_what_comes_in_does_not_matter():
    """Neither its values, here not even finite, nor the time at which they are asked for."""
    mesh = box((1, 1, 1))
    sides = {name: lambda x, y, z, t: 4 * [np.full_like(x, np.nan)] for name in mesh.boundary}
    given, open_ = (
        acoustics.Solver(mesh, 1, device="cpu", boundary=b) for b in (sides, "absorbing")
    )
    assert given.stable_dt() == open_.stable_dt()


def test_a_line_on_kernels_has_the_same_step():
    """Ghost elements and what arrays hold behind the mesh take no part."""
    sides = {"x-": lambda x, t: [1 + 0 * x], "x+": "outflow"}
    for path in ("fused", "split"):
        host, kernels = (
            linear.Solver(box(3), 2, linear.advection(1.0), boundary=sides, device=d, path=path)
            for d in ("cpu", "simulator")
        )
        assert kernels.stable_dt() == pytest.approx(host.stable_dt(), rel=1e-4)


def test_zero_is_no_limit():
    steps = stability.longest_steps(lsrk45, np.array([0.0, -1.0, 1e-9 + 1j, -1j]))
    np.testing.assert_allclose(steps, [np.inf, 4.657, 3.341, 3.341], rtol=1e-3)


# ------------------------------------------------------------------------ the method by itself


def stage_costs(solver):
    """By hand, for each method: stages per unit of time with the default step, no search.

    The longest stable step is the formula's times `USUAL`, and the 14 stages reach further along
    the real axis than LSRK4(5) does, by the roots of |R| = 1.
    """
    costs = []
    for name, price in (("lsrk45", 1.0), ("ndb14_factored", 0.88)):
        method, order = METHODS[name], solver.element.order
        accurate = maxwell.Solver(solver.mesh, order, device="reference", method=name).accurate_dt()
        real = np.linspace(0, 40, 40_001)
        R = np.abs(np.polyval(stability.polynomial(method)[::-1], -real))
        reach = real[np.argmax(R > 1 + 1e-9) - 1]
        stable = nodal_linear.USUAL[order - 1] * solver.cfl_dt() * reach / 4.657
        step = max(solver.cfl_dt(), min(stable, accurate))
        costs.append(price * len(method.A) / step)
    return costs


@pytest.mark.parametrize(
    ("mesh", "order", "chosen"),
    [
        ("aeroplane", 2, "ndb14_factored"),
        ("aeroplane", 7, "ndb14_factored"),
        ("cube", 2, "ndb14_factored"),
        ("cube", 7, "lsrk45"),
    ],
)
def test_the_method_that_ends_first(mesh, order, chosen):
    """Small elements limit a step by stability, equal ones of high order by the error of time."""
    cells = read(ROOT / "chapters/meshes/aeroplane.msh") if mesh == "aeroplane" else box((2, 2, 2))
    solver = maxwell.Solver(cells, order, device="reference", method="auto")
    assert solver.method is METHODS[chosen]
    five, more = stage_costs(solver)
    assert (more < five) == (chosen != "lsrk45")


def test_parts_agree_on_a_method():
    """Equal cubes beside slices of them: each part alone would choose another method."""
    x = np.concatenate([np.arange(7), 6 + np.arange(1, 5) / 100])
    mesh = box((10, 1, 1))
    vertices = mesh.vertices.copy()
    vertices[:, 0] = x[np.round(10 * vertices[:, 0]).astype(int)]
    mesh = build(vertices, mesh.elements)
    make = partial(maxwell.Solver, order=6, device="reference", method="auto")
    whole = make(mesh)
    solver = parallel.Solver(lambda piece: make(piece.mesh), mesh, parts=2)
    alone = {
        nodal_linear.usual_method(one.methods, 6, one.cfl_dt(), one.resolved_period)
        for one in solver.solvers
    }
    assert len(alone) == 2
    assert {one.method for one in solver.solvers} == {whole.method}


def test_no_factors_where_kernels_take_no_stage():
    """The paper's kernels compute du/dt, so that 14 stages come in the low-storage form."""
    solver = maxwell.Solver(box((1, 1, 1)), 2, device="simulator", flux="central", method="auto")
    assert solver.path == "paper" and solver.methods == (lsrk45, METHODS["ndb14"])
