"""The rungs of the ladder as machine code: each changes what it says, and nothing spills."""

import re

import numpy as np
import pytest

from dgbook.check.compile import compile
from dgbook.lab import ladder, split
from dgbook.maxwell.launch.fused import kernel
from dgbook.maxwell.plan import FusedShape
from dgbook.nodal.fused import FusedPlan

INDICES = np.empty(1, np.uint32)
MAKERS = {
    split.make_gather_six: "riiirrr",
    split.make_lift_six: "rrr",
    split.make_differentiate_18: "rrrr",
    split.make_assemble_18: "rrr",
    split.make_gather_two: "rriiRirrr",
    split.make_lift_two: "rrrr",
    split.make_differentiate_12: "rrr",
    split.make_assemble_12: "rrrr",
}
"""By what makes a kernel its arrays: real numbers, i indices."""


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_split_kernels_fit_the_machine(make, dtype):
    for order, cc in zip(ladder.ORDERS, ((7, 5), (9, 0)), strict=True):
        shape = FusedShape(order, dtype)
        arguments = (shape,) if "gather" in make.__name__ else (shape, split.default_plan(shape))
        real = np.empty(1, dtype)
        signature = tuple(INDICES if kind == "i" else real for kind in MAKERS[make])
        found = compile(make(*arguments), signature, cc)
        assert found.spill_bytes == found.stack_bytes == 0, found
        assert dtype == "float64" or found.fp64_instructions == 0, found


def ptx(edits, defines, order=3, dtype="float32"):
    shape, plan = FusedShape(order, dtype), FusedPlan("cuda", 6, 2, 1, 2)
    real, scalar = np.empty(1, dtype), np.dtype(dtype).type(1)
    signature = (real, real, INDICES, INDICES, real, INDICES, *(real,) * 6, *(scalar,) * 3)
    edited = ladder.EditedKernel(kernel(shape, plan), edits, **defines)
    return compile(edited, signature, (9, 0)).ptx


@pytest.fixture(scope="module")
def texts():
    """By the rung's name what the compiler makes of it."""
    return {name: ptx(*spelled) for name, *spelled in ladder.spellings(FusedShape(3, "float32"))}


def count(text, words):
    return len(re.findall(words, text))


def test_each_rung_adds_what_it_says(texts):
    """A vector of 16 bytes, a copy past the registers, a hint: there from its rung on."""
    names = list(texts)
    for first, words in (
        ("16 bytes", r"ld\.global\S*\.v4\.f32"),
        ("16 bytes", r"st\.global\S*\.v4\.f32"),
        ("asynchronous copies", r"cp\.async\.cg"),
        ("cache hints", r"prefetch\.global"),
        ("cache hints", r"st\.global\.cs"),
    ):
        there = [bool(count(texts[name], words)) for name in names]
        assert there == [i >= names.index(first) for i in range(len(names))], words


def test_word_by_word_memory_is_read_without_vectors(texts):
    """In shared memory the compiler makes some where it knows the addresses."""
    assert not count(texts["CUDA C++"], r"global\S*\.v[24]\.")
    words = r"ld\.shared\.f32"
    assert count(texts["CUDA C++"], words) > 3 * count(texts["16 bytes"], words)


def test_padding_moves_the_rows_apart(texts):
    """An element has 30 vectors at N = 3, two have 60: an even number, made odd."""
    assert texts["padding"] != texts["cache hints"]
