"""The ceilings of a device, measured: how fast it copies, and how fast it multiplies and adds.

They are measured with kernels of our own on the reader's device, in the same run as what is held
against them; a data sheet's numbers are not reached by any kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dgbook.gpu.device import Device
from dgbook.gpu.source import load
from dgbook.gpu.timing import cache_bytes, measurable, measure
from dgbook.lab.floor import Ceilings
from dgbook.lab.probes import (
    TENSOR_CAPABILITY,
    copy,
    copy_grid_stride,
    fma_rate,
    tensor_rate,
)

COPY_SOURCE = Path(__file__).with_name("copy.cu")


def ceilings(device: Device | str | None = None, quick: bool = False) -> Ceilings:
    """Measure a device's ceilings.

    On a GPU: the fastest of several copies of an array many times the L2 (one element a thread; a
    grid that strides; 16 bytes a thread in CUDA C++; the driver's own), chains of FMA in registers,
    and products on tensor cores, where the GPU has them for fp64 and TF32. On the CPU: NumPy's copy
    and the matrix product of its BLAS, on as many cores as that takes; they say what NumPy reaches,
    as the references in this book are written in it.

    Parameters
    ----------
    device : Device or its name, optional
        "auto" without it.
    quick : bool
        Smaller data: a second or less, and a few per cent below the long measurement.

    Raises
    ------
    RuntimeError
        For the simulator, which has no time.
    """
    device = measurable(device)
    return _gpu_ceilings(device, quick) if device.kind == "cuda" else _cpu_ceilings(device, quick)


def _gpu_ceilings(device: Device, quick: bool) -> Ceilings:
    nbytes = _copy_bytes(device, quick)
    _, _, copies = gpu_copies(device, nbytes)
    seconds = {
        name: measure(function, device, samples=20 if quick else 30).median
        for name, function in copies.items()
    }
    fastest = min(seconds, key=seconds.__getitem__)
    rates = {dtype: fma_rate(device, dtype).TFLOPs for dtype in ("float32", "float64")}
    tensor = {}
    if device.compute_capability >= TENSOR_CAPABILITY:
        tensor = {
            f"fp{8 * np.dtype(dtype).itemsize}_tensor_TFLOPs": max(
                tensor_rate(device, dtype, tiles).TFLOPs for tiles in (4, 8)
            )
            for dtype in rates
        }
    return Ceilings(
        copy_TBps=2 * nbytes / seconds[fastest] * 1e-12,
        fp32_TFLOPs=rates["float32"],
        fp64_TFLOPs=rates["float64"],
        method=(
            f"Copy of {nbytes / 2**20:.0f} MiB, the fastest of {len(seconds)} kernels ({fastest}), "
            "bytes read plus bytes written; chains of dependent FMA in registers, 8 per thread; "
            "products on tensor cores from registers, 4 or 8 sums per warp."
        ),
        **tensor,
    )


def _copy_bytes(device: Device, quick: bool) -> int:
    """Bytes of the array to copy: 1 GiB where two of them leave room, always beyond the L2."""
    wanted = max(2**28 if quick else 2**30, 4 * cache_bytes(device))
    return min(wanted, device.memory_bytes // 8) // 2**20 * 2**20


def gpu_copies(device: Device, nbytes: int) -> tuple[Any, Any, dict[str, Callable[[], None]]]:
    """The copies that compete for the bandwidth ceiling.

    Parameters
    ----------
    device : Device
        A CUDA device.
    nbytes : int
        A multiple of 16.

    Returns
    -------
    x, y : float64 arrays on the device
    copies : dict
        By name, functions each of which copies all of x to y.
    """
    x = device.array(np.arange(nbytes // 8, dtype=np.float64))
    y = device.empty(nbytes // 8, np.float64)
    vectors = load(COPY_SOURCE, "copy")
    words = x.view(np.float32), y.view(np.float32)
    persistent = 8 * device.multiprocessors
    return (
        x,
        y,
        {
            "one element a thread": lambda: copy[-(-x.size // 256), 256](x, y),
            "a grid that strides": lambda: copy_grid_stride[persistent, 256](x, y),
            # 16 bytes a vector, 4 vectors a thread
            "16 bytes an access": lambda: vectors[-(-nbytes // (16 * 4 * 256)), 256](
                *words, nbytes // 16
            ),
            "the driver's": lambda: y.data.copy_from_device_async(x.data, nbytes),
        },
    )


def _cpu_ceilings(device: Device, quick: bool) -> Ceilings:
    nbytes, order = (2**26, 512) if quick else (2**28, 1024)
    source = np.arange(nbytes // 8, dtype=np.float64)
    target = np.empty_like(source)
    # The shortest of the samples: unlike a GPU, a CPU has other things to do meanwhile.
    seconds = measure(lambda: np.copyto(target, source), device, samples=20, warmup=1).minimum
    rates = {}
    for dtype in (np.float32, np.float64):
        a, b = np.random.default_rng(0).standard_normal((2, order, order)).astype(dtype)
        product = np.empty_like(a)
        timing = measure(lambda a=a, b=b, c=product: np.matmul(a, b, out=c), device, samples=20)
        rates[dtype] = 2 * order**3 / timing.minimum * 1e-12
    return Ceilings(
        copy_TBps=2 * nbytes / seconds * 1e-12,
        fp32_TFLOPs=rates[np.float32],
        fp64_TFLOPs=rates[np.float64],
        method=(
            f"NumPy's copy of {nbytes / 2**20:.0f} MiB on one core, bytes read plus bytes written, "
            f"and the product of two {order} x {order} matrices by NumPy's BLAS, each at its best."
        ),
    )
