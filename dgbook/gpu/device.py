"""What there is to compute on: a CUDA device, processor cores or the simulator."""

from __future__ import annotations

import importlib.metadata
import platform
import weakref
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numba
import numpy as np

from dgbook.gpu.kernel import HAS_CUPY, HAS_NUMBA_CUDA, cuda, preparing

KINDS = ("auto", "cuda", "cpu", "reference", "simulator")
WITH_KERNELS = tuple(kind for kind in KINDS if kind != "reference")
"""Of families whose solvers have no other reference than their tests."""
MESSAGES = -1
"""The number of the stream in which messages travel."""
INSTALL = "in the repository pip install '.[cuda12]' or '.[cuda13]', what fits your driver"


@dataclass(frozen=True)
class Device:
    """A place where arrays live and kernels run.

    Attributes
    ----------
    kind : str
        "cuda", "cpu", "reference" or "simulator".
    name : str
        The GPU's name, or the processor's.
    compute_capability : tuple of two ints, or None
    memory_bytes : int, or None
        All of the GPU's memory.
    multiprocessors, l2_bytes : int, or None
    sentence : str
        What was found and what it means for the reader, in plain words.
    """

    kind: str
    name: str
    sentence: str
    compute_capability: tuple[int, int] | None = None
    memory_bytes: int | None = None
    multiprocessors: int | None = None
    l2_bytes: int | None = None
    driver: str | None = None
    runtime: str | None = None

    @property
    def is_host(self) -> bool:
        """Whether solvers compute on the processor: by compiled kernels, or the reference."""
        return self.kind in ("cpu", "reference")

    def array(self, values: np.ndarray) -> Any:
        """Copy a NumPy array to this device, in C order."""
        if self.kind == "cuda":
            import cupy

            return cupy.asarray(np.ascontiguousarray(values))
        return np.array(values, order="C")

    def empty(self, shape: int | tuple[int, ...], dtype: Any) -> Any:
        """An array full of NaN (integers: their largest value): what nobody wrote shows."""
        poison = np.nan if np.dtype(dtype).kind in "fc" else np.iinfo(dtype).max
        return self._module.full(shape, poison, dtype)

    def zeros(self, shape: int | tuple[int, ...], dtype: Any) -> Any:
        return self._module.zeros(shape, dtype)

    def to_numpy(self, array: Any) -> np.ndarray:
        """Copy an array of this device to a new NumPy array."""
        return array.get() if self.kind == "cuda" else np.array(array)

    def sum_of_squares(self, array: Any) -> float:
        """The sum of squares of an array of this device, accumulated in fp64, by one pass over it.

        The device waits for the host. What is infinite or NaN in the array makes the sum so.
        """
        if self.kind == "cuda":
            return float(_sum_of_squares()(array).get())
        with np.errstate(over="ignore", invalid="ignore"):
            return float(np.einsum("i,i->", array.ravel(), array.ravel(), dtype=np.float64))

    def dots(self, rows: Any, vector: Any) -> np.ndarray:
        """``rows @ vector`` on the host, summed in their precision; both are arrays of this device.

        The device waits for the host.
        """
        return self.to_numpy(rows @ vector).astype(np.float64)

    def subtract(self, rows: Any, coefficients: np.ndarray, vector: Any) -> None:
        """``vector -= coefficients @ rows``, by one pass; the coefficients are on the host."""
        if self.kind == "cuda":
            import cupy

            factors = cupy.asarray(coefficients.astype(vector.dtype))
            _subtract()(rows, factors, vector)
        else:
            vector -= coefficients.astype(vector.dtype) @ rows

    def synchronize(self) -> None:
        """Wait until the device has done all that was asked of it."""
        if self.kind == "cuda":
            import cupy

            cupy.cuda.Device().synchronize()

    def capture(self, step: Callable[[], None]) -> Callable[[], None]:
        """Record the kernels that `step` launches in a CUDA graph; calling the result replays them.

        Replaying costs the host under a microsecond a kernel, a launch from Python tens of them.
        `step` may contain kernel launches only, and every replay uses the same arrays and scalars.
        On the CPU and the simulator there is nothing to record and `step` itself comes back.
        """
        if self.kind != "cuda":
            return step
        import cupy

        with preparing():
            step()
        stream = cupy.cuda.Stream(non_blocking=True)
        self.synchronize()
        with stream:
            stream.begin_capture()
            step()
            graph = stream.end_capture()
        recording = _executable(graph)

        def replay(arrays_of: Callable[[], None] = step) -> None:
            # The recording holds addresses only: with `step` its arrays stay alive.
            _driver("cuGraphLaunch", recording, cupy.cuda.get_current_stream().ptr)

        weakref.finalize(replay, _driver, "cuGraphExecDestroy", recording).atexit = False
        return replay

    def concurrently(self, *functions: Callable[[], None]) -> None:
        """Launch kernels that need not wait for one another, each function's in its own stream.

        What was launched before is done before any of them begins, and what is launched afterwards
        begins after all of them: the streams fork and join, also inside of `capture`, where they
        become branches of the graph. All but the first function's have precedence where blocks wait
        for a multiprocessor. On the CPU and the simulator one runs after the other.
        """
        if self.kind != "cuda":
            for function in functions:
                function()
            return
        import cupy

        first, *others = functions
        here = cupy.cuda.get_current_stream()
        fork = here.record(cupy.cuda.Event(disable_timing=True))
        joins = []
        for number, function in enumerate(others):
            stream = _side_stream(cupy.cuda.Device().id, number)
            stream.wait_event(fork)
            with stream:
                function()
            joins.append(stream.record(cupy.cuda.Event(disable_timing=True)))
        first()  # before the joins: it would wait for them
        for join in joins:
            here.wait_event(join)

    def aside(self, function: Callable[[], None]) -> Callable[[], None]:
        """Launch something in a stream for messages; what is returned makes kernels wait for it.

        The function is called at once: its launches begin when what was launched before is done,
        and precede what waits for a multiprocessor. The stream that is current when the result is
        called goes on after them. Both work inside of `capture`, where somebody has to wait. On the
        CPU and the simulator all is done at once.
        """
        if self.kind != "cuda":
            function()
            return lambda: None
        import cupy

        here = cupy.cuda.get_current_stream()
        stream = _side_stream(cupy.cuda.Device().id, MESSAGES)
        stream.wait_event(here.record(cupy.cuda.Event(disable_timing=True)))
        with stream:
            function()
        done = stream.record(cupy.cuda.Event(disable_timing=True))
        return lambda: cupy.cuda.get_current_stream().wait_event(done)

    def mapped(self, size: int, dtype: Any) -> tuple[Any, np.ndarray]:
        """Memory of the host that kernels reach as well: an array of this device, and NumPy's.

        Both are the same `size` numbers, page-locked so that a GPU reads and writes them where
        they are: what a launch has written is there once the launch is done (see `mark`), and what
        the host writes is there for later launches. For a few numbers to and fro; it is far slower
        than the device's own memory.
        """
        if self.kind != "cuda":
            array = self.empty(size, dtype)
            return array, array
        import cupy

        dtype = np.dtype(dtype)
        memory = cupy.cuda.alloc_pinned_memory(size * dtype.itemsize)
        here = np.frombuffer(memory, dtype, size)
        device_id = cupy.cuda.Device().id
        mapped = cupy.cuda.UnownedMemory(memory.ptr, here.nbytes, memory, device_id)
        return cupy.ndarray((size,), dtype, cupy.cuda.MemoryPointer(mapped, 0)), here

    def mark(self) -> Callable[[], None]:
        """A function that waits until the device has done all that was asked of it until now.

        Unlike `synchronize` it waits for nothing that is asked of it later.
        """
        if self.kind != "cuda":
            return lambda: None
        import cupy

        event = cupy.cuda.Event(disable_timing=True)
        return cupy.cuda.get_current_stream().record(event).synchronize

    @property
    def stream(self) -> int:
        """The address of the current stream; 0 on the CPU and the simulator, which have none."""
        if self.kind != "cuda":
            return 0
        import cupy

        return cupy.cuda.get_current_stream().ptr

    @property
    def _module(self) -> Any:
        if self.kind == "cuda":
            import cupy

            return cupy
        return np


