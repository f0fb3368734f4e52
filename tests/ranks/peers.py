"""What each rank of tests/ranks/test_ranks.py does, where memory is written by others.

The kernels of peers.cu are emulated by g++, and what stands for the memory of a GPU that others
open is a file that processes share.
"""

import gc
import sys
import time
from functools import cache, partial
from pathlib import Path

import numpy as np
from broken import peers as wrong
from emulation import Emulated, EmulationError, compiled
from mpi4py import MPI
from parallel_cases import DT, REFERENCE, by_rows, case, mesh_of, start, whole

from dgbook import parallel
from dgbook.gpu import peers as memory
from dgbook.gpu.device import device as find_device
from dgbook.parallel import peers
from dgbook.parallel import solver as parallel_solver

COMM = MPI.COMM_WORLD
RANK, FOLDER = COMM.Get_rank(), Path(sys.argv[1])
SIMULATOR = find_device("simulator")
peers.THREADS, peers.MOST_BLOCKS = 32, 3  # few numbers, several blocks, several for each thread
opened = []
files = iter(range(100))
right_kernel = peers.kernel


def allocate(nbytes):
    return np.memmap(FOLDER / f"{RANK} {next(files)}", np.uint8, "w+", shape=(nbytes,))


def open_file(name):
    opened.append(np.memmap(name.decode(), np.uint8, "r+"))
    return opened[-1].ctypes.data


memory.allocate = allocate
memory.handle = lambda array: str(array.filename).encode()
memory.opened = open_file


def on_the_host(halo, ends, transport, device, dtype):
    """Exchanges states of the reference as a GPU does its own."""
    return halo(ends, transport, SIMULATOR, dtype)


parallel_solver.Halo = partial(on_the_host, peers.PeerHalo)


@cache
def emulated(*which, mistake=None):
    """Compiled by the first rank, loaded by all."""
    kernel = right_kernel(*which)
    if mistake:
        kernel = mistake.make(kernel)
    name = " ".join(map(str, which)) + (f", {mistake.name}" if mistake else "")
    folder = FOLDER / name
    done = folder / "done"
    if RANK == 0:
        folder.mkdir()
        compiled(kernel, folder, (9, 0))
        done.touch()
    while not done.exists():  # at an MPI barrier they would keep the compiler from its core
        time.sleep(0.01)
    return Emulated.loaded(kernel, folder / "kernel.so")


def difference(transport, family, order, traces="whole", steps=8, **settings):
    """How far ranks are from the whole mesh, of which the first rank knows."""
    mesh = mesh_of(family, 3)
    plain = case(family, mesh, order, device=REFERENCE, **settings)
    one = by_rows(plain(whole(mesh)))
    u = start(one)
    many = parallel.Solver(lambda p: by_rows(plain(p)), mesh, comm=transport, traces=traces)
    found = many.gather(many.run(many.scatter(u), steps * DT, DT))
    largest = None
    if RANK == 0:
        expected = one.run(u, steps * DT, DT)
        largest = np.abs(found - expected).max() / np.abs(expected).max()
    return COMM.bcast(largest)


def agree(transport):
    """The same bits, or where two numbers of six travel, rounding; memory is used again."""
    for family in ("linear", "maxwell"):
        assert difference(transport, family, 2) == 0.0
        gc.collect()
    assert 0 < difference(transport, "maxwell", 1, "flux") < 1e-12
    # The second run needs more memory than the first, the others what there is.
    assert len(transport.windows) == 2


class Late(peers.PeerHalo):
    """Of all ranks the second one is slow."""

    def exchange(self, states):
        time.sleep(0.02 * (RANK == 1))
        super().exchange(states)


def refuse(transport):
    """Each mistake makes another state, or all wait in vain."""
    for name in ("store", "await_peers", "fetch"):
        for mistake in getattr(wrong, name.upper()):
            peers.kernel = partial(with_mistake, name, mistake)
            for window in transport.windows:
                window.buffers[:] = 0  # what the last run has left there is nearly right
            try:
                found = difference(transport, "linear", 1, steps=2)
            except EmulationError as error:
                assert "waits in vain" in str(error)
            else:
                assert found > 1e-9, mistake.name  # no rounding


def with_mistake(name, mistake, *which):
    """The kernels, one of them with a mistake."""
    return emulated(*which, mistake=mistake) if which[0] == name else emulated(*which)


transport = parallel.PeerRanks(COMM, messages=object())
peers.kernel = emulated
agree(transport)
parallel_solver.Halo = partial(on_the_host, Late)
refuse(transport)
done = COMM.gather(f"rank {RANK}")
if done:
    print(*done, "agreed, refused", flush=True)
