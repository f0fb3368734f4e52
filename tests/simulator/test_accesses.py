"""What the simulator notes of reads, against a count by hand."""

import numpy as np
import pytest

from dgbook.check import simulator
from dgbook.check.accesses import reads
from dgbook.gpu import cuda, jit


@jit
def columns(matrix, out):
    """Each thread reads its row of a matrix with rows of 5 words, and a word that all share."""
    row = cuda.shared.array(64, np.float32)
    i = cuda.threadIdx.x
    row[i] = matrix[i * 5]
    cuda.syncthreads()
    out[i] = matrix[i * 5 + 1] + row[0]


def test_reads_are_noted_warp_by_warp_and_step_by_step():
    matrix, out = np.arange(320, dtype=np.float32), np.zeros(64, np.float32)
    found = reads(lambda: columns[1, 64](matrix, out))
    assert out[1] == 6  # the kernel did run
    assert sorted(found["matrix"]) == sorted(
        [5 * i + step for i in range(warp, warp + 32)] for warp in (0, 32) for step in (0, 1)
    )
    assert found["shared array row"] == [[0] * 32, [0] * 32]


def test_nobody_listens_afterwards_even_if_the_kernel_fails():
    with pytest.raises(simulator.OutOfRangeError):
        reads(lambda: columns[1, 64](np.zeros(3, np.float32), np.zeros(64, np.float32)))
    assert simulator._observed == (None, True)
