"""Data layouts of the paper: microblocks of elements, and descriptors of the faces between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dgbook.gpu.layout import padded
from dgbook.maxwell.plan import DESCRIPTOR_INTEGERS, DESCRIPTOR_REALS, HALF_WARP, Shape
from dgbook.maxwell.reference import Operator
from dgbook.mesh import Mesh, partition
from dgbook.nodal.trace import WAYS

# Words of a face-pair descriptor. Sides are called minus and plus; the minus side is in the block.
FETCH_MINUS = 0  # where the element's nodal values begin, in each field
FETCH_PLUS = 1  # the same of the other side; of a boundary face, where its data begin
LIST_MINUS = 2  # index list: volume node of each face node
LIST_PLUS = 3  # index list: volume node of the other side that meets it
STORE_MINUS = 4  # where the face's fluxes begin in the block's buffer
STORE_PLUS = 5  # the same of the other side, if it is in the block
LIST_STORE = 6  # index list: place among the other side's face nodes
NORMAL = 0  # three numbers: the unit normal, out of the minus side
SCALE = 3  # sJ / (Z^- + Z^+)
Z_MINUS = 4
Z_PLUS = 5
UPWINDING = 6
MIRROR = 7  # two numbers: m_E and m_H of a boundary face
# Words of a block's counts: how many descriptors there are up to the end of each category.
INTERIOR = 0  # faces with both sides in the block
EXTERIOR = 1  # and those with the other side in another block
PAIRS = 2  # and those on the boundary: all
END = 3  # how many places of the flux buffer hold an element's fluxes
COUNTS = 4


@dataclass(frozen=True, eq=False)
class Microblocks:
    """Where each element's values are: klockner2009, Figures 3(b) and 4(b).

    K_M elements, one after another and padded to a multiple of 16 nodes, make a microblock, and M_B
    microblocks what one block of threads gathers fluxes for. Elements of such a block are neighbors
    in the mesh. A *slot* is a place for an element; slots at a block's end may be empty.

    Attributes
    ----------
    shape : Shape
    M_B : int
    n_M : int
        Number of microblocks, a multiple of M_B.
    slots : (K,) int64
        The slot of each element of the mesh.
    """

    shape: Shape
    M_B: int
    n_M: int
    slots: np.ndarray

    @property
    def blocks(self) -> int:
        """How many blocks of threads gather fluxes."""
        return self.n_M // self.M_B

    @property
    def nodes(self) -> np.ndarray:
        """Where in a field each element's nodal values begin, (K,)."""
        return self._begin(self.slots, self.shape.N_pM, self.shape.Np)

    @property
    def face_nodes(self) -> np.ndarray:
        """Where in a field each element's face values begin, (K,)."""
        return self._begin(self.slots, self.shape.N_fM, self.shape.Nf)

    def per_slot(self, values: np.ndarray, empty: float) -> np.ndarray:
        """Values of elements, (K, ...), in the order of slots, (n_M K_M, ...)."""
        result = np.full((self.n_M * self.shape.K_M, *values.shape[1:]), empty, values.dtype)
        result[self.slots] = values
        return result

    def pack(self, values: Any, packed: Any, elements: slice = slice(None)) -> None:
        """Write values of nodes or face nodes, (fields, elements, n), as the kernels have them.

        Both arrays are the host's, or a device's; the other one is flat. Its padding and empty
        slots stay as they are.
        """
        fields, _, n = values.shape
        packed.reshape(fields, -1)[:, self._entries(packed, n, elements)] = values

    def unpack(self, packed: Any, n: int, elements: slice = slice(None)) -> Any:
        """What `pack` wrote, (..., fields, elements, n) of arrays (..., entries)."""
        width = self.n_M * padded(self.shape.K_M * n, HALF_WARP)
        fields = packed.reshape(*packed.shape[:-1], -1, width)
        return fields[..., self._entries(packed, n, elements)]

    def _entries(self, packed: Any, n: int, elements: slice) -> Any:
        """Where in a field values are of which elements have n, (elements, n), as `packed`."""
        microblock = padded(self.shape.K_M * n, HALF_WARP)
        first = np.asarray(self._begin(self.slots[elements], microblock, n), like=packed)
        return first[:, None] + np.arange(n, like=packed)

    def _begin(self, slots: np.ndarray, microblock: int, element: int) -> np.ndarray:
        return slots // self.shape.K_M * microblock + slots % self.shape.K_M * element


def microblocks(mesh: Mesh, shape: Shape, M_B: int, method: str = "greedy") -> Microblocks:
    """Cut a mesh into blocks of at most K_M M_B elements, and number these block by block.

    Parameters
    ----------
    mesh : Mesh
    shape : Shape
    M_B : int
    method : {"greedy", "metis"}
        See ``dgbook.mesh.partition``. "greedy" leaves slots empty in the last block only.
    """
    size = shape.K_M * M_B
    part = partition(mesh, size, method)
    order = np.argsort(part, kind="stable")
    blocks = part[order]
    first = np.searchsorted(blocks, np.arange(blocks[-1] + 1))
    slots = np.empty(mesh.K, np.int64)
    slots[order] = blocks * np.int64(size) + np.arange(mesh.K) - first[blocks]
    return Microblocks(shape, M_B, (int(blocks[-1]) + 1) * M_B, slots)


