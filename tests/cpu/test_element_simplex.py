"""Numbering of the reference simplex: vertices, faces, lattice; and the checks of arguments."""

import itertools
import math
import pickle

import numpy as np
import pytest

import dgbook.element as element
from dgbook.element import (
    MAX_ORDER,
    BernsteinElement,
    NodalElement,
    barycentric,
    cartesian,
    face_layers,
    face_node_permutations,
    face_nodes,
    face_vertices,
    multi_indices,
    reference_measure,
    reference_vertices,
    simplex_quadrature,
    space_dimension,
)

DIMS = (1, 2, 3)


@pytest.mark.parametrize("dim", DIMS)
def test_vertices_have_unit_barycentric_coordinates(dim):
    vertices = reference_vertices(dim)
    assert vertices.min() == -1 and vertices.max() == 1
    np.testing.assert_array_equal(vertices[0], -np.ones(dim))
    np.testing.assert_array_equal(barycentric(vertices), np.eye(dim + 1))
    edges = vertices[1:] - vertices[0]
    assert reference_measure(dim) == pytest.approx(np.linalg.det(edges) / math.factorial(dim))


@pytest.mark.parametrize("dim", DIMS)
def test_barycentric_coordinates_recombine_the_vertices(dim):
    points = np.random.default_rng(1).uniform(-1, 1, (50, dim))
    bary = barycentric(points)
    np.testing.assert_allclose(bary @ reference_vertices(dim), points, atol=1e-15)
    np.testing.assert_allclose(cartesian(bary), points, atol=1e-15)


def test_face_f_is_opposite_vertex_f():
    assert face_vertices(1) == ((1,), (0,))
    assert face_vertices(2) == ((1, 2), (0, 2), (0, 1))
    assert face_vertices(3) == ((1, 2, 3), (0, 2, 3), (0, 1, 3), (0, 1, 2))


@pytest.mark.parametrize("dim", (0, *DIMS))
@pytest.mark.parametrize("order", (0, 1, 2, 5, 9))
def test_multi_indices_enumerate_the_lattice_in_order(dim, order):
    indices = multi_indices(dim, order)
    rows = [tuple(a) for a in indices.tolist()]
    assert len(set(rows)) == len(rows) == space_dimension(dim, order)
    assert indices.min() >= 0 and np.all(indices.sum(axis=1) == order)
    assert rows == sorted(rows, key=lambda a: a[:0:-1])


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("order", (1, 2, 4, 7))
def test_every_layer_of_every_face_is_a_smaller_lattice(dim, order):
    indices = multi_indices(dim, order)
    layers = face_layers(dim, order)
    for f in range(dim + 1):
        for i in range(order + 1):
            rows = indices[layers[f][i]]
            assert np.all(rows[:, f] == i)
            np.testing.assert_array_equal(
                rows[:, face_vertices(dim)[f]], multi_indices(dim - 1, order - i)
            )
        assert sorted(np.concatenate(layers[f])) == list(range(len(indices)))
        np.testing.assert_array_equal(face_nodes(dim, order)[f], layers[f][0])
    # The nodes of the last face come first: its layers are contiguous.
    np.testing.assert_array_equal(np.concatenate(layers[dim]), np.arange(len(indices)))


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("order", range(1, MAX_ORDER + 1))
def test_permuted_faces_match_node_by_node(dim, order):
    """The trace nodes are symmetric: permuting the vertices permutes them as the lattice says."""
    bary = barycentric(NodalElement(dim, order).face_points)
    permutations = face_node_permutations(dim, order)
    assert sorted(permutations) == sorted(itertools.permutations(range(dim)))
    for p, nodes in permutations.items():
        assert sorted(nodes) == list(range(len(bary)))
        np.testing.assert_allclose(bary[nodes][:, p], bary, atol=1e-13)


def test_permutations_compose():
    permutations = face_node_permutations(3, 5)
    for p, q in itertools.product(permutations, repeat=2):
        both = tuple(q[p[j]] for j in range(3))
        np.testing.assert_array_equal(permutations[both], permutations[q][permutations[p]])


