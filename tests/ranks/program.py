"""What every rank does in the tests of ranks, with tests/ in PYTHONPATH."""

import time

import numpy as np
from mpi4py import MPI
from parallel_cases import DT, REFERENCE, STEPS, by_rows, case, in_parts, mesh_of, start, whole

from dgbook import hdg, parallel, swept
from dgbook.euler.solver import FlowError
from dgbook.hdg.preconditioner import coarse_space
from dgbook.mesh import box
from dgbook.parallel import solver as parallel_solver
from dgbook.parallel import transport
from dgbook.swept import reference as sweeps
from dgbook.swept.parts import PART_SCHEMES

COMM = MPI.COMM_WORLD
FAMILIES = ("linear", "maxwell", "nodal", "bernstein", "euler")


class MissingWait(transport.MpiRanks):
    """Reads what has arrived without waiting; one rank sends late."""

    def connect(self, sends, receives, device):
        return _Unfinished(super().connect(sends, receives, device))


class _Unfinished(transport.Connection):
    def __init__(self, connection):
        self.connection, self.travelling = connection, False

    def start(self):
        if self.travelling:
            self.connection.finish()
        time.sleep(0.01 * COMM.Get_rank())
        self.connection.start()
        self.travelling = True

    def finish(self):
        pass


def problem(family):
    """The mesh, the family's solver row by row, the first state and the last one of the whole."""
    mesh = mesh_of(family, 2 if family in ("maxwell", "nodal", "bernstein") else 4)
    plain = case(family, mesh, 2, device=REFERENCE)
    one = by_rows(plain(whole(mesh)))
    u = start(one)
    return mesh, lambda piece: by_rows(plain(piece)), one, u, one.run(u, STEPS * DT, DT)


def agree():
    """In all families the ranks' state has the bits of the whole mesh's."""
    for family in FAMILIES:
        mesh, make, _, u, expected = problem(family)
        found = in_parts(make, mesh, u, comm=COMM)
        if COMM.Get_rank():
            assert found is None
        else:
            np.testing.assert_array_equal(found, expected)


def agree_on_cores():
    """And by the compiled kernels, where two ranks share the processor."""
    for family in FAMILIES:
        mesh = mesh_of(family, 2)
        make = case(family, mesh, 2, device="cpu")
        one = make(whole(mesh))
        u = start(one)
        found = in_parts(make, mesh, u, comm=COMM)
        if not COMM.Get_rank():
            np.testing.assert_array_equal(found, one.run(u, STEPS * DT, DT))


def measure():
    """Sums, steps and errors are the same on all ranks, and those of the whole."""
    mesh, make, one, u, _ = problem("maxwell")
    many = parallel.Solver(make, mesh, comm=COMM)
    v = many.scatter(u)
    numbers = (many.energy(v), many.cfl_dt(), many.accurate_dt(), many.stable_dt())
    assert all(other == numbers for other in COMM.allgather(numbers))
    expected = (one.energy(u), one.cfl_dt(), one.accurate_dt(), one.stable_dt())
    np.testing.assert_allclose(numbers, expected, rtol=1e-6)
    mesh, make, one, u, _ = problem("euler")
    many = parallel.Solver(make, mesh, comm=COMM)
    step = 4 * one.stable_dt(u)
    errors = []
    for solver, state in ((one, u), (many, many.scatter(u))):
        try:
            solver.run(state, 100 * step, step)
        except FlowError as error:
            errors.append((error.element, error.time))
    assert len(errors) == 2 and errors[0] == errors[1]


def solve():
    """A trace system by GMRES whose vectors are cut: all ranks have the x of one process."""
    problem = hdg.Poisson(lambda x, y: [1 + x * y], lambda x, y: [0 * x])
    x = []
    for where in (None, parallel.MpiRanks(COMM)):
        linear = hdg.Gmres("cpu", restart=100, tolerance=1e-10, transport=where)
        hdg.solve(problem, box((5, 5)), 2, linear_solver=linear)
        x.append(linear.solutions[0].x)
    np.testing.assert_allclose(x[1], x[0], rtol=0, atol=1e-8 * np.abs(x[0]).max())


def solve_by_kernels():
    """The same in the simulator, as on GPUs; and without the others' sums it is another x."""
    problem = hdg.Poisson(lambda x, y: [1 + x], lambda x, y: [x * y])
    system = hdg.assemble(problem, box((2, 1)), 1, device="reference")
    space = coarse_space(system.discretization)
    for ranks, right in ((parallel.MpiRanks, True), (OwnSums, False)):
        linear = hdg.Gmres("simulator", restart=8, max_iterations=8, transport=ranks(COMM))
        x = linear.solve(system.matrix, system.rhs, space).x
        expected = hdg.solver.direct(system.matrix, system.rhs)
        assert (np.abs(x - expected).max() < 1e-6 * np.abs(expected).max()) == right


class OwnSums(transport.MpiRanks):
    """Forgets that others have a part of a sum, too."""

    def add_up(self, array, device):
        pass


def sweep():
    """Points in parts, in a rod and in a ring, where each rank is on both sides of the other."""
    plans = {"classic": swept.Plan(4), "tiled": swept.Plan(16, 2, 2), "shared": swept.Plan(8)}
    for name in ("heat", "ks"):
        for scheme, how in PART_SCHEMES.items():
            s = swept.Parts(name, scheme, 64, device="simulator", threads=plans[how], comm=COMM)
            u, steps = s.initial(), 3 * s.steps_between_results
            expected = sweeps.run(s.problem, u, steps)
            assert np.array_equal(s.run(u, steps), expected) and not np.array_equal(u, expected)


def refuse():
    """Without a wait the state is another one."""
    mesh, make, _, u, expected = problem("maxwell")
    parallel_solver.MpiRanks = MissingWait
    found = in_parts(make, mesh, u, comm=COMM)
    if not COMM.Get_rank():
        assert np.abs(found - expected).max() > 1e-3


agree()
agree_on_cores()
measure()
solve()
solve_by_kernels()
sweep()
refuse()
done = COMM.gather(f"rank {COMM.Get_rank()}")
if done:
    print(*done, "agreed, measured, solved, swept, refused", flush=True)
