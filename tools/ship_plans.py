"""Put the fastest plans that `python -m dgbook tune` found on a GPU into those that are shipped.

Takes a file of timings, of the folder `dgbook.gpu.tune.cache_folder()`, and writes the file of the
same name in `dgbook/gpu/plans`::

    .venv/bin/python tools/ship_plans.py ~/.cache/dgbook/NVIDIA-H200.jsonl

Shipped are plans of kernels that exist in CUDA C++ and Numba: of each, with an order and a
precision, the fastest; and where that one uses tensor cores, the fastest without, for other GPUs.
What was shipped stays where the file has no timing of it.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import dgbook
from dgbook.gpu.plan import SHIPPED
from dgbook.nodal.fused import LANGUAGES

Lines = list[Mapping[str, Any]]


def read(path: Path) -> Lines:
    """The lines of a file of timings; none if there is no file."""
    return [json.loads(text) for text in path.read_text().splitlines()] if path.exists() else []


def subject(line: Mapping[str, Any]) -> tuple[str, int, str]:
    """What a timing is about."""
    return line["name"], line["order"], line["dtype"]


def fastest(timings: Iterable[Mapping[str, Any]]) -> dict[tuple[str, int, str], Lines]:
    """Of each subject the lines to ship, the fastest plan first.

    Of a plan that was timed twice the last timing counts, as it does for a solver.
    """
    last = {
        (subject(line), json.dumps(line["plan"], sort_keys=True)): line
        for line in timings
        if not line["failure"]
        and line["dgbook"] == dgbook.__version__
        and line["name"].rsplit("/", 1)[-1] in LANGUAGES
    }
    found: dict[tuple[str, int, str], Lines] = {}
    for line in sorted(last.values(), key=lambda line: line["seconds_median"]):
        lines = found.setdefault(subject(line), [])
        tensor = [kept["plan"].get("tensor", False) for kept in lines]
        if not lines or (all(tensor) and not line["plan"].get("tensor", False)):
            lines.append(line)
    return found


def main() -> None:
    """Merge a file of timings into the shipped one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("timings", type=Path, help="a file that tune wrote")
    timings = parser.parse_args().timings
    found = fastest(read(timings))
    if not found:
        raise SystemExit(f"{timings} has no timing of a kernel that is shipped with plans")
    path = SHIPPED / timings.name
    shipped: dict[tuple[str, int, str], Lines] = {}
    for line in read(path):
        shipped.setdefault(subject(line), []).append(line)
    lines = (line for group in (shipped | found).values() for line in group)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    print(f"{path}: {len(found)} kernels")


if __name__ == "__main__":
    main()
