"""Costs of the acoustic operators counted again, and a yardstick: matrix products."""

import math

import numpy as np
import pytest
from acoustics_cases import device_data

from dgbook.acoustics import reference
from dgbook.acoustics.cost import PARTS, costs, fused_cost, sizes
from dgbook.acoustics.launch import nodal, sparse
from dgbook.element import NodalElement
from dgbook.gpu import device
from dgbook.lab.rivals.acoustics import ProductStage
from dgbook.mesh import box

SIMULATOR = device("simulator")


@pytest.mark.parametrize("order", [1, 3, 4, 9])
def test_sizes_are_those_of_the_element(order):
    element = NodalElement(3, order)
    surface = len(np.unique(element.face_nodes))
    assert sizes(order) == (element.Np, 4 * element.Nfp, surface)


def test_nodal_costs_of_order_1_counted_by_hand():
    # Np = 4, Nf = 12, all nodes on the surface, 4 bytes a word; D 48 words, LIFT 48.
    c = costs("element", 1, 10, "float32")
    assert list(c) == ["volume", "flux", "lift", "update", "paper"]
    assert (c["volume"].flops, c["volume"].bytes) == (10 * (24 * 16 + 36 * 4), 1720 + 4 * 48)
    assert (c["flux"].flops, c["flux"].bytes) == (10 * 18 * 12, 10 * (4 * (16 + 48 + 48 + 28) + 16))
    assert (c["lift"].flops, c["lift"].bytes) == (10 * (8 * 48 + 16), 10 * 4 * (48 + 32) + 4 * 48)
    assert (c["update"].flops, c["update"].bytes) == (10 * 64, 10 * 4 * 80)
    n = costs("node", 1, 10, "float32")
    assert n["surface"].flops == c["flux"].flops + c["lift"].flops
    assert n["surface"].bytes == 10 * (4 * (16 + 48 + 32 + 28) + 16) + 4 * 48
    # 6 products for the volume, 1 for the lift; 9 + 7 words of geometry and links become 6 and 4.
    f = fused_cost("nodal", 1, 10, "float32")
    assert f.flops == 10 * (12 * 16 + 2 * 48 + 62 * 4 + 8 * 12)
    assert f.bytes == 10 * (4 * (64 + 6) + 16) + 4 * 96


def test_bernstein_costs_of_order_1_counted_by_hand():
    # A derivative has 4 nonzeros, L_0 3 x 3, E_L 3 columns x 4 faces x 2 rows each (one for a
    # vertex on the face and one for the vertex opposite), a sweep 3.
    c = costs("factored", 1, 10, "float32")
    o = costs("optimal", 1, 10, "float32")
    assert c["volume"].flops == 10 * (2 * 4 * 4 * 4 + 48 * 4)
    assert c["volume"].bytes == 10 * 4 * (32 + 11) + 4 * 4 * 20
    assert c["surface"].flops == 10 * (15 * 12 + 2 * 4 * 9 + 2 * 4 * 24 + 32)
    assert o["surface"].flops == 10 * (12 * 12 + 2 * 4 * 9 + 2 * 12 + 36 * 4)
    data = 10 * (4 * (16 + 48 + 32 + 26) + 16)
    assert c["surface"].bytes == data + 3 * 4 * 8 + 4 * 8 * 8
    assert o["surface"].bytes == data + 3 * 4 * 8 + 4 * 4 * 12
    f = fused_cost("bernstein", 1, 10, "float32")
    assert f.flops == 10 * (55 + 8 * 9 + 2 * 12 + 44 * 4 + 8 * 12)
    assert f.bytes == 10 * (4 * (64 + 6) + 16)


@pytest.mark.parametrize("name", PARTS)
def test_a_stage_is_the_sum_of_its_kernels(name):
    c = costs(name, 4, 100, "float64")
    assert c["paper"].flops == sum(c[part].flops for part in PARTS[name])
    assert c["paper"].bytes == sum(c[part].bytes for part in PARTS[name])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("order", [1, 4, 7])
def test_tables_are_as_large_as_those_that_kernels_load(order, dtype):
    """What is left of the bytes of two elements when those of one are taken off twice."""

    def tables(name, part):
        one, two = (costs(name, order, K, dtype)[part].bytes for K in (1, 2))
        return 2 * one - two

    mesh = box((1, 1, 1))
    held = nodal.NodalLauncher(reference.assemble(mesh, order, dtype=dtype), SIMULATOR).arrays
    assert tables("node", "volume") == tables("element", "volume") == held["derivative"].nbytes
    assert tables("node", "surface") == tables("element", "lift") == held["lift"].nbytes
    operator = reference.assemble(mesh, order, "bernstein", dtype=dtype)
    held = sparse.BernsteinLauncher(operator, SIMULATOR).arrays
    nbytes = {name: values.nbytes for name, values in held.items()}
    on_face = nbytes["face_columns"] + nbytes["face_values"]
    assert tables("optimal", "volume") == nbytes["stored"] + nbytes["values"]
    lifts = nbytes["lift_columns"] + nbytes["lift_values"]
    assert tables("factored", "surface") == on_face + lifts
    swept = nbytes["sweep_columns"] + nbytes["sweep_values"] + nbytes["places"]
    assert tables("optimal", "surface") == on_face + swept


