"""Meshes: boxes, connectivity, periodicity, geometry and the checks of a mesh from arrays."""

import itertools
import math
import pickle
import time
import tracemalloc
from pathlib import Path

import modepy
import numpy as np
import pytest

from dgbook.mesh import (
    Mesh,
    MeshError,
    box,
    build,
    exterior_nodes,
    face_node_match,
    face_pairs,
    face_vertices,
    geometric_factors,
    make_periodic,
    nodes_xyz,
    periodic_shift,
    read,
    vertex_permutations,
)
from dgbook.mesh.connect import connect, vertex_set_keys
from dgbook.mesh.geometry import adjugates
from dgbook.mesh.nearby import near_pairs

ROOT = Path(__file__).parents[2]
SHAPES = [(5,), (4, 3), (3, 2, 4)]
FACE_MEASURE = {1: 1.0, 2: 2.0, 3: 2.0}  # of the biunit reference simplex


def shuffled(shape, periodic=False, seed=0):
    """A box with moved interior vertices and every element's vertices in a random even order.

    Faces then meet in every way that two faces can meet.
    """
    rng = np.random.default_rng(seed)
    plain = box(shape, -1.0, 2.0)
    dim = plain.dim
    inside = ((plain.vertices > -1) & (plain.vertices < 2)).all(axis=1)
    step = 0.12 * 3 / max(shape) * rng.uniform(-1, 1, plain.vertices.shape)
    orders = np.array(list(itertools.permutations(range(dim + 1))))
    even = orders[np.linalg.det(np.eye(dim + 1)[orders]) > 0]
    order = even[rng.integers(len(even), size=plain.K)]
    elements = np.take_along_axis(plain.elements, order, axis=1)
    mesh = build(plain.vertices + inside[:, None] * step, elements, named(plain))
    for axis in np.flatnonzero(np.broadcast_to(periodic, dim)):
        mesh = make_periodic(mesh, "xyz"[axis] + "-", "xyz"[axis] + "+")
    return mesh


def named(mesh):
    """A mesh's boundary as vertex numbers."""
    return {
        name: mesh.elements[f[:, :1], face_vertices(mesh.dim)[f[:, 1]]]
        for name, f in mesh.boundary.items()
    }


MESHES = {
    **{f"box{len(s)}": lambda s=s: box(s, -1.0, 2.0) for s in SHAPES},
    **{f"shuffled{len(s)}": lambda s=s: shuffled(s) for s in SHAPES},
    **{f"periodic{len(s)}": lambda s=s: shuffled(s, periodic=True) for s in SHAPES},
    "mixed": lambda: shuffled((2, 3, 1), periodic=(False, True, True)),
    "aeroplane": lambda: read(ROOT / "chapters/meshes/aeroplane.msh"),
    "airfoil": lambda: read(ROOT / "chapters/meshes/airfoil.msh"),
}


@pytest.fixture(scope="module", params=MESHES)
def mesh(request):
    return MESHES[request.param]()


def face_points(mesh, k, f):
    """Coordinates of face vertices in increasing local order, (n, dim, dim)."""
    return mesh.vertices[mesh.elements[k[:, None], face_vertices(mesh.dim)[f]]]


def euler_characteristic(simplices):
    """Alternating sum over the distinct faces of every dimension."""
    total = 0
    for size in range(1, simplices.shape[1] + 1):
        corners = list(itertools.combinations(range(simplices.shape[1]), size))
        faces = np.sort(simplices[:, corners].reshape(-1, size), axis=1)
        total += (-1) ** (size - 1) * len(np.unique(faces, axis=0))
    return total


# Connectivity


def test_face_numbering_is_opposite_vertex():
    assert face_vertices(3).tolist() == [[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]]
    assert face_vertices(2).tolist() == [[1, 2], [0, 2], [0, 1]]
    assert face_vertices(1).tolist() == [[1], [0]]
    for dim in (1, 2, 3):
        assert vertex_permutations(dim).tolist() == [
            list(p) for p in itertools.permutations(range(dim))
        ]


def test_neighbors_are_mutual(mesh):
    k, f = np.nonzero(mesh.neighbors >= 0)
    k2, f2 = mesh.neighbors[k, f], mesh.neighbor_faces[k, f]
    assert (mesh.neighbors[k2, f2] == k).all()
    assert (mesh.neighbor_faces[k2, f2] == f).all()
    boundary = mesh.neighbors < 0
    assert (mesh.neighbor_faces[boundary] == -1).all()
    assert (mesh.face_permutation[boundary] == -1).all()


def test_permutation_maps_my_face_vertices_onto_the_neighbors(mesh):
    k, f = np.nonzero(mesh.neighbors >= 0)
    k2, f2 = mesh.neighbors[k, f], mesh.neighbor_faces[k, f]
    perm = vertex_permutations(mesh.dim)[mesh.face_permutation[k, f]]
    mine = np.take_along_axis(face_points(mesh, k, f), perm[..., None], axis=1)
    theirs = face_points(mesh, k2, f2)
    shift = periodic_shift(mesh)[k, f]
    assert np.abs(mine + shift[:, None] - theirs).max() < 1e-9
    # The other side holds the inverse.
    back = vertex_permutations(mesh.dim)[mesh.face_permutation[k2, f2]]
    assert (np.take_along_axis(perm, back, axis=1) == np.arange(mesh.dim)).all()


