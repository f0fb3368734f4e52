"""What a run leaves behind to be resumed from, to the last bit."""

from __future__ import annotations

import hashlib
import json
import math
import os
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout

from dgbook.cli.output import replacing
from dgbook.mesh import Mesh

SUFFIX = ".checkpoint"
"""How the name of every checkpoint ends."""
FORMAT = "dgbook checkpoint, version 1"
"""What the entry "format" of every checkpoint says."""
LONGEST_PROBLEM = 2**24
"""Bytes of the entry "problem"; refused beyond, before it is parsed."""
PATIENCE = 0.1
"""Seconds in which a lock is tried again: its owner may be about to remove it."""
SHOWN = 120
"""Characters of a value that messages show."""


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


ENTRIES = sorted(["format", "problem", *(field.name for field in fields(Checkpoint))])


def save(path: Path, checkpoint: Checkpoint, problem: Mapping[str, Any]) -> None:
    """Write a checkpoint of a problem; an interruption or a failure leaves the older one whole.

    `problem` is what `load` compares: by name, all that must not change, in terms that JSON knows.

    Raises
    ------
    ValueError
        If what is there is not a checkpoint: it is left alone.
    WriteError
        If the file cannot be written.
    """
    refuse_other_file(path)
    with replacing(path) as file:
        np.savez(file, format=FORMAT, problem=json.dumps(problem), **vars(checkpoint))


def remove(path: Path) -> None:
    """Remove a checkpoint, if there is one; a file that is not a checkpoint is left alone."""
    if is_checkpoint(path):
        path.unlink()


def refuse_other_file(path: Path) -> None:
    """Raise a ValueError if there is something that a checkpoint must not replace."""
    if os.path.lexists(path) and not is_checkpoint(path):
        raise ValueError(
            f"{path} exists and is not a checkpoint, or is damaged; it is left as it is. Allowed: "
            "another name, or the same name after you have removed the file"
        )


def is_checkpoint(path: Path) -> bool:
    """Whether there is a checkpoint of any run, judged by its directory and its format."""
    try:
        with _opened(path):
            return True
    except ValueError:
        return False


def load(
    path: Path, problem: Mapping[str, Any], shape: tuple[int, ...], dtype: np.dtype
) -> Checkpoint:
    """Read a checkpoint of the same problem, whose state has that shape and type.

    Nothing in the file is trusted: no more memory is taken than the file has bytes, and no object
    is unpickled.

    Raises
    ------
    FileNotFoundError
        If there is none.
    ValueError
        If the file is not a checkpoint, or one of another problem, or holds what no run saves; the
        message says which.
    """
    if not os.path.lexists(path):
        raise FileNotFoundError(f"there is no checkpoint {path} to resume from")
    with _opened(path) as archive:
        theirs = _problem(path, archive)
        ours = json.loads(json.dumps(problem))
        differences = [
            f"{_shown(name)} = {_shown(theirs.get(name))} there, {_shown(ours.get(name))} here"
            for name in {**theirs, **ours}
            if theirs.get(name) != ours.get(name)
        ]
        if differences:
            raise ValueError(f"checkpoint {path} is of another run: {'; '.join(differences)}")
        arrays = {field.name: _array(path, archive, field.name) for field in fields(Checkpoint)}
    u, raw, done, dt, total = arrays.values()
    sound = {
        f"a state of shape {shape} in {dtype}": u.shape == shape and u.dtype == dtype,
        "a state that is finite": all(a.dtype.kind == "f" and _finite(a) for a in (u, raw)),
        "a number of steps that is not negative": _is_number(done, "iu") and done >= 0,
        "a step that is positive and finite": _is_number(dt, "f") and 0 < dt < math.inf,
        "a finite number for the start": _is_number(total, "f") and _finite(total),
    }
    for allowed, holds in sound.items():
        if not holds:
            raise ValueError(f"{path} is not a checkpoint, or is damaged; allowed: {allowed}")
    return Checkpoint(u, raw, int(done), float(dt), float(total))


