"""Options that the families' command lines have in common."""

from __future__ import annotations

import argparse

from dgbook.solving import DTYPES


def orders(text: str) -> range:
    """ "3" or "1..8" as a range of orders."""
    first, _, last = text.partition("..")
    return range(int(first), int(last or first) + 1)


def add_measured(parser: argparse.ArgumentParser, largest: int, dofs: int) -> None:
    """--orders, --dtypes and --dofs: what is measured.

    Parameters
    ----------
    parser : argparse.ArgumentParser
    largest : int
        The highest order by default.
    dofs : int
        Degrees of freedom by default, about.
    """
    parser.add_argument("--orders", type=orders, default=f"1..{largest}", help="N, or from..to")
    parser.add_argument("--dtypes", nargs="+", default=DTYPES, choices=DTYPES, help="precisions")
    parser.add_argument("--dofs", type=int, default=dofs, help="degrees of freedom, about")
