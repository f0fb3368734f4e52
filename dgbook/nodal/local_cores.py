"""Local time steps on processor cores: what the families' kernels share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from dgbook.gpu import Device
from dgbook.nodal.cores import CoreLauncher, aligned
from dgbook.nodal.lanes import lanes, load, store
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
def expand(j, work, term, count, L, weights, at, sums, shorter):
    """Add term j of the expansion, in `work`, to the sums behind each other from `sums` on.

    These are the polynomial at the end of the step, Q and, where neighbors have shorter steps, the
    integral over the first half of the step.
    """
    a, b, c = weights[at + 3 * j], weights[at + 3 * j + 1], weights[at + 3 * j + 2]
    for to in range(sums, sums + count, L):
        x = load(work, term + to - sums)
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

    Parameters
    ----------
    operator : a family's operator
    device : Device
        "cpu".
    dtype : str
    fields : int
    clusters : Clusters
    order : int
        N.

    Attributes
    ----------
    kernel : function
        ``kernel(sources, blocks, tick, ends, begins, state, integrals, data, weights, groups,
        *arguments)``, compiled by Numba.
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
        order: int,
    ) -> None:
        self.layout = layout(operator.mesh, clusters.number, lanes(dtype))
        trace = operator.trace
        super().__init__(
            operator, device, dtype, fields, trace.Np, trace.exterior, trace.boundary_faces
        )
        self.integrals = aligned(self._largest(), self.real)
        self.weights = taylor_sums(order, clusters).astype(self.real).ravel()
        made = self.layout
        numbers = made.cluster, made.longer, made.shorter
        self.groups = (self.blocks, made.sums, made.halves, *numbers)

    def _sorted(self) -> tuple[np.ndarray, np.ndarray]:
        return self.layout.order, self.layout.place

    def _largest(self) -> int:
        return 2 * self.layout.region * self.fields * self.Np * self.L

    def _meetings(self, exterior: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        some = np.arange(self.blocks), np.flatnonzero(self.layout.longer >= 0)
        return list(zip(self.layout.meets, some, strict=True))

    def _launch_on(self, state: Any) -> tuple[Any, tuple[Any, ...]]:
        return self.kernel, self._call(state, state, 0, 0, True, True)

    def _call(
        self, state: Any, data: Any, blocks: int, tick: int, ends: bool, begins: bool
    ) -> tuple[Any, ...]:
        about = self.sources, blocks, tick, ends, begins, state, self.integrals, data
        return *about, self.weights, self.groups, *self.arguments

    def advance(self, state: Any, data: Any, tick: int, last: int, begins: bool) -> None:
        """End the steps of the clusters up to the last that end with a tick, and begin the next.

        Before the first tick, which is that of number 0, there is none to end.
        """
        blocks = int(self.layout.ends[last])
        self.kernel(*self._call(state, data, blocks, tick, tick >= 0, begins))