@contextmanager
def claimed(path: Path | None) -> Iterator[None]:
    """Inside, no other run can write the checkpoint `path`; None claims nothing.

    An empty file beside it, ``NAME.lock``, is locked. The operating system unlocks it when a
    process ends, however that happens: what a killed run left behind is in nobody's way.

    Raises
    ------
    ValueError
        If another run has claimed it, or the file beside it is somebody else's or cannot be made.
    """
    if path is None:
        yield
        return
    beside = path.with_name(path.name + ".lock")
    lock = FileLock(beside, timeout=PATIENCE)
    try:
        if not beside.is_symlink() and beside.is_file() and beside.stat().st_size:
            raise ValueError(f"{beside} exists and is not a lock of a checkpoint; remove it")
        lock.acquire(poll_interval=PATIENCE / 4)
    except Timeout as error:
        raise ValueError(
            f"another run writes the checkpoint {path}; allowed: another name, or to wait"
        ) from error
    except OSError as error:
        raise ValueError(f"{beside} cannot be made: {error.strerror}") from error
    try:
        yield
    finally:
        with suppress(PermissionError):  # of Windows, where the lock's release removes it
            beside.unlink(missing_ok=True)  # first: whoever opens it now finds that it is gone
        lock.release()


def fingerprint(mesh: Mesh) -> str:
    """A text that two meshes share if they have the same elements, connections and named groups."""
    digest = hashlib.sha256()
    names = ("vertices", "elements", "neighbors", "neighbor_faces", "face_permutation")
    arrays = [(name, getattr(mesh, name)) for name in names]
    for group in ("boundary", "regions"):
        arrays += [((group, name), values) for name, values in getattr(mesh, group).items()]
    for name, values in arrays:
        digest.update(f"{name!r} {values.shape} {values.dtype.str} ".encode())
        digest.update(values.tobytes())
    return f"{mesh.K} elements, sha256 {digest.hexdigest()[:16]}"


# ---------------------------------------------------------------------------------------- reading


def _damaged(path: Path) -> ValueError:
    return ValueError(f"{path} is not a checkpoint, or is damaged")


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    """The archive of a checkpoint, with the entries that it must have, none of them compressed."""
    if not path.is_file():  # neither a folder nor a pipe, which would never end
        raise _damaged(path)
    try:
        archive = zipfile.ZipFile(path)
    except Exception as error:  # whatever a parser raises on somebody's bytes
        raise _damaged(path) from error
    with archive:
        entries = archive.infolist()
        if (
            sorted(entry.filename for entry in entries) != [f"{name}.npy" for name in ENTRIES]
            or any(entry.compress_type != zipfile.ZIP_STORED for entry in entries)
            or any(entry.compress_size != entry.file_size for entry in entries)
            or sum(entry.file_size for entry in entries) > path.stat().st_size
            or min(entry.header_offset for entry in entries) != 0
            or archive.getinfo("format.npy").file_size > 2**12
            or archive.getinfo("problem.npy").file_size > LONGEST_PROBLEM
            or _array(path, archive, "format").tolist() != FORMAT
        ):
            raise _damaged(path)
        yield archive


def _array(path: Path, archive: zipfile.ZipFile, name: str) -> np.ndarray:
    """An entry. Its bytes are read first: what it says of its shape allocates nothing."""
    try:
        with archive.open(f"{name}.npy") as file:
            if np.lib.format.read_magic(file) != (1, 0):
                raise _damaged(path)
            shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
            values = np.frombuffer(file.read(), dtype)
        return values.reshape(shape, order="F" if fortran else "C")
    except Exception as error:  # whatever a parser raises on somebody's bytes
        raise _damaged(path) from error


def _problem(path: Path, archive: zipfile.ZipFile) -> dict[str, Any]:
    text = _array(path, archive, "problem")
    try:
        problem = json.loads(str(text))
    except (ValueError, RecursionError) as error:
        raise _damaged(path) from error
    if not isinstance(problem, dict):
        raise _damaged(path)
    return problem


def _is_number(value: np.ndarray, kinds: str) -> bool:
    return value.shape == () and value.dtype.kind in kinds


def _finite(values: np.ndarray) -> bool:
    return bool(np.isfinite(values).all())


def _shown(value: Any) -> str:
    """A value in a message: printable, and not too long."""
    plain = isinstance(value, str) and value.isprintable()
    text = value if plain else json.dumps(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