@pytest.mark.parametrize("shape", SHAPES)
def test_shuffled_meshes_meet_in_every_way(shape):
    """Otherwise the tests that use them prove less than they say."""
    dim = len(shape)
    mesh = shuffled((4,) * dim, periodic=True)
    ways = np.stack(
        [
            np.broadcast_to(np.arange(dim + 1), mesh.neighbors.shape),
            mesh.neighbor_faces,
            mesh.face_permutation,
        ],
        axis=-1,
    ).reshape(-1, 3)
    # Positive elements on opposite sides: only half of the (dim+1)^2 dim! ways can occur.
    expected = (dim + 1) ** 2 * math.factorial(dim) // 2
    assert len(np.unique(ways, axis=0)) == expected


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("periodic", [False, True])
def test_every_interior_face_is_counted_once(shape, periodic):
    mesh = shuffled(shape, periodic)
    pairs = face_pairs(mesh)
    assert len(pairs) == (mesh.neighbors >= 0).sum() // 2
    both = np.concatenate([pairs[:, :2], pairs[:, 2:]])
    assert len(np.unique(both, axis=0)) == 2 * len(pairs)
    assert (mesh.neighbors[pairs[:, 0], pairs[:, 1]] == pairs[:, 2]).all()
    assert (np.diff(pairs[:, 0]) >= 0).all()


def test_connect_refuses_a_face_of_three_elements():
    with pytest.raises(
        MeshError, match=r"elements? .*element 0, element 1, element 2.* vertex 0, v"
    ):
        connect(np.array([[0, 1, 2], [1, 0, 3], [0, 1, 4]]))


@pytest.mark.parametrize("largest", [50, 2**31 - 1])
def test_keys_tell_vertex_sets_apart(largest):
    """Also where three vertex numbers do not fit 64 bits: 0 and 4 in front would look alike."""
    rng = np.random.default_rng(1)
    faces = rng.integers(0, 50, (3000, 3))
    faces = np.concatenate([faces, faces + np.array([0, 0, largest - 49]), [[largest, 1, 2]]])
    keys = vertex_set_keys(faces)
    sets = np.sort(faces, axis=1)
    assert len(np.unique(keys)) == len(np.unique(sets, axis=0))
    for k in rng.integers(0, len(faces), 50):
        assert np.array_equal(keys == keys[k], (sets == sets[k]).all(axis=1))


@pytest.mark.parametrize("largest", [2**21 - 1, 2**21, 3_000_000, 2**22, 2**31 - 1])
def test_keys_do_not_overflow(largest):
    """They are ordered as the sets are, up to the last: 64 bits too few would begin again at zero.

    Three digits fit 63 bits up to the base 2^21. To the base of three million the sets `a` and `b`
    are numbers that differ by 2^64, and so the same to a machine of 64 bits.
    """
    base = 3_000_001
    a = [0, 1, 2]
    upper, last = divmod(a[1] * base + a[2] + 2**64, base)
    b = [*divmod(upper, base), last]
    assert b == sorted(b)
    top = [largest - 2, largest - 1, largest]
    sets = [[0, 1, 3], [3, largest - 1, largest], [4, 5, largest], top]
    sets = np.array(sorted([*sets, a, b] if largest == base - 1 else sets))
    keys = vertex_set_keys(sets)
    assert (keys >= 0).all()
    assert (np.diff(keys) > 0).all()


def test_two_hundred_thousand_tetrahedra_connect_in_seconds():
    elements = box((32, 32, 33)).elements
    assert len(elements) > 2e5
    start = time.perf_counter()
    connect(elements)
    # A million in 30 s is what is asked for; this runs on busy machines.
    assert time.perf_counter() - start < 6


# Node matching


