"""Sphinx extension of this book: tables that are made from the repository when pages are built.

What a page says of records, verdicts, wrong kernels and assignments it takes from where these are
kept, so that the page cannot drift from them. The directives ``reproductions``,
``recorded-hardware``, ``records``, ``wrong-kernels``, ``wrong-solutions``, ``assignments``,
``read-by-hand`` and ``learning-goals`` stand for a table or list each, and ``probe`` for kernels
of `dgbook.lab` and what was measured with them.

Each table is a function that returns MyST Markdown, so that it can be tested without Sphinx.
"""

from __future__ import annotations

import ast
import re
import runpy
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from inspect import cleandoc
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

if TYPE_CHECKING:
    from dgbook.lab.reproduce import Verdict

ROOT = Path(__file__).resolve().parents[1]
FEW_VALUES = 6  # are shown one by one


def escape(text: str) -> str:
    """Text that Markdown is to show as it is, in a cell of a table."""
    return re.sub(r"([\\`*_$|<>\[\]{}])", r"\\\1", " ".join(text.split()))


def label(name: str) -> str:
    """LIVE, RECORDED or PAPER, in the book's colors."""
    return f'<span class="dg-label label-{name.lower()}">{name}</span>'


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown; cells are Markdown already."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


# ------------------------------------------------------------------------------------- verdicts


def reproductions(name: str) -> str:
    """All tables and figures of a paper: what each shows, our verdict, and where it is treated."""
    from dgbook.lab import reproduce
    from dgbook.lab.reproduce import verdict as words

    plain = {
        words.MATCHES: "the same",
        words.CLOSE: "the same but for a stated tolerance",
        words.DIFFERS: "different for a reason that is stated",
        words.UNEXPLAINED: "different, unexplained",
        words.ALONE: "with ours, and without values of the paper to compare",
        words.CANNOT: "not to be reproduced",
        words.NOT_YET: "not yet measured",
    }
    paper = reproduce.paper(name)
    verdicts = [reproduce.compare(paper, item) for item in paper.items]
    sources = sorted({v.ours.source for v in verdicts if v.ours and v.ours.label})
    rows = []
    for verdict in verdicts:
        item = verdict.item
        measured = label(verdict.ours.label) if verdict.ours and verdict.ours.label else ""
        said = f"{measured} {escape(verdict.sentence)} {comparison(verdict)}".strip()
        rows.append((f"`{item.id}`", escape(item.title), f"{{ch}}`{item.chapter}`", said))
    counts = Counter(v.word for v in verdicts)
    summary = "; ".join(f"{counts[word]} {text}" for word, text in plain.items() if counts[word])
    head = f"{{cite:t}}`{name}`, on {escape(paper.hardware)}. {len(rows)} items: {summary}."
    if sources:
        head += f" Measurements of ours: {label('RECORDED')} {escape('; '.join(sources))}."
    shown = table(("item", "what it shows", "chapter", "verdict"), rows)
    return "\n\n".join([head, shown, *filter(None, map(drawn, verdicts))])


def drawn(verdict: Verdict) -> str:
    """Ours of what a paper plots, to be unfolded; nothing for a table or a drawing."""
    from dgbook.page import plot, plotted

    item = verdict.item
    if not item.id.startswith("figure") or item.kind == "illustration":
        return ""
    if (fig := plotted.draw(verdict)) is None:
        return ""
    image = plot.show(fig, f"Ours of {item.number}: {item.title}")._repr_html_()
    head = f":::{{dropdown}} Ours of {item.number}, drawn: {escape(item.title)}"
    return f"{head}\n<div>{image}</div>\n:::"


