"""Compiled kernels for processor cores against the NumPy references, and wrong ones refused."""

import inspect
import sys
from types import ModuleType

import lanes_in_numpy
import numba
import numpy as np
import pytest
from broken import cores as broken

from dgbook import acoustics, euler, linear, maxwell
from dgbook.element import NodalElement
from dgbook.euler.problem import conservative
from dgbook.gpu import device
from dgbook.lab.measuring import on_cores
from dgbook.maxwell.problem import PlaneWave, Scatterer
from dgbook.mesh import box
from dgbook.nodal import lanes
from dgbook.nodal.cores import Sources, advance, use_threads
from dgbook.time import rk4

CPU = device("cpu")
DTYPES = ("float32", "float64")
FAMILIES = {"maxwell": maxwell, "acoustics": acoustics, "linear": linear, "euler": euler}


# ----------------------------------------------------------------------------------------- problems


def incoming(fields):
    """A function of (x, ..., t) that returns so many different fields."""
    return lambda *at: [np.sin(sum((i + 1) * v for v in at) + i) for i in range(fields)]


def on_all_sides(mesh, *conditions):
    """A condition for each side of a box, in turn."""
    return {name: conditions[n % len(conditions)] for n, name in enumerate(mesh.boundary)}


def maxwell_operator(order, dtype, flux="upwind"):
    mesh = box((2, 3, 2))
    matter = np.random.default_rng(1).uniform(0.5, 2.0, (2, mesh.K))
    wave = Scatterer(PlaneWave((1.0, 0.0, 0.0), (0.0, 0.0, 1.0)))
    sides = on_all_sides(mesh, "pec", incoming(6), "absorbing", wave)
    return maxwell.reference.assemble(mesh, NodalElement(3, order), flux, *matter, sides, dtype)


def acoustics_operator(order, dtype, flux="upwind", basis="nodal"):
    mesh = box((2, 3, 2))
    matter = np.random.default_rng(2).uniform(0.5, 2.0, (2, mesh.K))
    sides = on_all_sides(mesh, "soft", incoming(4), "absorbing", "rigid")
    return acoustics.reference.assemble(mesh, order, basis, flux, *matter, sides, dtype)


def linear_operator(order, dtype, flux="upwind", dim=3, name="wave"):
    mesh = box((2, 3, 2)[:dim] if dim > 1 else 19)
    random = np.random.default_rng(3)
    matrices = random.standard_normal((dim, 3, 3))
    system = {
        "advection": lambda: linear.advection(random.standard_normal(dim)),
        "wave": lambda: linear.wave(dim, 1.5),
        "any": lambda: linear.System("any", ("a", "b", "c"), matrices + matrices.swapaxes(1, 2)),
    }[name]()
    walls = ("wall", "soft") if system.vector else ()
    given = incoming(system.n)
    sides = on_all_sides(mesh, given, *walls, "absorbing", "outflow")
    element = NodalElement(dim, order)
    return linear.reference.assemble(mesh, element, system, flux, sides, dtype)


def euler_operator(order, dtype, flux="roe"):
    mesh = box((5, 4))
    stream = lambda x, y, t: conservative(1.1 + 0.1 * x, 0.3 + t * y, 0.2 - x, 0.9 + 0.1 * y)  # noqa: E731
    element = NodalElement(2, order)
    return euler.reference.assemble(mesh, element, flux, on_all_sides(mesh, "wall", stream), dtype)


OPERATORS = {
    "maxwell": maxwell_operator,
    "acoustics": acoustics_operator,
    "linear": linear_operator,
    "euler": euler_operator,
}


def state(family, operator, dtype):
    """Noise; of a gas, density and pressure stay positive."""
    fields = {"maxwell": 6, "acoustics": 4, "euler": 4}
    n = operator.system.n if family == "linear" else fields[family]
    Np = (operator.basis if family == "acoustics" else operator).element.Np
    random = np.random.default_rng(4)
    u = random.standard_normal((n, operator.mesh.K, Np))
    if family == "euler":
        u = conservative(np.exp(0.1 * u[0]), u[1], u[2], np.exp(0.1 * u[3]))
    return u.astype(dtype)


