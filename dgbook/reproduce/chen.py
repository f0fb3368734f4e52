"""Tables and figures of chen: quadrature DG for a vortex in the Euler equations, on a GTX 1080."""

from __future__ import annotations

from dgbook.reproduce.registry import Item, Paper, Values, grid

_BLOCKS = {
    "N = 160, p = 0": (41.978, 52.031, 50.972, 51.697, 52.069),
    "N = 160, p = 1": (211.883, 227.306, 235.896, 228.627, 221.035),
    "N = 160, p = 2": (1037.709, 1123.094, 1135.604, 1130.568, 1140.236),
    "N = 320, p = 0": (109.953, 159.936, 162.701, 165.591, 168.216),
    "N = 320, p = 1": (695.748, 889.766, 905.512, 915.440, 853.13),
    "N = 320, p = 2": (3641.40, 4071.97, 4083.567, 4084.301, 3246.27),
}

# By p: CPU, GPU and speed-up over N = 32, 64, 128, 256, 512.
_SIZES = (32, 64, 128, 256, 512)
_CPU = (
    (59.718, 238.092, 1011.105, 4127.669, 16266.888),
    (262.168, 1069.318, 4357.10, 17851.866, 71707.630),
    (787.065, 3279.467, 13300.709, 53283.997, 212828.953),
)
_GPU = (
    (10.013, 11.588, 33.315, 78.892, 260.675),
    (26.742, 30.622, 125.91, 464.836, 1676.459),
    (30.374, 91.682, 701.729, 2446.404, 7851.896),
)
_SPEEDUP = (
    (5.964, 20.56, 30.349, 52.321, 62.403),
    (9.804, 34.920, 34.605, 38.403, 42.784),
    (25.920, 35.770, 18.973, 21.784, 27.087),
)

_KERNELS = {
    "p = 0": (129.1, 77.4, 25.9, 72.7),
    "p = 1": (143.8, 87.5, 27.9, 68.6),
    "p = 2": (100.1, 107.7, 12.08, 51.4),
}


def _times() -> Values:
    return {
        f"p = {p}, N = {n}": {"CPU": _CPU[p][i], "GPU": _GPU[p][i], "speed-up": _SPEEDUP[p][i]}
        for p in range(3)
        for i, n in enumerate(_SIZES)
    }


PAPER = Paper(
    name="chen",
    authors="G. Chen",
    title="GPU-accelerated discontinuous Galerkin methods for vortex transport simulations",
    year=None,
    hardware="NVIDIA GeForce GTX 1080; one core of an AMD Ryzen 7 1800X",
    items=(
        Item(
            "Table 1",
            "Time of ten steps by block size, mesh and order",
            "measurement",
            7,
            rows=grid(("32", "64", "128", "256", "512"), _BLOCKS),
            units={block: "ms" for block in ("32", "64", "128", "256", "512")},
            note="Columns are threads a block. The mesh has 2 N^2 triangles.",
        ),
        Item(
            "Table 2",
            "Time of ten steps on CPU and GPU and their ratio, by mesh and order",
            "measurement",
            7,
            rows=_times(),
            units={"CPU": "ms", "GPU": "ms"},
            note="The GPU with 32 threads a block, the CPU with one core.",
        ),
        Item(
            "Table 3",
            "Bandwidth and rate of the volume and the face kernel by order",
            "measurement",
            7,
            rows=grid(("volume bandwidth", "face bandwidth", "volume rate", "face rate"), _KERNELS),
            units={
                "volume bandwidth": "GB/s",
                "face bandwidth": "GB/s",
                "volume rate": "GFLOP/s",
                "face rate": "GFLOP/s",
            },
            note="N = 128.",
        ),
        Item("Figure 1", "A sample mesh and the pressure of the vortex", "illustration", 7),
        Item(
            "Figure 2(a)",
            "Pressure and x-velocity at t = 10, p = 2, N = 16",
            "accuracy",
            7,
            note="Contours; the text gives no error.",
        ),
        Item(
            "Figure 2(b)",
            "Pressure and x-velocity at t = 10, p = 2, N = 64",
            "accuracy",
            7,
            note="Contours; the text gives no error.",
        ),
        Item(
            "Figure 3",
            "Time of ten steps against mesh size, CPU and GPU",
            "measurement",
            7,
            rows=_times(),
            units={"CPU": "ms", "GPU": "ms"},
            note="Draws the numbers of Table 2.",
        ),
    ),
)
