"""Tables and figures of klockner2009: nodal DG for Maxwell on tetrahedra, on a GTX 280."""

from __future__ import annotations

from dgbook.gpu.layout import microblock_size, padded, padding_waste
from dgbook.reproduce.registry import Item, Ours, Paper, Values, grid


def figure3a() -> Ours:
    """Nodes of a tetrahedron, of one face and of all four, counted from the element itself."""
    from dgbook.element import NodalElement

    rows = {}
    for N in range(1, 10):
        element = NodalElement(3, N)
        faces, Nfp = element.face_nodes.shape
        rows[f"N = {N}"] = {"Np": len(element.nodes), "Nfp": Nfp, "Nf Nfp": faces * Nfp}
    return Ours(rows)


def figure3b() -> Ours:
    """What padding wastes, one element at a time and in microblocks, by order."""
    rows: Values = {"N = 4, padded to a warp": {"waste": 100 * padding_waste(_nodes(4), 32)}}
    for N in range(1, 10):
        Np = _nodes(N)
        elements = microblock_size(Np)
        rows[f"N = {N}"] = {
            "K_M": elements,
            "N_pM": padded(elements * Np, 16),
            "waste of one element, %": 100 * padding_waste(Np, 16),
            "waste of a microblock, %": 100 * padding_waste(elements * Np, 16),
        }
    return Ours(rows)


def _nodes(N: int) -> int:
    """The dimension of polynomials of degree N on a tetrahedron."""
    return (N + 1) * (N + 2) * (N + 3) // 6


_NODES = {
    "N = 1": (4, 3, 12),
    "N = 2": (10, 6, 24),
    "N = 3": (20, 10, 40),
    "N = 4": (35, 15, 60),
    "N = 5": (56, 21, 84),
    "N = 6": (84, 28, 112),
    "N = 7": (120, 36, 144),
}

_ERRORS = {
    "N = 1": (1.57e0, 1.19e0, 1.03e0, 6.46e-1, 1.72),
    "N = 2": (4.15e-1, 2.84e-1, 1.82e-1, 1.19e-1, 2.58),
    "N = 3": (1.61e-1, 9.44e-2, 5.56e-2, 2.80e-2, 3.55),
    "N = 4": (4.75e-2, 2.52e-2, 1.13e-2, 5.03e-3, 4.64),
    "N = 5": (1.54e-2, 6.37e-3, 2.55e-3, 9.03e-4, 5.79),
    "N = 6": (3.84e-3, 1.42e-3, 4.42e-4, 1.32e-4, 6.94),
    "N = 7": (9.89e-4, 2.77e-4, 7.36e-5, 1.77e-5, 8.24),
    "N = 8": (1.91e-4, 4.76e-5, 1.05e-5, 2.55e-6, 8.90),
    "N = 9": (4.25e-5, 8.71e-6, 2.10e-6, 1.30e-6, 7.31),
}

_BEST_PLAN = {"N = 4, differentiation": {"w_p": 19, "w_i": 2, "w_s": 3}}

