"""The kernels that move traces between parts, as machine code."""

import numpy as np
import pytest

from dgbook.parallel import peers
from dgbook.parallel.kernels import make_copy, make_product


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_traces_are_moved_without_spills(held, dtype):
    values, places = np.empty(1, dtype), np.empty(1, np.uint32)
    held(make_copy(), (values, places, values, places), dtype)
    for rows, columns in ((2, 6), (6, 2)):
        kernel = make_product(rows, columns, 15)
        held(kernel, (values, values, places, values, places), dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("name", "rows", "columns"), [("store", 2, 6), ("fetch", 6, 2)])
def test_traces_are_written_to_peers_without_spills(held, name, rows, columns, dtype):
    """Everything that was written is there, for all GPUs, before the flag is."""
    for sizes in ((0, 0, 0), (rows, columns, 15)):
        ptx = held(peers.kernel(name, dtype, *sizes), dtype=dtype).ptx
        if name == "store":
            steps = ("bar.sync", "membar.sys", "atom.global.add", "membar.sys", "st.relaxed.sys")
            at = 0
            for step in steps:
                at = ptx.index(step, at + 1)


def test_a_gpu_waits_for_flags_of_all_gpus(held):
    ptx = held(peers.kernel("await_peers", "float32", 0, 0, 0)).ptx
    assert ptx.count("ld.acquire.sys") == 2 and "nanosleep" in ptx
