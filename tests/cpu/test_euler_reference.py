"""The Euler operator against hand-made cases, exact flows and the symmetries of the equations."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from dgbook.element import NodalElement, barycentric, simplex_quadrature
from dgbook.euler import exact, reference
from dgbook.euler.problem import FLUXES, GIVEN, WALL, conservative, physical_flux
from dgbook.mesh import Mesh, box, build, make_periodic, nodes_xyz, periodic_shift, read

MESHES = Path(__file__).parents[2] / "chapters" / "meshes"
ORDERS = range(7)
orders = pytest.mark.parametrize("p", ORDERS)
stream = exact.Stream(1.1, 0.4, -0.3, 0.9)
rng = np.random.default_rng(11)


@cache
def airfoil() -> Mesh:
    return read(MESHES / "airfoil.msh")


@cache
def unstructured(periodic: bool) -> Mesh:
    mesh = read(MESHES / "vortex.msh")
    return make_periodic(make_periodic(mesh, "x-", "x+"), "y-", "y+") if periodic else mesh


def assemble(mesh, p, flux="roe", boundary=None, dtype="float64"):
    return reference.assemble(mesh, NodalElement(2, p), flux, boundary, dtype)


def at_nodes(operator, function, t=0.0):
    return function(*nodes_xyz(operator.mesh, operator.element.nodes), t)


def disturbed(operator, size=0.1):
    """A stream with every nodal value changed at random, jumps and all."""
    u = at_nodes(operator, stream)
    return u + size * rng.uniform(-1, 1, u.shape)


# -- the arrays ----------------------------------------------------------------------------------

PERIODIC = {f"{n} x {n}": box((n, n), periodic=True) for n in (1, 2, 3)}
CASES = {
    **{name: (mesh, None) for name, mesh in PERIODIC.items()},
    "box": (box((3, 2)), "wall"),
    "airfoil": (airfoil(), {"airfoil": "wall", "farfield": stream}),
    "unstructured": (unstructured(True), None),
}
cases = pytest.mark.parametrize("name", CASES)


@cases
def test_edges_are_there_once_and_both_sides_know_them(name):
    mesh, boundary = CASES[name]
    op = assemble(mesh, 1, boundary=boundary)
    E, nb = len(op.edges), len(op.kinds)
    assert 2 * E - nb == 3 * mesh.K and op.interior == E - nb
    assert (op.edges[: op.interior] >= 0).all() and (op.edges[op.interior :, 2:] == -1).all()
    sides = np.concatenate([op.edges[:, :2], op.edges[: op.interior, 2:]])
    assert len(np.unique(sides, axis=0)) == 3 * mesh.K
    for number, (k, f, other, g) in enumerate(op.edges):
        assert op.element_edges[k, f] == number and op.element_sides[k, f] == 0
        assert (op.neighbors[k, f], op.neighbor_edges[k, f]) == (other, g)
        if other >= 0:
            assert op.element_edges[other, g] == number and op.element_sides[other, g] == 1
    np.testing.assert_array_equal(op.edges[op.interior :, :2], mesh.boundary_faces)


@cases
def test_normals_point_from_left_to_right_and_lengths_are_right(name):
    mesh, boundary = CASES[name]
    op = assemble(mesh, 1, boundary=boundary)
    k, f, other, _ = op.edges.T
    corners = mesh.vertices[mesh.elements[k]]
    index = np.arange(len(k))
    along = corners[index, (f + 2) % 3] - corners[index, (f + 1) % 3]
    np.testing.assert_allclose(np.hypot(*along.T), 2 * op.edge_jacobian, rtol=1e-13)
    # Counter-clockwise on the left: the outward normal is the edge turned clockwise.
    np.testing.assert_allclose(op.normal[:, 0] * 2 * op.edge_jacobian, along[:, 1], atol=1e-13)
    np.testing.assert_allclose(op.normal[:, 1] * 2 * op.edge_jacobian, -along[:, 0], atol=1e-13)
    inside = slice(op.interior)
    g = op.edges[inside, 3]
    np.testing.assert_allclose(op.normals[other[inside], g], -op.normal[inside], atol=1e-12)
    scale = op.edge_jacobian / op.jacobian[k]
    np.testing.assert_allclose(op.face_scale[k, f], scale, rtol=1e-13)


@cases
def test_points_of_neighbors_meet_in_reverse(name):
    mesh, boundary = CASES[name]
    op = assemble(mesh, 3, boundary=boundary)
    t = op.tables
    x = nodes_xyz(mesh, t.points_edge.reshape(-1, 2)).reshape(2, mesh.K, 3, t.Ne)
    k, f, other, g = op.edges[: op.interior].T
    shift = periodic_shift(mesh)[k, f].T[:, :, None]
    np.testing.assert_allclose(x[:, k, f] + shift, x[:, other, g, ::-1], atol=1e-12)
    k, f = op.edges[op.interior :, :2].T
    np.testing.assert_array_equal(op.boundary_points, x[:, k, f])


def test_boundary_edges_know_their_conditions():
    op = assemble(airfoil(), 2, boundary={"airfoil": "wall", "farfield": stream})
    on_wall = np.hypot(*(op.boundary_points.mean(axis=2) - [[0.5], [0]])) < 1
    np.testing.assert_array_equal(op.kinds, np.where(on_wall, WALL, GIVEN))
    data = reference.boundary_data(op, 0.0)
    assert not data[:, on_wall].any()
    far = stream(0.0, 0.0, 0.0)[:, None, None]
    np.testing.assert_allclose(data[:, ~on_wall], np.broadcast_to(far, data[:, ~on_wall].shape))


# -- independent values --------------------------------------------------------------------------


@pytest.mark.parametrize("flux", FLUXES)
def test_order_0_is_the_finite_volume_method(flux):
    """Two triangles in a unit square: each edge by hand."""
    mesh = build(
        np.array([[0.0, 0], [1, 0], [1, 1], [0, 1]]),
        np.array([[0, 1, 2], [0, 2, 3]]),
        {"low": np.array([[0, 1]]), "rest": np.array([[1, 2], [2, 3], [3, 0]])},
    )
    op = assemble(mesh, 0, flux, {"low": "wall", "rest": stream})
    a, b = conservative(1.0, 0.3, 0.2, 1.0), conservative(0.7, 0.5, -0.1, 1.2)
    F, far = FLUXES[flux], stream(0.0, 0.0, 0.0)
    mirror = a * [1, 1, -1, 1]
    diagonal = np.sqrt(2) * F(a, b, np.array([-1.0, 1.0]) / np.sqrt(2))
    below = F(a, mirror, np.array([0.0, -1.0])) + F(a, far, np.array([1.0, 0.0])) + diagonal
    above = F(b, far, np.array([0.0, 1.0])) + F(b, far, np.array([-1.0, 0.0])) - diagonal
    found = reference.rhs(op, np.stack([a, b], axis=1)[:, :, None])
    np.testing.assert_allclose(found[:, :, 0].T, [-below / 0.5, -above / 0.5], atol=1e-13)


@pytest.mark.parametrize("p", range(1, 7))
def test_residual_of_a_smooth_state_is_the_fluxs_divergence(p):
    """Continuous data: all numerical fluxes agree, and M^-1 R is the projection of div F.

    Momentum and energy are chosen so that the flux is a polynomial that the quadrature integrates:
    density and velocity constant, so that F is linear in the pressure, a polynomial of degree p.
    """
    op = assemble(box((2, 3)), p, boundary=lambda x, y, t: state(x, y))

    def state(x, y):
        return conservative(2.0, 0.5, -0.25, 3 + x**p + 0.5 * y**p - 0.3 * x * y ** (p - 1))

    x, y = nodes_xyz(op.mesh, op.element.nodes)
    px = p * x ** (p - 1) - 0.3 * y ** (p - 1)
    py = 0.5 * p * y ** (p - 1) - 0.3 * x * (p - 1) * y ** max(p - 2, 0)
    # d(rho)/dt = 0, d(rho v)/dt = -grad p, d(rho E)/dt = -v.grad p gamma / (gamma - 1)
    expected = np.stack([0 * x, -px, -py, -(0.5 * px - 0.25 * py) * 1.4 / 0.4])
    np.testing.assert_allclose(reference.rhs(op, state(x, y)), expected, atol=1e-10)


@orders
def test_volume_residual_by_another_quadrature(p):
    """Per element, with the product rule of the same degree refined until nothing changes."""
    op = assemble(PERIODIC["2 x 2"], p)
    u = disturbed(op, 0.002)
    points, weights = simplex_quadrature(2, 30)
    phi = op.element.interpolation(points)
    h = 1e-5
    dphi = [
        (op.element.interpolation(points + s) - op.element.interpolation(points - s)) / (2 * h)
        for s in h * np.eye(2)
    ]
    expected = np.zeros_like(u)
    for k in range(op.mesh.K):
        corners = op.mesh.vertices[op.mesh.elements[k]]
        inverse = np.linalg.inv((corners[1:] - corners[0]).T / 2)  # dr/dx
        F = physical_flux(u[:, k] @ phi.T)
        for d in range(2):
            grad = inverse[0, d] * dphi[0] + inverse[1, d] * dphi[1]
            expected[:, k] -= op.jacobian[k] * (weights * F[d]) @ grad
    # The flux is no polynomial: what is left is the quadrature's own error, as small as the square
    # of what is disturbed.
    np.testing.assert_allclose(reference.volume_residual(op, u), expected, atol=1e-5)


@orders
def test_edge_residuals_are_integrals_along_the_edges(p):
    op = assemble(PERIODIC["3 x 3"], p)
    u = disturbed(op)
    left, right = reference.edge_residual(op, u, reference.boundary_data(op, 0.0))
    points, weights = np.polynomial.legendre.leggauss(p + 1)
    corners = np.array([[-1.0, -1], [1, -1], [-1, 1]])
    for e in (0, 5, 17, 26):
        k, f, other, g = op.edges[e]

        def basis(f, points):
            a, b = corners[(f + 1) % 3], corners[(f + 2) % 3]
            return op.element.interpolation(a + np.outer((points + 1) / 2, b - a))

        mine, theirs = basis(f, points), basis(g, -points)
        n = op.normal[e][:, None]
        flux = FLUXES["roe"](u[:, k] @ mine.T, u[:, other] @ theirs.T, n)
        weighted = op.edge_jacobian[e] * weights * flux
        np.testing.assert_allclose(left[:, e], weighted @ mine, atol=1e-13)
        np.testing.assert_allclose(right[:, e], -weighted @ theirs, atol=1e-13)


# -- what every scheme must do -------------------------------------------------------------------


@orders
@cases
def test_a_uniform_stream_stays(name, p):
    mesh, boundary = CASES[name]
    op = assemble(mesh, p, boundary=stream if boundary else None)
    u = at_nodes(op, stream)
    size = op.face_scale.max() * abs(physical_flux(stream(0.0, 0.0, 0.0))).max() * (p + 1) ** 2
    assert abs(reference.rhs(op, u)).max() < 1e-13 * size


@pytest.mark.parametrize("flux", FLUXES)
@pytest.mark.parametrize("p", (0, 1, 4))
def test_periodic_flow_keeps_mass_momentum_and_energy(p, flux):
    op = assemble(unstructured(True), p, flux)
    change = reference.rhs(op, disturbed(op)) @ op.tables.mass.sum(axis=0) @ op.jacobian
    size = op.face_scale.max() * op.jacobian.sum()
    assert abs(change).max() < 1e-13 * size


@orders
def test_a_closed_box_keeps_mass_and_energy(p):
    op = assemble(box((3, 3)), p, boundary="wall")
    u = disturbed(op)
    change = reference.rhs(op, u) @ op.tables.mass.sum(axis=0) @ op.jacobian
    assert abs(change[[0, 3]]).max() < 1e-12 and abs(change[1:3]).min() > 1e-3


@pytest.mark.parametrize("flux", FLUXES)
@pytest.mark.parametrize("p", (0, 1, 2, 4))
def test_a_wall_is_a_plane_of_symmetry(p, flux):
    """The half of a symmetric flow behind a wall is the half of the whole flow."""
    upper, element = box((3, 2), (0.0, 0.0), (1.0, 1.0)), NodalElement(2, p)
    # The whole: the upper half and its mirror image, whose elements are numbered the same way
    # but for two vertices exchanged, which keeps them counter-clockwise.
    below = upper.vertices * [1, -1]
    used = upper.vertices[:, 1] > 0
    number = np.arange(len(below))
    number[used] = len(below) + np.arange(used.sum())
    whole = build(
        np.concatenate([upper.vertices, below[used]]),
        np.concatenate([upper.elements, number[upper.elements][:, [0, 2, 1]]]),
    )

    def given(x, y, t):
        return conservative(1 + 0.1 * x, 0.5 + 0.2 * y**2, 0.1 * y, 1 + 0.3 * y**2)

    half = assemble(upper, p, flux, {"x-": given, "x+": given, "y+": given, "y-": "wall"})
    both = assemble(whole, p, flux, given)
    u = given(*nodes_xyz(upper, element.nodes), 0.0)
    u = u + 0.05 * rng.uniform(-1, 1, u.shape)
    # Node r of an element is node (r_1, r_2) exchanged of its image, and v changes its sign.
    images = abs(element.nodes[:, None] - element.nodes[None, :, ::-1]).sum(axis=2).argmin(axis=1)
    image = u[:, :, images] * np.array([1, 1, -1, 1])[:, None, None]
    found = reference.rhs(both, np.concatenate([u, image], axis=1))
    np.testing.assert_allclose(found[:, : upper.K], reference.rhs(half, u), atol=1e-10)


@orders
def test_the_operator_turns_with_the_plane(p):
    mesh, angle = box((2, 3)), 0.6
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])

    def turned(u):
        return np.stack([u[0], *np.einsum("ab,b...->a...", turn, u[1:3]), u[3]])

    op = assemble(mesh, p, boundary=stream)
    u = disturbed(op)
    rotated = build(mesh.vertices @ turn.T, mesh.elements)
    other = assemble(rotated, p, boundary=lambda x, y, t: turned(stream(x, y, t)))
    np.testing.assert_allclose(
        reference.rhs(other, turned(u)), turned(reference.rhs(op, u)), atol=1e-9
    )


@pytest.mark.parametrize("flux", FLUXES)
@orders
def test_single_precision_is_the_same_operator(p, flux):
    op, single = (assemble(box((2, 2)), p, flux, stream, d) for d in ("float64", "float32"))
    u = disturbed(op)
    expected, found = reference.rhs(op, u), reference.rhs(single, u.astype(np.float32))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=1e-4 * abs(expected).max())


def test_left_and_right_are_put_where_they_belong():
    op = assemble(PERIODIC["2 x 2"], 1)
    E, K = len(op.edges), op.mesh.K
    left, right = rng.uniform(size=(2, 4, E, 3))
    expected = np.zeros((4, K, 3))
    np.add.at(expected, (slice(None), op.edges[:, 0]), left)
    np.add.at(expected, (slice(None), op.edges[:, 2]), right)
    found = reference.add(op, np.ones((4, K, 3)), left, right)
    np.testing.assert_allclose(found, 1 + expected, rtol=1e-14)


# -- states that no gas can have -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value", "what"),
    [(0, -0.1, "density"), (3, 0.05, "pressure"), (1, np.nan, "not finite")],
)
def test_unphysical_states_are_found(field, value, what):
    op = assemble(PERIODIC["3 x 3"], 2)
    u = at_nodes(op, stream)
    assert reference.unphysical(op, u) is None
    u[field, 7, 4] = value
    message, element = reference.unphysical(op, u)
    assert what in message and element == 7


def test_points_between_the_nodes_count():
    """A cubic that is positive at its nodes, and not at the points of the quadrature."""
    op = assemble(PERIODIC["2 x 2"], 3)
    t = op.tables
    u = at_nodes(op, stream)
    bary = barycentric(np.concatenate([t.points_volume, *t.points_edge]))
    assert (bary >= -1e-15).all()
    # Zero at the nodes but one, where it is large: the others' neighborhoods go below zero.
    u[0, 3] = 1e-3
    u[0, 3, 4] = 5.0
    u[1:3, 3] = 0
    assert (u[0, 3] > 0).all()
    message, element = reference.unphysical(op, u)
    assert "density" in message and element == 3


# -- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"flux": "central"}, "flux = 'central'; allowed are 'roe', 'rusanov', 'hllc'"),
        ({"boundary": "slip"}, "boundary condition 'slip'; allowed are 'wall' and functions"),
        ({"boundary": {"x-": "wall"}}, "no condition for 'x"),
        ({"mesh": box((2, 2, 2))}, "mesh.dim = 3; the Euler equations here have 2"),
        ({"element": NodalElement(3, 2)}, "element.dim = 3"),
        ({"element": NodalElement(2, 7)}, "order = 7; allowed: 0 to 6"),
    ],
)
def test_bad_input_is_refused(change, message):
    good = {"mesh": box((2, 2)), "element": NodalElement(2, 2), "boundary": "wall"}
    with pytest.raises(ValueError, match=message):
        reference.assemble(**(good | change))


def test_functions_must_return_four_fields():
    op = assemble(box((2, 2)), 1, boundary=lambda x, y, t: (x, y, x))
    with pytest.raises(ValueError, match="returned 3 fields; the Euler equations have 4: rho"):
        reference.boundary_data(op, 0.0)
