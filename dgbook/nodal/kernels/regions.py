"""Where a step's integrals are kept, for neighbors of its own and of
other clusters."""

import numpy as np

from dgbook.gpu import jit

CLUSTER, LONGER, SHORTER, WORDS = 0, 1, 2, 3
"""Words that describe an element: the number of its cluster, and where
in a region its sum of two steps and its first half step are."""
NOWHERE = 0xFFFFFFFF  # no neighbor reads it


def make_keep():
    """Device function that writes a number of Q where neighbors find it.

    Element k's step begins with a tick. Its integral is `whole`, that
    over its first half `part`; both are number i of `size` of an
    element in a region. See `dgbook.nodal.local.Layout`.
    """

    @jit(device=True)
    def keep(tick, groups, k, size, i, whole, part, even, odd, halves):
        g = np.uint32(WORDS * k)
        bits = tick >> groups[g + CLUSTER]
        place = np.uint32(k * size + i)
        if bits & 1:
            odd[place] = whole
        else:
            even[place] = whole
        longer, shorter = groups[g + LONGER], groups[g + SHORTER]
        if longer != NOWHERE:  # the sum of two steps
            place = np.uint32(longer * size + i)
            two = whole
            if bits & 2:
                if bits & 1:
                    two += odd[place]
                odd[place] = two
            else:
                if bits & 1:
                    two += even[place]
                even[place] = two
        if shorter != NOWHERE:  # one half after the other
            if bits & 1:
                shorter = np.uint32(shorter + halves)
            place = np.uint32(shorter * size + i)
            even[place] = part
            odd[place] = whole - part

    return keep
