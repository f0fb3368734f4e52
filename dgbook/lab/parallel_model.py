"""What the model says of many GPUs: surfaces counted on parts of meshes, times from records."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dgbook.element import NodalElement
from dgbook.lab import records
from dgbook.lab.parallel import RECORDED
from dgbook.mesh import read
from dgbook.parallel import model
from dgbook.parallel.surface import Surface, surfaces

FIELDS, DTYPE, DTYPE_BYTES = 6, "float32", 4
FEWEST = 16
"""Elements of a part, so that METIS can make parts that are even."""
UNKNOWNS = 3e5, 1e8
"""Of a part, between which meshes are refined."""
SENT = {"whole": FIELDS, "flux": FIELDS // 3}
"""Numbers of a node that parts send, see `parallel.Solver`."""


def machine(order: int, exchanges: Mapping[float, float]) -> tuple[model.Machine, dict[str, Any]]:
    """The GPU of the records maxwell/sizes and machine/probes; how far their line is from them.

    Parameters
    ----------
    order : int
    exchanges : mapping
        By bytes that go each way the seconds that takes.

    Raises
    ------
    FileNotFoundError
        If there is no such record.
    """
    sizes, probes = records.load("maxwell/sizes"), records.load("machine/probes")
    rows = sizes.select(path="fused", dtype=DTYPE, order=order)
    measured = {row["size"]["K"]: row["seconds_median"] for row in rows}
    fixed, element = model.line(*zip(*measured.items(), strict=True))
    latency, inverse = model.line(*zip(*exchanges.items(), strict=True))
    launch = probes.row(path="launch", plan={"kind": "graph"})["seconds_median"]
    found = model.Machine(fixed, element, launch, latency, 1 / inverse)
    misfits = {
        "stage": _misfit(measured, lambda K: model.alone_seconds(found, K)),
        "exchange": _misfit(exchanges, lambda n: model.exchange_seconds(found, n)),
    }
    return found, {"records": [sizes.source, probes.source], "misfits": misfits}


def _misfit(measured: Mapping[float, float], modeled: Any) -> float:
    """The largest relative difference between a model and what it was made from."""
    return max(abs(modeled(size) / seconds - 1) for size, seconds in measured.items())


def recorded_exchanges() -> dict[float, float]:
    """By bytes the seconds in the record parallel/exchange.

    Raises
    ------
    FileNotFoundError
        If there is no such record.
    """
    rows = records.load("parallel/exchange").select(path="exchange")
    return {
        row["size"]["bytes"]: row["seconds_median"] for row in rows if row["variant"] == RECORDED
    }


def rows(order: int, paths: Iterable[Path], parts: Iterable[int], found: model.Machine) -> Any:
    """What the model says of meshes in parts, refined until parts are as large as GPUs want."""
    element = NodalElement(3, order)
    for path in paths:
        mesh = read(path)
        for counted in surfaces(mesh, [n for n in parts if n * FEWEST <= mesh.K]):
            for levels in itertools.count():
                one = model.refined(counted, levels)
                unknowns = one.elements * element.Np * FIELDS
                if unknowns > UNKNOWNS[1]:
                    break
                if unknowns < UNKNOWNS[0]:
                    continue
                for traces, numbers in SENT.items():
                    face_bytes = element.Nfp * numbers * DTYPE_BYTES
                    yield {
                        "mesh": path.name,
                        "levels": levels,
                        **one._asdict(),
                        "unknowns": unknowns,
                        "traces": traces,
                        "bytes": one.most_faces * face_bytes,
                        "seconds": model.stage_seconds(found, one, face_bytes),
                        "efficiency": model.efficiency(found, one, face_bytes),
                    }


def checked(order: int, found: model.Machine) -> list[dict[str, Any]]:
    """What the records of parts measured, as far as there are any, beside what the model says.

    A single part has copies in place of messages: a launch, and no network. Of several GPUs the
    model takes the mean part.
    """
    face_bytes = NodalElement(3, order).Nfp * FIELDS * DTYPE_BYTES
    alone = replace(found, latency=found.launch, bandwidth=math.inf)
    result = []
    for name in ("parallel/split", "parallel/weak", "parallel/strong"):
        if not records.exists(name):
            continue
        record = records.load(name)
        for row in record.select(order=order, dtype=DTYPE):
            if row["path"] == "whole" or row["variant"] != RECORDED:
                continue
            size, gpus = row["size"], row["size"]["gpus"]
            faces = size["sent"] / face_bytes / gpus
            each = (size["K"] / gpus, faces, size["edge"] / gpus)
            twice = [number for one in each for number in (one, one)]
            mean = Surface(size["parts"], *twice, 0, 0)
            on = alone if row["path"] == "part" else found
            seconds = model.stage_seconds(on, mean, face_bytes)
            measured = row["seconds_median"]
            about = {"record": name, "source": record.source, **size, "measured": measured}
            result.append(about | {"seconds": seconds, "ratio": measured / seconds})
    return result


def write(path: Path, content: Mapping[str, Any]) -> None:
    """Write what a model says, with its label."""
    path.parent.mkdir(parents=True, exist_ok=True)
    labeled = {"label": "MODEL", **content}
    path.write_text(json.dumps(labeled, indent=1) + "\n")
