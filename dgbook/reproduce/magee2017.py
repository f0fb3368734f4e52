"""Figures of magee2017: the swept rule for one-dimensional PDEs, on a Tesla K40c."""

from __future__ import annotations

import inspect
from functools import partial

from dgbook import records
from dgbook.records import Record
from dgbook.reproduce.registry import Item, Ours, Paper, Values
from dgbook.swept.diagram import profiles
from dgbook.swept.kernels.classic import make_classic
from dgbook.swept.kernels.shared import make_up
from dgbook.swept.measure import ON_RANKS, ON_THREADS, PYTHON, SINGLE

DTYPE = "float64"  # the paper's figures
NODE = 16  # points of a node in a diagram
SMALL = 2**15  # points up to which a problem is small
DRAWN = "drawn in chapter 11"
SHOWN = "printed in chapter 11"
ANOTHER = "it is another GPU, and launches are recorded and replayed"


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


def edges() -> Ours:
    """The edges of a node: two rows of half its points, left and right."""
    return Ours(
        {f"a node of {NODE} points": {"left edge": NODE, "right edge": NODE, "words a point": 2}},
        DRAWN,
    )


def listing(make) -> Ours:
    """How long a kernel is here."""
    return Ours({make.__name__: {"lines": len(inspect.getsource(make).splitlines())}}, SHOWN)


def times(problem: str) -> Ours:
    """Microseconds a step of every scheme and size, with its best plan and the paper's best."""
    record = records.load("swept/step")
    rows: Values = {}
    for row in _steps(record, problem):
        name = row["path"] + (f", {row['variant']}" if "variant" in row else "")
        rows.setdefault(f"n = {row['size']['n']}", {})[f"{name}, us"] = 1e6 * row["seconds_median"]
    return _recorded(record, rows)


