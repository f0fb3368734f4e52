"""Elements, products and vectors on processor cores against NumPy; wrong kernels refused."""

import lanes_in_numpy
import numba
import numpy as np
import pytest
from broken.cores import MISTAKES
from hdg_cases import scrambled

from dgbook import hdg
from dgbook.gpu import device
from dgbook.hdg import cores, krylov, preconditioner
from dgbook.hdg.blocks import random_matrix
from dgbook.hdg.discretization import discretize
from dgbook.hdg.launch import CoreRows, matvec
from dgbook.hdg.system import linearize, start
from dgbook.lab.measuring import on_cores
from dgbook.mesh import box

CPU = device("cpu")
EPS = np.finfo(float).eps


def fields(count):
    """A function of (x, y, [z]) that returns so many different fields."""
    return lambda *x: [np.cos((c + 1) * x[0]) * x[-1] + c for c in range(count)]


def swirl(*x):
    return [np.exp(0.3 * x[(a + 1) % len(x)]) for a in range(len(x))]


def gas(reynolds=5.0, **options):
    stream = hdg.Stream(0.4)
    sides = {
        "x-": hdg.FarField(stream),
        "x+": stream,
        "y-": "adiabatic",
        "y+": hdg.Isothermal(1.1),
    }
    return hdg.NavierStokes(reynolds, 0.4, sides, **options)


def gas_3d():
    stream = hdg.Stream(0.4, (1.0, 0.0, 0.0))
    sides = {name: "slip" for name in ("y-", "y+", "z-", "z+")}
    return hdg.NavierStokes(5.0, 0.4, sides | {"x-": hdg.FarField(stream), "x+": stream})


def mixed(problem, dim, *others):
    """With fluxes given on one side."""
    count = others[0] if others else 1
    given = dict.fromkeys([f"{axis}{side}" for axis in "xyz"[:dim] for side in "-+"], fields(count))
    return given | {"x-": hdg.Neumann(fields(count))}


PROBLEMS = {
    "diffusion": (lambda: hdg.Poisson(fields(1), mixed(None, 2), 0.4), (3, 3)),
    "two fields": (lambda: hdg.Poisson(fields(2), mixed(None, 2, 2), components=2), (2, 3)),
    "diffusion in 3D": (lambda: hdg.Poisson(fields(1), mixed(None, 3)), (2, 1, 1)),
    "convection": (lambda: hdg.ConvectionDiffusion(fields(1), mixed(None, 2), swirl, 0.2), (3, 3)),
    "convection in 3D": (
        lambda: hdg.ConvectionDiffusion(fields(1), mixed(None, 3), swirl, 0.2),
        (1, 2, 1),
    ),
    "gas": (gas, (3, 2)),
    "gas, tau given": (lambda: gas(stabilization_factor=2.0), (2, 2)),
    "gas in 3D": (gas_3d, (1, 1, 1)),
}


def case(name, order, cells=None):
    """A discretization on an irregular mesh, and a state that is no solution."""
    make, size = PROBLEMS[name]
    cells = cells or size
    random = np.random.default_rng(len(name) + order)
    d = discretize(make(), scrambled(cells, random), order)
    begin = start(d)
    # Relative changes leave a gas a gas.
    u, trace = (a + 0.05 * (1 + abs(a)) * random.uniform(-1, 1, a.shape) for a in
                (begin.u, begin.trace))  # fmt: skip
    return d, hdg.State(u, trace)


def roundings(found, expected):
    """The largest difference, in roundings of the largest number that is expected."""
    return float(abs(found - expected).max() / abs(expected).max() / EPS)


def off(d, state, Elements=cores.Elements):
    """By how much the system differs from NumPy's, in roundings, its worst array."""
    expected = linearize(d, state, reference=True)
    jump = np.where(d.given[:, None], d.given_trace - state.trace, 0.0)
    values, rhs, response, offset = Elements(d).linearize(state, jump)
    mine = ~d.given
    return max(
        roundings(values[mine], expected.matrix.values[mine]),
        roundings(rhs[mine], expected.rhs[mine]),
        roundings(response, expected.response),
        roundings(offset, expected.offset),
    )


def allowed(order):
    """Ten times the roundings that LAPACK and Gauss here were seen to differ by.

    The inverse of K_uu, a sum of ever higher derivatives, amplifies them: to 16 at order 0, and to
    2,800 at order 5 on tetrahedra.
    """
    return 200 * (order + 1) ** 3


# ------------------------------------------------------------------------------------- elements


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("order", range(6))
def test_the_system_is_numpys(name, order):
    if name == "gas in 3D" and order > 3:
        pytest.skip("NumPy takes long for 500 unknowns of an element")
    assert off(*case(name, order)) < allowed(order)


def test_a_solution_is_numpys():
    """From the start to the end of Newton's method."""
    mesh = scrambled((4, 3), np.random.default_rng(1))
    ours, truth = (hdg.solve(gas(), mesh, 2, device=where) for where in ("cpu", "reference"))
    assert len(ours.history) == len(truth.history) > 3
    assert roundings(ours.u, truth.u) < allowed(2)
    assert roundings(ours.trace, truth.trace) < allowed(2)


