"""The Euler solver: convergence, conservation, entropy, shocks, and runs that end in no gas."""

from pathlib import Path

import numpy as np
import pytest

from dgbook import euler
from dgbook.euler import exact, reference
from dgbook.euler.problem import conservative, pressure, sound_speed, velocity
from dgbook.mesh import box, make_periodic, read

MESHES = Path(__file__).parents[2] / "chapters" / "meshes"
vortex = exact.StrongVortex()
stream = exact.Stream(1.1, 0.4, -0.3, 0.9)


def solver(mesh, p, **options):
    return euler.Solver(mesh, p, **{"device": "cpu"} | options)


def vortex_error(n, p, flux="roe", dtype="float64"):
    """L2 error at t = 0.2 in the 4 x 4 square around the vortex, with exact boundary data."""
    mesh = box((n, n), (3.0, -2.0), (7.0, 2.0))
    s = solver(mesh, p, flux=flux, boundary=vortex, dtype=dtype)
    u = s.interpolate(lambda x, y: vortex(x, y, 0.0))
    return s.l2_error(s.run(u, 0.2), vortex, 0.2)


# -- convergence ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("p", "n", "rate", "error"),
    [
        (0, 24, 0.95, 0.17),
        (1, 20, 1.95, 0.017),
        (2, 12, 3.18, 1.3e-3),
        (3, 10, 3.87, 1.7e-4),
        (4, 8, 4.85, 3.6e-5),
        (5, 6, 5.57, 1.7e-5),
        (6, 6, 6.71, 2.2e-6),
    ],
)
def test_the_error_falls_as_h_to_the_p_plus_1(p, n, rate, error):
    """From n to 2 n cells a side. At p = 0 that is a rate of 1: a finite volume method."""
    coarse, fine = vortex_error(n, p), vortex_error(2 * n, p)
    assert fine == pytest.approx(error, rel=0.1)
    measured = np.log2(coarse / fine)
    assert abs(measured - rate) < 0.1, measured
    assert abs(measured - (p + 1)) < 0.45


@pytest.mark.parametrize("flux", ("rusanov", "hllc"))
def test_the_other_fluxes_converge_as_fast(flux):
    rate = np.log2(vortex_error(8, 3, flux) / vortex_error(16, 3, flux))
    assert abs(rate - 4) < 0.3, rate


def test_single_precision_reaches_the_same_error_until_its_floor():
    double, single = (vortex_error(8, 3, dtype=dtype) for dtype in ("float64", "float32"))
    assert abs(single / double - 1) < 1e-3
    assert 1e-6 < vortex_error(12, 6, dtype="float32") < 1e-4


def test_unstructured_periodic_meshes_carry_the_papers_vortex():
    mesh = read(MESHES / "vortex.msh")
    mesh = make_periodic(make_periodic(mesh, "x-", "x+"), "y-", "y+")
    carried = exact.Vortex(period=10.0)
    s = solver(mesh, 3)
    u = s.interpolate(lambda x, y: carried(x, y, 0.0))
    before, after = s.l2_error(u, carried, 0.0), s.run(u, 1.0)
    assert s.l2_error(after, carried, 1.0) < 5 * before
    change = abs(s.integral(after) - s.integral(u)) / [100, 70, 70, 764]
    assert change.max() < 1e-13


# -- conservation and entropy --------------------------------------------------------------------


@pytest.mark.parametrize("flux", ("roe", "rusanov", "hllc"))
def test_a_full_period_keeps_the_integrals_to_rounding(flux):
    """To t = 10: a vortex of half the textbook's strength, once around the periodic box."""
    around = exact.StrongVortex(beta=2.5, center=(0.0, 0.0), period=10.0)
    s = solver(box((8, 8), -5.0, 5.0, periodic=True), 2, flux=flux)
    u = s.interpolate(lambda x, y: around(x, y, 0.0))
    end = s.run(u, 10.0)
    sizes = np.array([100, 100, 100, 300])
    assert (abs(s.integral(end) - s.integral(u)) < 1e-13 * sizes).all()
    error = s.l2_error(end, around, 10.0)
    assert error < 0.5 * s.l2_error(s.interpolate(lambda x, y: stream(x, y, 0.0)), around, 0.0)
    assert s.entropy(end) < s.entropy(u)  # under-resolved: what is lost is entropy's, too


