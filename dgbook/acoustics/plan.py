"""How the kernels of acoustic waves are launched: chan2015's in both bases, and the fused ones."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from dgbook.acoustics.kernels.bernstein_fused import GEOMETRY as SPARSE_GEOMETRY
from dgbook.acoustics.kernels.fused import GEOMETRY
from dgbook.acoustics.problem import FIELDS
from dgbook.arguments import check_choice, check_counts
from dgbook.gpu.layout import padded
from dgbook.gpu.limits import WARP
from dgbook.gpu.plan import Capability, LaunchPlan, rows_of, varied
from dgbook.nodal.bernstein import LANES
from dgbook.nodal.fused import VECTOR_BYTES, FusedPlan, NodalShape, apart
from dgbook.nodal.teams import TeamPlan

COLUMNS = ("stored", "computed")
SURFACES = ("factored", "optimal", "element")
MAX_ACCUMULATORS = 96  # of a thread: so many the compiler keeps in registers, in fp64 too
MAX_ROUNDS = 4
"""Points of the faces that a thread keeps in registers, four numbers each and those they meet."""
WARPS = (64, 128)
THREADS = (32, 64, 96, 128, 192, 256, 512)


@dataclass(frozen=True)
class Shape(NodalShape):
    """The sizes that kernels close over, in either basis; control points are nodes, too."""

    family: ClassVar[str] = "acoustics"
    fields: ClassVar[int] = len(FIELDS)
    unrolls: ClassVar[tuple[int, ...]] = (1, 2, 4, 5)

    @property
    def face_quads(self) -> int:
        """Loads of four entries in a row of L_0: 7 entries and one of padding, 4 of order 1."""
        return 1 if self.order == 1 else 2

    @property
    def lift_quads(self) -> int:
        """Loads of four entries in a row of E_L: Nfp + 3 entries at most."""
        return -(-(self.Nfp + 3) // LANES)

    @property
    def width(self) -> int:
        """Numbers of a node that lie together, 16 bytes."""
        return VECTOR_BYTES // self.itemsize

    @property
    def size(self) -> int:
        """Numbers in the state of an element."""
        return self.fields * self.Np

    def place(self, field: int) -> int:
        """How far a field of a node lies behind the node's p.

        Nodes of an element follow each other, `width` fields of each: in fp64 first p and W_1 of
        all nodes, then W_2 and W_3.
        """
        return field // self.width * self.width * self.Np + field % self.width

    def shared_bytes(self, plan: FusedPlan) -> int:
        """Shared memory of a block: states and face numbers; for CUDA C++ geometry and links too.

        The elements begin a number of vectors apart that leaves them in different banks, see
        kernels/fused/shared.cuh.
        """
        if plan.language == "numba":
            return plan.elements * (self.size + 4 * self.Nfp) * self.itemsize
        words = self.fields // self.width  # vectors a node
        if plan.tensor:
            columns, face = padded(self.Np, self.step), padded(self.Nfp, self.step)
            state = columns | 1 if words == 1 else apart(words * columns, 4)
            flux = apart(4 * face // self.width, 2)
        else:
            state = words * padded(self.Np, 2) | 1
            flux = 4 * padded(self.Nfp, 2) // self.width | 1
        described = GEOMETRY * self.itemsize + 4 * 4
        return plan.elements * (VECTOR_BYTES * (state + flux) + described)

    def stuck(self, plan: FusedPlan) -> str:
        """Why Numba's kernel cannot take so many columns at a time, or an empty string."""
        if plan.unroll in self.unrolls and self.Np % plan.unroll == 0:
            return ""
        return (
            f"{plan.unroll} columns at a time; allowed: of {self.unrolls} those that divide "
            f"{self.Np}"
        )


# ---------------------------------------------------------------------------- the paper's kernels


