"""How the gas's kernels are launched: the paper's, each of chen's levers a field, and the fused."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from dgbook.arguments import check_choice, check_counts
from dgbook.euler.tables import Tables
from dgbook.gpu.layout import padded
from dgbook.gpu.limits import REGISTERS as MULTIPROCESSOR_REGISTERS
from dgbook.gpu.limits import WARP
from dgbook.gpu.plan import Capability, LaunchPlan, varied
from dgbook.nodal.fused import LANGUAGES

THREADS = (32, 64, 128, 256, 512)  # chen, Table 1
TABLES = ("constant", "global")
LAYOUTS = ("element", "field")
RACES = ("split", "atomic")
REGISTERS = (16, 255)  # what ptxas takes for the most registers a thread
HEALTHY = 2**31 - 1
"""In a launcher's ``bad`` where no element is."""
TILE = WARP
"""Elements that a state of the fused kernel stores together: those of a warp."""


@dataclass(frozen=True)
class PaperPlan(LaunchPlan):
    """How the paper's kernels are launched. The defaults are the paper's.

    Parameters
    ----------
    threads : {32, 64, 128, 256, 512}
        In a block, of all kernels: Table 1.
    max_registers : int, optional
        The most registers a thread of the four residual kernels may have, 16 to 255: section 3.4.3.
        With fewer a multiprocessor holds more threads, and what does not fit is spilled. See also
        `registers`.
    concurrent : bool
        Whether the volume and the face kernel may run side by side, in two streams: section 3.5.
    tables : {"constant", "global"}
        Where phi, its derivatives and M^-1 lie: section 3.4.1.
    layout : {"element", "field"}
        Of states and residuals. "element" is the paper's: all degrees of freedom of an element lie
        side by side, so that neighboring threads read far apart. With "field" the elements do, and
        neighboring threads read neighboring words.
    race : {"split", "atomic"}
        What keeps two edges of an element from adding to its residual at once: each edge stores its
        two contributions apart, and elements collect them (section 3.2); or atomic additions.

    Raises
    ------
    ValueError
        If a field is not as above, or `concurrent` is asked for with atomic additions: they go to
        the array that the volume kernel writes.
    """

    threads: int = 32
    max_registers: int | None = None
    concurrent: bool = True
    tables: str = "constant"
    layout: str = "element"
    race: str = "split"

    def __post_init__(self) -> None:
        for name, allowed in (
            ("threads", THREADS),
            ("tables", TABLES),
            ("layout", LAYOUTS),
            ("race", RACES),
            ("concurrent", (False, True)),
        ):
            check_choice(name, getattr(self, name), allowed)
        least, most = REGISTERS
        if self.max_registers is not None:
            check_counts(self, "max_registers")
        if self.max_registers is not None and not least <= self.max_registers <= most:
            raise ValueError(
                f"max_registers = {self.max_registers}; allowed: {least} to {most}, or None"
            )
        if self.concurrent and self.race == "atomic":
            raise ValueError("concurrent = True with race 'atomic'; allowed: False")

    @property
    def registers(self) -> int | None:
        """The limit for the compiler: `max_registers`, or fewer if a block would not fit.

        A multiprocessor has 65,536. 512 threads with more than 128 each cannot be launched at all.
        """
        most = REGISTERS[1] if self.max_registers is None else self.max_registers
        most = min(most, MULTIPROCESSOR_REGISTERS // self.threads)
        return None if most == REGISTERS[1] else most

    @property
    def compiled(self) -> PaperPlan:
        """The same but for what the kernels do not know: equal for plans with equal kernels."""
        return replace(self, threads=32, concurrent=False, max_registers=self.registers)

    @classmethod
    def default(cls, shape: FusedShape, capability: Capability = None, variant: str = "") -> Self:
        """The paper's."""
        return cls()

    def subject(self, shape: FusedShape) -> str:
        """Of a whole step."""
        return "euler/paper"

    def block(self, shape: FusedShape) -> int:
        return self.threads

    def candidates(self, shape: FusedShape, capability: Capability = None) -> list[Self]:
        """All plans with this limit on registers."""
        alone = replace(self, concurrent=False)
        levers = {"threads": THREADS, "tables": TABLES, "layout": LAYOUTS}
        return varied(alone, shape, race=RACES, **levers) + varied(
            replace(alone, race="split", concurrent=True), shape, **levers
        )


@dataclass(frozen=True)
class FusedShape:
    """What kernels close over beside the plan.

    Attributes
    ----------
    order : int
    dtype : str
    flux : str
    """

    order: int
    dtype: str
    flux: str = "roe"

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", np.dtype(self.dtype).name)

    @property
    def tables(self) -> Tables:
        """The quadrature and the basis, in float64."""
        return Tables(self.order)

    @property
    def itemsize(self) -> int:
        """Bytes of a real number."""
        return np.dtype(self.dtype).itemsize


@dataclass(frozen=True)
class FusedPlan(LaunchPlan):
    """Who works on what in the fused kernel.

    Parameters
    ----------
    language : {"cuda", "numba"}
        CUDA C++ or Numba: the same algorithm, kernels/fused/ and kernels/fused.py.
    threads : int
        In a block, a multiple of 32. Each has an element.
    blocks : int
        Blocks that a multiprocessor should hold: the compiler limits the registers.
    points : int
        Quadrature points at a time: a value of the state, once loaded, serves all, and a matrix
        entry need not wait for the one before.
    shared : bool
        Whether the state is kept in shared memory, or in registers.
    unroll : int
        Turns of the loops over points that are unrolled. Where all are, every matrix entry is an
        operand that the instruction names, but the instructions are many.
    copied : bool
        Whether every block copies the matrices to shared memory, where a load fetches up to 16
        bytes, or they stay in constant memory, where it fetches 8.
    passes : int
        Over the nodes whose residual is summed up; every pass computes all fluxes.

    Raises
    ------
    TypeError, ValueError
        If a count is no positive integer, or the language unknown.
    """

    language: str
    threads: int
    blocks: int
    points: int = 1
    shared: bool = True
    unroll: int = 1
    copied: bool = False
    passes: int = 1

    variants = LANGUAGES

    def __post_init__(self) -> None:
        check_choice("language", self.language, LANGUAGES)
        check_choice("shared", self.shared, (False, True))
        check_choice("copied", self.copied, (False, True))
        check_counts(self, "threads", "blocks", "points", "unroll", "passes")

    @classmethod
    def default(cls, shape: FusedShape, capability: Capability = None, variant: str = "") -> Self:
        """Blocks of 128 threads."""
        return cls(variant or "cuda", 128, 4)

    def subject(self, shape: FusedShape) -> str:
        return f"euler/fused/{self.language}"

    def block(self, shape: FusedShape) -> int:
        return self.threads

    def shared_bytes(self, shape: FusedShape) -> int:
        """A column for each thread, and the matrices."""
        tables = shape.tables
        column = self.shared * 4 * (tables.Np + tables.Nfp)
        row = padded(padded(tables.Np, self.passes), 4)
        rows = 3 * padded(tables.Nq, self.points) + 3 * tables.Ne
        matrices = padded((rows * row + tables.Ne * tables.Nfp) * shape.itemsize, 16)
        return self.threads * column * shape.itemsize + self.copied * matrices

    def illegal(self, shape: FusedShape, capability: Capability = None) -> str:
        if self.threads % TILE:
            return f"{self.threads} threads; allowed: multiples of {TILE}"
        if self.passes > 1 and not self.shared:
            return f"{self.passes} passes; allowed: 1, or more with the state in shared memory"
        simple = FusedPlan(self.language, self.threads, self.blocks)
        if self.language == "numba" and self != simple:
            return "Numba's kernel keeps the state in shared memory and takes one point at a time"
        return super().illegal(shape, capability)

    def candidates(self, shape: FusedShape, capability: Capability = None) -> list[Self]:
        """This plan first; then as many warps as the sums leave room for, and somewhat fewer."""
        Np, Nq, Nfp = shape.tables.Np, shape.tables.Nq, shape.tables.Nfp
        small, cuda = shape.order < 4, self.language == "cuda"
        points = (1, 2, 3, 4) if cuda else (1,)
        plans = [self]
        for threads in (64, 128) if small else (32, 64):
            for passes in (1,) if small else (1, 2):
                for blocks in _blocks(shape, threads, 4 * -(-Np // passes)):
                    plan = FusedPlan(self.language, threads, blocks, passes=passes if cuda else 1)
                    plans += varied(plan, shape, points=points)
                    if cuda:
                        plans += varied(replace(plan, copied=True), shape, points=(2, 4))
                    if cuda and small:
                        plans += varied(replace(plan, points=2), shape, unroll=(Nq,))
            for blocks in _blocks(shape, threads, 8 * Np + 4 * Nfp) if small and cuda else ():
                plan = FusedPlan(self.language, threads, blocks, shared=False)
                plans += varied(plan, shape, points=(1, 2), unroll=(1,))
                plans += varied(plan, shape, points=(2, Nq), unroll=(Nq,))
        return list(dict.fromkeys(plan for plan in plans if not plan.illegal(shape)))


def _blocks(shape: FusedShape, threads: int, kept: int) -> list[int]:
    """Blocks of a multiprocessor, for threads that keep so many numbers and those of a flux."""
    words = shape.itemsize // 4
    enough = [count for count in (64, 80, 96, 128, 168, 200, 255) if count >= (kept + 35) * words]
    return [
        max(1, MULTIPROCESSOR_REGISTERS // (count * threads)) for count in (enough or [255])[:3]
    ]
