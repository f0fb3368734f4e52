"""The least time that an operator can take on a device: its floor.

A stage that must move B bytes and do F flops takes at least max(B / copy bandwidth, F / FMA rate).
Efficiency is floor over measured time. The FMA rate is that of the fastest unit that delivers the
precision: tensor cores, where the device has them for it and their rate was measured. A kernel on
them cannot go below the floor, then, and one on ordinary units is held against what it leaves.
"""

import math
from dataclasses import dataclass
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
        Multiply-add rate of ordinary units, an FMA counting 2, 10^12 a second.
    method : str
        How they were measured, in a sentence.
    fp32_tensor_TFLOPs, fp64_tensor_TFLOPs : float
        That of tensor cores, in fp32 by three products of parts; 0 if there are none for it or
        nobody measured them.
    """

    copy_TBps: float
    fp32_TFLOPs: float
    fp64_TFLOPs: float
    method: str = ""
    fp32_tensor_TFLOPs: float = 0.0
    fp64_tensor_TFLOPs: float = 0.0

    def __post_init__(self) -> None:
        for name, value in self.as_dict().items():
            if not (math.isfinite(value) and value > 0):
                raise ValueError(f"{name} = {value}; allowed: positive and finite")

    def as_dict(self) -> dict[str, float]:
        """The numbers that are known, under the names that records use."""
        tensor = "fp32_tensor_TFLOPs", "fp64_tensor_TFLOPs"
        known = {name: getattr(self, name) for name in tensor if getattr(self, name)}
        return {
            "copy_TBps": self.copy_TBps,
            "fp32_TFLOPs": self.fp32_TFLOPs,
            "fp64_TFLOPs": self.fp64_TFLOPs,
        } | known

    def flop_rate(self, dtype: Any) -> float:
        """Flops a second of the fastest unit that delivers a precision.

        Raises
        ------
        ValueError
            If dtype is neither float32 nor float64.
        """
        if np.dtype(dtype) == np.float32:
            return max(self.fp32_TFLOPs, self.fp32_tensor_TFLOPs) * 1e12
        if np.dtype(dtype) == np.float64:
            return max(self.fp64_TFLOPs, self.fp64_tensor_TFLOPs) * 1e12
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