PAPER = Paper(
    name="klockner2009",
    authors="A. Klöckner, T. Warburton, J. Bridge, J. S. Hesthaven",
    title="Nodal discontinuous Galerkin methods on graphics processors",
    year=2009,
    hardware="NVIDIA GTX 280, 1 GiB, single precision; one core of an Intel Core2 Duo E8400",
    items=(
        Item(
            "Table 1",
            "Typefaces that tell registers, shared, global and texture memory apart",
            "illustration",
            5,
            obstacle="it is a convention of notation and holds no result",
        ),
        Item(
            "Table 2",
            "L2 errors and observed orders for a cavity mode, by order and mesh",
            "accuracy",
            4,
            rows=grid(("K = 475", "K = 728", "K = 1187", "K = 1844", "order"), _ERRORS),
            note=(
                "Single precision; h = 0.3, 0.255, 0.21675, 0.184237. The observed order is the "
                "least-squares slope over the four meshes. The text calls it Table 6."
            ),
        ),
        Item(
            "Table 3",
            "The fastest plan found for each part of the operator, by order",
            "measurement",
            6,
            rows=_BEST_PLAN,
            note="The text about it gives one entry; it calls the table Table 6.",
        ),
        Item(
            "Figure 1",
            "How the lift matrix is put together from the face masses",
            "illustration",
            4,
        ),
        Item(
            "Figure 2", "The operator as gather, lift, flux and differentiation", "illustration", 5
        ),
        Item(
            "Figure 3(a)",
            "Nodes of a tetrahedron, of a face and of its four faces, by order",
            "count",
            3,
            rows=grid(("Np", "Nfp", "Nf Nfp"), _NODES),
            compute=figure3a,
        ),
        Item(
            "Figure 3(b)",
            "Elements stored together in microblocks, so that padding wastes little",
            "count",
            3,
            rows={"N = 4, padded to a warp": {"waste": 45}},
            units={"waste": "%"},
            note=(
                "The drawing shows the principle. A microblock is the smallest number of elements "
                "that pads to a multiple of 16 with less than 5 % waste (section 4)."
            ),
            tolerance=0.012,
            compute=figure3b,
        ),
        Item("Figure 4(a)", "An operator on all elements as one matrix product", "illustration", 5),
        Item(
            "Figure 4(b)", "Memory layout of face values between gather and lift", "illustration", 5
        ),
        Item(
            "Figure 5(a)",
            "Thread order in which bank conflicts slow down two warps",
            "illustration",
            5,
        ),
        Item(
            "Figure 5(b)",
            "Thread order that keeps the conflicts within one warp",
            "illustration",
            5,
        ),
        Item(
            "Figure 6", "A matrix for a whole microblock, cut into row segments", "illustration", 5
        ),
        Item(
            "Figure 7(a)",
            "Matrix rows over memory banks, padded to an odd stride",
            "illustration",
            5,
        ),
        Item(
            "Figure 7(b)", "A half-warp that reads the matrix without conflict", "illustration", 5
        ),
        Item("Figure 7(c)", "A half-warp across two elements, with conflicts", "illustration", 5),
        Item(
            "Figure 8(a)",
            "Rate of the whole operator by order, GPU and CPU",
            "measurement",
            6,
            rows={
                "N = 3": {"GPU over CPU": 48},
                "N = 4": {"GPU over CPU": 57},
                "all orders": {"GPU over CPU from": 24, "GPU over CPU to": 57},
            },
            note="The rates are plotted only; the abstract names more than 200 GFLOP/s.",
        ),
        Item(
            "Figure 8(b)",
            "Degrees of freedom a second by order",
            "measurement",
            6,
            note="Plotted only; the text says that orders 3 and 4 are the fastest.",
        ),
        Item(
            "Figure 9(a)",
            "Floating-point rate of each part of the operator by order",
            "measurement",
            6,
            note="Plotted only. Published peak: 933 GFLOP/s. The gather is fastest at N = 3 and 4.",
        ),
        Item(
            "Figure 9(b)",
            "Share of the time that each part of the operator takes, by order",
            "measurement",
            6,
            note="Plotted only; differentiation and lift take over as the order grows.",
        ),
        Item(
            "Figure 10(a)",
            "Memory bandwidth of each part of the operator by order",
            "measurement",
            6,
            note=(
                "Plotted only. Published peak: 141.7 GB/s; the lift passes it from N = 5 on, since "
                "its fetches through the texture cache are counted."
            ),
        ),
        Item(
            "Figure 10(b)",
            "Run time of differentiation at N = 4 over all work distributions",
            "measurement",
            6,
            rows=_BEST_PLAN
            | {
                "most plans": {"time over the best": 1.2},
                "unlucky plans": {"time over the best": 2},
            },
            note="The last two are 'at most about' and 'about' in the text.",
        ),
        Item(
            "Figure 11(a)",
            "Rate by order without microblocks, without matrix-in-shared, without either",
            "measurement",
            6,
            note="Plotted only; microblocks pay at most orders, matrix-in-shared at few low ones.",
        ),
        Item(
            "Figure 11(b)",
            "Rate against the number of elements, by order",
            "measurement",
            6,
            note="Plotted only.",
        ),
        Item(
            "Figure 12",
            "A plane wave scattered by a body",
            "measurement",
            6,
            rows={"N = 4": {"elements": 78745, "rate": 160}},
            units={"rate": "GFLOP/s"},
            note="The text says 'more than 160 GFlops/s', sustained.",
        ),
    ),
)
