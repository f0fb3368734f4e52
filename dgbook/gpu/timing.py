"""How long something takes: the one timing helper of the book and its protocol.

The protocol, for every number in the book:

1. *Warm up.* The function is called before anything is timed, so that compilation, module loading
   and first touches of memory stay out.
2. *Device events.* On a GPU the time between two events in the current CuPy stream is taken, after
   a short kernel that keeps the device busy until the host has queued everything: what is measured
   is the device and not Python. Where the host cannot run ahead (it takes longer than the device,
   or the function waits for the device itself) the timing says ``host_bound``. On the CPU it is
   `time.perf_counter`.
3. *Long samples.* One sample repeats the function until it lasts about 50 microseconds or more; the
   events' own half microsecond and the gap between two kernels then matter little.
4. *Many samples.* The median of at least 20, with the interquartile range beside it.
5. *Beyond the cache.* Repeated calls find small data in the cache. `beyond_cache` says whether data
   is several times the cache's size; where it is not, the text must say so.

The simulator has no time: it shows that a kernel is right.
"""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dgbook.gpu.device import Device, as_device
from dgbook.gpu.kernel import cuda, jit

FEWEST_SAMPLES = 20
SHORTEST_SAMPLE = 50e-6  # seconds
MOST_CALLS = {"cuda": 500, "cpu": 10_000, "reference": 10_000}  # a stream queues about 1,000
CACHE_FACTOR = 4  # data this many times the cache cannot live in it
UNKNOWN_CACHE = (
    64 * 2**20
)  # bytes: taken for a CPU whose system does not tell, and larger than most


@dataclass(frozen=True)
class Timing:
    """Seconds for one call, from many samples.

    Attributes
    ----------
    seconds : tuple of float
        One entry a sample: its duration divided by `inner`.
    inner : int
        Calls in one sample.
    host_bound : bool
        On a GPU: the host could not queue the calls ahead of the device, so its own time is in
        the numbers. A captured graph is the remedy (`Device.capture`).
    """

    seconds: tuple[float, ...]
    inner: int = 1
    host_bound: bool = False

    @property
    def median(self) -> float:
        """Median of the samples, seconds."""
        return float(np.median(self.seconds))

    @property
    def iqr(self) -> float:
        """Interquartile range of the samples, seconds."""
        lower, upper = np.percentile(self.seconds, (25, 75))
        return float(upper - lower)

    @property
    def minimum(self) -> float:
        """The shortest sample, seconds."""
        return min(self.seconds)

    @property
    def samples(self) -> int:
        """Number of samples."""
        return len(self.seconds)

    def as_row(self) -> dict[str, Any]:
        """The fields that a record's row has for a timing."""
        return {
            "seconds_median": self.median,
            "seconds_iqr": self.iqr,
            "samples": self.samples,
        }

    def __str__(self) -> str:
        scale, unit = 1e6, "us"
        if self.median >= 1e-3:
            scale, unit = (1e3, "ms") if self.median < 1 else (1, "s")
        return (
            f"{self.median * scale:.3g} {unit} (IQR {self.iqr * scale:.2g} {unit}, "
            f"{self.samples} samples of {self.inner})"
        )


def measure(
    function: Callable[[], Any],
    device: Device | str | None = None,
    samples: int = 30,
    warmup: int = 3,
    inner: int | None = None,
) -> Timing:
    """Time a function by the protocol above.

    Parameters
    ----------
    function : function without arguments
        On a GPU it launches work on the current CuPy stream: kernels, a captured graph.
    device : Device or its name, optional
        Where the work runs; "auto" without it.
    samples : int
        At least 20.
    warmup : int
        Calls before the first sample, at least 1.
    inner : int, optional
        Calls in one sample; chosen so that a sample lasts 50 microseconds if not given.

    Returns
    -------
    Timing

    Raises
    ------
    RuntimeError
        For the simulator, which has no time.
    ValueError
        If a count is too small.
    """
    for name, value, least in (
        ("samples", samples, FEWEST_SAMPLES),
        ("warmup", warmup, 1),
        ("inner", 1 if inner is None else inner, 1),
    ):
        if value < least:
            raise ValueError(f"{name} = {value}; allowed: at least {least}")
    device = measurable(device)
    sampler = _device_sampler(function) if device.kind == "cuda" else _host_sampler(function)
    for _ in range(warmup):
        function()
    device.synchronize()
    if inner is None:
        one = min(sampler(1)[0] for _ in range(3))
        inner = min(MOST_CALLS[device.kind], max(1, math.ceil(SHORTEST_SAMPLE / max(one, 1e-9))))
        sampler(inner)  # settles how long the device must be held for so many calls
    taken = [sampler(inner) for _ in range(samples)]
    return Timing(
        seconds=tuple(seconds / inner for seconds, _ in taken),
        inner=inner,
        host_bound=sum(late for _, late in taken) > samples // 2,
    )


