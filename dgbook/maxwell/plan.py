"""How Maxwell's kernels are launched: klockner2009's (w_p, w_i, w_s), and the fused one's shape."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from math import isqrt
from typing import ClassVar, Self

import numpy as np

from dgbook.arguments import check_choice, check_counts
from dgbook.gpu import Device
from dgbook.gpu.layout import microblock_size, padded
from dgbook.gpu.limits import STATIC_SHARED_LIMIT, WARP, architecture, resident_blocks
from dgbook.gpu.plan import Capability, LaunchPlan, choose, rows_of, varied
from dgbook.maxwell.kernels.bernstein_fused import GEOMETRY, room
from dgbook.nodal.fused import VECTOR_BYTES, FusedPlan, NodalShape, apart
from dgbook.nodal.teams import TeamPlan

FIELDS = 6
HALF_WARP = 16  # T/2, the paper's granularity
DESCRIPTOR_INTEGERS = 7
DESCRIPTOR_REALS = 9
STRATEGIES = ("field", "matrix")
PARTITIONS = ("greedy", "metis")
ORDERS = ("mitigating", "plain")
MAX_ACCUMULATORS = 24  # in registers; the compiler unrolls loops over so many


@dataclass(frozen=True)
class Shape:
    """The sizes that the kernels close over.

    Attributes
    ----------
    Np, Nfp : int
        Nodes of an element and of a face.
    K_M : int
        Elements a microblock; 1 for none, that is each element padded by itself.
    dtype : str
    """

    Np: int
    Nfp: int
    K_M: int
    dtype: str

    @property
    def order(self) -> int:
        """N, of which (N+1)(N+2)/2 = Nfp."""
        return (isqrt(8 * self.Nfp + 1) - 3) // 2

    @property
    def Nf(self) -> int:
        """Face nodes of an element, 4 Nfp: klockner2009's Nf Nfp."""
        return 4 * self.Nfp

    @property
    def N_pM(self) -> int:
        """Nodes of a microblock, padded to half a warp: Figure 3(b)."""
        return padded(self.K_M * self.Np, HALF_WARP)

    @property
    def N_fM(self) -> int:
        """Face nodes of a microblock, padded to half a warp: Figure 4(b)."""
        return padded(self.K_M * self.Nf, HALF_WARP)

    @property
    def itemsize(self) -> int:
        """Bytes of a real number."""
        return np.dtype(self.dtype).itemsize


def shape_of(order: int, dtype: str, K_M: int | None = None) -> Shape:
    """The shape of tetrahedra of an order; K_M elements a microblock, by default the paper's."""
    Np, Nfp = (order + 1) * (order + 2) * (order + 3) // 6, (order + 1) * (order + 2) // 2
    return Shape(Np, Nfp, microblock_size(Np) if K_M is None else K_M, np.dtype(dtype).name)