@pytest.mark.parametrize("order", [1, 4, 7])
def test_exterior_nodes_meet_in_space(mesh, order):
    nodes, face_nodes = warp_and_blend(mesh.dim, order)
    ext = exterior_nodes(mesh, nodes, face_nodes)
    x = nodes_xyz(mesh, nodes).reshape(mesh.dim, -1)
    own = np.arange(mesh.K)[:, None, None] * len(nodes) + face_nodes
    boundary = mesh.neighbors < 0
    assert np.array_equal(ext[boundary], own[boundary])
    gap = x[:, own] + np.moveaxis(periodic_shift(mesh), 2, 0)[..., None] - x[:, ext]
    assert np.abs(gap[:, ~boundary]).max(initial=0) < 1e-9
    assert (ext[~boundary] // len(nodes) == mesh.neighbors[~boundary][:, None]).all()


def warp_and_blend(dim, order):
    """Nodes of an independent library, and its numbers of the nodes on each face."""
    nodes = modepy.warp_and_blend_nodes(dim, order).T.reshape(-1, dim)
    weights = np.column_stack([-(nodes.sum(axis=1) + dim - 2) / 2, (1 + nodes) / 2])
    return nodes, np.array([np.flatnonzero(np.abs(w) < 1e-10) for w in weights.T])


def test_node_matching_refuses_unsymmetric_nodes():
    nodes, face_nodes = warp_and_blend(2, 3)
    moved = nodes.copy()
    moved[face_nodes[2, 1], 0] += 0.01  # slides along its face
    with pytest.raises(ValueError, match="not symmetric"):
        face_node_match(moved, face_nodes)
    with pytest.raises(ValueError, match=r"face_nodes\[0\] holds nodes that do not lie on face 0"):
        face_node_match(nodes, face_nodes[[1, 0, 2]])
    with pytest.raises(ValueError, match=r"face_nodes must have shape \(3, Nfp\)"):
        face_node_match(nodes, face_nodes[:2])


# Boxes


@pytest.mark.parametrize("shape", [(7,), (1,), (3, 5), (1, 1), (2, 3, 4), (1, 1, 1)])
def test_box_counts(shape):
    mesh = box(shape)
    dim, cells = len(shape), math.prod(shape)
    assert mesh.dim == dim
    assert mesh.K == math.factorial(dim) * cells
    assert len(mesh.vertices) == math.prod(n + 1 for n in shape)
    assert euler_characteristic(mesh.elements) == 1
    per_cell_side = math.factorial(dim - 1)
    for axis, n in enumerate(shape):
        for sign, place in (("-", 0.0), ("+", 1.0)):
            faces = mesh.faces("xyz"[axis] + sign)
            assert len(faces) == per_cell_side * cells // n
            assert (face_points(mesh, *faces.T)[..., axis] == place).all()
    assert sum(map(len, mesh.boundary.values())) == len(mesh.boundary_faces)


@pytest.mark.parametrize("shape", [(1,), (2,), (1, 1), (2, 1), (1, 1, 1), (2, 1, 2), (3, 3, 3)])
def test_periodic_box_is_a_torus(shape):
    """Even one cell: every face has a neighbor, and the number of faces is that of the torus."""
    mesh = box(shape, 0.0, 2.0, periodic=True)
    dim = len(shape)
    assert (mesh.neighbors >= 0).all()
    assert mesh.boundary == {}
    assert len(face_pairs(mesh)) == mesh.K * (dim + 1) // 2
    distances = np.abs(periodic_shift(mesh))
    assert np.minimum(distances, np.abs(distances - 2)).max() < 1e-14
    # Crossing each periodic direction once through its shift: as many faces as the plain box has.
    plain = box(shape, 0.0, 2.0)
    shifts = periodic_shift(mesh)
    for axis in range(dim):
        assert (shifts[..., axis] > 1).sum() == len(plain.boundary["xyz"[axis] + "-"])


def test_box_is_periodic_in_chosen_directions_only():
    mesh = box((2, 3), (-1, 0), (1, 5), periodic=(False, True))
    assert sorted(mesh.boundary) == ["x+", "x-"]
    assert np.allclose(np.unique(periodic_shift(mesh)[..., 1]), [-5, 0, 5])
    assert (periodic_shift(mesh)[..., 0] == 0).all()


def test_box_takes_numbers_and_tuples():
    assert np.array_equal(box(4, -1, 1).vertices[:, 0], [-1, -0.5, 0, 0.5, 1])
    assert np.array_equal(box((2, 2), 0, (1, 3)).vertices.max(axis=0), [1, 3])
    assert np.array_equal(box(np.array([2, 2])).vertices.max(axis=0), [1, 1])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (((2.0, 2),), TypeError, "shape must hold ints"),
        ((True,), TypeError, "shape must hold ints"),
        (((2, 0),), ValueError, "1 or more"),
        (((1, 1, 1, 1),), ValueError, "1, 2 or 3 entries"),
        (((),), ValueError, "1, 2 or 3 entries"),
        (((2000, 2000, 2000),), ValueError, "32-bit"),
        (((2, 2), (0, 0, 0)), ValueError, "lower must have 2 entries"),
        (((2, 2), 0, (1, 1, 1)), ValueError, "upper must have 2 entries"),
        (((2, 2), 0, 0), ValueError, "lower must be below upper"),
        (((2, 2), 0, (1, math.inf)), ValueError, "both finite"),
        (((2, 2), "0", 1), TypeError, "lower must hold numbers"),
        (((2, 2), 0, 1, 1), TypeError, "periodic must hold bools"),
        (((2, 2), 0, 1, (True,)), ValueError, "periodic must have 2 entries"),
    ],
)
def test_box_refuses(arguments, error, message):
    with pytest.raises(error, match=message):
        box(*arguments)


# Geometry


