"""Write what the model of many GPUs says: .venv/bin/python tools/model_parallel.py.

Surfaces are counted on METIS's parts of the book's meshes, and refined. The GPU is that of the
records maxwell/sizes and machine/probes. Exchanges are those of the record parallel/exchange; where
there is none, give what was measured, and where: --exchange BYTES=SECONDS ... --source TEXT.
"""

import argparse
from dataclasses import asdict
from pathlib import Path

from dgbook.lab import parallel_model

ROOT = Path(__file__).parents[1]
MESHES = ("jet.msh.gz", "sphere_shell_fine.msh.gz", "aeroplane.msh")
PARTS = tuple(2**k for k in range(3, 13))


def pair(text: str) -> tuple[float, float]:
    """ "BYTES=SECONDS" as two numbers."""
    nbytes, seconds = text.split("=")
    return float(nbytes), float(seconds)


def main() -> None:
    """Read the options and write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--order", type=int, default=4)
    parser.add_argument("--exchange", nargs="+", type=pair, metavar="BYTES=SECONDS")
    parser.add_argument("--source", help="where these were measured")
    parser.add_argument("--out", type=Path, default=ROOT / "chapters/models/parallel_scaling.json")
    arguments = parser.parse_args()
    if bool(arguments.exchange) != bool(arguments.source):
        parser.error("--exchange needs --source, and the other way around")
    exchanges = dict(arguments.exchange or ()) or parallel_model.recorded_exchanges()
    machine, origin = parallel_model.machine(arguments.order, exchanges)
    paths = [ROOT / "chapters/meshes" / name for name in MESHES]
    rows = list(parallel_model.rows(arguments.order, paths, PARTS, machine))
    content = {
        "name": "parallel/scaling",
        "order": arguments.order,
        "machine": asdict(machine),
        "made_from": origin | {"exchange": arguments.source or "parallel/exchange"},
        "exchanges": exchanges,
        "checked": parallel_model.checked(arguments.order, machine),
        "rows": rows,
    }
    parallel_model.write(arguments.out, content)
    print(f"{len(rows)} rows: {arguments.out}")


if __name__ == "__main__":
    main()
