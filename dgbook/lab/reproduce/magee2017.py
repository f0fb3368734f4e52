"""Figures of magee2017: the swept rule for one-dimensional PDEs, on a Tesla K40c."""

from __future__ import annotations

import inspect

from dgbook.lab import records
from dgbook.lab.diagram import profiles
from dgbook.lab.papers import Ours, Values, from_to
from dgbook.lab.records import Record
from dgbook.lab.swept import ON_RANKS, ON_THREADS, PYTHON, SINGLE
from dgbook.swept.kernels.classic import make_classic
from dgbook.swept.kernels.shared import make_up

DTYPE = "float64"  # the paper's figures
NODE = 16  # points of a node in a diagram
SMALL = 2**15  # points up to which a problem is small
DRAWN = "drawn in chapters 11 and 11b"
SHOWN = "in dgbook/swept/kernels, see page 11d"
ANOTHER = "it is another GPU, and launches are recorded and replayed"
BRANCH_FREE = "it is another GPU, launches are replayed, and our quotients and roots have no branch"


def triangle(reach: int) -> Ours:
    """What an up-triangle computes, seen by running it."""
    (heights,) = profiles(reach, NODE, 2, 1)
    mine = heights[:NODE]
    return Ours({f"a node of {NODE} points": _counts(mine, 0 * mine, reach)}, DRAWN)