def test_jacobians_and_areas_against_determinants(mesh):
    g = geometric_factors(mesh)
    d = mesh.dim
    homogeneous = np.concatenate(
        [np.ones((mesh.K, d + 1, 1)), mesh.vertices[mesh.elements]], axis=2
    )
    volume = np.linalg.det(homogeneous) / math.factorial(d)
    reference = 2**d / math.factorial(d)
    assert np.allclose(g.jacobian, volume / reference, rtol=1e-9)
    assert (g.jacobian > 0).all()

    k, f = np.indices(mesh.neighbors.shape).reshape(2, -1)
    points = face_points(mesh, k, f)
    edges = points[:, 1:] - points[:, :1]
    area = np.sqrt(np.linalg.det(edges @ np.swapaxes(edges, 1, 2))) / math.factorial(d - 1)
    area = area.reshape(g.face_jacobian.shape)
    assert np.allclose(g.face_jacobian * FACE_MEASURE[d], area, rtol=1e-9)
    assert np.allclose(g.face_scale, g.face_jacobian / g.jacobian[:, None], rtol=1e-9)

    # The distance of vertex f from the plane of face f, and r = d V / (sum of the areas).
    first = mesh.vertices[mesh.elements][:, [1] + [0] * d]
    distance = np.einsum("kfd,kfd->kf", g.normals, first - mesh.vertices[mesh.elements])
    assert np.allclose(g.altitude, distance, rtol=1e-7)
    assert np.allclose(g.inscribed_diameter, 2 * d * volume / area.sum(axis=1), rtol=1e-9)


def test_normals_point_outward_and_oppose_each_other(mesh):
    g = geometric_factors(mesh)
    assert np.allclose(np.linalg.norm(g.normals, axis=2), 1, rtol=1e-13)
    corners = mesh.vertices[mesh.elements]
    k, f = np.indices(mesh.neighbors.shape).reshape(2, -1)
    on_face = face_points(mesh, k, f).mean(axis=1).reshape(g.normals.shape)
    assert (np.einsum("kfd,kfd->kf", g.normals, on_face - corners) > 0).all()
    edges = face_points(mesh, k, f)[:, 1:] - face_points(mesh, k, f)[:, :1]
    along = np.einsum("ned,nd->ne", edges, g.normals.reshape(-1, mesh.dim))
    assert np.abs(along).max(initial=0) < 1e-9
    # A closed surface: the area vectors of every element cancel.
    total = (g.face_jacobian[..., None] * g.normals).sum(axis=1)
    assert np.abs(total).max() < 1e-12 * g.face_jacobian.max()
    k, f, k2, f2 = face_pairs(mesh).T
    assert np.allclose(g.normals[k, f], -g.normals[k2, f2], atol=1e-9)
    assert np.allclose(g.face_jacobian[k, f], g.face_jacobian[k2, f2], rtol=1e-9)


def test_divergence_theorem_holds_on_every_element(mesh):
    """A linear field's flux through the faces is its divergence times the volume."""
    rng = np.random.default_rng(3)
    g, d = geometric_factors(mesh), mesh.dim
    gradient, constant = rng.standard_normal((d, d)), rng.standard_normal(d)
    k, f = np.indices(mesh.neighbors.shape).reshape(2, -1)
    centers = face_points(mesh, k, f).mean(axis=1).reshape(g.normals.shape)
    field = centers @ gradient.T + constant
    area = g.face_jacobian * FACE_MEASURE[d]
    flux = (np.einsum("kfd,kfd->kf", field, g.normals) * area).sum(axis=1)
    volume = g.jacobian * 2**d / math.factorial(d)
    scale = np.abs(field).max() * area.max()
    assert np.abs(flux - np.trace(gradient) * volume).max() < 1e-12 * scale


def test_adjugates_of_right_and_left_handed_matrices():
    x = np.random.default_rng(3).standard_normal((99, 3, 3))
    rows, det = adjugates(x)
    sizes = (np.abs(x).max(axis=(1, 2)) ** 3)[:, None, None]
    assert 20 < np.count_nonzero(det < 0) < 80
    assert np.abs((rows @ x - det * np.eye(3)) / sizes).max() < 1e-14
    assert np.abs((det[:, 0, 0] - np.linalg.det(x)) / sizes[:, 0, 0]).max() < 1e-14


def test_inverse_map_against_differences_of_the_map(mesh):
    rng = np.random.default_rng(4)
    r = rng.uniform(-0.5, 0.0, (1, mesh.dim))
    step = 0.25  # the map is affine: differences are exact whatever the step
    moved = nodes_xyz(mesh, np.concatenate([r, r + step * np.eye(mesh.dim)]))
    xyz_rst = np.moveaxis(moved[:, :, 1:] - moved[:, :, :1], 1, 0) / step
    product = geometric_factors(mesh).rst_xyz @ xyz_rst
    assert np.abs(product - np.eye(mesh.dim)).max() < 1e-9


def test_reference_vertices_map_to_the_elements_vertices(mesh):
    d = mesh.dim
    reference = np.concatenate([np.full((1, d), -1.0), 2 * np.eye(d) - 1])
    x = nodes_xyz(mesh, reference)
    assert x.shape == (d, mesh.K, d + 1)
    assert x.flags.c_contiguous
    assert np.allclose(np.moveaxis(x, 0, 2), mesh.vertices[mesh.elements], atol=1e-14)
    with pytest.raises(ValueError, match=rf"shape \(Np, {d}\)"):
        nodes_xyz(mesh, np.zeros((3, d + 1)))


@pytest.mark.parametrize("shape", SHAPES)
def test_volumes_add_up_and_boundaries_have_their_area(shape):
    mesh, d = shuffled(shape), len(shape)
    g = geometric_factors(mesh)
    assert math.isclose(g.jacobian.sum() * 2**d / math.factorial(d), 3.0**d, rel_tol=1e-13)
    for axis, sign in itertools.product(range(d), (-1, 1)):
        k, f = mesh.faces("xyz"[axis] + "-+"[sign > 0]).T
        assert np.allclose(g.normals[k, f], sign * np.eye(d)[axis], atol=1e-12)
        area = g.face_jacobian[k, f].sum() * FACE_MEASURE[d]
        assert math.isclose(area, 3.0 ** (d - 1), rel_tol=1e-13)


