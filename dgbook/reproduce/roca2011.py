"""Tables and figures of roca2011: the matrix product of a hybridised DG method, on a GTX 285."""

from __future__ import annotations

from dgbook.reproduce.registry import Item, Paper, grid

_MEMORY = {
    "p = 1": (8, 94240, 3743188, 3769600, 1.0071, 44.63, 33.29, 0.75),
    "p = 2": (12, 141360, 8423010, 8481600, 1.0070, 99.09, 71.40, 0.72),
    "p = 3": (16, 188480, 14975728, 15078400, 1.0069, 174.98, 123.89, 0.71),
    "p = 4": (20, 235600, 23395950, 23560000, 1.0070, 272.24, 190.75, 0.70),
    "p = 5": (24, 282720, 33696648, 33926400, 1.0068, 391.02, 272.00, 0.70),
}

_STEPS = {
    "p = 1": (0.27, 0.44, 0.72, 37.90, 62.10),
    "p = 2": (0.39, 0.77, 1.15, 33.45, 66.55),
    "p = 3": (0.50, 1.28, 1.77, 27.92, 72.08),
    "p = 4": (0.60, 1.93, 2.53, 23.71, 76.29),
    "p = 5": (0.71, 2.70, 3.41, 20.80, 79.20),
}

_RIVALS = {
    "p = 1": (22.81, 1.87, 0.72, 1.00, 12.22, 31.91),
    "p = 2": (47.07, 3.05, 1.15, 1.00, 15.41, 40.79),
    "p = 3": (77.37, 4.17, 1.77, 1.00, 18.54, 43.64),
    "p = 4": (118.51, 5.91, 2.53, 1.00, 20.05, 46.82),
    "p = 5": (179.37, 7.39, 3.41, 1.00, 24.28, 52.54),
}

_PLOTTED = (
    "2D and 3D, p = 1 to 10; the curves are plotted, the text gives the range for large sizes."
)

PAPER = Paper(
    name="roca2011",
    authors="X. Roca, N. C. Nguyen, J. Peraire",
    title=(
        "GPU-accelerated sparse matrix-vector product for a hybridizable discontinuous Galerkin "
        "method"
    ),
    year=2011,
    hardware="NVIDIA GeForce GTX 285, 1 GB; Mac Pro with two Intel Xeon at 2.93 GHz, one thread",
    items=(
        Item(
            "Table 1",
            "Unknowns, stored values and memory of five matrices, CSR and dense blocks",
            "count",
            10,
            rows=grid(
                (
                    "unknowns of a face",
                    "unknowns",
                    "CSR values",
                    "block values",
                    "block values / CSR values",
                    "CSR memory",
                    "block memory",
                    "block memory / CSR memory",
                ),
                _MEMORY,
            ),
            units={"CSR memory": "MiB", "block memory": "MiB"},
            note=(
                "Triangles, 11,780 faces, four components, double precision. Memory counts 2^20 "
                "bytes and holds matrix, indices, x and y; with blocks the inflated x instead."
            ),
        ),
        Item(
            "Table 2",
            "Time to inflate the vector and to contract, by order",
            "measurement",
            10,
            rows=grid(("inflate", "contract", "both", "share inflate", "share contract"), _STEPS),
            units={
                "inflate": "ms",
                "contract": "ms",
                "both": "ms",
                "share inflate": "%",
                "share contract": "%",
            },
            note="The five matrices of Table 1, double precision, GPU.",
        ),
        Item(
            "Table 3",
            "Time and speed-up of MATLAB, cuSPARSE and the proposed product, by order",
            "measurement",
            10,
            rows=grid(
                (
                    "MATLAB",
                    "cuSPARSE",
                    "proposed",
                    "MATLAB speed-up",
                    "cuSPARSE speed-up",
                    "proposed speed-up",
                ),
                _RIVALS,
            ),
            units={"MATLAB": "ms", "cuSPARSE": "ms", "proposed": "ms"},
            note="The five matrices of Table 1, double precision; MATLAB on the CPU.",
        ),
        Item("Figure 1(a)", "A mesh of six faces with four nodes each", "illustration", 10),
        Item(
            "Figure 1(b)",
            "Its matrix: dense blocks where two faces share an element",
            "illustration",
            10,
        ),
        Item("Figure 1(c)", "The same blocks stored densely", "illustration", 10),
        Item(
            "Figure 2(a)",
            "Rate of the contraction against memory, CPU, single precision",
            "measurement",
            10,
            rows={"large sizes": {"rate from": 0.25, "rate to": 1.75}},
            units={"rate from": "GFLOP/s", "rate to": "GFLOP/s"},
            note=_PLOTTED,
        ),
        Item(
            "Figure 2(b)",
            "Rate of the contraction against memory, CPU, double precision",
            "measurement",
            10,
            rows={"large sizes": {"rate from": 0.2, "rate to": 1.25}},
            units={"rate from": "GFLOP/s", "rate to": "GFLOP/s"},
            note=_PLOTTED,
        ),
        Item(
            "Figure 2(c)",
            "Rate of the contraction against memory, GPU, single precision",
            "measurement",
            10,
            rows={"large sizes": {"rate from": 30, "rate to": 55}},
            units={"rate from": "GFLOP/s", "rate to": "GFLOP/s"},
            note=_PLOTTED,
        ),
        Item(
            "Figure 2(d)",
            "Rate of the contraction against memory, GPU, double precision",
            "measurement",
            10,
            rows={"large sizes": {"rate from": 20, "rate to": 25}},
            units={"rate from": "GFLOP/s", "rate to": "GFLOP/s"},
            note=_PLOTTED,
        ),
        Item(
            "Figure 3(a)",
            "Share of the peak bandwidth against memory, CPU, single precision",
            "measurement",
            10,
            rows={"large sizes": {"share from": 2.5, "share to": 20}},
            units={"share from": "%", "share to": "%"},
            note=f"Peak 16 GB/s. {_PLOTTED}",
        ),
        Item(
            "Figure 3(b)",
            "Share of the peak bandwidth against memory, CPU, double precision",
            "measurement",
            10,
            rows={"large sizes": {"share from": 5, "share to": 30}},
            units={"share from": "%", "share to": "%"},
            note=f"Peak 16 GB/s. {_PLOTTED}",
        ),
        Item(
            "Figure 3(c)",
            "Share of the peak bandwidth against memory, GPU, single precision",
            "measurement",
            10,
            rows={"large sizes": {"share from": 30, "share to": 65}},
            units={"share from": "%", "share to": "%"},
            note=f"Peak 159.7 GB/s. {_PLOTTED}",
        ),
        Item(
            "Figure 3(d)",
            "Share of the peak bandwidth against memory, GPU, double precision",
            "measurement",
            10,
            rows={"large sizes": {"share from": 40}},
            units={"share from": "%"},
            note=f"Peak 159.7 GB/s; the abstract says 'more than 40 %'. {_PLOTTED}",
        ),
        Item(
            "Figure 4(a)",
            "Speed-up of the GPU over the CPU against memory, single precision",
            "measurement",
            10,
            rows={"smallest": {"GPU over CPU from": 20}},
            note=f"The text says 'more than 20 times'. {_PLOTTED}",
        ),
        Item(
            "Figure 4(b)",
            "Speed-up of the GPU over the CPU against memory, double precision",
            "measurement",
            10,
            rows={"smallest": {"GPU over CPU from": 20}},
            note=f"The text says 'more than 20 times'. {_PLOTTED}",
        ),
    ),
)
