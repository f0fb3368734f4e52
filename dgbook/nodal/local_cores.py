"""Local time steps on processor cores: what the families' kernels share."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numba
import numpy as np

from dgbook.element import NodalElement, space_dimension
from dgbook.gpu import Device
from dgbook.nodal.cores import CoreLauncher, aligned
from dgbook.nodal.lanes import by_rows, lanes, load, product_of_two, rows_together, store
from dgbook.nodal.local import Clusters, layout, taylor_sums


@numba.njit
def region_of(groups):
    """Blocks in a region, see `dgbook.nodal.local.Layout`."""
    count, sums, halves = groups[:3]
    return count + sums + 2 * halves


@numba.njit
def reads(tick, block, groups):
    """Where a block's step that ends with a tick finds integrals: the region, and which table."""
    count, _, _, cluster, longer, _ = groups
    c = cluster[block]
    table = block
    if longer[block] >= 0 and (tick >> (c + 1)) & 1:
        table = count + longer[block]
    return (tick >> c) & 1, table


@numba.njit
def expand(j, fields, modes, work, field, L, weights, at, sums, shorter):
    """Add term j of the expansion, at the beginning of `work`, to the sums from `sums` on.

    These are the polynomial at the end of the step, Q and, where neighbors have shorter steps, the
    integral over the first half of the step. The term has so many modes, and others are zero.
    """
    a, b, c = weights[at + 3 * j], weights[at + 3 * j + 1], weights[at + 3 * j + 2]
    count = fields * field
    for first in range(0, count, field):
        for i in range(first, first + modes * L, L):
            x, to = load(work, i), sums + i
            p, q, r = a * x, b * x, c * x
            if j > 0:
                p, q = p + load(work, to), q + load(work, to + count)
            store(work, to, p)
            store(work, to + count, q)
            if shorter:
                if j > 0:
                    r = r + load(work, to + 2 * count)
                store(work, to + 2 * count, r)


@numba.njit
def to_nodes(fields, Np, rows, L, matrices, work, at, to):
    """Values at nodes of modes; Vandermonde's matrix is the last one."""
    field, last = Np * L, len(matrices) - Np * Np
    for f in range(0, fields, 2):
        first, out = at + f * field, to + f * field
        product_of_two(rows, Np, Np, matrices, last, work, first, field, work, out, field, False)


@numba.njit
def keep(work, own, first, count, L, integrals, tick, block, groups):
    """Write Q of a block's step that begins with a tick, and what neighbors of other steps read.

    Q is in `work` from `own` on, and its first half from `first` on.
    """
    G, sums, halves, cluster, longer, shorter = groups
    region, c = region_of(groups) * count, cluster[block]
    b = (tick >> c) & 1
    to = b * region + block * count
    for i in range(0, count, L):
        store(integrals, to + i, load(work, own + i))
    if longer[block] >= 0:  # the sum of two steps
        to = ((tick >> (c + 1)) & 1) * region + (G + longer[block]) * count
        for i in range(0, count, L):
            q = load(work, own + i)
            if b:
                q = q + load(integrals, to + i)
            store(integrals, to + i, q)
    if shorter[block] >= 0:  # one half after the other
        to = (G + sums + b * halves + shorter[block]) * count
        for i in range(0, count, L):
            half = load(work, first + i)
            store(integrals, to + i, half)
            store(integrals, region + to + i, load(work, own + i) - half)


class LocalCores(CoreLauncher):
    """Taylor steps in clusters on processor cores; families derive their own.

    States are coefficients of orthonormal polynomials, sorted by degree, whatever the basis of the
    operator: term j of an expansion has degree N - j, so that fewer and fewer modes are left to
    differentiate. Integrals, which neighbors read, are values at nodes.

    Parameters
    ----------
    operator : a family's operator
    device : Device
        "cpu".
    dtype : str
    fields : int
        An even number.
    clusters : Clusters
    element : NodalElement

    Attributes
    ----------
    matrices : flat array
        For each term but the last the three derivatives to the modes of the next one, by rows, then
        the lift from each face, and Vandermonde's matrix.
    levels : (N + 1, 2) ints
        Modes of each term, and rows of a product with as many at a time.

    Attributes
    ----------
    kernel : function
        ``kernel(sources, blocks, tick, ends, begins, state, integrals, data, weights, groups,
        matrices, levels, *arguments)``, compiled by Numba.
    arguments : tuple
    """

    kernel: Callable[..., None]
    arguments: tuple[Any, ...]

    def __init__(
        self,
        operator: Any,
        device: Device,
        dtype: str,
        fields: int,
        clusters: Clusters,
        element: NodalElement,
    ) -> None:
        self.element = element
        self.layout = layout(operator.mesh, clusters.number, lanes(dtype))
        trace = operator.trace
        super().__init__(
            operator, device, dtype, fields, trace.Np, trace.exterior, trace.boundary_faces
        )
        self.integrals = aligned(self._largest(), self.real)
        N = element.order
        self.weights = taylor_sums(N, clusters).astype(self.real).ravel()
        made = self.layout
        numbers = made.cluster, made.longer, made.shorter
        self.groups = (self.blocks, made.sums, made.halves, *numbers)
        modes = [space_dimension(3, N - j) for j in range(N + 1)]
        self.levels = np.array([(count, rows_together(count)) for count in modes])
        to_modes, to_nodes = element.inverse_vandermonde, element.vandermonde
        derivative = to_modes @ element.derivative @ to_nodes
        matrices = [d[:low, :high] for high, low in pairwise(modes) for d in derivative]
        matrices += list((to_modes @ element.lift).reshape(self.Np, 4, -1).swapaxes(0, 1))
        flat = [by_rows(matrix) for matrix in (*matrices, to_nodes)]
        self.matrices = np.concatenate(flat).astype(self.real)

    def _sorted(self) -> tuple[np.ndarray, np.ndarray]:
        return self.layout.order, self.layout.place

    def _largest(self) -> int:
        return 2 * self.layout.region * self.fields * self.Np * self.L

    def _meetings(self, exterior: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        some = np.arange(self.blocks), np.flatnonzero(self.layout.longer >= 0)
        return list(zip(self.layout.meets, some, strict=True))

    def upload(self, u: np.ndarray) -> np.ndarray:
        """A state (fields, K, Np) of nodal values, as modes in blocks."""
        return super().upload(u.astype(np.float64) @ self.element.inverse_vandermonde.T)

    def download(self, state: np.ndarray) -> np.ndarray:
        """A state in blocks as nodal values (fields, K, Np)."""
        modes = super().download(state).astype(np.float64)
        return (modes @ self.element.vandermonde.T).astype(self.real)

    def _launch_on(self, state: Any) -> tuple[Any, tuple[Any, ...]]:
        return self.kernel, self._call(state, state, 0, 0, True, True)

    def _call(
        self, state: Any, data: Any, blocks: int, tick: int, ends: bool, begins: bool
    ) -> tuple[Any, ...]:
        about = self.sources, blocks, tick, ends, begins, state, self.integrals, data
        return *about, self.weights, self.groups, self.matrices, self.levels, *self.arguments

    def advance(self, state: Any, data: Any, tick: int, last: int, begins: bool) -> None:
        """End the steps of the clusters up to the last that end with a tick, and begin the next.

        Before the first tick, which is that of number 0, there is none to end.
        """
        blocks = int(self.layout.ends[last])
        self.kernel(*self._call(state, data, blocks, tick, tick >= 0, begins))
