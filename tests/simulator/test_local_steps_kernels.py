"""The kernels of local time steps, thread by thread, against the definition; wrong ones fail."""

from dataclasses import replace

import numpy as np
import pytest
from broken import maxwell_local as broken
from emulation import EmulationError, device_of, emulate, needs_compiler
from local_cases import after, cases, clusters_of, noise, slices, stepper, stretched

from dgbook import acoustics, maxwell
from dgbook.check import SimulatorError
from dgbook.mesh import box
from dgbook.nodal.local import Clusters
from dgbook.nodal.local_device import usual_plan

ROUNDINGS = 500  # ten times the most that was measured, 53


def check(ours, truth, clusters):
    """Two periods, of which the second reads what the first has left."""
    u = noise(truth)
    found, expected = after(ours, u, clusters, 2), after(truth, u, clusters, 2)
    assert found.dtype == ours.dtype
    scale = np.abs(expected).max() * np.finfo(ours.dtype).eps
    assert np.abs(found - expected).max() < ROUNDINGS * scale


@pytest.mark.parametrize(
    ("family", "order", "dtype", "options"),
    [
        (maxwell, 1, "float64", {}),
        (maxwell, 2, "float32", {"epsilon": 2.0, "mu": 3.0}),
        (maxwell, 1, "float32", {"basis": "bernstein"}),
        (acoustics, 1, "float32", {"flux": "penalty"}),
        (acoustics, 2, "float64", {"basis": "bernstein"}),
    ],
)
def test_kernels_do_what_is_defined(family, order, dtype, options):
    """With all conditions; matter varies, or not, of which Maxwell's kernels are two."""
    ours, truth = cases(family, order, dtype, "simulator", mesh=slices(), **options)
    clusters = clusters_of(truth, last=2)
    assert (np.bincount(clusters.number) > 0).all()
    check(ours, truth, clusters)


def test_every_number_of_rows_computes_the_same():
    """A block may hold elements of several clusters, and the last one is not full."""
    ours, truth = cases(maxwell, 1, "float64", "simulator", mesh=slices())
    clusters, u = clusters_of(truth, last=2), noise(truth)
    states = []
    for rows in (1, 7):
        steps = stepper(ours, u, clusters)
        steps.launcher = steps.launcher.planned(replace(steps.launcher.plan, rows=rows))
        steps.step(0.0)
        states.append(steps.download())
    assert np.array_equal(*states)


def test_one_cluster_in_a_periodic_box():
    mesh = box((2, 1, 1), periodic=True)
    ours, truth = (maxwell.Solver(mesh, 2, device=device) for device in ("simulator", "reference"))
    check(ours, truth, Clusters(np.zeros(mesh.K, int), 0.5 * truth.cfl_dt()))


@pytest.mark.parametrize("basis", ["nodal", "bernstein"])
def test_plane_waves_are_integrated_on_the_device(basis):
    """A period is recorded with them; the second one begins later."""
    wave = maxwell.PlaneWave((1, 2, 2), (2, 1, -2), "gaussian", 0.3, 0.1)
    sine = maxwell.PlaneWave((1, 0, 0), (0, 1, 0), "sine", 9.0, -0.5)
    sides = {"x-": wave, "x+": maxwell.Scatterer(sine), "y-": "pec", "y+": wave}
    sides |= {"z-": "absorbing", "z+": maxwell.Scatterer(wave)}
    options = {"boundary": sides, "basis": basis, "epsilon": 1.0, "mu": 1.0}
    ours, truth = cases(maxwell, 1, "float64", "simulator", mesh=slices(), **options)
    clusters = clusters_of(truth, last=2)
    assert stepper(ours, noise(truth), clusters).replay
    check(ours, truth, clusters)


@pytest.mark.parametrize("mistake", broken.MISTAKES, ids=lambda m: m.name)
def test_wrong_kernels_are_rejected(mistake):
    ours, truth = cases(maxwell, 1, "float64", "simulator", mesh=slices())
    clusters, u = clusters_of(truth, last=2), noise(truth)
    steps = stepper(ours, u, clusters)
    steps.launcher.kernel = mistake.make(steps.launcher.shape, steps.launcher.plan)
    try:
        steps.step(0.0)
    except SimulatorError:
        return
    assert "barrier" not in mistake.name, "races are refused, whatever they compute"
    expected = after(truth, u, clusters)
    assert not np.abs(steps.download() - expected).max() < 1e-6 * np.abs(expected).max()


# -- CUDA C++ ------------------------------------------------------------------------------------


def emulated(order, dtype, folder, mistake=None):
    """Steps by CUDA C++ on the CPU, and what they should give after two periods."""
    ours, truth = cases(maxwell, order, dtype, device_of((9, 0)), mesh=stretched(2, 25.0))
    clusters, u = clusters_of(truth, last=2), noise(truth)
    steps = stepper(ours, u, clusters)
    plan = usual_plan(steps.launcher.shape, "cuda")
    steps.launcher = steps.launcher.planned(replace(plan, rows=plan.rows // 3 + 1))
    if mistake:
        steps.launcher.kernel = mistake.make(steps.launcher.kernel)
    emulate(steps.launcher, folder)
    for n in range(2):
        steps.step(n * clusters.period * clusters.dt)
    return steps.download(), after(truth, u, clusters, 2)


@needs_compiler
@pytest.mark.parametrize(
    ("order", "dtype"), [(1, "float32"), (2, "float64"), (3, "float32"), (4, "float64")]
)
def test_cuda(order, dtype, tmp_path):
    """Blocks hold elements of several clusters; of order 4 the number of nodes is odd."""
    found, expected = emulated(order, dtype, tmp_path)
    scale = np.abs(expected).max() * np.finfo(dtype).eps
    assert np.abs(found - expected).max() < 2 * ROUNDINGS * scale


@needs_compiler
@pytest.mark.parametrize("mistake", broken.CUDA_MISTAKES, ids=lambda m: m.name)
def test_wrong_cuda_is_rejected(mistake, tmp_path):
    try:
        found, expected = emulated(mistake.order, mistake.dtype, tmp_path, mistake)
    except EmulationError:
        return
    assert not np.abs(found - expected).max() < 1e-3 * np.abs(expected).max()
