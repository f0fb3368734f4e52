"""Measuring and tuning on the command line: python -m dgbook bench | tune swept."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from dgbook import measuring
from dgbook.gpu import Device
from dgbook.gpu import device as find_device
from dgbook.records import live
from dgbook.swept import measure
from dgbook.swept.plan import DTYPES, SCHEMES, plans
from dgbook.swept.problem import PROBLEMS, as_problem


def add_bench_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `bench`."""
    measuring.add_bench_arguments(
        parser, "swept", measure.RECORDS, "problems, schemes, precisions and sizes"
    )
    add_tune_arguments(parser)


def add_tune_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `tune`."""
    parser.add_argument("--problems", nargs="+", default=list(PROBLEMS), choices=PROBLEMS)
    parser.add_argument("--schemes", nargs="+", default=list(SCHEMES), choices=SCHEMES)
    parser.add_argument("--dtypes", nargs="+", default=list(DTYPES), choices=DTYPES)
    parser.add_argument(
        "--sizes", nargs="+", type=int, default=list(measure.SIZES), metavar="N", help="points"
    )


def bench(arguments: argparse.Namespace) -> None:
    """Measure the swept rule on this GPU and write records."""
    parts = arguments.problems, arguments.schemes, arguments.dtypes, arguments.sizes
    measuring.make_records(
        arguments,
        "swept",
        measure.RECORDS,
        lambda _: parts,
        lambda _, row: _measured_again(arguments, row),
        line,
    )


def tune(arguments: argparse.Namespace) -> None:
    """Time the plans of all schemes on this GPU and remember the fastest."""
    device = find_device("cuda")
    for problem in map(as_problem, arguments.problems):
        for scheme in arguments.schemes:
            for dtype in arguments.dtypes:
                for n in arguments.sizes:
                    what = problem, scheme, n, dtype
                    if legal := plans(*what):
                        result, steps = measure.tune_step(*what, device, legal)
                        step = live(result.seconds / steps * 1e6, "us", device)
                        print(
                            f"{problem.name} {scheme} {dtype} n={n}: {result.plan}, {step}",
                            flush=True,
                        )


def _measured_again(arguments: argparse.Namespace, row: Mapping[str, Any]) -> bool:
    size = row["size"]
    return "n" not in size or (
        size["problem"] in arguments.problems
        and row["path"] in arguments.schemes
        and row["dtype"] in arguments.dtypes
        and size["n"] in arguments.sizes
    )


def line(row: Mapping[str, Any], device: Device) -> str:
    """A row as a line of text, its numbers labelled LIVE."""
    duration = live(row["seconds_median"] * 1e6, "us", device)
    size = " ".join(f"{key}={value}" for key, value in row["size"].items())
    plan = " ".join(f"{key}={value}" for key, value in row["plan"].items())
    return f"{row['path']:13} {row['dtype']} {size:24} {plan} {row.get('variant', '')} {duration}"
