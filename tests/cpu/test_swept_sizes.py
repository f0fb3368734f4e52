"""Sizes that 32 bits cannot number are refused: kernels would wrap around and go on in silence."""

import numpy as np
import pytest

from dgbook import swept
from dgbook.swept.plan import MOST_INDEX


@pytest.mark.parametrize("name", ["heat", "ks", "euler"])
@pytest.mark.parametrize("scheme", ["classic", "shared", "register", "tiled", "persistent"])
def test_points_beyond_32_bits_are_refused(name, scheme):
    """The largest allowed size has positions that 32 bits hold; twice as many have none."""
    largest = {"euler": 2**32 // 3}.get(name, MOST_INDEX)
    with pytest.raises(ValueError, match=f"n = {largest + 1}; allowed: up to {largest}"):
        swept.Solver(name, scheme, largest + 1, "float32", "cpu")
    n = largest // 1024 * 1024
    solver = swept.Solver(name, scheme, n, "float32", "cpu")
    last = np.int64(len(solver.problem.fields)) * n - 1
    assert np.uint32(last) == last
    assert np.int32(np.int64(n) + 2**22) == n + 2**22  # an H200's threads, of several points
