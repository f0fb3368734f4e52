"""How busy the parts of a GPU are while kernels run: hardware counters, read by Nsight Compute."""

from __future__ import annotations

import csv
import io
import shutil
import subprocess
import sys
from collections.abc import Mapping

# Percent of what each part can do. "L1" are the wavefronts of shared memory and the first cache,
# "issue" the cycles in which a scheduler issues something, "warps" the warps that are resident.
COUNTERS = {
    "memory": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "L2": "lts__throughput.avg.pct_of_peak_sustained_elapsed",
    "L1": "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed",
    "FMA": "sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active",
    "FP64": "sm__inst_executed_pipe_fp64.avg.pct_of_peak_sustained_active",
    "tensor": "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
    "issue": "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "warps": "sm__warps_active.avg.pct_of_peak_sustained_active",
}
# What a launch does, in numbers of it. Instructions and loads are those of warps, "FMA32" and
# "FMA64" those of threads on ordinary units.
COUNTS = {
    "memory read": "dram__bytes_read.sum",
    "memory written": "dram__bytes_write.sum",
    "L2": "lts__t_bytes.sum",
    "wavefronts": "l1tex__data_pipe_lsu_wavefronts.sum",
    "shared wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
    "bank conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
    "instructions": "smsp__inst_executed.sum",
    "shared loads": "smsp__inst_executed_op_shared_ld.sum",
    "global loads": "smsp__inst_executed_op_global_ld.sum",
    "FMA32": "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
    "FMA64": "smsp__sass_thread_inst_executed_op_dfma_pred_on.sum",
    "registers": "launch__registers_per_thread",
    "nanoseconds": "gpu__time_duration.sum",
}


def counters(program: str, metrics: Mapping[str, str] = COUNTERS) -> list[dict[str, float]]:
    """Run a program under Nsight Compute and read the counters of what it launches.

    Parameters
    ----------
    program : str
        Python; what it launches inside ``with profiled():`` is counted.
    metrics : mapping of str to str
        By a name of ours Nsight Compute's.

    Returns
    -------
    list of dict of str to float
        For each launch, in order, the numbers that `metrics` names, in units without prefixes.

    Raises
    ------
    RuntimeError
        If Nsight Compute is not installed, may not read counters, or the program failed; with the
        last of what was printed.
    """
    if shutil.which("ncu") is None:
        raise RuntimeError("ncu, Nsight Compute, is not on the PATH; the CUDA toolkit has it")
    command = ["ncu", "--csv", "--page", "raw", "--profile-from-start", "off"]
    command += ["--clock-control", "none", "--print-units", "base"]
    command += ["--metrics", ",".join(metrics.values())]
    command += [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    rows = parse(done.stdout, metrics)
    if done.returncode or not rows:
        raise RuntimeError(f"ncu counted nothing: {(done.stdout + done.stderr)[-500:]}")
    return rows


def parse(text: str, metrics: Mapping[str, str] = COUNTERS) -> list[dict[str, float]]:
    """The numbers in what ``ncu --csv --page raw`` prints, a dict a launch."""
    lines = text.splitlines()
    first = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), len(lines))
    table = csv.DictReader(io.StringIO("\n".join(lines[first:])))
    return [
        {name: float(row[metric].replace(",", "")) for name, metric in metrics.items()}
        for row in table
        if row["ID"]  # the row below the heading holds units
    ]