def diamond(reach: int) -> Ours:
    """What the diamonds after it compute."""
    before, after = profiles(reach, NODE, 2, 2)
    shifted = slice(NODE // 2, NODE // 2 + NODE)
    counts = _counts(after[shifted], before[shifted], reach)
    return Ours({f"a node of {NODE} points": counts}, DRAWN)


def _counts(after, before, reach: int) -> dict[str, float]:
    return {
        "levels": int(after.max() - before.min()),
        "points computed": int((after - before).sum()),
        "states of its edges": 2 * (NODE // (2 * reach)) * 2 * reach,
    }


def overwritten() -> Ours:
    """What a step of four three-point substeps starts from, and what two rows have lost of it.

    The fourth substep needs the state four levels down; the level between has its row.
    """
    node = 20
    needed = [(k - 4, i) for k in (4, 8) for i in range(k, node - k)]
    lost = [(k, i) for k, i in needed if k + 2 <= i < node - k - 2]
    counts = {"values needed": len(needed), "of these overwritten": len(lost)}
    return Ours({f"a node of {node} points": counts}, "drawn in chapter 11b")


def edges() -> Ours:
    """The edges of a node: two rows of half its points, left and right."""
    return Ours(
        {f"a node of {NODE} points": {"left edge": NODE, "right edge": NODE, "words per point": 2}},
        DRAWN,
    )


def listing(kernel: str) -> Ours:
    """How long a kernel is here: "classic", or the "up" triangle."""
    make = {"classic": make_classic, "up": make_up}[kernel]
    return Ours({make.__name__: {"lines": len(inspect.getsource(make).splitlines())}}, SHOWN)


def times(problem: str) -> Ours:
    """Microseconds per step of every scheme and size, with its best plan and the paper's best."""
    record = records.load("swept/step")
    rows: Values = {}
    for row in _steps(record, problem):
        name = row["path"] + (f", {row['variant']}" if "variant" in row else "")
        rows.setdefault(f"n = {row['size']['n']}", {})[f"{name}, us"] = 1e6 * row["seconds_median"]
    return Ours.recorded(record, rows, ANOTHER)


def speed_ups(problem: str) -> Ours:
    """Time of Classic over that of the swept rule, the paper's kernels and the best ones."""
    record = records.load("swept/step")
    times = _by_scheme(record, problem, SINGLE)
    rows: Values = {}
    ratios = _ratios(times, "classic", "shared")
    if problem == "euler":
        lost = [1 / r for r in ratios]
        rows["all sizes"] = from_to("Classic over swept", lost)
    else:
        rows["heat and Kuramoto-Sivashinsky"] = from_to("Shared", ratios)
        if problem == "heat" and "hybrid" in times:
            small = {
                scheme: {n: t for n, t in of.items() if n <= SMALL} for scheme, of in times.items()
            }
            rows["small sizes"] = from_to(
                "Hybrid slower than Shared", _ratios(small, "hybrid", "shared")
            )
    best = _by_scheme(record, problem, None)
    for rival in ("classic", "persistent", "tiled"):
        if rival in best:
            swept = {
                n: min(best[s][n] for s in ("shared", "register") if n in best.get(s, {}))
                for n in best["shared"]
            }
            ratios = [best[rival][n] / swept[n] for n in sorted(swept) if n in best[rival]]
            rows[f"best swept plan against best {rival}"] = from_to("speed-up", ratios)
    return Ours.recorded(record, rows, BRANCH_FREE if problem == "euler" else ANOTHER)


def cores_times() -> Ours:
    """Microseconds per step of Kuramoto-Sivashinsky: the GPU, Numba's threads, MPI ranks."""
    record, steps = records.load("swept/cores"), records.load("swept/step")
    gpu = _by_scheme(steps, "ks", SINGLE)
    rows: Values = {}
    for row in _steps(record, "ks"):
        n, path, on_ranks = row["size"]["n"], row["path"], row["variant"] == ON_RANKS
        columns = rows.setdefault(f"n = {n}", {})
        if n in gpu.get(path, {}):
            columns[f"{path}, GPU, us"] = 1e6 * gpu[path][n]
        count = row["size"]["ranks" if on_ranks else "cores"]
        who = "1 core" if count == 1 else f"{count} {'ranks' if on_ranks else 'cores'}"
        columns[f"{path}, {who}, us"] = 1e6 * row["seconds_median"]
    because = "GPU and processor are others; cores are Numba's threads, ranks MPI's"
    return Ours.recorded(record, rows, because)


def cores_over_gpu() -> Ours:
    """The processor over the GPU, same scheme, the paper's kernels: MPI ranks, and threads."""
    record, steps = records.load("swept/cores"), records.load("swept/step")
    gpu = _by_scheme(steps, "ks", SINGLE)
    rows_of = _steps(record, "ks")
    most = max(row["size"]["cores"] for row in rows_of)
    ratios: dict[str, list[float]] = {}
    for row in rows_of:
        if row["size"]["cores"] == most and row["size"]["n"] in gpu.get(row["path"], {}):
            ratio = row["seconds_median"] / gpu[row["path"]][row["size"]["n"]]
            ratios.setdefault(row["variant"], []).append(ratio)
    # The paper's processor ran MPI: its range stands beside that of ranks, if they were measured.
    names = {ON_RANKS: "GPU over CPU", ON_THREADS: "GPU over CPU"}
    if ON_RANKS in ratios:
        names[ON_THREADS] += ", Numba's threads"
    rows = {names[key]: {"from": min(of), "to": max(of)} for key, of in ratios.items()}
    return Ours.recorded(record, rows, "both the GPU and the processor are others")


def _steps(record: Record, problem: str) -> list[dict]:
    return [row for row in record.select(dtype=DTYPE) if row["size"].get("problem") == problem]


def _by_scheme(record: Record, problem: str, variant: str | None) -> dict[str, dict[int, float]]:
    """Seconds per step by scheme and size, of the rows of a variant, or of those without."""
    times: dict[str, dict[int, float]] = {}
    for row in _steps(record, problem):
        if row.get("variant") == variant != PYTHON:
            times.setdefault(row["path"], {})[row["size"]["n"]] = row["seconds_median"]
    return times


def _ratios(times: dict[str, dict[int, float]], slow: str, fast: str) -> list[float]:
    return [times[slow][n] / times[fast][n] for n in sorted(times[fast]) if n in times[slow]]
