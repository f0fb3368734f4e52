"""Each rung of the ladder computes du/dt, on its way from five kernels to tensor cores."""

import numpy as np
import pytest
from emulation import ROUNDINGS, device_of, emulate, needs_compiler
from fused_stages import Case
from maxwell_cases import scrambled

from dgbook.element import NodalElement
from dgbook.gpu import device
from dgbook.lab import ladder
from dgbook.lab.split import ALGEBRAS, SplitLauncher
from dgbook.maxwell import reference
from dgbook.maxwell.plan import FusedShape
from dgbook.mesh import box

SIMULATOR, HOPPER = device("simulator"), device_of((9, 0))
RANDOM = np.random.default_rng(8)


def make(order, dtype, make_launcher, on, cells=(1, 1, 1), boundary="pec", roundings=60):
    """A launcher on turned elements, and what it should give."""
    mesh = scrambled(box(cells), RANDOM, 0.1 / max(cells))
    element = NodalElement(3, order)
    double, operator = (
        reference.assemble(mesh, element, boundary=boundary, dtype=name)
        for name in ("float64", dtype)
    )
    u, res = RANDOM.standard_normal((2, 6, mesh.K, element.Np)).astype(dtype)
    return Case(
        launcher=make_launcher(operator, on),
        u=u,
        res=res,
        data=np.zeros(6 * len(double.trace.boundary_faces) * element.Nfp, dtype),
        rhs=reference.rhs(double, u.astype(np.float64)),
        roundings=roundings,
    )


def split(algebra):
    return lambda operator, on: SplitLauncher(operator, on, algebra)


@pytest.mark.parametrize(
    ("order", "dtype"), [(1, "float64"), (2, "float32"), (2, "float64"), (4, "float32")]
)
@pytest.mark.parametrize("algebra", ALGEBRAS)
def test_five_kernels_by_either_algebra(algebra, order, dtype):
    case = make(order, dtype, split(algebra), SIMULATOR, boundary="absorbing")
    case.check_rhs()
    # In place: the update replaces u.
    u, res = (case.launcher.upload(values) for values in (case.u, case.res))
    case.launcher.stage(u, res, u, case.data, -0.5, 0.25, 0.1)
    expected = -0.5 * case.res.astype(np.float64) + 0.1 * case.rhs
    case.assert_close(res, expected)
    case.assert_close(u, case.u + 0.25 * expected)


@pytest.mark.parametrize(
    ("algebra", "name"),
    [("vectors", "elements"), ("vectors", "mirrors"), ("covariant", "geometry")]
    + [(algebra, name) for algebra in ALGEBRAS for name in ("opposite", "lift", "derivative")],
)
def test_wrong_arrays_are_noticed(algebra, name):
    case = make(2, "float64", split(algebra), SIMULATOR, boundary={"x-": "pec", "x+": "absorbing",
        "y-": "absorbing", "y+": "pec", "z-": "pec", "z+": "absorbing"})  # fmt: skip
    case.check_rhs()
    case.launcher.arrays = case.launcher.arrays | {name: np.roll(case.launcher.arrays[name], 1)}
    with pytest.raises(AssertionError):
        case.check_rhs()


def test_vectors_take_a_vacuum_only():
    mesh = box((1, 1, 1))
    for matter in ({"epsilon": np.arange(1.0, mesh.K + 1)}, {"boundary": lambda x, *_: [x] * 6}):
        operator = reference.assemble(mesh, NodalElement(3, 1), **matter)
        with pytest.raises(ValueError, match="vacuum"):
            SplitLauncher(operator, SIMULATOR, "vectors")
    with pytest.raises(ValueError, match="algebra"):
        SplitLauncher(operator, SIMULATOR, "tensors")


def rungs(order, dtype, language):
    (plan, *_) = ladder.tensor_plans(order, dtype, HOPPER)
    return [r for r in ladder.rungs(order, dtype, HOPPER, plan) if r.language == language]


def test_the_rungs():
    """Each once; those of CUDA C++ begin where Numba's end, and share its plan."""
    for order in ladder.ORDERS:
        for dtype in ("float32", "float64"):
            numba, cuda = (rungs(order, dtype, name) for name in ("numba", "cuda"))
            names = [rung.name for rung in numba + cuda]
            assert len(set(names)) == len(names)
            assert ("u stays" in names) == (order == 3)
            assert ("tensor cores, cut off" in names) == (dtype == "float32")
            last, first = numba[-1], cuda[0]
            for name in ("rows", "elements_inline", "nodes_inline"):
                assert getattr(last.plan, name) == getattr(first.plan, name)
            assert last.layout == first.layout == "curve"
            legal = [rung.plan for rung in numba + cuda if rung.plan]
            assert not any(p.illegal(FusedShape(order, dtype), (9, 0)) for p in legal)


@pytest.mark.parametrize("rung", rungs(3, "float32", "numba"), ids=lambda rung: rung.name)
def test_rungs_in_numba(rung):
    on = lambda operator, on: rung.on(ladder.LAYOUTS[rung.layout](operator, on))  # noqa: E731
    case = make(3, "float32", on, SIMULATOR)
    out = case.launcher.zeros()
    case.launcher.rhs(case.launcher.upload(case.u), case.data, out)
    case.assert_close(out, case.rhs)


@needs_compiler
@pytest.mark.parametrize(
    ("order", "dtype", "rung"),
    [
        pytest.param(order, dtype, rung, id=f"{order}-{dtype}-{rung.name}")
        for order in ladder.ORDERS
        for dtype in ("float32", "float64")
        for rung in rungs(order, dtype, "cuda")
    ],
)
def test_rungs_in_cuda(order, dtype, rung, tmp_path):
    """Each is the book's kernel with a few words replaced, and computes the same."""
    on = lambda operator, on: rung.on(ladder.LAYOUTS[rung.layout](operator, on))  # noqa: E731
    case = make(order, dtype, on, HOPPER, cells=(3, 1, 1), roundings=ROUNDINGS)
    emulate(case.launcher, tmp_path)
    case.check_stage()


def test_two_steps_end_where_they_began():
    """In u is what ten stages make of it, by the reference's arithmetic."""
    case = make(1, "float64", ladder.LAYOUTS["curve"], SIMULATOR)
    u = case.launcher.upload(case.u)
    steps = ladder.two_steps(case.launcher, u, case.data, 0.01)
    steps()
    operator, expected = case.launcher.operator, case.u.copy()
    for _ in range(2):
        res = np.zeros_like(expected)
        for a, b in ladder.STAGES:
            res = a * res + 0.01 * reference.rhs(operator, expected)
            expected = expected + b * res
    case.assert_close(u, expected)
    timing = ladder.by_the_clock(lambda: None, SIMULATOR)
    assert timing.host_bound and len(timing.seconds) == ladder.SAMPLES
