"""Tables and figures of klockner2009: nodal DG for Maxwell on tetrahedra, on a GTX 280."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dgbook.element import NodalElement, space_dimension
from dgbook.gpu.layout import microblock_size, padded, padding_waste
from dgbook.lab import banks, records
from dgbook.lab.papers import Ours, Values, from_to
from dgbook.maxwell.cost import PAPER as PARTS
from dgbook.maxwell.cost import surface_nodes
from dgbook.maxwell.plan import Shape, odd, shape_of


def figure3a() -> Ours:
    """Nodes of a tetrahedron, of one face and of all four, counted from the element itself."""
    rows = {}
    for N in range(1, 10):
        element = NodalElement(3, N)
        faces, Nfp = element.face_nodes.shape
        rows[f"N = {N}"] = {"Np": len(element.nodes), "Nfp": Nfp, "Nf Nfp": faces * Nfp}
    return Ours(rows)


def figure3b() -> Ours:
    """What padding wastes, one element at a time and in microblocks, by order."""
    rows: Values = {
        "N = 4, padded to a warp": {"waste": 100 * padding_waste(space_dimension(3, 4), 32)}
    }
    for N in range(1, 10):
        Np = space_dimension(3, N)
        elements = microblock_size(Np)
        rows[f"N = {N}"] = {
            "K_M": elements,
            "N_pM": padded(elements * Np, 16),
            "waste of one element, %": 100 * padding_waste(Np, 16),
            "waste of a microblock, %": 100 * padding_waste(elements * Np, 16),
        }
    return Ours(rows)


def figure1() -> Ours:
    """Entries of the lift matrix and of the face masses that it is put together from."""
    rows = {}
    for N in range(1, 10):
        Np, Nfp = space_dimension(3, N), (N + 1) * (N + 2) // 2
        rows[f"N = {N}"] = {"rows": Np, "columns": 4 * Nfp, "in a face mass": Nfp * Nfp}
    return Ours(rows, "drawn in chapter 4b")


def figure2() -> Ours:
    """Values of six fields that go in and out of each task, for each element."""
    rows = {}
    for N in range(1, 10):
        Np, Nf = space_dimension(3, N), 2 * (N + 1) * (N + 2)
        rows[f"N = {N}"] = {
            "gather: in": 6 * surface_nodes(N),
            "gather to lift": 6 * Nf,
            "lift: out": 6 * Np,
            "differentiation: in": 6 * Np,
            "differentiation: out": 18 * Np,
        }
    return Ours(rows, "drawn in chapter 5")


def figure4a() -> Ours:
    """The lift of K elements as one matrix product: its sizes."""
    rows = {}
    for N in range(1, 10):
        Np, Nf = space_dimension(3, N), 2 * (N + 1) * (N + 2)
        rows[f"N = {N}"] = {"rows": Np, "inner": Nf, "columns per element": 6}
    return Ours(rows, "drawn in chapter 5")


def figure4b() -> Ours:
    """Face values of a microblock, and what padding them wastes."""
    rows = {}
    for N in range(1, 10):
        shape = shape_of(N, "float32")
        rows[f"N = {N}"] = {
            "face values": shape.K_M * shape.Nf,
            "N_fM": shape.N_fM,
            "waste, %": 100 * padding_waste(shape.K_M * shape.Nf, 16),
        }
    return Ours(rows, "drawn in chapter 5")


def figure5(order: str) -> Ours:
    """Warps that wait, in blocks of two microblocks of three half-warps each."""
    # Two elements of 23 nodes: their boundary lies in the second of the three half-warps.
    shape = Shape(Np=23, Nfp=6, K_M=2, dtype="float32")
    waiting = banks.turns(banks.lift_words(shape, 2, order), banks.PAPER) > 1
    return Ours({"three warps": {"that wait": int(waiting.sum())}})


def figure6() -> Ours:
    """Elements whose values the row segments of a microblock fetch, over the elements there are."""
    rows = {}
    for N in range(1, 7):
        shape = shape_of(N, "float32")
        first = np.arange(0, shape.N_pM, 16)
        last = np.minimum(first + 15, shape.K_M * shape.Np - 1)
        touched = (last // shape.Np - first // shape.Np + 1).sum()
        rows[f"N = {N}, 16 rows"] = {
            "segments": len(first),
            "fetched over stored": float(touched / shape.K_M),
        }
    return Ours(rows, "drawn in chapter 5")


def figure7a() -> Ours:
    """The odd stride of the rows of [D_1 D_2 D_3], and the shared memory of 16 of them in fp32."""
    rows = {}
    for N in range(1, 10):
        stride = odd(3 * space_dimension(3, N))
        rows[f"N = {N}"] = {"stride": stride, "KiB": 16 * stride * 4 / 1024}
    return Ours(rows, "drawn in chapter 5")


def figure7(half_warp: int) -> Ours:
    """Banks that are read once or twice, by half a warp at N = 3 and an unsegmented matrix."""
    shape = shape_of(3, "float32")
    words = banks.matrix_words(shape, shape.Np, segmented=False)[16 * half_warp :][:16]
    accesses = np.bincount(words % 16, minlength=16)
    return Ours(
        {
            "N = 3": {
                "banks read once": int((accesses == 1).sum()),
                "banks read twice": int((accesses == 2).sum()),
            }
        }
    )


def table2() -> Ours:
    """Errors of a cavity mode in single precision, from the record, and their observed orders.

    An error is marked where more than half of it is rounding, as the same run in double precision
    shows, and so is an order that such an error enters.
    """
    record = records.load("maxwell/table2")
    rows, rounding = {}, set()
    for N in range(1, 10):
        of_order = record.select(order=N, dtype="float32")
        errors = {f"K = {row['size']['nominal_K']}": row["error"] for row in of_order}
        h = [row["size"]["h"] for row in of_order]
        slope = np.polyfit(np.log(h), np.log(list(errors.values())), 1)[0]
        rows[f"N = {N}"] = errors | {"order": float(slope)}
        doubles = [row["error"] for row in record.select(order=N, dtype="float64")]
        limited = [k for k, d in zip(errors, doubles, strict=True) if errors[k] > 2 * d]
        rounding |= {(f"N = {N}", column) for column in [*limited, *["order"] * bool(limited)]}
    return Ours(
        rows,
        rounding=frozenset(rounding),
        because=(
            "the paper gives neither its meshes nor mode, final time and norm: ours are the mode "
            "(1, 2, 2) of the unit cube with amplitude 1 at t = 1 on meshes of as many elements. "
            "The orders are to be compared, and where single precision ends them."
        ),
    )


def table3() -> Ours:
    """The fastest plan that was found for each kernel, by order."""
    record = records.load("maxwell/plans")
    rows = {}
    for N in sorted({row["order"] for row in record.rows}):
        for part, word in _PARTS.items():
            of_part = record.select(order=N, path=part, dtype="float32")
            plan = min(of_part, key=lambda row: row["seconds_median"])["plan"]
            values = {key: plan[key] for key in ("w_p", "w_i", "w_s", "M_B") if key in plan}
            if "strategy" in plan:
                values["matrix in shared"] = int(plan["strategy"] == "matrix")
            rows[f"N = {N}, {word}"] = values
    return Ours.recorded(record, rows, "another GPU has other optima; the paper found no rule")


def figure8a() -> Ours:
    """How many times faster the GPU is than one core, and than all: single precision."""
    record = records.load("maxwell/stage")
    rows: Values = {}
    for N in range(1, 10):
        gpu, best = _row(record, N, "paper"), _row(record, N, "fused")
        one, every = (_cores(record, N, pick) for pick in (min, max))
        rate = gpu["flops"] / gpu["seconds_median"] * 1e-9
        rows[f"N = {N}"] = {
            "GPU over CPU": _rate(gpu) / _rate(one),
            "GPU over all cores": _rate(gpu) / _rate(every),
            "fused over one core": _rate(best) / _rate(one),
            "GFLOP/s": rate,
        }
    ratios = [row["GPU over CPU"] for row in rows.values()]
    rows["all orders"] = from_to("GPU over CPU", ratios)
    return Ours.recorded(
        record,
        rows,
        "GPU and processor are fifteen years younger, and the core runs a compiled loop, not ATLAS",
    )


def figure8b() -> Ours:
    """Degrees of freedom per second, by the paper's kernels and by one fused kernel."""
    record = records.load("maxwell/stage")
    rows = {
        f"N = {N}": {
            f"{path}, GDOF/s": _rate(_row(record, N, path)) * 1e-9 for path in ("paper", "fused")
        }
        for N in range(1, 10)
    }
    return Ours.recorded(record, rows, "drawn in chapter 5b")


