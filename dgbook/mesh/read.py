"""Gmsh files, versions 2.2 and 4.1, ASCII and binary, read into a checked Mesh.

The format is defined in the Gmsh reference manual, section "File formats". A file is a series of
sections ``$Name ... $EndName``; ASCII and binary files hold the same numbers in the same order,
so the readers below take them from a cursor and need not know which it is.
"""

import gzip
import os
import re
import warnings
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from .build import build
from .check import check_coordinates
from .connect import vertex_set_keys
from .mesh import Labels, Mesh, MeshError

# Gmsh's element types: first-order simplices by dimension, and names for what is refused.
SIMPLEX_DIM = {15: 0, 1: 1, 2: 2, 4: 3}
ELEMENT_NAME = ("point", "line", "triangle", "tetrahedron")
NOT_SIMPLICES = {
    "quadrilateral": (3, 10, 16),
    "hexahedron": (5, 12, 17, 92, 93),
    "prism": (6, 13, 18),
    "pyramid": (7, 14, 19),
}
CURVED_SIMPLICES = {
    "line": (8, 26, 27, 28),
    "triangle": (9, 20, 21, 22, 23, 24, 25),
    "tetrahedron": (11, 29, 30, 31),
}

# Sections that are read, which a file has once; others may come again, $NodeData for one.
ONCE = ("MeshFormat", "PhysicalNames", "Entities", "PartitionedEntities", "Nodes", "Elements")

# A compressed file may grow to so many times its size, or to so many bytes if that is more: a mesh
# grows by a factor of 3 to 30, a file made to fill the memory by up to 1000.
LARGEST_GROWTH = 100
ALWAYS_ALLOWED = 2**26

LARGEST_EXACT = 2**53  # of the integers that a floating-point number holds


def read(path: str | os.PathLike, reorient: bool = False) -> Mesh:
    """Read a simplicial mesh from a Gmsh file.

    The mesh has the highest dimension of any element in the file; planar meshes drop z, and
    one-dimensional ones y and z. Physical groups of that dimension become ``regions``; those one
    dimension lower become ``boundary``, or ``interfaces`` where they lie inside. A group without a
    name is called ``"physical_<tag>"``. Nodes that no element uses are dropped, unknown sections
    skipped.

    Parameters
    ----------
    path : str or path
        A name that ends in ".gz" is that of a compressed file. Decompressed it may have 100 times
        its size, or 64 MiB if that is more.
    reorient : bool
        Reverse elements whose nodes are in negative order, instead of refusing them: for a planar
        mesh that was drawn seen from below.

    Returns
    -------
    Mesh

    Raises
    ------
    FileNotFoundError
        if there is no such file.
    MeshError
        if the file is not Gmsh's, of another version, truncated or garbled, partitioned, too
        large once decompressed, has a section twice, or holds elements other than first-order
        simplices; and for every defect that ``build`` finds.
        The message names the file, and elements and nodes by their tags in it.

    Notes
    -----
    Names of groups are read as UTF-8 or, where one of them is not, all of them as Latin-1: two
    names that differ in the file never become one.
    """
    file = _open(_content(Path(path)), os.fspath(path))
    tags, points, blocks = (_read_22 if file.version == "2.2" else _read_41)(file)
    return _to_mesh(file, tags, points, blocks, reorient)


def _content(path: Path) -> bytes:
    """The bytes of a file, decompressed if its name says that it is compressed."""
    if path.suffix != ".gz":
        return path.read_bytes()
    limit = max(LARGEST_GROWTH * path.stat().st_size, ALWAYS_ALLOWED)
    chunks, size = [], 0
    with path.open("rb") as compressed, gzip.GzipFile(fileobj=compressed) as file:
        try:
            while chunk := file.read(2**20):
                size += len(chunk)
                if size > limit:
                    raise MeshError(
                        f"{path} grows to more than {limit} bytes when it is decompressed, which "
                        f"is {LARGEST_GROWTH} times its size or {ALWAYS_ALLOWED} bytes, whichever "
                        "is more: no mesh does so; decompress it yourself if you trust it"
                    )
                chunks.append(chunk)
        except (OSError, EOFError, zlib.error) as error:
            raise MeshError(f"{path}: not a complete gzip file ({error})") from error
    return b"".join(chunks)


