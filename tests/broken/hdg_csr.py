"""Wrong products with a sparse matrix: the right kernel but for one mistake in its text."""

from mistakes import Mistake

from dgbook.hdg.kernels.csr import make_csr

TEXTS = (
    ("each lane takes the whole row", "i + lanes", "i + 1"),
    ("the last number of a row is left out", "while i < last:", "while i + 1 < last:"),
    ("half of the lanes are added up", "step = lanes // 2", "step = lanes // 4"),
    ("rows are numbered as threads", "np.uint32(thread // lanes)", "thread"),
    ("the column of another number", "x[indices[i]]", "x[indices[pointers[row]]]"),
    ("added instead of taken off", "b[row] - total", "b[row] + total"),
)
"""What is wrong, and the text that makes it so."""
MISTAKES = [Mistake(name, right, wrong, (make_csr,)) for name, right, wrong in TEXTS]