def comparison(verdict: Verdict) -> str:
    """The paper's value and ours where they are few; else how they compare, column by column."""
    from dgbook.lab.numbers import significant

    different = [cell for cell in verdict.compared if not cell.same]
    if not different or verdict.item.kind != "measurement":
        return ""
    if len(different) <= FEW_VALUES:
        pairs = [
            f"{escape(cell.row)}, {escape(cell.column)} {cell.paper:.10g} → "
            f"{significant(cell.ours)} {verdict.item.units.get(cell.column, '')}".strip()
            for cell in different
        ]
        return f"{label('PAPER')} → ours: {'; '.join(pairs)}."
    found: dict[str, list[float]] = {}
    for cell in different:
        if cell.ratio is not None:
            found.setdefault(cell.column, []).append(cell.ratio)
    if len({verdict.item.units.get(column) for column in found}) == 1:
        found = {"all": [ratio for column in found.values() for ratio in column]}
    spans = [
        f"{escape(column)} {significant(min(values), 2)} to {significant(max(values), 2)}"
        for column, values in found.items()
    ]
    return f"Ours over the paper's: {'; '.join(spans)}."


# -------------------------------------------------------------------------------------- records


def recorded_hardware() -> str:
    """Each GPU of the records: what it is, with which software, and its measured ceilings."""
    from dgbook.lab import records
    from dgbook.lab.numbers import significant

    by_gpu: dict[str, list[records.Record]] = {}
    for record in records.all_records():
        by_gpu.setdefault(record.gpu, []).append(record)
    ceilings = {
        "copy_TBps": "copy, TB/s",
        "fp32_TFLOPs": "fp32 multiply-adds, TFLOP/s",
        "fp64_TFLOPs": "fp64 multiply-adds, TFLOP/s",
        "fp32_tensor_TFLOPs": "fp32 on tensor cores, TFLOP/s",
        "fp64_tensor_TFLOPs": "fp64 on tensor cores, TFLOP/s",
    }
    facts: dict[str, list[str]] = {}
    for found in by_gpu.values():
        values = {
            "compute capability": [r.compute_capability for r in found],
            "CUDA of the driver": [r.driver for r in found],
            "CUDA of the toolkit": [r.cuda for r in found],
        }
        for package in sorted({name for r in found for name in r.versions}):
            values[package] = [r.versions[package] for r in found if package in r.versions]
        values["measured on"] = [r.date[:10] for r in found]
        for key, name in ceilings.items():
            measured = [significant(r.ceilings[key]) for r in found if key in r.ceilings]
            if measured:
                values[f"{name} {label('RECORDED')}"] = measured
        for name, several in values.items():
            facts.setdefault(name, []).append(escape(span(several)))
    return table(("", *map(escape, by_gpu)), ((name, *values) for name, values in facts.items()))


def probe(name: str, *kernels: str) -> str:
    """Kernels of dgbook.lab, as they were measured, and the recorded values of an effect.

    Parameters
    ----------
    name : str
        Of `dgbook.lab.machine.EFFECTS`.
    *kernels : str
        Functions of `dgbook.lab.probes`, or files beside it in CUDA C++.
    """
    from dgbook.lab import machine, records
    from dgbook.lab.numbers import significant

    effect = machine.EFFECTS[name]
    record = records.newest(effect.record)
    lab = ROOT / "dgbook" / "lab"
    blocks = []
    for kernel in kernels:
        cpp = kernel.endswith(".cu")
        code = (lab / kernel).read_text("utf-8") if cpp else kernel_text(lab / "probes.py", kernel)
        blocks.append(f"```{'cpp' if cpp else 'python'}\n{code.strip()}\n```")
    found = machine.rows_of(effect, record) if record else ()
    if not found:
        return "\n\n".join([*blocks, "No record has it yet: `python -m dgbook bench machine`."])
    rows = [
        (escape(machine.caption_of(effect, row)), significant(machine.value(effect, row)))
        for row in found
    ]
    shown = table((escape(effect.title), effect.unit), rows)
    return "\n\n".join([*blocks, f"{label('RECORDED')} {escape(record.source)}", shown])


def kernel_text(path: Path, name: str) -> str:
    """A kernel of a Python file, also one that a function makes, without its docstring."""
    text = path.read_text(encoding="utf-8")
    node = next(
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef) and node.name == name
    )
    lines = text.splitlines()[node.decorator_list[0].lineno - 1 : node.end_lineno]
    said = node.body[0] if ast.get_docstring(node) and len(node.body) > 1 else None
    if said is not None:
        first = node.decorator_list[0].lineno
        del lines[said.lineno - first : said.end_lineno - first + 1]
    return dedent("\n".join(lines))


