"""Wrong products with a trace matrix: each is the right one but for one mistake in its text."""

from collections.abc import Callable
from dataclasses import dataclass

from mistakes import remade

from dgbook.hdg import blocks as storage
from dgbook.hdg.kernels.fused import make_fused
from dgbook.hdg.kernels.paper import make_contract, make_inflate
from dgbook.hdg.kernels.sliced import make_sliced


@dataclass(frozen=True)
class Mistake:
    """What is wrong in which function, and the text that makes it so."""

    name: str
    function: Callable
    right: str
    wrong: str

    def make(self) -> Callable:
        """The wrong function."""
        name = self.function.__name__
        return remade(self.name, [self.function], self.right, self.wrong)[name]

    @property
    def method(self) -> str:
        """Whose product is wrong."""
        return {
            make_inflate: "paper",
            make_contract: "paper",
            make_fused: "fused",
            storage.columns_first: "fused",
        }.get(self.function, "sliced")


MISTAKES = [
    Mistake(
        "blocks are transposed", storage.rows, "transpose(0, 2, 1, 3)", "transpose(0, 3, 1, 2)"
    ),
    Mistake(
        "blocks are transposed in the paper's order",
        storage.columns_first,
        "transpose(1, 3, 0, 2)",
        "transpose(1, 2, 0, 3)",
    ),
    Mistake("no barrier before x is read", make_sliced, "cuda.syncthreads()\n", "\n"),
    Mistake(
        "the last column is forgotten", make_sliced, "range(q - whole)", "range(q - whole - 1)"
    ),
    Mistake("the last turn is forgotten", make_sliced, "k < whole", "k + unroll < whole"),
    Mistake(
        "a stale neighbor: the first face's columns for all",
        make_sliced,
        "columns[face * blocks",
        "columns[first // m * blocks",
    ),
    Mistake(
        "a neighbor's unknowns from its first on",
        make_sliced,
        "neighbor * m + e % m",
        "neighbor * m + e // m",
    ),
    Mistake("every row reads the first face's x", make_sliced, "(row // m - first // m) * q", "0"),
    Mistake("tiles begin at a face", make_sliced, "row // m - first // m", "t // m"),
    Mistake("rows beyond the matrix", make_sliced, "if row < y.size", "if row < y.size + 1"),
    Mistake(
        "faces beyond the matrix",
        make_sliced,
        "min(first // m + e // m, last)",
        "first // m + e // m",
    ),
    Mistake("inflated by rows", make_inflate, "+ t % m", "+ t // m % m"),
    Mistake("the face of another output", make_contract, "l = t // m", "l = t % m"),
    Mistake("one column short", make_contract, "k < q", "k + 1 < q"),
    Mistake("a face for its unknowns", make_fused, "* blocks + b]) * m", "* blocks + b])"),
    Mistake("one block short", make_fused, "range(blocks)", "range(blocks - 1)"),
]