def device(name: str = "auto") -> Device:
    """Find a device.

    Parameters
    ----------
    name : {"auto", "cuda", "cpu", "reference", "simulator"}
        "auto" takes a CUDA device where one works, else the CPU. "cpu" is compiled kernels on all
        cores, "reference" the NumPy operators that define what is right.

    Raises
    ------
    ValueError
        For another name.
    RuntimeError
        For "cuda" where no CUDA device works; the message says why and what to do.
    """
    if name not in KINDS:
        raise ValueError(f"device = {name!r}; allowed are {', '.join(map(repr, KINDS))}")
    if name == "simulator":
        return Device(
            "simulator",
            "dgbook simulator",
            "Kernels run on dgbook's simulator: the real kernel, thread by thread, on tiny "
            "problems. It shows that a kernel is right, not how fast it is.",
        )
    if name == "reference":
        return Device(
            "reference", _processor(), "You asked for the reference: solvers run in NumPy."
        )
    if name == "cpu":
        return _cpu(f"You asked for the CPU: solvers run compiled kernels on {_cores()}.")
    trouble = _trouble()
    if not trouble:
        return _cuda_device()
    if name == "cuda":
        raise RuntimeError(trouble)
    return _cpu(
        f"{trouble} Until then solvers run compiled kernels on {_cores()}, and GPU kernels run in "
        "the simulator."
    )


