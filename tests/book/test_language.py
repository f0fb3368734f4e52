"""Pages speak plain American English: "per" for rates, the field's words, subjects first.

What is looked at is what a reader sees: the text of chapters, assignments and Markdown pages, the
comments, docstrings and strings of their cells, what cells print and list, and the comments and
docstrings of all kernels and of the other functions that chapters print. What a pattern finds
and what is right nevertheless stands in `plain_english.txt`, a phrase per line.
"""

from __future__ import annotations

import io
import json
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import listings
import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    *sorted((ROOT / "chapters").glob("*.ipynb")),
    *sorted((ROOT / "chapters").glob("*.md")),
    *sorted((ROOT / "exercises" / "source").glob("*/*.ipynb")),
]
SOURCES = listings.sources()
ALLOWED = (Path(__file__).parent / "plain_english.txt").read_text(encoding="utf-8").splitlines()

# A number or a thing that is counted, "a", a thing that it is counted by, and no verb behind.
_COUNTED = (
    r"(?:\d[\d,.]*|one|two|three|four|five|six|eight|(?:[Oo]ne|[Aa]n?) (?!by\b)\w+|"
    r"\w*[Bb]ytes|[Ff]lops|[Tt]hreads?|[Ww]ords?|registers|seconds|[Mm]icroseconds|us|ms|ns|[Nn]onzeros|multiply-adds|"
    r"[Ff]ields|doubles|digits|[Cc]ells|traces|products|sweeps|[Uu]nknowns|states|barriers|"
    r"launches|lines|lists|sectors|numbers|nodes|[Tt]ime|elements|Elements|permutations|points?|"
    r"blocks|rows|columns|stages|faces|edges|warps|entries|kernel|memory|X)"  # X is a formula
)
_BY = (
    r"(?:thread|block|warp|lane|element|node|point|face|side|step|substep|stage|second|degree|DOF|"
    r"multiprocessor|word|byte|flop|launch|dimension|field|row|column|unknown|entry|number|turn|"
    r"iteration|wave|wavelength|level|cell|edge|vertex|tile|slice|multiply-add|clock|operation|"
    r"mesh|method|kernel|microblock|product|output|access|vector|file|round|visit|call|group|team|"
    r"face (?:node|point)|control point|boundary face)"
)
_NO_VERB = (
    r"(?=[.,;:)?!*\"\]|]| ?$| (?:and|or|for|in|by|at|on|as|with|when|instead|but|under|from|"
    r"of|to)\b| \()"
)
PATTERNS = {
    'write "per"': re.compile(rf"\b{_COUNTED} an? {_BY}{_NO_VERB}"),
    "a private word; write fastest": re.compile(r"\b[Ss]oonest\b"),
    "a private word; write transaction, or iteration of a loop": re.compile(
        r"\b(?:a|one|each|last|single|same) turn\b|\b(?:two|\d+|many|such|the|their|of|threads')"
        r" turns\b|\bturns? of (?:a|the|its) (?:read|loop|sum)"
    ),
    "begin with the subject": re.compile(
        r"(?:^|[.:;!?] )(?:\w+ed|Left|Shown|Drawn|Missing|Known|Given|Faster|Slower|Larger|Smaller|"
        r"Better|Worse|Best|Fastest) (?:is|are|was|were)\b"
    ),
    "American spelling": re.compile(
        r"(?<![\w.`])\w+(?:isations?|(?:al|ar|or|im|et|ybrid)is(?:e|ed|es|ing))\b"
    ),
}


def prose(markdown: str) -> str:
    """Markdown without code, formulas, addresses and markup."""
    for pattern, instead in (
        (r"```.*?```", " "),
        (r"\$\$.*?\$\$", " "),
        (r"\$[^$\n]+\$", "X"),
        (r"`[^`]*`", "X"),
        (r"<[^>]+>", " "),
        (r"\]\([^)]*\)", "]"),
        (r"\{\w+\}", " "),
        (r"[*_]", ""),
    ):
        markdown = re.sub(pattern, instead, markdown, flags=re.DOTALL)
    return markdown


