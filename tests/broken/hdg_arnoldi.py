"""Wrong steps of Arnoldi's method: each kernel is the right one but for one mistake in its text."""

from mistakes import Mistake

from dgbook.hdg.kernels import arnoldi

TEXTS = (
    ("the last vector is forgotten", "dots", "first + t < count", "first + t + 1 < count"),
    ("vectors beyond the basis", "dots", "min(np.uint32(first + g), last)", "first + g"),
    (
        "no barrier before sums are added up",
        "dots",
        "= products[g]\n            cuda.syncthreads()\n",
        "= products[g]\n",
    ),
    ("half of the numbers", "dots", "cuda.gridDim.x * threads", "2 * cuda.gridDim.x * threads"),
    ("the first block's part alone", "collect", "b < partial.shape[1]", "b < 1"),
    ("the second pass replaces the first", "collect", "] += sums[0]", "] = sums[0]"),
    ("the column of the next step", "collect", "np.uint32(count - 1)", "count"),
    ("vectors that are left over", "take_off", "while j < count:", "while j + 1 < count:"),
    ("added instead of taken off", "take_off", "rest -= loaded[g]", "rest += loaded[g]"),
    ("a square of what was there before", "take_off", "square += rest * rest", "square += y[i]"),
    ("the last vector again", "finish", "basis[count, i]", "basis[count - 1, i]"),
    ("not of unit length", "finish", "real(1) / math.sqrt", "real(1) / "),
    ("the same vector is multiplied again", "finish", "current[i] = y[i] * factor", "pass"),
    (
        "no barrier before the length is known",
        "finish",
        "sums[t] = total\n        cuda.syncthreads()\n",
        "sums[t] = total\n",
    ),
)
"""What is wrong, in which kernel, and the text that makes it so."""
MISTAKES = [
    Mistake(name, right, wrong, (getattr(arnoldi, f"make_{kernel}"),))
    for name, kernel, right, wrong in TEXTS
]
