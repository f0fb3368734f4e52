"""What others offer for the same work, to be measured beside our kernels."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields, replace
from typing import Any

import numpy as np

from dgbook.gpu import Device


def on_device(thing: Any, device: Device, but: Collection[str] = ()) -> Any:
    """A dataclass with its arrays on a device, for the reference's own functions.

    CuPy takes over where NumPy's functions meet its arrays: products with matrices become calls of
    cuBLAS, and each array expression a kernel of CuPy's that passes over memory once.

    Parameters
    ----------
    thing : dataclass
    device : Device
    but : collection of str
        Fields that stay on the host.
    """
    values = {field.name: getattr(thing, field.name) for field in fields(thing)}
    arrays = {
        name: device.array(value)
        for name, value in values.items()
        if isinstance(value, np.ndarray) and name not in but
    }
    return replace(thing, **arrays)
