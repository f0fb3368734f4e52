"""The Gmsh reader: against meshio on real files, and every way in which a file can be wrong."""

import gzip
import re
import struct
import sys
import time
import tracemalloc
from pathlib import Path

import meshio
import numpy as np
import pytest

from dgbook.mesh import MeshError, box, face_vertices, geometric_factors, read

ROOT = Path(__file__).parents[2]
KINDS = ["2.2_ascii", "2.2_binary", "4.1_ascii", "4.1_binary"]
TWO_BOXES = {kind: ROOT / f"tests/data/two_boxes_{kind}.msh" for kind in KINDS}
FILES = [
    *TWO_BOXES.values(),
    ROOT / "tests/data/periodic_cube.msh",
    ROOT / "chapters/meshes/aeroplane.msh",
    ROOT / "chapters/meshes/airfoil.msh",
    ROOT / "chapters/meshes/ball_coarse.msh",
]


def by_coordinates(points):
    """Simplices as a set of sets of corner coordinates; points (n, m, dim)."""
    return {tuple(sorted(map(tuple, corners))) for corners in np.round(points, 10).tolist()}


def faces_by_coordinates(mesh, faces):
    k, f = faces.T
    return by_coordinates(mesh.vertices[mesh.elements[k[:, None], face_vertices(mesh.dim)[f]]])


def groups_by_coordinates(mesh):
    """Everything a mesh names, independent of numbering."""
    named = {}
    for kind in ("boundary", "interfaces"):
        for name, faces in getattr(mesh, kind).items():
            named[kind, name] = faces_by_coordinates(mesh, faces)
    for name, members in mesh.regions.items():
        named["regions", name] = by_coordinates(mesh.vertices[mesh.elements[members]])
    return named


# Against an independent reader and writer


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_same_as_meshio(path):
    ours, theirs = read(path), meshio.read(path)
    kinds = {2: ("triangle", "line"), 3: ("tetra", "triangle")}[ours.dim]
    points = theirs.points[:, : ours.dim]
    cells = np.concatenate([c.data for c in theirs.cells if c.type == kinds[0]])
    # Version 2.2 repeats an element for each of its groups.
    cells = np.unique(np.sort(cells, axis=1), axis=0)
    assert ours.K == len(cells)
    assert by_coordinates(ours.vertices[ours.elements]) == by_coordinates(points[cells])
    assert len(ours.vertices) == len(np.unique(cells))

    for name, (tag, dim) in theirs.field_data.items():
        members = []
        for i, block in enumerate(theirs.cells):
            if block.type == kinds[ours.dim - dim]:
                inside = (
                    theirs.cell_sets[name][i]
                    if name in theirs.cell_sets
                    else np.flatnonzero(theirs.cell_data["gmsh:physical"][i] == tag)
                )
                members.append(block.data[inside])
        expected = by_coordinates(points[np.concatenate(members)])
        if dim == ours.dim:
            found = by_coordinates(ours.vertices[ours.elements[ours.regions[name]]])
        else:
            empty = np.empty((0, 2), dtype=int)
            found = faces_by_coordinates(ours, ours.boundary.get(name, empty))
            inner = faces_by_coordinates(ours, ours.interfaces.get(name, empty))
            assert not found & inner
            found |= inner
        assert found == expected


@pytest.mark.parametrize("kind", KINDS[1:])
def test_all_kinds_of_file_hold_the_same_mesh(kind):
    first, other = read(TWO_BOXES[KINDS[0]]), read(TWO_BOXES[kind])
    assert groups_by_coordinates(first) == groups_by_coordinates(other)
    # ASCII files hold 16 digits.
    corners = [mesh.vertices[mesh.elements] for mesh in (first, other)]
    assert np.allclose(*corners, rtol=0, atol=1e-14)


