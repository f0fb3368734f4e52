"""Measuring and tuning on the command line: python -m dgbook bench | tune euler."""

from __future__ import annotations

import argparse

from dgbook import measuring, options
from dgbook.euler import measure
from dgbook.fused import LANGUAGES
from dgbook.gpu import device as find_device

CELLS = 512


def add_bench_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `bench`."""
    measuring.add_bench_arguments(parser, "euler", measure.RECORDS)
    options.add_orders(
        parser, None, "; if not given, 0..6, of blocks, sizes and kernels 0..2, of figure2 2"
    )
    _add_cells(parser)


def add_tune_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `tune`."""
    options.add_orders(parser, "0..6")
    _add_cells(parser)


def _add_cells(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--cells",
        type=int,
        default=CELLS,
        help="squares along each side of the box, but for records with sizes of their own",
    )


def bench(arguments: argparse.Namespace) -> None:
    """Measure the Euler equations on this GPU and write records."""
    orders = {what: arguments.orders or default for what, default in measure.ORDERS.items()}
    measuring.bench(arguments, "euler", measure.RECORDS, arguments.cells, orders)


def tune(arguments: argparse.Namespace) -> None:
    """Time the plans of the kernels on this GPU and remember the fastest."""
    device = find_device("cuda")
    for order in arguments.orders:
        for dtype in arguments.dtypes:
            operator = measure.operator_on(arguments.cells, order, dtype)
            results = [measure.tune_paper(operator, device)]
            results += [measure.tune_fused(operator, device, name) for name in LANGUAGES]
            for result in results:
                print(f"p={order} {dtype}: {result.plan}", flush=True)
