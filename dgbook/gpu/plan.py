"""How kernels are launched: what all plans have in common, and which one runs if nobody says.

That is the fastest legal one that is known: what ``python -m dgbook tune`` found on this GPU, else
what is shipped for it in ``plans/``, or for another GPU, else the plan that is usual. The files are
the tuner's own: one for each GPU, a line of JSON for each plan, of a subject the fastest first.
``tools/ship_plans.py`` makes them of what ``tune`` remembers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

from dgbook.gpu import tune
from dgbook.gpu.device import Device
from dgbook.gpu.limits import MAX_BLOCKS, MAX_THREADS, MAX_UNROLL, STATIC_SHARED_LIMIT, architecture

SHIPPED = Path(__file__).with_name("plans")
Capability = tuple[int, int] | None
COUNTS = {
    "blocks": MAX_BLOCKS,
    "resident": MAX_BLOCKS,
    "unroll": MAX_UNROLL,
    "points": MAX_UNROLL,
    "passes": MAX_UNROLL,
}
"""The most that a plan's fields may be which say how much is resident or unrolled."""
PerKernel = int | Mapping[str, int]
"""A number, or one for each of several kernels, by name."""


@dataclass(frozen=True)
class LaunchPlan(ABC):
    """How a kernel is launched, or several; each family derives its own, with fields.

    A plan is for a shape: what the kernels close over beside it, ``order`` and ``dtype`` included.
    Without a compute capability the limits are those of every device.

    Attributes
    ----------
    variants : (str, str)
        Where plans differ in language or method: which one runs if nobody says, on a GPU and in
        the simulator.
    rivals : tuple of type
        Plans of another kernel that does the same, and may be remembered in the place of these.
    """

    variants: ClassVar[tuple[str, str]] = ("", "")
    rivals: ClassVar[tuple[type[LaunchPlan], ...]] = ()

    @classmethod
    @abstractmethod
    def default(cls, shape: Any, capability: Capability = None, variant: str = "") -> Self:
        """A good plan where nothing has been measured."""

    @abstractmethod
    def subject(self, shape: Any) -> str:
        """Under which name the tuner remembers timings."""

    def subjects(self, shape: Any) -> Mapping[str, tuple[str, ...]]:
        """Of plans for several kernels each one's subject, and the fields that it decides."""
        return {self.subject(shape): tuple(field.name for field in fields(self))}

    @abstractmethod
    def candidates(self, shape: Any, capability: Capability = None) -> list[Self]:
        """The legal plans worth trying where this one runs."""

    @abstractmethod
    def block(self, shape: Any) -> PerKernel:
        """Threads of a block."""

    def shared_bytes(self, shape: Any) -> PerKernel:
        """Shared memory of a block."""
        return 0

    @property
    def dynamic(self) -> bool:
        """Whether a launch asks for its shared memory, so that more than 48 KiB can be had."""
        return False

    def portable(self, shape: Any, capability: Capability) -> bool:
        """Whether a plan that was the fastest on one GPU is likely to be good on another."""
        return True

    def illegal(self, shape: Any, capability: Capability = None) -> str:
        """Why this plan cannot run, or an empty string."""
        for name, most in COUNTS.items():
            if (count := getattr(self, name, 1)) > most:
                return f"{name} = {count}; allowed: {most}"
        shared = STATIC_SHARED_LIMIT
        if self.dynamic and capability:
            shared = architecture(capability).shared_block
        for counts, what, most in (
            (self.block(shape), "threads per block", MAX_THREADS),
            (self.shared_bytes(shape), "bytes shared", shared),
        ):
            for name, count in (counts if isinstance(counts, Mapping) else {"": counts}).items():
                if count > most:
                    return f"{name and f'{name}: '}{count} {what}; allowed: {most}"
        return ""


Plan = TypeVar("Plan", bound=LaunchPlan)


def choose(kind: type[Plan], shape: Any, device: Device, variant: str = "") -> Plan:
    """The fastest legal plan that is known for a device.

    Parameters
    ----------
    kind : type
        Of the plans.
    shape : object
        What the kernels close over, see `LaunchPlan`.
    device : Device
    variant : str, optional
        A language or method.
    """
    if device.kind != "cuda":
        return shipped(kind, shape, None, variant or kind.variants[1])

    def known(subject: str) -> Iterator[tuple[dict[str, Any], bool]]:
        for tuned in tune.ranked(subject, device, shape.order, shape.dtype):
            yield tuned, True
        yield from _shipped(subject, shape.order, shape.dtype, tune.file_name(device.name))

    default = kind.default(shape, device.compute_capability, variant or kind.variants[0])
    return _fastest(default, shape, device.compute_capability, known)


def shipped(kind: type[Plan], shape: Any, capability: Capability = None, variant: str = "") -> Plan:
    """What `choose` says of a GPU of that compute capability on which nothing was tuned."""
    default = kind.default(shape, capability, variant or kind.variants[0])
    return _fastest(default, shape, capability, lambda s: _shipped(s, shape.order, shape.dtype))


def varied(plan: Plan, shape: Any, **choices: Iterable[Any]) -> list[Plan]:
    """The plan with all values of these fields, as far as it is legal on every device."""
    plans = (
        replace(plan, **dict(zip(choices, values, strict=True)))
        for values in product(*choices.values())
    )
    return [plan for plan in plans if not plan.illegal(shape)]


def require_legal(plan: LaunchPlan, shape: Any, capability: Capability = None) -> None:
    """Refuse a plan that cannot run.

    Raises
    ------
    ValueError
        The message says why.
    """
    if trouble := plan.illegal(shape, capability):
        raise ValueError(f"plan = {plan}: {trouble}")


def rows_of(size: int, threads: Iterable[int]) -> list[int]:
    """How many rows of `size` threads make about so many threads, each number once."""
    return sorted({max(1, count // size) for count in threads})


Known = Callable[[str], Iterable[tuple[Mapping[str, Any], bool]]]
"""Of a subject the fields of plans, the fastest first, and whether they are this GPU's own."""


def _fastest(default: Plan, shape: Any, capability: Capability, known: Known) -> Plan:
    """Of each subject the first plan that can run; the usual one if they do not fit together."""
    plan = default
    for subject, names in default.subjects(shape).items():
        read = (
            _read(default, values, shape, capability, this_gpu)
            for values, this_gpu in known(subject)
        )
        if fastest := next(filter(None, read), None):
            if type(fastest) is not type(plan):
                return fastest
            plan = replace(plan, **{name: getattr(fastest, name) for name in names})
    return default if plan.illegal(shape, capability) else plan


def _read(
    default: LaunchPlan,
    values: Mapping[str, Any],
    shape: Any,
    capability: Capability,
    this_gpu: bool,
) -> LaunchPlan | None:
    """A plan from a file, or None where it is none today, cannot run or is not worth trying."""
    plans = (tune.as_plan(kind, values) for kind in (type(default), *default.rivals))
    plan = next((plan for plan in plans if plan is not None), None)
    if plan is None or not (this_gpu or plan.portable(shape, capability)):
        return None
    return None if plan.illegal(shape, capability) else plan


@lru_cache(maxsize=1024)
def _shipped(
    subject: str, order: int, dtype: str, preferred: str = ""
) -> tuple[tuple[Mapping[str, Any], bool], ...]:
    """Plans of the shipped files, that of the name `preferred` first."""
    files = sorted(SHIPPED.glob("*.jsonl"), key=lambda file: (file.name != preferred, file.name))
    return tuple(
        (plan, file.name == preferred)
        for file in files
        for plan in tune.read(file, subject, order, dtype)
    )
