"""The least work of an operator, as its algorithm counts it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Cost:
    """The least work of an operator.

    Attributes
    ----------
    flops : int
        Additions and multiplications, divisions and roots.
    bytes : int
        Each input read once, each output written once.
    """

    flops: int
    bytes: int

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.flops + other.flops, self.bytes + other.bytes)
