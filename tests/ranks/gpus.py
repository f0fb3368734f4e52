"""What each rank of tests/gpu/test_parallel_gpu.py does, started by mpiexec: one GPU for each."""

import sys

import numpy as np
from mpi4py import MPI
from parallel_cases import DT, case, mesh_of, start, whole

from dgbook import hdg, parallel, swept
from dgbook.gpu import nccl
from dgbook.hdg.preconditioner import coarse_space
from dgbook.mesh import box
from dgbook.swept.parts import PART_SCHEMES

COMM = MPI.COMM_WORLD
KINDS = [
    ("linear", {}, "whole"),
    ("maxwell", {"basis": "nodal"}, "whole"),
    ("maxwell", {"basis": "bernstein"}, "flux"),
    ("bernstein", {}, "whole"),
    ("euler", {}, "whole"),  # Python runs in every stage: nothing is recorded
]

nccl.take_gpu(COMM.Split_type(MPI.COMM_TYPE_SHARED).Get_rank())
PEERS = parallel.PeerRanks(COMM)


def recorded(many, u, steps):
    """The state of all parts after some steps, and whether a step is a recording."""
    march = many.march(many.scatter(u), steps * DT, DT)
    while march.done < march.count:
        march.step()
    return many.gather(march.state()), bool(march.stepper.replay)


for family, settings, traces in KINDS:
    mesh = mesh_of(family, 8 if family in ("linear", "euler") else 3)
    make = case(family, mesh, 3, device="cuda", **settings)
    one = make(whole(mesh))
    u = start(one)
    for comm, kind in ((COMM, parallel.NcclRanks), (PEERS, parallel.PeerRanks)):
        many = parallel.Solver(make, mesh, comm=comm, traces=traces)
        assert type(many.transport) is kind
        found, replayed = recorded(many, u, 20)
        assert replayed == (family != "euler")
        if COMM.Get_rank() == 0:
            expected = one.run(u, 20 * DT, DT)
            if traces == "whole":
                np.testing.assert_array_equal(found, expected)
            else:
                np.testing.assert_allclose(found, expected, atol=1e-12 * np.abs(u).max())
            print(family, settings, traces, kind.__name__, "agree", file=sys.stderr, flush=True)
# Many replays on few elements, where one part runs ahead of the other: stale numbers would show.
mesh = mesh_of("maxwell", 2)
for dtype in ("float32", "float64"):
    make = case("maxwell", mesh, 1, dtype=dtype, device="cuda", basis="nodal")
    u = start(make(whole(mesh)))
    by_nccl, by_peers = (
        recorded(parallel.Solver(make, mesh, comm=comm), u, 2000)[0] for comm in (COMM, PEERS)
    )
    if COMM.Get_rank() == 0:
        np.testing.assert_array_equal(by_peers, by_nccl)
        print(dtype, "agree after 2,000 steps", file=sys.stderr, flush=True)
for name in ("heat", "ks", "euler"):
    u = swept.Solver(name, "classic", 2**12).initial()
    for scheme, how in PART_SCHEMES.items():
        plan = swept.Plan(64, 4, 4) if how == "tiled" else swept.Plan(128)
        points = swept.Parts(name, scheme, 2**12, device="cuda", threads=plan, comm=COMM)
        steps = 80 * points.steps_between_results
        found, one = points.run(u, steps), swept.run(name, "classic", 2**12, steps, initial=u)
        np.testing.assert_array_equal(found, one)
        if COMM.Get_rank() == 0:
            print(name, scheme, "agree", file=sys.stderr, flush=True)
problem = hdg.Poisson(lambda x, y: [1 + x * y], lambda x, y: [0 * x])
system = hdg.assemble(problem, box((8, 8)), 3, device="cpu")
space, x = coarse_space(system.discretization), []
for where in (None, parallel.NcclRanks(COMM)):
    linear = hdg.Gmres("cuda", restart=100, tolerance=1e-10, transport=where)
    x.append(linear.solve(system.matrix, system.rhs, space).x)
np.testing.assert_allclose(x[1], x[0], rtol=0, atol=1e-8 * np.abs(x[0]).max())
done = COMM.gather(COMM.Get_rank())
if done:
    print("ranks", *done, "agreed", flush=True)