def test_groups_of_the_two_boxes():
    """What the script that made the file put into it."""
    mesh = read(TWO_BOXES["4.1_binary"])
    g = geometric_factors(mesh)

    def area(name):
        k, f = mesh.faces(name).T
        return 2 * g.face_jacobian[k, f].sum()

    assert np.isclose(area("inflow"), 1)
    assert np.isclose(area("outflow and middle"), 1)
    assert np.isclose(area("physical_9"), 2)
    assert np.isclose(area("unnamed"), 4 * 2.5)
    k, f = mesh.interfaces["outflow and middle"].T
    assert np.isclose(2 * g.face_jacobian[k, f].sum(), 1)
    assert (k < mesh.neighbors[k, f]).all()
    assert np.isclose(g.jacobian[mesh.regions["copper"]].sum() * 4 / 3, 1)
    assert len(mesh.regions["all of it"]) == mesh.K


@pytest.mark.parametrize("shape", [(5,), (3, 4), (2, 3, 2)])
@pytest.mark.parametrize("version", ["gmsh22", "gmsh"])
@pytest.mark.parametrize("binary", [False, True])
def test_reads_what_meshio_writes(tmp_path, shape, version, binary):
    plain = box(shape, -1.0, 1.0)
    points = np.zeros((len(plain.vertices), 3))
    points[:, : plain.dim] = plain.vertices
    cell = {1: "line", 2: "triangle", 3: "tetra"}[plain.dim]
    path = tmp_path / "written.msh"
    meshio.write(
        path, meshio.Mesh(points, {cell: plain.elements}), file_format=version, binary=binary
    )
    mesh = read(path)
    assert np.array_equal(mesh.elements, plain.elements)
    assert np.allclose(mesh.vertices, plain.vertices, atol=1e-15)
    assert np.array_equal(mesh.neighbors, plain.neighbors)
    assert list(mesh.boundary) == ["unnamed"]


# Files made by hand

FORMAT_22, FORMAT_41 = (f"$MeshFormat\n{v} 0 8\n$EndMeshFormat\n" for v in ("2.2", "4.1"))
POINTS = {1: "0 0 0", 2: "1 0 0", 3: "0 1 0", 4: "0 0 1", 5: "1 1 1"}
TETS = ["1 4 2 0 1 1 2 3 4", "2 4 2 0 1 2 3 4 5"]


def section(name, *lines):
    return "\n".join([f"${name}", *map(str, lines), f"$End{name}", ""])


def file_22(points=POINTS, elements=TETS, names=()):
    nodes = [f"{tag} {xyz}" for tag, xyz in points.items()]
    text = FORMAT_22
    if names:
        text += section("PhysicalNames", len(names), *names)
    text += section("Nodes", len(nodes), *nodes)
    return text + section("Elements", len(elements), *elements)


def file_41(elements="3 1 4 2\n1 1 2 3 4\n2 2 3 4 5", nodes=None, entities=None, count=2):
    nodes = nodes or "1 5 1 5\n3 1 0 5\n1\n2\n3\n4\n5\n" + "\n".join(POINTS.values())
    text = FORMAT_41 + (section("Entities", entities) if entities else "")
    return text + section("Nodes", nodes) + section("Elements", f"1 {count} 1 {count}", elements)


def write(tmp_path, content):
    path = tmp_path / "mesh.msh"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize("content", [file_22(), file_41()])
def test_smallest_files(tmp_path, content):
    mesh = read(write(tmp_path, content))
    assert mesh.K == 2
    assert mesh.elements.tolist() == [[0, 1, 2, 3], [1, 2, 3, 4]]
    assert mesh.neighbors.tolist() == [[1, -1, -1, -1], [-1, -1, -1, 0]]
    volumes = geometric_factors(mesh).jacobian * 4 / 3
    assert np.allclose(volumes, [1 / 6, 1 / 3])


@pytest.mark.parametrize(
    "content", [file_22(elements=TETS[::-1]), file_41("3 1 4 2\n2 2 3 4 5\n1 1 2 3 4")]
)
def test_elements_keep_the_order_of_the_file(tmp_path, content):
    assert read(write(tmp_path, content)).elements.tolist() == [[1, 2, 3, 4], [0, 1, 2, 3]]