@dataclass(frozen=True, eq=False)
class FacePairs:
    """Face-pair descriptors of all blocks: klockner2009, section 5.3.

    A face with both sides in one block has one descriptor there, and its two fluxes are computed
    together; a face between two blocks has one in each; a boundary face has one. The category is
    implicit in the position: a block's descriptors are sorted by it.

    Attributes
    ----------
    places : int
        For so many descriptors there is room in each block.
    counts : (blocks, COUNTS) uint32
    integers : (blocks, places, DESCRIPTOR_INTEGERS) uint32
    reals : (blocks, places, DESCRIPTOR_REALS)
    lists : (n, Nfp) uint32
        The global list of index lists, each of them once.
    """

    places: int
    counts: np.ndarray
    integers: np.ndarray
    reals: np.ndarray
    lists: np.ndarray


def face_pairs(operator: Operator, layout: Microblocks) -> FacePairs:
    """Describe every face of every block.

    The room for descriptors is that for the fullest block, rounded up to a multiple of 16, so that
    meshes of a kind have equal kernels: the paper's soft limit.
    """
    mesh, trace, shape = operator.mesh, operator.trace, layout.shape
    per_block = shape.K_M * layout.M_B
    block = layout.slots // per_block
    on_boundary = mesh.neighbors < 0
    neighbor = np.where(on_boundary, np.arange(mesh.K)[:, None], mesh.neighbors)
    inside = ~on_boundary & (block[neighbor] == block[:, None])

    # Of the two sides of an inner face the one in the lower slot is the minus side.
    mine = layout.slots[:, None] * 4 + np.arange(4)
    theirs = layout.slots[neighbor] * 4 + mesh.neighbor_faces
    k, f = np.nonzero(~inside | (mine < theirs))
    category = np.select([inside[k, f], ~on_boundary[k, f]], [INTERIOR, EXTERIOR], PAIRS)
    order = np.lexsort((mine[k, f], category, block[k]))
    k, f, category = k[order], f[order], category[order]

    counts = np.zeros((layout.blocks, COUNTS), np.int64)
    np.add.at(counts, (block[k], category), 1)
    counts = np.cumsum(counts, axis=1)
    filled = np.bincount(block, minlength=layout.blocks)
    counts[:, END] = filled // shape.K_M * shape.N_fM + filled % shape.K_M * shape.Nf
    places = padded(int(counts[:, PAIRS].max()), HALF_WARP)
    first = np.cumsum(counts[:, PAIRS]) - counts[:, PAIRS]
    place = (block[k], np.arange(len(k)) - first[block[k]])

    lists, minus, plus, store = _index_lists(operator)
    k_plus, f_plus = neighbor[k, f], mesh.neighbor_faces[k, f]
    way = np.where(category == PAIRS, 0, trace.links[k, f] % WAYS)
    boundary_number = np.zeros(mesh.neighbors.shape, np.int64)
    boundary_number[on_boundary] = np.arange(len(trace.boundary_faces))
    store_begin = layout.face_nodes - block * (layout.M_B * shape.N_fM)

    integers = np.zeros((layout.blocks, places, DESCRIPTOR_INTEGERS), np.uint32)
    words = {
        FETCH_MINUS: layout.nodes[k],
        FETCH_PLUS: np.where(
            category == PAIRS, boundary_number[k, f] * shape.Nfp, layout.nodes[k_plus]
        ),
        LIST_MINUS: minus[f],
        LIST_PLUS: plus[way],
        STORE_MINUS: store_begin[k] + f * shape.Nfp,
        STORE_PLUS: np.where(category == INTERIOR, store_begin[k_plus] + f_plus * shape.Nfp, 0),
        LIST_STORE: store[way],
    }
    for word, values in words.items():
        integers[(*place, word)] = values

    reals = np.zeros((layout.blocks, places, DESCRIPTOR_REALS), operator.lift.dtype)
    Z, Z_plus = operator.impedance[k, f], operator.neighbor_impedance[k, f]
    face_jacobian = operator.face_scale[k, f] * operator.jacobian[k]
    reals[(*place, slice(NORMAL, NORMAL + 3))] = operator.normals[k, f]
    reals[(*place, SCALE)] = face_jacobian / (Z.astype(np.float64) + Z_plus)
    reals[(*place, Z_MINUS)] = Z
    reals[(*place, Z_PLUS)] = Z_plus
    reals[(*place, UPWINDING)] = operator.upwinding[k, f]
    b = category == PAIRS
    at = (place[0][b], place[1][b], slice(MIRROR, MIRROR + 2))
    reals[at] = operator.mirrors[boundary_number[k, f][b]]
    return FacePairs(places, counts, integers, reals, lists)


def _index_lists(operator: Operator) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """All index lists, each once, and which to take for an own face and for each way to meet.

    Returns
    -------
    lists : (n, Nfp)
    own : (4,)
        Volume nodes of the own face f.
    plus, store : (24,)
        Volume nodes of the neighbor, and their places among its face nodes.
    """
    face_nodes = operator.element.face_nodes
    faces = len(face_nodes)
    opposite = operator.trace.opposite[:-1]  # the last way is that of ghosts, which are not used
    theirs = np.repeat(face_nodes, len(opposite) // faces, axis=0)
    places = (opposite[:, :, None] == theirs[:, None, :]).argmax(axis=2)
    candidates = np.vstack([face_nodes, opposite, places]).astype(np.uint32)
    lists, number = np.unique(candidates, axis=0, return_inverse=True)
    minus, plus, store = np.split(number.reshape(-1), [faces, faces + len(opposite)])
    return lists, minus, plus, store
