"""The fused nodal kernel of acoustics, thread by thread, against the reference."""

from dataclasses import replace

import numpy as np
import pytest
from acoustics_cases import device_data, operators
from broken import acoustics_fused as broken
from emulation import ROUNDINGS, device_of, emulate, needs_compiler
from fused_stages import Case

from dgbook.acoustics import reference
from dgbook.acoustics.launch.fused import FusedLauncher, geometry
from dgbook.acoustics.plan import Shape
from dgbook.check import RaceError, SimulatorError
from dgbook.gpu import device
from dgbook.gpu.plan import choose, shipped
from dgbook.nodal.fused import SPARE, FusedPlan

SIMULATOR = device("simulator")
PLANS = {1: (8, 2, 1), 2: (2, 2, 2, 2), 3: (1, 2, 2, 4)}
T = 0.3


def make(order, dtype="float64", plan=None, basis="nodal", device=SIMULATOR, **options):
    """A launcher, the same operator in float64, random states and boundary data."""
    random = np.random.default_rng(order)
    operator, double = operators(order, dtype, basis, random, **options)
    plan = plan or FusedPlan("numba", *PLANS[order])
    u, res = random.standard_normal((2, 4, double.mesh.K, double.basis.element.Np)).astype(dtype)
    return Case(
        launcher=FusedLauncher(operator, device, plan),
        u=u,
        res=res,
        data=device_data(double, T, dtype),
        rhs=reference.rhs(double, u.astype(float), T),
    )


