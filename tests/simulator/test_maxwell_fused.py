"""The fused Maxwell kernel, thread by thread, against the reference; wrong ones must fail."""

from dataclasses import replace

import numpy as np
import pytest
from broken import maxwell_fused as broken
from broken import maxwell_fused_cuda as broken_cuda
from emulation import ROUNDINGS, EmulationError, device_of, emulate, needs_compiler
from fused_stages import Case
from maxwell_cases import BOUNDARY, scrambled

from dgbook.check import RaceError
from dgbook.element import NodalElement
from dgbook.gpu import device
from dgbook.gpu.plan import choose, shipped
from dgbook.maxwell import reference
from dgbook.maxwell.launch.fused import SPARE, FusedLauncher, tangents
from dgbook.maxwell.plan import FusedShape
from dgbook.mesh import along_a_curve, box
from dgbook.nodal.fused import FusedPlan

SIMULATOR = device("simulator")
RANDOM = np.random.default_rng(5)
PLANS = {1: (8, 2, 1), 2: (2, 2, 2, 2), 3: (1, 2, 2, 4)}


def make(
    order,
    dtype,
    periodic=False,
    materials="vacuum",
    cells=(1, 1, 1),
    plan=None,
    device=SIMULATOR,
):
    """A launcher, the same operator in float64, random states and boundary data at t = 0.3."""
    mesh = box(cells, periodic=periodic)
    if not periodic:
        mesh = scrambled(mesh, RANDOM, 0.15 / max(cells))
    epsilon, mu = {
        "vacuum": (1.0, 1.0),
        "uniform": (2.0, 3.0),
        "pieces": RANDOM.uniform(1, 3, (2, mesh.K)),
    }[materials]
    boundary = {} if periodic else BOUNDARY

    def operator(precision):
        element = NodalElement(3, order)
        return reference.assemble(mesh, element, "upwind", epsilon, mu, boundary, precision)

    double = operator("float64")
    plan = plan or FusedPlan("numba", *PLANS[order])
    u, res = RANDOM.standard_normal((2, 6, mesh.K, double.element.Np)).astype(dtype)
    data = reference.boundary_data(double, 0.3)
    return Case(
        launcher=FusedLauncher(operator(dtype), device, plan),
        u=u,
        res=res,
        data=(data if data.size else np.zeros(1)).astype(dtype).ravel(),
        rhs=reference.rhs(double, u.astype(np.float64), 0.3),
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("materials", ["vacuum", "uniform", "pieces"])
@pytest.mark.parametrize("order", [1, 2, 3])
def test_a_stage_with_all_boundaries(order, materials, dtype):
    """6 elements: the last block is not full, or the only one."""
    case = make(order, dtype, materials=materials)
    assert case.launcher.shape.materials == (materials == "pieces")
    case.check_stage(3)


@pytest.mark.parametrize("order", [1, 2])
def test_a_stage_where_all_faces_are_inside(order):
    case = make(order, "float64", periodic=True, cells=(2, 1, 1))
    case.check_stage(1)


def test_rhs_writes_only_du_dt_and_reads_nothing_of_it():
    make(2, "float64", materials="pieces").check_rhs()


def test_the_first_stage_does_not_read_the_residual():
    make(1, "float64").check_first_stage()


@pytest.mark.parametrize(("order", "dtype"), [(1, "float64"), (2, "float32")])
def test_the_stages_of_a_factor(order, dtype):
    case = make(order, dtype, materials="pieces").with_factors()
    case.check_factor()
    case.check_rhs()


@pytest.mark.parametrize("plan", [(1, 1, 1), (7, 1, 3), (3, 2, 2, 2), (1, 4, 1, 2), (2, 1, 4)])
def test_every_plan_computes_the_same(plan):
    case = make(2, "float64", plan=FusedPlan("numba", 1, 1, 1))
    case.launcher = case.launcher.planned(FusedPlan("numba", *plan))
    case.check_stage(2)


def test_the_default_plan():
    case = make(2, "float32", plan=choose(FusedPlan, FusedShape(2, "float32", True), SIMULATOR))
    case.check_stage(4)


def test_states_survive_the_way_to_the_device():
    case = make(3, "float64", materials="pieces", cells=(2, 1, 1))
    case.check_the_way_to_the_device()


def test_a_stage_in_place_is_refused():
    """A neighbor would find the new state: the simulator sees the race between blocks."""
    case = make(1, "float64", periodic=True, cells=(2, 1, 1), plan=FusedPlan("numba", 2, 1, 1))
    with pytest.raises(RaceError):
        case.stage_in_place()


@pytest.mark.parametrize("name", ["geometry", "tangents", "boundary", "opposite"])
def test_wrong_arrays_are_noticed(name):
    """The comparison sees a fault in any of the tables."""
    case = make(2, "float64", materials="pieces", cells=(2, 1, 1))
    array = case.launcher.arrays[name]
    case.launcher.arrays[name] = np.roll(array, 1)
    (_, _), (new, expected) = case.stage(3)
    error = np.abs(case.launcher.download(new) - expected).max()
    assert not error < 1e-4 * np.abs(expected).max()


def test_tangents_are_signs_and_sums():
    ways = tangents()
    assert ways.shape == (24, 2, 4)
    assert set(ways.ravel()) == {-1.0, 0.0, 1.0}
    assert not ways[..., 3].any()
    assert (np.abs(ways).sum(axis=2) <= 2).all()


def test_the_curve_keeps_neighbors_close():
    """Half of a shuffled cube's neighbors are a third of all elements apart, then a twentieth."""
    mesh = box((6, 6, 6))
    order = along_a_curve(mesh)
    assert np.array_equal(np.sort(order), np.arange(mesh.K))
    place = np.argsort(order)
    k, f = np.nonzero(mesh.neighbors >= 0)
    assert np.median(np.abs(place[k] - place[mesh.neighbors[k, f]])) < mesh.K / 20


def test_only_the_upwind_flux():
    operator = reference.assemble(box((1, 1, 1)), NodalElement(3, 1), "central")
    with pytest.raises(ValueError, match="central"):
        FusedLauncher(operator, SIMULATOR)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        (("fortran", 1, 1, 1), ValueError),
        (("numba", 0, 1, 1), ValueError),
        (("numba", 1, 1.5, 1), TypeError),
        (("numba", 1, 1, 1, -1), ValueError),
    ],
)
def test_wrong_plans_are_refused(fields, error):
    with pytest.raises(error, match="allowed"):
        FusedPlan(*fields)


