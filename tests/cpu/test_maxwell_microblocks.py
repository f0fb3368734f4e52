"""The paper's layouts, face-pair descriptors, plans and bank conflicts, from numbers by hand."""

import numpy as np
import pytest

from dgbook.element import NodalElement
from dgbook.gpu.layout import microblock_size
from dgbook.gpu.plan import varied
from dgbook.lab.banks import PAPER, TODAY, lift_words, matrix_words, threads, turns
from dgbook.maxwell import reference
from dgbook.maxwell.microblocks import (
    END,
    EXTERIOR,
    FETCH_MINUS,
    FETCH_PLUS,
    INTERIOR,
    LIST_MINUS,
    LIST_PLUS,
    LIST_STORE,
    MIRROR,
    NORMAL,
    PAIRS,
    SCALE,
    STORE_MINUS,
    STORE_PLUS,
    UPWINDING,
    Z_MINUS,
    Z_PLUS,
    Microblocks,
    face_pairs,
    microblocks,
)
from dgbook.maxwell.plan import (
    PARTS,
    DifferentiatePlan,
    GatherPlan,
    LiftPlan,
    PaperPlan,
    Shape,
    shape_of,
)
from dgbook.mesh import box, build, edge_cut, face_vertices, geometric_factors, partition

ORDERS = range(1, 10)


def make(order=2, K_M=None, M_B=2, cells=(2, 2, 2), method="greedy", periodic=False, seed=0):
    """A layout and its descriptors on elements whose faces meet in all ways, and the operator."""
    random = np.random.default_rng(seed)
    mesh = box(cells, periodic=periodic)
    boundary = "pec"
    if not periodic:
        faces = {
            name: mesh.elements[f[:, :1], face_vertices(3)[f[:, 1]]]
            for name, f in mesh.boundary.items()
        }
        elements = random.permuted(mesh.elements, axis=1)
        vertices = mesh.vertices + random.uniform(-0.05, 0.05, mesh.vertices.shape)
        mesh = build(vertices, elements, faces, reorient=True)
        boundary = dict.fromkeys(mesh.boundary, "pec") | {"x+": "absorbing"}
    element = NodalElement(3, order)
    epsilon, mu = random.uniform(0.5, 2, (2, mesh.K))
    operator = reference.assemble(mesh, element, "central", epsilon, mu, boundary)
    layout = microblocks(mesh, shape_of(order, "float64", K_M), M_B, method)
    return operator, layout, face_pairs(operator, layout)


# ------------------------------------------------------------------------------------------ layouts


def test_waste_is_less_than_what_is_allowed_and_not_equal():
    """Of 12 nodes in places by 16, one, two and three elements waste a quarter, four nothing."""
    assert [microblock_size(12, 16, waste) for waste in (0.25, 0.26)] == [4, 1]


def test_the_paper_s_fourth_order_microblock():
    """4 elements of 35 nodes in 144 places, 4 x 60 face nodes in 240: no padding of faces."""
    shape = shape_of(4, "float32")
    assert (shape.Np, shape.Nfp, shape.K_M, shape.N_pM, shape.Nf, shape.N_fM) == (
        (35, 15, 4, 144, 60, 240)
    )
    layout = Microblocks(shape, M_B=2, n_M=2, slots=np.array([0, 5, 3]))
    assert layout.nodes.tolist() == [0, 144 + 35, 105]
    assert layout.face_nodes.tolist() == [0, 240 + 60, 180]
    single = shape_of(4, "float32", K_M=1)
    assert (single.N_pM, single.N_fM) == (48, 64)


