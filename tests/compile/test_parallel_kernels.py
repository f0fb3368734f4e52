"""The kernels that move traces between parts, as machine code."""

import numpy as np
import pytest

from dgbook.parallel.kernels import make_copy, make_product


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_traces_are_moved_without_spills(held, dtype):
    values, places = np.empty(1, dtype), np.empty(1, np.uint32)
    held(make_copy(), (values, places, values, places), dtype)
    for rows, columns in ((2, 6), (6, 2)):
        kernel = make_product(rows, columns, 15)
        held(kernel, (values, values, places, values, places), dtype)