@pytest.mark.parametrize("flux", ["upwind", "penalty"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("order", [1, 2, 3])
def test_a_stage_with_all_boundaries(order, dtype, flux):
    """6 elements, each of another medium: the last block is not full, or the only one."""
    case = make(order, dtype, flux=flux)
    case.check_stage(3)


@pytest.mark.parametrize("order", [1, 2])
def test_a_stage_where_all_faces_are_inside(order):
    case = make(order, periodic=True, cells=(2, 1, 1))
    case.check_stage(1)


@pytest.mark.parametrize(
    ("order", "dtype", "options"),
    [
        (1, "float32", {"flux": "upwind"}),
        (1, "float64", {"periodic": True, "cells": (2, 1, 1)}),
        (2, "float64", {}),
        (3, "float32", {"flux": "upwind"}),
    ],
)
def test_control_points(order, dtype, options):
    """In the Bernstein basis all is the same but for the entries of D and LIFT."""
    case = make(order, dtype, basis="bernstein", **options)
    case.check_stage(3)
    case.check_rhs()


@pytest.mark.parametrize("name", ["derivative", "lift"])
@pytest.mark.parametrize("order", [1, 2])
def test_the_other_basis_is_noticed(order, name):
    """At order 1 it has the same matrices, at order 2 not."""
    case, other = make(order, basis="bernstein"), make(order)
    case.launcher.arrays[name] = other.launcher.arrays[name]
    if order == 1:
        case.check_stage()
    else:
        with pytest.raises(AssertionError):
            case.check_stage()


def test_rhs_writes_only_du_dt_and_reads_nothing_of_it():
    make(2).check_rhs()


def test_the_first_stage_does_not_read_the_residual():
    make(1).check_first_stage()


@pytest.mark.parametrize("plan", [(1, 1, 1), (7, 1, 3), (3, 2, 2, 2), (1, 4, 1, 5), (2, 1, 4)])
def test_every_plan_computes_the_same(plan):
    case = make(2, plan=FusedPlan("numba", 1, 1, 1))
    case.launcher = case.launcher.planned(FusedPlan("numba", *plan))
    case.check_stage(2)


def test_the_default_plan():
    case = make(2, "float32", plan=choose(FusedPlan, Shape(2, "float32"), SIMULATOR))
    case.check_stage(4)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_states_survive_the_way_to_the_device(dtype):
    case = make(3, dtype, cells=(2, 1, 1))
    case.check_the_way_to_the_device()
    state, shape, first = case.launcher.upload(case.u), case.launcher.shape, case.launcher.order[0]
    nodes = state[: shape.size : 1].reshape(-1, shape.Np, shape.width)
    assert np.array_equal(nodes[0, :, 0], case.u[0, first])


def test_a_state_is_what_flows_through_the_faces():
    """W_i at a node of face i is -sJ n.v, and minus their sum that of face 0; (K, Np)."""
    case = make(2, cells=(2, 1, 1))
    shape, op = case.launcher.shape, case.launcher.operator
    state = case.launcher.upload(case.u).reshape(-1, shape.size)[: op.mesh.K]
    W = [
        state[:, shape.place(i) + shape.width * np.arange(shape.Np)][
            np.argsort(case.launcher.order)
        ]
        for i in (1, 2, 3)
    ]
    sJ = op.face_scale * op.jacobian[:, None]
    for f, inflow in enumerate([-sum(W), *W]):
        outflow = np.einsum("kd,dkn->kn", sJ[:, f, None] * op.normals[:, f], case.u[1:])
        assert np.abs(inflow + outflow).max() < 1e-14


@pytest.mark.parametrize(("order", "dtype"), [(1, "float64"), (2, "float32")])
def test_the_stages_of_a_factor(order, dtype):
    case = make(order, dtype).with_factors()
    case.check_factor()
    case.check_rhs()


def test_a_stage_in_place_is_refused():
    """A neighbor would find the new state: the simulator sees the race between blocks."""
    case = make(1, periodic=True, cells=(2, 1, 1), plan=FusedPlan("numba", 2, 1, 1))
    with pytest.raises(RaceError):
        case.stage_in_place()


@pytest.mark.parametrize("name", ["geometry", "boundary", "opposite", "links"])
def test_wrong_arrays_are_noticed(name):
    """The comparison sees a fault in any of the tables."""
    case = make(2, cells=(2, 1, 1))
    case.launcher.arrays[name] = np.roll(case.launcher.arrays[name], 1)
    try:
        (_, _), (new, expected) = case.stage(3)
    except SimulatorError:
        return
    error = np.abs(case.launcher.download(new) - expected).max()
    assert not error < 1e-4 * np.abs(expected).max()


def test_geometry_of_the_reference_element_in_one_medium():
    """A box of one cell, kappa = rho = 1: (J / rho) G G^T, kappa / J, sJ / 2, 1/2 and 1 / sJ."""
    mesh = make(1).launcher.operator.mesh
    op = reference.assemble(mesh, 1)
    found, J = geometry(op), op.jacobian
    metric = found[:, [0, 1, 2, 1, 3, 4, 2, 4, 5]].reshape(-1, 3, 3)
    assert np.allclose(np.linalg.det(metric), J)  # J^3 / J^2
    assert np.allclose(found[:, 6], 1 / J) and not found[:, 7].any()
    sJ = op.face_scale * J[:, None]
    assert np.allclose(found[:, 8:16:2], sJ / 2) and np.allclose(found[:, 9:16:2], 0.5)
    assert np.allclose(found[:, 16:], [-1, 1, 1, 1] / sJ)


def test_only_what_has_rank_one():
    central = operators(1, "float64", "nodal", np.random.default_rng(1), "central")[0]
    with pytest.raises(ValueError, match="central"):
        FusedLauncher(central, SIMULATOR)


def test_a_mesh_beyond_32_bits_is_refused():
    operator = make(1).launcher.operator
    huge = replace(operator, trace=replace(operator.trace, K=2**28))
    with pytest.raises(ValueError, match="allowed: less than 4294967296"):
        FusedLauncher(huge, SIMULATOR)


def test_illegal_plans_are_refused():
    shape = Shape(3, "float32")
    tensor = FusedPlan("cuda", 1, 16, 1, tensor=True)
    assert not tensor.illegal(shape, (8, 0))
    assert "8.0" in tensor.illegal(shape, (7, 5))
    assert "16" in replace(tensor, elements_inline=8).illegal(shape, (9, 0))
    double = FusedPlan("cuda", 1, 8, 1, blocks=11, tensor=True)  # of three warps
    assert "1056 threads at a time" in double.illegal(Shape(3, "float64"), (9, 0))
    assert not replace(double, blocks=10).illegal(Shape(3, "float64"), (9, 0))
    assert "threads" in FusedPlan("numba", 100, 1, 1).illegal(shape)
    assert "elements" in FusedPlan("numba", SPARE, 2, 20).illegal(shape)
    assert "shared" in FusedPlan("numba", 51, 2, 1).illegal(Shape(3, "float64"))
    assert "accumulators" in FusedPlan("numba", 2, 3, 3).illegal(shape)
    assert "columns" in FusedPlan("numba", 2, 1, 1, 4).illegal(Shape(2, "float32"))
    wide = FusedPlan("cuda", 2, 4, 2)  # 4 fields of 8 values, of one or two registers each
    assert not wide.illegal(shape)
    assert "64 accumulators" in wide.illegal(Shape(3, "float64"))
    case = make(1)
    with pytest.raises(ValueError, match="tensor"):
        case.launcher.planned(FusedPlan("cuda", 1, 8, 1, tensor=True))


def test_shared_memory():
    """Order 4, 35 nodes and 15 on a face."""
    shape = Shape(4, "float32")
    assert shape.shared_bytes(FusedPlan("numba", 2, 1, 1)) == 2 * 4 * (4 * 35 + 60)
    # 41 vectors of state, of 40 columns; 18 of 4 x 16 numbers; 20 words of geometry, 4 of links.
    assert shape.shared_bytes(FusedPlan("cuda", 1, 16, 1, tensor=True)) == 16 * (16 * 59 + 96)
    # 37 vectors, of 36 columns, and 17.
    assert shape.shared_bytes(FusedPlan("cuda", 3, 1, 1)) == 3 * (16 * 54 + 96)
    double = Shape(4, "float64")
    # 76 vectors of 36 columns, and 34 of 4 x 16 numbers.
    assert double.shared_bytes(FusedPlan("cuda", 1, 8, 1, tensor=True)) == 8 * (16 * 110 + 176)


@pytest.mark.parametrize("capability", [None, (7, 5), (8, 0), (9, 0)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_default_plans_are_legal(dtype, capability):
    """Also above the orders measured, and on devices without tensor cores."""
    for order in range(1, 13):
        for language in ("cuda", "numba"):
            plan = shipped(FusedPlan, Shape(order, dtype), capability, language)
            assert plan.language == language
            assert not plan.illegal(Shape(order, dtype), capability)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("language", ["cuda", "numba"])
def test_the_tuner_gets_the_default_and_others(language, dtype):
    for order in range(1, 10):
        shape = Shape(order, dtype)
        plan = shipped(FusedPlan, shape, (9, 0), language)
        assert plan.subject(shape) == f"acoustics/fused/{language}"
        found = plan.candidates(shape, (9, 0))
        assert found[0] == plan
        assert 5 < len(found) == len(set(found)) < 64
        assert all(plan.language == language for plan in found)
    for older in ((7, 5), (8, 6)):
        found = shipped(FusedPlan, Shape(5, dtype), older).candidates(Shape(5, dtype), older)
        assert not any(plan.tensor for plan in found)


@pytest.mark.parametrize("mistake", broken.MISTAKES, ids=lambda m: m.name)
def test_wrong_kernels_are_rejected(mistake):
    make(2).check_rejected(mistake)


@pytest.mark.parametrize("mistake", broken.MISTAKES[::5], ids=lambda m: m.name)
def test_wrong_kernels_are_rejected_in_the_other_basis(mistake):
    make(2, basis="bernstein").check_rejected(mistake)


# -- CUDA C++ ------------------------------------------------------------------------------------


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
    plan = shipped(FusedPlan, Shape(order, dtype), capability)
    case = make(
        order,
        dtype,
        plan,
        basis=("nodal", "bernstein")[order % 3 == 2],
        device=device_of(capability),
        flux=("upwind", "penalty")[order // 2 % 2],
        cells=(3, 2, 1),
    )
    case.roundings = ROUNDINGS
    emulate(case.launcher, tmp_path)
    case.check_stage()
    case.check_rhs()
    case.check_first_stage()
    case.check_ranges()


@pytest.mark.parametrize("mistake", broken.FACTORED, ids=lambda m: m.name)
def test_wrong_kernels_for_factors_are_rejected(mistake):
    make(2).check_rejected_factor(mistake)


@needs_compiler
@pytest.mark.parametrize(("order", "dtype", "best"), CUDA[1::5])
def test_cuda_with_factors(order, dtype, best, tmp_path):
    capability = ((8, 0), (9, 0))[order % 2] if best else (7, 5)
    plan, on = shipped(FusedPlan, Shape(order, dtype), capability), device_of(capability)
    case = make(order, dtype, plan, device=on, cells=(3, 2, 1)).with_factors()
    case.roundings = ROUNDINGS
    emulate(case.launcher, tmp_path)
    case.check_factor()
    case.check_rhs()
