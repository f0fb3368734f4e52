"""A measuring session: a device, the ceilings of a GPU, and the rows of records that they make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from dgbook.gpu import Device
from dgbook.gpu import device as find_device
from dgbook.gpu.cost import Cost
from dgbook.gpu.timing import Timing, beyond_cache
from dgbook.lab.floor import Ceilings, floor_seconds


@dataclass(frozen=True)
class Subject:
    """What the rows about one problem share, as in the row: see `dgbook.lab.records.validate`.

    Attributes
    ----------
    order : int or None
    dtype : str or dtype
    size : mapping
    dofs : int
    more : mapping
        Fields of the family, at the end of a row.
    """

    order: int | None
    dtype: Any
    size: Mapping[str, Any]
    dofs: int
    more: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of_state(cls, shape: tuple[int, int, int], order: int, dtype: Any, **more: Any) -> Subject:
        """An operator on a state of shape (fields, K, Np)."""
        fields, K, Np = shape
        return cls(order, dtype, {"K": K, "Np": Np, "fields": fields}, fields * K * Np, more)

    def sized(self, **size: Any) -> Subject:
        """The same with more to say about its size."""
        return replace(self, size={**self.size, **size})


@dataclass(frozen=True)
class Session:
    """Where a run measures, and what its rows are held against.

    Attributes
    ----------
    device : Device
    ceiling : Ceilings
        Of a GPU, from `dgbook.lab.roofline.ceilings` in the same run.
    """

    device: Device
    ceiling: Ceilings

    @property
    def on_host(self) -> Session:
        """On this machine's processor; floors and efficiencies are still the GPU's."""
        return replace(self, device=find_device("cpu"))

    def row(
        self, subject: Subject, path: str, language: str, plan: Any, cost: Cost, timing: Timing
    ) -> dict[str, Any]:
        """A row of a record: an operator whose cost is known, timed on the session's device.

        Parameters
        ----------
        subject : Subject
        path, language : str
        plan : dataclass or None
        cost : Cost
        timing : Timing
            From `dgbook.gpu.timing.measure`.
        """
        floor = floor_seconds(cost.bytes, cost.flops, subject.dtype, self.ceiling)
        return {
            "path": path,
            "language": language,
            "order": subject.order,
            "dtype": np.dtype(subject.dtype).name,
            "size": dict(subject.size),
            "dofs": subject.dofs,
            "plan": {} if plan is None else asdict(plan),
            **timing.as_row(),
            "flops": cost.flops,
            "bytes": cost.bytes,
            "floor_seconds": floor,
            "efficiency": floor / timing.median,
            "beyond_cache": beyond_cache(cost.bytes, self.device),
            "host_bound": timing.host_bound,
            **subject.more,
        }
