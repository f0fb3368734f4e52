"""The Euler equations' costs counted again."""

import math
import types

import numpy as np
import pytest

from dgbook.euler.cost import FLUX_FLOPS, PAPER, POINT_FLOPS, costs, surface_nodes
from dgbook.euler.kernels.riemann import make_flux, make_primitive
from dgbook.euler.problem import FLUXES, conservative
from dgbook.euler.tables import Tables
from dgbook.time import rk4

# ------------------------------------------------------------------------------------ what it costs


class Counted:
    """A number that counts what is done with it."""

    __array_ufunc__ = None  # NumPy's numbers leave arithmetic to this one
    flops = 0

    def __init__(self, value):
        self.value = float(getattr(value, "value", value))

    def _operation(function):
        def call(self, other):
            Counted.flops += 1
            return Counted(function(self.value, Counted(other).value))

        return call

    __add__ = __radd__ = _operation(lambda a, b: a + b)
    __mul__ = __rmul__ = _operation(lambda a, b: a * b)
    __sub__, __rsub__ = _operation(lambda a, b: a - b), _operation(lambda a, b: b - a)
    __truediv__, __rtruediv__ = _operation(lambda a, b: a / b), _operation(lambda a, b: b / a)

    def __abs__(self):
        return Counted(abs(self.value))

    def __lt__(self, other):
        return self.value < Counted(other).value

    def __gt__(self, other):
        return self.value > Counted(other).value

    def __ge__(self, other):
        return self.value >= Counted(other).value


def root(x):
    Counted.flops += 1
    return Counted(math.sqrt(x.value))


def plain(function):
    """A function as it is written, with roots that count."""
    found = types.SimpleNamespace(sqrt=root)
    changed = function.__globals__ | {"math": found}
    return types.FunctionType(
        function.__code__, changed, function.__name__, None, function.__closure__
    )


STATES = [
    conservative(1.0, 0.3, -0.2, 1.0),
    conservative(0.7, 0.9, 0.4, 1.3),
    conservative(0.6, 2.0, 1.5, 0.4),  # faster than sound
    conservative(0.5, -1.4, -1.5, 0.4),
]
NORMAL = np.array([0.6, -0.8])


@pytest.mark.parametrize("name", FLUXES)
def test_flops_of_the_fluxes_are_those_of_their_text(name):
    """On either side of the contact, above and below the speed of sound; and the flux is right."""
    flux = make_flux(name, "float64", plain)
    for left in STATES:
        for right in STATES:
            Counted.flops, F = 0, [None] * 4
            flux(list(map(Counted, left)), list(map(Counted, right)), *map(Counted, NORMAL), F)
            assert Counted.flops == FLUX_FLOPS[name]
            found = [x.value for x in F]
            np.testing.assert_allclose(found, FLUXES[name](left, right, NORMAL), atol=1e-13)


def test_flops_at_a_quadrature_point():
    """The primitive variables, two contravariant velocities, rho H, and the fluxes along them."""
    Counted.flops = 0
    make_primitive("float64", plain)(list(map(Counted, STATES[0])))
    assert Counted.flops == 9
    assert Counted.flops + 2 * 3 + 1 + 2 * (1 + 3 + 3 + 1) == POINT_FLOPS


