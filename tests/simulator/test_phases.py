"""The figure of the fused kernel says what its threads do."""

from itertools import chain

import pytest

from dgbook.element import NodalElement
from dgbook.gpu import device
from dgbook.maxwell import reference
from dgbook.maxwell.launch.fused import FusedLauncher, FusedPlan
from dgbook.mesh import box
from dgbook.page import phases

BOTH = range(2 * phases.ELEMENT)  # elements of the block


@pytest.fixture(scope="module")
def found():
    operator = reference.assemble(box((2, 1, 1)), NodalElement(3, 1))
    launcher = FusedLauncher(operator, device("simulator"), FusedPlan("numba", 2, 1, 1))
    u, res, new = (launcher.zeros() for _ in range(3))
    data = launcher.device.array(reference.boundary_data(operator, 0.0).ravel())
    return phases.run(lambda: launcher.stage(u, res, new, data, 0.5, 0.5, 0.1))


def words(found, phase, array, kind, threads=range(phases.THREADS)):
    """The words of an array, one list per thread."""
    return [
        [w for t in found[phase, n] if (t.array, t.kind) == (array, kind) for w in t.words]
        for n in threads
    ]


@pytest.mark.parametrize(
    ("phase", "array", "kind"),
    [
        ("1", "u", "read"),
        ("1", "state", "write"),
        ("2", "flux", "write"),
        ("3", "rates", "write"),
        ("5, du/dt", "state", "write"),
        ("5, update", "u", "read"),
        ("5, update", "res", "write"),
        ("5, update", "new", "write"),
    ],
)
def test_each_word_belongs_to_one_thread(found, phase, array, kind):
    assert sorted(chain(*words(found, phase, array, kind))) == list(BOTH)


@pytest.mark.parametrize(("phase", "array"), [("3", "state"), ("4", "flux")])
def test_a_thread_reads_all_of_its_element(found, phase, array):
    for thread, read in enumerate(words(found, phase, array, "read")):
        first = thread // 4 * phases.ELEMENT
        assert sorted(read) == list(range(first, first + phases.ELEMENT))


def test_only_the_flux_reads_other_blocks(found):
    for (phase, _), touched in found.items():
        outside = [t for t in touched if t.array == "u" and not set(BOTH).issuperset(t.words)]
        assert not outside or phase == "2"
        assert all(t.kind == "read" for t in outside)
    assert any(set(read).difference(BOTH) for read in words(found, "2", "u", "read"))


def test_words_of_other_blocks_are_drawn_side_by_side(found):
    others = [*range(-6 * phases.ELEMENT, 0), *range(2 * phases.ELEMENT, 6 * phases.ELEMENT)]
    spans = phases._spans("u", others)
    heights, left, _ = zip(*spans, strict=True)
    assert len(set(heights)) == 1 and heights[0] != phases._spans("u", [0])[0][0]
    assert left == pytest.approx([48 * n / len(others) for n in range(len(others))])
