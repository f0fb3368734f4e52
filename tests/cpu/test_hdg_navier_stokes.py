"""The compressible Navier-Stokes equations: derivatives, streams, Couette flows, walls."""

from dataclasses import dataclass

import numpy as np
import pytest
from hdg_cases import scrambled

from dgbook import hdg
from dgbook.hdg import local
from dgbook.hdg.discretization import discretize
from dgbook.hdg.exact import Couette
from dgbook.hdg.system import start
from dgbook.mesh import box

rng = np.random.default_rng(4)
dims = pytest.mark.parametrize("dim", (2, 3))


def gas(**options):
    return hdg.NavierStokes(**({"reynolds": 3.0, "mach": 0.4} | options))


def states(dim, *shape):
    """Random states (n_c, *shape) with pressures near the stream's, and gradients."""
    rho, p = 1 + rng.uniform(-0.3, 0.3, (2, *shape))
    u = gas().conservative(rho, rng.uniform(-1, 1, (dim, *shape)), 4.5 * p)
    return u, rng.uniform(-1, 1, (dim + 2, dim, *shape))


def difference(function, at, along, h=1e-6):
    return (function(at + h * along) - function(at - h * along)) / (2 * h)


# -- the equations -------------------------------------------------------------------------------


@dims
def test_flux_of_a_gas_by_hand(dim):
    """rho = 2, v = (1, 0, ..), p = 3, q of a shear flow: du/dy = 0.5, and dT/dy by dE/dy."""
    problem = gas()
    u = problem.conservative(2.0, [1.0] + (dim - 1) * [0.0], 3.0)
    q = np.zeros((dim + 2, dim))
    q[1, 1], q[-1, 1] = 1.0, 0.7  # rho du/dy, and d(rho E)/dy
    f = problem.flux(u, q, u[:0])
    E = 3.0 / 0.4 + 1.0
    tau = 0.5 / 3
    slope = 1.4 * 0.4 * 0.16 * (0.35 - 0.5)  # dT/dy = gamma (gamma-1) M^2 (dE/dy - u du/dy)
    heat = slope / (0.4 * 0.16 * 3 * 0.72)
    np.testing.assert_allclose(f[:3, 0], [2, 2 + 3, -tau], atol=1e-14)
    np.testing.assert_allclose(f[-1, 0], E + 3)
    np.testing.assert_allclose(f[:3, 1], [0, -tau, 3], atol=1e-14)
    np.testing.assert_allclose(f[-1, 1], -tau - heat)
    np.testing.assert_allclose(problem.temperature_gradient(u, q)[1], slope)
    stream = hdg.Stream(0.4, (1.0,) + (dim - 1) * (0.0,))(*np.zeros((dim, 1)))
    np.testing.assert_allclose(problem.temperature(stream), 1)


@dims
def test_stress_by_hand(dim):
    """Of a flow that stretches along x and shears: 2 - 2/3 along it, -2/3 across, 1 the shear."""
    problem, zero = gas(reynolds=5.0), dim * [0.0]
    u, q = problem.conservative(1.0, zero, 1.0), np.zeros((dim + 2, dim))
    q[1, 0], q[2, 0], q[1, 1] = 1.0, 0.3, 0.7
    tau = problem.stress(u, q)
    expected = -2 / 3 * np.eye(dim)
    expected[0, 0] = 4 / 3
    expected[0, 1] = expected[1, 0] = 1.0
    np.testing.assert_allclose(tau, expected / 5, atol=1e-15)


@dims
def test_derivatives_of_the_flux_and_of_the_stabilization(dim):
    problem, (u, q), none = gas(), states(dim, 20), np.zeros((0, 20))
    n = rng.normal(size=(dim, 20))
    n /= np.linalg.norm(n, axis=0)
    by_u, by_q = problem.flux_derivatives(u, q, none)
    dS = problem.stabilization_derivative(u, n, none)
    for b in range(dim + 2):
        unit = np.eye(dim + 2)[b][:, None] * np.ones(20)
        found = difference(lambda v: problem.flux(v, q, none), u, unit)
        np.testing.assert_allclose(by_u[:, :, b], found, atol=1e-7)
        found = difference(lambda v: problem.stabilization(v, n, none), u, unit)
        np.testing.assert_allclose(dS[:, b], found, atol=1e-7)
        for e in range(dim):
            unit_q = np.zeros_like(q)
            unit_q[b, e] = 1
            found = difference(lambda r: problem.flux(u, r, none), q, unit_q)
            np.testing.assert_allclose(by_q[:, :, b, e], found, atol=1e-7)
    fixed = gas(stabilization_factor=2.0)
    assert fixed.stabilization_derivative(u, n, none) is None
    assert (fixed.stabilization(u, n, none) == 2).all()