def test_skips_unknown_sections_comments_and_windows_line_ends(tmp_path):
    extra = section("Comments", "a mesh", "$5 only") + section("NodeData", "1", '"u"', "0.5")
    text = file_22().replace("$Nodes", extra + "$Nodes") + section("Periodic", 0)
    for content in (text, text.replace("\n", "\r\n")):
        assert read(write(tmp_path, content)).K == 2
    assert read(write(tmp_path, text)).K == 2
    assert read(str(tmp_path / "mesh.msh")).K == 2  # a string will do for a path


def test_drops_nodes_that_no_element_uses_and_sparse_tags(tmp_path):
    points = {70: "9 9 9", 1: "0 0 0", 90: "1 0 0", 5: "0 1 0", 1000000: "0 0 1"}
    mesh = read(write(tmp_path, file_22(points, ["7 4 0 1 90 5 1000000"])))
    assert mesh.vertices.tolist() == [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    assert mesh.elements.tolist() == [[0, 1, 2, 3]]


def test_names_of_groups(tmp_path):
    names = ['3 1 "air"', '2 8 "out flow"', '2 9 "out flow"', '1 8 "a curve"']
    faces = ["11 2 2 8 1 1 2 3", "12 2 2 -9 1 1 2 4", "13 2 2 6 1 1 3 4", "14 2 2 0 1 2 4 5"]
    elements = [*faces, "1 4 2 1 1 1 2 3 4", "2 4 2 12 1 2 3 4 5", "15 1 2 8 1 1 2"]
    mesh = read(write(tmp_path, file_22(elements=elements, names=names)))
    assert mesh.faces("out flow").tolist() == [[0, 2], [0, 3]]
    assert mesh.faces("physical_6").tolist() == [[0, 1]]
    assert mesh.faces("unnamed").tolist() == [[1, 0], [1, 1], [1, 2]]
    assert {n: m.tolist() for n, m in mesh.regions.items()} == {"air": [0], "physical_12": [1]}
    with pytest.raises(ValueError, match=r"no boundary named 'wall'.*'out flow', 'physical_6'"):
        mesh.faces("wall")


def test_names_in_another_encoding_stay_apart(tmp_path):
    """Bytes that are not UTF-8 are Latin-1, and only a line end ends a line."""
    names = ['2 8 "Einla\xdf"', '2 9 "Einla\xe4"', '2 6 "a\x85b"', '3 1 "\xc3\x9f"']
    faces = ["11 2 2 8 1 1 2 3", "12 2 2 9 1 1 2 4", "13 2 2 6 1 1 3 4"]
    content = file_22(elements=[*faces, "1 4 2 1 1 1 2 3 4", "2 4 2 1 1 2 3 4 5"], names=names)
    mesh = read(write(tmp_path, content.encode("latin-1")))
    assert list(mesh.boundary) == ["a\x85b", "Einla\xdf", "Einla\xe4", "unnamed"]
    assert list(mesh.regions) == ["\xc3\x9f"]
    mesh = read(write(tmp_path, content.encode()))
    assert list(mesh.boundary) == ["a\x85b", "Einla\xdf", "Einla\xe4", "unnamed"]


def test_tags_of_any_size(tmp_path):
    """Gmsh has no limit of its own; 8 bytes in binary files, and here 53 bits in ASCII files."""
    large = 2**53
    points = {1: "0 0 0", large - 1: "1 0 0", 2**31: "0 1 0", large: "0 0 1"}
    mesh = read(write(tmp_path, file_22(points, [f"{large} 4 0 1 {large - 1} {2**31} {large}"])))
    assert mesh.vertices.tolist() == [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    content = binary_41("<", 8)
    for tag in (2, 3, 4, 5):
        old, new = (struct.pack("<Q", t) for t in (tag, 2**63 + 1 - tag))
        head, elements = content.split(b"$Elements")
        begin = head.index(
            struct.pack("<5Q", 1, *(2**63 + 1 - t for t in range(2, tag)), *range(tag, 6))
        )
        head = head[:begin] + head[begin:].replace(old, new, 1)
        rows = elements.rindex(struct.pack("<Q", 1) * 2)
        elements = elements[:rows] + elements[rows:].replace(old, new)
        content = head + b"$Elements" + elements
    # The second element's own tag was 2.
    mesh = read(write(tmp_path, content))
    assert mesh.elements.tolist() == [[0, 1, 2, 3], [1, 2, 3, 4]]


def test_a_plane_may_be_rounded_but_not_bent(tmp_path):
    """z may differ by 1e-8 of the mesh's extent, which is 1000 here."""
    for z, planar in [(0.9e-5, True), (1.1e-5, False)]:
        points = {1: "0 0 3", 2: "1000 0 3", 3: f"0 1 {3 + z!r}"}
        path = write(tmp_path, file_22(points, ["1 2 2 4 1 1 2 3"]))
        if planar:
            assert read(path).vertices.tolist() == [[0, 0], [1000, 0], [0, 1]]
        else:
            with pytest.raises(MeshError, match="z is not constant over them"):
                read(path)


def test_sections_that_nobody_reads_may_come_again(tmp_path):
    """Results for several times stand in several $NodeData sections."""
    extra = section("NodeData", "1", '"u"', "0.5") + section("NodeData", "1", '"u"', "0.7")
    assert read(write(tmp_path, file_22() + extra)).K == 2


def test_faces_in_no_group_do_not_matter(tmp_path):
    """Gmsh saves them on request, once for each surface of the geometry that they belong to."""
    mesh = read(write(tmp_path, file_22(elements=[*TETS, "3 2 2 0 1 1 2 3", "4 2 2 0 2 1 2 3"])))
    assert mesh.K == 2
    assert list(mesh.boundary) == ["unnamed"]


def test_several_groups_of_one_entity(tmp_path):
    """Version 4.1 lists them with the entity, version 2.2 repeats the elements."""
    entities = "0 0 0 1\n1 0 0 0 1 1 1 2 -6 7 0"  # the sign tells an orientation
    new = read(write(tmp_path, file_41(entities=entities)))
    twice = [*TETS, "3 4 2 7 1 1 2 3 4", "4 4 2 7 1 2 3 4 5"]
    twice[:2] = [t.replace(" 2 0 ", " 2 6 ") for t in TETS]
    old = read(write(tmp_path, file_22(elements=twice)))
    for mesh in (new, old):
        assert mesh.K == 2
        assert {n: m.tolist() for n, m in mesh.regions.items()} == {
            "physical_6": [0, 1],
            "physical_7": [0, 1],
        }


def test_parametric_nodes(tmp_path):
    nodes = (
        "2 5 1 5\n2 1 1 2\n1\n2\n0 0 0 0.5 0.25\n1 0 0 0.5 0.75\n"
        "3 1 0 3\n3\n4\n5\n0 1 0\n0 0 1\n1 1 1"
    )
    mesh = read(write(tmp_path, file_41(nodes=nodes)))
    assert mesh.vertices.tolist() == [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]]


def test_planar_and_one_dimensional_meshes(tmp_path):
    points = {1: "0 0 3", 2: "1 0 3", 3: "0 1 3"}
    planar = read(write(tmp_path, file_22(points, ["1 2 2 4 1 1 2 3", "2 1 2 5 1 1 2"])))
    assert planar.vertices.tolist() == [[0, 0], [1, 0], [0, 1]]
    assert planar.faces("physical_5").tolist() == [[0, 2]]
    line = file_22({1: "0 2 3", 2: "1 2 3", 3: "4 2 3"}, ["1 1 0 1 2", "2 1 0 2 3", "3 15 1 8 3"])
    line = read(write(tmp_path, line))
    assert line.vertices.tolist() == [[0], [1], [4]]
    assert line.faces("physical_8").tolist() == [[1, 0]]


def test_reorient_is_asked_for(tmp_path):
    path = write(tmp_path, file_22(elements=["31 4 0 2 1 3 4"]))
    with pytest.raises(MeshError, match=r"mesh\.msh: element 31 is inverted"):
        read(path)
    assert geometric_factors(read(path, reorient=True)).jacobian[0] > 0


def binary_22(order, records="long"):
    """The smallest mesh in binary, in either byte order."""
    rows = [[tag, 0, 1, *range(tag, tag + 4)] for tag in (1, 2)]
    groups = [rows] if records == "long" else [[row] for row in rows]
    out = b"$MeshFormat\n2.2 1 8\n" + struct.pack(order + "i", 1) + b"\n$EndMeshFormat\n"
    out += b"$Nodes\n5\n"
    for tag, xyz in POINTS.items():
        out += struct.pack(order + "i3d", tag, *map(float, xyz.split()))
    out += b"\n$EndNodes\n$Elements\n2\n"
    for group in groups:
        out += struct.pack(order + "3i", 4, len(group), 2)
        out += b"".join(struct.pack(order + "7i", *row) for row in group)
    return out + b"\n$EndElements\n"


def binary_41(order, size):
    """The smallest mesh in binary, in either byte order and with either width of size_t."""

    def sizes(*values):
        return struct.pack(f"{order}{len(values)}{'Q' if size == 8 else 'I'}", *values)

    out = f"$MeshFormat\n4.1 1 {size}\n".encode() + struct.pack(order + "i", 1)
    out += b"\n$EndMeshFormat\n$Nodes\n" + sizes(1, 5, 1, 5)
    out += struct.pack(order + "3i", 3, 1, 0) + sizes(5) + sizes(1, 2, 3, 4, 5)
    for xyz in POINTS.values():
        out += struct.pack(order + "3d", *map(float, xyz.split()))
    out += b"\n$EndNodes\n$Elements\n" + sizes(1, 2, 1, 2)
    out += struct.pack(order + "3i", 3, 1, 4) + sizes(2) + sizes(1, 1, 2, 3, 4, 2, 2, 3, 4, 5)
    return out + b"\n$EndElements\n"


@pytest.mark.parametrize("order", ["<", ">"])
def test_both_byte_orders_and_widths(tmp_path, order):
    expected = read(write(tmp_path, file_22()))
    files = [binary_22(order, "long"), binary_22(order, "short")]
    files += [binary_41(order, 4), binary_41(order, 8)]
    for content in files:
        mesh = read(write(tmp_path, content))
        assert np.array_equal(mesh.vertices, expected.vertices)
        assert np.array_equal(mesh.elements, expected.elements)


# What is refused


def replaced(text, *pairs):
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new, 1)
    return text