def test_what_grows_and_what_does_not():
    """Flops a degree of freedom: as N^3, as N^2 by E_L, and by a sweep nearly not."""
    rates = {
        name: [costs(name, N, 1, "float32")["paper"].flops / 4 / sizes(N)[0] for N in (20, 40)]
        for name in ("node", "factored", "optimal")
    }
    assert 6 < rates["node"][1] / rates["node"][0] < 8
    assert 2.5 < rates["factored"][1] / rates["factored"][0] < 4
    assert rates["optimal"][1] / rates["optimal"][0] < 1.02
    # A nodal stage in one kernel has half of the products of D and a quarter of those of LIFT.
    Np, Nf, _ = sizes(60)
    fused, paper = fused_cost("nodal", 60, 1, "float32"), costs("node", 60, 1, "float32")["paper"]
    assert math.isclose(paper.flops, 24 * Np**2 + 8 * Nf * Np, rel_tol=0.01)
    assert math.isclose(fused.flops, 12 * Np**2 + 2 * Nf * Np, rel_tol=0.01)


def test_the_bernstein_floor_is_that_of_memory():
    """On a device that does 14 flops while it moves a byte, as an H200 in fp32."""
    for order in range(1, 10):
        cost = fused_cost("bernstein", order, 10**6, "float32")
        assert cost.flops / 14 < cost.bytes / 5
        nodal_cost = fused_cost("nodal", order, 10**6, "float32")
        ratio = nodal_cost.flops / 14 / nodal_cost.bytes
        assert ratio < 0.7 if order < 5 else ratio > 1  # 1.01 at order 5


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: costs("node", 0, 1, "float32"), "order = 0, K = 1"),
        (lambda: costs("warp", 1, 1, "float32"), "name = 'warp'; allowed are 'node'"),
        (lambda: fused_cost("nodal", 1, 0, "float32"), "order = 1, K = 0"),
        (lambda: fused_cost("modal", 1, 1, "float32"), "basis = 'modal'"),
    ],
)
def test_costs_of_nothing_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# ------------------------------------------------------------------------------------ yardsticks


def problem(order, boundary, flux="penalty", dtype="float64"):
    mesh = box((2, 1, 1)) if boundary else box((2, 2, 2), periodic=True)
    kappa, rho = np.random.default_rng(1).uniform(0.5, 2, (2, mesh.K))
    operator = reference.assemble(mesh, order, "nodal", flux, kappa, rho, boundary, dtype)
    u, res = np.random.default_rng(2).standard_normal((2, 4, mesh.K, operator.basis.element.Np))
    wanted = -0.4 * res + 0.1 * reference.rhs(operator, u, 0.3)
    return operator, u, res, wanted


WALLS = {"x-": "rigid", "x+": "absorbing", "y-": "soft", "y+": "soft", "z-": "rigid", "z+": "soft"}


@pytest.mark.parametrize(("order", "flux"), [(1, "central"), (2, "upwind")])
def test_the_stage_by_matrix_products_is_the_reference(order, flux):
    boundary = WALLS | {"z+": lambda x, y, z, t: [x + t, y, z, x * y]}
    operator, u, res, wanted = problem(order, boundary, flux)
    rival = ProductStage(operator, SIMULATOR)
    mine, own_res = (rival.launcher.upload(v) for v in (u, res))
    rival.stage(mine, own_res, device_data(operator, 0.3, "float64"), -0.4, 0.7, 0.1)
    scale = np.abs(wanted).max()
    assert np.abs(rival.launcher.download(own_res) - wanted).max() < 1e-13 * scale
    expected = u + 0.7 * wanted
    assert np.abs(rival.launcher.download(mine) - expected).max() < 1e-13 * scale


@pytest.mark.parametrize("basis", ["nodal", "bernstein"])
def test_a_factor_moves_five_words_in_two_stages(basis):
    low, factor = (fused_cost(basis, 3, 10, "float64", factored) for factored in (False, True))
    assert low.bytes - factor.bytes == 1.5 * 10 * 4 * 20 * 8
    assert low.flops - factor.flops == 2 * 10 * 4 * 20
