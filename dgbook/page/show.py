"""A kernel's source in a notebook and in the built page, highlighted, with what it costs."""

from __future__ import annotations

import html
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name

from dgbook.check.compile import CompilerNotFoundError, Report, compile
from dgbook.gpu.kernel import Kernel
from dgbook.gpu.source import CudaKernel

CAPABILITIES = ((7, 5), (8, 0), (9, 0))

# Colors of what Pygments tells apart, light and dark: at least 4.5 to 1 on their background.
LIGHT = {
    "background": "#f6f7f9",
    "text": "#1f2328",
    "keyword": "#0a50a1",
    "function": "#6a2f9c",
    "string": "#0b5d3b",
    "number": "#8a3c00",
    "comment": "#57606a",
}
DARK = {
    "background": "#1b1f24",
    "text": "#e6e8eb",
    "keyword": "#8ab8ff",
    "function": "#d9aaff",
    "string": "#8fd6a4",
    "number": "#f4b67a",
    "comment": "#a4adb8",
}
_CLASSES = {
    "keyword": ("k", "kc", "kd", "kn", "kp", "kr", "kt", "ow"),
    "function": ("nf", "fm", "nd", "nc", "nb", "bp"),
    "string": ("s", "s1", "s2", "sa", "sb", "sd", "se", "si", "cpf"),
    "number": ("m", "mf", "mh", "mi", "mo", "il"),
    "comment": ("c", "c1", "ch", "cm", "cp", "cs"),
}


def _style() -> str:
    """A style for places that have none for code, such as Jupyter and Colab.

    ``:where`` weighs nothing, so the book's own Pygments theme wins wherever there is one.
    """

    def variables(colors: dict[str, str]) -> str:
        return "".join(f"--dgbook-{name}:{color};" for name, color in colors.items())

    dark = variables(DARK)
    rules = [
        f".dgbook-source{{{variables(LIGHT)}}}",
        # the book; JupyterLab; Colab; VS Code
        "html[data-theme=dark] .dgbook-source,"
        "body[data-jp-theme-light=false] .dgbook-source,"
        "html[theme=dark] .dgbook-source,"
        f"body.vscode-dark .dgbook-source{{{dark}}}",
        # where the page does not say which it is, the reader's system does
        "@media (prefers-color-scheme:dark){html:not([data-theme],[theme]) "
        f"body:not([data-jp-theme-light],.vscode-light) .dgbook-source{{{dark}}}}}",
        ".dgbook-source .highlight{overflow-x:auto;max-width:100%}",
        ".dgbook-source pre{margin:0;white-space:pre;overflow-x:auto}",
        ":where(.dgbook-source .highlight)"
        "{background:var(--dgbook-background);color:var(--dgbook-text)}",
        ":where(.dgbook-source pre)"
        "{background:transparent;color:inherit;padding:.8em;line-height:1.4}",
        ":where(.dgbook-source p){margin:.4em 0 0;font-size:.9em}",
    ]
    for name, classes in _CLASSES.items():
        spans = ",".join(f".{cls}" for cls in classes)
        rules.append(
            f":where(.dgbook-source .highlight :is({spans})){{color:var(--dgbook-{name})}}"
        )
    return f"<style>{''.join(rules)}</style>"


@dataclass(frozen=True)
class Shown:
    """A source, ready to be displayed; what `show` returns.

    Attributes
    ----------
    name : str
    text : str
        The source, as it is in the package.
    language : {"python", "cuda"}
    cost : str
        One line: what the compiler says; empty if it was not asked.
    """

    name: str
    text: str
    language: str
    cost: str = ""

    def _repr_html_(self) -> str:
        code = highlight(self.text, get_lexer_by_name(self.language), HtmlFormatter(nowrap=True))
        cost = f"<p>{html.escape(self.cost)}</p>" if self.cost else ""
        label = html.escape(f"Source of {self.name}", quote=True)
        # The focus lets a reader without a mouse scroll to the ends of long lines.
        return (
            f'<div class="dgbook-source">{_style()}<div class="highlight">'
            f'<pre tabindex="0" role="region" aria-label="{label}">{code}</pre></div>{cost}</div>'
        )

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def __repr__(self) -> str:
        return f"{self.text.rstrip()}\n\n{self.cost}".rstrip()