@dataclass(frozen=True)
class _File:
    """A file cut into sections: their bodies by name, and the cursor that fits them."""

    source: str
    version: str
    sections: dict[str, bytes]
    make_cursor: Callable

    def cursor(self, name: str):
        """A cursor over a section that must be there."""
        if name not in self.sections:
            raise MeshError(
                f"{self.source} has no ${name} section: it is truncated or holds no mesh"
            )
        return self.make_cursor(self.sections[name], f"{self.source}: ${name}")


@dataclass(frozen=True, eq=False)
class _Block:
    """Elements of one dimension and one set of physical groups: tags (n,), nodes (n, dim+1)."""

    dim: int
    tags: np.ndarray
    nodes: np.ndarray
    groups: tuple[int, ...]


class _TextCursor:
    """Takes numbers, one after the other, from the body of an ASCII section."""

    def __init__(self, body: bytes, where: str):
        self.where, self.position = where, 0
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", DeprecationWarning)
                self.numbers = np.fromstring(body, sep=" ") if body.strip() else np.empty(0)
        except (ValueError, DeprecationWarning):
            raise MeshError(f"{where} holds something that is not a number") from None

    def reals(self, count: int) -> np.ndarray:
        """The next `count` floating-point numbers."""
        end = self.position + int(count)
        if count < 0 or end > len(self.numbers):
            raise _truncated(self.where, count, len(self.numbers) - self.position)
        taken = self.numbers[self.position : end]
        self.position = end
        return taken

    def ints(self, count: int) -> np.ndarray:
        """The next `count` integers."""
        return _whole(self.reals(count), self.where)

    sizes = ints

    def rest(self) -> np.ndarray:
        """All integers that are left."""
        return self.ints(len(self.numbers) - self.position)

    def end(self) -> None:
        """Raise MeshError if numbers are left."""
        if self.position < len(self.numbers):
            raise _surplus(self.where)


