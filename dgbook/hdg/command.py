"""Hybridised methods on the command line: python -m dgbook bench | tune hdg."""

from __future__ import annotations

from dgbook.hdg.bench import (  # noqa: F401  the verbs of this family
    add_bench_arguments,
    add_tune_arguments,
    bench,
    tune,
)