NAN = {**POINTS, 3: "0 nan 0"}
FAULTS = {
    "empty": ("  \n", "is empty"),
    "not Gmsh": ("# vtk DataFile Version 3.0\nmesh\n", "not a Gmsh mesh file"),
    "binary rubbish": (bytes(range(256)), "not a Gmsh mesh file"),
    "version 1": ("$NOD\n1\n1 0 0 0\n$ENDNOD\n", "Gmsh format 1;"),
    "version 4.0": (file_41().replace("4.1", "4"), "Gmsh format 4; save it as version 2.2 or 4.1"),
    "version 3": (file_22().replace("2.2", "3.0"), "Gmsh format 3.0"),
    "file type": (file_22().replace("2.2 0", "2.2 2"), "neither ASCII nor binary: file type 2"),
    "binary marker": (
        binary_22("<").replace(struct.pack("<i", 1), b"abcd", 1),
        "neither ASCII nor binary.*byte-order marker b'abcd'",
    ),
    "data size": (binary_41("<", 8).replace(b"1 8", b"1 2", 1), "data size of 2 bytes"),
    "data size 2.2": (binary_22("<").replace(b"1 8", b"1 4", 1), "data size of 4 bytes"),
    "no nodes": (FORMAT_22 + section("Elements", 1, TETS[0]), r"no \$Nodes section"),
    "no elements": (file_22().split("$Elements")[0], r"no \$Elements section"),
    "no end": (file_22().split("$EndElements")[0], r"\$Elements has no \$EndElements"),
    "nodes missing": (
        replaced(file_22(), ("5 1 1 1\n", "")),
        r"\$Nodes is truncated or garbled: 20 numbers should follow, 16 do",
    ),
    "nodes missing, 4.1": (replaced(file_41(), ("1 1 1\n", "")), r"\$Nodes is truncated"),
    "elements missing": (replaced(file_22(), (TETS[1] + "\n", "")), r"\$Elements is truncated"),
    "elements missing, 4.1": (replaced(file_41(), ("2 2 3 4 5\n", "")), r"\$Elements is trunc"),
    "elements missing, binary": (
        binary_22("<")[:-42] + b"\n$EndElements\n",
        r"\$Elements is truncated",
    ),
    "nodes missing, binary": (
        binary_22("<").replace(b"$Nodes\n5", b"$Nodes\n6"),
        r"\$Nodes is truncated",
    ),
    "too many elements": (replaced(file_22(), ("$Elements\n2", "$Elements\n1")), "more numbers"),
    "too many nodes": (replaced(file_22(), ("$Nodes\n5", "$Nodes\n4")), "more numbers"),
    "too many, binary": (
        binary_22("<", "short").replace(b"$Elements\n2", b"$Elements\n1"),
        "more numbers",
    ),
    "nodes too many, binary": (
        binary_22("<").replace(b"$Nodes\n5", b"$Nodes\n4"),
        "more numbers",
    ),
    "announced wrongly": (file_41(count=3), r"\$Elements announces 3 entries and holds 2"),
    "a count of many digits": (
        binary_22("<").replace(b"$Elements\n2", b"$Elements\n" + b"9" * 20),
        "opens with b'99999999999999999999' instead of a count",
    ),
    "a count of very many digits": (
        binary_22("<").replace(b"$Nodes\n5", b"$Nodes\n" + b"5" * 5000),
        r"opens with b'55555555555555555555' instead of a count",
    ),
    "a tag beyond 53 bits": (
        file_22({**POINTS, 2**53 + 2: "0 0 5"}),
        r"\$Nodes holds 9007199254740994 where an integer belongs, of at most 9007199254740992",
    ),
    "second $Elements": (
        file_22() + section("Elements", 1, TETS[0]),
        r"has a second \$Elements section, at byte \d+",
    ),
    "second $Nodes": (
        file_41() + section("Nodes", "0 0 0 0"),
        r"has a second \$Nodes section",
    ),
    "group with two names": (
        file_22(names=['3 1 "air"', '2 1 "air"', '3 1 "water"']),
        "calls group 1 of dimension 3 both 'air' and 'water'",
    ),
    "negative count": (replaced(file_22(), ("$Nodes\n5", "$Nodes\n-5")), r"\$Nodes is truncated"),
    "negative tags": (replaced(file_22(), ("1 4 2", "1 4 -2")), r"\$Elements is truncated"),
    "record of none": (
        binary_22("<").replace(struct.pack("<3i", 4, 2, 2), struct.pack("<3i", 4, 0, 2)),
        "a record announces 0 elements",
    ),
    "dimension of a block": (replaced(file_41(), ("\n3 1 0 5", "\n-3 1 1 5")), "of dimension -3"),
    "count is text": (replaced(file_22(), ("$Nodes\n5", "$Nodes\nfive")), "not a number"),
    "count is text, binary": (
        binary_22("<").replace(b"$Nodes\n5", b"$Nodes\nA"),
        "opens with b'A' instead of a count",
    ),
    "word": (replaced(file_22(), ("0 0 1", "0 zero 1")), r"\$Nodes holds something that is not a"),
    "fraction": (replaced(file_22(), (TETS[0], TETS[0][:-1] + "3.5")), "where an integer belongs"),
    "fractional node tag": (file_22({**POINTS, 7.5: "0 0 0"}), "where an integer belongs"),
    "names truncated": (file_22(names=['2 1 "a"']).replace("Names\n1", "Names\n2"), "announces 2"),
    "names garbled": (file_22(names=["2 1 wall"]), "holds the line '2 1 wall'"),
    "partitioned": (file_41() + section("PartitionedEntities", 0), "is partitioned"),
    "entities truncated": (file_41(entities="0 0 0 1\n1 0 0 0 1 1"), r"\$Entities is truncated"),
    "only points": (file_22(elements=["1 15 2 0 1 1"]), "no elements of dimension 1 or more"),
    "nothing": (file_22(elements=[]), "no elements of dimension 1 or more"),
    "surface in space": (
        file_22(elements=["1 2 0 1 2 3", "2 2 0 1 2 4"]),
        r"triangles and no elements of higher dimension.* z is not constant",
    ),
    "curve in space": (
        file_22(elements=["1 1 0 1 2", "2 1 0 2 3"]),
        "lines and no .* y is not constant",
    ),
    "quadrilateral": (file_22(elements=["1 3 0 1 2 3 5"]), "element 1 is a quadrilateral"),
    "quadrilateral, 4.1": (
        file_41("2 1 3 1\n41 1 2 3 5", count=1),
        "element 41 is a quadrilateral; only simplices",
    ),
    "hexahedron": (file_22(elements=["9 5 0 1 2 3 4 5 1 2 3"]), "element 9 is a hexahedron"),
    "prism": (file_22(elements=["9 6 0 1 2 3 4 5 1"]), "element 9 is a prism"),
    "pyramid": (file_22(elements=["9 7 0 1 2 3 4 5"]), "element 9 is a pyramid"),
    "higher order": (
        file_22(elements=["8 11 0 1 2 3 4 5 1 2 3 4 5"]),
        "element 8 is a tetrahedron of higher order.*Mesh.ElementOrder = 1",
    ),
    "curved boundary": (file_22(elements=[*TETS, "3 9 0 1 2 3 4 5 1"]), "3 is a triangle of high"),
    "unknown type": (file_22(elements=["8 77 0 1 2"]), "element 8 has Gmsh's type 77"),
    "node defined twice": (
        replaced(file_22({**POINTS, 6: "0 0 5"}), ("6 0 0 5", "5 0 0 5")),
        "node 5 is defined twice",
    ),
    "missing node": (file_22(elements=["3 4 0 1 2 3 99"]), "element 3 refers to node 99"),
    "missing node of a face": (
        file_22(elements=[*TETS, "7 2 2 1 1 1 2 99"]),
        "element 7 refers to node 99",
    ),
    "no node at all": (file_22(points={}), "element 1 refers to node 1"),
    "not finite": (file_22(NAN), "node 3 has a coordinate that is not finite"),
    "not finite out of the plane": (
        file_22({1: "0 0 0", 2: "1 0 nan", 3: "0 1 0"}, ["1 2 0 1 2 3"]),
        "node 2 has a coordinate that is not finite",
    ),
    "announced wrongly, nodes": (
        replaced(file_41(), ("$Nodes\n1 5 1 5", "$Nodes\n1 6 1 5")),
        r"\$Nodes announces 6 entries and holds 5",
    ),
    "infinite": (file_22({**POINTS, 3: "0 0 inf"}), "node 3 has a coordinate"),
    "face of three": (
        file_22({**POINTS, 6: "2 2 2"}, [*TETS, "5 4 0 2 3 4 6"]),
        "three or more elements .element 1, element 2, element 5. share.*node 2, node 3, node 4",
    ),
    "repeated element": (file_22(elements=[*TETS, TETS[1]]), "elements 2 and 2 have the same"),
    "inverted": (file_22(elements=[TETS[0], "22 4 0 3 2 4 5"]), "element 22 is inverted"),
    "flat": (file_22({**POINTS, 5: "0.5 0.5 0"}), "element 2 is flat"),
    "overlap": (
        file_22({**POINTS, 5: "0.1 0.1 0.1"}, [TETS[0], "2 4 0 3 2 4 5"]),
        "element 1 and element 2 overlap",
    ),
    "crack": (
        file_22({**POINTS, 6: "0 1 0"}, [TETS[0], "2 4 0 2 6 4 5"]),
        r"node 3 and node 6 are both at \[0. 1. 0.\]",
    ),
    "hanging node": (
        file_22(
            {1: "0 0 0", 2: "1 0 0", 3: "1 1 0", 4: "1 0.5 0", 5: "2 0.5 0"},
            ["1 2 0 1 2 3", "2 2 0 2 5 4", "3 2 0 4 5 3"],
        ),
        "node 4 hangs on the face of node 2, node 3",
    ),
    "group off the mesh": (
        file_22(elements=[*TETS, "7 2 2 6 1 1 2 5"]),
        "group 'physical_6' names the face of node 1, node 2, node 5",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_refuses(tmp_path, fault):
    content, message = FAULTS[fault]
    path = write(tmp_path, content)
    with pytest.raises(MeshError, match=message) as caught:
        read(path)
    assert str(path) in str(caught.value)
    # Nodes go by the file's own tags, not by our indices.
    assert not re.search(r"\bvertex \d", str(caught.value))


def test_missing_file_stays_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "nowhere.msh")


@pytest.mark.parametrize("kind", KINDS)
def test_every_truncated_file_is_refused(tmp_path, kind):
    whole = TWO_BOXES[kind].read_bytes()
    end = whole.rindex(b"$EndElements") + len(b"$EndElements")
    rng = np.random.default_rng(5)
    for length in [*rng.integers(0, end, 60), end - 1]:
        with pytest.raises(MeshError):
            read(write(tmp_path, whole[:length]))


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_file_raises_no_other_error(tmp_path, kind):
    """One wrong byte anywhere: a clear refusal, or a mesh where the byte did not matter."""
    whole = TWO_BOXES[kind].read_bytes()
    rng = np.random.default_rng(6)
    refused = 0
    for _ in range(150):
        damaged = bytearray(whole)
        damaged[rng.integers(len(whole))] = rng.integers(256)
        try:
            read(write(tmp_path, bytes(damaged)))
        except MeshError:
            refused += 1
    assert refused > 30


def test_reading_is_fast(tmp_path):
    """Twelve thousand tetrahedra, one record for each, as Gmsh writes them in version 2.2."""
    mesh = box((20, 10, 10))
    points = {v + 1: " ".join(map(str, x)) for v, x in enumerate(mesh.vertices)}
    tets = [f"{k + 1} 4 2 1 1 {' '.join(map(str, e + 1))}" for k, e in enumerate(mesh.elements)]
    path = write(tmp_path, file_22(points, tets))
    start = time.perf_counter()
    assert read(path).K == 12000
    assert time.perf_counter() - start < 3


def test_a_compressed_file_is_read_like_the_file(tmp_path):
    plain = TWO_BOXES["4.1_binary"]
    compressed = tmp_path / "two.msh.gz"
    compressed.write_bytes(gzip.compress(plain.read_bytes()))
    one, other = read(plain), read(compressed)
    assert (one.vertices == other.vertices).all() and (one.elements == other.elements).all()
    assert list(one.boundary) == list(other.boundary)


@pytest.mark.parametrize("spoil", [lambda b: b[:-9], lambda b: b[10:], lambda b: b""])
def test_a_damaged_compressed_file_is_refused(tmp_path, spoil):
    path = tmp_path / "two.msh.gz"
    path.write_bytes(spoil(gzip.compress(TWO_BOXES["4.1_binary"].read_bytes())))
    with pytest.raises(MeshError, match=r"two\.msh\.gz"):
        read(path)


def test_a_compressed_file_may_not_fill_the_memory(tmp_path, monkeypatch):
    """100 times its size, or some bytes if that is more; and no more is ever decompressed."""
    mesh = file_22().encode()
    path = tmp_path / "bomb.msh.gz"
    path.write_bytes(gzip.compress(mesh + b"\n" * 2**26))
    tracemalloc.start()
    try:
        with pytest.raises(MeshError, match=r"bomb\.msh\.gz grows to more than 67108864 bytes"):
            read(path)
        assert tracemalloc.get_traced_memory()[1] < 80e6
    finally:
        tracemalloc.stop()
    path.write_bytes(gzip.compress(mesh + b"\n" * 2**20))  # much growth, few bytes
    assert read(path).K == 2
    monkeypatch.setattr(sys.modules[read.__module__], "ALWAYS_ALLOWED", 1000)
    with pytest.raises(MeshError, match="grows to more than"):
        read(path)
    path.write_bytes(gzip.compress(mesh + b"\n" * 5000))  # many bytes, little growth
    assert read(path).K == 2
