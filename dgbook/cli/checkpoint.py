"""What a run leaves behind to be resumed from, to the last bit."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dgbook.cli.output import replacing
from dgbook.mesh import Mesh


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A run between two steps.

    Attributes
    ----------
    u : (n, K, Np) array
    raw : array
        The same as the kernels hold it, see `March.restore`.
    done : int
        Steps that are behind.
    dt : float
        Their length.
    total : float
        What the run shows at its start and its end, such as the energy, at its start.
    """

    u: np.ndarray
    raw: np.ndarray
    done: int
    dt: float
    total: float


def save(path: Path, checkpoint: Checkpoint, problem: Mapping[str, Any]) -> None:
    """Write a checkpoint of a problem; an interruption leaves the older one whole.

    `problem` is what `load` compares: by name, all that must not change, in terms that JSON knows.
    """
    with replacing(path) as file:
        np.savez(file, problem=json.dumps(problem), **vars(checkpoint))


def load(path: Path, problem: Mapping[str, Any]) -> Checkpoint:
    """Read a checkpoint of the same problem.

    Raises
    ------
    FileNotFoundError
        If there is none.
    ValueError
        If the file is no checkpoint, or one of another problem; the message names the differences.
    """
    if not path.is_file():
        raise FileNotFoundError(f"there is no checkpoint {path} to resume from")
    try:
        with np.load(path) as file:
            theirs = json.loads(str(file["problem"]))
            found = Checkpoint(
                file["u"],
                file["raw"],
                int(file["done"]),
                float(file["dt"]),
                float(file["total"]),
            )
    except (ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} is not a checkpoint, or is damaged") from error
    ours = json.loads(json.dumps(problem))
    differences = [
        f"{name} = {_shown(theirs.get(name))} there, {_shown(ours.get(name))} here"
        for name in {**theirs, **ours}
        if theirs.get(name) != ours.get(name)
    ]
    if differences:
        raise ValueError(f"checkpoint {path} is of another run: {'; '.join(differences)}")
    return found


def fingerprint(mesh: Mesh) -> str:
    """A text that two meshes share if they have the same elements, connections and named groups."""
    digest = hashlib.sha256()
    arrays = [("vertices", mesh.vertices), ("elements", mesh.elements), ("", mesh.neighbors)]
    for name, values in [*arrays, *mesh.boundary.items(), *mesh.regions.items()]:
        digest.update(f"{name} {values.shape} {values.dtype.str} ".encode())
        digest.update(values.tobytes())
    return f"{mesh.K} elements, sha256 {digest.hexdigest()[:16]}"


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