def slopes(family, Cores, operator, u, t=0.3):
    """du/dt by a launcher on cores."""
    launcher = Cores(operator, CPU)
    mine, out = launcher.upload(u), launcher.zeros()
    assert np.array_equal(launcher.download(mine), u)
    data = FAMILIES[family].reference.boundary_data(operator, t)
    data = data.astype(u.dtype).ravel() if data.size else np.zeros(1, u.dtype)
    launcher.rhs(mine, data, out)
    return launcher.download(out)


def off(family, Cores, operator, dtype):
    """The largest error of du/dt, in roundings of the largest value of the reference."""
    u = state(family, operator, dtype)
    expected = FAMILIES[family].reference.rhs(operator, u, 0.3)
    error = np.abs(slopes(family, Cores, operator, u) - expected).max()
    return float(error / np.abs(expected).max() / np.finfo(dtype).eps)


def allowed(order):
    """Roundings of a sum of so many products as a row has, which add up as in a random walk.

    Both sides round; the largest of some thousand errors is a few times the mean; ten times that.
    """
    return 10 * np.sqrt((order + 1) * (order + 2) * (order + 3) / 3 + 40)


# ------------------------------------------------------------------------------- against references


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", range(1, 10))
@pytest.mark.parametrize("flux", ["upwind", "central"])
def test_maxwell_is_the_reference(order, dtype, flux):
    operator = maxwell_operator(order, dtype, flux)
    assert off("maxwell", maxwell.cores.Cores, operator, dtype) < allowed(order)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", range(1, 10))
@pytest.mark.parametrize("basis", ["nodal", "bernstein"])
@pytest.mark.parametrize("flux", ["upwind", "penalty", "central"])
def test_acoustics_is_the_reference(order, dtype, basis, flux):
    operator = acoustics_operator(order, dtype, flux, basis)
    assert off("acoustics", acoustics.cores.Cores, operator, dtype) < allowed(order)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("dim", "order"),
    [(1, 1), (1, 4), (1, 13), (2, 1), (2, 3), (2, 9), *((3, N) for N in range(1, 10))],
)
@pytest.mark.parametrize("name", ["advection", "wave", "any"])
def test_linear_systems_are_the_reference(dim, order, dtype, name):
    for flux in ("upwind", "central"):
        operator = linear_operator(order, dtype, flux, dim, name)
        assert off("linear", linear.cores.Cores, operator, dtype) < allowed(order)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", range(7))
@pytest.mark.parametrize("flux", ["roe", "rusanov", "hllc"])
def test_euler_is_the_reference(order, dtype, flux):
    operator = euler_operator(order, dtype, flux)
    assert off("euler", euler.cores.Cores, operator, dtype) < allowed(order)


@pytest.mark.parametrize("family", ["maxwell", "acoustics", "linear"])
def test_a_stage_advances_residual_and_state(family):
    """Where a = 0 the residual is not read, and where b = 0 the new state is not written."""
    operator = OPERATORS[family](2, "float64")
    u = state(family, operator, "float64")
    res = u[::-1]
    slope = FAMILIES[family].reference.rhs(operator, u, 0.3)
    launcher = FAMILIES[family].cores.Cores(operator, CPU)
    data = FAMILIES[family].reference.boundary_data(operator, 0.3).ravel()
    mine, residual, new = launcher.upload(u), launcher.upload(res), launcher.zeros()
    launcher.stage(mine, residual, new, data, -0.4, 0.7, 0.01)
    expected = -0.4 * res + 0.01 * slope
    scale = np.abs(expected).max()
    assert np.abs(launcher.download(residual) - expected).max() < 1e-13 * scale
    assert np.abs(launcher.download(new) - (u + 0.7 * expected)).max() < 1e-13 * scale
    residual[:], new[:] = np.nan, np.nan
    launcher.stage(mine, residual, new, data, 0.0, 0.0, 0.01)
    scale = np.abs(slope).max()
    assert np.abs(launcher.download(residual) - 0.01 * slope).max() < 1e-15 * scale
    assert np.isnan(new).all()


