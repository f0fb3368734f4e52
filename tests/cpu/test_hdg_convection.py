"""Convection-diffusion: convergence, exactness, and what upwinding does where convection wins."""

import numpy as np
import pytest
from hdg_cases import Polynomial, scrambled

from dgbook import hdg
from dgbook.mesh import box

rng = np.random.default_rng(3)


def velocity(x, y):
    return [1 + y, 0.5 - x]


def exact(x, y):
    return [np.exp(0.5 * x) * np.sin(2 * y + 0.3)]


def exact_gradient(x, y):
    return [[0.5 * exact(x, y)[0], 2 * np.exp(0.5 * x) * np.cos(2 * y + 0.3)]]


def source(kappa):
    """The velocity has no divergence: c . grad u - kappa lap u, and lap u = (0.25 - 4) u."""

    def s(x, y):
        (u_x, u_y), c = exact_gradient(x, y)[0], velocity(x, y)
        return [c[0] * u_x + c[1] * u_y + 3.75 * kappa * exact(x, y)[0]]

    return s


def errors(n, k, kappa):
    problem = hdg.ConvectionDiffusion(source(kappa), exact, velocity, kappa)
    result = hdg.solve(problem, box((n, n)), k)
    return np.array(
        [
            result.l2_error(exact),
            result.l2_error(exact_gradient, lambda u, q: q),
            result.postprocessed_error(exact),
        ]
    )


@pytest.mark.parametrize(("k", "n"), [(1, 8), (2, 6), (3, 4), (4, 3)])
def test_with_diffusion_rates_are_those_of_diffusion(k, n):
    rates = np.log2(errors(n, k, 0.5) / errors(2 * n, k, 0.5))
    np.testing.assert_allclose(rates, [k + 1, k + 1, k + 2], atol=0.15)


@pytest.mark.parametrize(("k", "n"), [(0, 16), (1, 8), (2, 6), (3, 4)])
def test_where_convection_wins_u_still_converges_as_k_plus_1(k, n):
    rate = np.log2(errors(n, k, 1e-6) / errors(2 * n, k, 1e-6))[0]
    assert abs(rate - (k + 1)) < 0.25, rate


@pytest.mark.parametrize(("cells", "k"), [((3, 2), 2), ((2, 2), 4), ((2, 1, 1), 2)])
def test_polynomials_are_solved_exactly_with_the_total_flux_given(cells, k):
    dim, kappa, c = len(cells), 0.3, (1.0, -0.7, 0.4)[: len(cells)]
    u = Polynomial(dim, k, rng)

    def through(side, axis):
        return lambda *x: [side * (c[axis] * u(*x) - kappa * u.derivative(axis)(*x))]

    def made(*x):
        return [
            sum(a * b for a, b in zip(c, u.gradient(*x), strict=True)) - kappa * u.laplacian(*x)
        ]

    boundary = {f"{a}{s}": lambda *x: [u(*x)] for a in "xyz"[:dim] for s in "-+"}
    boundary["y-"], boundary["x+"] = (hdg.Neumann(through(s, a)) for s, a in ((-1, 1), (1, 0)))
    problem = hdg.ConvectionDiffusion(made, boundary, c, kappa)
    result = hdg.solve(problem, scrambled(cells, rng), k)
    assert result.l2_error(lambda *x: [u(*x)]) < 1e-11


def test_a_boundary_layer_too_thin_for_the_mesh_stays_in_its_elements():
    """u = 0 behind a stream that carries 1: beyond the last cells nothing oscillates."""
    kappa = 1e-4

    def layer(x, y):
        return [(np.exp((x - 1) / kappa) - 1) / (np.exp(-1 / kappa) - 1)]

    problem = hdg.ConvectionDiffusion(None, layer, (1.0, 0.0), kappa)
    result = hdg.solve(problem, box((8, 4)), 3)
    upstream = result.x[0].max(axis=1) < 1 - 1.5 / 8
    assert abs(result.u[0, upstream] - 1).max() < 0.02
    assert abs(result.u[0] - layer(*result.x)[0]).max() > 0.1


def test_convection_makes_the_matrix_asymmetric():
    for c, symmetric in (((0.0, 0.0), True), ((1.0, 0.5), False)):
        system = hdg.assemble(hdg.ConvectionDiffusion(None, exact, c), box((3, 3)), 2)
        A = system.matrix.to_csr()
        assert (abs(A - A.T).max() < 1e-13) == symmetric


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"velocity": (1.0, 2.0, 3.0)}, "velocity = .*; allowed: 2 numbers or a function"),
        ({"velocity": lambda x, y: [x]}, "the function returned 1 fields"),
        ({"diffusivity": 0}, "diffusivity = 0; allowed: 1e-15 to"),
        ({"boundary": hdg.Isothermal(1.0)}, "boundary condition Isothermal"),
    ],
)
def test_what_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        hdg.assemble(hdg.ConvectionDiffusion(**({"boundary": exact} | options)), box((2, 2)), 1)
