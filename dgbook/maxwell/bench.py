"""Measuring and tuning on the command line: python -m dgbook bench | tune maxwell."""

from __future__ import annotations

import argparse

from dgbook import measuring, options
from dgbook.fused import LANGUAGES
from dgbook.gpu import device as find_device
from dgbook.maxwell import measure
from dgbook.maxwell.plan import STRATEGIES


def add_bench_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `bench`."""
    measuring.add_bench_arguments(parser, "maxwell", measure.RECORDS)
    options.add_measured(parser, 9, 60_000_000)


def add_tune_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `tune`."""
    options.add_measured(parser, 9, 8_000_000)


def bench(arguments: argparse.Namespace) -> None:
    """Measure Maxwell's operator on this GPU and write records."""
    orders = dict.fromkeys(measure.RECORDS, arguments.orders)
    measuring.bench(arguments, "maxwell", measure.RECORDS, arguments.dofs, orders)


def tune(arguments: argparse.Namespace) -> None:
    """Time the plans of the kernels on this GPU and remember the fastest."""
    device = find_device("cuda")
    for order in arguments.orders:
        mesh = measure.cube(measure.cells_for(arguments.dofs, order))
        for dtype in arguments.dtypes:
            operator = measure.operator_on(mesh, order, dtype)
            best = measure.best_plan(operator, device, STRATEGIES)
            print(f"N={order} {dtype}: {best}", flush=True)
            for language in LANGUAGES:
                found = measure.tune_fused(operator, device, language).plan
                print(f"N={order} {dtype}: {found}", flush=True)