@pytest.mark.parametrize("family", ["maxwell", "acoustics", "linear"])
def test_the_stages_of_a_factor(family):
    """The first does not read its array, the second changes it in place."""
    operator = OPERATORS[family](2, "float64")
    u = state(family, operator, "float64")
    slope = FAMILIES[family].reference.rhs(operator, u, 0.3)
    launcher = FAMILIES[family].cores.Cores(operator, CPU).with_factors()
    data = FAMILIES[family].reference.boundary_data(operator, 0.3).ravel()
    mine, new, kept = launcher.upload(u), launcher.zeros(), launcher.upload(u[::-1])
    new[:] = np.nan
    launcher.stage(mine, new, new, data, 0.0, 1.0, 0.01)
    assert np.abs(launcher.download(new) - (u + 0.01 * slope)).max() < 1e-13
    launcher.stage(mine, kept, kept, data, 1.0, 0.0, -0.02)
    assert np.abs(launcher.download(kept) - (u[::-1] - 0.02 * slope)).max() < 1e-13
    assert np.array_equal(launcher.download(mine), u)
    launcher.rhs(mine, data, new)
    assert np.abs(launcher.download(new) - slope).max() < 1e-12


def factor(right="", wrong=""):
    """The largest error of both stages of a factor by the text that ends stages, with a mistake."""
    text = inspect.getsource(advance.py_func).replace("@numba.njit\n", "")
    assert not right or text.count(right) == 1
    names = dict(lanes_in_numpy.VECTORS)
    exec(text.replace(right, wrong) if right else text, names)
    L = lanes.lanes("float64")
    u, new, slopes = np.random.default_rng(6).standard_normal((3, 3 * L))
    errors = []
    for a, b, tau in ((0.0, 1.0, 0.3), (1.0, 0.0, -0.2)):
        expected = a * new + b * u + tau * slopes
        names["advance"](u, u[:0], new, 0, 3 * L, L, a, b, tau, slopes)
        errors.append(np.abs(new - expected).max())
    return max(errors)


def test_wrong_stages_of_a_factor_are_refused():
    assert factor() < 1e-14
    assert factor("v = v + b * load(u, start + i)", "v = v + 0 * b") > 0.1
    assert factor("v = v + a * load(new, start + i)", "v = v + a * load(u, start + i)") > 0.1


def test_a_step_of_a_gas_is_the_classical_method():
    operator = euler_operator(2, "float64")
    u = state("euler", operator, "float64")
    launcher = euler.cores.Cores(operator, CPU)
    mine = launcher.upload(u)
    data = [euler.reference.boundary_data(operator, t).ravel() for t in (0.0, 0.0005, 0.001)]
    launcher.step(mine, launcher.work(mine), data, 0.001)
    expected = u.copy()
    rk4.advance(lambda v, t: euler.reference.rhs(operator, v, t), expected, 0.0, 0.001)
    assert np.abs(expected - u).max() > 0.01
    assert np.abs(launcher.download(mine) - expected).max() < 1e-13


def test_parts_of_a_state_are_those_of_the_download():
    operator = maxwell_operator(2, "float32")
    launcher = maxwell.cores.Cores(operator, CPU)
    u = state("maxwell", operator, "float32")
    rows = np.stack([launcher.upload(u), launcher.upload(2 * u)])
    for places in (slice(0, 3), slice(5, 40), slice(33, operator.mesh.K)):
        some = u[:, launcher.elements[places]]
        assert np.array_equal(launcher.part(rows, places), [some, 2 * some])


# ----------------------------------------------------------------------------------------- solvers


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_run_with_what_comes_in_is_the_references(dtype):
    mesh = box((2, 2, 3))
    wave = PlaneWave((0.0, 0.0, 1.0), (1.0, 0.0, 0.0), parameter=0.5, delay=0.3)
    sides = dict.fromkeys(mesh.boundary, "absorbing") | {"z-": wave, "x-": incoming(6)}
    ours, truth = (maxwell.Solver(mesh, 3, dtype, d, boundary=sides) for d in ("cpu", "reference"))
    u = ours.interpolate(lambda x, y, z: incoming(6)(x, y, z, 0.0))
    dt = ours.cfl_dt()
    runs = [s.run(u, 10 * dt, dt) for s in (ours, truth)]
    assert np.abs(runs[0] - u).max() > 0.1
    assert np.abs(runs[0] - runs[1]).max() < 1000 * np.finfo(dtype).eps


@pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="one thread only")
@pytest.mark.parametrize("dtype", DTYPES)
def test_bits_do_not_depend_on_threads(dtype):
    mesh = box((5, 4, 4))
    solver = acoustics.Solver(mesh, 3, dtype, "cpu", boundary="absorbing")
    u = np.random.default_rng(5).standard_normal((4, mesh.K, 20)).astype(dtype)
    found = []
    for cores in (1, 2, 2):
        with on_cores(cores):
            found.append(solver.run(u, 0.02, 0.002))
    assert np.array_equal(found[0], found[1]) and np.array_equal(found[0], found[2])


def test_threads_are_counted():
    with pytest.raises(ValueError, match="threads must be an integer from 1 to"):
        use_threads(numba.config.NUMBA_NUM_THREADS + 1)
    with pytest.raises(TypeError, match="threads must be an integer"):
        use_threads(1.5)


def test_another_text_is_another_kernel(tmp_path):
    file = tmp_path / "some.py"
    module = ModuleType("some")
    module.__file__ = str(file)
    digests = set()
    for text in ("x = 1\n", "x = 2\n", "x = 1\n"):
        file.write_text(text)
        digests.add(Sources(module).digest)
    assert len(digests) == 2
    assert Sources(sys.modules[__name__]).digest != Sources().digest


# ----------------------------------------------------------------------------------------- vectors


@numba.njit
def _difference(rows, height, width, a, x, out):
    n = height * width
    lanes.difference_of_two(rows, height, width, a, 0, n, x, 0, x.size // 2, x.size // 4, out, 0,
                            out.size // 2)  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("height", [1, 6, 11, 13, 24, 35])
def test_products_are_numpys(height, dtype):
    random, width, L = np.random.default_rng(6), 5, lanes.lanes(dtype)
    A, B = random.standard_normal((2, height, width)).astype(dtype)
    x, y = random.standard_normal((2, 2, width, L)).astype(dtype)
    rows = lanes.rows_together(height)
    a, b = lanes.by_rows(A), lanes.by_rows(B)
    both, out = np.concatenate([x.ravel(), y.ravel()]), np.empty((2, height, L), dtype)
    _difference(rows, height, width, np.concatenate([a, b]), both, out.ravel())
    near = 40 * np.finfo(dtype).eps
    assert np.abs(out - (A @ x - B @ y)).max() < near
    lanes.product(rows, height, width, a, 0, x[0].ravel(), 0, out[0].ravel(), 0, False)
    assert np.abs(out[0] - A @ x[0]).max() < near
    lanes.product_of_two(
        rows, height, width, b, 0, x.ravel(), 0, width * L, out.ravel(), 0, height * L, True
    )
    assert np.abs(out[0] - (A + B) @ x[0]).max() < near


# ---------------------------------------------------------------------------------- wrong kernels


def _cases(family):
    """Operators that together know everything; few nodes, for the kernels run as Python."""
    return {
        "maxwell": lambda: [maxwell_operator(2, "float64", f) for f in ("upwind", "central")],
        "acoustics": lambda: [acoustics_operator(2, "float64", f) for f in ("upwind", "central")],
        "linear": lambda: [linear_operator(2, "float64", dim=3)],
        "euler": lambda: [euler_operator(2, "float64")],
    }[family]()


@pytest.mark.parametrize("family", FAMILIES)
def test_the_texts_run_as_python(family):
    Cores = lanes_in_numpy.launcher(family)
    for operator in _cases(family):
        assert off(family, Cores, operator, "float64") < allowed(2)


@pytest.mark.parametrize(
    "mistake", [m for m in broken.MISTAKES if m.family in FAMILIES], ids=lambda m: m.name
)
def test_wrong_kernels_are_refused(mistake):
    family, Cores = mistake.family, mistake.make()
    errors = [off(family, Cores, operator, "float64") for operator in _cases(family)]
    assert not max(errors) < 1e3 * allowed(2)
