"""Wrong steps of Arnoldi's method: each kernel is the right one but for one mistake in its text."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mistakes import remade

from dgbook.hdg.kernels import arnoldi


@dataclass(frozen=True)
class Mistake:
    """What is wrong in which kernel, and the text that makes it so."""

    name: str
    kernel: str
    right: str
    wrong: str

    def make(self, *arguments: Any) -> Callable:
        """The wrong kernel."""
        name = f"make_{self.kernel}"
        made = remade(self.name, [getattr(arnoldi, name)], self.right, self.wrong)
        return made[name](*arguments)


MISTAKES = [
    Mistake("the last vector is forgotten", "dots", "first + t < count", "first + t + 1 < count"),
    Mistake("vectors beyond the basis", "dots", "min(np.uint32(first + g), last)", "first + g"),
    Mistake(
        "no barrier before sums are added up",
        "dots",
        "= mine[g]\n            cuda.syncthreads()\n",
        "= mine[g]\n",
    ),
    Mistake(
        "half of the numbers", "dots", "cuda.gridDim.x * threads", "2 * cuda.gridDim.x * threads"
    ),
    Mistake("the first block's part alone", "collect", "b < partial.shape[1]", "b < 1"),
    Mistake("the second pass replaces the first", "collect", "] += sums[0]", "] = sums[0]"),
    Mistake("the column of the next step", "collect", "np.uint32(count - 1)", "count"),
    Mistake("vectors that are left over", "take_off", "while j < count:", "while j + 1 < count:"),
    Mistake("added instead of taken off", "take_off", "left -= loaded[g]", "left += loaded[g]"),
    Mistake(
        "a square of what was there before", "take_off", "square += left * left", "square += w[i]"
    ),
    Mistake("the last vector again", "finish", "basis[count, i]", "basis[count - 1, i]"),
    Mistake("not of unit length", "finish", "real(1) / math.sqrt", "real(1) / "),
    Mistake("the same vector is multiplied again", "finish", "current[i] = w[i] * factor", "pass"),
    Mistake(
        "no barrier before the length is known",
        "finish",
        "sums[t] = total\n        cuda.syncthreads()\n",
        "sums[t] = total\n",
    ),
]
