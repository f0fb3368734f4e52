"""The NumPy operator of acoustics in both bases: energy, spectrum, another assembly."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dgbook.acoustics import PlaneWave, reference
from dgbook.acoustics.problem import FLUXES, flux_weights
from dgbook.acoustics.reference import BASES
from dgbook.acoustics.solver import Solver
from dgbook.mesh import box, geometric_factors, make_periodic, nodes_xyz, read
from dgbook.time import lsrk45

ROOT = Path(__file__).parents[2]
RANDOM = np.random.default_rng(5)


def cube(periodic=True):
    """An unstructured cube of 184 elements."""
    mesh = read(ROOT / "tests/data/periodic_cube.msh")
    for axis in "xyz" if periodic else "":
        mesh = make_periodic(mesh, axis + "-", axis + "+")
    return mesh


def materials(mesh):
    """Random moduli and densities, one an element; impedances differ by 10 at most."""
    kappa, rho = RANDOM.uniform(0.5, 5.0, (2, mesh.K))
    return {"kappa": kappa, "rho": rho}


def random_state(op):
    return RANDOM.standard_normal((4, op.mesh.K, op.basis.element.Np))


def inner(op, u, v):
    """Integral of p p' / kappa + rho v.v'."""
    material = np.stack([1 / op.kappa, *3 * [op.rho]])
    return np.einsum("ak,aki,aki,k->", material, u, v @ op.basis.element.mass, op.jacobian)


# ------------------------------------------------------------------------------------------ energy


def dissipation(op, u):
    """The right side of formula (E) of ``reference.rhs``, from traces alone."""
    jump = reference.jumps(op, u, reference.boundary_data(op, 0.0))
    own = u.reshape(4, -1)[:, op.trace.interior]
    k, f = op.trace.boundary_faces.T
    a, c = op.weights[0].copy(), op.weights[2].copy()
    a[:], c[:] = a / 2, c / 2  # every interior face is seen from both sides
    values = jump
    values[:, k, f] = own[:, k, f]
    soft, rigid = op.mirrors[:, 0] == -1, op.mirrors[:, 1] == -1
    a[k, f] = np.where(soft, 4, np.where(rigid, 0, 2)) * a[k, f]
    c[k, f] = np.where(rigid, 4, np.where(soft, 0, 2)) * c[k, f]
    normal = np.einsum("kfd,dkfi->kfi", op.normals, values[1:])
    area = geometric_factors(op.mesh).face_jacobian
    return sum(
        np.einsum("kf,kf,kfi,ij,kfj->", w, area, q, op.basis.element.face_mass, q, optimize=True)
        for w, q in ((a, values[0]), (c, normal))
    )


@pytest.mark.parametrize("order", [1, 3])
@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize("flux", FLUXES)
@pytest.mark.parametrize("boundary", ["periodic", "soft", "rigid", "absorbing"])
def test_energy_is_lost_by_jumps_alone(order, basis, flux, boundary):
    """Formula (E), for random fields and materials, to rounding."""
    mesh = cube(periodic=boundary == "periodic")
    conditions = {} if boundary == "periodic" else boundary
    op = reference.assemble(mesh, order, basis, flux, boundary=conditions, **materials(mesh))
    u = random_state(op)
    rate, lost = inner(op, u, reference.rhs(op, u)), dissipation(op, u)
    scale = inner(op, u, u) * (op.speed * op.face_scale.sum(axis=1)).max() * (order + 1) ** 2
    assert abs(rate + lost) < 1e-13 * scale
    if flux == "central" and boundary != "absorbing":
        assert lost == 0
    else:
        assert lost > 1e-5 * scale


def test_the_wrong_sign_of_the_penalty_makes_energy_grow():
    op = reference.assemble(cube(periodic=False), 2)
    u = random_state(op)
    signs = np.array([-1, 1, -1, 1])[:, None, None]
    wrong = replace(op, weights=op.weights * signs)
    assert inner(op, u, reference.rhs(op, u)) < 0 < inner(op, u, reference.rhs(wrong, u))


@pytest.mark.parametrize("flux", FLUXES)
def test_time_steps_keep_or_lose_energy(flux):
    mesh = cube(periodic=False)
    solver = Solver(mesh, 2, device="cpu", basis="bernstein", flux=flux, **materials(mesh))
    u = solver.interpolate(lambda x, y, z: 4 * [np.sin(np.pi * x) * np.sin(np.pi * y)])
    energies = [solver.energy(u)]
    solver.run(u, 0.3, solver.cfl_dt(), observe=lambda t, v: energies.append(solver.energy(v)))
    assert (np.diff(energies) < 0).all()
    if flux == "central":
        assert energies[-1] > (1 - 1e-4) * energies[0]


# ------------------------------------------------------------------------- an independent assembly


def dense_rhs(mesh, order, nodes, u, kappa, rho, conditions):
    """du/dt at `nodes` by modepy's basis and quadrature: weak products, traces by points in space.

    The star states at a face are those of the Riemann problem, or of the wall:
    p* = (Z^+ p^- + Z^- p^+ - Z^- Z^+ n.[v]) / (Z^- + Z^+), likewise n.v*.
    """
    modepy = pytest.importorskip("modepy")
    basis = modepy.orthonormal_basis_for_space(modepy.PN(3, order), modepy.Simplex(3))
    inside = modepy.XiaoGimbutasSimplexQuadrature(2 * order, 3)
    on_face = modepy.XiaoGimbutasSimplexQuadrature(2 * order, 2)

    def values(r):
        return modepy.vandermonde(basis.functions, r)

    slopes = np.array(modepy.multi_vandermonde(basis.gradients, inside.nodes))
    modes = u @ np.linalg.inv(values(nodes.T)).T  # (4, K, modes)
    corners = mesh.vertices[mesh.elements]
    maps = np.swapaxes(corners[:, 1:] - corners[:, :1], 1, 2) / 2  # dx/dr
    Z = np.sqrt(kappa * rho)
    out = np.zeros_like(modes)

    def trace_of(k, x):
        """The four fields of element k at points (n, 3) of space."""
        r = np.linalg.solve(maps[k], (x - corners[k, 0]).T) - 1
        return modes[:, k] @ values(r).T, values(r)

    for k in range(mesh.K):
        gradients = np.einsum("id,iqm,am->adq", np.linalg.inv(maps[k]), slopes, modes[:, k])
        volume = -np.array([gradients[1, 0] + gradients[2, 1] + gradients[3, 2], *gradients[0]])
        out[:, k] = (volume * inside.weights) @ values(inside.nodes)
        for f in range(4):
            a, b, c = np.delete(corners[k], f, axis=0)
            s, t = (on_face.nodes + 1) / 2
            x = a + np.outer(s, b - a) + np.outer(t, c - a)
            area = np.cross(b - a, c - a)
            n = area / np.linalg.norm(area)
            n = n if n @ (a - corners[k, f]) > 0 else -n
            (p, *v), test = trace_of(k, x)
            vn = n @ v
            neighbor = mesh.neighbors[k, f]
            if neighbor != k and neighbor >= 0:
                (p2, *v2), _ = trace_of(neighbor, x)
                own, other = Z[k], Z[neighbor]
                p_star = (other * p + own * p2 - own * other * (n @ v2 - vn)) / (own + other)
                vn_star = (own * vn + other * (n @ v2) - (p2 - p)) / (own + other)
            else:
                wall = conditions[tuple(np.flatnonzero(np.abs(n) > 0.5))]
                p_star, vn_star = {
                    "soft": (0 * p, vn + p / Z[k]),
                    "rigid": (p + Z[k] * vn, 0 * vn),
                    "absorbing": ((p + Z[k] * vn) / 2, (p / Z[k] + vn) / 2),
                }[wall]
            flux = np.array([vn - vn_star, *np.outer(n, p - p_star)])
            scale = np.linalg.norm(area) / 4 / np.linalg.det(maps[k])
            out[:, k] += scale * (flux * on_face.weights) @ test
    out[0] *= kappa[:, None]
    out[1:] /= rho[:, None]
    return out @ values(nodes.T).T


@pytest.mark.parametrize("order", [1, 2, 4])
def test_a_dense_assembly_by_modepy_agrees(order):
    """Different quadrature, basis, and traces; walls x soft, y rigid, z absorbing."""
    mesh = box((2, 1, 1), 0.0, (1.0, 1.3, 0.6))
    walls = {"x": "soft", "y": "rigid", "z": "absorbing"}
    media = materials(mesh)
    boundary = {axis + side: wall for axis, wall in walls.items() for side in "-+"}
    by_axis = {(i,): wall for i, wall in enumerate(walls.values())}
    nodal, bernstein = (
        reference.assemble(mesh, order, basis, boundary=boundary, **media) for basis in BASES
    )
    u = random_state(nodal)
    expected = dense_rhs(mesh, order, nodal.basis.element.nodes, u, *media.values(), by_axis)
    ours = reference.rhs(nodal, u)
    assert np.abs(ours - expected).max() < 1e-12 * np.abs(expected).max()
    control = bernstein.basis.from_nodal(u)
    ours = bernstein.basis.to_nodal(reference.rhs(bernstein, control))
    assert np.abs(ours - expected).max() < 1e-12 * np.abs(expected).max()


# -------------------------------------------------------------------- two bases, one operator


@pytest.mark.parametrize("order", range(1, 13))
def test_both_bases_are_the_same_operator(order):
    """To rounding; it grows more slowly than the condition of the change of basis, 2.4^N."""
    mesh = box((1, 1, 1), 0.0, (1.0, 1.3, 0.6))
    options = {"boundary": PlaneWave((1, 1, 0)), **materials(mesh)}
    nodal, bernstein = (reference.assemble(mesh, order, basis, **options) for basis in BASES)
    u = random_state(nodal)
    expected = reference.rhs(nodal, u, 0.3)
    control = reference.rhs(bernstein, bernstein.basis.from_nodal(u), 0.3)
    difference = np.abs(bernstein.basis.to_nodal(control) - expected).max()
    assert difference < 2e-14 * 1.7**order * np.abs(expected).max()


def test_four_barycentric_derivatives_make_the_same_volume_term():
    """grad l_f = -n_f Fs_f / 2: what a kernel may use that forms no differences of D_m."""
    op = reference.assemble(cube(periodic=False), 3, "bernstein")
    u, element = random_state(op), op.basis.element
    along = np.stack([(element.derivative(m) @ u.reshape(-1, element.Np).T).T for m in range(4)])
    along = along.reshape(4, *u.shape)
    gradients = -op.normals * op.face_scale[..., None] / 2  # (K, 4, 3)
    p = np.einsum("mki,kmd->dki", along[:, 0], gradients)
    v = np.einsum("mdki,kmd->ki", along[:, 1:], gradients)
    expected = reference.volume(op, u)
    assert np.abs(-np.array([v, *p]) - expected).max() < 1e-13 * np.abs(expected).max()


@pytest.mark.parametrize("flux", FLUXES)
@pytest.mark.parametrize("basis", BASES)
def test_a_constant_state_stays(flux, basis):
    mesh = cube()
    op = reference.assemble(mesh, 4, basis, flux, boundary={}, **materials(mesh))
    u = np.broadcast_to(RANDOM.standard_normal((4, 1, 1)), (4, mesh.K, op.basis.element.Np))
    assert np.abs(reference.rhs(op, u)).max() < 2e-11


@pytest.mark.parametrize("order", [1, 3, 5])
@pytest.mark.parametrize("flux", FLUXES)
@pytest.mark.parametrize("basis", BASES)
def test_polynomials_are_differentiated_exactly(order, flux, basis):
    """Of degree N, continuing outside, they have no jumps: p_t = -kappa div v, and so on."""
    mesh = cube(periodic=False)
    slopes = RANDOM.uniform(-1, 1, (4, 3))
    media = materials(mesh)

    def fields(x, y, z, t):
        return (1 + np.tensordot(slopes, np.stack([x, y, z]), 1)) ** order

    solver = Solver(mesh, order, device="cpu", basis=basis, flux=flux, boundary=fields, **media)
    slope = order * (1 + np.tensordot(slopes, solver.x, 1)) ** (order - 1)
    d = slopes[:, :, None, None] * slope[:, None]  # [field, axis]
    kappa, rho = (media[name][:, None] for name in ("kappa", "rho"))
    expected = -np.array([kappa * (d[1, 0] + d[2, 1] + d[3, 2]), *(d[0] / rho)])
    du = solver.rhs(solver.interpolate(lambda x, y, z: fields(x, y, z, 0)))
    assert np.abs(du - expected).max() < 1e-10 * np.abs(expected).max()


@pytest.mark.parametrize("flux", FLUXES)
def test_integrals_are_conserved_on_a_torus(flux):
    """int p / kappa and int rho v: volume and surface terms are divergences."""
    mesh = cube()
    op = reference.assemble(mesh, 2, "bernstein", flux, boundary={}, **materials(mesh))
    du = reference.rhs(op, random_state(op))
    for a in range(4):
        unit = np.zeros_like(du)
        unit[a] = 1
        assert abs(inner(op, du, unit)) < 1e-11 * np.abs(du).max()


@pytest.mark.parametrize("basis", BASES)
def test_float32_stays_float32_and_agrees(basis):
    mesh = cube(periodic=False)
    options = {"boundary": PlaneWave((1, 0, 0)), **materials(mesh)}
    single, double = (
        reference.assemble(mesh, 3, basis, dtype=dtype, **options)
        for dtype in ("float32", "float64")
    )
    u = random_state(double)
    ours, exact = reference.rhs(single, u.astype(np.float32)), reference.rhs(double, u)
    assert ours.dtype == np.float32
    assert 1e-9 < np.abs(ours - exact).max() / np.abs(exact).max() < 1e-5


# -------------------------------------------------------------------------------------- the flux


def test_fluxes_agree_in_one_medium_and_have_rank_one():
    Z, Zp = RANDOM.uniform(0.1, 10.0, (2, 50))
    upwind, penalty, central = (flux_weights(flux, Z, Zp) for flux in FLUXES)
    np.testing.assert_allclose(flux_weights("upwind", Z, Z), flux_weights("penalty", Z, Z))
    for a, b, c, d in (upwind, penalty):
        np.testing.assert_allclose(a * c, b * d, rtol=1e-14)
    np.testing.assert_array_equal(central[[1, 3]], upwind[[1, 3]])
    assert not central[[0, 2]].any()
    # Seen from the other side a and c are the same, and b and d change places: formula (E).
    for flux in FLUXES:
        here, there = flux_weights(flux, Z, Zp), flux_weights(flux, Zp, Z)
        np.testing.assert_allclose(there, here[[0, 3, 2, 1]], rtol=1e-14)
        np.testing.assert_allclose(here[1] + here[3], 1, rtol=1e-14)


@pytest.mark.parametrize("flux", ["upwind", "penalty"])
def test_one_scalar_a_face_is_the_whole_flux(flux):
    mesh = cube(periodic=False)
    op = reference.assemble(mesh, 2, flux=flux, **materials(mesh))
    jump = reference.jumps(op, random_state(op), 0.0)
    a, b, r = op.rank_one[..., None]
    n = np.moveaxis(op.normals, 2, 0)[..., None]
    s = a * jump[0] - b * (n * jump[1:]).sum(axis=0)
    expected = reference.fluxes(op, jump)
    assert np.abs(np.array([s, *(-r * n * s)]) - expected).max() < 1e-14 * np.abs(expected).max()


def test_the_central_flux_has_no_rank_one_form():
    with pytest.raises(ValueError, match="flux = 'central' has rank 2"):
        _ = reference.assemble(box((1, 1, 1)), 1, flux="central").rank_one


# ---------------------------------------------------------------------------------------- spectrum


def amplification(z):
    """|R(z)| of the Runge-Kutta method."""
    u, res = np.ones_like(z), np.zeros_like(z)
    for a, b in zip(lsrk45.A, lsrk45.B, strict=True):
        res = a * res + z * u
        u = u + b * res
    return np.abs(u).max()


def eigenvalues(op):
    shape = (4, op.mesh.K, op.basis.element.Np)
    unit = np.eye(int(np.prod(shape)))
    columns = [reference.rhs(op, e.reshape(shape)).ravel() for e in unit]
    return np.linalg.eigvals(np.stack(columns, axis=1))


@pytest.mark.parametrize("flux", FLUXES)
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("contrast", [1.0, 4.0, 1e3])
def test_the_default_step_is_stable_whatever_the_contrast(flux, order, contrast):
    """Density and modulus jump together: the speed is the same, the impedance `contrast` apart.

    Of upwind and central 1.8 times the step is stable; penalty needs a shorter one and has less to
    spare, because its stiffness is that of few faces.
    """
    mesh = box((1, 1, 1), 0.0, (1.0, 1.3, 0.6))
    media = np.where(np.arange(mesh.K) % 2, 1 / contrast, 1.0)
    solver = Solver(mesh, order, device="cpu", flux=flux, kappa=media, rho=media)
    z = eigenvalues(solver.operator) * solver.cfl_dt()
    assert z.real.max() < 1e-9
    if flux == "central":
        assert np.abs(z.real).max() < 1e-9
    assert amplification((1.1 if flux == "penalty" else 1.8) * z) < 1 + 1e-9
    assert amplification(6 * z) > 1
    stiffness = solver.operator.stiffness.max()
    expected = max(1, (1 + contrast) / 4) if flux == "penalty" else 1
    assert stiffness == pytest.approx(expected)
    if flux == "penalty" and contrast > 100:
        assert amplification(stiffness * z) > 10  # the step that waves alone would allow


# ---------------------------------------------------------------------------------- bad arguments


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"mesh": box((1, 1))}, ValueError, "mesh.dim = 2"),
        ({"order": 0}, ValueError, "order = 0"),
        ({"order": 2.0}, TypeError, "order"),
        ({"basis": "modal"}, ValueError, "basis = 'modal'; allowed are 'nodal', 'bernstein'"),
        ({"flux": "upwnd"}, ValueError, "flux = 'upwnd'"),
        ({"kappa": 0.0}, ValueError, "kappa = 0.0"),
        ({"rho": -1.0}, ValueError, "rho = -1.0"),
        ({"kappa": np.ones(5)}, ValueError, "kappa has shape"),
        ({"rho": np.full(6, np.inf)}, ValueError, "rho = "),
        ({"boundary": {"x-": "soft"}}, ValueError, "no condition for 'x\\+'"),
        ({"boundary": "hard"}, ValueError, "boundary condition 'hard'"),
        ({"boundary": 3}, TypeError, "boundary = 3"),
        ({"boundary": lambda x, y, z, t: [x, y, z]}, ValueError, "returned 3 fields"),
    ],
)
def test_bad_arguments_are_refused(change, error, words):
    arguments = {"mesh": box((1, 1, 1)), "order": 1} | change
    with pytest.raises(error, match=words):
        reference.rhs(reference.assemble(**arguments), np.zeros((4, 6, 4)))


def test_nodes_of_a_box_have_their_boundary_points():
    op = reference.assemble(box((1, 1, 1)), 3)
    x = nodes_xyz(op.mesh, op.basis.element.nodes)
    k, f = op.trace.boundary_faces.T
    expected = x[:, k[:, None], op.basis.element.face_nodes[f]]
    np.testing.assert_array_equal(op.boundary_points, expected)
