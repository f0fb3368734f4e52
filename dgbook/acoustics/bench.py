"""Measuring and tuning on the command line: python -m dgbook bench | tune acoustics."""

from __future__ import annotations

import argparse

from dgbook import measuring, options
from dgbook.acoustics import measure
from dgbook.acoustics.plans import KERNEL_SETS, choose_plan
from dgbook.acoustics.solver import PATHS
from dgbook.fused import LANGUAGES
from dgbook.gpu import device as find_device


def add_bench_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `bench`."""
    measuring.add_bench_arguments(parser, "acoustics", measure.RECORDS)
    options.add_measured(parser, 9, 56_000_000)


def add_tune_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `tune`."""
    options.add_measured(parser, 9, measure.TUNED_DOFS)
    parser.add_argument("--paths", nargs="+", default=PATHS, choices=PATHS, help="whose plans")


def bench(arguments: argparse.Namespace) -> None:
    """Measure the acoustic operator on this GPU and write records."""
    orders = dict.fromkeys(measure.RECORDS, arguments.orders)
    measuring.bench(arguments, "acoustics", measure.RECORDS, arguments.dofs, orders)


def tune(arguments: argparse.Namespace) -> None:
    """Time the plans of the kernels on this GPU and remember the fastest."""
    device = find_device("cuda")
    for order in arguments.orders:
        mesh = measure.cube(measure.cells_for(arguments.dofs, order))
        for dtype in arguments.dtypes:
            operators = measure.operators_on(mesh, order, dtype)
            if "paper" in arguments.paths:
                for name, kernels in KERNEL_SETS.items():
                    measure.tune_paper(name, operators[kernels.basis], device)
                    plan = choose_plan(name, order, dtype, device)
                    print(f"N={order} {dtype} {name}: {plan}", flush=True)
            if "fused" in arguments.paths:
                for basis, operator in operators.items():
                    for language in LANGUAGES:
                        plan = measure.tune_fused(operator, device, language).plan
                        print(f"N={order} {dtype} {basis}: {plan}", flush=True)