@pytest.mark.parametrize("p", (1, 2, 3))
def test_a_smooth_flow_keeps_its_entropy_beyond_the_schemes_order(p):
    """At p = 3 it grows a little: quadrature DG has no proof of the contrary."""
    around = exact.StrongVortex(center=(0.0, 0.0), period=10.0)
    changes = []
    for n in (10, 20):
        s = solver(box((n, n), -5.0, 5.0, periodic=True), p)
        u = s.interpolate(lambda x, y: around(x, y, 0.0))
        changes.append(s.entropy(s.run(u, 0.5)) - s.entropy(u))
    assert p == 3 or max(changes) < 0, changes
    assert abs(changes[0] / changes[1]) > 2 ** (p + 0.5 if p == 1 else p + 1), changes


def test_entropy_of_a_stream_by_hand():
    s = solver(box((3, 2), (0.0, 0.0), (2.0, 3.0)), 2, boundary=stream)
    u = s.interpolate(lambda x, y: stream(x, y, 0.0))
    expected = -6 * 1.1 * np.log(0.9 / 1.1**1.4) / 0.4
    np.testing.assert_allclose(s.entropy(u), expected, rtol=1e-13)
    np.testing.assert_allclose(s.integral(u), 6 * stream(0.0, 0.0, 0.0), rtol=1e-13)


# -- a tube --------------------------------------------------------------------------------------


def tube(left, right, t, flux="roe", n=100, p=0, device="cpu"):
    """A Riemann problem along x on [-1, 1]; density, u and p at the elements' centroids."""
    mesh = box((n, 1), (-1.0, 0.0), (1.0, 0.2), periodic=(False, True))

    def start(x, y, t=0.0):
        return np.where(x < 0, *(np.reshape(w, (4, *[1] * x.ndim)) for w in (left, right)))

    s = solver(mesh, p, flux=flux, boundary=start, device=device)
    u = s.interpolate(start)
    u = s.run(u, t, dt=0.4 * s.stable_dt(u))  # the flow will be faster than it starts
    return s.x[0].mean(axis=1), u.mean(axis=2)


def test_sods_tube_has_sods_states():
    """At t = 0.2: p* 0.30313, u* 0.92745, densities 0.42632 and 0.26557 beside the contact."""
    x, u = tube(conservative(1.0, 0.0, 0.0, 1.0), conservative(0.125, 0.0, 0.0, 0.1), 0.2, n=400)
    star = (x > 0.02) & (x < 0.12)
    np.testing.assert_allclose(pressure(u)[star], 0.30313, rtol=5e-3)
    np.testing.assert_allclose(velocity(u)[0][star], 0.92745, rtol=1e-2)
    behind = (x > 0.26) & (x < 0.31)
    np.testing.assert_allclose(u[0][behind], 0.26557, rtol=2e-2)
    assert abs(u[2]).max() < 1e-2  # the triangles are not symmetric about y, the tube is


def test_the_entropy_fix_opens_a_sonic_rarefaction(monkeypatch):
    """Without it the discontinuity stays where the flow becomes sonic; with it, there is a fan."""
    left, right = conservative(1.0, 0.0, 0.0, 1.0), None
    # A transonic rarefaction to the left: u + 5 c is constant along it, and u = 1.8 at its foot.
    c = np.sqrt(1.4) - 0.2 * 1.8
    rho = (c * c / 1.4) ** 2.5
    right = conservative(rho, 1.8, 0.0, rho**1.4)

    def largest_jump():
        x, u = tube(left, right, 0.3, n=60, device="reference")
        order = np.argsort(x)
        mach = (velocity(u)[0] / sound_speed(u))[order]
        near = abs(x[order]) < 0.1
        return abs(np.diff(mach[near])).max()

    fixed = largest_jump()
    roe = reference.FLUXES["roe"]
    monkeypatch.setitem(reference.FLUXES, "roe", lambda a, b, n: roe(a, b, n, 1e-9))
    assert largest_jump() > 1.5 * fixed


