"""The same diffusion problem by NGSolve: its own hybridized method and preconditioner.

NGSolve (https://ngsolve.org) hybridizes the interior penalty method, so that its solution is
another one of the same order. All cores work.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from dgbook.element import barycentric
from dgbook.hdg.discretization import Discretization
from dgbook.mesh import Mesh, face_vertices

PENALTY = 4.0
"""Times order^2 / h: what a jump costs. Conjugate gradients need it to be large enough."""


def solve_diffusion(
    d: Discretization, formula: Callable[..., Any], tolerance: float
) -> dict[str, Any]:
    """Diffusion with u = 0 on the boundary.

    Element unknowns are condensed; conjugate gradients with "bddc", balancing domain decomposition
    by constraints with an element as a domain, solve for the traces.

    Parameters
    ----------
    d : Discretization
        Of a mesh of triangles or tetrahedra: NGSolve gets the mesh and the order.
    formula : callable
        Of the right-hand side: a module with sin, cos and exp, what is 1 where its argument is
        positive and 0 elsewhere, and the coordinates.
    tolerance : float
        Of conjugate gradients.

    Returns
    -------
    dict
        "u", (1, K, Np), at the nodes of `d`; "iterations", [n]; and "seconds": "update" is the
        spaces and what is recovered in the elements, "assemble" has the preconditioner's set-up,
        which NGSolve does element by element meanwhile; "cycles" are the steps.

    Raises
    ------
    ImportError
        Without NGSolve: ``pip install ngsolve``.
    RuntimeError
        If its elements' vertices are not in the order of the mesh's.
    """
    import ngsolve
    from ngsolve import L2, FacetFESpace, dx, grad
    from ngsolve.krylovspace import CGSolver

    mesh = ngsolve.Mesh(to_netgen(d.mesh))
    order, dim = d.element.order, d.mesh.dim
    seconds = {}
    with ngsolve.TaskManager():
        begin = time.perf_counter()
        x = (ngsolve.x, ngsolve.y, ngsolve.z)[:dim]
        f = formula(ngsolve, lambda t: ngsolve.IfPos(t, 1, 0), x)
        space = L2(mesh, order=order) * FacetFESpace(mesh, order=order, dirichlet=".*")
        (u, trace), (v, tested) = space.TnT()
        normal, h = ngsolve.specialcf.normal(dim), ngsolve.specialcf.mesh_size
        a = ngsolve.BilinearForm(space, condense=True, symmetric=True)
        a += grad(u) * grad(v) * dx
        jump, jump_tested = u - trace, v - tested
        consistent = -grad(u) * normal * jump_tested - grad(v) * normal * jump
        stable = PENALTY * order**2 / h * jump * jump_tested
        a += (consistent + stable) * dx(element_boundary=True)
        inverse = ngsolve.Preconditioner(a, "bddc")
        right = ngsolve.LinearForm(f * v * dx)
        seconds["update"] = time.perf_counter() - begin
        begin = time.perf_counter()
        a.Assemble()
        right.Assemble()
        seconds["assemble"] = time.perf_counter() - begin
        begin = time.perf_counter()
        condensed = right.vec.CreateVector()
        condensed.data = right.vec
        condensed.data += a.harmonic_extension_trans * condensed
        solver = CGSolver(a.mat, inverse.mat, tol=tolerance, maxiter=2000, printrates=False)
        found = ngsolve.GridFunction(space)
        found.vec.data = solver * condensed
        seconds["cycles"] = time.perf_counter() - begin
        begin = time.perf_counter()
        found.vec.data += a.harmonic_extension * found.vec
        found.vec.data += a.inner_solve * right.vec
        seconds["update"] += time.perf_counter() - begin
    values = at_nodes(mesh, d, found.components[0])
    return {"u": values[None], "seconds": seconds, "iterations": [solver.iterations]}


def to_netgen(mesh: Mesh) -> Any:
    """Netgen's mesh with the same vertices and elements, in their order; one domain."""
    from netgen import meshing

    made = meshing.Mesh(dim=mesh.dim)
    points = np.zeros((len(mesh.vertices), 3))
    points[:, : mesh.dim] = mesh.vertices
    made.AddPoints(points)
    elements, faces = mesh.boundary_faces.T
    on_boundary = np.take_along_axis(
        mesh.elements[elements], face_vertices(mesh.dim)[faces], axis=1
    )
    made.Add(meshing.FaceDescriptor(bc=1, domin=1, domout=0, surfnr=1))
    for dim, vertices in ((mesh.dim, mesh.elements), (mesh.dim - 1, on_boundary)):
        made.AddElements(dim=dim, index=1, data=np.int32(vertices), base=0)
    return made


def at_nodes(mesh: Any, d: Discretization, function: Any) -> np.ndarray:
    """NGSolve's function at the nodes of each element, (K, Np).

    Raises
    ------
    RuntimeError
        If its nodes are not ours, which compares coordinates.
    """
    import ngsolve

    # Its points are barycentric coordinates of all vertices but the last.
    weights = barycentric(d.element.nodes)[:, : d.mesh.dim]
    points = [tuple(map(float, point)) for point in weights]
    rule = ngsolve.IntegrationRule(points=points, weights=[0.0] * len(points))
    mapped = mesh.MapToAllElements(rule, ngsolve.VOL)
    nodes = d.nodes()
    for found, known in zip((ngsolve.x, ngsolve.y, ngsolve.z), nodes, strict=False):
        if not np.allclose(found(mapped).reshape(known.shape), known, atol=1e-12):
            raise RuntimeError("NGSolve's elements have their vertices in another order")
    return function(mapped).reshape(nodes.shape[1:])
