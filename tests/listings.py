"""What chapters print in listings: kernels, and functions of the package."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "dgbook"
COLUMNS = 72
FUNCTIONS = {
    "euler/reference.py": ("volume_residual", "edge_residual", "add", "slope"),
    "hdg/local.py": ("condense",),
    "lab/probes.py": ("copy", "make_transpose"),
    "maxwell/reference.py": ("volume", "jumps", "fluxes", "lift", "rhs"),
    "swept/problem.py": ("Heat.make_slope", "KuramotoSivashinsky.make_slope", "Euler.make_faces"),
    "swept/reference.py": ("substep",),
    "swept/solver.py": ("hybrid_diamond",),
}
"""By file, the functions that chapters print besides kernels."""


def kernels() -> list[Path]:
    """All files of kernels, and what else the package has in CUDA C++."""
    return [
        path
        for path in sorted(PACKAGE.rglob("*"))
        if path.suffix in (".cu", ".cuh") or (path.suffix == ".py" and "kernels" in path.parts)
    ]


def functions() -> Iterator[tuple[str, str]]:
    """Place and source of the other functions, as they are printed."""
    for file, names in FUNCTIONS.items():
        text = (PACKAGE / file).read_text(encoding="utf-8")
        for name in names:
            node: ast.AST = ast.parse(text)
            for part in name.split("."):
                (node,) = (n for n in node.body if getattr(n, "name", None) == part)
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            lines = text.splitlines(keepends=True)[first - 1 : node.end_lineno]
            yield f"{file}, {name}", textwrap.dedent("".join(lines))


def sources() -> list[tuple[str, str]]:
    """Place and text of everything that chapters print."""
    files = [(str(p.relative_to(PACKAGE)), p.read_text(encoding="utf-8")) for p in kernels()]
    return [*files, *functions()]