def as_device(given: Device | str | None, kinds: Collection[str] = KINDS) -> Device:
    """A device, its name, or None for "auto", as a device of one of some kinds.

    Raises
    ------
    ValueError, RuntimeError
        As `device`, and for another kind.
    """
    found = given if isinstance(given, Device) else device("auto" if given is None else given)
    if found.kind not in kinds:
        raise ValueError(f"device = {found.kind!r}; allowed are {', '.join(map(repr, kinds))}")
    return found


@lru_cache
def _sum_of_squares() -> Any:
    """CuPy's reduction, compiled when first called for each type."""
    import cupy

    return cupy.ReductionKernel(
        "T x", "float64 y", "(double)x * (double)x", "a + b", "y = a", "0", "sum_of_squares"
    )


@lru_cache
def _subtract() -> Any:
    """A thread takes all rows from its number of the vector; compiled when first called."""
    import cupy

    return cupy.ElementwiseKernel(
        "raw T rows, raw T factors",
        "T y",
        "T left = y; "
        "for (ptrdiff_t j = 0; j < factors.size(); j++) "
        "left -= factors[j] * rows[j * _ind.size() + i]; "
        "y = left",
        "subtract_rows",
    )


@lru_cache
def _side_stream(device_id: int, number: int) -> Any:
    """One of the streams beside the current one, whose launches have precedence before its own."""
    import cupy

    return cupy.cuda.Stream(non_blocking=True, priority=-1)


def _executable(graph: Any) -> Any:
    """A recording that keeps to the priorities of the streams it was recorded in.

    CuPy's own does not: there the interior of a part would keep messages and its edge waiting.
    """
    import cupy
    from cuda.bindings import driver

    flag = driver.CUgraphInstantiate_flags.CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY
    recording = _driver("cuGraphInstantiate", graph.graph, int(flag))
    _driver("cuGraphUpload", recording, cupy.cuda.get_current_stream().ptr)
    return recording


