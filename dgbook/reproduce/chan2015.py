"""Figures of chan2015: Bernstein-Bezier DG for acoustic waves on tetrahedra, on a GTX 980."""

from __future__ import annotations

from dgbook.reproduce.registry import Item, Paper

_PLOTTED = "Plotted only."
_KERNELS = (
    "Nodal node-per-thread (NPT) and element-per-thread (EPT), Bernstein and optimal Bernstein "
    "kernels, single precision."
)

PAPER = Paper(
    name="chan2015",
    authors="J. Chan, T. Warburton",
    title="GPU-accelerated Bernstein-Bezier discontinuous Galerkin methods for wave problems",
    year=2015,
    hardware="NVIDIA GTX 980, single precision",
    items=(
        Item(
            "Figure 1",
            "Nonzeros of a nodal and of a Bernstein-Bezier derivative matrix",
            "count",
            8,
            note="Drawn. By Lemma 3.1 a row of the Bernstein matrix has four nonzeros at most.",
        ),
        Item(
            "Figure 2",
            "Structure of the Bernstein-Bezier lift",
            "illustration",
            8,
            note="The text never refers to it; it stands with the lift matrices of section 3.1.2.",
        ),
        Item(
            "Figure 3", "The lift as a sweep of slices through the tetrahedron", "illustration", 8
        ),
        Item(
            "Figure 4",
            "Condition numbers of derivative and lift matrices by order, both bases",
            "accuracy",
            8,
            note=(
                "Plotted only. The text: the lift reduction E_L is conditioned half an order of "
                "magnitude better than the whole Bernstein lift."
            ),
        ),
        Item(
            "Figure 5",
            "Smallest and largest entry of the lift matrices by order, both bases",
            "accuracy",
            8,
            note=_PLOTTED,
        ),
        Item(
            "Figure 6",
            "Error over long time in single precision, by order, both bases",
            "accuracy",
            8,
            rows={"mesh": {"elements": 1536}},
            note="Plotted only. The text: the Bernstein basis errs as much as the nodal or less.",
        ),
        Item(
            "Figure 7",
            "Share of volume, surface and update in the run time, by order",
            "measurement",
            8,
            note=f"Fifty right-hand sides. {_KERNELS} {_PLOTTED}",
        ),
        Item(
            "Figure 8",
            "Speed-up of Bernstein-Bezier over both nodal kernels, by order",
            "measurement",
            8,
            rows={"surface, at the lowest orders named": {"Bernstein over NPT": 2}},
            note=(
                "Plotted; the text says 'roughly two times'. For large N it expects a factor of 4, "
                "and no limit for the optimal kernel."
            ),
        ),
        Item(
            "Figure 9",
            "Floating-point rate of each kernel by order",
            "measurement",
            8,
            rows={"NPT nodal": {"rate": 1.0}, "EPT nodal": {"rate": 2.0}},
            units={"rate": "TFLOP/s"},
            note=f"{_KERNELS} Plotted; the text says 'roughly a teraflop' and 'close to two'.",
        ),
        Item(
            "Figure 10",
            "Bandwidth of each kernel by order",
            "measurement",
            8,
            note=f"{_KERNELS} {_PLOTTED}",
        ),
        Item(
            "Figure 11",
            "Rooflines of volume and surface kernels, both bases",
            "measurement",
            8,
            note=f"{_KERNELS} {_PLOTTED}",
        ),
        Item(
            "Figure 12",
            "Share of the attainable rate that each kernel reaches, by order",
            "measurement",
            8,
            note=f"{_KERNELS} {_PLOTTED}",
        ),
    ),
)