def figure9a() -> Ours:
    """Floating-point rate of each kernel, TFLOP/s."""
    return _by_part("TFLOP/s", lambda row, whole: row["flops"] / row["seconds_median"] * 1e-12)


def figure9b() -> Ours:
    """Share of the stage's time that each kernel takes, per cent."""
    return _by_part("%", lambda row, whole: 100 * row["seconds_median"] / whole)


def figure10a() -> Ours:
    """Bandwidth of each kernel, TB/s: what it must move, over its time."""
    return _by_part("TB/s", lambda row, whole: row["bytes"] / row["seconds_median"] * 1e-12)


def figure10b() -> Ours:
    """The sweep over (w_p, w_i, w_s) at N = 4: its best plan and how much the others lose."""
    record = records.load("maxwell/plans")
    sweep = [
        row
        for row in record.select(order=4, path="differentiate", dtype="float32")
        if row["plan"]["strategy"] == "matrix"
    ]
    times = np.array([row["seconds_median"] for row in sweep])
    best = sweep[int(times.argmin())]["plan"]
    rows = {
        "N = 4, differentiation": {key: best[key] for key in ("w_p", "w_i", "w_s")},
        "most plans": {"time over the best": float(np.median(times) / times.min())},
        "unlucky plans": {"time over the best": float(times.max() / times.min())},
        "all plans": {"tried": len(times)},
    }
    return Ours.recorded(
        record,
        rows,
        "it is another GPU; 'most' is our median, 'unlucky' our worst. These are the plans with "
        "the matrix in shared memory; the fastest of all, in Table 3, keeps the field there",
    )


