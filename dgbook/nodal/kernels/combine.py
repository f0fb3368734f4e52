"""What is given in a stage, from what is given at a few times."""

import numpy as np

from dgbook.gpu import cuda, jit


def make_combine(times, dtype):
    """Kernel that adds up what is given at so many times of a step.

    One thread per number of the data. Arguments:

    given (times data.size,)   the numbers of one time behind the others
    weights (stages times,)    stage by stage
    stage                      which one
    data                       the sum, written
    """
    real = np.dtype(dtype).type

    @jit
    def combine(given, weights, stage, data):
        i = cuda.grid(1)
        if i < data.size:
            total = real(0)
            for j in range(times):
                w = weights[stage * times + j]
                total += w * given[j * data.size + i]
            data[i] = total

    return combine