def said(code: str) -> Iterator[str]:
    """The comments and strings of a cell; neighbors are one text, as they are to a reader."""
    together = ""
    try:
        for token in tokenize.generate_tokens(io.StringIO(code).readline):
            if token.type in (tokenize.COMMENT, tokenize.STRING):
                together += " " + token.string.lstrip("# rf").strip("\"'")
            elif token.string.strip() and token.string not in ("+=", "text", "(", ")"):
                yield together
                together = ""
    except (tokenize.TokenError, IndentationError):
        pass  # a blank for the reader, a magic command, or a piece of CUDA C++
    yield together


def texts(path: Path) -> Iterator[tuple[str, str]]:
    """All that a page says, with the place where it says it."""
    if path.suffix == ".md":
        yield "text", prose(path.read_text(encoding="utf-8"))
        return
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    for number, cell in enumerate(cells):
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            for paragraph in re.split(r"\n\s*\n|\n(?=[-|#])", prose(source)):
                yield f"cell {number}", paragraph
            continue
        for text in said(source):
            yield f"cell {number}, code", text
        for output in cell.get("outputs", []):
            shown = output.get("text") or output.get("data", {}).get("text/plain", "")
            shown = "".join(shown)
            if "dgbook-source" in "".join(output.get("data", {}).get("text/html", "")):
                for text in [shown] if shown.lstrip().startswith("//") else said(shown):
                    yield f"cell {number}, listing", text
                yield f"cell {number}, listing", shown.splitlines()[-1]
            else:
                yield f"cell {number}, output", shown


def remarks(code: str) -> Iterator[str]:
    """The comments of CUDA C++; neighboring lines are one text."""
    together = ""
    for line in code.splitlines():
        _, comment, text = line.partition("//")
        if comment:
            together += text
        else:
            yield together
            together = ""
    yield together


def explained(place: str, code: str) -> Iterator[str]:
    """Comments and docstrings of a kernel's file or of a function."""
    return remarks(code) if Path(place).suffix in (".cu", ".cuh") else said(code)


def found(text: str) -> Iterator[str]:
    """What is not plain English in a text, each with why."""
    text = " ".join(text.split())
    for reason, pattern in PATTERNS.items():
        for match in pattern.finditer(text):
            around = text[max(0, match.start() - 30) : match.end() + 30]
            if not any(phrase in around for phrase in ALLOWED if phrase):
                yield f"{reason}: ...{around}..."


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_pages_are_plain_english(path: Path) -> None:
    """No rate with "a", no private words, no sentence that begins with its predicate."""
    wrong = [f"{place}: {what}" for place, text in texts(path) for what in found(text)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(("place", "code"), [pytest.param(*s, id=s[0]) for s in SOURCES])
def test_what_chapters_print_is_plain_english(place: str, code: str) -> None:
    """The same of the comments and docstrings of kernels and printed functions."""
    wrong = [what for text in explained(place, code) for what in found(text)]
    assert not wrong, "\n".join(wrong)


def test_every_exception_is_needed() -> None:
    """A phrase that no page has any more leaves the list."""
    said_by_pages = [text for path in PAGES for _, text in texts(path)]
    said_by_code = [text for source in SOURCES for text in explained(*source)]
    everything = " ".join(" ".join(text.split()) for text in said_by_pages + said_by_code)
    assert [phrase for phrase in ALLOWED if phrase not in everything] == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("It starts one thread a node.", "per"),
        ("They move 4 words a degree of freedom.", "per"),
        ("68 registers a thread, 16 bytes", "per"),
        ("A thread an output. It reads x.", "per"),
        ("one thread a control point; any number of warps a block", "per"),
        ("one operator a file", "per"),
        ("Microseconds a step of KS against points.", "per"),
        ("Which order is soonest?", "fastest"),
        ("The reads take two turns.", "transaction"),
        ("in the last turn of the loop", "iteration"),
        ("It runs. Measured is a slowdown.", "subject"),
        ("a discretisation in space", "American"),
    ],
)
def test_what_is_wrong_is_found(text: str, reason: str) -> None:
    """The tables of examples that the patterns were made for."""
    assert any(reason in what for what in found(text))


@pytest.mark.parametrize(
    "text",
    [
        "a table of the words a warp reads",
        "half a warp stays idle; it turns out well",
        "One thread per node takes 4 words per degree of freedom.",
        "we promise an exercise that is precise",
    ],
)
def test_what_is_right_is_left_alone(text: str) -> None:
    """Near misses of the patterns."""
    assert not list(found(text))
