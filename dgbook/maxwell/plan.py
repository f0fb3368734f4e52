"""How the paper's kernels are launched: klockner2009's (w_p, w_i, w_s), and what is legal."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dgbook.arguments import check_choice, check_counts
from dgbook.gpu import Device
from dgbook.gpu.layout import microblock_size, padded
from dgbook.gpu.limits import MAX_THREADS, STATIC_SHARED_LIMIT
from dgbook.gpu.tune import remembered

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
class GatherPlan:
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

    def shared_bytes(self, shape: Shape) -> int:
        """The flux buffer, and descriptors of as many face pairs as there can be, one a face."""
        pairs = padded(4 * shape.K_M * self.M_B, HALF_WARP)
        descriptor = 4 * DESCRIPTOR_INTEGERS + shape.itemsize * DESCRIPTOR_REALS
        buffer = FIELDS * self.M_B * shape.N_fM * shape.itemsize
        return buffer + pairs * descriptor

    def illegal(self, shape: Shape) -> str:
        """Why this plan cannot run, or an empty string."""
        return _beyond_limits(self.w_p * shape.Nfp, self.shared_bytes(shape))


@dataclass(frozen=True)
class LocalPlan(ABC):
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

    def illegal(self, shape: Shape) -> str:
        """Why this plan cannot run, or an empty string."""
        accumulators = self.outputs * self.w_i
        if accumulators > MAX_ACCUMULATORS:
            return f"{accumulators} accumulators a thread; allowed: {MAX_ACCUMULATORS}"
        if self.strategy == "matrix" and self.N_R > shape.N_pM:
            return f"N_R = {self.N_R}; a microblock has {shape.N_pM} nodes"
        rows = shape.N_pM if self.strategy == "field" else self.N_R
        return _beyond_limits(self.w_p * rows, self.shared_bytes(shape))


@dataclass(frozen=True)
class LiftPlan(LocalPlan):
    """How face values are lifted (Algorithm 1), see `LocalPlan`."""

    outputs: ClassVar[int] = 1

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


PARTS = {"gather": GatherPlan, "lift": LiftPlan, "differentiate": DifferentiatePlan}


def odd(stride: int) -> int:
    """The stride, or the next odd one: threads that read rows of it meet different banks.

    16 banks then, 32 now, always a power of two: an odd stride visits all of them in turn
    (klockner2009, Figure 7).
    """
    return stride | 1


def illegal(plan: PaperPlan, shape: Shape) -> str:
    """Why a plan cannot run, or an empty string.

    The limits are those of every device from compute capability 7.5 on, 1024 threads and 48 KiB of
    static shared memory a block, and of the compiler, which keeps 24 accumulators in registers.
    """
    reasons = ((name, getattr(plan, name).illegal(shape)) for name in PARTS)
    return "; ".join(f"{name}: {reason}" for name, reason in reasons if reason)


def gather_plans(shape: Shape) -> list[GatherPlan]:
    """What the tuner tries: 64 to 512 threads, 1 to 16 microblocks."""
    rows = _rows(shape.Nfp, (64, 128, 256, 512))
    return _legal(
        (GatherPlan(w_p, M_B) for M_B in (1, 2, 3, 4, 6, 8, 12, 16) for w_p in rows), shape
    )


def lift_plans(shape: Shape) -> list[LiftPlan]:
    """What the tuner tries: both strategies, 64 to 512 threads."""
    return _local_plans(LiftPlan, shape)


def differentiate_plans(shape: Shape) -> list[DifferentiatePlan]:
    """What the tuner tries: both strategies, 64 to 512 threads."""
    return _local_plans(DifferentiatePlan, shape)


def sweep(
    kind: type[LocalPlan],
    shape: Shape,
    strategy: str,
    N_R: int = HALF_WARP,
    w_p: Iterable[int] = range(1, 21),
    w_i: Iterable[int] = range(1, 5),
    w_s: Iterable[int] = range(1, 9),
) -> list[LocalPlan]:
    """Every legal plan of a strategy: klockner2009, Figure 10(b).

    Parameters
    ----------
    kind : LiftPlan or DifferentiatePlan
    shape : Shape
    strategy : {"field", "matrix"}
        "field" has only w_s = 1.
    N_R : int
        Rows of a segment, for "matrix".
    w_p, w_i, w_s : iterables of int
    """
    sequential = w_s if strategy == "matrix" else (1,)
    plans = (kind(strategy, p, i, s, N_R=N_R) for p in w_p for i in w_i for s in sequential)
    return _legal(plans, shape)


def default_plan(order: int, dtype: str) -> PaperPlan:
    """A good plan where nothing has been measured.

    About 128 threads gather for 16 elements, or for as many as leave room for two blocks in 48 KiB
    of shared memory. About 256 threads lift and differentiate 8 microblocks inline, 4 in fp64, with
    the fields in shared memory; fewer where it does not suffice. They stand in the plain order,
    which has no bank conflicts on today's devices: see ``dgbook.lab.banks``.
    """
    shape = shape_of(order, dtype)
    w_p = max(1, 128 // shape.Nfp)
    blocks = (GatherPlan(w_p, M_B) for M_B in range(max(1, 16 // shape.K_M), 1, -1))
    fitting = (p for p in blocks if 2 * p.shared_bytes(shape) <= STATIC_SHARED_LIMIT)
    gather = next(fitting, GatherPlan(w_p, 1))

    def local(kind: type[LocalPlan]) -> LocalPlan:
        w_p = max(1, 256 // shape.N_pM)
        inline = (8, 4, 2, 1)[shape.itemsize == 8 :]
        return _legal((kind("field", w_p, w_i, order="plain") for w_i in inline), shape)[0]

    return PaperPlan(shape.K_M, gather, local(LiftPlan), local(DifferentiatePlan))


def subject(part: str) -> str:
    """Under which name the tuner remembers timings of a kernel, a key of `PARTS`."""
    return f"maxwell/paper/{part}"


def choose_plan(order: int, dtype: str, device: Device) -> PaperPlan:
    """The fastest plans that ``python -m dgbook tune maxwell`` found on a GPU, else the default."""
    default, shape = default_plan(order, dtype), shape_of(order, dtype)
    parts = {
        name: remembered(
            kind, subject(name), device, order, dtype, lambda plan: not plan.illegal(shape)
        )
        or getattr(default, name)
        for name, kind in PARTS.items()
    }
    return PaperPlan(default.K_M, **parts)


def _local_plans(kind: type[LocalPlan], shape: Shape) -> list[LocalPlan]:
    inline = (1, 2, 4, 8)
    plans = [
        kind("field", w_p, w_i, order=order)
        for order in ORDERS
        for w_p in _rows(shape.N_pM, (64, 128, 256, 512))
        for w_i in inline
    ]
    plans += [
        kind("matrix", w_p, w_i, w_s, N_R=N_R)
        for N_R in sorted({16, min(64, shape.N_pM), shape.N_pM})
        for w_p in _rows(N_R, (128, 256))
        for w_i in inline
        for w_s in (1, 4)
    ]
    return _legal(plans, shape)


def _rows(size: int, threads: Iterable[int]) -> list[int]:
    """How many rows of `size` threads make about so many threads, each number once."""
    return sorted({max(1, n // size) for n in threads})


def _legal(plans: Iterable, shape: Shape) -> list:
    return [plan for plan in plans if not plan.illegal(shape)]


def _beyond_limits(threads: int, shared: int) -> str:
    if threads > MAX_THREADS:
        return f"{threads} threads a block; allowed: {MAX_THREADS}"
    if shared > STATIC_SHARED_LIMIT:
        return f"{shared} bytes shared; allowed: {STATIC_SHARED_LIMIT}"
    return ""