class _BinaryCursor:
    """Takes numbers, one after the other, from the body of a binary section."""

    def __init__(self, body: bytes, where: str, order: str, size_bytes: int):
        self.body, self.where, self.order, self.position = body, where, order, 0
        self.size_type = f"{order}u{size_bytes}"

    def _take(self, dtype: str, count: int) -> np.ndarray:
        width = np.dtype(dtype).itemsize
        end = self.position + int(count) * width
        if count < 0 or end > len(self.body):
            raise _truncated(self.where, count, (len(self.body) - self.position) // width)
        taken = np.frombuffer(self.body, dtype, int(count), self.position)
        self.position = end
        return taken

    def reals(self, count: int) -> np.ndarray:
        """The next `count` doubles."""
        return self._take(self.order + "f8", count)

    def ints(self, count: int) -> np.ndarray:
        """The next `count` ints (4 bytes)."""
        return self._take(self.order + "i4", count).astype(np.int64)

    def sizes(self, count: int) -> np.ndarray:
        """The next `count` values of type size_t."""
        return self._take(self.size_type, count).astype(np.int64)

    def records(self, dtype: list, count: int) -> np.ndarray:
        """The next `count` packed records with the fields of `dtype`."""
        return self._take(np.dtype(dtype).newbyteorder(self.order), count)

    def line(self) -> bytes:
        """The next line of text, which binary files of version 2.2 put before the numbers."""
        end = self.body.find(b"\n", self.position)
        if end < 0:
            raise _truncated(self.where, 1, 0)
        line, self.position = self.body[self.position : end], end + 1
        return line

    def rest(self) -> np.ndarray:
        """All ints that are left, but for the line end before the section's end."""
        body = self.body[self.position :]
        return self.ints(len(body) // 4)

    def end(self) -> None:
        """Raise MeshError if more than a line end is left."""
        if self.body[self.position :].strip(b"\r\n"):
            raise _surplus(self.where)


def _whole(numbers: np.ndarray, where: str) -> np.ndarray:
    """Floating-point numbers as the integers that they must be."""
    whole = (numbers == np.rint(numbers)) & (np.abs(numbers) <= LARGEST_EXACT)  # not NaN either
    if not whole.all():
        raise MeshError(
            f"{where} holds {numbers[whole.argmin()]:.17g} where an integer belongs, "
            f"of at most {LARGEST_EXACT}"
        )
    return numbers.astype(np.int64)


def _truncated(where, wanted, left):
    return MeshError(f"{where} is truncated or garbled: {wanted} numbers should follow, {left} do")


def _surplus(where):
    return MeshError(f"{where} holds more numbers than it announces")


def _open(data: bytes, source: str) -> _File:
    """Find the version and the kind of a file in its $MeshFormat section, and cut it up."""
    if not data.strip():
        raise MeshError(f"{source} is empty")
    if data.lstrip().startswith(b"$NOD"):
        raise MeshError(f"{source} is in Gmsh format 1; save it as version 2.2 or 4.1")
    header = re.search(rb"^\$MeshFormat[ \t]*\r?\n([^\r\n]*)\r?\n", data, re.MULTILINE)
    fields = header[1].decode("ascii", "replace").split() if header else []
    if len(fields) != 3:
        raise MeshError(f"{source} is not a Gmsh mesh file: it has no valid $MeshFormat section")
    version, kind, size = fields
    if version not in ("2.2", "4.1"):
        raise MeshError(f"{source} is in Gmsh format {version}; save it as version 2.2 or 4.1")
    if kind == "0":
        return _File(source, version, _sections(data, source), _TextCursor)
    marker = data[header.end() : header.end() + 4]
    order = {b"\x01\0\0\0": "<", b"\0\0\0\x01": ">"}.get(marker)
    if kind != "1" or order is None:
        raise MeshError(
            f"{source}: $MeshFormat says neither ASCII nor binary: file type {kind}, "
            f"byte-order marker {marker!r}"
        )
    if size not in (("8",) if version == "2.2" else ("4", "8")):
        raise MeshError(f"{source}: $MeshFormat gives a data size of {size} bytes, expected 8")
    make_cursor = partial(_BinaryCursor, order=order, size_bytes=int(size))
    return _File(source, version, _sections(data, source), make_cursor)


def _sections(data: bytes, source: str) -> dict[str, bytes]:
    """Body of each section by name; of those that come again and are not read, one."""
    begin = re.compile(rb"^\$(\w+)[ \t]*\r?\n", re.MULTILINE)
    sections, position = {}, 0
    while match := begin.search(data, position):
        name = match[1].decode()
        end = data.find(b"$End" + match[1], match.end())
        if end < 0:
            raise MeshError(f"{source}: ${name} has no $End{name}: the file is truncated")
        if name in ONCE and name in sections:
            raise MeshError(f"{source} has a second ${name} section, at byte {match.start()}")
        sections[name] = data[match.end() : end]
        position = end + len(name) + 4
    return sections


def _physical_names(file: _File) -> dict[tuple[int, int], str]:
    """Names of the physical groups by (dimension, tag); text in binary files too."""
    if "PhysicalNames" not in file.sections:
        return {}
    body = file.sections["PhysicalNames"].strip()
    # Of text in another encoding Latin-1 keeps every byte apart.
    encoding = "utf-8" if _is_utf8(body) else "latin-1"
    announced, *lines = body.split(b"\n")
    names = {}
    for line in lines:
        match = re.fullmatch(rb'\s*(\d)\s+(-?\d{1,18})\s+"(.*)"\s*', line)
        if not match:
            raise MeshError(
                f"{file.source}: $PhysicalNames holds the line {line.decode(encoding)!r}"
            )
        group, name = (int(match[1]), int(match[2])), match[3].decode(encoding)
        if names.setdefault(group, name) != name:
            raise MeshError(
                f"{file.source}: $PhysicalNames calls group {group[1]} of dimension {group[0]} "
                f"both {names[group]!r} and {name!r}"
            )
    if announced.strip() != b"%d" % len(lines):
        raise MeshError(
            f"{file.source}: $PhysicalNames is truncated: it announces "
            f"{announced.strip().decode(encoding) or 'nothing'}, {len(lines)} names follow"
        )
    return names


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _simplex_dim(kind: int, tag: int, source: str) -> int:
    """Dimension of a first-order simplex by Gmsh's element type, or the error for all others."""
    if kind in SIMPLEX_DIM:
        return SIMPLEX_DIM[int(kind)]
    for name, kinds in NOT_SIMPLICES.items():
        if kind in kinds:
            raise MeshError(
                f"{source}: element {tag} is a {name}; only simplices can be read: mesh without "
                "recombination, extrusion layers or transfinite volumes"
            )
    for name, kinds in CURVED_SIMPLICES.items():
        if kind in kinds:
            raise MeshError(
                f"{source}: element {tag} is a {name} of higher order; only straight-sided ones "
                "can be read: set Mesh.ElementOrder = 1"
            )
    raise MeshError(f"{source}: element {tag} has Gmsh's type {kind}, which is not a simplex")


def _read_22(file: _File):
    """Nodes and elements of a version 2.2 file: (node tags, points, blocks)."""
    nodes = file.cursor("Nodes")
    if isinstance(nodes, _TextCursor):
        table = nodes.reals(4 * _count(nodes)).reshape(-1, 4)
        tags, points = _whole(table[:, 0], nodes.where), table[:, 1:]
    else:
        table = nodes.records([("tag", "i4"), ("xyz", "f8", 3)], _count(nodes))
        tags, points = table["tag"].astype(np.int64), table["xyz"].astype(np.float64)
    nodes.end()

    elements = file.cursor("Elements")
    runs = _text_runs if isinstance(elements, _TextCursor) else _binary_runs
    blocks = []
    for dim, rows in runs(elements, file.source):
        # Columns: tag, the physical group and further tags if there are any, nodes.
        has_group = rows.shape[1] > dim + 2
        group = np.abs(rows[:, 1]) if has_group else np.zeros(len(rows), dtype=np.int64)
        order = np.argsort(group, kind="stable")
        present, first = np.unique(group[order], return_index=True)
        for g, members in zip(present, np.split(rows[order], first[1:]), strict=True):
            blocks.append(
                _Block(dim, members[:, 0], members[:, -dim - 1 :], (int(g),) if g else ())
            )
    return tags, points, blocks


def _text_runs(cursor: _TextCursor, source: str) -> Iterator[tuple[int, np.ndarray]]:
    """Runs of like elements of an ASCII section: (dimension, rows of tag, tags, nodes).

    An element is: tag, type, number of tags, tags, nodes.
    """
    left, numbers = _count(cursor), cursor.rest()
    while left > 0:
        if len(numbers) < 3:
            raise _truncated(cursor.where, 3, len(numbers))
        tag, kind, number_of_tags = numbers[:3]
        dim = _simplex_dim(kind, tag, source)
        records = _like_records(numbers, 3 + number_of_tags + dim + 1, slice(1, 3), left, cursor)
        yield dim, np.delete(records, [1, 2], axis=1)
        left -= len(records)
        numbers = numbers[records.size :]
    if len(numbers):
        raise _surplus(cursor.where)


def _binary_runs(cursor: _BinaryCursor, source: str) -> Iterator[tuple[int, np.ndarray]]:
    """Runs of like elements of a binary section, in the form of ``_text_runs``.

    A record is: type, number of elements, number of tags, and for each element tag, tags, nodes.
    Gmsh writes long records, but also one record for each element.
    """
    left, numbers = _count(cursor), cursor.rest()
    cursor.end()
    while left > 0:
        if len(numbers) < 4:
            raise _truncated(cursor.where, 4, len(numbers))
        kind, count, number_of_tags, tag = numbers[:4]
        dim = _simplex_dim(kind, tag, source)
        if count < 1:
            raise MeshError(f"{cursor.where} is garbled: a record announces {count} elements")
        width = 1 + number_of_tags + dim + 1
        records = _like_records(numbers, 3 + count * width, slice(0, 3), left // count, cursor)
        yield dim, records[:, 3:].reshape(-1, width)
        left -= len(records) * count
        numbers = numbers[records.size :]
    if left or len(numbers):
        raise _surplus(cursor.where)


def _like_records(numbers, length, head, most, cursor) -> np.ndarray:
    """The longest run of records that have the length and the head of the first, one a row.

    A record with the same head has the same length, so the next one begins where it is looked
    for. The window grows, so that short runs cost little. At most `most` records are taken, but
    always one.
    """
    number_of_tags = numbers[2]
    if number_of_tags < 0 or length > len(numbers):
        raise _truncated(cursor.where, length, len(numbers))
    most, window = max(1, min(most, len(numbers) // length)), 16
    while True:
        rows = numbers[: min(window, most) * length].reshape(-1, length)
        differs = (rows[:, head] != rows[0, head]).any(axis=1)
        if differs.any():
            return rows[: differs.argmax()]
        if window >= most:
            return rows
        window *= 4


def _count(cursor) -> int:
    """The number that opens a section of version 2.2, written as text in binary files too."""
    if isinstance(cursor, _TextCursor):
        return int(cursor.ints(1)[0])
    line = cursor.line().strip()
    if not re.fullmatch(rb"\d{1,18}", line):
        raise MeshError(f"{cursor.where} opens with {line[:20]!r} instead of a count")
    return int(line)


def _read_41(file: _File):
    """Nodes and elements of a version 4.1 file: (node tags, points, blocks)."""
    if "PartitionedEntities" in file.sections:
        raise MeshError(f"{file.source} is partitioned; save the mesh in one piece")
    groups = _entity_groups(file.cursor("Entities")) if "Entities" in file.sections else {}

    cursor = file.cursor("Nodes")
    number_of_blocks, number_of_nodes, _, _ = cursor.sizes(4)
    tags, points = [np.empty(0, dtype=np.int64)], [np.empty((0, 3))]
    for _ in range(number_of_blocks):
        entity_dim, _, parametric = (int(i) for i in cursor.ints(3))
        if entity_dim not in (0, 1, 2, 3):
            raise MeshError(f"{cursor.where} is garbled: a block is of dimension {entity_dim}")
        count = int(cursor.sizes(1)[0])
        tags.append(cursor.sizes(count))
        # Nodes on curves and surfaces may carry their parameters behind x, y, z.
        width = 3 + (entity_dim if parametric else 0)
        points.append(cursor.reals(count * width).reshape(count, width)[:, :3])
    cursor.end()
    tags = np.concatenate(tags)
    _announced(cursor, number_of_nodes, len(tags))

    cursor = file.cursor("Elements")
    number_of_blocks, number_of_elements, _, _ = cursor.sizes(4)
    blocks = []
    for _ in range(number_of_blocks):
        entity_dim, entity_tag, kind = (int(i) for i in cursor.ints(3))
        count = int(cursor.sizes(1)[0])
        first = cursor.sizes(min(count, 1))
        tag = int(first[0]) if count else 0  # a block may be empty
        dim = _simplex_dim(kind, tag, file.source)
        rest = cursor.sizes(count * (dim + 2) - len(first))
        rows = np.concatenate([first, rest]).reshape(count, dim + 2)
        physical = groups.get((entity_dim, entity_tag), ())
        blocks.append(_Block(dim, rows[:, 0], rows[:, 1:], physical))
    cursor.end()
    _announced(cursor, number_of_elements, sum(len(b.tags) for b in blocks))
    return tags, np.concatenate(points), blocks


def _announced(cursor, announced, counted):
    if announced != counted:
        raise MeshError(f"{cursor.where} announces {announced} entries and holds {counted}")


def _entity_groups(cursor) -> dict[tuple[int, int], tuple[int, ...]]:
    """Physical groups of each geometric entity, by (dimension, tag)."""
    groups = {}
    for dim, count in enumerate(cursor.sizes(4)):
        for _ in range(count):
            tag = int(cursor.ints(1)[0])
            cursor.reals(3 if dim == 0 else 6)  # position, or bounding box
            physical = cursor.ints(cursor.sizes(1)[0])
            groups[dim, tag] = tuple(int(p) for p in np.unique(np.abs(physical)))
            if dim > 0:
                cursor.ints(cursor.sizes(1)[0])  # bounding entities
    cursor.end()
    return groups


def _to_mesh(file, tags, points, blocks, reorient) -> Mesh:
    """Resolve node tags and physical groups, drop unused dimensions, build and check."""
    source, names = file.source, _physical_names(file)
    dim = max((b.dim for b in blocks if len(b.tags)), default=0)
    if dim == 0:
        raise MeshError(f"{source} holds no elements of dimension 1 or more: mesh the geometry")
    order = np.argsort(tags, kind="stable")
    if (twice := np.flatnonzero(np.diff(tags[order]) == 0)).size:
        raise MeshError(f"{source}: node {tags[order[twice[0]]]} is defined twice")
    check_coordinates(points, Labels(source, vertex_tags=tags))

    def resolved(element_tags, nodes):
        """Rows of `points` instead of tags."""
        place = np.searchsorted(tags, nodes, sorter=order).clip(max=len(tags) - 1)
        known = tags[order[place]] == nodes if len(tags) else np.zeros(nodes.shape, dtype=bool)
        if not known.all():
            k, i = np.argwhere(~known)[0]
            raise MeshError(
                f"{source}: element {element_tags[k]} refers to node {nodes[k, i]}, "
                "which the file does not define"
            )
        return order[place]

    element_tags, elements, regions = _grouped(blocks, dim, names, resolved, source)
    in_groups = [b for b in blocks if b.groups]
    _, facets, facet_groups = _grouped(in_groups, dim - 1, names, resolved, source)
    return build(
        _flattened(source, points, dim, elements),
        elements,
        {name: facets[members] for name, members in facet_groups.items()},
        regions,
        reorient=reorient,
        labels=Labels(source, element_tags, tags),
    )


def _grouped(blocks, dim, names, resolved, source):
    """Tags (n,), nodes (n, dim+1) and {group name: numbers} of the elements of one dimension.

    Version 2.2 repeats an element for each of its physical groups; the repetitions are merged.
    """
    blocks = [b for b in blocks if b.dim == dim and len(b.tags)]
    if not blocks:
        return np.empty(0, dtype=np.int64), np.empty((0, dim + 1), dtype=np.int64), {}
    tags, nodes = (np.concatenate([getattr(b, part) for b in blocks]) for part in ("tags", "nodes"))
    nodes = resolved(tags, nodes)
    _, first, number = np.unique(vertex_set_keys(nodes), return_index=True, return_inverse=True)
    first, number = np.sort(first), np.argsort(np.argsort(first))[number]  # the file's order
    members, end = {}, 0
    for block in blocks:
        begin, end = end, end + len(block.tags)
        for group in block.groups or (None,):
            members.setdefault(group, []).append(number[begin:end])
    members = {group: np.concatenate(numbers) for group, numbers in members.items()}
    for numbers in members.values():
        distinct, counts = np.unique(numbers, return_counts=True)
        if counts.max() > 1:
            a, b = tags[np.flatnonzero(number == distinct[counts.argmax()])[:2]]
            raise MeshError(f"{source}: elements {a} and {b} have the same nodes")
    named = {}
    for group, numbers in members.items():
        if group is not None:
            named.setdefault(names.get((dim, group), f"physical_{group}"), []).append(numbers)
    return (
        tags[first],
        nodes[first],
        {name: np.unique(np.concatenate(parts)) for name, parts in named.items()},
    )


def _flattened(source, points, dim, elements):
    """Points in `dim` dimensions, after checking that the mesh does not leave them."""
    used = points[np.unique(elements)]
    extent = np.ptp(used, axis=0)
    varying = [axis for axis in range(dim, 3) if extent[axis] > 1e-8 * extent.max()]
    if varying:
        raise MeshError(
            f"{source} holds {ELEMENT_NAME[dim]}s and no elements of higher dimension, but "
            f"{' and '.join('xyz'[axis] for axis in varying)} is not constant over them: "
            "mesh the volume"
        )
    return points[:, :dim]
