"""A film of exchanges between two GPUs: states of `dgbook.page.interleavings`, step by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dgbook.page import plot
from dgbook.page.interleavings import Event, Landing, Model, Step
from dgbook.page.player import Player, flipbook

STEPS = ("store", "fence", "flag", "wait", "fetch")
TINTS = ("#9ecae1", "#fdd0a2", "#c7e9c0", "#dadaeb")
"""Of rounds, by turns."""
WIDE, GAP = 10.4, 3.3
"""Of the picture, and where a GPU's memory stands from its side of it."""


def exchange_film(ways: Mapping[str, tuple[Model, Sequence[Event]]], alt: str) -> Player:
    """Pictures to be stepped through, with a line of words for each.

    What lands at once is shown where it has landed.

    Parameters
    ----------
    ways : mapping of str to pair
        Models of two GPUs, and for each what happens in it; the first is shown at its end.
    alt : str
    """
    films = {name: (model, _steps(events)) for name, (model, events) in ways.items()}
    most = max(len(steps) for _, steps in films.values())
    moments = list(range(1, most + 1))

    def at(name: str, moment: int) -> tuple[Model, Event]:
        model, steps = films[name]
        return model, steps[min(moment, len(steps)) - 1]

    captions = [[_words(*at(name, moment)) for moment in moments] for name in films]
    return flipbook(
        lambda name, moment: _picture(*at(name, moment)),
        {"case": list(films), "step": moments},
        start={"step": len(next(iter(films.values()))[1])},
        captions=np.array(captions, dtype=object),
        play="step",
        seconds=1.2,
        colors=12,
        alt=alt,
    )


def _steps(events: Sequence[Event]) -> list[Event]:
    """What GPUs do, with the state behind a landing that follows at once."""
    steps: list[Event] = []
    for event in events:
        if isinstance(event.what, Step):
            steps.append(event)
        elif isinstance(event.what, Landing) and steps[-1].gpu == event.gpu:
            steps[-1] = steps[-1]._replace(state=event.state)
    return steps


def _words(model: Model, event: Event) -> str:
    """What a GPU does, or what is wrong with it."""
    gpu, step, state = event
    under_way = ", which is under way" if state.under_way[gpu] else ""
    told = {
        "store": f"stores round {step.round} into buffer {step.value} of GPU {step.other}",
        "fence": "waits at its fence until all has landed",
        "flag": f"sets its flag at GPU {step.other} to {step.value}",
        "wait": f"sees flag {model.flag(state, gpu, step.other)}, and goes on",
        "fetch": f"fetches round {step.round} from buffer {step.value}",
    }[step.what]
    if step.what == "flag" and under_way:
        under_way = ", though what it has stored is under way"
    sent = under_way if step.what in ("store", "flag") else ""
    return model.wrong(event) or f"GPU {gpu} {told}{sent}."


def _picture(model: Model, event: Event) -> Figure:
    fig, ax = plot.figure(height=2.7, grid=False)
    for gpu in range(2):
        _draw_gpu(ax, model, event, gpu)
    ax.set(xlim=(-0.2, WIDE + 0.2), ylim=(0.3, 6.6))
    ax.axis("off")
    return fig


def _draw_gpu(ax: Axes, model: Model, event: Event, gpu: int) -> None:
    """A GPU's program, its memory, what is under way to it; the second GPU is mirrored."""
    state, other = event.state, 1 - gpu
    side, inner = (("left", "right"), ("right", "left"))[gpu]

    def x(from_side: float) -> float:
        return WIDE - from_side if gpu else from_side

    acts = event.gpu == gpu
    step = event.what if acts else model.next(state, gpu)
    ax.text(x(0), 6.1, f"GPU {gpu}, round {step.round}", ha=side, va="center", weight="bold")
    does = [what for what in STEPS if any(one.what == what for one in model.programs[gpu])]
    for i, what in enumerate(does):
        here = acts and what == step.what
        box = {"fc": "#ffe680" if here else "none", "ec": "none", "pad": 2}
        ax.text(x(0), 5.1 - i, what, ha=side, va="center", bbox=box)
    for i, buffer in enumerate([model.buffers, *range(model.buffers)]):
        word, y, is_flag = model.word(other, gpu, buffer), 5.1 - 1.7 * i, i == 0
        value = state.words[word]
        red = acts and bool(model.wrong(event)) and buffer == step.value
        name = "flag" if is_flag else f"buffer {buffer}"
        ax.text(x(GAP - 0.55), y, name, ha=inner, va="center")
        ax.plot(
            x(GAP),
            y,
            "s",
            ms=22,
            mew=4 if red else 1,
            mec=plot.COLORS["vermillion"] if red else "#555555",
            mfc="white" if is_flag or value < 0 else TINTS[value % len(TINTS)],
        )
        ax.text(x(GAP), y, value if value >= 0 else "", ha="center", va="center")
        coming = [one.value for one in state.under_way[other] if one.word == word]
        if coming:
            y += 0.35 if gpu else -0.35  # both ways at once
            ends = (x(GAP + 0.5), y), (x(GAP + 2.4), y)
            ax.annotate("", *ends, arrowprops={"arrowstyle": "->", "lw": 1.5})
            fill = "white" if is_flag else TINTS[coming[0] % len(TINTS)]
            box = {"fc": fill, "ec": "#555555", "pad": 4}
            ax.text(x(GAP + 1.5), y, coming[0], ha="center", va="center", bbox=box)
