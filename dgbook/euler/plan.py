"""How the paper's kernels are launched, each of chen's levers a field, and what is legal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from dgbook.arguments import check_choice
from dgbook.gpu import Device
from dgbook.gpu.limits import REGISTERS as MULTIPROCESSOR_REGISTERS
from dgbook.gpu.tune import remembered

THREADS = (32, 64, 128, 256, 512)  # chen, Table 1
TABLES = ("constant", "global")
LAYOUTS = ("element", "field")
RACES = ("split", "atomic")
REGISTERS = (16, 255)  # what ptxas takes for the most registers a thread
HEALTHY = 2**31 - 1
"""In a launcher's ``bad`` where no element is."""
SUBJECT = "euler/paper"
"""Under which name the tuner remembers timings of a whole step."""


@dataclass(frozen=True)
class PaperPlan:
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


def plans() -> Iterator[PaperPlan]:
    """All plans but those with a limit on registers."""
    for values in product(THREADS, (None,), (False, True), TABLES, LAYOUTS, RACES):
        concurrent, race = values[2], values[5]
        if not (concurrent and race == "atomic"):
            yield PaperPlan(*values)


def choose_plan(order: int, dtype: str, device: Device) -> PaperPlan:
    """The fastest plan that the tuner remembers for a GPU, else the paper's."""
    return remembered(PaperPlan, SUBJECT, device, order, dtype, lambda plan: True) or PaperPlan()
