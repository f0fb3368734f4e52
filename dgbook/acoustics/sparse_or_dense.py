"""Which kernel makes a fused stage in the Bernstein basis: the sparse one, or the nodal one.

The nodal kernel takes derivatives and lift as dense matrices. With those of the Bernstein basis it
computes the Bernstein operator, as fast as the nodal one: control points of two elements meet on a
face as nodes do, and a flux that is linear with the same factors all over a face does to control
points what it does to values. The sparse kernel (kernels/bernstein_fused.cu) does less, but waits
for each slice of its lift: where elements are smallest, the dense one is faster.
"""

from __future__ import annotations

from typing import Any

from dgbook.acoustics.launch import bernstein_fused, fused
from dgbook.acoustics.launch.bernstein_fused import BernsteinFusedLauncher, BernsteinFusedPlan
from dgbook.acoustics.launch.fused import FusedLauncher
from dgbook.acoustics.launch.sparse import Shape
from dgbook.acoustics.reference import Operator
from dgbook.gpu import Device
from dgbook.gpu.tune import remembered
from dgbook.nodal.fused import FusedPlan
from dgbook.nodal.fused import illegal as illegal_dense

Plan = BernsteinFusedPlan | FusedPlan
DENSE = (1,)
"""Orders at which the dense kernel was the faster of the two on an H200, in record acoustics/stage:
in both precisions and languages, with tensor cores and without."""


def _faster(order: int) -> Any:
    """The module of the kernel that is the faster one, as far as is known without timings."""
    return fused if order in DENSE else bernstein_fused


def default_plan(
    order: int,
    dtype: str,
    capability: tuple[int, int] | None = None,
    language: str = "cuda",
) -> Plan:
    """The default plan of the kernel that is the faster one by `DENSE`."""
    return _faster(order).default_plan(order, dtype, capability, language)


def plans(order: int, dtype: str, device: Device, language: str = "cuda") -> list[Plan]:
    """The two plans worth comparing: the best ones known of the sparse and of the dense kernel.

    The dense kernel's time does not depend on what is in the matrices: its best plan in the nodal
    basis is the best one here.
    """
    return [
        module.choose_plan(order, dtype, device, language) for module in (bernstein_fused, fused)
    ]


def subject(language: str) -> str:
    """Under which name the tuner remembers timings of the two."""
    return f"acoustics/bernstein/either/{language}"


def choose_plan(order: int, dtype: str, device: Device, language: str | None = None) -> Plan:
    """The faster of the two kernels, by ``python -m dgbook tune``, else by `DENSE`.

    The latter with the best plan known of that kernel. Without a language CUDA C++ on a GPU, and
    Numba in the simulator, where nothing else runs.
    """
    capability = device.compute_capability if device.kind == "cuda" else None
    language = (language or "cuda") if device.kind == "cuda" else "numba"
    sparse, dense = Shape(order, dtype), fused.fused_shape(order, dtype)

    def legal(plan: Plan) -> bool:
        if isinstance(plan, FusedPlan):
            return not illegal_dense(plan, dense, capability)
        return not bernstein_fused.illegal(plan, sparse, capability)

    kinds = BernsteinFusedPlan | FusedPlan
    plan = remembered(kinds, subject(language), device, order, dtype, legal)
    return plan or _faster(order).choose_plan(order, dtype, device, language)


def launcher(
    operator: Operator, device: Device, plan: Plan | None = None
) -> BernsteinFusedLauncher | FusedLauncher:
    """What launches a fused stage of an operator in the Bernstein basis.

    Parameters
    ----------
    operator, device
        As of `BernsteinFusedLauncher`.
    plan : BernsteinFusedPlan or FusedPlan, optional
        Of the sparse or of the dense kernel; if not given, what `choose_plan` says.
    """
    plan = plan or choose_plan(operator.order, operator.weights.dtype.name, device)
    kind = FusedLauncher if isinstance(plan, FusedPlan) else BernsteinFusedLauncher
    return kind(operator, device, plan)
