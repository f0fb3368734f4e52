"""Partitions into small blocks, renumbering, and what they must leave unchanged."""

import sys
import time
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from dgbook.mesh import (
    box,
    build,
    edge_cut,
    face_pairs,
    face_vertices,
    geometric_factors,
    make_periodic,
    partition,
    periodic_shift,
    read,
    renumber,
)

ROOT = Path(__file__).parents[2]
MESHES = {
    "interval": lambda: box(50),
    "airfoil": lambda: read(ROOT / "chapters/meshes/airfoil.msh"),
    "aeroplane": lambda: read(ROOT / "chapters/meshes/aeroplane.msh"),
    "torus": lambda: box((6, 5, 4), periodic=True),
    "one periodic cell": lambda: box((1, 1, 1), periodic=True),
}


@pytest.fixture(scope="module", params=MESHES)
def mesh(request):
    return MESHES[request.param]()


@pytest.mark.parametrize("size", [1, 3, 16, 100])
def test_greedy_fills_every_block_but_the_last(mesh, size):
    part = partition(mesh, size)
    counts = np.bincount(part)
    assert part.shape == (mesh.K,)
    assert (counts[:-1] == size).all()
    assert 1 <= counts[-1] <= size
    assert counts.sum() == mesh.K


@pytest.mark.parametrize("size", [10, 16, 100])
def test_metis_keeps_to_the_limit_and_wastes_little(mesh, size):
    part = partition(mesh, size, method="metis")
    counts = np.bincount(part)
    assert part.shape == (mesh.K,)
    assert counts.min() >= 1
    assert counts.max() <= size
    assert len(counts) <= 1.25 * -(-mesh.K // size)


@pytest.mark.parametrize("method", ["greedy", "metis"])
@pytest.mark.parametrize("name", ["airfoil", "aeroplane"])
def test_few_faces_lie_between_blocks(name, method):
    """A random choice of 16 elements keeps next to no face inside; these keep more than half."""
    mesh = MESHES[name]()
    part = partition(mesh, 16, method)
    total = len(face_pairs(mesh))
    assert edge_cut(mesh, np.random.default_rng(0).permutation(part)) > 0.95 * total
    assert edge_cut(mesh, part) < 0.5 * total


@pytest.mark.parametrize("name", ["airfoil", "aeroplane"])
def test_most_greedy_blocks_are_in_one_piece(name):
    """The last ones are gathered from what is left over: the paper's few bad, scattered blocks."""
    mesh = MESHES[name]()
    whole = pieces(mesh, partition(mesh, 16)) == 1
    assert whole.mean() > 0.75
    quarter = len(whole) // 4
    assert whole[:quarter].mean() > whole[-quarter:].mean()


def pieces(mesh, part):
    """Number of connected pieces of each block, crossing faces only."""
    pairs = face_pairs(mesh)[:, [0, 2]]
    a, b = pairs[part[pairs[:, 0]] == part[pairs[:, 1]]].T
    graph = coo_array((np.ones(len(a)), (a, b)), shape=(mesh.K, mesh.K))
    _, piece = connected_components(graph, directed=False)
    return np.array([len(np.unique(piece[part == p])) for p in range(part.max() + 1)])


def algorithm_2(mesh, size):
    """The paper's algorithm word for word, counting shared faces afresh at every step.

    Where the paper leaves a choice: of equal candidates the one that reached its number of
    shared faces first, and as arbitrary element the lowest.
    """
    faces = mesh.neighbors.tolist()
    left = list(range(mesh.K))
    part = [None] * mesh.K
    seed, number = 0, 0
    while left:
        queue, block = [seed], []

        def rank(e, block=block):
            shared = [(i, f) for i, b in enumerate(block) for f, n in enumerate(faces[b]) if n == e]
            return -len(shared), shared[-1:]

        while True:
            candidates = [e for e in queue if e in left]
            if not candidates and left:
                queue.append(left[0])
                candidates = left[:1]
            if not candidates:
                break
            e = min(candidates, key=rank)
            left.remove(e)
            block.append(e)
            part[e] = number
            if len(block) == size:
                break
            queue += [n for n in faces[e] if n >= 0 and n not in queue]
        seed = next((e for e in queue if e in left), left[0] if left else None)
        number += 1
    return part


@pytest.mark.parametrize("size", [1, 5, 16, 41])
@pytest.mark.parametrize("name", ["interval", "torus", "one periodic cell", "periodic cube"])
def test_greedy_is_algorithm_2(name, size):
    """The buckets of the fast version choose what a search through the queue would choose."""
    cube = ROOT / "tests/data/periodic_cube.msh"
    mesh = read(cube) if name == "periodic cube" else MESHES[name]()
    assert partition(mesh, size).tolist() == algorithm_2(mesh, size)


def test_scattered_components_still_fill_the_blocks():
    """When the candidates run out, the algorithm goes on with any element."""
    one = box((1, 1))
    mesh = build(
        np.concatenate([one.vertices + np.array([3.0 * i, 0]) for i in range(5)]),
        np.concatenate([one.elements + 4 * i for i in range(5)]),
    )
    part = partition(mesh, 4)
    assert np.bincount(part).tolist() == [4, 4, 2]
    assert edge_cut(mesh, part) == 0


def test_edge_cut_by_hand():
    mesh = box((2, 1))
    assert edge_cut(mesh, np.zeros(4, dtype=int)) == 0
    assert edge_cut(mesh, np.arange(4)) == 3
    assert edge_cut(mesh, np.array([0, 0, 1, 1])) == 1
    ring = box(4, periodic=True)
    assert edge_cut(ring, np.array([0, 0, 1, 1])) == 2


def test_a_hundred_thousand_elements_take_seconds():
    mesh = box((26, 26, 25))
    assert mesh.K > 1e5
    start = time.perf_counter()
    part = partition(mesh, 16)
    assert time.perf_counter() - start < 5
    assert np.bincount(part).max() == 16


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((0,), ValueError, "size must be 1 or more elements, got 0"),
        ((2.5,), TypeError, "size must be an int, got 2.5"),
        ((True,), TypeError, "size must be an int"),
        ((4, "random"), ValueError, 'method must be "greedy" or "metis", got \'random\''),
    ],
)
def test_partition_refuses(arguments, error, message):
    with pytest.raises(error, match=message):
        partition(box((2, 2)), *arguments)


