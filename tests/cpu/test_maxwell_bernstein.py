"""Maxwell's operator in the Bernstein basis: the nodal one, rates, energy, and sparse products."""

from functools import partial

import numpy as np
import pytest
from maxwell_cases import BOUNDARY, scrambled

from dgbook.element import NodalElement
from dgbook.maxwell import reference
from dgbook.maxwell.exact import BoxMode
from dgbook.maxwell.problem import FLUXES
from dgbook.mesh import box, nodes_xyz
from dgbook.time import lsrk45

RANDOM = np.random.default_rng(7)
EPS = np.finfo(np.float64).eps
T = 0.3


def pair(order, flux="upwind", cells=(2, 1, 1), dtype="float64", **options):
    """The operator in either basis on the same mesh, with all boundaries and materials."""
    mesh = scrambled(box(cells), RANDOM, 0.1 / max(cells))
    epsilon, mu = RANDOM.uniform(0.5, 3, (2, mesh.K))
    options = {"epsilon": epsilon, "mu": mu, "boundary": BOUNDARY} | options
    make = partial(reference.assemble, mesh, NodalElement(3, order), flux, dtype=dtype, **options)
    return make(basis="nodal"), make(basis="bernstein")


def noise(operator):
    return RANDOM.standard_normal((6, operator.mesh.K, operator.element.Np))


def rhs(operator, u):
    """du/dt of nodal values, as nodal values."""
    basis = operator.basis
    return basis.to_nodal(reference.rhs(operator, basis.from_nodal(u), T))


@pytest.mark.parametrize("flux", FLUXES)
@pytest.mark.parametrize("order", range(1, 10))
def test_the_operator_is_that_of_the_nodal_basis(order, flux):
    """Up to the way to control points and back, on which an error grows by 2.6^N at most."""
    nodal, bernstein = pair(order, flux)
    u = noise(nodal)
    expected = rhs(nodal, u)
    wrong = np.abs(rhs(bernstein, u) - expected).max()
    assert wrong < 80 * 1.5**order * EPS * np.abs(expected).max()


@pytest.mark.parametrize("order", range(1, 10))
def test_dense_matrices_are_the_sparse_products(order):
    """Derivatives with four entries a row, and the lift slice by slice."""
    operator = pair(order)[1]
    u = noise(operator)
    flux = RANDOM.standard_normal((6, operator.mesh.K, 4, operator.element.Nfp))
    for sparse, dense in (
        (operator.basis.differentiate(u), u[:, None] @ operator.derivative.transpose(0, 2, 1)),
        (operator.basis.lift(flux), flux.reshape(*flux.shape[:2], -1) @ operator.lift.T),
    ):
        assert np.abs(sparse - dense).max() < 200 * EPS * np.abs(dense).max()


def test_what_comes_in_is_control_points():
    """Of the polynomial through the nodes of each face."""
    nodal, bernstein = pair(4)
    g, points = (reference.boundary_data(operator, T) for operator in (nodal, bernstein))
    face = nodal.element.face_nodes[0]
    values = bernstein.basis.element.to_nodal[np.ix_(face, face)]
    np.testing.assert_allclose(points @ values.T, g, atol=1e-12)
    assert np.abs(points - g).max() > 1e-3


def test_single_precision_has_arrays_of_its_own():
    operator = pair(3, dtype="float32")[1]
    u = noise(operator).astype(np.float32)
    assert operator.derivative.dtype == operator.lift.dtype == np.float32
    assert reference.rhs(operator, operator.basis.from_nodal(u), T).dtype == np.float32


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_a_cavity_converges_with_order_N_plus_1(order):
    errors = []
    for n in (4, 8) if order < 3 else (2, 4):
        exact, mesh = (
            BoxMode(1, 1, 0, lengths=(1.0, 1.0, 1 / n)),
            box((n, n, 1), 0.0, (1, 1, 1 / n)),
        )
        operator = reference.assemble(mesh, NodalElement(3, order), basis="bernstein")
        x = nodes_xyz(mesh, operator.element.nodes)
        start, end = (reference.as_fields(exact(*x, t), x.shape[1:]) for t in (0.0, 0.15))
        dt = 2 / ((order + 1) ** 2 * operator.face_scale.sum(axis=1).max())
        points = operator.basis.from_nodal(start)
        points = lsrk45.integrate(partial(reference.rhs, operator), points, 0.0, 0.15, dt)
        off = operator.basis.to_nodal(points) - end
        mass = np.einsum("aki,ij,akj,k->", off, operator.element.mass, off, operator.jacobian)
        errors.append(np.sqrt(n * mass))
    assert abs(np.log2(errors[0] / errors[1]) - (order + 1)) < 0.4


@pytest.mark.parametrize("flux", FLUXES)
def test_energy_is_lost_by_jumps_alone(flux):
    """dE/dt is that of chapter 4: none with the central flux between walls, else negative."""
    operator = pair(3, flux, boundary="pec")[1]
    u = noise(operator)
    points = operator.basis.from_nodal(u)
    rate = operator.basis.to_nodal(reference.rhs(operator, points))
    material = np.stack(3 * [operator.epsilon] + 3 * [operator.mu])
    mass = rate @ operator.element.mass
    change, size = (
        np.einsum("ak,aki,aki,k->", material, f(u), f(mass), operator.jacobian)
        for f in (lambda v: v, np.abs)
    )
    if flux == "central":
        assert abs(change) < 1e-12 * size
    else:
        assert change < -1e-3 * size


def test_an_unknown_basis_is_refused():
    with pytest.raises(ValueError, match="basis"):
        reference.assemble(box((1, 1, 1)), NodalElement(3, 1), basis="modal")