def _driver(name: str, *arguments: Any) -> Any:
    """Call a function of CUDA's driver and return what it gives, if anything."""
    from cuda.bindings import driver

    result, *given = getattr(driver, name)(*arguments)
    if result != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"{name}: {result.name}")
    return given[0] if given else None


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that a measurement depends on."""
    installed = {"python": platform.python_version()}
    for package in ("dgbook", "numpy", "numba", "numba-cuda", "cupy-cuda12x", "cupy-cuda13x"):
        try:
            installed[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return installed


def _cpu(sentence: str) -> Device:
    return Device("cpu", _processor(), sentence)


def _cores() -> str:
    threads = numba.get_num_threads()
    return f"{threads} processor cores" if threads > 1 else "one processor core"


def _processor() -> str:
    return platform.processor() or platform.machine()


@lru_cache(maxsize=1)
def _trouble() -> str:
    """Why no CUDA device can be used and what to do about it, or an empty string."""
    return diagnose(_numpy_version(), HAS_NUMBA_CUDA, HAS_CUPY, _driver_state())


def diagnose(
    numpy_version: tuple[int, int], numba_cuda: bool, cupy: bool, driver: tuple[str, str]
) -> str:
    """One or two sentences on what keeps the GPU from working, or an empty string.

    Parameters
    ----------
    numpy_version : tuple of two ints
    numba_cuda, cupy : bool
        Whether they can be imported.
    driver : tuple of two strings
        ("works", ""), ("absent", ""), ("no device", ""), ("too old", what was seen) or
        ("broken", what was seen).
    """
    state, seen = driver
    if state == "absent":
        return (
            "No NVIDIA driver was found. On Colab choose Runtime, Change runtime type, a GPU; "
            "elsewhere a CUDA device and its driver are needed."
        )
    if state == "no device":
        return (
            "An NVIDIA driver is here but it sees no GPU. Check CUDA_VISIBLE_DEVICES and "
            "nvidia-smi; on Colab choose a GPU runtime."
        )
    if not numba_cuda:
        return f"There is a GPU but no numba-cuda: {INSTALL}."
    if numpy_version >= (2, 5) and _numba_cuda_version() < (0, 31):
        installed = ".".join(map(str, _numba_cuda_version()))
        return (
            f"There is a GPU, but numba-cuda {installed} cannot compile with NumPy "
            f"{numpy_version[0]}.{numpy_version[1]}: pip install 'numpy<2.5', then restart."
        )
    if not cupy:
        return (
            "There is a GPU and numba-cuda, but no CuPy, which holds the arrays: "
            "pip install cupy-cuda12x or cupy-cuda13x, the one that fits your driver."
        )
    if state == "too old":
        return (
            f"The GPU's driver is older than the CUDA toolkit that Numba compiles with ({seen}): "
            "update the driver, or pip install '.[cuda12]' in the repository, and restart."
        )
    if state == "broken":
        return f"There is a GPU, but a first kernel did not run on it: {seen}"
    return ""


def _numpy_version() -> tuple[int, int]:
    major, minor = np.__version__.split(".")[:2]
    return int(major), int(minor)


def _numba_cuda_version() -> tuple[int, ...]:
    try:
        text = importlib.metadata.version("numba-cuda")
    except importlib.metadata.PackageNotFoundError:
        return (0, 0)
    return tuple(int(part) for part in text.split(".")[:2])


def _driver_state() -> tuple[str, str]:
    """Ask the driver itself, then run one tiny kernel through the whole tool chain."""
    import ctypes

    try:
        library = ctypes.CDLL("nvcuda.dll" if platform.system() == "Windows" else "libcuda.so.1")
    except OSError:
        return "absent", ""
    count = ctypes.c_int(0)
    if (
        library.cuInit(0) != 0
        or library.cuDeviceGetCount(ctypes.byref(count)) != 0
        or not count.value
    ):
        return "no device", ""
    if not (HAS_NUMBA_CUDA and HAS_CUPY):
        return "works", ""
    try:
        import cupy

        values = cupy.zeros(1, np.float32)
        _probe()[1, 1](cuda.as_cuda_array(values))
        return ("works", "") if values.get()[0] == 1 else ("broken", "it wrote a wrong value")
    except Exception as error:  # whatever the tool chain raises is what the reader must be told
        seen = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        return ("too old" if "PTX" in seen or "UNSUPPORTED" in seen.upper() else "broken"), seen


def _probe() -> Any:
    @cuda.jit
    def write_one(values):
        values[0] = 1

    return write_one


def _cuda_device() -> Device:
    import cupy

    properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)
    name = properties["name"].decode()
    capability = (properties["major"], properties["minor"])
    memory = properties["totalGlobalMem"]
    driver = cupy.cuda.runtime.driverGetVersion()
    runtime = cupy.cuda.runtime.runtimeGetVersion()
    return Device(
        kind="cuda",
        name=name,
        sentence=(
            f"{name}, compute capability {capability[0]}.{capability[1]}, "
            f"{memory / 2**30:.0f} GiB, {properties['multiProcessorCount']} multiprocessors: "
            "kernels run on it."
        ),
        compute_capability=capability,
        memory_bytes=memory,
        multiprocessors=properties["multiProcessorCount"],
        l2_bytes=properties["l2CacheSize"],
        driver=f"{driver // 1000}.{driver % 1000 // 10}",
        runtime=f"{runtime // 1000}.{runtime % 1000 // 10}",
    )