@pytest.mark.parametrize(("K_M", "M_B", "method"), [(8, 1, "greedy"), (1, 7, "greedy")])
def test_slots(K_M, M_B, method):
    """48 elements in 6 blocks of 8, or 7 of 7, of which the last misses one."""
    operator, layout, _ = make(2, K_M, M_B, method=method)
    assert layout.n_M == M_B * -(-48 // (K_M * M_B))
    assert sorted(layout.slots) == list(range(48))
    part = partition(operator.mesh, K_M * M_B, method)
    assert np.array_equal(layout.slots // (K_M * M_B), part)


def test_metis_leaves_slots_empty_at_the_end_of_blocks():
    operator, layout, pairs = make(1, K_M=1, M_B=10, method="metis")
    part = partition(operator.mesh, 10, "metis")
    assert part.max() + 1 > 5, "48 elements do not fill blocks of 10"
    for block in range(part.max() + 1):
        members = np.sort(layout.slots[part == block])
        assert members.tolist() == list(range(10 * block, 10 * block + len(members)))
        # One element a microblock: 12 face nodes in 16 places.
        assert pairs.counts[block, END] == 16 * len(members)


@pytest.mark.parametrize("n", [10, 24])
def test_pack_and_unpack(n):
    _, layout, _ = make(2, K_M=5, M_B=2)
    values = np.random.default_rng(1).standard_normal((6, 48, n)).astype(np.float32)
    width = {10: 64, 24: 128}[n]  # 50 and 120, padded
    packed = np.zeros(6 * layout.n_M * width, np.float32)
    layout.pack(values[:, :20], packed, slice(20))
    layout.pack(values[:, 20:], packed, slice(20, 48))
    assert np.count_nonzero(packed) == values.size
    assert np.array_equal(layout.unpack(packed, n), values)
    begin = layout.nodes if n == 10 else layout.face_nodes
    field = packed.reshape(6, -1)
    assert np.array_equal(field[3, begin[17] : begin[17] + n], values[3, 17])


# -------------------------------------------------------------------------------------- descriptors

CASES = [
    dict(),
    dict(order=3, K_M=4, M_B=3),
    dict(order=1, K_M=1, M_B=1),
    dict(order=1, K_M=1, M_B=10, method="metis"),
    dict(order=2, K_M=8, M_B=1, cells=(2, 1, 1), periodic=True),
]


@pytest.fixture(params=CASES, ids=str)
def described(request):
    return make(**request.param)


def rows(pairs):
    """Each descriptor: its block, category, integers and reals."""
    for block, counts in enumerate(pairs.counts):
        for e in range(counts[PAIRS]):
            category = INTERIOR if e < counts[INTERIOR] else EXTERIOR if e < counts[1] else PAIRS
            yield block, category, pairs.integers[block, e].astype(int), pairs.reals[block, e]


def test_counts(described):
    """A face inside a block once, one between blocks twice, one on the boundary once."""
    operator, layout, pairs = described
    mesh = operator.mesh
    part = layout.slots // (layout.shape.K_M * layout.M_B)
    nb = len(operator.trace.boundary_faces)
    inner = (4 * mesh.K - nb) // 2
    cut = edge_cut(mesh, part)
    total = pairs.counts.astype(int).sum(axis=0)
    assert total[INTERIOR] == inner - cut
    assert total[EXTERIOR] - total[INTERIOR] == 2 * cut
    assert total[PAIRS] - total[EXTERIOR] == nb
    assert pairs.places % 16 == 0
    assert pairs.places - 16 < pairs.counts[:, PAIRS].max() <= pairs.places
    assert len(np.unique(pairs.lists, axis=0)) == len(pairs.lists) <= 4 + 24 + 6


def test_descriptors_fetch_and_store_what_the_trace_says(described):
    """Decoded one by one, as a kernel would, they visit every face node of every element once."""
    operator, layout, pairs = described
    shape, Nfp = layout.shape, layout.shape.Nfp
    node, place = (np.full((operator.mesh.K, n), -1) for n in (shape.Np, shape.Nf))
    node[:] = layout.nodes[:, None] + np.arange(shape.Np)
    place[:] = layout.face_nodes[:, None] + np.arange(shape.Nf)
    # By place in the flux array: the own node there, and the one that it meets.
    minus, plus = (np.full(layout.n_M * shape.N_fM, -1) for _ in range(2))
    minus[place] = node.reshape(-1)[operator.trace.interior].reshape(place.shape)
    plus[place] = node.reshape(-1)[operator.trace.exterior].reshape(place.shape)
    stored = np.zeros(len(minus), int)
    for block, category, d, _ in rows(pairs):
        first = block * layout.M_B * shape.N_fM
        fetch = d[FETCH_MINUS] + pairs.lists[d[LIST_MINUS]]
        here = first + d[STORE_MINUS] + np.arange(Nfp)
        assert np.array_equal(minus[here], fetch)
        stored[here] += 1
        if category == PAIRS:
            k, f = operator.trace.boundary_faces[d[FETCH_PLUS] // Nfp]
            assert np.array_equal(here, place[k, f * Nfp : (f + 1) * Nfp])
            continue
        other = d[FETCH_PLUS] + pairs.lists[d[LIST_PLUS]]
        assert np.array_equal(plus[here], other)
        if category == INTERIOR:
            there = first + d[STORE_PLUS] + pairs.lists[d[LIST_STORE]]
            assert np.array_equal(minus[there], other)
            assert np.array_equal(plus[there], fetch)
            stored[there] += 1
    assert np.array_equal(np.flatnonzero(stored), np.sort(place.ravel()))
    assert stored.max() == 1


def test_descriptors_hold_the_geometry_and_the_material(described):
    operator, layout, pairs = described
    owner = {tuple(x): (k, f) for k, f, x in faces_by_place(layout)}
    face_jacobian = geometric_factors(operator.mesh).face_jacobian
    for block, category, d, g in rows(pairs):
        k, f = owner[block, d[STORE_MINUS]]
        Z = np.sqrt(operator.mu / operator.epsilon)
        Zm = Z[k]
        Zp = Zm if category == PAIRS else Z[operator.mesh.neighbors[k, f]]
        assert np.array_equal(g[NORMAL : NORMAL + 3], operator.normals[k, f])
        found = g[[SCALE, Z_MINUS, Z_PLUS]]
        assert np.allclose(found, [face_jacobian[k, f] / (Zm + Zp), Zm, Zp], rtol=1e-14)
        if category == PAIRS:
            mirrors = tuple(g[MIRROR : MIRROR + 2])
            # The flux is central, but absorbing boundaries are always upwind.
            assert (mirrors, g[UPWINDING]) in (((-1, 1), 0), ((0, 0), 1))
        else:
            assert g[UPWINDING] == 0


def faces_by_place(layout):
    size = layout.M_B * layout.shape.N_fM
    for k, begin in enumerate(layout.face_nodes):
        for f in range(4):
            yield k, f, divmod(begin + f * layout.shape.Nfp, size)


# -------------------------------------------------------------------------------------------- plans


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("order", ORDERS)
def test_default_and_candidate_plans_are_legal(order, dtype):
    shape = shape_of(order, dtype)
    plan = PaperPlan.default(shape_of(order, dtype))
    assert plan.illegal(shape) == ""
    for part, kind in PARTS.items():
        found = kind.default(shape).candidates(shape)
        assert len(found) == len(set(found)) >= 8
        for candidate in found:
            assert getattr(plan, part).__class__ is candidate.__class__
            assert candidate.illegal(shape) == ""


def test_limits():
    """Order 4: 144 places and 240 face nodes a microblock, 15 nodes a face."""
    shape = shape_of(4, "float32")
    assert LiftPlan("field", 7).illegal(shape) == ""
    assert LiftPlan("field", 8).illegal(shape) == "1152 threads per block; allowed: 1024"
    assert LiftPlan("field", 2, 24).shared_bytes(shape) == 2 * 24 * 240 * 4
    assert LiftPlan("field", 2, 25).illegal(shape) == "25 accumulators a thread; allowed: 24"
    assert LiftPlan("field", 3, 18).illegal(shape) == "51840 bytes shared; allowed: 49152"
    assert DifferentiatePlan("field", 2, 9).illegal(shape).startswith("27 accumulators")
    assert DifferentiatePlan("field", 2, 3).shared_bytes(shape) == 2 * 3 * 144 * 4
    # 3 x 35 = 105 columns are odd, 60 are not.
    assert DifferentiatePlan("matrix", 2, N_R=32).shared_bytes(shape) == 32 * 105 * 4
    assert LiftPlan("matrix", 2, N_R=32).shared_bytes(shape) == 32 * 61 * 4
    assert LiftPlan("matrix", 2, N_R=160).illegal(shape) == "N_R = 160; a microblock has 144 nodes"
    # 6 fields x 2 x 240, and 32 faces of 7 integers and 9 reals.
    assert GatherPlan(8, 2).shared_bytes(shape) == 4 * (6 * 2 * 240 + 32 * (7 + 9))
    assert GatherPlan(69, 2).illegal(shape) == "1035 threads per block; allowed: 1024"
    assert GatherPlan(8, 8).illegal(shape) == "54272 bytes shared; allowed: 49152"


def test_the_matrix_fits_up_to_the_order_of_the_paper():
    """In the 16 KiB of 2009 segments of half a warp fit up to order six, as the paper says."""

    def fits(N):
        return DifferentiatePlan("matrix", 1).shared_bytes(shape_of(N, "float32")) < 16384

    assert [N for N in ORDERS if fits(N)] == [1, 2, 3, 4, 5, 6]


def test_the_sweep_holds_the_paper_s_optimum():
    """Figure 10(b): (19, 2, 3) at order 4; 20 x 4 x 8 plans, all legal."""
    shape = shape_of(4, "float32")
    counts = {"w_p": range(1, 21), "w_i": range(1, 5), "w_s": range(1, 9)}
    plans = varied(DifferentiatePlan("matrix", 1), shape, **counts)
    assert len(plans) == 640
    assert DifferentiatePlan("matrix", 19, 2, 3) in plans


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: LiftPlan("fields", 1), ValueError, "strategy = 'fields'; allowed are 'field'"),
        (lambda: LiftPlan("field", 1, order="best"), ValueError, "order = 'best'"),
        (lambda: LiftPlan("field", 0), ValueError, "w_p = 0; allowed: 1 or more"),
        (lambda: LiftPlan("field", 1.5), TypeError, "w_p = 1.5; allowed: an integer"),
        (lambda: LiftPlan("field", 1, True), TypeError, "w_i = True"),
        (lambda: LiftPlan("field", 1, 1, 2), ValueError, "w_s = 2 with strategy 'field'"),
        (lambda: LiftPlan("matrix", 1, N_R=24), ValueError, "N_R = 24; allowed: multiples of 16"),
        (lambda: GatherPlan(1, -1), ValueError, "M_B = -1"),
        (lambda: GatherPlan(1, 1, "scotch"), ValueError, "partition = 'scotch'"),
        (lambda: PaperPlan(0, *(None,) * 3), ValueError, "K_M = 0"),
        (lambda: PaperPlan(4, GatherPlan(1, 1), GatherPlan(1, 1), None), TypeError, "a LiftPlan"),
    ],
)
def test_plans_refuse_what_makes_no_sense(make, error, words):
    with pytest.raises(error, match=words):
        make()