def cache_bytes(device: Device | str | None = None) -> int:
    """Size of the last cache before memory: a GPU's L2, a CPU's last level.

    A CPU whose operating system does not tell is taken to have 64 MiB.

    Raises
    ------
    RuntimeError
        For the simulator, which has no cache.
    """
    device = measurable(device)
    if device.kind == "cuda":
        return int(device.l2_bytes or UNKNOWN_CACHE)
    try:
        return int(os.sysconf("SC_LEVEL3_CACHE_SIZE")) or UNKNOWN_CACHE
    except (AttributeError, ValueError, OSError):  # not Linux, or a C library without the name
        return UNKNOWN_CACHE


def beyond_cache(nbytes: int, device: Device | str | None = None) -> bool:
    """Whether data of `nbytes` is at least four times the device's last cache.

    Only then does a repeated measurement see memory; otherwise it sees the cache, and the text
    that shows the number must say so.

    Raises
    ------
    ValueError
        If nbytes is negative.
    RuntimeError
        For the simulator.
    """
    if nbytes < 0:
        raise ValueError(f"nbytes = {nbytes}; allowed: 0 and more")
    return nbytes >= CACHE_FACTOR * cache_bytes(device)


def measurable(device: Device | str | None) -> Device:
    """The device, where it has a time and a cache.

    Raises
    ------
    RuntimeError
        For the simulator.
    """
    device = as_device(device)
    if device.kind == "simulator":
        raise RuntimeError(
            "the simulator shows that a kernel is right, not how long it takes; measure on a CUDA "
            'device, or take a recorded number with dgbook.lab.records.load("NAME")'
        )
    return device


# ------------------------------------------------------------------------------------- samplers
# A sampler takes a number of calls and returns their seconds together, and whether the host was
# too slow to stay ahead of the device.

Sampler = Callable[[int], tuple[float, bool]]


def _host_sampler(function: Callable[[], Any]) -> Sampler:
    def sample(calls: int) -> tuple[float, bool]:
        start = time.perf_counter()
        for _ in range(calls):
            function()
        return time.perf_counter() - start, False

    return sample


FIRST_HOLD = 100  # microseconds
LONGEST_HOLD = 20_000


@jit
def _hold(microseconds, ended):
    """Keep the stream busy, so that the host can queue what is to be timed behind it."""
    for _ in range(microseconds):
        cuda.nanosleep(1000)
    ended[0] = microseconds


def _device_sampler(function: Callable[[], Any]) -> Sampler:
    import cupy

    ended = cupy.zeros(1, np.int32)
    start, stop = cupy.cuda.Event(), cupy.cuda.Event()
    hold = FIRST_HOLD

    def once(calls: int) -> tuple[float, bool]:
        if hold:
            _hold[1, 1](np.int32(hold), ended)
        start.record()
        for _ in range(calls):
            function()
        stop.record()
        late = bool(start.done)  # the device got here before the host had queued it all
        stop.synchronize()
        return cupy.cuda.get_elapsed_time(start, stop) * 1e-3, late

    def sample(calls: int) -> tuple[float, bool]:
        nonlocal hold
        seconds, late = once(calls)
        while late and hold:
            # Twice as long, until the host keeps ahead or there is no sense in waiting for it.
            hold = 2 * hold if 2 * hold <= LONGEST_HOLD else 0
            seconds, late = once(calls)
        return seconds, late

    return sample


@contextlib.contextmanager
def profiled() -> Iterator[None]:
    """Inside, launches are seen by a profiler that waits to be told, such as Nsight Compute."""
    import cupy

    cupy.cuda.Device().synchronize()
    cupy.cuda.profiler.start()
    try:
        yield
    finally:
        cupy.cuda.Device().synchronize()
        cupy.cuda.profiler.stop()