CONDITIONS = {
    "x+": "slip",
    "y-": "adiabatic",
    "y+": hdg.Isothermal(1.1),
}


@pytest.mark.parametrize("factor", (None, 3.0))
@dims
def test_the_tangent_is_the_residuals_derivative(dim, factor):
    """Walls, the far field and given traces; every local unknown changed at random."""
    stream = hdg.Stream(0.4, (1.0, 0.2, 0.1)[:dim])
    boundary = CONDITIONS | ({"z-": stream, "z+": stream} if dim == 3 else {})
    boundary["x-"] = hdg.FarField(stream)
    mesh = scrambled((2, 2) if dim == 2 else (2, 1, 1), rng)
    d = discretize(gas(boundary=boundary, stabilization_factor=factor), mesh, 2)
    z = local.local_unknowns(d, start(d, stream))
    z = z * (1 + rng.uniform(-0.1, 0.1, z.shape)) + rng.uniform(-0.1, 0.1, z.shape)
    T = local.tangent(d, z)
    for _ in range(3):
        along = rng.uniform(-1, 1, z.shape)
        found = difference(lambda v: local.residual(d, v), z, along)
        predicted = np.einsum("cbkji,bkj->cki", T, along)
        np.testing.assert_allclose(predicted, found, atol=2e-7 * abs(found).max())


# -- streams -------------------------------------------------------------------------------------


@dims
def test_a_uniform_stream_is_a_solution_to_rounding(dim):
    """Between given states, far fields, and a slip wall along it; oblique, where there is none."""
    mesh = scrambled((3, 2) if dim == 2 else (2, 1, 1), rng)
    along, oblique = (hdg.Stream(0.4, v[:dim]) for v in ((1.0, 0.0, 0.0), (0.8, -0.5, 0.3)))
    sides = sorted(mesh.boundary)
    for stream, boundary in (
        (along, {s: "slip" if s[0] != "x" else hdg.FarField(along) for s in sides}),
        (oblique, hdg.FarField(oblique)),
        (oblique, oblique),
    ):
        result = hdg.solve(gas(boundary=boundary), mesh, 2, initial=stream)
        assert result.history[0] < 1e-11 and len(result.history) == 1


def test_newton_comes_back_to_the_stream():
    """From one with every unknown disturbed by 5 %; the far field lets nothing of that stay."""
    mesh, stream = scrambled((3, 3), rng), hdg.Stream(0.4, (0.8, -0.5))
    problem = gas(boundary=hdg.FarField(stream))
    state = start(discretize(problem, mesh, 2), stream)
    noisy = hdg.State(*(v * (1 + rng.uniform(-0.05, 0.05, v.shape))
                        for v in (state.u, state.trace)))  # fmt: skip
    result = hdg.solve(problem, mesh, 2, initial=noisy, tolerance=1e-11)
    assert len(result.history) > 3
    assert result.l2_error(stream) < 1e-10


# -- Couette flows -------------------------------------------------------------------------------


def couette_errors(flow, n, k, boundary=None):
    problem = flow.gas if boundary is None else gas_of(flow, boundary)
    result = hdg.solve(problem, box((n, n)), k, tolerance=1e-9)
    return np.array(
        [
            result.l2_error(lambda x, y: flow.velocity(y)[0], lambda u, q: u[1] / u[0]),
            result.l2_error(flow.shear_stress, lambda u, q: problem.stress(u, q)[0, 1]),
            result.l2_error(
                flow.temperature_slope, lambda u, q: problem.temperature_gradient(u, q)[1]
            ),
            result.l2_error(flow.density_slope, lambda u, q: q[0, 1]),
        ]
    ), result


def gas_of(flow, boundary):
    return hdg.NavierStokes(flow.reynolds, flow.mach, boundary, flow.source, flow.prandtl)


def test_couette_flow_solves_the_equations():
    flow, (x, y) = Couette(reynolds=2.0), rng.uniform(0.1, 0.9, (2, 30))
    problem, h = flow.gas, 1e-3

    def slope(f, axis):
        step = np.array([[h], [0]]) if axis == 0 else np.array([[0], [h]])
        p = np.array([x, y])
        return (f(p - 2 * step) - 8 * f(p - step) + 8 * f(p + step) - f(p + 2 * step)) / (12 * h)

    def flux(p):
        def q(axis):
            e = np.eye(2)[axis][:, None] * 1e-3
            ends = [flow(*(p + m * e)) for m in (-2, -1, 1, 2)]
            return (ends[0] - 8 * ends[1] + 8 * ends[2] - ends[3]) / 12e-3

        return problem.flux(flow(*p), np.stack([q(0), q(1)], axis=1), flow(*p)[:0])

    residual = slope(lambda p: flux(p)[:, 0], 0) + slope(lambda p: flux(p)[:, 1], 1)
    source = np.stack([np.broadcast_to(s, x.shape) for s in flow.source(x, y)])
    np.testing.assert_allclose(residual, source, atol=1e-6)