def test_hllc_and_roe_keep_a_contact_at_rest():
    left, right = conservative(1.0, 0.0, 0.0, 1.0), conservative(0.2, 0.0, 0.0, 1.0)
    for flux in ("hllc", "roe"):
        x, u = tube(left, right, 0.5, flux, n=10)
        np.testing.assert_allclose(u[0], np.where(x < 0, 1.0, 0.2), atol=1e-13)
    x, u = tube(left, right, 0.5, "rusanov", n=10)
    assert abs(u[0] - np.where(x < 0, 1.0, 0.2)).max() > 0.1


# -- walls ---------------------------------------------------------------------------------------


def test_a_pulse_in_a_closed_box_loses_no_mass_and_stays_symmetric():
    mesh = box((6, 6), -1.0, 1.0)
    s = solver(mesh, 2, boundary="wall")
    u = s.interpolate(
        lambda x, y: conservative(1 + 0 * x, 0.0, 0.0, 1 + 0.3 * np.exp(-4 * (x * x + y * y)))
    )
    end = s.run(u, 1.5)
    change = s.integral(end) - s.integral(u)
    assert abs(change[[0, 3]]).max() < 1e-13
    # The mesh is its own image when x and y change places: so are the flow and its momenta.
    order = np.lexsort(np.round(s.x.reshape(2, -1), 9))
    swapped = np.lexsort(np.round(s.x.reshape(2, -1)[::-1], 9))
    flat = end.reshape(4, -1)
    # Nodes that several elements share are compared by their sums.
    for a, b in ((0, 0), (3, 3), (1, 2)):
        here, there = np.cumsum(flat[a][order]), np.cumsum(flat[b][swapped])
        corner = np.flatnonzero(np.diff(np.round(s.x.reshape(2, -1)[:, order], 9)).any(axis=0))
        np.testing.assert_allclose(here[corner], there[corner], atol=1e-10)


# -- runs that end in no gas ---------------------------------------------------------------------


def test_flow_errors_leave_the_last_good_state():
    """A vacuum is torn open between two streams: the error names where, and keeps what was."""
    mesh = box((8, 1), (-1.0, 0.0), (1.0, 0.25), periodic=(False, True))

    def apart(x, y, t=0.0):
        center = x.mean(axis=-1, keepdims=True) + 0 * x
        return conservative(1.0, np.where(center < 0, -6.0, 6.0), 0.0, 0.2)

    s = solver(mesh, 2, boundary=apart)
    u = s.interpolate(apart)
    with pytest.raises(euler.FlowError, match=r"not positive|not finite") as caught:
        s.run(u, 1.0)
    error = caught.value
    assert isinstance(error, RuntimeError)
    assert 0 <= error.time < 1.0 and 0 <= error.element < mesh.K
    assert f"element {error.element}" in str(error) and f"t = {error.time:.6g}" in str(error)
    assert error.state.shape == u.shape and reference.unphysical(s.operator, error.state) is None
    # It is the state that a run to that time returns.
    if error.time > 0:
        dt = s.march(u, 1.0).dt
        np.testing.assert_allclose(s.run(u, error.time, dt=dt), error.state, atol=1e-12)
    center = mesh.vertices[mesh.elements[error.element]].mean(axis=0)[0]
    assert abs(center) < 0.5


def test_too_long_a_step_is_a_flow_error():
    s = solver(box((6, 6), (3.0, -2.0), (7.0, 2.0)), 3, boundary=vortex)
    u = s.interpolate(lambda x, y: vortex(x, y, 0.0))
    with pytest.raises(euler.FlowError):
        s.run(u, 20 * s.stable_dt(u), dt=4 * s.stable_dt(u))


def test_a_run_does_not_begin_from_what_is_no_gas():
    s = solver(box((2, 2), periodic=True), 1)
    u = s.interpolate(lambda x, y: stream(x, y, 0.0))
    u[3, 5] = 0
    with pytest.raises(ValueError, match="u has a pressure that is not positive in element 5"):
        s.run(u, 1.0)


# -- the interface -------------------------------------------------------------------------------