def test_pivots_are_looked_for():
    """At rest a gas of order 3 has zeros on the diagonal of K_uu."""
    d, state = case("gas", 3)
    still = hdg.State(state.u.copy(), state.trace.copy())
    still.u[1:3] = 0
    still.trace.reshape(-1, 4, 4)[:, 1:3] = 0
    assert off(d, still) < allowed(3)


def test_an_element_without_a_solution_is_refused():
    d, state = case("diffusion", 1)
    flat = cores.Elements(d)
    flat.tables = tuple(0 * table if table.dtype == float else table for table in flat.tables)
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        flat.linearize(state, np.zeros_like(state.trace))


def test_stacks_do_not_change_the_system(monkeypatch):
    """Of five elements, one lane of eight of which is spare, or three of four."""
    monkeypatch.setattr(cores, "stack_size", lambda d: 5)
    assert off(*case("gas", 2)) < allowed(2)


# ----------------------------------------------------------------------- products and inverses


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("sizes", [(2, 1, 1), (2, 4, 3), (3, 1, 3)])
def test_products_and_schwarz_are_numpys(sizes, dtype):
    dim, n_c, order = sizes
    random = np.random.default_rng(3)
    matrix = random_matrix(box((3, 2, 2)[:dim]), n_c, order, dtype, random)
    matrix.values[:, 0] *= 1 - np.eye(matrix.m, dtype=dtype)  # so that pivots have to be found
    x = random.standard_normal((matrix.faces, matrix.m)).astype(dtype)
    expected = matvec(matrix.astype("float64"), x, "reference")
    near = 10 * np.finfo(dtype).eps * abs(expected).max() * np.sqrt(matrix.blocks * matrix.m)
    again = np.full_like(x, np.nan)
    CoreRows(matrix)(x, again)
    for y in (matvec(matrix, x, "cpu"), again):
        assert y.dtype == dtype
        assert abs(y - expected).max() < near
    faces, second = preconditioner.elements_of(matrix.columns)
    share = 1 / np.bincount(faces.ravel(), minlength=matrix.faces)
    about = matrix.astype("float64"), faces, second, share
    inverse = preconditioner._schwarz_on_device(*about)
    found = preconditioner.schwarz(matrix).values
    # Condition numbers of random matrices: 1,700 roundings were seen in float64.
    near = 2e4 * EPS + 2 * np.finfo(dtype).eps
    assert abs(found - inverse).max() < near * abs(inverse).max()


def test_the_coarse_products_are_numpys():
    d, state = case("gas", 2)
    matrix, space = linearize(d, state).matrix, preconditioner.coarse_space(d)
    assert space.count and (space.numbers < 0).any()
    slots = preconditioner._patches(space.numbers[matrix.columns].reshape(matrix.faces, -1))[1]
    about = matrix, space.values, space.numbers, slots, slots.max() + 1
    found = preconditioner._restricted_on_cores(*about)
    for ours, truth in zip(found, preconditioner._restricted_on_device(*about), strict=True):
        assert roundings(ours, truth) < 100


@pytest.mark.parametrize("n", [3, 511, 2000])
def test_the_basis_is_that_of_numpys_space(n):
    """Pieces of vectors, of which the last one is shorter, and the norm of what is left."""
    random = np.random.default_rng(4)
    diagonal, first = random.uniform(1, 2, n), random.standard_normal(n)
    spaces = []
    for kind in (krylov.Space, krylov.CoreSpace):
        space = kind(lambda x, y: np.multiply(diagonal, x, out=y), None, CPU, 6, n, np.dtype(float))
        space._begin(first / np.linalg.norm(first))
        for k in range(1, min(n, 6)):
            space._grow(k)
        spaces.append(space)
    truth, ours = spaces
    assert abs(ours.basis - truth.basis).max() < 1e-13
    assert abs(ours.columns - truth.columns).max() < 1e-13
    y = random.standard_normal(min(n, 6))
    assert abs(ours._combined(y) - y @ truth.basis[: len(y)]).max() < 1e-13


@pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="one thread only")
def test_bits_do_not_depend_on_threads(monkeypatch):
    """Of a whole solution: elements, Schwarz's inverses, the coarse level, and GMRES."""
    monkeypatch.setattr(krylov.cores, "SHARED", 0)  # share all that there is
    mesh, found = scrambled((4, 4), np.random.default_rng(5)), []
    for count in (1, 2, 2):
        with on_cores(count):
            linear = hdg.Gmres("cpu", restart=100, tolerance=1e-10)
            found.append(hdg.solve(gas(), mesh, 2, linear_solver=linear).u)
    assert np.array_equal(found[0], found[1]) and np.array_equal(found[0], found[2])


# ------------------------------------------------------------------------------- wrong kernels

# Together they know everything. A face has three nodes, whose order matters, or a wall.
SMALL = [("gas", 2, (2, 1)), ("convection in 3D", 1, (1, 1, 1))]


def test_the_text_runs_as_python():
    Elements = lanes_in_numpy.launcher("hdg")
    for small in SMALL:
        assert off(*case(*small), Elements) < allowed(2)


@pytest.mark.parametrize(
    "mistake", [m for m in MISTAKES if m.family == "hdg"], ids=lambda m: m.name
)
def test_wrong_elements_are_refused(mistake):
    try:
        errors = [off(*case(*small), mistake.make()) for small in SMALL]
    except np.linalg.LinAlgError:
        return
    assert not max(errors) < 1e3 * allowed(2)
