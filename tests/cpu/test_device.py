"""What the reader is told about his machine, and where arrays and kernels go."""

import ctypes
import importlib
import sys
import types

import numpy as np
import pytest

from dgbook import hdg, swept
from dgbook.gpu import Device, Kernel, device, jit, versions
from dgbook.gpu.device import KINDS, diagnose

WORKS = ("works", "")


@pytest.mark.parametrize(
    ("numpy_version", "numba_cuda", "cupy", "driver", "says"),
    [
        ((2, 4), True, True, ("absent", ""), "Change runtime type"),
        ((2, 4), True, True, ("no device", ""), "nvidia-smi"),
        ((2, 4), False, True, WORKS, "no numba-cuda"),
        ((2, 4), True, False, WORKS, "no CuPy"),
        (
            (2, 4),
            True,
            True,
            ("too old", "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"),
            "update the driver",
        ),
        ((2, 4), True, True, ("broken", "LaunchError: boom"), "boom"),
    ],
)
def test_each_illness_gets_a_sentence_with_a_cure(numpy_version, numba_cuda, cupy, driver, says):
    assert says in diagnose(numpy_version, numba_cuda, cupy, driver)


class Driver:
    """As much of the driver's library as is asked for the number of devices."""

    def __init__(self, count, ready=True):
        self.count, self.ready = count, ready

    def cuInit(self, flags):
        return 0 if self.ready else 999

    def cuDeviceGetCount(self, reference):
        reference._obj.value = self.count
        return 0


@pytest.mark.parametrize(
    ("library", "said", "state"),
    [
        (OSError("libcuda.so.1: cannot open"), "", "absent"),
        (Driver(0), "", "no device"),
        (Driver(1, ready=False), "", "no device"),
        (Driver(1), "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "too old"),
        (Driver(1), "the provided PTX was compiled with an unsupported toolchain", "too old"),
        (Driver(1), "an illegal memory access", "broken"),
    ],
)
def test_what_the_driver_says_is_told_apart(library, said, state, monkeypatch):
    module = importlib.import_module("dgbook.gpu.device")

    def opened(name):
        if isinstance(library, Exception):
            raise library
        return library

    def zeros(shape, dtype):
        raise RuntimeError(said)

    monkeypatch.setattr(ctypes, "CDLL", opened)
    monkeypatch.setitem(sys.modules, "cupy", types.SimpleNamespace(zeros=zeros))
    monkeypatch.setattr(module, "HAS_NUMBA_CUDA", True)
    monkeypatch.setattr(module, "HAS_CUPY", True)
    found, seen = module._driver_state()
    assert found == state and said in seen


def test_numpy_too_new_is_named(monkeypatch):
    module = importlib.import_module("dgbook.gpu.device")  # the function of this name hides it
    monkeypatch.setattr(module, "_numba_cuda_version", lambda: (0, 30))
    assert "numpy<2.5" in diagnose((2, 5), True, True, WORKS)
    monkeypatch.setattr(module, "_numba_cuda_version", lambda: (0, 31))
    assert diagnose((2, 5), True, True, WORKS) == ""


def test_a_healthy_machine_gets_no_complaint():
    assert diagnose((2, 4), True, True, WORKS) == ""


def test_unknown_device_names_what_is_allowed():
    with pytest.raises(ValueError, match=r"'tpu'.*'simulator'"):
        device("tpu")


def test_cuda_without_a_gpu_says_the_way_out():
    if device().kind == "cuda":
        pytest.skip("there is a GPU here")
    with pytest.raises(RuntimeError, match="driver"):
        device("cuda")


def test_the_host_computes_on_the_cpu_and_for_the_reference():
    kinds = [kind for kind in KINDS if kind != "auto"]
    assert [kind for kind in kinds if Device(kind, "", "").is_host] == ["cpu", "reference"]


@pytest.mark.parametrize("kind", ["cpu", "simulator"])
def test_arrays_are_copies_in_c_order(kind):
    here = device(kind)
    values = np.arange(6.0).reshape(2, 3).T
    array = here.array(values)
    assert array.flags.c_contiguous and np.array_equal(array, values)
    array[0, 0] = 99
    assert values[0, 0] == 0
    back = here.to_numpy(array)
    back[0, 0] = 7
    assert array[0, 0] == 99


def test_families_without_a_reference_refuse_it():
    message = "device = 'reference'; allowed are 'auto', 'cuda', 'cpu', 'simulator'"
    with pytest.raises(ValueError, match=message):
        swept.Solver("heat", "shared", 64, device="reference")
    with pytest.raises(ValueError, match=message):
        hdg.Gmres("reference")


def test_empty_arrays_are_poisoned():
    assert np.isnan(device("cpu").empty((2, 3), np.float32)).all()
    assert (device("cpu").empty(3, np.int32) == np.iinfo(np.int32).max).all()


def test_a_sum_of_squares_is_accumulated_in_fp64():
    """In fp32 the second square would be lost: 2^24 + 1 has 25 bits."""
    assert device("cpu").sum_of_squares(np.array([[2**12], [1]], np.float32)) == 2**24 + 1


def test_a_step_without_a_graph_is_the_step_itself():
    def step():
        pass

    assert device("simulator").capture(step) is step


def test_without_streams_one_function_runs_after_the_other():
    done = []
    device("simulator").concurrently(lambda: done.append(1), lambda: done.append(2))
    assert done == [1, 2]


class Streams:
    """As much of CuPy as forks and joins streams; `log` has what each stream was asked for."""

    def __init__(self):
        self.log, self.current = [], None
        streams, module = self, types.SimpleNamespace

        class Stream:
            def __init__(self, non_blocking=False):
                self.name = "side" if non_blocking else "main"

            def record(self, event):
                event.name = f"{self.name}'s event"
                streams.log.append(f"{self.name} records")
                return event

            def wait_event(self, event):
                streams.log.append(f"{self.name} waits for {event.name}")

            def __enter__(self):
                self.before, streams.current = streams.current, self

            def __exit__(self, *_):
                streams.current = self.before

        def event(disable_timing):
            return module()

        self.current = Stream()
        self.cuda = module(
            Stream=Stream,
            Event=event,
            get_current_stream=lambda: self.current,
            Device=lambda: module(id=0),
        )


def test_streams_fork_and_join(monkeypatch):
    """No stream begins early, none waits for another one, and the join waits for all."""
    module = importlib.import_module("dgbook.gpu.device")
    streams = Streams()
    monkeypatch.setitem(sys.modules, "cupy", streams)
    monkeypatch.setattr(module, "_side_stream", lambda *_: streams.cuda.Stream(True))

    def launched(what):
        return lambda: streams.log.append(f"{streams.current.name} launches {what}")

    module.Device("cuda", "none", "").concurrently(launched("a"), launched("b"))
    assert streams.log == [
        "main records",
        "side waits for main's event",
        "side launches b",
        "side records",
        "main launches a",
        "main waits for side's event",
    ]


def test_a_kernel_is_launched_with_a_grid_and_a_block():
    @jit
    def fill(x):
        x[0] = 1

    assert isinstance(fill, Kernel) and fill.name == "fill"
    with pytest.raises(TypeError, match=r"fill\[grid, block\]"):
        fill(np.zeros(1))
    with pytest.raises(TypeError, match=r"kernel\[grid, block\]"):
        fill[1](np.zeros(1))


def test_versions_name_what_a_measurement_depends_on():
    assert {"python", "numpy", "numba"} <= set(versions())
