"""Options that the families' command lines have in common."""

from __future__ import annotations

import argparse
import math

from dgbook.element import MAX_ORDER
from dgbook.nodal.solving import DTYPES


def orders(text: str) -> range:
    """ "3" or "1..8" as a range of orders."""
    first, dots, last = text.partition("..")
    try:
        order_range = range(int(first), int(last if dots else first) + 1)
    except ValueError:
        order_range = range(0)
    if not order_range or not 0 <= order_range[0] <= order_range[-1] <= MAX_ORDER:
        raise argparse.ArgumentTypeError(
            f"{text!r}; allowed: an order or FROM..TO, with 0 <= FROM <= TO <= {MAX_ORDER}"
        )
    return order_range


def check_count(option: str, value: int, most: int | None = None) -> None:
    """Raise a ValueError if there are none of what an option counts, or more than `most`."""
    if value < 1 or (most is not None and value > most):
        allowed = "1 or more" if most is None else f"1 to {most}"
        raise ValueError(f"{option} {value}; allowed: {allowed}")


def check_positive(option: str, value: float) -> None:
    """Raise a ValueError if a number is not positive and finite."""
    if not 0 < value < math.inf:
        raise ValueError(f"{option} {value}; allowed: positive, finite")


def check_finite(option: str, *values: float) -> None:
    """Raise a ValueError if one of an option's numbers is not finite."""
    if not all(map(math.isfinite, values)):
        text = " ".join(f"{value:g}" for value in values)
        raise ValueError(f"{option} {text}; allowed: finite numbers")


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
