"""A decision chart to be followed in the page: one question at a time, from a problem to a method.

Where scripts do not run, and on paper, all questions stand below each other with what yes means.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from dgbook.page.film import style
from dgbook.page.player import Player, assemble


@dataclass(frozen=True)
class Question:
    """One question of a chart.

    Attributes
    ----------
    ask : str
        To be answered with yes or no.
    tell : str
        How a reader tells which.
    end : str
        Where yes leads.
    why : str
        The reason, and the record behind it; for a question that follows an end, that of a yes.
    lessons : tuple of str
        Names of notebooks beside this one, without their ending: "08b_kernels_for_a_sparse_basis".
    inside : bool
        Whether the end is in this book.
    goes_on : str
        Whose records the reasons of the questions that follow quote, in a sentence. They are asked
        behind an end that has one.
    no : str
        Where no leads, for a question that follows an end.
    why_no : str
        The reason of that no.
    """

    ask: str
    tell: str
    end: str
    why: str
    lessons: tuple[str, ...] = ()
    inside: bool = True
    goes_on: str = ""
    no: str = ""
    why_no: str = ""


def chart(
    questions: Sequence[Question],
    then: Sequence[Question],
    problems: Mapping[str, Set[int]],
    alt: str,
) -> Player:
    """A chart whose first yes is the end.

    Parameters
    ----------
    questions : sequence of Question
        The last one is not asked: it is the end for who answered all others with no.
    then : sequence of Question
        Asked one after the other behind an end that goes on.
    problems : mapping of str to set of int
        Examples, by name: the numbers, from 1, of the questions that each answers with yes.
    alt : str
        What the chart leads to, for who cannot see it.

    Returns
    -------
    Player
        As the last line of a cell it is shown.

    Raises
    ------
    ValueError
        If there are fewer than two questions, a problem answers one that is not asked, or `alt`
        says next to nothing.
    """
    if len(questions) < 2:
        raise ValueError(f"questions has {len(questions)}; allowed: one to ask, and a last end")
    for name, yes in problems.items():
        if not yes <= set(range(1, len(questions))):
            raise ValueError(f"{name!r} answers {sorted(yes)}; allowed: 1 to {len(questions) - 1}")
    spec = {
        "questions": [_said(question) for question in questions],
        "then": [_said(question) for question in then],
        "problems": [
            [name, min(yes, default=len(questions)) - 1] for name, yes in problems.items()
        ],
    }
    chart_css = (files("dgbook.page") / "chart.css").read_text(encoding="utf-8")
    picture = (
        f'<div class="dgf dgq">{style("film.css")}{style("player.css")}<style>{chart_css}</style>'
        f'<ol class="dgq-all">{_listed(questions, then)}</ol>'
        '<div class="dgf-film dgq-one" hidden></div></div>'
    )
    script = (files("dgbook.page") / "chart.js").read_text(encoding="utf-8").strip()
    return assemble(picture, spec, {}, 0, alt, None, None, 0, 688, script, "dg-chart")


def _said(question: Question) -> dict[str, Any]:
    """What chart.js needs to know of a question."""
    return vars(question) | {"lessons": [[_number(name), name] for name in question.lessons]}


def _number(name: str) -> str:
    """The number of a lesson by the name of its notebook."""
    return name.split("_")[0].lstrip("0")


def _listed(questions: Sequence[Question], then: Sequence[Question]) -> str:
    """All questions with their ends and reasons, as a list."""
    items = ""
    for question in (*questions, *then):
        said = f"{question.end}. {question.why} {question.goes_on}".rstrip()
        if question.no:
            said += f" If not, {question.no}. {question.why_no}"
        items += f"<li><b>{html.escape(question.ask)}</b> {html.escape(said)}</li>"
    return items
