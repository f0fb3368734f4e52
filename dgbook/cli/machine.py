"""The command line of the machine's own measurements: `python -m dgbook bench machine`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from tqdm import tqdm

from dgbook.gpu import device
from dgbook.lab.machine import EFFECTS, caption_of, measurable, measure, value
from dgbook.lab.records import environment, save
from dgbook.lab.roofline import ceilings


def add_bench_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of `bench machine`."""
    parser.add_argument("--effects", nargs="+", choices=tuple(EFFECTS), default=list(EFFECTS))
    parser.add_argument("--out", type=Path, help="folder for the records; chapters/records if none")


def bench(arguments: argparse.Namespace) -> int:
    """Measure what this GPU likes and dislikes, effect by effect, and save the effects' records."""
    here = device("cuda")
    roof = ceilings(here)
    rows: dict[str, list[dict[str, Any]]] = {}
    for name in tqdm(arguments.effects, desc="effects"):
        effect = EFFECTS[name]
        if not measurable(effect, here):
            tqdm.write(f"{name:11} needs compute capability {effect.capability}")
            continue
        for row in measure(effect, here, roof):
            rows.setdefault(effect.record, []).append(row)
            tqdm.write(
                f"{name:11} {caption_of(effect, row):20} {value(effect, row):10.4g} {effect.unit}"
            )
    for name, measured in rows.items():
        content = {"name": name, "ceilings": roof.as_dict(), "rows": measured}
        print(save(environment(here) | content, arguments.out))
    return 0
