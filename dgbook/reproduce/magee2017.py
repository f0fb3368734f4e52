"""Figures of magee2017: the swept rule for one-dimensional PDEs, on a Tesla K40c."""

from __future__ import annotations

from dgbook.reproduce.registry import Item, Paper

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
        Item("Figure 1(a)", "First step of the swept rule: a triangle a node", "illustration", 11),
        Item(
            "Figure 1(b)",
            "Second step: edges are passed, each node fills a diamond",
            "illustration",
            11,
        ),
        Item(
            "Figure 2(a)",
            "Edges of the working array on their way to global memory",
            "illustration",
            11,
        ),
        Item("Figure 2(b)", "Edges put back to start the next triangle", "illustration", 11),
        Item(
            "Figure 3(a)",
            "First step for a scheme of four three-point substeps",
            "illustration",
            11,
        ),
        Item("Figure 3(b)", "Values that such a scheme overwrites too early", "illustration", 11),
        Item(
            "Figure 4(a)", "First step with a second-order domain of dependence", "illustration", 11
        ),
        Item(
            "Figure 4(b)",
            "Second step with a second-order domain of dependence",
            "illustration",
            11,
        ),
        Item(
            "Figure 5", "Main loop of the kernel that fills the first triangle", "illustration", 11
        ),
        Item(
            "Figure 6",
            "The Classic kernel for the Kuramoto-Sivashinsky equation",
            "illustration",
            11,
        ),
        Item(
            "Figure 7(a)",
            "Heat equation: time a step against size, all schemes",
            "measurement",
            11,
            note=f"{_PLOTTED} {_OFF_BY_ONE}",
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
        ),
        Item(
            "Figure 8(a)",
            "Kuramoto-Sivashinsky: time a step against size, all schemes",
            "measurement",
            11,
            note=f"{_PLOTTED} {_OFF_BY_ONE}",
        ),
        Item(
            "Figure 8(b)",
            "Kuramoto-Sivashinsky: speed-up over Classic against size",
            "measurement",
            11,
            rows={"heat and Kuramoto-Sivashinsky": {"Shared from": 2, "Shared to": 9}},
            note=f"Double precision; the range is the abstract's. {_OFF_BY_ONE}",
        ),
        Item(
            "Figure 9(a)",
            "Euler: time a step against size, all schemes",
            "measurement",
            11,
            note=_PLOTTED,
        ),
        Item(
            "Figure 9(b)",
            "Euler: speed-up over Classic against size",
            "measurement",
            11,
            rows={"all sizes": {"Classic over swept from": 1.2, "Classic over swept to": 1.9}},
            note="Double precision; the swept rule loses. The range is the abstract's.",
        ),
        Item(
            "Figure 10(a)",
            "Kuramoto-Sivashinsky: time a step, CPU with MPI and GPU",
            "measurement",
            11,
            note=_PLOTTED,
        ),
        Item(
            "Figure 10(b)",
            "Kuramoto-Sivashinsky: GPU over CPU, same scheme, against size",
            "measurement",
            11,
            rows={"GPU over CPU": {"from": 7, "to": 300}},
            note="Double precision; the range is the abstract's, over all problem sizes.",
        ),
    ),
)
