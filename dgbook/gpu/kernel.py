"""The kernel decorator: one Python function that runs on a CUDA device or on the simulator."""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Callable, Iterator
from functools import cached_property, update_wrapper
from types import SimpleNamespace
from typing import Any

import numpy as np

from dgbook.gpu.limits import STATIC_SHARED_LIMIT

try:
    from numba import cuda
    from numba.core import config as _numba_config

    # Small grids are what a book's examples have; the reader needs no warning about each.
    _numba_config.CUDA_LOW_OCCUPANCY_WARNINGS = 0
except ImportError:  # a CPU-only installation: kernels only name it, and are simulated
    cuda = SimpleNamespace()

HAS_NUMBA_CUDA = not isinstance(cuda, SimpleNamespace)
HAS_CUPY = importlib.util.find_spec("cupy") is not None

_preparing = False


class Kernel:
    """A CUDA kernel written in Python, compiled when it is first launched.

    Where its array arguments live decides where it runs: CuPy arrays send it to the GPU
    through Numba, NumPy arrays to the simulator. ::

        kernel[grid, block](x, y)           # grid and block: int or tuple of up to three ints
        kernel[grid, block, shared](x, y)   # shared: bytes of dynamic shared memory

    Attributes
    ----------
    py_func : function
        The Python function, whole, as the book prints it.
    options : dict
        What is handed to ``numba.cuda.jit``: ``max_registers``, ``fastmath``, ``lineinfo``, ...
    """

    def __init__(self, py_func: Callable, options: dict[str, Any]) -> None:
        update_wrapper(self, py_func)
        self.py_func = py_func
        self.options = options

    @property
    def name(self) -> str:
        return self.py_func.__name__

    @cached_property
    def dispatcher(self) -> Any:
        """Numba's lazy compiler for this function; nothing is compiled until a first launch."""
        if not HAS_NUMBA_CUDA:
            raise RuntimeError(
                f"kernel {self.name}: numba-cuda is not installed, so it can only be simulated; "
                "install dgbook[cuda12] or dgbook[cuda13] to compile it"
            )
        return cuda.jit(self.py_func, **self.options)

    def __getitem__(self, configuration: tuple) -> Callable[..., None]:
        if not isinstance(configuration, tuple) or len(configuration) not in (2, 3):
            raise TypeError(
                f"kernel {self.name}: launch it as kernel[grid, block](...) or "
                f"kernel[grid, block, shared_bytes](...), not kernel[{configuration!r}]"
            )
        grid, block = configuration[:2]
        shared = configuration[2] if len(configuration) == 3 else 0

        def launch(*args: Any) -> None:
            if _lives_on_gpu(args, self.name):
                _launch_on_gpu(self.dispatcher, grid, block, shared, args)
            else:
                _simulate(self.py_func, grid, block, args, shared)

        return launch

    def together(self, blocks: int, threads: int, *args: Any) -> int:
        """How many of so many blocks run at the same time, as barriers of the grid need it.

        The arguments decide what is compiled. In the simulator all run together.
        """
        if not _lives_on_gpu(args, self.name):
            return blocks
        compiled = self.dispatcher.compile(
            tuple(self.dispatcher.typeof_pyval(a) for a in _converted(args))
        )
        return min(blocks, compiled.max_cooperative_grid_blocks(threads))

    def __call__(self, *args: Any) -> None:
        raise TypeError(
            f"kernel {self.name} needs a grid and a block: {self.name}[grid, block](...)"
        )

    def __repr__(self) -> str:
        return f"<kernel {self.name}>"


def jit(function: Callable | None = None, *, device: bool = False, **options: Any) -> Any:
    """Turn a Python function into a kernel, or into a device function that kernels call.

    Parameters
    ----------
    function : function, optional
        The function; without it, ``jit(...)`` is a decorator with options.
    device : bool
        Make a device function: callable from kernels, not launchable.
    **options
        Handed to ``numba.cuda.jit``; the simulator ignores them.

    Returns
    -------
    Kernel or device function
    """
    if function is None:
        return lambda function: jit(function, device=device, **options)
    if not device:
        return Kernel(function, options)
    return cuda.jit(function, device=True, **options) if HAS_NUMBA_CUDA else function


@contextlib.contextmanager
def preparing() -> Iterator[None]:
    """Inside, a launch on the GPU compiles and loads its kernel but does not run it.

    A graph can only capture kernels that are loaded already, and running a time step
    once to load them would move the solution on by a step.
    """
    global _preparing
    _preparing = True
    try:
        yield
    finally:
        _preparing = False


@contextlib.contextmanager
def pretended_device(cc: tuple[int, int]) -> Iterator[None]:
    """Inside, Numba takes the current device to have this compute capability.

    A kernel is compiled for the capability that is asked for, but the device functions that it
    calls ask the driver for the current device's, and there may be no driver.
    """
    import numba.cuda.dispatcher as dispatcher

    ask_driver = dispatcher.get_current_device
    dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=cc)
    try:
        yield
    finally:
        dispatcher.get_current_device = ask_driver


def _simulate(function: Callable, *launch: Any) -> None:
    # The one door from the method to what checks it: `device="simulator"` goes through it.
    from dgbook.check import simulator

    simulator.launch(function, *launch)


def _lives_on_gpu(args: tuple, name: str) -> bool:
    on_gpu = [hasattr(a, "__cuda_array_interface__") for a in args]
    on_host = [isinstance(a, np.ndarray) for a in args]
    if any(on_gpu) and any(on_host):
        gpu = [i for i, here in enumerate(on_gpu) if here]
        host = [i for i, here in enumerate(on_host) if here]
        raise TypeError(
            f"kernel {name}: arguments {gpu} are on the GPU, arguments {host} are NumPy arrays; "
            "move all to one side with device.array(...) or device.to_numpy(...)"
        )
    return any(on_gpu)


def _launch_on_gpu(dispatcher: Any, grid: Any, block: Any, shared: int, args: tuple) -> None:
    import cupy

    converted = _converted(args)
    if _preparing or shared > STATIC_SHARED_LIMIT:
        compiled = dispatcher.compile(tuple(dispatcher.typeof_pyval(a) for a in converted))
        if shared > STATIC_SHARED_LIMIT:
            _allow_shared(compiled, shared, cupy.cuda.Device().id)
    if _preparing:
        return
    pointer = cupy.cuda.get_current_stream().ptr
    stream = cuda.external_stream(pointer) if pointer else 0
    dispatcher[grid, block, stream, shared](*converted)


def _converted(args: tuple) -> list:
    """CuPy's arrays as Numba's."""
    # sync=False: CuPy and Numba work on the same stream here, so no extra wait is needed.
    return [
        cuda.as_cuda_array(a, sync=False) if hasattr(a, "__cuda_array_interface__") else a
        for a in args
    ]


def _allow_shared(compiled: Any, nbytes: int, device_id: int) -> None:
    """Let a compiled kernel have more than 48 KiB of dynamic shared memory; Numba does not ask."""
    from cuda.bindings import driver

    function = compiled._codelibrary.get_cufunc().handle
    attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    if isinstance(function, driver.CUkernel):  # numba-cuda 0.30; before, a CUfunction
        (result,) = driver.cuKernelSetAttribute(attribute, nbytes, function, device_id)
    else:
        (result,) = driver.cuFuncSetAttribute(function, attribute, nbytes)
    if result != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(
            f"the device refuses {nbytes} bytes of dynamic shared memory a block: {result.name}"
        )
