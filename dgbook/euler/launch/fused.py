"""One kernel for a whole stage: its arrays, the plans that it runs with, and its launches."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from dgbook.euler.kernels.fused import make_fused
from dgbook.euler.launch.sweeps import Sweeps
from dgbook.euler.plan import HEALTHY, TILE, FusedPlan, FusedShape
from dgbook.euler.problem import WALL
from dgbook.euler.reference import Operator
from dgbook.gpu import Device, Kernel
from dgbook.gpu.layout import padded
from dgbook.gpu.plan import choose
from dgbook.gpu.source import CudaKernel, load
from dgbook.mesh import Mesh, along_a_curve, inverse_permutation
from dgbook.nodal.launching import ALL, StageByOneKernel

SOURCE = Path(__file__).parents[1] / "kernels" / "fused" / "kernel.cu"
GROUP = 2 * TILE
"""Elements that are sorted by the way in which they meet their neighbors."""
SECTOR = 8
"""Numbers of fp32 that memory delivers together."""


# ---------------------------------------------------------------------------------------- arrays


def tables(shape: FusedShape, plan: FusedPlan) -> dict[str, np.ndarray]:
    """The matrices as kernels read them, for a plan's numbers of points and passes.

    - interpolation ``[q, i]``: phi_i at point q;
    - projection ``[q, i, a]``: M^-1 w_q d phi / d r_a;
    - trace ``[q, j]``, and nodal, its inverse: between the nodes and the points of an edge;
    - lift ``[f, q, i]``: - M^-1 w_q phi_i;
    - edge_nodes ``[f, j]``.

    Points are added up to a multiple of plan.points: they repeat the last one, with weight zero.
    So are nodes up to a multiple of plan.passes, with zeros.
    """
    tables = shape.tables
    q = np.minimum(np.arange(padded(tables.Nq, plan.points)), tables.Nq - 1)
    weights = np.where(np.arange(len(q)) < tables.Nq, tables.w_volume[q], 0.0)
    weighted = weights[:, None] * tables.dphi_volume[:, q]
    spare = (0, padded(tables.Np, plan.passes) - tables.Np)
    project = np.einsum("ij,aqj->qia", tables.inverse_mass, weighted)
    lift = -np.einsum("ij,fqj,q->fqi", tables.inverse_mass, tables.phi_edge, tables.w_edge)
    reals = {
        "interpolation": tables.phi_volume[q],
        "projection": np.pad(project, ((0, 0), spare, (0, 0))),
        "trace": tables.phi_trace,
        "nodal": np.linalg.inv(tables.phi_trace),
        "lift": np.pad(lift, ((0, 0), (0, 0), spare)),
    }
    rounded = {name: values.astype(shape.dtype) for name, values in reals.items()}
    return rounded | {"edge_nodes": tables.edge_nodes}


def in_tiles(mesh: Mesh) -> np.ndarray:
    """Which element stands at each place of a state, (K,).

    The mesh's own order or, where that lets warps touch less memory, one along a curve that fills
    space. In every `GROUP` of it, those together that meet their neighbors in the same way: on a
    structured mesh a tile has then triangles of one kind, and its neighbors stand in the same order
    in one or two others, so that what a warp reads of them is contiguous.
    Elements that meet ghosts come behind all others, ghosts stay last.
    """
    way = (mesh.neighbor_faces + 1) @ (16, 4, 1)
    group = np.arange(mesh.K) // GROUP
    behind = np.append(mesh.at_edge, np.full(mesh.ghosts, 2))
    orders = (
        order[np.lexsort((np.arange(mesh.K), way[order], group, behind[order]))]
        for order in (np.arange(mesh.K), along_a_curve(mesh))
    )
    return min(orders, key=lambda order: sectors(mesh, order))


def sectors(mesh: Mesh, order: np.ndarray) -> int:
    """How many sectors of 32 bytes all warps touch that read a number of type fp32 across edges.

    One at each edge of each element: at least K / 8 for each of the three edges.
    """
    place = inverse_permutation(order)
    across = 3 * (place[mesh.neighbors[order]] // SECTOR) + mesh.neighbor_faces[order]
    warp = np.arange(mesh.K) // TILE
    return sum(len(np.unique(warp * (3 * mesh.K) + row)) for row in across.T)


def links(operator: Operator, order: np.ndarray) -> np.ndarray:
    """What each place meets on each edge, (3, K) uint32.

    4 n + g for edge g of the element at place n; 4 (2 b + wall) + 3 for row b of the boundary.
    """
    place = inverse_permutation(order)
    inside = operator.neighbors >= 0
    row = operator.element_edges - operator.interior
    walls = np.append(operator.kinds == WALL, False)  # one more: without a boundary there is none
    outside = 4 * (2 * row + walls[np.where(inside, -1, row)]) + 3
    links = np.where(inside, 4 * place[operator.neighbors] + operator.neighbor_edges, outside)
    return links[order].T.astype(np.uint32)


def _braces(values: np.ndarray) -> str:
    """An array as an initializer in CUDA C++; the digits are those of its own type."""
    if not values.ndim:
        return repr(values.item())
    return "{" + ",".join(map(_braces, values)) + "}"


@lru_cache(maxsize=64)
def kernel(shape: FusedShape, plan: FusedPlan) -> Kernel | CudaKernel:
    """The kernel, compiled once for equal arguments."""
    matrices = tables(shape, plan)
    if plan.language == "numba":
        return make_fused(shape, plan, matrices)
    macros = {
        "REAL": np.dtype(shape.dtype),
        "NP": shape.tables.Np,
        "NFP": shape.tables.Nfp,
        "NQ": len(matrices["interpolation"]),
        "NE": shape.tables.Ne,
        "FLUX": shape.flux.upper(),
        "THREADS": plan.threads,
        "BLOCKS": plan.blocks,
        "POINTS": plan.points,
        "PASSES": plan.passes,
        "SHARED": int(plan.shared),
        "COPIED": int(plan.copied),
        "UNROLL": plan.unroll,
        **{name.upper(): _braces(values) for name, values in matrices.items()},
    }
    return load(SOURCE, "fused", macros)


class FusedLauncher(Sweeps, StageByOneKernel):
    """A whole stage in one kernel, and with it a step of the classical Runge-Kutta method.

    A state on the device is flat: in tiles of 32 elements, of which `in_tiles` says the order,
    [tile][node][field][element]. The last tile has unused places.

    **A step without slopes.** The method takes k1 = f(un), u1 = un + dt/2 k1, k2 = f(u1),
    u2 = un + dt/2 k2, k3 = f(u2), u3 = un + dt k3, k4 = f(u3) and ends with
    un + dt (k1 + 2 k2 + 2 k3 + k4) / 6. The stages hold the slopes:
    dt k1 = 2 (u1 - un), dt k2 = 2 (u2 - un), dt k3 = u3 - un, so that the sum is

        un + ((u1 - un) + 2 (u2 - un) + (u3 - un)) / 3 + dt/6 f(u3).

    No sum of slopes is kept. A degree of freedom moves 2 words in the first stage (un, u1), 3 in
    the second and third (the last state, un, the new one) and 5 in the fourth (u3, un, u1, u2, and
    un again), 3.25 on average; with a sum of slopes it would be 3, 5, 5 and 3. Rounding is smaller,
    too: neighboring numbers have exact differences, so that what is lost is one rounding of the
    result and (1, 2, 1)/3 of those of the stages, 1.3 in the root mean square, and not one for each
    of the four slopes that are added to a sum, 2.

    Parameters
    ----------
    operator : Operator
    device : Device
        "cuda", or "simulator", where Numba's kernel runs.
    plan : FusedPlan, optional
        If not given, what `dgbook.gpu.plan.choose` says.

    Raises
    ------
    ValueError
        For a plan that is not legal on the device, or whose kernel cannot number so many numbers.

    Attributes
    ----------
    bad : array of one int32
        The smallest number of an element of which a step has made something else than a gas: a
        density or pressure at a node that is not positive. `HEALTHY` if there is none.
    """

    def __init__(self, operator: Operator, device: Device, plan: FusedPlan | None = None) -> None:
        dtype = operator.normal.dtype.name
        super().__init__(operator, device, dtype)
        self.shape = FusedShape(operator.element.order, dtype, operator.flux)
        K = operator.mesh.K
        self.places = padded(K, TILE)
        self.size = self.places * 4 * operator.element.Np
        self.order = in_tiles(operator.mesh)
        self.bad = device.array(np.array([HEALTHY], np.int32))
        self.own = operator.mesh.owned
        rx = operator.rx.reshape(4, K)[:, self.order]
        self.arrays = {
            "links": self._rows(links(operator, self.order)),
            "geometry": self._rows(rx.astype(self.real)),
            "names": device.array(self.order.astype(np.int32)),
        }
        self._load(plan or choose(FusedPlan, self.shape, device))

    def _kernel(self, plan: FusedPlan) -> Kernel | CudaKernel:
        if plan.language == "numba":  # CUDA C++ counts with 64 bits
            self._check_indices(self.size)
        return kernel(self.shape, plan)

    def _rows(self, values: np.ndarray) -> Any:
        """Rows of numbers (n, K), of own elements, each as long as whole tiles of them."""
        spare = padded(self.own, TILE) - self.own
        return self.device.array(np.pad(values[:, : self.own], ((0, 0), (0, spare))).ravel())

    # -- states ----------------------------------------------------------------------------

    def work(self, u: Any) -> tuple[Any, Any, Any]:
        """Room for the states of three stages."""
        return tuple(self.zeros() for _ in range(3))

    def _put(self, state: Any, some: slice, values: Any) -> None:
        """As `dgbook.nodal.launching.Launcher._put`."""
        tile, lane = np.divmod(self.place[some], TILE)
        Np = values.shape[2]
        first = self.device.array(tile * (Np * 4 * TILE) + lane)
        behind = self.device.array(TILE * (np.arange(4)[:, None, None] + 4 * np.arange(Np)))
        state[first[:, None] + behind] = values

    def entries(self, elements: np.ndarray, nodes: np.ndarray) -> np.ndarray:
        """As `dgbook.nodal.launching.Launcher.entries`."""
        tile, lane = np.divmod(self.place[elements][:, None], TILE)
        row = tile * self.operator.element.Np + nodes
        return (4 * row + np.arange(4)[:, None, None]) * TILE + lane

    def part(self, states: Any, places: slice) -> Any:
        """States, flat (..., entries), at some places: (..., 4, places, Np) on the device."""
        stack, Np = states.shape[:-1], self.operator.element.Np
        first, last = places.start // TILE, -(-places.stop // TILE)
        tiles = states.reshape(*stack, -1, Np, 4, TILE)[..., first:last, :, :, :]
        rows = np.moveaxis(tiles, -2, -4).swapaxes(-1, -2).reshape(*stack, 4, -1, Np)
        return rows[..., places.start - first * TILE : places.stop - first * TILE, :]

    # -- launches --------------------------------------------------------------------------

    def _launch(
        self,
        stage: int,
        u: Any,
        data: Any,
        kept: tuple,
        out: Any,
        dt: float,
        some: str = ALL,
    ) -> None:
        plan, K, edges = self.plan, self.own, len(self.operator.kinds)
        begin, blocks = self._range(some, plan.threads)
        if not blocks:
            return
        arrays = (self.arrays[name] for name in ("links", "geometry", "names"))
        numbers = np.uint32(K), np.uint32(edges), np.int32(stage), self.real(dt)
        self.kernel[blocks, plan.threads](u, data, *arrays, *kept, out, self.bad, *numbers, begin)