def test_metis_sees_a_graph_without_loops_and_double_edges(monkeypatch):
    """Its manual asks for that; short periods have both."""
    import pymetis

    graphs = []

    def part_graph(parts, adjacency):
        starts, neighbors = adjacency.adj_starts, adjacency.adjacent
        graphs.append([row.tolist() for row in np.split(neighbors, starts[1:-1])])
        return 0, [0] * (len(starts) - 1)

    monkeypatch.setattr(pymetis, "part_graph", part_graph)
    for cells in (1, 2, 3):
        partition(box(cells, periodic=True), 3, method="metis")
    assert graphs == [[[]], [[1], [0]], [[1, 2], [0, 2], [0, 1]]]


def test_metis_says_what_to_do_without_pymetis(monkeypatch):
    monkeypatch.setitem(sys.modules, "pymetis", None)
    with pytest.raises(RuntimeError, match="pip install pymetis"):
        partition(box((2, 2)), 2, method="metis")


def test_metis_gives_up_when_the_limit_cannot_be_kept(monkeypatch):
    """A METIS that never splits: it must not be asked for ever."""
    import pymetis

    monkeypatch.setattr(pymetis, "part_graph", lambda parts, graph: (0, [0] * 8))
    with pytest.raises(RuntimeError, match=r"does not keep blocks to size=2.*greedy"):
        partition(box((2, 2)), 2, method="metis")


# Renumbering


@pytest.mark.parametrize("name", ["airfoil", "torus", "two boxes", "periodic cube"])
def test_renumbering_changes_numbers_only(name):
    mesh = {
        **MESHES,
        "two boxes": lambda: read(ROOT / "tests/data/two_boxes_4.1_binary.msh"),
        "periodic cube": lambda: make_periodic(
            read(ROOT / "tests/data/periodic_cube.msh"), "x-", "x+"
        ),
    }[name]()
    order = np.random.default_rng(1).permutation(mesh.K)
    moved = renumber(mesh, order)
    assert np.array_equal(moved.elements, mesh.elements[order])
    before, after = geometric_factors(mesh), geometric_factors(moved)
    assert np.array_equal(after.normals, before.normals[order])
    assert np.array_equal(periodic_shift(moved), periodic_shift(mesh)[order])
    inner = mesh.neighbors[order] >= 0
    assert np.array_equal(order[moved.neighbors[inner]], mesh.neighbors[order][inner])
    k, f = np.nonzero(moved.neighbors >= 0)
    assert (moved.neighbors[moved.neighbors[k, f], moved.neighbor_faces[k, f]] == k).all()
    for kind in ("boundary", "interfaces"):
        for group, faces in getattr(mesh, kind).items():
            new = getattr(moved, kind)[group]
            assert corner_sets(moved, new) == corner_sets(mesh, faces)
            assert (np.diff(new[:, 0]) >= 0).all()
            if kind == "interfaces":
                assert (new[:, 0] < moved.neighbors[tuple(new.T)]).all()
    for group, members in mesh.regions.items():
        assert np.array_equal(moved.regions[group], np.flatnonzero(np.isin(order, members)))
    back = renumber(moved, np.argsort(order))
    for field in ("elements", "neighbors", "neighbor_faces", "face_permutation"):
        assert np.array_equal(getattr(back, field), getattr(mesh, field))


def corner_sets(mesh, faces):
    k, f = faces.T
    corners = mesh.elements[k[:, None], face_vertices(mesh.dim)[f]]
    return {tuple(sorted(c)) for c in corners.tolist()}


def test_renumbering_by_blocks_makes_them_consecutive():
    mesh = MESHES["airfoil"]()
    part = partition(mesh, 16)
    order = np.argsort(part, kind="stable")
    moved = renumber(mesh, order)
    assert edge_cut(moved, np.arange(mesh.K) // 16) == edge_cut(mesh, part)
    with pytest.raises(ValueError, match="permutation of the 1148 elements"):
        renumber(mesh, np.zeros(mesh.K, dtype=int))
    with pytest.raises(ValueError, match="permutation"):
        renumber(mesh, np.arange(5))
