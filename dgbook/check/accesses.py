"""Which words of memory the threads of a warp read together, as the simulator sees it."""

from __future__ import annotations

from collections.abc import Callable

from dgbook.check import simulator
from dgbook.gpu.limits import WARP


def reads(launch: Callable[[], None]) -> dict[str, list[list[int]]]:
    """Note what kernels read while they run on the simulator.

    Parameters
    ----------
    launch : function without arguments
        Launches kernels on NumPy arrays.

    Returns
    -------
    dict
        By name of the array, a list of accesses. Each is the list of words that the threads of one
        warp read at the same step, one for each thread that takes part. A thread's steps on an
        array are counted from the kernel's start, so threads that take different branches fall out
        of step. Arrays in shared memory are named by their line.
    """
    found: dict[str, dict[tuple, list[int]]] = {}
    steps: dict[tuple, int] = {}
    plain = simulator.Array._read

    def noting(array: simulator.Array, word: int, index: object) -> None:
        thread = simulator._current
        mine = (thread.block.index.x, thread.linear, array.name)
        step = steps[mine] = steps.get(mine, 0) + 1
        warp = (mine[0], thread.linear // WARP, step)
        found.setdefault(array.name, {}).setdefault(warp, []).append(word)
        plain(array, word, index)

    simulator.Array._read = noting  # only while it runs: all other kernels would pay for it
    try:
        launch()
    finally:
        simulator.Array._read = plain
    return {name: list(accesses.values()) for name, accesses in found.items()}
