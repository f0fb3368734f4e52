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
    add_orders(parser, f"1..{largest}")
    parser.add_argument("--dofs", type=int, default=dofs, help="degrees of freedom, about")


def add_orders(parser: argparse.ArgumentParser, default: str | None, more: str = "") -> None:
    """--orders and --dtypes.

    Parameters
    ----------
    parser : argparse.ArgumentParser
    default : str or None
        The orders if none are given.
    more : str
        What else to say about them.
    """
    parser.add_argument("--orders", type=orders, default=default, help=f"N, or from..to{more}")
    parser.add_argument("--dtypes", nargs="+", default=DTYPES, choices=DTYPES, help="precisions")
