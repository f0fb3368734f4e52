"""The hybridized method for diffusion: convergence, superconvergence, exactness on polynomials."""

import numpy as np
import pytest
from hdg_cases import Polynomial, scrambled

from dgbook import hdg
from dgbook.mesh import box

rng = np.random.default_rng(1)


def wave(*x):
    """A smooth function that is no polynomial, with another shape along every axis."""
    return [np.prod([np.sin((1.5 + 0.4 * a) * v + 0.3 * a) for a, v in enumerate(x)], axis=0)]


def wave_gradient(*x):
    parts = []
    for axis in range(len(x)):
        w = 1.5 + 0.4 * axis
        others = np.prod(
            [np.sin((1.5 + 0.4 * a) * v + 0.3 * a) for a, v in enumerate(x) if a != axis], axis=0
        )
        parts.append(w * np.cos(w * x[axis] + 0.3 * axis) * others)
    return [parts]


def wave_source(*x):
    return [sum((1.5 + 0.4 * a) ** 2 for a in range(len(x))) * wave(*x)[0]]


def errors(dim, n, k):
    problem = hdg.Poisson(wave_source, wave)
    result = hdg.solve(problem, box((n,) * dim), k)
    return np.array([
        result.l2_error(wave),
        result.l2_error(wave_gradient, lambda u, q: q),
        result.postprocessed_error(wave),
    ])  # fmt: skip


# -- rates ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("k", "n"), [(1, 8), (2, 6), (3, 4), (4, 3)])
def test_u_and_q_converge_as_k_plus_1_and_the_post_processed_u_as_k_plus_2(k, n):
    rates = np.log2(errors(2, n, k) / errors(2, 2 * n, k))
    np.testing.assert_allclose(rates, [k + 1, k + 1, k + 2], atol=0.12)


@pytest.mark.parametrize(("k", "n"), [(1, 3), (2, 2)])
def test_rates_on_tetrahedra(k, n):
    rates = np.log2(errors(3, n, k) / errors(3, 2 * n, k))
    np.testing.assert_allclose(rates, [k + 1, k + 1, k + 2], atol=0.25)


def test_stabilizations_are_diffusivities_over_lengths():
    """3 over 2; and with a velocity of 5 against a normal of cosine 0.6, 3 more."""
    u, n, none = np.zeros((1, 1)), np.array([[0.6], [0.8]]), np.zeros((0, 1))
    numbers = {"diffusivity": 3.0, "length": 2.0}
    assert hdg.Poisson(**numbers).stabilization(u, n, none) == 1.5
    moving = hdg.ConvectionDiffusion(**numbers, velocity=(-5.0, 0.0))
    assert moving.stabilization(u, n, moving.coefficients(n)) == pytest.approx(4.5, rel=1e-15)


def test_order_zero_converges_as_h():
    """u* as well: its higher order needs k >= 1."""
    rates = np.log2(errors(2, 8, 0) / errors(2, 16, 0))
    np.testing.assert_allclose(rates, 1, atol=0.12)


# -- exactness -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cells", "k"),
    [
        *[((3, 2), 1), ((3, 2), 2), ((3, 2), 3), ((2, 2), 5), ((2, 1), 10)],
        *[((2, 1, 1), 1), ((2, 2, 1), 2), ((1, 1, 2), 3), ((1, 1, 1), 5)],
    ],
)
def test_polynomials_of_degree_k_are_solved_exactly(cells, k):
    """Whichever way faces meet, with the value given on some sides and the flux on others."""
    dim, kappa = len(cells), 0.7
    exact = Polynomial(dim, k, rng)

    def flux(side, axis):
        return lambda *x: [-kappa * side * exact.derivative(axis)(*x)]

    boundary = {name: lambda *x: [exact(*x)] for name in ("x-", "y+", "z-")[:dim]}
    boundary |= {f"{'xyz'[a]}{s}": hdg.Neumann(flux(1 if s == "+" else -1, a))
                 for a in range(dim) for s in "-+" if f"{'xyz'[a]}{s}" not in boundary}  # fmt: skip
    problem = hdg.Poisson(lambda *x: [-kappa * exact.laplacian(*x)], boundary, kappa, length=2.0)
    result = hdg.solve(problem, scrambled(cells, rng), k)
    size = abs(exact(*result.x)).max()
    assert result.l2_error(lambda *x: [exact(*x)]) < 1e-11 * size
    assert result.l2_error(lambda *x: [exact.gradient(*x)], lambda u, q: q) < 1e-9 * size
    assert result.postprocessed_error(lambda *x: [exact(*x)]) < 1e-10 * size
    np.testing.assert_allclose(result.trace[0], exact(*result.trace_x), atol=1e-10 * size)
    # What flows out of a side is the flux there, given or not.
    names = [name for name in result.discretization.mesh.boundary]
    out = sum(result.boundary_flux(name)[0] for name in names)
    d = result.discretization
    made = d.jacobian @ (d.source[0] @ d.tables.volume.weights)
    np.testing.assert_allclose(out, made, atol=1e-10 * max(1, abs(made)))