# The committed meshes


def test_aeroplane_is_a_ball_cut_out_of_a_box():
    mesh = MESHES["aeroplane"]()
    assert 4000 <= mesh.K <= 9000
    assert set(mesh.boundary) == {"body", "farfield"}
    assert len(mesh.regions["fluid"]) == mesh.K
    assert euler_characteristic(mesh.elements) == 2
    for name in ("body", "farfield"):
        k, f = mesh.faces(name).T
        surface = mesh.elements[k[:, None], face_vertices(3)[f]]
        assert euler_characteristic(surface) == 2
    g = geometric_factors(mesh)
    k, f = mesh.faces("farfield").T
    assert math.isclose(
        2 * g.face_jacobian[k, f].sum(), 2 * (4.4 * 4 + 4.4 * 2.8 + 4 * 2.8), rel_tol=1e-12
    )
    # The body's volume from its surface, and from what is missing of the box.
    k, f = mesh.faces("body").T
    centers = face_points(mesh, k, f).mean(axis=1)
    area = 2 * g.face_jacobian[k, f]
    enclosed = -(np.einsum("nd,nd->n", centers, g.normals[k, f]) * area).sum() / 3
    assert math.isclose(enclosed, 4.4 * 4 * 2.8 - g.jacobian.sum() * 4 / 3, rel_tol=1e-10)
    assert g.altitude.min() > 0.005


def test_airfoil_is_a_hole_in_a_rectangle():
    mesh = MESHES["airfoil"]()
    assert 1000 <= mesh.K <= 2000
    assert set(mesh.boundary) == {"airfoil", "farfield"}
    assert euler_characteristic(mesh.elements) == 0
    points = face_points(mesh, *mesh.faces("airfoil").T).reshape(-1, 2)
    assert np.allclose([points[:, 0].min(), points[:, 0].max()], [0, 1], atol=1e-12)
    assert np.allclose(np.abs(points[:, 1]).max(), 0.06, rtol=0.01)  # 12 per cent thick


# Periodic boundaries


def test_gmsh_periodic_cube_becomes_a_torus():
    mesh = read(ROOT / "tests/data/periodic_cube.msh")
    for axis in "xyz":
        mesh = make_periodic(mesh, f"{axis}-", f"{axis}+")
    assert (mesh.neighbors >= 0).all()
    assert len(face_pairs(mesh)) == 2 * mesh.K
    assert np.allclose(np.unique(periodic_shift(mesh).round(8)), [-1, 0, 1])


def test_make_periodic_leaves_other_boundaries_and_the_argument_alone():
    plain = box((3, 4))
    joined = make_periodic(plain, "y-", "y+")
    assert (plain.neighbors < 0).sum() == 14
    assert (joined.neighbors < 0).sum() == 8
    assert sorted(joined.boundary) == ["x+", "x-"]


def square(points, name_of):
    """Two triangles on four points, with each edge named by `name_of`."""
    edges = {"bottom": [[0, 1]], "right": [[1, 2]], "top": [[2, 3]], "left": [[3, 0]]}
    named = {}
    for edge, facet in edges.items():
        named.setdefault(name_of.get(edge, edge), []).extend(facet)
    return build(points, [[0, 1, 2], [0, 2, 3]], named)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("x-", "y-"), "6 vertices"),
        (("x-", "x-"), "must differ"),
        (("x-", "wall"), "no boundary named 'wall'; its boundaries: 'x\\+', 'x-', 'y\\+', 'y-'"),
    ],
)
def test_make_periodic_refuses_names(names, message):
    with pytest.raises(ValueError, match=message):
        make_periodic(box((3, 5)), *names)


def test_make_periodic_refuses_boundaries_that_are_no_translates():
    skew = square([[0, 0], [1, 0], [1, 1.001], [0, 1]], {})
    with pytest.raises(MeshError, match="'left' and 'right' are not translates of each other"):
        make_periodic(skew, "left", "right")
    close = square([[0, 0], [1, 0], [1, 1 + 1e-8], [0, 1]], {})
    assert (make_periodic(close, "left", "right").neighbors >= 0).sum() == 4


