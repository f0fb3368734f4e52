"""Lebesgue constants are true maxima: against critical points, exact values, and random points."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.polynomial import Polynomial

from dgbook.element import (
    NodalElement,
    cartesian,
    lebesgue,
    lebesgue_constant,
    lebesgue_function,
    multi_indices,
)


def lattice(dim, order):
    """Equidistant nodes."""
    return cartesian(multi_indices(dim, order) / order)


def by_critical_points(nodes):
    """The constant on the interval: between two nodes the function is one polynomial."""
    nodes = np.sort(nodes)
    lagrange = [Polynomial.fromroots(np.delete(nodes, i)) for i in range(len(nodes))]
    lagrange = [ell / ell(x) for ell, x in zip(lagrange, nodes, strict=True)]
    largest = 1.0
    for left, right in pairwise(nodes):
        middle = (left + right) / 2
        piece = sum(np.sign(ell(middle)) * ell for ell in lagrange)
        roots = piece.deriv().roots() if piece.degree() > 1 else np.empty(0)
        inside = roots[(np.abs(roots.imag) < 1e-9) & (roots.real > left) & (roots.real < right)]
        largest = max([largest, *piece(inside.real)])
    return largest


@pytest.mark.parametrize("order", range(2, 11))
def test_the_interval_agrees_with_critical_points(order):
    for nodes in (lattice(1, order), NodalElement(1, order).nodes):
        assert lebesgue_constant(nodes, order) == pytest.approx(
            by_critical_points(nodes[:, 0]), rel=1e-10
        )


def test_values_that_can_be_derived_by_hand():
    # Degree 1: the l_i are the barycentric coordinates, not negative, of sum 1. Degree 2: at the
    # centroid l_i = l (2 l - 1) at a vertex and 4 l^2 on an edge, with l = 1/3 or 1/4; on an
    # interval the largest value is at a quarter, 3/8 + 3/4 + 1/8.
    for dim, constant in ((1, 5 / 4), (2, 5 / 3), (3, 2.0)):
        assert lebesgue_constant(lattice(dim, 1), 1) == pytest.approx(1, abs=1e-14)
        assert lebesgue_constant(lattice(dim, 2), 2) == pytest.approx(constant, abs=1e-13)


@pytest.mark.parametrize(("dim", "order"), [(2, 3), (2, 7), (2, 10), (3, 3), (3, 4), (3, 6)])
def test_no_point_exceeds_it_and_a_denser_scan_finds_the_same(dim, order, monkeypatch):
    rng = np.random.default_rng(1)
    bary = rng.dirichlet(np.full(dim + 1, 0.7), 20_000)
    for nodes in (lattice(dim, order), NodalElement(dim, order).nodes):
        constant = lebesgue_constant(nodes, order)
        values = lebesgue_function(nodes, order, cartesian(bary))
        assert 0.9 * constant < values.max() <= constant * (1 + 1e-12)
        monkeypatch.setattr(lebesgue, "SCAN", 9)
        assert lebesgue_constant(nodes, order) == pytest.approx(constant, rel=1e-11)
        monkeypatch.undo()


def test_a_coarse_lattice_misses_the_maximum():
    """What this function is for: the lattice of 48 points per edge is 5 percent short at N = 10."""
    nodes = lattice(2, 10)
    seen = lebesgue_function(nodes, 10, lattice(2, 48)).max()
    assert seen < 0.96 * lebesgue_constant(nodes, 10)


def test_arguments_are_checked():
    with pytest.raises(ValueError, match="nodes has 6 rows; order 3 needs 10"):
        lebesgue_constant(lattice(2, 2), 3)
    with pytest.raises(ValueError, match="order must be an integer >= 1"):
        lebesgue_constant(lattice(2, 2), 0)
    with pytest.raises(TypeError):
        lebesgue_function(lattice(2, 2), 2.0, lattice(2, 2))
