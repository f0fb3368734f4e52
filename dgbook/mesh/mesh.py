"""The data of a conforming simplicial mesh, frozen, and the numbering that everything relies on."""

import itertools
from dataclasses import dataclass, field

import numpy as np


class MeshError(ValueError):
    """A mesh, or a file that should hold one, cannot be used.

    The message names the file (or the mesh), the element, vertex or face at fault, and what to do.
    """


@dataclass(frozen=True, eq=False)
class Labels:
    """How messages name a mesh and its parts: by the tags of the file, or by plain indices."""

    source: str = "mesh"
    element_tags: np.ndarray | None = None
    vertex_tags: np.ndarray | None = None

    def element(self, k: int) -> str:
        """Name of element k."""
        return f"element {k if self.element_tags is None else self.element_tags[k]}"

    def vertex(self, v: int) -> str:
        """Name of vertex v; files call it a node."""
        return f"vertex {v}" if self.vertex_tags is None else f"node {self.vertex_tags[v]}"


def face_vertices(dim: int) -> np.ndarray:
    """Local vertex numbers of the faces of a simplex, shape (dim+1, dim).

    Face f lies opposite vertex f; its vertices are the remaining ones in increasing order. In one
    dimension this puts face 0 at vertex 1 (the right end) and face 1 at vertex 0 (the left end).
    """
    return np.array(
        [[v for v in range(dim + 1) if v != f] for f in range(dim + 1)], dtype=np.int32
    ).reshape(dim + 1, dim)


def vertex_permutations(dim: int) -> np.ndarray:
    """The dim! permutations of a face's vertices that ``Mesh.face_permutation`` counts.

    Shape (dim!, dim), in the lexicographic order of ``itertools.permutations(range(dim))``.
    """
    return np.array(list(itertools.permutations(range(dim))), dtype=np.int32)


@dataclass(frozen=True, eq=False, repr=False)
class Mesh:
    """A conforming mesh of straight-sided simplices in one, two or three dimensions.

    Face f of an element lies opposite its vertex f, and its vertices are the remaining ones in
    increasing local order (``face_vertices``). Elements are positively oriented: the affine map
    from the biunit reference simplex has a positive determinant. The arrays are read-only.

    ``build`` makes a Mesh from vertices and elements, ``box`` and ``read`` make whole meshes;
    this constructor checks shapes only.

    Attributes
    ----------
    vertices : (Nv, dim) float64
    elements : (K, dim+1) int32
        Vertex numbers.
    neighbors : (K, dim+1) int32
        The element across face f of element k, or -1 where that face is on the boundary.
    neighbor_faces : (K, dim+1) int32
        The number that the shared face has in the neighbor, or -1 on the boundary.
    face_permutation : (K, dim+1) int32
        How the two sides number the vertices of their shared face: with
        ``perm = vertex_permutations(dim)[face_permutation[k, f]]``, vertex number j of the
        neighbor's face is vertex number ``perm[j]`` of mine, for every j. The two sides hold
        inverse permutations. On periodic faces "is" means "is the translate of". -1 on the
        boundary.
    boundary : {name: (nf, 2) int32}
        The boundary faces by name, rows (element, face), ascending. Faces that belong to no named
        group are under ``"unnamed"``; a face in two groups is under both names. Faces made periodic
        are no longer here.
    interfaces : {name: (nf, 2) int32}
        Named faces in the interior, each seen from the lower-numbered of its two elements.
    regions : {name: (n,) int32}
        Elements by the name of their volume group, ascending.
    ghosts : int
        So many elements, the last ones, are copies of another part's (``dgbook.parallel``): others
        meet them, nothing is computed for them, and what no own element meets of their faces is
        linked to itself.
    numbers : (K,) int32, optional
        Of a part the numbers of its elements in the whole mesh. They say which side of a face is
        the first, so that all parts agree.
    """

    vertices: np.ndarray
    elements: np.ndarray
    neighbors: np.ndarray
    neighbor_faces: np.ndarray
    face_permutation: np.ndarray
    boundary: dict[str, np.ndarray]
    interfaces: dict[str, np.ndarray] = field(default_factory=dict)
    regions: dict[str, np.ndarray] = field(default_factory=dict)
    ghosts: int = 0
    numbers: np.ndarray | None = None

    def __post_init__(self):
        _freeze(self, "vertices", _read_only(self.vertices, np.float64))
        if self.vertices.ndim != 2 or self.vertices.shape[1] not in (1, 2, 3):
            raise ValueError(f"vertices must have shape (Nv, 1, 2 or 3), got {self.vertices.shape}")
        shape = (len(self.elements), self.dim + 1)
        for name in ("elements", "neighbors", "neighbor_faces", "face_permutation"):
            array = _read_only(getattr(self, name), np.int32)
            if array.shape != shape:
                raise ValueError(f"{name} must have shape {shape}, got {array.shape}")
            _freeze(self, name, array)
        for name in ("boundary", "interfaces", "regions"):
            groups = {g: _read_only(a, np.int32) for g, a in getattr(self, name).items()}
            _freeze(self, name, groups)

    @property
    def dim(self) -> int:
        """Number of space dimensions."""
        return self.vertices.shape[1]

    @property
    def K(self) -> int:
        """Number of elements."""
        return len(self.elements)

    @property
    def owned(self) -> int:
        """Number of elements that are no ghosts."""
        return self.K - self.ghosts

    @property
    def at_edge(self) -> np.ndarray:
        """Which own elements meet ghosts, (owned,) bools."""
        return (self.neighbors[: self.owned] >= self.owned).any(axis=1)

    @property
    def boundary_faces(self) -> np.ndarray:
        """Every boundary face once, rows (element, face), shape (nf, 2)."""
        return np.argwhere(self.neighbors < 0).astype(np.int32)

    def faces(self, name: str) -> np.ndarray:
        """The boundary faces called `name`, rows (element, face), shape (nf, 2).

        Raises ValueError, listing the names that exist, if there is no such boundary.
        """
        if name not in self.boundary:
            known = ", ".join(repr(n) for n in sorted(self.boundary)) or "none at all"
            raise ValueError(f"the mesh has no boundary named {name!r}; its boundaries: {known}")
        return self.boundary[name]

    def __repr__(self) -> str:
        groups = "".join(
            f", {kind}={{{', '.join(f'{n!r}: {len(a)}' for n, a in content.items())}}}"
            for kind in ("boundary", "interfaces", "regions")
            if (content := getattr(self, kind))
        )
        return f"Mesh(dim={self.dim}, K={self.K}, Nv={len(self.vertices)}{groups})"


def _read_only(array, dtype) -> np.ndarray:
    """A contiguous view of `array` (or a copy, where the dtype differs) that cannot be written."""
    view = np.ascontiguousarray(array, dtype).view()
    view.flags.writeable = False
    return view


def _freeze(instance, name, value):
    """Set a field of a frozen dataclass, for use while it is being made."""
    object.__setattr__(instance, name, value)