def test_make_periodic_refuses_faces_that_match_in_vertices_only():
    """The cube in five tetrahedra cuts opposite sides along different diagonals."""
    corners = np.array(list(itertools.product([0.0, 1.0], repeat=3)))
    inner = [c for c in range(8) if corners[c].sum() % 2 == 0]
    edge = np.abs(corners[:, None] - corners[None]).sum(axis=2) == 1
    outer = [[c, *np.flatnonzero(edge[c])] for c in range(8) if c not in inner]
    sides = {
        "left": [
            f for t in outer for f in itertools.combinations(t, 3) if not corners[list(f), 0].any()
        ],
        "right": [
            f for t in outer for f in itertools.combinations(t, 3) if corners[list(f), 0].all()
        ],
    }
    mesh = build(corners, [inner, *outer], sides, reorient=True)
    with pytest.raises(MeshError, match="matching vertices but differ in how these form faces"):
        make_periodic(mesh, "left", "right")


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_make_periodic_refuses_ends_that_face_the_same_way(dim):
    """Two boxes apart: the left ends of both are translates, with the mesh right of both."""
    one = box((2,) * dim)
    n = len(one.vertices)
    away = np.eye(dim)[0] * 5
    facets = named(one)
    mesh = build(
        np.concatenate([one.vertices, one.vertices + away]),
        np.concatenate([one.elements, one.elements + n]),
        {"first": facets["x-"], "second": facets["x-"] + n, "end": facets["x+"] + n},
    )
    with pytest.raises(MeshError, match="face the same way"):
        make_periodic(mesh, "first", "second")
    assert "end" not in make_periodic(mesh, "first", "end").boundary


# The frozen data


def test_mesh_is_frozen_and_names_what_it_has():
    mesh = box((2, 2))
    with pytest.raises(AttributeError):
        mesh.vertices = None
    for array in (mesh.vertices, mesh.elements, mesh.neighbors, mesh.boundary["x-"]):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(ValueError, match=r"no boundary named 'wall'; its boundaries: 'x\+', 'x-'"):
        mesh.faces("wall")
    with pytest.raises(ValueError, match="none at all"):
        box((2, 2), periodic=True).faces("wall")
    assert repr(box((2, 1))) == (
        "Mesh(dim=2, K=4, Nv=6, boundary={'x-': 1, 'x+': 1, 'y-': 2, 'y+': 2})"
    )
    again = pickle.loads(pickle.dumps(mesh))
    assert np.array_equal(again.neighbors, mesh.neighbors)
    with pytest.raises(ValueError, match=r"neighbors must have shape \(8, 3\)"):
        Mesh(mesh.vertices, mesh.elements, mesh.neighbors[:2], mesh.neighbor_faces,
             mesh.face_permutation, {})  # fmt: skip


# Meshes from arrays

TRIANGLES = np.array([[0.0, 0], [1, 0], [1, 1], [0, 1]]), np.array([[0, 1, 2], [0, 2, 3]])


def test_build_keeps_groups_drops_orphans_and_finds_interfaces():
    vertices, elements = TRIANGLES
    vertices = np.insert(vertices, 1, [9, 9], axis=0)  # in no element
    elements = elements + (elements > 0)
    mesh = build(
        vertices,
        elements,
        {"wall": [[0, 2], [3, 2]], "cut": [[3, 0]], "both": [[0, 3], [0, 2]]},
        {"upper": [1]},
    )
    assert len(mesh.vertices) == 4
    assert mesh.faces("wall").tolist() == [[0, 0], [0, 2]]
    assert mesh.faces("both").tolist() == [[0, 2]]
    assert mesh.faces("unnamed").tolist() == [[1, 0], [1, 1]]
    assert {n: f.tolist() for n, f in mesh.interfaces.items()} == {
        "cut": [[0, 1]],
        "both": [[0, 1]],
    }
    assert mesh.regions["upper"].tolist() == [1]


def test_build_adds_to_a_group_that_is_called_unnamed():
    mesh = build(*TRIANGLES, {"unnamed": [[0, 1]]})
    assert np.array_equal(mesh.faces("unnamed"), mesh.boundary_faces)


def test_reorient_reverses_what_is_inverted():
    for shape in SHAPES:
        plain = box(shape)
        elements = plain.elements.copy()
        elements[::2] = elements[::2, ::-1] if len(shape) < 3 else elements[::2][:, [1, 0, 2, 3]]
        with pytest.raises(MeshError, match=r"element 0 is inverted.*reorient=True"):
            build(plain.vertices, elements)
        mesh = build(plain.vertices, elements, reorient=True)
        assert np.array_equal(np.sort(mesh.elements, axis=1), np.sort(plain.elements, axis=1))
        assert (geometric_factors(mesh).jacobian > 0).all()


def hanging_3d():
    """A cube of two layers against one: the fine side has a vertex in the coarse side's edges."""
    coarse, fine = box((1, 1, 1)), box((1, 1, 2), (1, 0, 0), (2, 1, 1))
    vertices, index = np.unique(
        np.concatenate([coarse.vertices, fine.vertices]), axis=0, return_inverse=True
    )
    return vertices, index[np.concatenate([coarse.elements, fine.elements + 8])]


def crossing_diagonals():
    """Two cubes side by side that cut their common square along different diagonals."""
    left = box((1, 1, 1))
    right = left.vertices * [1, -1, 1] + [1, 1, 0]
    vertices, index = np.unique(np.concatenate([left.vertices, right]), axis=0, return_inverse=True)
    mirrored = left.elements[:, [1, 0, 2, 3]] + 8
    return vertices, index[np.concatenate([left.elements, mirrored])]