class PaperPlan(LaunchPlan):
    """What chan2015's sets of kernels have in common: the parts of each are tuned one by one.

    Attributes
    ----------
    basis : {"nodal", "bernstein"}
    tuned : mapping
        By part the fields that it decides.
    """

    basis: ClassVar[str] = "nodal"
    tuned: ClassVar[Mapping[str, tuple[str, ...]]]
    K_U: int

    def subjects(self, shape: Shape) -> dict[str, tuple[str, ...]]:
        return {f"{self.subject(shape)}/{part}": names for part, names in self.tuned.items()}

    @abstractmethod
    def choices(self, shape: Shape) -> dict[str, Iterable[Any]]:
        """What is tried in each field."""

    def variants_of(self, shape: Shape, part: str) -> list[Self]:
        """The legal plans with other values in the fields of a part."""
        choices = self.choices(shape)
        return varied(self, shape, **{name: choices[name] for name in self.tuned[part]})

    def candidates(self, shape: Shape, capability: Capability = None) -> list[Self]:
        variants = (self.variants_of(shape, part) for part in self.tuned)
        return list(dict.fromkeys(plan for plans in variants for plan in plans))


@dataclass(frozen=True)
class NodePlan(PaperPlan):
    """How many elements a block of the node-per-thread kernels works on (chan2015, section 4.2).

    Parameters
    ----------
    K_V, K_S, K_U : int
        Of the volume kernel, the surface kernel and the update. A block has Np threads an element,
        that of the surface kernel max(Np, 4 Nfp).

    Raises
    ------
    TypeError, ValueError
        If one is no positive integer.
    """

    K_V: int
    K_S: int
    K_U: int

    tuned: ClassVar = {"volume": ("K_V",), "surface": ("K_S",), "update": ("K_U",)}

    def __post_init__(self) -> None:
        check_counts(self)

    @classmethod
    def default(cls, shape: Shape, capability: Capability = None, variant: str = "") -> Self:
        """About 256 threads per block."""
        K_V, K_S = (max(1, 256 // n) for n in (shape.Np, max(shape.Np, shape.Nf)))
        return cls(K_V, K_S, K_V)

    def subject(self, shape: Shape) -> str:
        return "acoustics/node"

    def choices(self, shape: Shape) -> dict[str, Iterable[Any]]:
        counts, lift = (rows_of(n, THREADS) for n in (shape.Np, max(shape.Np, shape.Nf)))
        return {"K_V": counts, "K_S": lift, "K_U": counts}

    def block(self, shape: Shape) -> dict[str, int]:
        return {
            "volume": self.K_V * shape.Np,
            "surface": self.K_S * max(shape.Np, shape.Nf),
            "update": self.K_U * shape.Np,
        }

    def shared_bytes(self, shape: Shape) -> dict[str, int]:
        word = shape.fields * shape.itemsize
        return {"volume": word * self.K_V * shape.Np, "surface": word * self.K_S * shape.Nf}


@dataclass(frozen=True)
class ElementPlan(PaperPlan):
    """How the element-per-thread kernels are blocked (chan2015, section 4.2.1).

    Parameters
    ----------
    K_V, K_S, K_U : int
        Elements a block of the volume kernel, of the flux and the lift kernel, and of the update.
        But for the update, which has Np threads an element, they are threads, best in warps.
    rows_V, rows_S : int
        Rows of a sub-block of the derivative matrices and of the lift. A thread has 12 and 4
        accumulators a row.
    columns : int
        Columns of a sub-block.
    parts : int
        Blocks of threads among which the blocks of rows of the same elements are shared out; 1 in
        the paper. More of them occupy a GPU that has more multiprocessors than the mesh warps.

    Raises
    ------
    TypeError, ValueError
        If one is no positive integer.
    """

    K_V: int
    K_S: int
    K_U: int
    rows_V: int = 4
    rows_S: int = 8
    columns: int = 16
    parts: int = 1

    tuned: ClassVar = {
        "volume": ("K_V", "rows_V"),
        "rhs": ("columns", "parts"),
        "surface": ("K_S", "rows_S"),
        "update": ("K_U",),
    }

    def __post_init__(self) -> None:
        check_counts(self)

    @classmethod
    def default(cls, shape: Shape, capability: Capability = None, variant: str = "") -> Self:
        """64 elements a block."""
        return cls(64, 64, max(1, 256 // shape.Np))

    def subject(self, shape: Shape) -> str:
        return "acoustics/element"

    def choices(self, shape: Shape) -> dict[str, Iterable[Any]]:
        warps = {"K_V": WARPS, "K_S": WARPS, "K_U": rows_of(shape.Np, THREADS)}
        blocks = {"rows_V": (2, 4, 8), "rows_S": (4, 8, 16)}
        return warps | blocks | {"columns": (16, 32), "parts": (1, 2, 4)}

    def block(self, shape: Shape) -> dict[str, int]:
        return {
            "volume": self.K_V,
            "flux": self.K_S,
            "lift": self.K_S,
            "update": self.K_U * shape.Np,
        }

    def shared_bytes(self, shape: Shape) -> dict[str, int]:
        word = self.columns * shape.itemsize
        return {"volume": 3 * word * self.rows_V, "lift": word * self.rows_S}

    def illegal(self, shape: Shape, capability: Capability = None) -> str:
        accumulators = max(12 * self.rows_V, 4 * self.rows_S)
        if accumulators > MAX_ACCUMULATORS:
            return f"{accumulators} accumulators a thread; allowed: {MAX_ACCUMULATORS}"
        return super().illegal(shape, capability)


@dataclass(frozen=True)
class BernsteinPlan(PaperPlan):
    """How the kernels of the Bernstein basis are launched.

    Parameters
    ----------
    K_V, K_S, K_U : int
        Elements a block of the volume, surface and update kernels (chan2015, section 4.2).
    surface : {"factored", "optimal", "element"}
        How fluxes are lifted: by E_L and L_0, slice by slice, or so by one thread an element.
    columns : {"stored", "computed"}
        Where the volume kernel has the columns of the derivatives from: it loads them, or computes
        them from a word a row.

    Raises
    ------
    TypeError, ValueError
        If a count is no positive integer, or the surface or columns unknown.
    """

    K_V: int
    K_S: int
    K_U: int
    surface: str = "factored"
    columns: str = "stored"

    basis = "bernstein"
    variants = ("factored", "factored")
    tuned: ClassVar = {"volume": ("K_V", "columns"), "surface": ("K_S",), "update": ("K_U",)}

    def __post_init__(self) -> None:
        check_counts(self, "K_V", "K_S", "K_U")
        check_choice("surface", self.surface, SURFACES)
        check_choice("columns", self.columns, COLUMNS)

    @classmethod
    def default(cls, shape: Shape, capability: Capability = None, variant: str = "") -> Self:
        """Blocks of about 128 threads, for a `surface`."""
        K = max(1, 128 // shape.Np)
        return cls(K, 128 if variant == "element" else K, K, variant or "factored")

    def subject(self, shape: Shape) -> str:
        return f"acoustics/{'unblocked' if self.surface == 'element' else self.surface}"

    def subjects(self, shape: Shape) -> dict[str, tuple[str, ...]]:
        """Only the lift differs: the other parts are tuned once for all."""
        lift = {f"{self.subject(shape)}/surface": self.tuned["surface"]}
        others = {f"acoustics/factored/{part}": self.tuned[part] for part in ("volume", "update")}
        return lift | others

    def choices(self, shape: Shape) -> dict[str, Iterable[Any]]:
        counts = rows_of(shape.Np, THREADS)
        lift = WARPS if self.surface == "element" else counts
        return {"K_V": counts, "K_S": lift, "K_U": counts, "columns": COLUMNS}

    def surface_block(self, shape: Shape) -> tuple[int, int]:
        """Threads of a block of the surface kernel, those of an element and elements."""
        return (1 if self.surface == "element" else shape.Np), self.K_S

    def block(self, shape: Shape) -> dict[str, int]:
        return {
            "K_V": self.K_V * shape.Np,
            "K_S": math.prod(self.surface_block(shape)),
            "K_U": self.K_U * shape.Np,
        }

    def shared_bytes(self, shape: Shape) -> dict[str, int]:
        """Of the volume kernel the four fields of each element.

        Of the surface kernel s on the faces, and four fluxes there or the four sweeps; "element"
        has none.
        """
        swept = shape.Np if self.surface == "optimal" else len(FIELDS) * shape.Nfp
        lift = 0 if self.surface == "element" else self.K_S * 4 * (shape.Nfp + swept)
        return {
            "K_V": self.K_V * len(FIELDS) * shape.Np * shape.itemsize,
            "K_S": lift * shape.itemsize,
        }


KERNEL_SETS: dict[str, tuple[type[PaperPlan], str]] = {
    "node": (NodePlan, ""),
    "element": (ElementPlan, ""),
    "factored": (BernsteinPlan, "factored"),
    "optimal": (BernsteinPlan, "optimal"),
    "unblocked": (BernsteinPlan, "element"),
}
"""By name the plans and their variant of kernels that make a stage together (chan2015, section
4.2): nodal ones with a thread a node or a thread an element, those of the Bernstein basis, its
optimal ones, and those whose lift has a thread an element."""


# ------------------------------------------------------------------------------ the fused kernels


# Threads of a team, its elements and teams a block, by order: of the ways to give every thread at
# most one point of the faces, those that leave few threads idle, with as few warps as can be.
TEAMS = {
    1: (32, 10, 4),
    2: (32, 5, 4),
    3: (32, 3, 4),
    4: (32, 2, 4),
    5: (64, 3, 1),
    6: (32, 1, 4),
    7: (128, 3, 1),
    8: (96, 2, 1),
    9: (64, 1, 1),
}
FIT = {"float32": 64, "float64": 80}
"""Registers a thread that suffice for one point of the faces."""


@dataclass(frozen=True)
class BernsteinFusedPlan(TeamPlan):
    """Who works on what in the fused kernel of the Bernstein basis, the sparse one: `TeamPlan`.

    Its rival is the nodal basis's, see `dgbook.acoustics.launch.bernstein_fused.launcher`: where
    elements are smallest, a plan of that one is the fastest.
    """

    rivals = (FusedPlan,)

    @classmethod
    def default(cls, shape: Shape, capability: Capability = None, variant: str = "") -> Self:
        """What needs few instructions and leaves room for many warps.

        Above order 9, and where shared memory is small, a team has one element and as many threads
        as a face has points.
        """
        small = (padded(shape.Nfp, WARP), 1, 1)
        for lanes, elements, teams in (TEAMS.get(shape.order, small), small):
            plan = cls(variant or "cuda", lanes, elements, teams)
            if plan.dynamic:
                plan = plan.fitting(shape, FIT[shape.dtype], capability)
            if not plan.illegal(shape, capability):
                break
        return plan

    def subject(self, shape: Shape) -> str:
        return f"acoustics/bernstein/{self.language}"

    def shared_bytes(self, shape: Shape) -> int:
        """Of each element the derivatives in degree N - 1, fluxes, the state and the slices.

        Four numbers each; for CUDA C++ geometry and links, too.
        """
        points = (shape.Np - shape.Nfp) + shape.Nfp + 2 * shape.Np
        described = SPARSE_GEOMETRY * shape.itemsize + 4 * 4 if self.language == "cuda" else 0
        return self.elements_of_block * (4 * points * shape.itemsize + described)

    def illegal(self, shape: Shape, capability: Capability = None) -> str:
        rounds = -(-self.elements * shape.Nfp // self.lanes)
        if rounds > MAX_ROUNDS:
            return f"{rounds} points of the faces a thread; allowed: {MAX_ROUNDS}"
        return super().illegal(shape, capability)

    def candidates(self, shape: Shape, capability: Capability = None) -> list[Self]:
        """This plan first.

        Teams of one warp to six, with as many elements as give each thread one point of the faces,
        or two: four of either, those that need fewest instructions an element. For CUDA C++ with
        two limits of the registers each; this plan also with fewer registers, and with two turns of
        the last loop under way together.
        """
        plans, fit = [self], FIT[shape.dtype]
        if self.language == "cuda":
            plans += [replace(self, unroll=2), self.fitting(shape, fit - 16, capability)]
        for rounds, least in ((1, fit - 16), (2, fit + 16)):
            dealt = [
                BernsteinFusedPlan(self.language, lanes, elements, 4 if lanes == WARP else 1)
                for lanes in range(WARP, 7 * WARP, WARP)
                if (elements := rounds * lanes // shape.Nfp)
            ]
            legal = [plan for plan in dealt if not plan.illegal(shape, capability)]
            best = sorted(legal, key=lambda plan: _instructions(plan, shape))[:4]
            limits = (least, least + 16) if self.language == "cuda" else ()
            plans += [p.fitting(shape, n, capability) for p in best for n in limits] or best
        return list(dict.fromkeys(plans))


def _instructions(plan: BernsteinFusedPlan, shape: Shape) -> float:
    """About how many instructions threads execute an element, idle ones counted."""
    lower = shape.Np - shape.Nfp
    per_thread = 110 + sum(
        instructions * -(-plan.elements * points // plan.lanes)
        for points, instructions in (
            (shape.Nfp, 250 + 14 * shape.order),
            (lower, 40),
            (shape.Np, 110),
        )
    )
    return per_thread * plan.lanes / plan.elements
