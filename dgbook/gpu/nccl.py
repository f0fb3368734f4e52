"""NCCL, which moves arrays between the GPUs of several processes, through CuPy."""

from __future__ import annotations

import collections
import ctypes
import socket
import warnings
from collections.abc import Sequence
from typing import Any

from dgbook.gpu.kernel import HAS_CUPY, cuda

MISSING = (
    "several GPUs need NCCL, which is not installed: pip install nvidia-nccl-cu12 or "
    "nvidia-nccl-cu13, the one that fits CuPy"
)
Message = tuple[Any, int]
"""A contiguous array, and the rank with which it is exchanged."""


class Messages:
    """Exchanges between processes with one GPU each.

    Parameters
    ----------
    library : module
        CuPy's of NCCL.
    communicator : NcclCommunicator
        Of all processes.
    """

    def __init__(self, library: Any, communicator: Any) -> None:
        self.library, self.communicator = library, communicator

    def exchange(self, sends: Sequence[Message], receives: Sequence[Message], stream: int) -> None:
        """Enqueue messages in a stream as one group, in which none waits for another.

        Between two ranks they are matched in their order.
        """
        if not (sends or receives):
            return
        self.library.groupStart()
        for call, messages in (
            (self.communicator.recv, receives),
            (self.communicator.send, sends),
        ):
            for array, rank in messages:
                kind = getattr(self.library, f"NCCL_{array.dtype.name.upper()}")
                call(address(array), array.size, kind, rank, stream)
        self.library.groupEnd()

    def add_up(self, array: Any, stream: int) -> None:
        """Enqueue in a stream what replaces a contiguous array by the sum of all processes'."""
        at, kind = address(array), getattr(self.library, f"NCCL_{array.dtype.name.upper()}")
        summed = self.library.NCCL_SUM
        self.communicator.allReduce(at, at, array.size, kind, summed, stream)


def address(array: Any) -> int:
    """Where an array begins, of CuPy on the device, of NumPy on the host."""
    about = getattr(array, "__cuda_array_interface__", None) or array.__array_interface__
    return about["data"][0]


def library() -> Any:
    """CuPy's module of NCCL.

    Raises
    ------
    RuntimeError
        If NCCL, or CuPy, is not installed.
    """
    if not HAS_CUPY:
        raise RuntimeError(MISSING)
    with warnings.catch_warnings(action="ignore"):  # CuPy's, which says the same
        from cupy.cuda import nccl
    if not nccl.available:
        raise RuntimeError(MISSING)
    return nccl


def connected(comm: Any = None) -> Messages:
    """Connect the GPUs of all ranks of a communicator; all of them have to call it.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm, optional
        Over which they agree. Without it this process is alone, and sends to itself.

    Raises
    ------
    RuntimeError
        If NCCL is missing, or two ranks have the same GPU; on all ranks.
    """
    ranks, rank = (1, 0) if comm is None else (comm.Get_size(), comm.Get_rank())
    if comm is not None:
        check_own_gpus(comm.allgather(gpu()))
    nccl = library()
    unique = nccl.get_unique_id() if rank == 0 else None
    communicator = nccl.NcclCommunicator(
        ranks, unique if comm is None else comm.bcast(unique), rank
    )
    # It is never destroyed: that would wait for all ranks, and for all recordings that hold it.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(communicator))
    return Messages(nccl, communicator)


def gpu() -> str:
    """The current GPU of this process: the machine's name and the address of its slot."""
    import cupy

    device = cupy.cuda.Device()
    return f"{socket.gethostname()} {device.pci_bus_id}"


def check_own_gpus(gpus: Sequence[str]) -> None:
    """Raise a RuntimeError if two ranks have the same GPU, of which `gpus` has one per rank."""
    name, ranks = collections.Counter(gpus).most_common(1)[0]
    if ranks > 1:
        raise RuntimeError(
            f"{len(gpus)} ranks have {len(set(gpus))} GPUs: {ranks} of them share {name}; allowed: "
            "a GPU for each rank, device 'cpu', or several parts in one process"
        )


def count() -> int:
    """How many GPUs this process sees; 0 without a driver, or without CuPy."""
    if not HAS_CUPY:
        return 0
    import cupy

    try:
        return cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError:
        return 0


def take_gpu(number: int) -> None:
    """Take one of the GPUs that this process sees, for all that comes, where there are any.

    Parameters
    ----------
    number : int
        Of this process among those of this machine. Beyond the last GPU it starts again with the
        first, which `check_own_gpus` refuses unless processes see different ones.
    """
    if gpus := count():
        import cupy

        cupy.cuda.Device(number % gpus).use()
        cuda.select_device(number % gpus)
