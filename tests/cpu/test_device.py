"""What the reader is told about his machine, and where arrays and kernels go."""

import importlib

import numpy as np
import pytest

from dgbook.gpu import Kernel, device, jit, versions
from dgbook.gpu.device import diagnose

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


def test_empty_arrays_are_poisoned():
    assert np.isnan(device("cpu").empty((2, 3), np.float32)).all()
    assert (device("cpu").empty(3, np.int32) == np.iinfo(np.int32).max).all()


def test_a_step_without_a_graph_is_the_step_itself():
    def step():
        pass

    assert device("simulator").capture(step) is step


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
