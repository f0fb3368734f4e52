"""Hybrid's kernels that take edges to the CPU and fetch what it made of them."""

import numpy as np

from dgbook.gpu import cuda, jit


def make_send(problem, node):
    """Kernel that sends the edges from which the split diamond grows.

    One block of `node` threads.

    left, right (fields n,)  edges of all nodes
    sent (2 fields node,)    the first node's left one, then the last node's
                             right one; memory of the host, overwritten
    """
    fields = len(problem.fields)
    size = fields * node

    @jit
    def send(left, right, sent):
        t = np.uint32(cuda.threadIdx.x)
        last = np.uint32(right.size - size)
        # Field by field: a thread takes one number of either edge.
        for f in range(fields):
            at = np.uint32(f * node + t)
            sent[at] = left[at]
            sent[np.uint32(size + at)] = right[np.uint32(last + at)]

    return send


def make_receive(problem, node):
    """Kernel that fetches the split diamond's own edges: those of node 0.

    answer (2 fields node,)          left and right; memory of the host
    new_left, new_right (fields n,)  edges of all nodes; node 0's overwritten
    """
    fields = len(problem.fields)
    size = fields * node

    @jit
    def receive(answer, new_left, new_right):
        t = np.uint32(cuda.threadIdx.x)
        # Field by field: a thread fetches one number of either edge.
        for f in range(fields):
            at = np.uint32(f * node + t)
            new_left[at] = answer[at]
            new_right[at] = answer[np.uint32(size + at)]

    return receive