def test_illegal_plans_are_refused():
    shape = FusedShape(3, "float32")
    tensor = FusedPlan("cuda", 1, 16, 1, tensor=True)
    assert not tensor.illegal(shape, (8, 0))
    assert "8.0" in tensor.illegal(shape, (7, 5))
    assert "16" in replace(tensor, elements_inline=8).illegal(shape, (9, 0))
    assert "threads" in FusedPlan("numba", 100, 1, 1).illegal(shape)
    assert "elements" in FusedPlan("numba", SPARE, 2, 20).illegal(shape)
    assert "shared" in FusedPlan("numba", 50, 2, 1).illegal(shape)
    assert "accumulators" in FusedPlan("numba", 2, 3, 2).illegal(shape)
    assert "columns" in FusedPlan("numba", 2, 1, 1, 4).illegal(FusedShape(2, "float32"))
    case = make(1, "float64")
    with pytest.raises(ValueError, match="tensor"):
        case.launcher.planned(FusedPlan("cuda", 1, 8, 1, tensor=True))


@pytest.mark.parametrize("capability", [None, (7, 5), (8, 0), (9, 0)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_default_plans_are_legal(dtype, capability):
    """Also above the orders measured, and on devices without tensor cores."""
    for order in range(1, 11):
        for language in ("cuda", "numba"):
            for materials in (False, True):
                plan = shipped(FusedPlan, FusedShape(order, dtype, True), capability, language)
                assert plan.language == language
                assert not plan.illegal(FusedShape(order, dtype, materials), capability)


def test_the_tuner_gets_the_default_and_others():
    shape = FusedShape(4, "float32", True)
    for language in ("cuda", "numba"):
        plan = shipped(FusedPlan, shape, (9, 0), language)
        found = plan.candidates(shape, (9, 0))
        assert found[0] == plan
        assert len(found) == len(set(found)) > 10


@pytest.mark.parametrize("mistake", broken.MISTAKES, ids=lambda m: m.name)
def test_wrong_kernels_are_rejected(mistake):
    make(2, "float64", materials="pieces").check_rejected(mistake)


@pytest.mark.parametrize("mistake", broken.FACTORED, ids=lambda m: m.name)
def test_wrong_kernels_for_factors_are_rejected(mistake):
    make(2, "float64", materials="pieces").check_rejected_factor(mistake)


# -- CUDA C++ ------------------------------------------------------------------------------------


def make_cuda(order, dtype, capability, materials="pieces"):
    """As on a device of this capability; 36 elements, which no plan takes in one block."""
    plan = shipped(FusedPlan, FusedShape(order, dtype, True), capability)
    on = device_of(capability)
    case = make(order, dtype, materials=materials, cells=(3, 2, 1), plan=plan, device=on)
    return replace(case, roundings=ROUNDINGS)


# The best plans, on tensor cores where they pay, and those for any device, in either precision by
# turns: these two differ in a macro.
CUDA = [
    (order, dtype, best)
    for order in range(1, 10)
    for dtype in ("float32", "float64")
    for best in (False, True)
    if best or (order % 2 == 0) == (dtype == "float32")
]


@needs_compiler
@pytest.mark.parametrize(("order", "dtype", "best"), CUDA)
def test_cuda(order, dtype, best, tmp_path):
    """On the CPU."""
    capability = ((8, 0), (9, 0))[order % 2] if best else (7, 5)
    case = make_cuda(order, dtype, capability, ("uniform", "pieces")[order // 2 % 2])
    assert case.launcher.plan.tensor == (best and (dtype == "float64" or order > 3))
    emulate(case.launcher, tmp_path)
    case.check_stage()
    case.check_rhs()
    case.check_first_stage()
    case.check_ranges()


@needs_compiler
@pytest.mark.parametrize(("order", "dtype", "best"), CUDA[1::4])
def test_cuda_with_factors(order, dtype, best, tmp_path):
    """With the state kept in shared memory, and read again."""
    capability = ((8, 0), (9, 0))[order % 2] if best else (7, 5)
    case = make_cuda(order, dtype, capability).with_factors()
    emulate(case.launcher, tmp_path)
    case.check_factor()
    case.check_rhs()


@needs_compiler
@pytest.mark.parametrize("mistake", broken_cuda.FACTORED, ids=lambda m: m.name)
def test_wrong_cuda_with_factors_is_rejected(mistake, tmp_path):
    case = make_cuda(mistake.order, mistake.dtype, mistake.capability)
    case.check_rejected_cuda_factor(mistake, tmp_path)


@needs_compiler
@pytest.mark.parametrize("mistake", broken_cuda.MISTAKES, ids=lambda m: m.name)
def test_wrong_cuda_is_rejected(mistake, tmp_path):
    case = make_cuda(mistake.order, mistake.dtype, mistake.capability)
    case.launcher.kernel = mistake.make(case.launcher.kernel)
    emulate(case.launcher, tmp_path)
    with pytest.raises((AssertionError, EmulationError)):
        case.check_stage()