def test_components_do_not_see_one_another():
    mesh = scrambled((3, 3), rng)
    fields = [Polynomial(2, 3, rng) for _ in range(3)]

    def all_of(x, y):
        return [f(x, y) for f in fields]

    def source(x, y):
        return [-f.laplacian(x, y) for f in fields]

    together = hdg.solve(hdg.Poisson(source, all_of, components=3), mesh, 2)
    for c, f in enumerate(fields):
        alone = hdg.solve(
            hdg.Poisson(lambda x, y, f=f: [-f.laplacian(x, y)], lambda x, y, f=f: [f(x, y)]),
            mesh,
            2,
        )
        np.testing.assert_allclose(together.u[c], alone.u[0], atol=1e-12)


def test_a_periodic_direction_is_like_any_other():
    mesh = box((3, 4), periodic=(True, False))
    exact = lambda x, y: [np.sin(2 * np.pi * x) * y]  # noqa: E731
    source = lambda x, y: [4 * np.pi**2 * np.sin(2 * np.pi * x) * y]  # noqa: E731
    coarse, fine = (
        hdg.solve(hdg.Poisson(source, exact), m, 3).l2_error(exact)
        for m in (mesh, box((6, 8), periodic=(True, False)))
    )
    assert abs(np.log2(coarse / fine) - 4) < 0.2


@pytest.mark.parametrize("cells", [(1, 3), (2, 3), (1, 1, 2)])
def test_elements_that_meet_themselves_or_twice(cells):
    """Across one or two periodic cells; a row of blocks then holds a face more than once."""
    mesh = box(cells, periodic=(*[True] * (len(cells) - 1), False))
    exact = lambda *x: [x[-1] ** 2]  # noqa: E731
    result = hdg.solve(hdg.Poisson(lambda *x: [-2.0], exact), mesh, 2)
    assert result.l2_error(exact) < 1e-13


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"diffusivity": 0.0}, ValueError, "diffusivity = 0.0; allowed: 1e-15 to"),
        ({"length": -1.0}, ValueError, "length = -1.0"),
        ({"components": 0}, ValueError, "components = 0"),
        ({"boundary": hdg.Neumann(wave)}, ValueError, "u is given nowhere"),
        ({"boundary": "wall"}, ValueError, "boundary condition 'wall'; allowed are functions of"),
        ({"boundary": None}, ValueError, "no condition for 'x\\+', 'x-'"),
        ({"source": lambda x, y: [x, y]}, ValueError, "the function returned 2 fields"),
        ({"order": -1}, ValueError, "order must be an integer from 0 to"),
        ({"mesh": box(3)}, ValueError, "mesh.dim = 1; allowed: 2"),
        ({"mesh": 3}, TypeError, "mesh = 3; allowed: a Mesh"),
        ({"problem": 3}, TypeError, "problem = 3; allowed: Poisson"),
    ],
)
def test_what_is_refused(options, error, message):
    given = {"source": wave_source, "boundary": wave} | options
    mesh, order = given.pop("mesh", box((2, 2))), given.pop("order", 1)
    with pytest.raises(error, match=message):
        problem = given.get("problem") or hdg.Poisson(**given)
        hdg.assemble(problem, mesh, order)