def speed_ups(problem: str) -> Ours:
    """Time of Classic over that of the swept rule, the paper's kernels and the best ones."""
    record = records.load("swept/step")
    found = _by_scheme(record, problem, SINGLE)
    rows: Values = {}
    ratios = _ratios(found, "classic", "shared")
    if problem == "euler":
        lost = [1 / r for r in ratios]
        rows["all sizes"] = _range("Classic over swept", lost)
    else:
        rows["heat and Kuramoto-Sivashinsky"] = _range("Shared", ratios)
        if problem == "heat" and "hybrid" in found:
            small = {
                scheme: {n: t for n, t in of.items() if n <= SMALL} for scheme, of in found.items()
            }
            rows["small sizes"] = _range(
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
            rows[f"best swept plan against best {rival}"] = _range("speed-up", ratios)
    return _recorded(record, rows)


def cores_times() -> Ours:
    """Microseconds a step of Kuramoto-Sivashinsky: the GPU, Numba's threads, MPI ranks."""
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
    return _recorded(record, rows, because)


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
    return _recorded(record, rows, "both the GPU and the processor are others")


def _steps(record: Record, problem: str) -> list[dict]:
    return [row for row in record.select(dtype=DTYPE) if row["size"].get("problem") == problem]


def _by_scheme(record: Record, problem: str, variant: str | None) -> dict[str, dict[int, float]]:
    """Seconds a step by scheme and size, of the rows of a variant, or of those without."""
    found: dict[str, dict[int, float]] = {}
    for row in _steps(record, problem):
        if row.get("variant") == variant != PYTHON:
            found.setdefault(row["path"], {})[row["size"]["n"]] = row["seconds_median"]
    return found


def _ratios(found: dict[str, dict[int, float]], slow: str, fast: str) -> list[float]:
    return [found[slow][n] / found[fast][n] for n in sorted(found[fast]) if n in found[slow]]


def _range(name: str, values: list[float]) -> dict[str, float]:
    return {f"{name} from": min(values), f"{name} to": max(values)}


def _recorded(record: Record, rows: Values, because: str = ANOTHER) -> Ours:
    return Ours(rows, because, "RECORDED", record.source)


_FOUR = (
    "it illustrates a time scheme of four three-point substeps, and none of the paper's three "
    "problems has one"
)
_PLOTTED = "Double precision. Plotted only."
_OFF_BY_ONE = "The text calls the panels of Figure n by n - 1: its Figure 6(a) is Figure 7(a)."

PAPER = Paper(
    name="magee2017",
    authors="D. J. Magee, K. E. Niemeyer",
    title=(
        "Accelerating solutions of one-dimensional unsteady PDEs with GPU-based swept time-space "
        "decomposition"
    ),
    year=2017,
    hardware="NVIDIA Tesla K40c; Intel Xeon with 8 cores and 16 threads",
    items=(
        Item(
            "Figure 1(a)",
            "First step of the swept rule: a triangle a node",
            "illustration",
            11,
            compute=partial(triangle, 1),
        ),
        Item(
            "Figure 1(b)",
            "Second step: edges are passed, each node fills a diamond",
            "illustration",
            11,
            compute=partial(diamond, 1),
        ),
        Item(
            "Figure 2(a)",
            "Edges of the working array on their way to global memory",
            "illustration",
            11,
            compute=edges,
        ),
        Item(
            "Figure 2(b)",
            "Edges put back to start the next triangle",
            "illustration",
            11,
            compute=edges,
        ),
        Item(
            "Figure 3(a)",
            "First step for a scheme of four three-point substeps",
            "illustration",
            11,
            obstacle=_FOUR,
        ),
        Item(
            "Figure 3(b)",
            "Values that such a scheme overwrites too early",
            "illustration",
            11,
            obstacle=_FOUR,
        ),
        Item(
            "Figure 4(a)",
            "First step with a second-order domain of dependence",
            "illustration",
            11,
            compute=partial(triangle, 2),
        ),
        Item(
            "Figure 4(b)",
            "Second step with a second-order domain of dependence",
            "illustration",
            11,
            compute=partial(diamond, 2),
        ),
        Item(
            "Figure 5",
            "Main loop of the kernel that fills the first triangle",
            "illustration",
            11,
            compute=partial(listing, make_up),
        ),
        Item(
            "Figure 6",
            "The Classic kernel for the Kuramoto-Sivashinsky equation",
            "illustration",
            11,
            compute=partial(listing, make_classic),
        ),
        Item(
            "Figure 7(a)",
            "Heat equation: time a step against size, all schemes",
            "measurement",
            11,
            note=f"{_PLOTTED} {_OFF_BY_ONE}",
            compute=partial(times, "heat"),
            record="swept/step",
        ),
        Item(
            "Figure 7(b)",
            "Heat equation: speed-up over Classic against size",
            "measurement",
            11,
            rows={
                "heat and Kuramoto-Sivashinsky": {"Shared from": 2, "Shared to": 9},
                "small sizes": {
                    "Hybrid slower than Shared from": 2,
                    "Hybrid slower than Shared to": 3,
                },
            },
            note=f"Double precision; ranges from abstract and section 6. {_OFF_BY_ONE}",
            compute=partial(speed_ups, "heat"),
            record="swept/step",
        ),
        Item(
            "Figure 8(a)",
            "Kuramoto-Sivashinsky: time a step against size, all schemes",
            "measurement",
            11,
            note=f"{_PLOTTED} {_OFF_BY_ONE}",
            compute=partial(times, "ks"),
            record="swept/step",
        ),
        Item(
            "Figure 8(b)",
            "Kuramoto-Sivashinsky: speed-up over Classic against size",
            "measurement",
            11,
            rows={"heat and Kuramoto-Sivashinsky": {"Shared from": 2, "Shared to": 9}},
            note=f"Double precision; the range is the abstract's. {_OFF_BY_ONE}",
            compute=partial(speed_ups, "ks"),
            record="swept/step",
        ),
        Item(
            "Figure 9(a)",
            "Euler: time a step against size, all schemes",
            "measurement",
            11,
            note=_PLOTTED,
            compute=partial(times, "euler"),
            record="swept/step",
        ),
        Item(
            "Figure 9(b)",
            "Euler: speed-up over Classic against size",
            "measurement",
            11,
            rows={"all sizes": {"Classic over swept from": 1.2, "Classic over swept to": 1.9}},
            note="Double precision; the swept rule loses. The range is the abstract's.",
            compute=partial(speed_ups, "euler"),
            record="swept/step",
        ),
        Item(
            "Figure 10(a)",
            "Kuramoto-Sivashinsky: time a step, CPU with MPI and GPU",
            "measurement",
            11,
            note=_PLOTTED,
            compute=cores_times,
            record="swept/cores",
        ),
        Item(
            "Figure 10(b)",
            "Kuramoto-Sivashinsky: GPU over CPU, same scheme, against size",
            "measurement",
            11,
            rows={"GPU over CPU": {"from": 7, "to": 300}},
            note="Double precision; the range is the abstract's, over all problem sizes.",
            compute=cores_over_gpu,
            record="swept/cores",
        ),
    ),
)
