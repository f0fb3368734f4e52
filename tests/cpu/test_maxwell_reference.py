"""The NumPy operator of Maxwell's equations: rates, energy, divergence, spectrum, symmetries."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dgbook.element import NodalElement, simplex_quadrature
from dgbook.maxwell import PlaneWave, Scatterer, reference
from dgbook.maxwell.exact import BoxMode, SlabMode, SphereMode, SquareMode
from dgbook.maxwell.problem import FLUXES
from dgbook.mesh import box, geometric_factors, make_periodic, nodes_xyz, read
from dgbook.time import lsrk45

ROOT = Path(__file__).parents[2]
MESHES = ROOT / "chapters" / "meshes"
RANDOM = np.random.default_rng(5)


def cube(periodic=True):
    """An unstructured cube of 184 elements."""
    mesh = read(ROOT / "tests/data/periodic_cube.msh")
    for axis in "xyz" if periodic else "":
        mesh = make_periodic(mesh, axis + "-", axis + "+")
    return mesh


def operator(mesh, order, **options):
    return reference.assemble(mesh, NodalElement(3, order), **options)


def materials(mesh):
    """Random permittivities and permeabilities, one an element."""
    epsilon, mu = RANDOM.uniform(0.5, 5.0, (2, mesh.K))
    return {"epsilon": epsilon, "mu": mu}


def random_state(op):
    return RANDOM.standard_normal((6, op.mesh.K, op.element.Np))


def stable_dt(op):
    """4 / ((N+1)^2 max_k c_k sum_f Fs)."""
    return 4 / ((op.element.order + 1) ** 2 * (op.speed * op.face_scale.sum(axis=1)).max())


def interpolate(op, fields, t=0.0):
    x = nodes_xyz(op.mesh, op.element.nodes)
    return reference.as_fields(fields(*x, t), x.shape[1:])


def advance(op, u, t_end, t=0.0, share=1.0):
    return lsrk45.integrate(
        lambda v, s: reference.rhs(op, v, s), u, t, t_end, share * stable_dt(op)
    )


def l2_norm(op, u, exact=None, t=0.0):
    """Of u, or of its difference from `exact`, by quadrature inside the elements."""
    points, weights = simplex_quadrature(3, 2 * op.element.order + 3)
    values = u @ op.element.interpolation(points).T
    if exact is not None:
        values = values - np.array(exact(*nodes_xyz(op.mesh, points), t))
    return np.sqrt(np.einsum("akq,akq,q,k->", values, values, weights, op.jacobian))


def error_at(op, exact, t_end, share=0.5):
    return l2_norm(op, advance(op, interpolate(op, exact), t_end, share=share), exact, t_end)


def inner(op, u, v):
    """Integral of epsilon E.E' + mu H.H', (u, v)."""
    material = np.stack(3 * [op.epsilon] + 3 * [op.mu])
    return np.einsum("ak,aki,aki,k->", material, u, v @ op.element.mass, op.jacobian)


# ------------------------------------------------------------------------------------ convergence


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize("flux", FLUXES)
def test_a_cavity_converges_with_order_N_plus_1(order, flux):
    """Upwind N+1; central, without which no theory promises more than N, close to it."""
    errors = []
    for n in (4, 8) if order < 3 else (2, 4):
        exact = BoxMode(1, 1, 0, lengths=(1.0, 1.0, 1 / n))
        mesh = box((n, n, 1), 0.0, (1.0, 1.0, 1 / n))
        errors.append(error_at(operator(mesh, order, flux=flux), exact, 0.15) * np.sqrt(n))
    rate = np.log2(errors[0] / errors[1])
    if flux == "upwind":
        assert abs(rate - (order + 1)) < 0.4
    else:
        assert order - 0.25 < rate < order + 1.6


@pytest.mark.parametrize("order", [2, 4])
def test_the_square_mode_on_its_cube(order):
    coarse, fine = (
        error_at(operator(box((n, n, 1), -1.0, 1.0), order), SquareMode(), 0.2) for n in (2, 4)
    )
    assert abs(np.log2(coarse / fine) - (order + 1)) < 0.4


@pytest.mark.parametrize("order", [1, 2, 3])
def test_the_papers_cavity_on_the_papers_meshes(order):
    """The errors fall from mesh to mesh, and over all of them with N+1."""
    counts = (475, 728, 1187, 1844)[: 3 if order == 3 else 4]
    errors = [
        error_at(operator(read(MESHES / f"cavity_{K}.msh"), order), BoxMode(1, 2, 2), 0.02, 1.0)
        for K in counts
    ]
    assert (np.diff(errors) < 0).all()
    rate = 3 * np.log(errors[0] / errors[-1]) / np.log(counts[-1] / counts[0])
    assert abs(rate - (order + 1)) < 0.5


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("media", [{}, {"epsilon": (1.0, 2.0), "mu": (3.0, 1.0)}])
def test_two_media_converge_with_order_N_plus_1(order, media):
    def error(n, swapped=False):
        exact = SlabMode(lengths=(1.0, 1 / n, 1.0), **media)
        mesh = box((n, 1, n), 0.0, (1.0, 1 / n, 1.0))
        epsilon, mu = exact.epsilon_of(mesh), exact.mu_of(mesh)
        op = operator(mesh, order, epsilon=epsilon, mu=mu)
        if swapped:
            op = replace(op, epsilon=mu, mu=epsilon)
        return error_at(op, exact, 0.2, share=1.0) * np.sqrt(n)

    coarse, fine = error(4), error(8)
    assert abs(np.log2(coarse / fine) - (order + 1)) < 0.35
    assert error(4, swapped=True) > 3 * coarse


@pytest.mark.parametrize("order", [2, 3])
def test_a_plane_wave_enters_an_empty_box(order):
    """Of any direction, through all six sides, and out again."""
    wave = PlaneWave((2.0, 1.0, -1.0), (0.0, 1.0, 1.0), parameter=0.8, delay=0.3)
    coarse, fine = (
        error_at(operator(box((n, n, n)), order, boundary=wave), wave, 0.25) for n in (1, 2)
    )
    assert abs(np.log2(coarse / fine) - (order + 1)) < 0.6


@pytest.mark.parametrize("order", [1, 3])
@pytest.mark.parametrize("flux", FLUXES)
def test_a_conductor_throws_a_wave_back(order, flux):
    """The scattered field of a plate at x = 0 is the mirror image of what comes in, turned."""
    incoming = PlaneWave((-1, 0, 0), (0, 1, 0), parameter=0.4, delay=0.6)
    outgoing = PlaneWave((1, 0, 0), (0, -1, 0), parameter=0.4, delay=0.6)
    boundary = {"x-": Scatterer(incoming), "x+": "absorbing"}
    errors = []
    for n in (3, 6):
        mesh = box((n, 1, 1), 0.0, (1.0, 1 / n, 1 / n), periodic=(False, True, True))
        op = operator(mesh, order, flux=flux, boundary=boundary)
        errors.append(error_at(op, outgoing, 0.8, share=1.0) * n)
    rate = np.log2(errors[0] / errors[1])
    assert abs(rate - (order + 1)) < 0.6 if flux == "upwind" else rate > order - 0.3


def test_absorbing_boundaries_let_a_pulse_out():
    wave = PlaneWave((1, 0, 0), (0, 0, 1), parameter=0.15, delay=-0.5)
    mesh = box((5, 1, 1), 0.0, (1.0, 0.2, 0.2), periodic=(False, True, True))
    for flux in FLUXES:
        op = operator(mesh, 4, flux=flux, boundary="absorbing")
        u = interpolate(op, wave)
        left = l2_norm(op, advance(op, u, 1.3)) / l2_norm(op, u)
        assert left < (5e-3 if flux == "upwind" else 2e-2)


def test_flat_facets_limit_the_accuracy_of_a_ball():
    """The error is that of the geometry, O(h^2); the frequency, of balls of the right volume, is
    much better: without the scaling of the vertices it would be off by 2 and by 0.6 per cent."""
    exact = SphereMode()
    t = np.pi / 8 / exact.omega
    errors, frequencies, h = [], [], []
    for name in ("ball_coarse", "ball"):
        op = operator(read(MESHES / f"{name}.msh"), 2)
        start = interpolate(op, exact)
        u = advance(op, start, t)
        errors.append(l2_norm(op, u, exact, t) / l2_norm(op, start))
        later = interpolate(op, exact, np.pi / 2 / exact.omega)  # all of it magnetic
        cosine, sine = (inner(op, u, v) / inner(op, v, v) for v in (start, later))
        frequencies.append(np.arctan2(sine, cosine) / t)
        h.append(op.mesh.K ** (-1 / 3))
    rate = np.log(errors[0] / errors[1]) / np.log(h[0] / h[1])
    assert 1.6 < rate < 2.6 and errors[1] < 0.012
    wrong = np.abs(np.array(frequencies) / exact.omega - 1)
    assert wrong[0] < 3e-3 and wrong[1] < 3e-4


# ------------------------------------------------------------------------------------------ energy


def dissipation(op, u):
    """Energy lost a unit of time, from the jumps: klockner2009's flux, worked out by hand.

    Sum over interior faces of a int |n x [E]|^2 / (Z^- + Z^+) + |n x [H]|^2 / (Y^- + Y^+), seen
    from both sides, therefore half of each; on a conductor, a int |n x E|^2 / Z; on a boundary
    that absorbs, half of int |n x E|^2 / Z + |n x H|^2 / Y.
    """
    jump = reference.jumps(op, u, reference.boundary_data(op, 0.0))
    own = u.reshape(6, -1)[:, op.trace.interior]
    k, f = op.trace.boundary_faces.T
    conductor = op.mirrors[:, 0] == -1
    Z, Zp, a = op.impedance, op.neighbor_impedance, op.upwinding
    weights = np.stack([a / (Z + Zp), a / (1 / Z + 1 / Zp)]) / 2
    vectors = jump.copy()
    vectors[:, k, f] = own[:, k, f]
    vectors[3:, k[conductor], f[conductor]] = 0
    weights[:, k, f] = np.stack([a / Z, a * Z])[:, k, f]
    weights[:, k[~conductor], f[~conductor]] /= 2
    n = op.normals[:, :, None]
    tangential = np.stack(
        [np.cross(n, np.moveaxis(v, 0, -1)) for v in (vectors[:3], vectors[3:])]
    )  # (2, K, 4, Nfp, 3)
    face_jacobian = geometric_factors(op.mesh).face_jacobian
    return np.einsum(
        "ckf,kf,ckfia,ij,ckfja->",
        weights,
        face_jacobian,
        tangential,
        op.element.face_mass,
        tangential,
        optimize=True,
    )


@pytest.mark.parametrize("order", [1, 3])
@pytest.mark.parametrize("flux", FLUXES)
@pytest.mark.parametrize("boundary", ["periodic", "pec", "absorbing"])
def test_energy_is_lost_by_jumps_alone(order, flux, boundary):
    """d/dt of int (epsilon E.E + mu H.H)/2 for random fields and materials."""
    mesh = cube(periodic=boundary == "periodic")
    conditions = {} if boundary == "periodic" else boundary
    op = operator(mesh, order, flux=flux, boundary=conditions, **materials(mesh))
    u = random_state(op)
    rate, lost = inner(op, u, reference.rhs(op, u)), dissipation(op, u)
    scale = inner(op, u, u) / stable_dt(op)
    assert abs(rate + lost) < 1e-12 * scale
    if flux == "central" and boundary != "absorbing":
        assert lost == 0
    else:
        assert lost > 1e-3 * scale


def test_the_wrong_sign_of_the_flux_makes_energy_grow():
    op = operator(cube(periodic=False), 2)
    u = random_state(op)
    wrong = replace(op, upwinding=-op.upwinding)
    assert inner(op, u, reference.rhs(op, u)) < 0 < inner(op, u, reference.rhs(wrong, u))


@pytest.mark.parametrize("flux", FLUXES)
def test_time_steps_keep_or_lose_energy(flux):
    mesh = cube(periodic=False)
    op = operator(mesh, 2, flux=flux, **materials(mesh))
    u = interpolate(op, BoxMode(1, 1, 1))
    energies = [inner(op, u, u)]
    for t in (0.1, 0.2, 0.3):
        u = advance(op, u, t, t - 0.1)
        energies.append(inner(op, u, u))
    assert (np.diff(energies) < 0).all()
    if flux == "central":
        assert energies[-1] > (1 - 1e-4) * energies[0]


# ------------------------------------------------------------------------------------- divergence


def gradient_tests(mesh, order, inside):
    """A random continuous piecewise polynomial of degree N+1, and a way to integrate with it.

    Returns a function (weight, v) -> integral of weight v.grad(phi), v of degree N. If `inside`,
    phi is 0 on the boundary.
    """
    high, low = NodalElement(3, order + 1), NodalElement(3, order)
    x = nodes_xyz(mesh, high.nodes).reshape(3, -1).T.round(8)
    if not len(mesh.boundary_faces):
        x %= 1.0
    _, number = np.unique(x, axis=0, return_inverse=True)
    number = number.reshape(mesh.K, high.Np)
    values = RANDOM.standard_normal(number.max() + 1)
    if inside:
        for k, f in mesh.boundary_faces:
            values[number[k, high.face_nodes[f]]] = 0
    geometry = geometric_factors(mesh)
    slopes = np.einsum("kid,inm,km->dkn", geometry.rst_xyz, high.derivative, values[number])
    to_high = low.interpolation(high.nodes)

    def integral(weight, v):
        product = slopes @ high.mass * (v @ to_high.T)
        return np.einsum("dkn,k,k->", product, weight, geometry.jacobian)

    return integral


@pytest.mark.parametrize("order", [1, 3])
@pytest.mark.parametrize("flux", FLUXES)
def test_divergence_stays_where_it_was(order, flux):
    """int epsilon E . grad phi and int mu H . grad phi do not change, for continuous phi of N+1.

    After integration by parts the equation says, for v of degree N in every element,
    int epsilon E_t . v = int H . curl v + sum over elements of the face integrals of
    (n x H*) . v. With v = grad phi the curl is 0; the two sides of a face have the same H*, upwind
    or central, whatever the media, opposite n, and the same tangential part of grad phi: they
    cancel. On a boundary they do not, unless phi = 0 there. For H the same with -E*; on a conductor
    n x E* = 0, and phi may be anything. Charges on the walls change, magnetic ones do not exist.
    """
    for mesh in (cube(), cube(periodic=False)):
        walls = len(mesh.boundary_faces) > 0
        conditions = "pec" if walls else {}
        op = operator(mesh, order, flux=flux, boundary=conditions, **materials(mesh))
        du = reference.rhs(op, random_state(op))
        electric = gradient_tests(mesh, order, inside=walls)
        magnetic = gradient_tests(mesh, order, inside=False)
        scale = np.abs(du).max()
        assert abs(electric(op.epsilon, du[:3])) < 1e-9 * scale
        assert abs(magnetic(op.mu, du[3:])) < 1e-9 * scale
        if walls:
            assert abs(magnetic(op.epsilon, du[:3])) > 1e-7 * scale
        # Weighted with the wrong medium nothing is conserved; by chance it may come to a little.
        assert abs(electric(op.mu, du[:3])) > 1e-7 * scale


@pytest.mark.parametrize("flux", FLUXES)
def test_integrals_are_conserved_on_a_torus(flux):
    mesh = cube()
    op = operator(mesh, 2, flux=flux, boundary={}, **materials(mesh))
    du = reference.rhs(op, random_state(op))
    one = np.ones_like(du[:1])
    for a in range(6):
        unit = np.zeros_like(du)
        unit[a] = one
        assert abs(inner(op, du, unit)) < 1e-11 * np.abs(du).max()


# -------------------------------------------------------------------- symmetries and exactness


@pytest.mark.parametrize("flux", FLUXES)
def test_a_constant_state_stays(flux):
    mesh = cube()
    op = operator(mesh, 4, flux=flux, boundary={}, **materials(mesh))
    constants = RANDOM.standard_normal(6)
    u = np.broadcast_to(constants[:, None, None], (6, mesh.K, op.element.Np))
    assert np.abs(reference.rhs(op, u)).max() < 1e-11


@pytest.mark.parametrize("flux", FLUXES)
def test_electric_and_magnetic_change_places(flux):
    """(E, H) -> (H, -E) with epsilon and mu exchanged leaves the equations as they are."""
    mesh = cube()
    media = materials(mesh)
    op = operator(mesh, 3, flux=flux, boundary={}, **media)
    dual = operator(mesh, 3, flux=flux, boundary={}, epsilon=media["mu"], mu=media["epsilon"])

    def turned(u):
        return np.concatenate([u[3:], -u[:3]])

    u = random_state(op)
    du = reference.rhs(op, u)
    assert np.allclose(reference.rhs(dual, turned(u)), turned(du), atol=1e-12 * np.abs(du).max())
    assert not np.allclose(reference.rhs(op, turned(u)), turned(du))


@pytest.mark.parametrize("order", [1, 3, 5])
@pytest.mark.parametrize("flux", FLUXES)
def test_polynomials_are_differentiated_exactly(order, flux):
    """Of degree N, continuing outside, they have no jumps: E_t = curl H / epsilon, and so on."""
    mesh = cube(periodic=False)
    slopes = RANDOM.uniform(-1, 1, (6, 3))
    media = materials(mesh)

    def fields(x, y, z, t):
        return (1 + np.tensordot(slopes, np.stack([x, y, z]), 1)) ** order

    op = operator(mesh, order, flux=flux, boundary=fields, **media)
    x = nodes_xyz(mesh, op.element.nodes)
    slope = order * (1 + np.tensordot(slopes, x, 1)) ** (order - 1)
    d = slopes[:, :, None, None] * slope[:, None]  # [field, axis]
    curls = [
        np.stack(
            [
                d[v + 2, 1] - d[v + 1, 2],
                d[v, 2] - d[v + 2, 0],
                d[v + 1, 0] - d[v, 1],
            ]
        )
        for v in (0, 3)
    ]
    expected = np.concatenate(
        [curls[1] / media["epsilon"][:, None], -curls[0] / media["mu"][:, None]]
    )
    du = reference.rhs(op, interpolate(op, fields))
    assert np.abs(du - expected).max() < 1e-10 * np.abs(expected).max()


def test_float32_stays_float32_and_agrees():
    mesh = cube(periodic=False)
    media = materials(mesh)
    wave = PlaneWave((1, 0, 0), (0, 1, 0))
    single, double = (
        operator(mesh, 3, boundary=wave, dtype=dtype, **media) for dtype in ("float32", "float64")
    )
    u = random_state(double)
    ours, exact = reference.rhs(single, u.astype(np.float32)), reference.rhs(double, u)
    assert ours.dtype == np.float32
    assert 1e-9 < np.abs(ours - exact).max() / np.abs(exact).max() < 1e-5


# ---------------------------------------------------------------------------------------- spectrum


def amplification(z):
    """|R(z)| of the Runge-Kutta method."""
    u, res = np.ones_like(z), np.zeros_like(z)
    for a, b in zip(lsrk45.A, lsrk45.B, strict=True):
        res = a * res + z * u
        u = u + b * res
    return np.abs(u)


def eigenvalues(op):
    shape = (6, op.mesh.K, op.element.Np)
    unit = np.eye(int(np.prod(shape)))
    columns = [reference.rhs(op, e.reshape(shape)).ravel() for e in unit]
    return np.linalg.eigvals(np.stack(columns, axis=1))


@pytest.mark.parametrize("flux", FLUXES)
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("media", [False, True])
def test_the_default_step_is_stable(order, flux, media):
    """Eigenvalues in the left half plane, and a step of which 1.9 times is stable too."""
    mesh = box((1, 1, 1), 0.0, (1.0, 1.3, 0.6))
    for boundary in ("pec",) if media else ("pec", "absorbing"):
        given = materials(mesh) if media else {}
        op = operator(mesh, order, flux=flux, boundary=boundary, **given)
        z = eigenvalues(op) * stable_dt(op)
        assert z.real.max() < 1e-9
        if flux == "central" and boundary == "pec":
            assert np.abs(z.real).max() < 1e-9
        assert amplification(1.9 * z).max() < 1 + 1e-9
        assert amplification(8 * z).max() > 1


# ---------------------------------------------------------------------------------- bad arguments


class Flat:
    """Something of two dimensions."""

    dim = 2


PEC = dict.fromkeys(("x-", "x+", "y-", "y+", "z-", "z+"), "pec")


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"mesh": Flat()}, ValueError, "mesh.dim = 2"),
        ({"element": NodalElement(2, 1)}, ValueError, "element.dim = 2"),
        ({"flux": "upwnd"}, ValueError, "flux = 'upwnd'"),
        ({"epsilon": 0.0}, ValueError, "epsilon = 0.0"),
        ({"mu": -1.0}, ValueError, "mu = -1.0"),
        ({"epsilon": np.ones(5)}, ValueError, "epsilon has shape"),
        ({"mu": np.full(6, np.inf)}, ValueError, "mu = "),
        ({"boundary": {"x-": "pec"}}, ValueError, "no condition for 'x\\+'"),
        ({"boundary": PEC | {"top": "pec"}}, ValueError, "there is no 'top'"),
        ({"boundary": "pmc"}, ValueError, "boundary condition 'pmc'"),
        ({"boundary": 3}, TypeError, "boundary = 3"),
        ({"boundary": lambda x, y, z, t: [x, y, z]}, ValueError, "returned 3 fields"),
    ],
)
def test_bad_arguments_are_refused(change, error, words):
    arguments = {"mesh": box((1, 1, 1)), "element": NodalElement(3, 1)} | change
    with pytest.raises(error, match=words):
        reference.rhs(reference.assemble(**arguments), np.zeros((6, 6, 4)))


def test_a_function_of_another_shape_is_refused():
    op = operator(box((1, 1, 1)), 1, boundary=lambda x, y, z, t: [np.zeros(7)] * 6)
    with pytest.raises(ValueError, match="broadcast"):
        reference.rhs(op, np.zeros((6, 6, 4)))
