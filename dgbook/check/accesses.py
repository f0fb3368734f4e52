"""Which words of memory the threads of a warp read together, as the simulator sees it."""

from __future__ import annotations

from collections import Counter
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
        of step. A shared array s is called "shared array s".
    """
    heard = _Reads()
    with simulator.observe(heard):
        launch()
    return {name: list(accesses.values()) for name, accesses in heard.elements.items()}


class _Reads(simulator.Observer):
    def __init__(self) -> None:
        self.elements: dict[str, dict[tuple, list[int]]] = {}
        self.steps: Counter[tuple] = Counter()

    def access(self, access: simulator.Access) -> None:
        if access.kind != "read":
            return
        name = f"shared array {access.array}" if access.shared else access.array
        thread = access.thread
        self.steps[thread, name] += 1
        warp = (thread.block, thread.linear // WARP, self.steps[thread, name])
        self.elements.setdefault(name, {}).setdefault(warp, []).append(access.element)