def test_the_step_is_stable_at_every_order():
    """Noise on a stream grows threefold at most, and a thousandfold with three times the step."""
    rng = np.random.default_rng(5)
    for p in range(7):
        s = solver(box((3, 3), periodic=True), p)
        u = s.interpolate(lambda x, y: stream(x, y, 0.0))
        noisy = u + 1e-6 * rng.uniform(-1, 1, u.shape)
        dt = s.stable_dt(u)
        assert abs(s.run(noisy, 100 * dt, dt=dt) - u).max() < 5e-5
        try:
            grown = abs(s.run(noisy, 180 * dt, dt=3 * dt) - u).max()
        except euler.FlowError:
            grown = np.inf
        assert grown > 1e-3, p


def test_the_step_follows_speed_size_and_order():
    fast = exact.Stream(1.0, 3.0, 4.0, 1 / 1.4)  # |v| + c = 6
    for n, p in ((2, 0), (4, 0), (2, 3)):
        s = solver(box((n, n), periodic=True), p)
        u = s.interpolate(lambda x, y: fast(x, y, 0.0))
        rates = n * (2 + 2 + 2**1.5)  # 2 over the altitudes 1/n, 1/n, 1/(sqrt(2) n)
        cfl = {0: 0.9 * 2.785, 3: 0.9 * 3.761}[p]
        np.testing.assert_allclose(s.stable_dt(u), cfl / ((2 * p + 1) * 6 * rates), rtol=1e-12)


@pytest.mark.parametrize("flux", ["roe", "rusanov", "hllc"])
@pytest.mark.parametrize("p", range(3))
def test_the_step_is_nine_tenths_of_what_the_spectrum_allows(p, flux):
    """Eigenvalues of the operator linearized around a gas at rest, by difference quotients.

    A box of 3 by 3 cells has wave vectors of a third of a turn per cell; the worst of all wave
    vectors is at most a percent worse.
    """
    s = solver(box((3, 3), periodic=True), p, flux=flux)
    u = s.interpolate(lambda x, y: exact.Stream(1.0, 0.0, 0.0, 1 / 1.4)(x, y, 0.0))
    unit, h = np.eye(u.size).reshape(-1, *u.shape), 1e-6
    columns = [(s.rhs(u + h * e) - s.rhs(u - h * e)).ravel() / (2 * h) for e in unit]
    z = s.stable_dt(u) / 0.9 * np.linalg.eigvals(np.transpose(columns))

    def growth(k):
        return abs(1 + k * z + (k * z) ** 2 / 2 + (k * z) ** 3 / 6 + (k * z) ** 4 / 24).max()

    assert growth(0.99) < 1 + 1e-7 < growth(1.02)


def test_march_resumes_to_the_last_bit():
    s = solver(box((3, 3), periodic=True), 2)
    around = exact.Vortex(strength=1.0, center=(0.5, 0.5), radius=0.2, period=1.0)
    u = s.interpolate(lambda x, y: around(x, y, 0.0))
    whole = s.run(u, 0.1, dt=0.01)
    march = s.march(u, 0.1, dt=0.01)
    for _ in range(4):
        march.step()
    rest = s.march(march.state(), 0.1, dt=0.01, done=4)
    while rest.done < rest.count:
        rest.step()
    np.testing.assert_array_equal(rest.state(), whole)


def test_rhs_and_types():
    for dtype in ("float32", "float64"):
        s = solver(box((2, 2), periodic=True), 1, dtype=dtype)
        u = s.interpolate(lambda x, y: stream(x, y, 0.0))
        assert u.dtype == dtype and u.shape == (4, 8, 3)
        assert s.rhs(u).dtype == dtype and s.run(u, 0.01).dtype == dtype


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"mesh": box((2, 2, 2))}, ValueError, "mesh.dim = 3"),
        ({"mesh": 3}, TypeError, "mesh = 3; allowed: a Mesh"),
        ({"order": 7}, ValueError, "order = 7; allowed: 0 to 6"),
        ({"dtype": "float16"}, ValueError, "dtype = 'float16'"),
        ({"flux": "upwind"}, ValueError, "flux = 'upwind'; allowed are 'roe'"),
        ({"boundary": "wall"}, None, None),
    ],
)
def test_what_the_solver_refuses(options, error, message):
    arguments = {"mesh": box((2, 2)), "order": 1, "boundary": "wall", "device": "cpu"} | options
    if error is None:
        assert euler.Solver(**arguments).operator.kinds.all()
        return
    with pytest.raises(error, match=message):
        euler.Solver(**arguments)
