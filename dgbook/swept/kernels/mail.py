"""Hybrid's kernels that send edges to the CPU and fetch its result."""

import numpy as np

from dgbook.gpu import cuda, jit


def make_send(problem, node):
    """Kernel that sends the edges from which the split diamond grows.

    It runs in one block of `node` threads.

    left, right (fields n,)  edges of all nodes
    sent (2 fields node,)    the first node's left edge, then the last
                             node's right edge; host memory, overwritten
    """
    fields = len(problem.fields)
    size = fields * node

    @jit
    def send(left, right, sent):
        t = np.uint32(cuda.threadIdx.x)
        last = np.uint32(right.size - size)
        # For each field, a thread sends one number of each edge.
        for f in range(fields):
            at = np.uint32(f * node + t)
            sent[at] = left[at]
            sent[np.uint32(size + at)] = right[np.uint32(last + at)]

    return send


def make_receive(problem, node):
    """Kernel that fetches the edges of the split diamond, node 0.

    answer (2 fields node,)          left edge, then right edge; host
                                     memory
    new_left, new_right (fields n,)  edges of all nodes; those of node 0
                                     are overwritten
    """
    fields = len(problem.fields)
    size = fields * node

    @jit
    def receive(answer, new_left, new_right):
        t = np.uint32(cuda.threadIdx.x)
        # For each field, a thread fetches one number of each edge.
        for f in range(fields):
            at = np.uint32(f * node + t)
            new_left[at] = answer[at]
            new_right[at] = answer[np.uint32(size + at)]

    return receive