def figure11a() -> Ours:
    """TFLOP/s of the operator with and without microblocks and matrix-in-shared."""
    record = records.load("maxwell/variants")
    rows: Values = {}
    for row in record.select(dtype="float32"):
        rate = row["flops"] / row["seconds_median"] * 1e-12
        rows.setdefault(f"N = {row['order']}", {})[f"{row['variant']}, TFLOP/s"] = rate
    return Ours.recorded(record, rows, "drawn in chapter 5b")


def figure11b() -> Ours:
    """GDOF/s of the paper's operator by number of elements."""
    record = records.load("maxwell/sizes")
    rows: Values = {}
    for row in record.select(dtype="float32", path="paper"):
        name = f"N = {row['order']}, K = {row['size']['K']}"
        rows[name] = {"GDOF/s": _rate(row) * 1e-9}
    return Ours.recorded(record, rows, "drawn in page 6c")


def figure12() -> Ours:
    """A plane wave scattered by an aeroplane: elements, and the rate sustained."""
    record = records.load("maxwell/scattering")
    rates = {path: record.row(order=4, path=path, dtype="float32") for path in ("paper", "fused")}
    rows = {
        "N = 4": {
            "elements": rates["paper"]["size"]["K"],
            "rate": rates["paper"]["flops"] / rates["paper"]["seconds_median"] * 1e-9,
        }
    }
    for path, row in rates.items():
        rows[f"N = 4, {path}"] = {"ms per time step": 1e3 * row["seconds_median"]}
    return Ours.recorded(record, rows, "it is another body, another mesh and another GPU")


def _by_part(unit: str, value: Callable[[dict, float], float]) -> Ours:
    """A value of each of the paper's kernels by order, from the record maxwell/stage."""
    record = records.load("maxwell/stage")
    rows = {}
    for N in range(1, 10):
        parts = {part: _row(record, N, part) for part in PARTS}
        whole = sum(row["seconds_median"] for row in parts.values())
        rows[f"N = {N}"] = {f"{p}, {unit}": value(row, whole) for p, row in parts.items()}
    return Ours.recorded(record, rows, "drawn in chapters 5b and 5c")


def _row(record: records.Record, N: int, path: str) -> dict:
    """The fastest row of a path at an order, in single precision."""
    rows = record.select(order=N, path=path, dtype="float32")
    return min(rows, key=lambda row: row["seconds_median"] / (row["dofs"] or 1))


def _cores(record: records.Record, N: int, pick: Callable) -> dict:
    """The row of one core (pick = min) or of all (max)."""
    rows = record.select(order=N, path="cores", dtype="float32")
    return pick(rows, key=lambda row: row["size"]["cores"])


def _rate(row: dict) -> float:
    return row["dofs"] / row["seconds_median"]


_PARTS = {"gather": "gather", "lift": "lift", "differentiate": "differentiation"}