@pytest.mark.parametrize("cls", (NodalElement, BernsteinElement))
@pytest.mark.parametrize(
    ("dim", "order", "error", "message"),
    [
        (0, 2, ValueError, r"dim must be an integer from 1 to 3, not 0"),
        (4, 2, ValueError, r"dim must be an integer from 1 to 3, not 4"),
        (2, 16, ValueError, r"order must be an integer from [01] to 15, not 16"),
        (2, -1, ValueError, r"order must be an integer from [01] to 15, not -1"),
        (2.0, 2, TypeError, r"dim must be an integer from 1 to 3, not 2.0 \(float\)"),
        ("2", 2, TypeError, r"dim must be an integer from 1 to 3, not '2' \(str\)"),
        (2, 3.0, TypeError, r"order must be an integer from [01] to 15, not 3.0 \(float\)"),
        (2, True, TypeError, r"order must be an integer from [01] to 15, not True \(bool\)"),
        ([2], 3, TypeError, r"dim must be an integer from 1 to 3, not \[2\] \(list\)"),
    ],
)
def test_elements_refuse_bad_arguments(cls, dim, order, error, message):
    with pytest.raises(error, match=message):
        cls(dim, order)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: simplex_quadrature(4, 2), ValueError, "dim .* from 0 to 3, not 4"),
        (lambda: simplex_quadrature(2, -1), ValueError, "degree .* >= 0, not -1"),
        (lambda: simplex_quadrature(2, 3.5), TypeError, "degree .* not 3.5"),
        (lambda: element.vandermonde(2, -1, np.zeros((1, 2))), ValueError, "order .* not -1"),
        (lambda: element.vandermonde(2, 3, np.zeros((1, 3))), ValueError, r"points .* \(n, 2\)"),
        (lambda: element.grad_vandermonde(2, 3, np.zeros(2)), ValueError, r"points .* \(n, 2\)"),
        (lambda: element.bernstein_basis(3, 3, np.zeros((1, 2))), ValueError, "points .* shape"),
        (lambda: NodalElement(3, 2).interpolation(np.zeros((3, 2))), ValueError, "points .* shape"),
        (lambda: BernsteinElement(3, 2).derivative(4), ValueError, "m .* from 0 to 3, not 4"),
        (lambda: BernsteinElement(3, 2).derivative(1.0), TypeError, "m .* not 1.0"),
        (lambda: BernsteinElement(2, 0), ValueError, "order .* from 1 to 15, not 0"),
        (lambda: element.warp_and_blend(2, 16), ValueError, "order .* from 0 to 15, not 16"),
        (lambda: element.elevation(4, 1), ValueError, "dim .* not 4"),
        (lambda: element.bernstein_mass(2, -1), ValueError, "order .* not -1"),
        (lambda: element.gauss_jacobi(0, 0, 0), ValueError, "n .* >= 1, not 0"),
        (lambda: element.gauss_jacobi(2, -1, 0), ValueError, "alpha .* > -1, not -1"),
        (lambda: element.jacobi(2, 0, -1.5, 0.0), ValueError, "beta .* > -1, not -1.5"),
        (lambda: element.gauss_lobatto(0), ValueError, "order .* >= 1, not 0"),
        (lambda: barycentric(np.zeros(2)), ValueError, r"points .* \(n, dim\)"),
        (lambda: face_vertices(0), ValueError, "dim .* from 1 to 3, not 0"),
    ],
)
def test_functions_refuse_bad_arguments(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("cls", (NodalElement, BernsteinElement))
def test_equal_elements_share_matrices_that_cannot_be_changed(cls):
    one, two = cls(2, 3), cls(np.int64(2), np.int64(3))
    assert one == two and hash(one) == hash(two) and one != cls(3, 3)
    assert one.lift is two.lift
    with pytest.raises(ValueError, match="read-only"):
        one.mass[0, 0] = 0
    with pytest.raises(ValueError, match="read-only"):
        one.face_nodes[0, 0] = 0
    with pytest.raises(AttributeError):
        one.order = 4
    assert pickle.loads(pickle.dumps(one)) == one


def test_sparse_matrices_cannot_be_changed_and_still_multiply():
    e = BernsteinElement(3, 2)
    for matrix in (e.derivative(0), e.lift_face, e.lift_reduction, e.layer_reductions[0]):
        with pytest.raises(ValueError, match="read-only"):
            matrix.data[0] = 0
        np.testing.assert_array_equal(
            matrix @ np.arange(matrix.shape[1]), matrix.toarray() @ np.arange(matrix.shape[1])
        )


def test_everything_exported_exists_and_is_documented():
    for name in element.__all__:
        item = getattr(element, name)
        assert isinstance(item, int) or item.__doc__, name