def span(values: Iterable[str]) -> str:
    """What a value is, or from where to where it goes."""
    found = sorted(set(values))
    return found[0] if len(found) == 1 else f"{found[0]} to {found[-1]}"


def record_list() -> str:
    """All records by family, with how many measurements each holds."""
    from dgbook.lab import compare, records

    groups: dict[tuple[str, str], list[records.Record]] = {}
    for record in records.all_records():
        groups.setdefault((record.name.partition("/")[0], record.gpu), []).append(record)
    rows = []
    for (family, _), group in groups.items():
        found = (f"`{r.name.partition('/')[2]}`&nbsp;{len(r.rows)}" for r in group)
        rows.append((f"`{family}/`", ", ".join(found), escape(compare.source(*group))))
    return table(("family", "records, and how many measurements each holds", "measured on"), rows)


# --------------------------------------------------------------------------------- wrong kernels


def broken_kernels() -> dict[str, tuple[str, tuple[str, ...]]]:
    """By file in `tests/broken`: what kernels are wrong there, and the mistakes one by one."""
    found = {}
    for path in sorted((ROOT / "tests" / "broken").glob("*.py")):
        names = run(path, ROOT / "tests")
        lists = [value for key, value in names.items() if key.isupper() and isinstance(value, list)]
        listed = [(place(mistake), mistake.name) for mistakes in lists for mistake in mistakes]
        several = len({where for where, _ in listed}) > 1
        mistakes = [f"{where}: {name}" if several else name for where, name in listed] or [
            cleandoc(value.__doc__).splitlines()[0].removesuffix(".")
            for key, value in names.items()
            if not key.startswith("_") and getattr(value, "__module__", "") == "<run_path>"
        ]
        about = re.split(r"[:.,]", names["__doc__"])[0].removeprefix("Wrong ")
        found[path.stem] = about[0].upper() + about[1:], tuple(mistakes)
    return found


def run(path: Path, *folders: Path) -> dict[str, Any]:
    """The names that a file makes, which may import from `folders`."""
    before = sys.path.copy()
    sys.path[:0] = map(str, folders)
    try:
        return runpy.run_path(str(path))
    finally:
        sys.path[:] = before


def place(mistake: Any) -> str:
    """The kernel that a mistake is in: of several functions that it names, the last."""
    named = [getattr(mistake, key, ()) for key in ("functions", "function", "factory")]
    functions = [f for value in named for f in (value if isinstance(value, tuple) else (value,))]
    return functions[-1].__name__.removeprefix("make_") if functions else ""


def wrong_kernels() -> str:
    """How many wrong kernels of each kind the tests refuse, and behind a click which."""
    kinds = broken_kernels()
    rows = [
        (escape(about), str(len(mistakes)), f"`tests/broken/{stem}.py`")
        for stem, (about, mistakes) in kinds.items()
    ]
    rows.append(("all", str(sum(len(mistakes) for _, mistakes in kinds.values())), ""))
    lists = [
        "\n".join(
            [f":::{{dropdown}} {escape(about)}", *(f"- {escape(m)}" for m in mistakes), ":::"]
        )
        for about, mistakes in kinds.values()
    ]
    return "\n\n".join([table(("kernels", "mistakes", "file"), rows), *lists])


# ----------------------------------------------------------------------------------- assignments


def assignment_names() -> list[str]:
    """All assignments, in order."""
    return sorted(path.name for path in (ROOT / "exercises" / "source").iterdir() if path.is_dir())


def wrong_work(assignment: str) -> list[dict]:
    """The wrong solutions that are kept of an assignment: name, what is wrong, parts it loses."""
    return run(ROOT / "exercises" / "wrong" / f"{assignment}.py")["WRONG"]


def wrong_solutions() -> str:
    """The wrong solutions of every assignment, and the parts that each of them loses."""
    found = []
    for name in assignment_names():
        kept = wrong_work(name)
        rows = [
            (
                f"`{work['name']}`",
                ", ".join(part.removeprefix("test-").replace("-", ".") for part in work["loses"]),
                escape(work["about"]),
            )
            for work in kept
        ]
        head = f":::{{dropdown}} Assignment {int(name[:2])}: {len(kept)} wrong solutions"
        found.append("\n".join([head, "", table(("name", "loses", "what is wrong"), rows), ":::"]))
    return "\n\n".join(found)


