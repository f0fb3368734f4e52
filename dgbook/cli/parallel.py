"""Meshes in parts on the command line: python -m dgbook bench parallel."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from dgbook.gpu import Device
from dgbook.lab import measuring
from dgbook.lab import parallel as measure
from dgbook.lab.numbers import live
from dgbook.nodal.solving import DTYPES


def add_bench_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `bench`."""
    measuring.add_bench_arguments(parser, "parallel", measure.RECORDS, "precisions and sizes")
    parser.add_argument("--order", type=int, default=4, help="polynomial degree N")
    parser.add_argument("--dtype", default="float32", choices=DTYPES, help="precision")
    parser.add_argument(
        "--dofs",
        nargs="+",
        type=int,
        metavar="DOFS",
        help="degrees of freedom; for each GPU where scaling is weak; the book's if not given",
    )
    parser.add_argument(
        "--parts",
        nargs="+",
        type=int,
        default=list(measure.PARTS),
        metavar="N",
        help="of the record split: into how many meshes are cut, of which one part is measured",
    )


def bench(arguments: argparse.Namespace) -> None:
    """Measure meshes in parts, and write records: split on one GPU, the others on all there are."""
    given = arguments.order, arguments.dtype
    dofs = {name: arguments.dofs or sizes for name, sizes in measure.SIZES.items()}
    measuring.make_records(
        arguments,
        "parallel",
        measure.RECORDS,
        lambda what: (*given, dofs[what], arguments.parts),
        lambda what, row: False,
        line,
    )


def line(row: Mapping[str, Any], device: Device) -> str:
    """A row as a line of text, its numbers labeled LIVE."""
    duration = live(row["seconds_median"] * 1e6, "us", device)
    size = " ".join(f"{key}={value}" for key, value in row["size"].items())
    return f"{row['path']:9} {row['dtype']} {row['variant']:21} {size} {duration}"
