"""The least time that an operator can take on a device: its floor.

A stage that must move B bytes and do F flops takes at least max(B / copy bandwidth, F / FMA rate).
Efficiency is floor over measured time. The rate is that of the fastest unit that delivers the
precision: where tensor cores do, a kernel on ordinary units is held against them, too.
"""

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Ceilings:
    """What a device reaches when it does one thing only.

    Attributes
    ----------
    copy_TBps : float
        Memory bandwidth of a copy, bytes read plus bytes written, 10^12 bytes a second.
    fp32_TFLOPs, fp64_TFLOPs : float
        Multiply-add rate of ordinary units, an FMA counting 2, 10^12 per second.
    method : str
        How they were measured, in a sentence.
    fp32_tensor_TFLOPs, fp64_tensor_TFLOPs : float, optional
        The same of tensor cores, in fp32 by three products in TF32; None where there are none, or
        where they were not measured.
    """

    copy_TBps: float
    fp32_TFLOPs: float
    fp64_TFLOPs: float
    method: str = ""
    fp32_tensor_TFLOPs: float | None = None
    fp64_tensor_TFLOPs: float | None = None

    def __post_init__(self) -> None:
        for name, value in self.as_dict().items():
            if not (math.isfinite(value) and value > 0):
                raise ValueError(f"{name} = {value}; allowed: positive and finite")

    def as_dict(self) -> dict[str, float]:
        """The numbers that there are, under the names that records use."""
        names = (field.name for field in fields(self) if field.name != "method")
        values = {name: getattr(self, name) for name in names}
        return {name: value for name, value in values.items() if value is not None}

    def flop_rate(self, dtype: Any) -> float:
        """Flops per second in a precision, of the fastest unit that delivers it.

        Raises
        ------
        ValueError
            If dtype is neither float32 nor float64.
        """
        if np.dtype(dtype) == np.float32:
            return max(self.fp32_TFLOPs, self.fp32_tensor_TFLOPs or 0.0) * 1e12
        if np.dtype(dtype) == np.float64:
            return max(self.fp64_TFLOPs, self.fp64_tensor_TFLOPs or 0.0) * 1e12
        raise ValueError(f"dtype = {dtype!r}; allowed are float32 and float64")

    def ridge(self, dtype: Any) -> float:
        """Flops a byte at which both floors are equal; below, memory is the limit."""
        return self.flop_rate(dtype) / (self.copy_TBps * 1e12)


def floor_seconds(bytes: float, flops: float, dtype: Any, ceilings: Ceilings) -> float:
    """The least time that so many bytes and flops take on a device with these ceilings.

    Parameters
    ----------
    bytes : float
        Least bytes: each input once and each output once, for the whole fused stage.
    flops : float
        Least flops, an FMA counting 2.
    dtype : float32 or float64
        Of the flops.
    ceilings : Ceilings

    Returns
    -------
    float
        max(bytes / copy bandwidth, flops / rate of the fastest unit), seconds.

    Raises
    ------
    ValueError
        If a count is negative or both are 0, or for another dtype.
    """
    if not (bytes >= 0 and flops >= 0 and bytes + flops > 0):
        raise ValueError(
            f"bytes = {bytes}, flops = {flops}; allowed: both from 0, and not both 0: "
            "whatever takes time moves or computes something"
        )
    return max(bytes / (ceilings.copy_TBps * 1e12), flops / ceilings.flop_rate(dtype))
