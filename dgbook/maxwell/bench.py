"""Measuring and tuning on the command line: python -m dgbook bench | tune maxwell."""

from __future__ import annotations

import argparse
from typing import Any

from dgbook import options, records
from dgbook.gpu import Device
from dgbook.gpu import device as find_device
from dgbook.gpu.roofline import ceilings
from dgbook.maxwell import measure
from dgbook.maxwell.fused import LANGUAGES
from dgbook.maxwell.plan import STRATEGIES
from dgbook.records import live


def add_bench_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `bench`."""
    parser.add_argument(
        "what",
        nargs="*",
        default=["stage"],
        metavar="RECORD",
        help=f"{', '.join(measure.RECORDS)}: which records are made, under maxwell/",
    )
    options.add_measured(parser, 9, 60_000_000)
    parser.add_argument("--out", help="folder for the records; chapters/records if not given")


def add_tune_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `tune`."""
    options.add_measured(parser, 9, 8_000_000)


def bench(arguments: argparse.Namespace) -> None:
    """Measure Maxwell's operator on this GPU and write records."""
    unknown = sorted(set(arguments.what) - set(measure.RECORDS))
    if unknown:
        raise ValueError(f"RECORD = {unknown[0]!r}; allowed are {', '.join(measure.RECORDS)}")
    device = find_device("cuda")
    ceiling = ceilings(device)
    for what in arguments.what:
        rows = []
        for row in measure.RECORDS[what](
            arguments.orders, arguments.dtypes, arguments.dofs, device, ceiling
        ):
            rows.append(row)
            print(line(row, device), flush=True)
        content = {
            "name": f"maxwell/{what}",
            **records.environment(device),
            "ceilings": ceiling.as_dict(),
            "rows": rows,
        }
        print("written:", records.save(content, arguments.out), flush=True)


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


def line(row: dict[str, Any], device: Device) -> str:
    """A row as a line of text, its numbers labelled LIVE."""
    duration, rate, efficiency = (
        live(row, unit, device) for unit in ("us", "GDOF/s", "efficiency")
    )
    extra = f" error {row['error']:.3e}" if "error" in row else f" {row.get('variant', '')}"
    return (
        f"N={row['order']} {row['dtype']} K={row['size']['K']:<8} {row['path']:13} "
        f"{row['language']:5} {duration.text():>11} efficiency {efficiency.text('.2f')} "
        f"{rate}{extra}"
    )