def assignments() -> str:
    """Every assignment: its tasks and their points, who grades, and wrong solutions kept."""
    rows = []
    for name in assignment_names():
        cells = notebook(ROOT / "exercises" / "source" / name / f"{name}.ipynb")
        text = prose(cells)
        tasks = re.findall(r"^\| (\d) \| (.+?) \| (\d+) \|$", text, re.M)
        points = Counter()
        for cell in cells:
            points[cell.cell_type] += cell.metadata.get("nbgrader", {}).get("points", 0)
        rows.append(
            (
                escape(re.search(r"^# (.+)$", text, re.M).group(1)),
                f"{points['code']:g}&nbsp;+&nbsp;{points['markdown']:g}",
                str(len(wrong_work(name))),
                "; ".join(f"{escape(what)} ({worth})" for _, what, worth in tasks),
            )
        )
    columns = ("assignment", "by machine + by hand", "wrong solutions kept", "tasks (points)")
    return table(columns, rows)


def read_by_hand() -> str:
    """The parts of all assignments that a person grades, with their points."""
    rows = []
    for name in assignment_names():
        text = prose(notebook(ROOT / "exercises" / "source" / name / f"{name}.ipynb"))
        parts = re.findall(r"^### (\d\.\d) (.+) \((\d+) points, read by a person\)", text, re.M)
        rows += [(f"{int(name[:2])}", number, worth, escape(what)) for number, what, worth in parts]
    return table(("assignment", "part", "points", "what is to be shown"), rows)


# -------------------------------------------------------------------------------------- chapters


def learning_goals() -> str:
    """By chapter: how long it takes, and what a reader can do afterwards, as its header says."""
    contents = (ROOT / "_toc.yml").read_text()
    found = []
    for path in sorted((ROOT / "chapters").glob("[0-9]*.ipynb")):
        if path.stem not in contents:
            continue
        head = notebook(path)[0].source
        title = re.search(r"^# (.+)$", head, re.M).group(1)
        minutes = re.search(r"(\d+) minutes", head).group(1)
        goals = re.findall(r"^- .+[;.]$", head, re.M)
        number = path.name.partition("_")[0].removeprefix("0")
        head = f"**{{chapter}}`{number}`, {escape(title)}** ({minutes} minutes)"
        found.append("\n".join([head, "", *goals]))
    return "\n\n".join(found)


def notebook(path: Path) -> list[Any]:
    """The cells of a notebook."""
    import nbformat

    return nbformat.read(path, as_version=4).cells


def prose(cells: Iterable[Any]) -> str:
    """All text between the code of a notebook."""
    return "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


# -------------------------------------------------------------------------------------- Sphinx


def directive(make: Callable[..., str], arguments: int = 0, more: int = 0) -> type[SphinxDirective]:
    """A directive that stands for the Markdown that `make` returns."""

    class Generated(SphinxDirective):
        required_arguments = arguments
        optional_arguments = more

        def run(self) -> list[nodes.Node]:
            self.env.note_reread()  # what it shows may change without its page
            node = nodes.container(classes=[self.name])
            lines = make(*self.arguments).splitlines()
            self.state.nested_parse(StringList(lines, self.env.docname), self.content_offset, node)
            return [node]

    return Generated


def setup(app: Sphinx) -> dict[str, bool]:
    """Make the directives known."""
    app.add_directive("reproductions", directive(reproductions, arguments=1))
    app.add_directive("recorded-hardware", directive(recorded_hardware))
    app.add_directive("records", directive(record_list))
    app.add_directive("probe", directive(probe, arguments=1, more=4))
    app.add_directive("wrong-kernels", directive(wrong_kernels))
    app.add_directive("wrong-solutions", directive(wrong_solutions))
    app.add_directive("assignments", directive(assignments))
    app.add_directive("read-by-hand", directive(read_by_hand))
    app.add_directive("learning-goals", directive(learning_goals))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
