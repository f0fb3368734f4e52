"""The program that "How to use this book" makes of a kernel, on the device."""

import re
import shutil
import subprocess

import page_code
import pytest

from dgbook.check.compile import CompilerNotFoundError, _tool
from dgbook.gpu import device


@pytest.mark.skipif(not shutil.which("g++"), reason="nvcc needs a compiler for the host")
def test_the_program_runs_on_the_device(dtype, tmp_path, monkeypatch, capsys):
    """Built by nvcc for this device as the page says; Python finds the mode in what it has left."""
    try:
        nvcc = _tool("nvcc", "nvidia-cuda-nvcc")
    except CompilerNotFoundError as error:
        pytest.skip(str(error))
    monkeypatch.chdir(tmp_path)
    capability = device("cuda").compute_capability
    names = page_code.write_program(capability=str(capability), dtype=repr(dtype))
    ((_, commands),) = page_code.blocks(page_code.PROGRAM, "console")
    build, run = (line.split() for line in commands.splitlines())
    build = [nvcc, *build[1:]]
    build[build.index("-arch=sm_90")] = "-arch=sm_{}{}".format(*capability)
    subprocess.run(build, cwd=names["folder"], check=True)
    done = subprocess.run(run, cwd=names["folder"], check=True, capture_output=True)
    assert done.stdout == b"no error\n"
    _, _, (_, result) = page_code.blocks(page_code.PROGRAM)
    page_code.execute(result, **names)
    (error,) = re.findall(r"\S+", capsys.readouterr().out)
    assert float(error) < 5e-3
