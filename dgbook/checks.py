"""Checks of arguments that families share: an error names the argument, its value, the allowed."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import fields
from typing import Any

import numpy as np


def check_choice(name: str, value: Any, allowed: Collection[Any]) -> None:
    """Whether an argument is one of a few.

    Raises
    ------
    ValueError
        If it is not.
    """
    if value not in allowed:
        raise ValueError(f"{name} = {value!r}; allowed are {', '.join(map(repr, allowed))}")


def check_memory(
    what: str, needs: int, there: tuple[int, str] | None = None, advice: str = ""
) -> None:
    """Whether there are so many bytes.

    Parameters
    ----------
    what : str
        Ends with "needs", or "need".
    needs : int
    there : (int, str), optional
        The bytes that there are, and whose; if not given, the host's.
    advice : str
        What to do.

    Raises
    ------
    ValueError
        If there are fewer: `what`, both numbers, and `advice`.
    """
    has, whose = there or (host_bytes(), "the host")
    if needs > has:
        raise ValueError(
            f"{what} about {bytes_text(needs)}; allowed: the {bytes_text(has)} of {whose}{advice}"
        )


def host_bytes() -> int:
    """The host's memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def bytes_text(nbytes: int) -> str:
    """Bytes in the unit that suits them."""
    for unit, power in (("GiB", 30), ("MiB", 20)):
        if nbytes >= 2**power:
            return f"{nbytes / 2**power:.1f} {unit}"
    return f"{nbytes / 2**10:.1f} KiB"


def check_counts(plan: Any, *names: str) -> None:
    """Whether fields of a dataclass, all of them if none are named, are positive integers.

    Raises
    ------
    TypeError
        If one is no integer.
    ValueError
        If one is not positive.
    """
    for name in names or [field.name for field in fields(plan)]:
        value = getattr(plan, name)
        if not isinstance(value, int | np.integer) or isinstance(value, bool):
            raise TypeError(f"{name} = {value!r}; allowed: an integer")
        if value < 1:
            raise ValueError(f"{name} = {value}; allowed: 1 or more")
