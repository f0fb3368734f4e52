"""Memory of a GPU that the processes of other GPUs of this machine write into, through CuPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

ALIGNED = 2**21
"""Bytes of which an allocation is a multiple, so that nothing else is opened together with it."""


def allocate(nbytes: int) -> Any:
    """Zeros, (nbytes,) uint8, on this GPU, apart from what CuPy allocates.

    They are never freed: nobody knows when others have closed them. CuPy's own memory would not
    do, for what others open is a whole allocation, of which an array of CuPy's is a part.
    """
    import cupy

    size = -(-nbytes // ALIGNED) * ALIGNED
    pointer = cupy.cuda.runtime.malloc(size)
    memory = cupy.cuda.UnownedMemory(pointer, size, None, cupy.cuda.Device().id)
    array = cupy.ndarray((nbytes,), np.uint8, cupy.cuda.MemoryPointer(memory, 0))
    array[:] = 0
    return array


def handle(array: Any) -> bytes:
    """What another process opens an array of `allocate` by."""
    import cupy

    return cupy.cuda.runtime.ipcGetMemHandle(array.data.ptr)


def opened(given: bytes) -> int:
    """Where an array of another process begins for this one, until its end.

    Raises
    ------
    RuntimeError
        If this GPU cannot reach that one's memory.
    """
    import cupy

    try:
        return cupy.cuda.runtime.ipcOpenMemHandle(given)
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise RuntimeError(
            f"this GPU cannot open the memory of another one ({error}); allowed: GPUs of one "
            "machine between which there is peer access, or NCCL"
        ) from error


def check_one_machine(names: Sequence[str]) -> None:
    """Raise a RuntimeError unless all ranks are on one machine; `names` has that of each."""
    if len(machines := sorted(set(names))) > 1:
        raise RuntimeError(
            f"ranks are on {len(machines)} machines, {', '.join(machines)}; allowed for memory of "
            "peers: one machine, or NCCL"
        )
