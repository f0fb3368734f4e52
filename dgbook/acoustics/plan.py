"""The paper's sets of kernels: who has which, what is tuned in each, and what is remembered."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from dgbook.acoustics.launch import nodal, sparse
from dgbook.acoustics.launch.nodal import ElementPlan, NodalLauncher, NodePlan
from dgbook.acoustics.launch.sparse import BernsteinLauncher, BernsteinPlan
from dgbook.gpu import Device
from dgbook.gpu.tune import remembered

Plan = NodePlan | ElementPlan | BernsteinPlan
Launcher = NodalLauncher | BernsteinLauncher
Parts = dict[str, dict[str, Iterable[Any]]]
"""By part what is tuned in it: fields of the plan, and their choices."""
WARPS = (64, 128)
THREADS = (32, 64, 96, 128, 192, 256, 512)


@dataclass(frozen=True)
class KernelSet:
    """Kernels that make a stage together, as chan2015 compares them (section 4.2).

    Attributes
    ----------
    basis : {"nodal", "bernstein"}
    kind, launcher : type
        Of its plans, and what takes them.
    default : function
        ``default(order, dtype)`` is a good plan where nothing has been measured.
    parts : function
        ``parts(order)`` says what is tuned, one part after the other. Each field is in one part.
    shares : str
        Another set of which it has the other kernels, or "".
    """

    basis: str
    kind: type
    launcher: type
    default: Callable[[int, str], Plan]
    parts: Callable[[int], Parts]
    shares: str = ""


def _elements(threads: int) -> list[int]:
    """Elements a block of so many threads each: about `THREADS`."""
    return sorted({max(1, count // threads) for count in THREADS})


def _node(order: int) -> Parts:
    shape = nodal.shape_of(order, "float32")
    return {
        "volume": {"K_V": _elements(shape.Np)},
        "surface": {"K_S": _elements(max(shape.Np, shape.Nf))},
        "update": {"K_U": _elements(shape.Np)},
    }


def _element(order: int) -> Parts:
    return {
        "volume": {"K_V": WARPS, "rows_V": (2, 4, 8)},
        "rhs": {"columns": (16, 32), "parts": (1, 2, 4)},
        "surface": {"K_S": WARPS, "rows_S": (4, 8, 16)},
        "update": {"K_U": _elements(nodal.shape_of(order, "float32").Np)},
    }


def _bernstein(surface: str, shares: str = "") -> KernelSet:
    def parts(order: int) -> Parts:
        counts = _elements(sparse.Shape(order, "float32").Np)
        lift = {"surface": {"K_S": WARPS if surface == "element" else counts}}
        if shares:
            return lift
        volume = {"volume": {"K_V": counts, "columns": sparse.ROWS}}
        return volume | lift | {"update": {"K_U": counts}}

    def default(order: int, dtype: str) -> BernsteinPlan:
        return sparse.default_plan(order, dtype, surface)

    return KernelSet("bernstein", BernsteinPlan, BernsteinLauncher, default, parts, shares)


KERNEL_SETS = {
    "node": KernelSet(
        "nodal",
        NodePlan,
        NodalLauncher,
        lambda order, dtype: nodal.default_plan(order, dtype),
        _node,
    ),
    "element": KernelSet(
        "nodal",
        ElementPlan,
        NodalLauncher,
        lambda order, dtype: nodal.default_plan(order, dtype, by_node=False),
        _element,
    ),
    "factored": _bernstein("factored"),
    "optimal": _bernstein("optimal", "factored"),
    "unblocked": _bernstein("element", "factored"),
}
"""By name: chan2015's nodal kernels with a thread a node or a thread an element, its Bernstein
kernels, its optimal ones, and those whose lift has a thread an element."""


def is_legal(plan: Plan, order: int, dtype: str) -> bool:
    """Whether a plan can run."""
    if isinstance(plan, BernsteinPlan):
        return not sparse.illegal(plan, sparse.Shape(order, dtype))
    return not plan.illegal(nodal.shape_of(order, dtype))


def candidates(name: str, part: str, plan: Plan, order: int, dtype: str) -> list[Plan]:
    """What a tuner tries of a part: the plan with other values in the part's fields, if legal."""
    choices = KERNEL_SETS[name].parts(order)[part]
    plans = (
        replace(plan, **dict(zip(choices, values, strict=True)))
        for values in product(*choices.values())
    )
    return [plan for plan in plans if is_legal(plan, order, dtype)]


def subject(name: str, part: str) -> str:
    """Under which name the tuner remembers timings of a part of a set."""
    return f"acoustics/{name}/{part}"


def choose_plan(name: str, order: int, dtype: str, device: Device) -> Plan:
    """What ``python -m dgbook tune acoustics`` found fastest on a GPU, else the default.

    Parameters
    ----------
    name : str
        Of `KERNEL_SETS`.
    order, dtype, device
    """
    kernels = KERNEL_SETS[name]
    parts = {  # its own parts take the place of those that it shares
        part: (owner, choices)
        for owner in filter(None, (kernels.shares, name))
        for part, choices in KERNEL_SETS[owner].parts(order).items()
    }
    plan = default = kernels.default(order, dtype)
    for part, (owner, choices) in parts.items():
        found = remembered(
            kernels.kind, subject(owner, part), device, order, dtype,
            lambda plan: is_legal(plan, order, dtype),
        )  # fmt: skip
        if found:
            plan = replace(plan, **{field: getattr(found, field) for field in choices})
    return plan if is_legal(plan, order, dtype) else default
