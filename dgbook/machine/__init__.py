"""The machine itself, measured effect by effect: what chapter 2 shows and its record holds."""

from dgbook.machine.effects import EFFECTS, Effect, compare, measure, rows_of

__all__ = ["EFFECTS", "Effect", "compare", "measure", "rows_of"]