DEFECTS = {
    "flat": (([[0, 0], [1, 0], [2, 1e-14]], [[0, 1, 2]]), "element 0 is flat"),
    "flat beyond rounding": (([[0, 0], [1, 0], [0, 1e-12]], [[0, 1, 2]]), "element 0 is flat"),
    "repeated vertex": (([[0, 0], [1, 0], [0, 1]], [[0, 1, 1]]), "element 0 is flat"),
    "too small": (([[0, 0], [1e-101, 0], [0, 1e-101]], [[0, 1, 2]]), "element 0 is too small"),
    "flat, almost too small": (
        ([[0, 0, 0], [1, 0, 0], [0, 1e-320, 0], [0, 0, 1e-320]], [[0, 1, 2, 3]]),
        "element 0 is flat",
    ),
    "far from the origin": (
        ([[1e9, 1e9], [1e9 + 1, 1e9], [1e9, 1e9 + 1e-6]], [[0, 1, 2]]),
        "element 0 is flat",
    ),
    "inverted": (([[0, 0], [1, 0], [0, 1]], [[0, 2, 1]]), "element 0 is inverted"),
    "three": (
        ([[0, 0], [1, 0], [0, 1], [0, -1], [1, 1]], [[0, 1, 2], [1, 0, 3], [0, 1, 4]]),
        "three or more elements",
    ),
    "folded": (
        ([[0, 0], [1, 0], [0, 1], [1, 1]], [[0, 1, 2], [0, 1, 3]]),
        "element 0 and element 1 overlap",
    ),
    "crack": (
        ([[0, 0], [1, 0], [1, 1], [0, 1], [0, 1e-8]], [[0, 1, 2], [4, 2, 3]]),
        r"vertex 0 and vertex 4 are both at \[0. 0.\]",
    ),
    "crack in 1D": (([[0], [1], [1], [2]], [[0, 1], [2, 3]]), "vertex 1 and vertex 2"),
    "hanging in 2D": (
        (
            [[0, 0], [1, 0], [1, 1], [1 + 1e-8, 0.5], [2, 0.5]],
            [[0, 1, 2], [1, 4, 3], [3, 4, 2]],
        ),
        "vertex 3 hangs on the face of vertex 1, vertex 2",
    ),
    "hanging in 3D": (hanging_3d(), "hangs on the face"),
    "crossing diagonals": (crossing_diagonals(), "covers the face"),
    "not finite": (([[0, 0], [1, 0], [np.nan, 1]], [[0, 1, 2]]), "vertex 2 has a coordinate"),
    "missing vertex": (
        ([[0, 0], [1, 0], [0, 1]], [[0, 1, 3]]),
        "element 0 refers to vertex 3, but there are 3",
    ),
    "negative vertex": (([[0, 0], [1, 0], [0, 1]], [[0, 1, -1]]), "refers to vertex -1"),
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_build_refuses(defect):
    arrays, message = DEFECTS[defect]
    with pytest.raises(MeshError, match=message):
        build(*arrays)


def test_build_refuses_wrong_arrays():
    vertices, elements = TRIANGLES
    with pytest.raises(ValueError, match="vertices must have shape"):
        build(vertices[0], elements)
    with pytest.raises(TypeError, match="elements must hold integers"):
        build(vertices, elements.astype(float))
    with pytest.raises(ValueError, match=r"elements must have shape \(K, 3\)"):
        build(vertices, elements[:, :2])
    with pytest.raises(ValueError, match=r"boundary\['a'\] must have shape \(n, 2\)"):
        build(vertices, elements, {"a": [[0]]})
    with pytest.raises(MeshError, match="group 'a' names the face of vertex 1, vertex 3"):
        build(vertices, elements, {"a": [[0, 1], [1, 3]]})


def test_thin_boundary_layers_are_not_flat():
    """Aspect ratio 1e5, and close walls that do not touch, are legitimate."""
    thin = box((4, 4, 4), 0, (1, 1, 1e-5))
    assert build(thin.vertices, thin.elements, named(thin)).K == thin.K
    n = len(thin.vertices)
    for gap in (1e-6, 2.5e-8):  # 0.4 and 0.01 of an element's altitude
        apart = np.concatenate([thin.vertices, thin.vertices + np.array([0, 0, 1e-5 + gap])])
        assert build(apart, np.concatenate([thin.elements, thin.elements + n])).K == 2 * thin.K
    thick = box((2, 2, 2))
    n = len(thick.vertices)
    apart = np.concatenate([thick.vertices, thick.vertices + np.array([0, 0, 1 + 1e-5])])
    assert build(apart, np.concatenate([thick.elements, thick.elements + n])).K == 2 * thick.K


def thin_tetrahedra(height):
    """All ways to be thin: a low pyramid, a face without area, two vertices close, a sliver."""
    return {
        "low": [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0.3, 0.3, height]],
        "thin face": [[0, 0, 0], [1, 0, 0], [0.5, height, 0], [0.5, 0, 1]],
        "short edge": [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, height, height]],
        "sliver": [[0, 0, 0], [1, 0, height], [1, 1, 0], [0, 1, height]],
        "needle": [[0, 0, 0], [1, 0, 0], [0.5, height**0.5, 0], [0.5, 0, height**0.5]],
    }