@dataclass(frozen=True)
class FusedShape(NodalShape):
    """The sizes that the fused kernel closes over.

    Attributes
    ----------
    order, dtype
        As of `NodalShape`.
    materials : bool
        Whether the impedance varies, so that each face needs one number more.
    """

    materials: bool = False
    family: ClassVar[str] = "maxwell"
    fields: ClassVar[int] = FIELDS

    @property
    def even_Np(self) -> int:
        """Nodes that the state has room for: a pair of them is a multiple of 16 bytes."""
        return padded(self.Np, 2)

    @property
    def geometry(self) -> int:
        """Numbers that describe an element and its faces."""
        return 22 if self.materials else 18

    @property
    def keeps_state(self) -> bool:
        """Whether du/dt gets a place of its own, so that u stays in shared memory for the update.

        Where elements are small. And only for even Np: nobody writes du/dt of a padding node.
        """
        return self.Np <= 20 and self.Np == self.even_Np

    def shared_bytes(self, plan: FusedPlan) -> int:
        """Shared memory of a block: states and face numbers; for CUDA C++ geometry and links too.

        The rows begin a number of vectors apart that leaves them in different banks: shared.cuh.
        """
        if plan.language == "numba":
            return plan.elements * (6 * self.even_Np + 8 * self.Nfp) * self.itemsize
        width = VECTOR_BYTES // self.itemsize
        if plan.tensor:
            groups = plan.elements
            state = apart(6 * padded(self.Np, self.step) // width, 4)
            flux = apart(8 * padded(self.Nfp, self.step) // width, 4)
        else:
            groups = plan.rows
            state = plan.elements_inline * 6 * self.even_Np // width | 1
            flux = plan.elements_inline * 8 * padded(self.Nfp, 2) // width | 1
        if self.keeps_state:
            flux = max(flux, state)
        described = plan.elements * (self.geometry * self.itemsize + 4 * 4)
        return VECTOR_BYTES * groups * (state + flux) + described

    def stuck(self, plan: FusedPlan) -> str:
        """Why Numba's kernel cannot take so many columns at a time, or an empty string."""
        if plan.unroll in self.unrolls and padded(self.Np, plan.unroll) <= self.even_Np:
            return ""
        return f"{plan.unroll} columns at a time; allowed: 1, 2, and 4 if they fill {self.even_Np}"


@dataclass(frozen=True)
class LocalShape(FusedShape):
    """The same with local time steps, where a term and the next one have a place each."""

    @property
    def keeps_state(self) -> bool:
        """Always."""
        return True


SIZES = tuple((lanes, n) for lanes in (WARP, 2 * WARP, 4 * WARP) for n in (1, 2, 3, 4, 6, 8))
"""Threads of a team and its elements that plans for the Bernstein basis may have."""
ENOUGH_WARPS = 16
"""On a multiprocessor, to have something to do while others wait: assumed, not measured."""


@dataclass(frozen=True)
class BernsteinFusedPlan(TeamPlan):
    """Who works on what in the fused kernel of the Bernstein basis: `TeamPlan`."""

    @classmethod
    def default(cls, shape: FusedShape, capability: Capability = None, variant: str = "") -> Self:
        """What leaves few threads idle, and has room for many warps."""
        plans = cls._sizes(shape, capability, variant or "cuda")
        return min(plans, key=lambda plan: plan._slowness(shape, capability))

    @classmethod
    def _sizes(cls, shape: FusedShape, capability: Capability, language: str) -> list[Self]:
        """Legal plans of all `SIZES`; the smallest one if none is."""
        plans = [cls(language, lanes, n, max(1, 2 * WARP // lanes)) for lanes, n in SIZES]
        legal = [plan for plan in plans if not plan.illegal(shape, capability)]
        plans = legal or [cls(language, WARP, 1, 1)]
        if language == "cuda":
            plans = [plan.fitting(shape, registers(shape), capability) for plan in plans]
        return plans

    def _slowness(self, shape: FusedShape, capability: Capability) -> float:
        """Turns of the loops per element over all threads, and as many more as warps are few."""
        limits, threads = architecture(capability or (7, 5)), self.block(shape)
        blocks = resident_blocks(limits, threads, registers(shape), self.shared_bytes(shape))
        E, warps = self.elements, max(1, blocks * threads // WARP)
        counts = ((E * shape.Np, 3), (4 * E * shape.Nfp, 1), (8 * E, 0.1 * shape.Np))
        turns = sum(weight * -(-count // self.lanes) for count, weight in counts)
        return turns * self.lanes / E * max(1.0, ENOUGH_WARPS / warps)

    def subject(self, shape: FusedShape) -> str:
        return f"maxwell/bernstein/{self.language}"

    def shared_bytes(self, shape: FusedShape) -> int:
        """Of each element the state, its curls in degree N - 1, and eight planes to be lifted.

        A plane holds a number of a face: its points, then in Numba beside them, in CUDA C++ in
        their place, all slices. CUDA C++ has geometry and links, too.
        """
        lower, width = shape.Np - shape.Nfp, VECTOR_BYTES // shape.itemsize
        if self.language == "numba":
            return sum(room(shape, self.elements_of_block)) * shape.itemsize
        plane = width * (-(-shape.Np // width) | 1)
        numbers = self.elements * (6 * shape.even_Np + 8 * plane + GEOMETRY)
        numbers += padded(6 * self.elements * lower, width)
        return self.teams * (numbers * shape.itemsize + self.elements * VECTOR_BYTES)

    def candidates(self, shape: FusedShape, capability: Capability = None) -> list[Self]:
        """This plan first, then the ten of all `SIZES` of which the best is to be expected.

        For CUDA C++ the first five also with fewer registers, and this plan with two turns of its
        loops under way together.
        """
        plans = self._sizes(shape, capability, self.language)
        plans = sorted(plans, key=lambda plan: plan._slowness(shape, capability))[:10]
        if self.language == "cuda":
            fewer = registers(shape) - 16
            plans = [replace(self, unroll=2), *plans]
            plans += [plan.fitting(shape, fewer, capability) for plan in plans[1:6]]
        return list(dict.fromkeys([self, *plans]))


def registers(shape: FusedShape) -> int:
    """Of a thread of the Bernstein kernel: its lift keeps a face, its update a point."""
    return max(56, 50 + shape.Nfp) if shape.itemsize == 4 else max(92, 60 + 2 * shape.Nfp)


@dataclass(frozen=True)
class EitherPlan(FusedPlan):
    """A plan of the fused kernel of either basis: which is faster, where both were timed.

    ``dgbook.lab.maxwell.tune_basis`` times them. Where it has not, on this GPU or one of which
    plans are shipped, it is the nodal basis.
    """

    rivals = (BernsteinFusedPlan,)

    def subject(self, shape: FusedShape) -> str:
        return f"maxwell/basis/{self.language}"


def faster_basis(shape: FusedShape, device: Device) -> str:
    """The basis whose fused kernel is known to be the faster on a device, "nodal" if none is."""
    plan = choose(EitherPlan, shape, device)
    return "bernstein" if isinstance(plan, BernsteinFusedPlan) else "nodal"


@dataclass(frozen=True)
class GatherPlan(LaunchPlan):
    """How fluxes are gathered (Algorithm 3).

    Parameters
    ----------
    w_p : int
        Face pairs at a time: rows of Nfp threads in a block.
    M_B : int
        Microblocks a block. More of them have more of their neighbors inside, and need more shared
        memory for the fluxes.
    partition : {"greedy", "metis"}
        How the mesh is cut into blocks, see ``dgbook.mesh.partition``. The paper takes METIS from
        about K_M M_B = 10 elements on, and the greedy Algorithm 2 below.
    """

    w_p: int
    M_B: int
    partition: str = "greedy"

    def __post_init__(self) -> None:
        check_counts(self, "w_p", "M_B")
        check_choice("partition", self.partition, PARTITIONS)

    @classmethod
    def default(cls, shape: Shape, capability: Capability = None, variant: str = "") -> Self:
        """About 128 threads for 16 elements, or as many as leave room for two blocks in 48 KiB."""
        w_p = max(1, 128 // shape.Nfp)
        blocks = (cls(w_p, M_B) for M_B in range(max(1, 16 // shape.K_M), 1, -1))
        fitting = (p for p in blocks if 2 * p.shared_bytes(shape) <= STATIC_SHARED_LIMIT)
        return next(fitting, cls(w_p, 1))

    def subject(self, shape: Shape) -> str:
        """Under which name the tuner remembers timings."""
        return "maxwell/paper/gather"

    def candidates(self, shape: Shape, capability: Capability = None) -> list[Self]:
        """64 to 512 threads, 1 to 16 microblocks."""
        rows = rows_of(shape.Nfp, (64, 128, 256, 512))
        return varied(self, shape, M_B=(1, 2, 3, 4, 6, 8, 12, 16), w_p=rows)

    def block(self, shape: Shape) -> int:
        """Threads of a block."""
        return self.w_p * shape.Nfp

    def shared_bytes(self, shape: Shape) -> int:
        """The flux buffer, and descriptors of as many face pairs as there can be, one a face."""
        pairs = padded(4 * shape.K_M * self.M_B, HALF_WARP)
        descriptor = 4 * DESCRIPTOR_INTEGERS + shape.itemsize * DESCRIPTOR_REALS
        buffer = FIELDS * self.M_B * shape.N_fM * shape.itemsize
        return buffer + pairs * descriptor


@dataclass(frozen=True)
class LocalPlan(LaunchPlan):
    """How an element-local matrix is applied: what lifting and differentiation have in common.

    Parameters
    ----------
    strategy : {"field", "matrix"}
        What lies in shared memory: the field's values (Algorithm 1), or a segment of the matrix
        (Algorithm 4).
    w_p : int
        Microblocks that a block works on in parallel.
    w_i : int
        Microblocks inline: a thread loads an entry of the matrix once for all of them.
    w_s : int
        Groups of w_p w_i microblocks that a block works on one after another. Only "matrix", which
        has a matrix to load before; 1 for "field".
    order : {"mitigating", "plain"}
        Of the threads, for "field": Figure 5(b) or 5(a). "matrix" needs none.
    N_R : int
        Rows of a segment, for "matrix": a multiple of 16.
    """

    strategy: str
    w_p: int
    w_i: int = 1
    w_s: int = 1
    order: str = "mitigating"
    N_R: int = HALF_WARP

    outputs: ClassVar[int]
    name: ClassVar[str]

    def __post_init__(self) -> None:
        check_choice("strategy", self.strategy, STRATEGIES)
        check_choice("order", self.order, ORDERS)
        check_counts(self, "w_p", "w_i", "w_s", "N_R")
        if self.N_R % HALF_WARP:
            raise ValueError(f"N_R = {self.N_R}; allowed: multiples of {HALF_WARP}")
        if self.strategy == "field" and self.w_s != 1:
            raise ValueError(f"w_s = {self.w_s} with strategy 'field'; allowed: 1")

    @abstractmethod
    def columns(self, shape: Shape) -> int:
        """Columns of the matrix."""

    @abstractmethod
    def field_size(self, shape: Shape) -> int:
        """Values of a microblock that the matrix is applied to, padded."""

    def shared_bytes(self, shape: Shape) -> int:
        """Shared memory of a block."""
        if self.strategy == "field":
            return self.w_p * self.w_i * self.field_size(shape) * shape.itemsize
        return self.N_R * odd(self.columns(shape)) * shape.itemsize

    def block(self, shape: Shape) -> int:
        """Threads of a block."""
        return self.w_p * (shape.N_pM if self.strategy == "field" else self.N_R)

    def illegal(self, shape: Shape, capability: Capability = None) -> str:
        """Why this plan cannot run, or an empty string.

        One limit is the compiler's, which keeps 24 accumulators in registers.
        """
        accumulators = self.outputs * self.w_i
        if accumulators > MAX_ACCUMULATORS:
            return f"{accumulators} accumulators a thread; allowed: {MAX_ACCUMULATORS}"
        if self.strategy == "matrix" and self.N_R > shape.N_pM:
            return f"N_R = {self.N_R}; a microblock has {shape.N_pM} nodes"
        return super().illegal(shape, capability)

    @classmethod
    def default(cls, shape: Shape, capability: Capability = None, variant: str = "") -> Self:
        """About 256 threads for 8 microblocks inline, 4 in fp64, with the fields in shared memory.

        Fewer where it does not suffice. Threads stand in the plain order, which has no bank
        conflicts on today's devices: see ``dgbook.lab.banks``.
        """
        start = cls("field", max(1, 256 // shape.N_pM), order="plain")
        return varied(start, shape, w_i=(8, 4, 2, 1)[shape.itemsize == 8 :])[0]

    def subject(self, shape: Shape) -> str:
        """Under which name the tuner remembers timings."""
        return f"maxwell/paper/{self.name}"

    def candidates(self, shape: Shape, capability: Capability = None) -> list[Self]:
        """Both strategies, 64 to 512 threads."""
        rows, inline = rows_of(shape.N_pM, (64, 128, 256, 512)), (1, 2, 4, 8)
        plans = varied(type(self)("field", 1), shape, order=ORDERS, w_p=rows, w_i=inline)
        for N_R in sorted({16, min(64, shape.N_pM), shape.N_pM}):
            start, rows = type(self)("matrix", 1, N_R=N_R), rows_of(N_R, (128, 256))
            plans += varied(start, shape, w_p=rows, w_i=inline, w_s=(1, 4))
        return plans


@dataclass(frozen=True)
class LiftPlan(LocalPlan):
    """How face values are lifted (Algorithm 1), see `LocalPlan`."""

    outputs: ClassVar[int] = 1
    name: ClassVar[str] = "lift"

    def columns(self, shape: Shape) -> int:
        """Columns of LIFT."""
        return shape.Nf

    def field_size(self, shape: Shape) -> int:
        """Face values of a microblock."""
        return shape.N_fM


@dataclass(frozen=True)
class DifferentiatePlan(LocalPlan):
    """How fields are differentiated (Algorithm 4, or as Algorithm 1), see `LocalPlan`."""

    outputs: ClassVar[int] = 3
    name: ClassVar[str] = "differentiate"

    def columns(self, shape: Shape) -> int:
        """Columns of [D_1 D_2 D_3]."""
        return 3 * shape.Np

    def field_size(self, shape: Shape) -> int:
        """Nodal values of a microblock."""
        return shape.N_pM


@dataclass(frozen=True)
class PaperPlan:
    """Plans of all the paper's kernels.

    Parameters
    ----------
    K_M : int
        Elements a microblock; 1 pads each element by itself.
    gather : GatherPlan
    lift : LiftPlan
    differentiate : DifferentiatePlan
    """

    K_M: int
    gather: GatherPlan
    lift: LiftPlan
    differentiate: DifferentiatePlan

    def __post_init__(self) -> None:
        check_counts(self, "K_M")
        for name, kind in PARTS.items():
            if not isinstance(getattr(self, name), kind):
                raise TypeError(f"{name} = {getattr(self, name)!r}; allowed: a {kind.__name__}")

    @classmethod
    def default(cls, shape: Shape) -> PaperPlan:
        """A good plan where nothing has been measured."""
        return cls(shape.K_M, **{name: kind.default(shape) for name, kind in PARTS.items()})

    @classmethod
    def chosen(cls, shape: Shape, device: Device) -> PaperPlan:
        """Of each kernel the fastest plan that is known for a device."""
        return cls(shape.K_M, **{name: choose(kind, shape, device) for name, kind in PARTS.items()})

    def illegal(self, shape: Shape, capability: Capability = None) -> str:
        """Why this plan cannot run, or an empty string."""
        reasons = ((name, getattr(self, name).illegal(shape)) for name in PARTS)
        return "; ".join(f"{name}: {reason}" for name, reason in reasons if reason)


PARTS = {"gather": GatherPlan, "lift": LiftPlan, "differentiate": DifferentiatePlan}


def odd(stride: int) -> int:
    """The stride, or the next odd one: threads that read rows of it meet different banks.

    16 banks then, 32 now, always a power of two: an odd stride visits all of them in turn
    (klockner2009, Figure 7).
    """
    return stride | 1
