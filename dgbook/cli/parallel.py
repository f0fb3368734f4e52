"""Meshes in parts on the command line: python -m dgbook bench parallel."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from dgbook.gpu import Device
from dgbook.lab import measuring, peers
from dgbook.lab import parallel as measure
from dgbook.lab.numbers import live
from dgbook.nodal.solving import DTYPES

RECORDS = measure.RECORDS | {"peers": peers.peers_rows}
ORDER = 4


def add_bench_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `bench`."""
    measuring.add_bench_arguments(parser, "parallel", RECORDS, "precisions and sizes")
    parser.add_argument(
        "--order",
        type=int,
        help=f"polynomial degree N; {ORDER} if not given, and of the record peers the book's",
    )
    parser.add_argument("--dtype", default="float32", choices=DTYPES, help="precision")
    parser.add_argument(
        "--dofs",
        nargs="+",
        type=int,
        metavar="DOFS",
        help="degrees of freedom; for each GPU in weak and peers; the book's if not given",
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
    order, dtype, dofs = arguments.order, arguments.dtype, arguments.dofs

    def measured(what: str) -> tuple:
        """What its function takes to make a record."""
        if what == "peers":
            return peers.ORDERS if order is None else (order,), dtype, dofs or peers.DOFS
        return (
            ORDER if order is None else order,
            dtype,
            dofs or measure.SIZES[what],
            arguments.parts,
        )

    measuring.make_records(arguments, "parallel", RECORDS, measured, lambda what, row: False, line)


def line(row: Mapping[str, Any], device: Device) -> str:
    """A row as a line of text, its numbers labeled LIVE."""
    duration = live(row["seconds_median"] * 1e6, "us", device)
    size = " ".join(f"{key}={value}" for key, value in row["size"].items())
    return f"{row['path']:9} {row['dtype']} {row['variant']:21} {size} {duration}"
