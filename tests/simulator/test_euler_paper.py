"""The paper's kernels for the Euler equations, thread by thread, against the reference."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from broken import euler_paper as broken
from euler_cases import BOUNDARY, mesh_of, strong_jumps

from dgbook.check import RaceError, SimulatorError
from dgbook.element import NodalElement
from dgbook.euler import reference
from dgbook.euler.kernels.check import make_check
from dgbook.euler.launch.paper import PaperLauncher
from dgbook.euler.plan import HEALTHY, FusedShape, PaperPlan
from dgbook.euler.problem import FLUXES
from dgbook.gpu import device
from dgbook.time import rk4

SIMULATOR = device("simulator")
T = 0.3


@dataclass
class Case:
    """A launcher, the same operator in float64, and a random state."""

    launcher: PaperLauncher
    double: reference.Operator
    u: np.ndarray

    def data(self, t=T):
        """States outside at a time, as kernels get them; one zero where there is no boundary."""
        data = reference.boundary_data(self.double, t).ravel()
        return SIMULATOR.array((data if data.size else np.zeros(1)).astype(self.u.dtype))

    def assert_close(self, found, expected, units=100):
        assert found.dtype == self.u.dtype and found.shape == expected.shape
        tolerance = units * np.finfo(found.dtype).eps * np.abs(expected).max()
        assert np.abs(found - expected).max() <= tolerance  # p = 0 has no volume integrals

    def poison(self):
        """NaN wherever a kernel forgets to write."""
        for array in (self.launcher.residual, self.launcher.left, self.launcher.right):
            array[:] = np.nan

    def on_edges(self, array):
        """R^{f,l} or R^{f,r} as (4, E, Nfp)."""
        E, Nfp = self.launcher.E, self.launcher.tables.Nfp
        if self.launcher.plan.layout == "element":
            return array.reshape(E, 4, Nfp).transpose(1, 0, 2)
        return array.reshape(4, Nfp, E).transpose(0, 2, 1)

    @property
    def exact(self):
        return self.u.astype(np.float64)


def make_case(order, dtype="float64", periodic=True, flux="roe", cells=(2, 2), **plan):
    random = np.random.default_rng(order)
    mesh, element = mesh_of(periodic, cells, random), NodalElement(2, order)
    boundary = None if periodic else BOUNDARY
    single, double = (
        reference.assemble(mesh, element, flux, boundary, d) for d in (dtype, "float64")
    )
    u = strong_jumps(double, random).astype(dtype)
    return Case(PaperLauncher(single, SIMULATOR, PaperPlan(**plan)), double, u)


CASES = {
    **{f"periodic {p}": dict(order=p) for p in range(7)},
    **{f"boundary {p}": dict(order=p, periodic=False, cells=(3, 2)) for p in range(5)},
    **{f"{flux} boundary": dict(order=2, flux=flux, periodic=False) for flux in FLUXES},
    **{f"{flux} fp32": dict(order=1, flux=flux, dtype="float32") for flux in FLUXES},
    "boundary 3 fp32": dict(order=3, dtype="float32", periodic=False),
    "periodic 1 x 1": dict(order=2, cells=(1, 1)),
    "by field": dict(order=2, periodic=False, layout="field"),
    "global tables": dict(order=2, periodic=False, tables="global"),
}


@pytest.fixture(params=CASES)
def case(request):
    return make_case(**CASES[request.param])


# ------------------------------------------------------------------------------------- part by part


def test_volume(case):
    case.poison()
    u = case.launcher.upload(case.u)
    before = u.copy()
    case.launcher.volume(u)
    found = case.launcher.download(case.launcher.residual)
    case.assert_close(found, reference.volume_residual(case.double, case.exact))
    assert np.array_equal(u, before) and np.array_equal(case.launcher.download(u), case.u)


def test_face(case):
    case.poison()
    launcher, op = case.launcher, case.double
    launcher.face(launcher.upload(case.u), case.data())
    outside = reference.boundary_data(op, T)
    left, right = reference.edge_residual(op, case.exact, outside)
    rows, inside = np.arange(launcher.E)[:, None], slice(op.interior)
    nodes = op.tables.edge_nodes
    expected = left[:, rows, nodes[op.edges[:, 1]]]
    case.assert_close(case.on_edges(launcher.left), expected)
    np.testing.assert_allclose(np.abs(left).sum(), np.abs(expected).sum())  # no other node
    expected = right[:, rows[inside], nodes[op.edges[inside, 3]]]
    case.assert_close(case.on_edges(launcher.right)[:, inside], expected)


def test_add_and_invert(case):
    """Of integrals that are noise, so that one cannot stand for another."""
    launcher, op = case.launcher, case.double
    random = np.random.default_rng(2)
    volume = random.standard_normal(case.u.shape).astype(case.u.dtype)
    sums = np.zeros((2, 4, launcher.E, op.tables.Np))
    launcher.residual[:] = launcher.upload(volume)
    rows = np.arange(launcher.E)[:, None]
    for side, array in enumerate((launcher.left, launcher.right)):
        array[:] = random.standard_normal(array.size)
        nodes = op.tables.edge_nodes[np.maximum(op.edges[:, 1 + 2 * side], 0)]
        sums[side][:, rows, nodes] = case.on_edges(array)
    launcher.add()
    expected = reference.add(op, volume.astype(np.float64), *sums)
    case.assert_close(launcher.download(launcher.residual), expected)
    out = SIMULATOR.empty(launcher.size, case.u.dtype)
    launcher.invert(out)
    expected = -(expected @ op.tables.inverse_mass) / op.jacobian[:, None]
    case.assert_close(launcher.download(out), expected)


def rhs_of(case):
    launcher = case.launcher
    case.poison()
    u, out = launcher.upload(case.u), SIMULATOR.empty(launcher.size, case.u.dtype)
    launcher.rhs(u, case.data(), out)
    return launcher.download(out)


def test_rhs(case):
    case.assert_close(rhs_of(case), reference.rhs(case.double, case.exact, T))


@pytest.mark.parametrize("name", ["periodic 0", "boundary 2", "rusanov fp32", "by field"])
def test_a_step(name):
    """In place, with states outside that change within the step."""
    case = make_case(**CASES[name])
    launcher, op = case.launcher, case.double
    dt = 0.02 / float(op.face_scale.max())
    u, expected = launcher.upload(case.u), case.exact
    work = launcher.work(u)
    for array in work:
        array[:] = np.nan
    case.poison()
    data = tuple(case.data(T + c * dt) for c in (0, 0.5, 1))
    launcher.step(u, work, data, dt)
    rk4.advance(lambda v, t: reference.rhs(op, v, t), expected, T, dt)
    case.assert_close(launcher.download(u), expected)
    assert np.abs(expected - case.u).max() > 0.05
    assert launcher.bad[0] == HEALTHY


# ------------------------------------------------------------------------------------- every lever


@pytest.mark.parametrize("periodic", [True, False])
def test_every_plan_computes_the_same(periodic):
    case = make_case(1, "float32", periodic, cells=(3, 2))
    expected = reference.rhs(case.double, case.exact, T)
    every = PaperPlan().candidates(FusedShape(1, "float32"))
    tried = [plan for plan in every if plan.threads in (32, 64)]
    assert len(tried) == 2 * 12 and len(every) == 5 * 12
    for plan in tried:
        other = replace(case, launcher=case.launcher.planned(plan))
        assert other.launcher.arrays is case.launcher.arrays and other.launcher.plan is plan
        other.assert_close(rhs_of(other), expected)


@pytest.mark.parametrize("flux", FLUXES)
def test_atomic_additions(flux):
    case = make_case(3, periodic=False, flux=flux, race="atomic", concurrent=False)
    case.assert_close(rhs_of(case), reference.rhs(case.double, case.exact, T))


# --------------------------------------------------------------------------- states that no gas has


def faults(u):
    """States (4, 8, Np) with one node at fault in element 5, or two elements."""
    for field, value in ((0, 0.0), (0, -1.0), (3, 0.0), (1, 1e3)):
        yield 5, {(field, 5, 1): value}
    for field in range(4):
        for value in (np.nan, np.inf):
            yield 5, {(field, 5, 2): value}
    yield 2, {(0, 6, 0): -1.0, (3, 2, 2): 0.0, (2, 3, 1): np.nan}


def checked(case, check=None):
    """Whether a check kernel finds what is wrong, and nothing where nothing is."""
    launcher = case.launcher
    if check:
        launcher.kernels = launcher.kernels | {"check": check}
    for expected, changes in [(HEALTHY, {}), *faults(case.u)]:
        u = case.u.copy()
        for place, value in changes.items():
            u[place] = value
        launcher.bad[0] = HEALTHY
        launcher.check(launcher.upload(u))
        if launcher.bad[0] != expected:
            return False
    return True


@pytest.mark.parametrize("layout", ["element", "field"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_impossible_nodes_are_found(layout, dtype):
    assert checked(make_case(1, dtype, layout=layout))


def test_a_step_tells_of_the_state_that_it_made():
    case = make_case(1)
    launcher = case.launcher
    u, data = launcher.upload(case.u), 3 * (case.data(),)
    launcher.step(u, launcher.work(u), data, 100.0)
    wrong = np.flatnonzero(~_possible(launcher.download(u)).all(axis=1))
    assert launcher.bad[0] == wrong[0]


def _possible(u):
    with np.errstate(invalid="ignore", over="ignore"):
        return (u[0] > 0) & (u[0] * u[3] - 0.5 * (u[1] ** 2 + u[2] ** 2) > 0)


# ------------------------------------------------------------------------------------ wrong kernels


@pytest.mark.parametrize("mistake", broken.MISTAKES, ids=lambda m: f"{m.kernel}: {m.name}")
def test_wrong_kernels_are_rejected(mistake):
    """An irregular mesh with all boundaries, and a state with all waves."""
    concurrent = mistake.race == "split"
    case = make_case(
        2, "float64", False, mistake.flux, (4, 3), race=mistake.race, concurrent=concurrent
    )
    launcher = case.launcher
    plan = launcher.plan
    arguments = (launcher.tables, mistake.flux, plan) if mistake.kernel == "face" else ()
    wrong = mistake.make(*(arguments or (launcher.tables, plan)))
    launcher.kernels = launcher.kernels | {mistake.kernel: wrong}
    if "race" in mistake.name:
        with pytest.raises(RaceError):
            rhs_of(case)
        return
    try:
        found = rhs_of(case)
    except SimulatorError:
        return
    expected = reference.rhs(case.double, case.exact, T)
    assert not np.abs(found - expected).max() < 1e-6 * np.abs(expected).max()


@pytest.mark.parametrize("mistake", broken.CHECKS, ids=lambda m: m.name)
def test_wrong_checks_are_rejected(mistake):
    assert not checked(make_case(1), mistake.make(3, "float64", "element"))
    assert checked(make_case(1), make_check(3, "float64", "element"))
