"""What is measured of the factored Runge-Kutta method beside its low-storage form: a time step."""

from __future__ import annotations

import numpy as np

from dgbook.gpu.cost import Cost
from dgbook.gpu.timing import measure
from dgbook.lab.measuring import Rows, cells_for, cube
from dgbook.lab.session import Session, Subject
from dgbook.maxwell.cost import FIELDS, costs
from dgbook.maxwell.solver import Solver
from dgbook.mesh import box
from dgbook.nodal.basis import BASES

METHODS = ("ndb14", "ndb14_factored")
SMALL, ROUNDED = 2, 50
"""Cells along each edge of a cube on which rounding is looked at, and the steps of such a run."""


def factored_record(order: int, dtype: str, dofs: int, session: Session) -> Rows:
    """Rows of the record maxwell/factored: a recorded step by either form, in either basis.

    The problem is a cube between conducting walls. "variant" is the method, "stages" how many its
    step has: the seconds of a stage are those of the row divided by it. "rounding", in fp32, is the
    difference to fp64 after `ROUNDED` of the longest stable steps of a small cube, relative to the
    state.
    """
    mesh = cube(cells_for(dofs, order, FIELDS))
    for basis in BASES:
        for method in METHODS:
            solver = Solver(mesh, order, dtype, session.device, basis=basis, method=method)
            shape = (FIELDS, mesh.K, solver.element.Np)
            u = np.random.default_rng(0).standard_normal(shape, np.float32).astype(dtype)
            timing = measure(solver.march(u, 1.0, solver.cfl_dt()).step, session.device)
            stages = len(solver.method.A)
            kernel = "bernstein" if basis == "bernstein" else "fused"
            stage = costs(order, mesh.K, dtype, solver.factored)[kernel]
            cost = Cost(stages * stage.flops, stages * stage.bytes)
            plan = solver.launcher.plan
            subject = Subject.of_state(shape, order, dtype)
            row = session.row(subject, kernel, plan.language, plan, cost, timing)
            row |= {"variant": method, "step": True, "stages": stages}
            if dtype == "float32":
                row["rounding"] = rounding(order, basis, method, session)
            yield row


def rounding(order: int, basis: str, method: str, session: Session) -> float:
    """How far runs in fp32 and fp64 from the same state are apart, relative to the latter."""
    single, double = (
        Solver(box((SMALL,) * 3), order, dtype, session.device, basis=basis, method=method)
        for dtype in ("float32", "float64")
    )
    mode = np.pi * single.x
    u = np.zeros((FIELDS, *single.x.shape[1:]), np.float32)
    u[2], u[4] = np.sin(mode[0]) * np.sin(mode[1]), np.cos(mode[0]) * np.sin(mode[1])
    dt = double.stable_dt()
    found, exact = (solver.run(u, ROUNDED * dt, dt) for solver in (single, double))
    return float(np.sqrt(double.energy(found - exact) / double.energy(exact)))
