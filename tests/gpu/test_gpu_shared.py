"""A real device: more than 48 KiB of shared memory a block, which a launch has to ask for."""

import numpy as np
import pytest

from dgbook.gpu import cuda, device, jit

GPU = device()
pytestmark = pytest.mark.skipif(GPU.kind != "cuda", reason=GPU.sentence)

COUNT = 15_000  # doubles: 120,000 bytes, more than 48 KiB and less than the 163 KiB of an A100


@jit
def turn_round(x, y):
    """y is x backwards, through shared memory."""
    held = cuda.shared.array(0, np.float64)
    for i in range(cuda.threadIdx.x, x.size, cuda.blockDim.x):
        held[i] = x[i]
    cuda.syncthreads()
    for i in range(cuda.threadIdx.x, x.size, cuda.blockDim.x):
        y[i] = held[x.size - 1 - i]


@pytest.fixture
def arrays():
    if GPU.compute_capability < (8, 0):
        pytest.skip("this device has at most 64 KiB of shared memory a block")
    x = np.random.default_rng().standard_normal(COUNT)
    return x, GPU.array(x), GPU.empty(COUNT, np.float64)


def test_a_launch_gets_the_shared_memory_it_asks_for(arrays):
    x, there, back = arrays
    turn_round[1, 256, 8 * COUNT](there, back)
    assert np.array_equal(GPU.to_numpy(back), x[::-1])


def test_a_graph_gets_it_too(arrays):
    x, there, back = arrays
    GPU.capture(lambda: turn_round[1, 256, 8 * COUNT](there, back))()
    GPU.synchronize()
    assert np.array_equal(GPU.to_numpy(back), x[::-1])


def test_more_than_the_device_has_is_refused_by_name(arrays):
    _, there, back = arrays
    with pytest.raises(RuntimeError, match="1000000 bytes of dynamic shared memory"):
        turn_round[1, 256, 1_000_000](there, back)
