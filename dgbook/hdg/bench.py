"""Measuring and tuning on the command line: python -m dgbook bench | tune hdg."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from dgbook import measuring, options
from dgbook.gpu import Device
from dgbook.gpu import device as find_device
from dgbook.hdg import measure
from dgbook.hdg.plan import METHODS, default_plan, illegal
from dgbook.hdg.product import shape_of
from dgbook.records import live

GIGABYTES = 2.0
"""Of a matrix: 30 times a large cache."""


def add_bench_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `bench`."""
    measuring.add_bench_arguments(
        parser, "hdg", measure.RECORDS, "dimensions, orders and precisions"
    )
    _add_sizes(parser)


def add_tune_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `tune`."""
    parser.add_argument(
        "--methods", nargs="+", default=("wide", "bulk"), choices=METHODS, help="of the product"
    )
    _add_sizes(parser)


def _add_sizes(parser: argparse.ArgumentParser) -> None:
    options.add_orders(parser, "1..10")
    parser.add_argument(
        "--dims", nargs="+", type=int, default=(2, 3), choices=(2, 3), help="dimensions"
    )
    parser.add_argument(
        "--gigabytes", type=float, default=GIGABYTES, help="of a matrix, 10^9 bytes"
    )


def bench(arguments: argparse.Namespace) -> None:
    """Measure the product with a trace matrix on this GPU and write records."""
    parts = arguments.orders, arguments.dtypes, arguments.dims, arguments.gigabytes * 1e9
    measuring.make_records(
        arguments,
        "hdg",
        measure.RECORDS,
        lambda _: parts,
        lambda _, row: _measured_again(arguments, row),
        line,
    )


def tune(arguments: argparse.Namespace) -> None:
    """Time the plans of the product on this GPU and remember the fastest."""
    device = find_device("cuda")
    parts = arguments.orders, arguments.dtypes, arguments.dims, (arguments.gigabytes * 1e9,)
    for order, matrix in measure.matrices(*parts, device):
        shape = shape_of(matrix)
        for method in arguments.methods:
            if not illegal(default_plan(shape, method), shape, device.compute_capability):
                result = measure.tune_product(matrix, method, device)
                rate = live(matrix.nbytes / result.seconds * 1e-12, "TB/s", device)
                about = f"{(shape.blocks - 1) // 2}D p={order} {shape.dtype}"
                print(f"{about}: {result.plan}, {rate}", flush=True)


def _measured_again(arguments: argparse.Namespace, row: Mapping[str, Any]) -> bool:
    return (
        row["size"]["dim"] in arguments.dims
        and row["order"] in arguments.orders
        and row["dtype"] in arguments.dtypes
    )


def line(row: Mapping[str, Any], device: Device) -> str:
    """A row as a line of text, its numbers labelled LIVE; TB/s count bytes of the matrix."""
    if "iterations" in row:
        return solution_line(row, device)
    duration = live(row["seconds_median"] * 1e6, "us", device)
    rate = live(row["size"]["matrix_bytes"] / row["seconds_median"] * 1e-12, "TB/s", device)
    size = row["size"]
    plan = " ".join(f"{key}={value}" for key, value in row["plan"].items() if key != "method")
    return (
        f"{size['dim']}D p={row['order']} m={size['m']} {row['dtype']} faces={size['faces']} "
        f"{row['path']:14} {duration.text():>11} {rate} {plan}"
    )


def solution_line(row: Mapping[str, Any], device: Device) -> str:
    """A row about a whole solution as a line of text."""
    size = row["size"]
    duration = live(row["seconds_median"], "s", device)
    spent = ", ".join(f"{name} {seconds:.3g}" for name, seconds in row["seconds"].items())
    rivals = row["rivals"].items()
    others = [f"{name} {sum(rival['seconds'].values()):.3g} s" for name, rival in rivals]
    others += [f"{name} over {limit:.3g} s" for name, limit in row["unfinished"].items()]
    return (
        f"{size['problem']} {size['dim']}D p={row['order']} faces={size['faces']} {row['path']:14} "
        f"{duration} ({spent}), iterations {row['iterations']}; "
        f"{', '.join(others) or 'no rivals'}"
    )
