"""Nodes and matrices against modepy, an independent library."""

import numpy as np
import pytest

from dgbook.element import (
    NodalElement,
    gauss_jacobi,
    grad_vandermonde,
    modal_indices,
    multi_indices,
    simplex_quadrature,
    vandermonde,
)

modepy = pytest.importorskip("modepy")

elements = pytest.mark.parametrize(
    "e",
    [NodalElement(d, n) for d in (1, 2, 3) for n in range(1, 11)],
    ids=lambda e: f"{e.dim}d-N{e.order}",
)


def relative(ours, theirs):
    return abs(ours - theirs).max() / abs(theirs).max()


def modepy_basis(e):
    return modepy.orthonormal_basis_for_space(modepy.PN(e.dim, e.order), modepy.Simplex(e.dim))


def our_columns(e, basis):
    """Our column for each of modepy's modes; the mode identifiers mean the same."""
    number = {tuple(a): n for n, a in enumerate(modal_indices(e.dim, e.order).tolist())}
    return [number[tuple(mode)] for mode in basis.mode_ids]


@pytest.mark.parametrize(("dim", "order"), [(d, n) for d in (1, 2, 3) for n in range(1, 16)])
def test_nodes(dim, order):
    e = NodalElement(dim, order)
    theirs = modepy.warp_and_blend_nodes(dim, order).T
    distance = abs(e.nodes[:, None] - theirs[None]).max(axis=2)
    nearest = distance.argmin(axis=1)
    assert sorted(nearest) == list(range(e.Np))
    assert distance.min(axis=1).max() < 1e-12
    # ... and one by one, if modepy is asked for our order.
    tuples = [tuple(a) for a in multi_indices(dim, order)[:, 1:].tolist()]
    np.testing.assert_allclose(
        e.nodes, modepy.warp_and_blend_nodes(dim, order, tuples).T, atol=1e-12
    )


@elements
def test_basis_and_gradient(e):
    basis = modepy_basis(e)
    columns = our_columns(e, basis)
    # Points other than the nodes, at which test_matrices compares.
    points = simplex_quadrature(e.dim, 2 * e.order)[0]
    theirs = modepy.vandermonde(basis.functions, points.T)
    assert relative(vandermonde(e.dim, e.order, points)[:, columns], theirs) < 1e-10
    gradients = modepy.multi_vandermonde(basis.gradients, points.T)
    ours = grad_vandermonde(e.dim, e.order, points)[:, :, columns]
    assert relative(ours, np.array(gradients)) < 1e-10


@elements
def test_matrices(e):
    basis = modepy_basis(e)
    nodes = e.nodes.T
    V = modepy.vandermonde(basis.functions, nodes)
    assert relative(e.vandermonde[:, our_columns(e, basis)], V) < 1e-10
    D = modepy.diff_matrices(basis, nodes)
    assert relative(e.derivative, np.array(D).reshape(e.derivative.shape)) < 1e-10
    assert relative(e.mass, modepy.mass_matrix(basis, nodes)) < 1e-10


@elements
def test_face_mass(e):
    """modepy interpolates from the volume's nodes to quadrature points on each of its faces."""
    basis = modepy_basis(e)
    for face in modepy.faces_for_shape(modepy.Simplex(e.dim)):
        (f,) = set(range(e.dim + 1)) - set(face.volume_vertex_indices)
        if e.dim == 1:
            points, weights = np.zeros((0, 1)), np.ones(1)
        else:
            rule = modepy.quadrature_for_space(modepy.PN(e.dim - 1, 2 * e.order), face)
            points, weights = rule.nodes, rule.weights
        to_face = modepy.resampling_matrix(basis.functions, face.map_to_volume(points), e.nodes.T)
        theirs = (to_face.T * weights) @ to_face
        ours = np.zeros((e.Np, e.Np))
        ours[np.ix_(e.face_nodes[f], e.face_nodes[f])] = e.face_mass
        assert relative(ours, theirs) < 1e-10


@pytest.mark.parametrize("n", range(1, 16))
@pytest.mark.parametrize("alpha", (0, 1, 2))
def test_gauss_jacobi_rules(n, alpha):
    rule = modepy.JacobiGaussQuadrature(alpha, 0, n - 1, force_dim_axis=True)
    points, weights = gauss_jacobi(n, alpha, 0)
    np.testing.assert_allclose(points, rule.nodes.ravel(), atol=1e-13)
    np.testing.assert_allclose(weights, rule.weights, rtol=1e-10)
