"""Meshes, clusters and cases on which all kernels with local time steps are tested."""

import numpy as np
from acoustics_cases import BOUNDARY as SOUND_BOUNDARY
from maxwell_cases import BOUNDARY

from dgbook import maxwell
from dgbook.mesh import box, face_vertices
from dgbook.mesh.build import build
from dgbook.nodal.linear import LOCAL
from dgbook.nodal.local import Clusters, CoreLocalSteps, HostLocalSteps, damping, graded
from dgbook.nodal.local_device import DeviceLocalSteps


def stretched(cells, ratio=16.0, periodic=False):
    """A cube whose elements grow by that ratio in each direction."""
    mesh = box((cells,) * 3, periodic=periodic)
    vertices = np.expm1(mesh.vertices * np.log(ratio)) / (ratio - 1)
    if not periodic:
        return build(vertices, mesh.elements, faces_of(mesh))
    object.__setattr__(mesh, "vertices", vertices)
    return mesh


def slices():
    """Few elements, for three clusters or more: flat ones in front, then thicker ones."""
    mesh = box((4, 1, 1))
    vertices = mesh.vertices.copy()
    vertices[:, 0] = np.array([0.0, 0.05, 0.2, 0.5, 1.0])[np.rint(4 * vertices[:, 0]).astype(int)]
    return build(vertices, mesh.elements, faces_of(mesh))


def faces_of(mesh):
    """Vertices of the faces on each boundary."""
    return {
        name: mesh.elements[f[:, :1], face_vertices(mesh.dim)[f[:, 1]]]
        for name, f in mesh.boundary.items()
    }


def limits_of(solver):
    """The longest step of each element."""
    return LOCAL / (solver._damped() * damping(solver.element, solver.operator.face_scale))


def clusters_of(solver, last=None, dt=None):
    """Clusters of the longest steps, up to a last one; with another smallest step if given."""
    limits = limits_of(solver)
    number = np.floor(np.log2(limits / limits.min()) + 1e-12).astype(int)
    number = graded(solver.mesh.neighbors, number)
    if last is not None:
        number = np.minimum(number, last)
    return Clusters(number, float(limits.min()) if dt is None else dt)


def noise(solver, seed=0):
    shape = len(solver.fields), solver.mesh.K, solver.element.Np
    return np.random.default_rng(seed).standard_normal(shape).astype(solver.dtype)


def stepper(solver, u, clusters):
    """What takes the steps: the definition, or kernels."""
    if solver.device.kind == "reference":
        return HostLocalSteps(solver, u, clusters)
    kernels = CoreLocalSteps if solver.device.kind == "cpu" else DeviceLocalSteps
    return kernels(solver, solver._local_launcher(clusters), u, clusters)


def after(solver, u, clusters, periods=1):
    """The state after some periods, by the definition or by kernels."""
    steps = stepper(solver, u, clusters)
    for n in range(periods):
        steps.step(n * clusters.period * clusters.dt)
    return steps.download()


def cases(family, order, dtype, device, cells=2, mesh=None, **options):
    """The solver by kernels and by the definition, with all conditions and varying matter."""
    mesh = stretched(cells, 25.0) if mesh is None else mesh
    matter = np.random.default_rng(1).uniform(0.5, 2.0, (2, mesh.K))
    names = ("epsilon", "mu") if family is maxwell else ("kappa", "rho")
    sides = BOUNDARY if family is maxwell else SOUND_BOUNDARY
    given = dict(zip(names, matter, strict=True)) | {"boundary": sides} | options
    return (
        family.Solver(mesh, order, dtype, device, **given),
        family.Solver(mesh, order, "float64", "reference", **given),
    )
