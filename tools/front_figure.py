"""Draw the figure of the front page: one wave, three polynomial orders, equally many unknowns.

`python tools/front_figure.py` writes chapters/figures/front.png and front_dark.png.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.tri import Triangulation

from dgbook.element import cartesian, multi_indices
from dgbook.linear import Solver, advection, transported
from dgbook.mesh import box, nodes_xyz
from dgbook.page import plot

FOLDER = Path(__file__).resolve().parent.parent / "chapters" / "figures"
# Order and cells a side: 2 n^2 triangles of (N+1)(N+2)/2 nodes, which is 4,500 to 4,704 unknowns.
CASES = ((1, 28), (3, 15), (7, 8))
VELOCITY, T_END = (2.0, 1.0), 2.0  # the wave ends where it began, four and two periods further on
LETTERS = 17  # legible on a phone, where the figure is half as wide
FINE = 16  # an element is drawn as FINE^2 flat triangles
# Map of the values, color of the words, color of the page.
MODES = {
    "front.png": ("RdBu_r", "#222222", "white"),
    "front_dark.png": ("berlin", "#dddddd", "#121212"),
}


def ripple(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Rings around the middle of the unit square, a seventh of its side apart, periodic."""
    r = np.hypot((x % 1) - 0.5, (y % 1) - 0.5)
    return np.cos(14 * np.pi * r) * np.exp(-((r / 0.2) ** 2))


def solve(order: int, cells: int) -> tuple[Solver, np.ndarray, float]:
    """Carry the ripple along: the solver, the solution, its relative error in the L2 norm."""
    solver = Solver(box((cells, cells), periodic=True), order, advection(VELOCITY), device="cpu")
    exact = transported(VELOCITY, ripple)
    u = solver.run(solver.interpolate(ripple), T_END)
    error = solver.l2_error(u, exact, T_END) / solver.l2_error(0 * u, exact, T_END)
    return solver, u, error


def draw(ax: Axes, solver: Solver, u: np.ndarray, colors: str, edges: str) -> None:
    """Draw a discontinuous solution as it is: every element by itself, jumps and all."""
    points = cartesian(multi_indices(2, FINE) / FINE)
    x, y = nodes_xyz(solver.mesh, points)
    values = u[0] @ solver.element.interpolation(points).T
    small = Triangulation(*points.T).triangles
    triangles = (small + len(points) * np.arange(solver.mesh.K)[:, None, None]).reshape(-1, 3)
    ax.tripcolor(
        Triangulation(x.ravel(), y.ravel(), triangles),
        values.ravel(),
        shading="gouraud",
        cmap=colors,
        vmin=-0.8,
        vmax=0.8,
    )
    corners = solver.mesh.vertices[solver.mesh.elements]
    outline = np.concatenate(
        [corners, corners[:, :1], np.full_like(corners[:, :1], np.nan)], axis=1
    )
    ax.plot(*outline.reshape(-1, 2).T, color=edges, linewidth=0.25, alpha=0.35)
    ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    ax.axis("off")


def main() -> None:
    """Solve once, draw for light and dark pages."""
    results = [solve(*case) for case in CASES]
    FOLDER.mkdir(exist_ok=True)
    for name, (colors, words, page) in MODES.items():
        fig, axes = plot.figure(7.2, 3.0, columns=3)
        matplotlib.rcParams["savefig.facecolor"] = page
        for ax, (solver, u, error) in zip(axes, results, strict=True):
            draw(ax, solver, u, colors, words)
            ax.set_title(f"order {solver.element.order}", color=words, fontsize=LETTERS)
            below = {"ha": "center", "va": "top", "fontsize": LETTERS}
            ax.text(0.5, -0.04, f"error {100 * error:.2g} %", color=words, **below)
        (FOLDER / name).write_bytes(plot.render(fig))


if __name__ == "__main__":
    main()