# ----------------------------------------------------------------------------------- bank conflicts


def test_what_shared_memory_serves_at_once():
    lanes = np.arange(16)
    assert PAPER.accesses(lanes) == 1
    assert PAPER.accesses(np.full(16, 7)) == 1  # a broadcast
    assert PAPER.accesses(np.where(lanes < 9, 3, 4)) == 2  # a double broadcast
    assert PAPER.accesses(2 * lanes) == 2
    assert PAPER.accesses(16 * lanes) == 16
    assert PAPER.accesses(np.where(lanes < 2, 0, lanes)) == 2  # one word twice, 14 other banks
    assert PAPER.accesses(np.where(lanes < 9, -1, 4)) == 1
    assert PAPER.accesses(np.full(16, -1)) == 0
    lanes = np.arange(32)
    assert TODAY.accesses(lanes // 8) == 1  # as many words as one likes
    assert TODAY.accesses(np.where(lanes < 9, 3, 35)) == 2  # but in different banks
    assert TODAY.accesses(2 * lanes) == 2
    assert TODAY.accesses(17 * lanes) == 1


def test_figure_5():
    """Two elements of 20 nodes in three half-warps, two microblocks: only the middle one straddles.

    In the plain order the first and the third warp wait, in the mitigating one only the second.
    """
    shape = Shape(Np=20, Nfp=10, K_M=2, dtype="float32")
    assert shape.N_pM == 48
    assert turns(lift_words(shape, 2, "plain"), PAPER).tolist() == [2, 1, 2]
    assert turns(lift_words(shape, 2, "mitigating"), PAPER).tolist() == [1, 2, 1]
    # Without microblocks a warp of the plain order holds 16 or 32 nodes of one element.
    single = Shape(20, 10, 1, "float32")
    assert turns(lift_words(single, 1, "plain"), PAPER).tolist() == [1]


def test_thread_orders():
    shape = Shape(20, 10, 2, "float32")
    microblock, place = threads(shape, 2, "plain")
    assert (microblock[47], place[47], microblock[48], place[48]) == (0, 47, 1, 0)
    microblock, place = threads(shape, 2, "mitigating")
    assert (microblock[15], place[15], microblock[16], place[16]) == (0, 15, 1, 0)
    assert (microblock[32], place[32]) == (0, 16)
    microblock, place = threads(shape, 3, "mitigating")
    assert (microblock[47], place[47], microblock[48], place[48]) == (2, 15, 0, 16)
    for order in ("plain", "mitigating"):
        assert len(set(zip(*threads(shape, 3, order), strict=True))) == 3 * 48


def test_the_mitigating_order_costs_today_where_it_gained():
    """A warp has two microblocks N_fM words apart: 192 of order 2 are a multiple of 32 banks.

    Within a microblock elements are 24 words apart, in other banks.
    """
    shape = shape_of(2, "float32")
    assert shape.N_fM == 192
    assert turns(lift_words(shape, 2, "plain"), TODAY).tolist() == [1] * 5
    assert turns(lift_words(shape, 2, "mitigating"), TODAY).tolist() == [2] * 5
    # 240 of order 4 are 7.5 times 32.
    assert turns(lift_words(shape_of(4, "float32"), 2, "mitigating"), TODAY).max() == 1


def test_figure_7():
    """Order 3, one matrix of 20 x 20 with a column of padding: 4 banks have two accesses.

    Nodes 16..31 read rows 16..19 and 0..11: 16 is 0 again, modulo 16 banks.
    """
    shape = Shape(20, 10, 2, "float32")
    words = matrix_words(shape, 20, segmented=False)
    assert words[16:32].tolist() == [21 * r for r in (*range(16, 20), *range(12))]
    banks = np.bincount(words[16:32] % 16, minlength=16)
    assert sorted(banks.tolist()) == [0] * 4 + [1] * 8 + [2] * 4
    assert [PAPER.accesses(words[16 * h : 16 * h + 16]) for h in range(3)] == [1, 2, 1]
    segments = matrix_words(shape, 20)
    assert [PAPER.accesses(segments[16 * h : 16 * h + 16]) for h in range(3)] == [1, 1, 1]
    # Without the column an even stride: rows 4 apart meet in a bank, 16 of them in 4 banks.
    assert PAPER.accesses(20 * np.arange(16)) == 4


@pytest.mark.parametrize("memory", [PAPER, TODAY])
@pytest.mark.parametrize("order", ORDERS)
def test_segments_never_conflict(order, memory):
    shape = shape_of(order, "float32")
    for columns in (shape.Nf, 3 * shape.Np):
        assert turns(matrix_words(shape, columns), memory).max() == 1