def source(kernel: Kernel | CudaKernel | Callable | Path) -> str:
    """The whole source of a kernel, a device function or a factory of kernels.

    Parameters
    ----------
    kernel : Kernel, CudaKernel, function or Path
        Of a kernel in CUDA C++, its own file; those that it includes are the rest of `files`, each
        of them a path.

    Raises
    ------
    TypeError
        For anything else.
    """
    if isinstance(kernel, CudaKernel):
        return kernel.text
    if isinstance(kernel, Path):
        return kernel.read_text(encoding="utf-8")
    function = getattr(kernel, "py_func", kernel)
    if not inspect.isfunction(function):
        raise TypeError(f"kernel = {kernel!r}; allowed are kernels and functions")
    return textwrap.dedent(inspect.getsource(function))


def changed(old: str, new: str, *functions: Callable) -> dict[str, Any]:
    """What the text of some functions defines after a change: kernels with a mistake in them.

    Parameters
    ----------
    old, new : str
        `old` stands in one of the functions, and `new` takes its place.
    *functions : function
        Factories of kernels and what they are made of, in the order in which they use each other.

    Returns
    -------
    names : dict
        The names of their modules, with the functions as they are after the change.

    Raises
    ------
    ValueError
        If `old` stands in none of them.
    """
    texts = [source(function) for function in functions]
    if not any(old in text for text in texts):
        raise ValueError(f"old = {old!r} stands in none of {[f.__name__ for f in functions]}")
    names: dict[str, Any] = {}
    for function in functions:
        names |= function.__globals__
    for text in texts:
        exec(text.replace(old, new), names)
    return names


def piece(text: str, first: str = "", last: str = "") -> str:
    """The lines of a source from one to another.

    Parameters
    ----------
    text : str
    first, last : str
        What stands in the first line, and in a line from there on that is the last; by default the
        ends of the text. A line has its line breaks on both sides, so that "\\n}" finds one that
        begins with a brace.

    Returns
    -------
    str
        Moved to the left by what all its lines are indented.

    Raises
    ------
    ValueError
        If there is no such line.
    """
    lines = text.rstrip().split("\n")
    places = [n for n, line in enumerate(lines) if first in f"\n{line}\n"]
    if not places:
        raise ValueError(f"first = {first!r} stands in no line")
    ends = [n for n in range(places[0], len(lines)) if last in f"\n{lines[n]}\n"]
    if not ends:
        raise ValueError(f"last = {last!r} stands in no line from {first!r} on")
    end = ends[0] if last else ends[-1]
    return textwrap.dedent("\n".join(lines[places[0] : end + 1])) + "\n"


def show(
    kernel: Kernel | CudaKernel | Callable | Path,
    signature: tuple | None = None,
    cc: tuple[int, int] | None = None,
    first: str = "",
    last: str = "",
) -> Shown:
    """Show a kernel's source and, under it, its registers, shared memory and spills.

    Parameters
    ----------
    kernel : Kernel, CudaKernel, function or Path
        A function, such as a factory of kernels, is shown without the line under it, and so is a
        file in CUDA C++: for ``file in kernel.files``, all the pieces of a kernel.
    signature : tuple, optional
        Numba types or example arguments, as in `compile`; without it a Numba kernel is not
        compiled. CUDA C++ needs none.
    cc : tuple of two ints, optional
        One compute capability; all of `CAPABILITIES` if not given.
    first, last : str
        A long kernel is shown piece by piece, see `piece`.

    Returns
    -------
    Shown
        Displays itself in a notebook and in the built page; its ``repr`` is plain text.
    """
    text = piece(source(kernel), first, last)
    if isinstance(kernel, CudaKernel):
        return Shown(kernel.name, text, "cuda", _cost(kernel, (), cc))
    if isinstance(kernel, Path):
        return Shown(kernel.name, text, "cuda")
    if isinstance(kernel, Kernel) and signature is not None:
        return Shown(kernel.name, text, "python", _cost(kernel, signature, cc))
    return Shown(kernel.__name__, text, "python")


def _cost(kernel: Any, signature: tuple, cc: tuple[int, int] | None) -> str:
    capabilities = CAPABILITIES if cc is None else (cc,)
    try:
        reports = [compile(kernel, signature, one) for one in capabilities]
    except CompilerNotFoundError as error:  # a reader without a compiler still gets to read
        return f"Not compiled here: {error}"
    return describe(reports)


def describe(reports: list[Report]) -> str:
    """One line on a kernel compiled for several compute capabilities; equal numbers stand once."""

    def across(values: list) -> str:
        return " / ".join(map(str, values if len(set(values)) > 1 else values[:1]))

    capabilities = across([f"{r.cc[0]}.{r.cc[1]}" for r in reports])
    return (
        f"Compute capability {capabilities}: {across([r.registers for r in reports])} registers "
        f"per thread, {across([r.shared_bytes for r in reports])} bytes of static shared memory "
        f"per block, {across([r.spill_bytes for r in reports])} bytes spilled"
    )
