"""Maxwell's costs counted again, and a yardstick: array expressions."""

import math

import numpy as np
import pytest

from dgbook.element import BernsteinElement, NodalElement, elevation
from dgbook.gpu import device
from dgbook.lab.rivals.maxwell import ArrayStage
from dgbook.maxwell import reference
from dgbook.maxwell.cost import PAPER, costs, nodes, surface_nodes
from dgbook.mesh import box


@pytest.mark.parametrize("order", [1, 3, 4, 9])
def test_node_counts_are_those_of_the_element(order):
    element = NodalElement(3, order)
    assert nodes(order) == element.Np
    assert surface_nodes(order) == len(np.unique(element.face_nodes))


def test_costs_of_order_1_counted_by_hand():
    # Np = 4, Nf = 12, all nodes on the surface, 4 bytes a word; D 48 words, LIFT 48.
    c = costs(1, 10, "float32")
    assert c["gather"].flops == 10 * 66 * 12
    assert c["gather"].bytes == 10 * (4 * (6 * 4 + 6 * 12 + 16) + 16)
    assert c["lift"].flops == 10 * 6 * 2 * 12 * 4
    assert c["lift"].bytes == 10 * 4 * 6 * 16 + 4 * 48
    assert c["differentiate"].flops == 10 * 6 * (3 * 2 * 16 + 3 * 5 * 4)
    assert c["differentiate"].bytes == 10 * 4 * (24 + 72 + 9) + 4 * 48
    assert c["assemble"].bytes == 10 * 4 * 4 * 24
    assert c["update"].bytes == 10 * 4 * 5 * 24
    assert c["fused"].bytes == 10 * (4 * (4 * 24 + 6) + 16) + 4 * 96
    assert c["paper"].flops == sum(c[p].flops for p in PAPER)
    assert c["paper"].bytes == sum(c[p].bytes for p in PAPER)


def test_the_five_kernels_move_more_than_four_times_the_bytes():
    ratios = [costs(N, 10**6, "float32") for N in range(1, 10)]
    ratios = [c["paper"].bytes / c["fused"].bytes for c in ratios]
    assert all(4 < r < 5.1 for r in ratios)
    assert ratios == sorted(ratios, reverse=True)


def test_products_are_two_thirds_and_a_third():
    # For large N: 12 of 18 products with D, 2 of 6 with LIFT.
    c = costs(60, 1, "float64")
    Np, Nf = nodes(60), 2 * 61 * 62
    paper = c["differentiate"].flops + c["lift"].flops
    assert math.isclose(paper, 36 * Np**2 + 12 * Nf * Np, rel_tol=0.01)
    assert math.isclose(c["fused"].flops, 24 * Np**2 + 4 * Nf * Np, rel_tol=0.01)


@pytest.mark.parametrize("order", [1, 4])
def test_sparse_products_counted_by_their_entries(order):
    """Of six curls, and of eight lifts: a product and a sum each; the rest is per point."""
    element = BernsteinElement(3, order)
    lower = nodes(order - 1)
    elevated = elevation(3, order - 1).nnz
    lifted = element.lift_face.nnz + sum(3 * (n + 1) * (n + 2) // 2 for n in range(order))
    points = 102 * element.Np + 40 * 4 * element.Nfp
    flops = 6 * (3 * lower + 2 * elevated) + 8 * 2 * lifted + points
    cost = costs(order, 7, "float64")["bernstein"]
    assert cost.flops == 7 * flops
    assert cost.bytes == 7 * (8 * (24 * element.Np + 6) + 16)


def test_the_flops_of_the_sparse_basis_do_not_grow_with_the_order():
    found = [costs(N, 1, "float32")["bernstein"].flops / (6 * nodes(N)) for N in range(1, 10)]
    assert found == sorted(found, reverse=True)
    assert 41 < found[-1] < found[0] < 48


@pytest.mark.parametrize("path", ["fused", "bernstein"])
def test_a_factor_moves_five_words_in_two_stages(path):
    """Read u, write; read u and the array, write. 2 flops per degree of freedom, not 4."""
    low, factor = (costs(3, 10, "float32", factored)[path] for factored in (False, True))
    dofs = 10 * 6 * 20
    assert low.bytes - factor.bytes == (4 - 5 / 2) * dofs * 4
    assert low.flops - factor.flops == 2 * dofs


@pytest.mark.parametrize(("order", "K"), [(0, 1), (1, 0)])
def test_costs_of_nothing_are_refused(order, K):
    with pytest.raises(ValueError, match=f"order = {order}, K = {K}"):
        costs(order, K, "float32")


def noise(operator):
    shape = (6, operator.mesh.K, operator.element.Np)
    return np.random.default_rng(3).standard_normal(shape).astype(operator.lift.dtype)


@pytest.mark.parametrize("boundary", ["pec", "absorbing"])
def test_the_stage_by_array_expressions_is_the_reference(boundary):
    mesh = box((2, 2, 2))
    matter = 1 + np.random.default_rng(0).random((2, mesh.K))
    operator = reference.assemble(mesh, NodalElement(3, 3), "upwind", *matter, boundary)
    u, res = noise(operator), 0.3 * noise(operator)
    wanted = -0.4 * res + 0.1 * reference.rhs(operator, u)
    new = u + 0.7 * wanted
    ArrayStage(operator, device("cpu")).stage(u, res, -0.4, 0.7, 0.1)
    assert np.abs(res - wanted).max() < 1e-13
    assert np.abs(u - new).max() < 1e-13