def test_costs_of_order_1_counted_by_hand():
    """Np = 3, all on the surface; 4 points in a triangle, 2 nodes and 2 points on an edge."""
    c = costs(1, 10, "float32")
    assert c["volume"].flops == 10 * 4 * (4 * 2 * 3 + 32 + 4 * 2 * 2 * 3)
    assert c["volume"].bytes == 10 * 4 * (12 + 12 + 4) + 4 * (4 * 3 + 2 * 4 * 3)
    assert c["face"].flops == 15 * 2 * (2 * 4 * 2 * 2 + 130 + 4 + 4 * 2 * 2)
    assert c["face"].bytes == 4 * (10 * 12 + 15 * (2 * 8 + 3 + 4)) + 4 * 4
    assert c["add"].flops == 10 * 3 * 8
    assert c["add"].bytes == 10 * 4 * (12 + 3 * 8 + 12 + 6)
    assert c["rhs"].flops == 10 * (4 * 2 * 9 + 12)
    assert c["rhs"].bytes == 10 * 4 * (12 + 12 + 1) + 4 * 9
    assert c["update"].flops == 10 * 12 * (3 * 4 + 2) // 4
    assert c["update"].bytes == 10 * 12 * 4 * (4 + 5 + 5 + 3) // 4
    assert c["check"].flops == 10 * 3 * 6 // 4 and c["check"].bytes == 10 * 12 * 4 // 4
    five = ("volume", "rhs", "update", "check")
    additions = 10 * 3 * 8
    assert c["atomic"].flops == sum(c[p].flops for p in five) + c["face"].flops + additions
    face = 4 * (10 * 12 + 15 * (3 + 4)) + 4 * 4  # states, geometry, links; the basis
    residual = 10 * 4 * 2 * 12  # read and written
    assert c["atomic"].bytes == sum(c[p].bytes for p in five) + face + residual
    fluxes, lift = 15 * 2 * (2 * 4 * 2 * 2 + 130), 10 * 3 * 2 * 4 * 2 * 3
    update = 12 * (2 + 2 + 2 + 7) // 4
    assert c["fused"].flops == c["volume"].flops + fluxes + lift + 10 * update
    words = 12 * (2 + 3 + 3 + 5) // 4 + 4 + 3
    assert c["fused"].bytes == 10 * 4 * words + 4 * (3 * 4 * 3 + 2 * 2 + 6 * 3)
    for what in ("flops", "bytes"):
        assert getattr(c["paper"], what) == sum(getattr(c[p], what) for p in PAPER)


@pytest.mark.parametrize("order", range(7))
def test_costs_grow_with_what_they_count(order):
    t = Tables(order)
    assert surface_nodes(order) == len(np.unique(t.edge_nodes))
    one, two = (costs(order, 1000, d) for d in ("float32", "float64"))
    assert all(one[p].flops == two[p].flops and one[p].bytes < two[p].bytes for p in one)
    assert one["paper"].bytes > 3.5 * one["fused"].bytes
    saved = costs(order, 1000, "float32", edges=1600)  # left and right of an edge, links
    assert one["paper"].bytes - one["atomic"].bytes == 1000 * 4 * (24 * t.Nfp + 6)
    saved = saved["paper"].bytes - saved["atomic"].bytes
    assert saved == 4 * ((1600 * 8 + 1000 * 12) * t.Nfp + 6000)
    assert costs(order, 1000, "float32", edges=1600)["face"].flops > one["face"].flops
    roe, rusanov = (costs(order, 1000, "float32", flux=f)["fused"] for f in ("roe", "rusanov"))
    assert roe.flops - rusanov.flops == 1500 * t.Ne * (130 - 59) and roe.bytes == rusanov.bytes


@pytest.mark.parametrize(
    ("arguments", "message"),
    [((7, 1), "order = 7"), ((1, 0), "K = 0"), ((1, 1, "float32", None, "hll"), "flux = 'hll'")],
)
def test_impossible_sizes_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        costs(*arguments, *("float32",)[len(arguments) - 2 :])


def test_four_states_are_the_sum_of_slopes():
    """(-un + u1 + 2 u2 + u3)/3 + dt/6 f(u3) is the classical step, in fp32 as exact as that."""
    random = np.random.default_rng(0)
    u = random.uniform(1, 2, 1000)

    def f(v):
        return np.sin(3 * v) * np.roll(v, 1)

    def advanced(u, dt):
        half, whole = u.dtype.type(dt / 2), u.dtype.type(dt)
        u1 = u + half * f(u)
        u2 = u + half * f(u1)
        u3 = u + whole * f(u2)
        return (-u + u1 + 2 * u2 + u3) / 3 + u.dtype.type(dt / 6) * f(u3)

    expected = u.copy()
    rk4.advance(lambda v, t: f(v), expected, 0.0, 0.01)
    np.testing.assert_allclose(advanced(u, 0.01), expected, rtol=1e-14)
    single = u.astype(np.float32)
    start = single.astype(np.float64)
    rk4.advance(lambda v, t: f(v), start, 0.0, 0.01)
    error = advanced(single, 0.01) - start
    # Rounding is 0.6 eps in the mean square; the mean of 1,000 of them is about 0.02 eps.
    assert np.sqrt(np.mean(error**2)) < 7 * np.finfo(np.float32).eps
    assert abs(np.mean(error)) < 0.2 * np.finfo(np.float32).eps, "rounding, and no drift"