@pytest.mark.parametrize("kind", thin_tetrahedra(1))
@pytest.mark.parametrize("size", [1e-90, 1, 1e90])
def test_thin_tetrahedra_are_valid(kind, size):
    """Whatever makes them thin: no vertex of theirs hangs on their own faces, none is singular."""
    turn = np.linalg.qr(np.random.default_rng(8).standard_normal((3, 3)))[0]
    for height in (1e-5, 1e-8, 3e-11):
        vertices = np.array(thin_tetrahedra(height)[kind]) @ turn * size
        mesh = build(vertices, [[0, 1, 2, 3]], reorient=True)
        volume = np.linalg.det(np.array(thin_tetrahedra(height)[kind])[1:] - [0, 0, 0]) / 6
        # Turned coordinates are rounded to 1e-16, against a height of 3e-11.
        found = geometric_factors(mesh).jacobian[0] / size / size / size * 4 / 3
        assert found == pytest.approx(abs(volume), rel=1e-4)


def test_a_vertex_hangs_on_thin_elements_too():
    """Two layers of squares, thinner and thinner, the upper one moved by half a square."""
    for height in (1, 1e-4, 1e-9):
        lower, upper = box((4, 1), (0, 0), (1, height)), box((4, 1), (0, height), (1, 2 * height))
        vertices = np.concatenate([lower.vertices, upper.vertices + np.array([0.125, 0])])
        elements = np.concatenate([lower.elements, upper.elements + len(lower.vertices)])
        with pytest.raises(MeshError, match="hangs on the face of"):
            build(vertices, elements)
        # Turned and so far away that coordinates are rounded to a thousandth of the height.
        turned = vertices @ np.array([[0.8, 0.6], [-0.6, 0.8]]) + height * 1e13
        with pytest.raises(MeshError, match="hangs on the face of"):
            build(turned, elements)


def comb(n, dim):
    """Simplices side by side on an edge that is as long as they are high, each a needle; turned."""
    x = np.arange(n + 1) / n
    first = np.arange(n)
    if dim == 2:
        tips = np.stack([x[:-1] + 0.5 / n, np.ones(n)], axis=1)
        vertices = np.concatenate([np.stack([x, 0 * x], axis=1), tips])
        elements = np.stack([first, first + 1, n + 1 + first], axis=1)
    else:
        tips = np.stack([x[:-1] + 0.5 / n, np.ones(n), 0 * x[1:]], axis=1)
        vertices = np.concatenate(
            [np.stack([x, 0 * x, 0 * x], axis=1), tips, tips + np.array([0, 0, 1])]
        )
        elements = np.stack([first, first + 1, n + 1 + first, 2 * n + 1 + first], axis=1)
    vertices[:, :2] = vertices[:, :2] @ np.array([[0.8, 0.6], [-0.6, 0.8]])
    return vertices, elements


def apexes(n, dim):
    """Needles whose n tips are all in one place and nevertheless not one vertex."""
    vertices, elements = comb(n, dim)
    vertices[n + 1 : 2 * n + 1] = vertices[n + 1]
    return vertices, elements


@pytest.mark.parametrize(("make", "dim"), [(comb, 2), (comb, 3), (apexes, 2)])
def test_needles_on_one_long_edge_are_checked_in_linear_memory(make, dim):
    """Every triangle is near every other one, if near means in a ball around its sides."""
    vertices, elements = make(1500, dim)
    tracemalloc.start()
    start = time.perf_counter()
    try:
        if make is comb:
            assert build(vertices, elements, reorient=True).K == 1500
        else:
            with pytest.raises(MeshError, match="vertex 1501 and vertex 1502 are both at"):
                build(vertices, elements, reorient=True)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 40e6  # bytes; for a ball around each side it is more than 500e6
    assert time.perf_counter() - start < 10


@pytest.mark.parametrize("dim", [2, 3])
def test_near_pairs_miss_none(dim):
    """Faces of all shapes and directions, against distances to samples of each face."""
    rng = np.random.default_rng(10)
    corners = rng.uniform(-1, 1, (60, 1, dim)) + rng.uniform(-0.3, 0.3, (60, dim, dim))
    # Half of them shrunk along all edges but one.
    corners[::2, 1:-1] += 0.99 * (corners[::2, :1] - corners[::2, 1:-1])
    weights = rng.dirichlet(np.ones(dim), 60)
    samples = weights @ corners
    points = np.concatenate([rng.uniform(-1, 1, (300, dim)), samples[:, 0], samples[::5, 1]])
    margin = rng.choice([1e-12, 0.01, 0.1], 60)
    distance = np.linalg.norm(samples[:, :, None] - points, axis=3).min(axis=1)
    expected = set(map(tuple, np.argwhere(distance <= margin[:, None]).tolist()))
    found = list(zip(*(side.tolist() for side in near_pairs(corners, margin, points)), strict=True))
    assert len(found) == len(set(found))
    assert expected <= set(found)
    assert 72 < len(expected) < len(found) < 4 * len(expected)


def test_many_named_groups_cost_no_more_than_few():
    """Each face in a group of its own, which one search finds."""
    mesh = box((1000, 2))
    facets = np.concatenate(list(named(mesh).values()))
    start = time.perf_counter()
    again = build(mesh.vertices, mesh.elements, {str(i): [f] for i, f in enumerate(facets)})
    assert len(again.boundary) == len(facets) == 2004
    assert time.perf_counter() - start < 1.5
