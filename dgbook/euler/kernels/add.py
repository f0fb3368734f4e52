"""Sums of volume and edge integrals: the kernel addRes of chen."""

import numpy as np

from dgbook.gpu import cuda, jit


def make_add(tables, plan):
    """Kernel that adds the edge residuals to every element's residual.

    One thread per element visits its three edges and reads what each
    edge has stored for the side on which the element lies (section
    3.3). Arguments, all flat:

    left, right (4 Nfp E,)  what edges add to their left and right
                            elements
    edges (3 K,)            numbers of an element's edges, element
                            fastest
    sides (3 K,)            0 if the element is left of the edge, 1 if
                            right
    nodes (3 Nfp,)          nodes of each edge, in order around the
                            element
    residual (4 Np K,)      the kernel adds to it
    """
    Np, Nfp = tables.Np, tables.Nfp
    dofs, many = 4 * Np, 4 * Nfp  # per element and per edge
    by_element = plan.layout == "element"

    @jit(max_registers=plan.registers)
    def add(left, right, edges, sides, nodes, residual):
        k, K = np.uint32(cuda.grid(1)), np.uint32(edges.size // 3)
        if k >= K:
            return
        E, one = np.uint32(left.size // many), np.uint32(1)
        to, step = (np.uint32(k * dofs), one) if by_element else (k, K)
        # Add what each edge contributes to this element's nodes.
        for f in range(3):
            e, side = edges[f * K + k], sides[f * K + k]
            begin = np.uint32(e * many)
            at, stride = (begin, one) if by_element else (e, E)
            part = left if side == 0 else right
            for j in range(Nfp):
                i = nodes[f * Nfp + j]
                for s in range(4):
                    value = part[at + (s * Nfp + j) * stride]
                    residual[to + (s * Np + i) * step] += value

    return add