@pytest.mark.parametrize(("k", "n"), [(1, 8), (2, 6), (3, 4)])
def test_velocity_stress_and_heat_flux_converge_as_k_plus_1(k, n):
    """They approach it from below, as S is large: 1/M where the stream's speed is 1.

    Density does not diffuse: its gradient converges as k.
    """
    coarse, fine = (couette_errors(Couette(), m, k)[0] for m in (n, 2 * n))
    rates = np.log2(coarse / fine)
    np.testing.assert_allclose(rates[:3], k + 1, atol=0.22)
    assert abs(rates[3] - k) < 0.35, rates[3]


def test_a_small_stabilization_gives_the_heat_flux_its_full_rate():
    def slope_error(n):
        flow = Couette()
        problem = hdg.NavierStokes(1.0, flow.mach, flow, flow.source, stabilization_factor=1.0)
        result = hdg.solve(problem, box((n, n)), 1, tolerance=1e-9)
        return result.l2_error(
            flow.temperature_slope, lambda u, q: problem.temperature_gradient(u, q)[1]
        )

    assert abs(np.log2(slope_error(6) / slope_error(12)) - 2) < 0.1


def test_newton_converges_quadratically():
    """Every residual is the square of the one before, times a number that stays; until rounding."""
    history = np.array(couette_errors(Couette(), 4, 2)[1].history)
    falling = np.log(history[1:] / history[:-1])
    exponents = falling[1:] / falling[:-1]
    clean = history[2:] > 1e-10  # the last one may be rounding
    assert clean.sum() >= 2
    assert exponents[clean][-1] > 1.7, (history, exponents)
    assert len(history) <= 7 and history[-1] < 1e-9


@dataclass(frozen=True)
class Channel(Couette):
    """u = 1 + 0.2 y^2 and T = 1 + 0.1 y^2: neither rubs nor conducts at y = 0."""

    def velocity(self, y):
        return 1 + 0.2 * y * y, 0.4 * y, 0.4 + 0 * y

    def temperature(self, y):
        return 1 + 0.1 * y * y, 0.2 * y, 0.2 + 0 * y


@dataclass(frozen=True)
class Insulated(Couette):
    """Couette's velocity, and a temperature without slope at y = 0."""

    def temperature(self, y):
        return 1 + 0.1 * y * y, 0.2 * y, 0.2 + 0 * y


@pytest.mark.parametrize(
    ("flow", "wall"),
    [(Couette(), hdg.Isothermal(0.8)), (Insulated(), "adiabatic"), (Channel(), "slip")],
    ids=["isothermal", "adiabatic", "slip"],
)
def test_walls_keep_the_rates(flow, wall):
    """At y = 0 the wall, elsewhere the flow itself."""
    boundary = {"x-": flow, "x+": flow, "y+": flow, "y-": wall}
    (coarse, _), (fine, result) = (couette_errors(flow, n, 2, boundary) for n in (3, 6))
    np.testing.assert_allclose(np.log2(coarse / fine)[:3], 3, atol=0.45)
    # Nothing goes through the wall but, with a temperature, heat; the force is the stress.
    mass, push, lift, energy = result.boundary_flux("y-")
    assert abs(mass) < 1e-10
    np.testing.assert_allclose(push, flow.shear_stress(0.0, 0.0), atol=1e-5)
    np.testing.assert_allclose(lift, -1 / (1.4 * flow.mach**2), rtol=1e-5)
    heat = 0.05 + 0.2 * flow.mach**2 * 0.72 if isinstance(wall, hdg.Isothermal) else 0.0
    conductivity = 1 / (0.4 * flow.mach**2 * 0.72)
    np.testing.assert_allclose(energy, heat * conductivity, atol=1e-4)


# -- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reynolds": 0}, "reynolds = 0; allowed: 1e-15 to"),
        ({"mach": -0.1}, "mach = -0.1"),
        ({"gamma": 1.0}, "gamma = 1.0; allowed: above 1"),
        ({"stabilization_factor": 0.0}, "stabilization_factor = 0.0"),
        ({"boundary": "wall"}, "boundary condition 'wall'; allowed are 'adiabatic', 'slip'"),
        ({"boundary": "adiabatic"}, "initial = None"),
    ],
)
def test_what_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        hdg.assemble(gas(**({"boundary": hdg.FarField(hdg.Stream(0.4))} | options)), box((2, 2)), 1)


def test_a_wall_needs_a_temperature():
    with pytest.raises(ValueError, match="temperature = 0; allowed: 1e-15 to"):
        hdg.Isothermal(0)
