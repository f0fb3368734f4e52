"""Sphinx extension of this book: chapters by their number, in the contents, links and the index.

- A chapter's number is what its file's name begins with: 5 of ``05_...``, 1b of ``01b_...``, the
  second lesson of chapter 1. Sphinx would count files.
- ``{chapter}`5.3``` links to section 3 of chapter 5 and says so, ``{ch}`5``` shows only the number;
  a chapter that is not in the book is named and not linked, and said not to be there.
- What the glossary says of where a term is introduced becomes an entry of the index, so that the
  index leads into chapters, too. Chapters are notebooks and cannot carry entries of their own: on
  Colab a directive would be seen as it is typed.
"""

from __future__ import annotations

import re

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxRole
from sphinx.util.nodes import make_refnode
from sphinx_external_toc.collectors import (
    TocTreeCollectorWithStyles,
    disable_builtin_toctree_collector,
)

GLOSSARY = "chapters/glossary"
KIND = "dgbook-chapter"


class Chapter(SphinxRole):
    """A link to a chapter by its number, with a section if there is a point: ``5.3``."""

    def __init__(self, number_alone: bool = False) -> None:
        super().__init__()
        self.number_alone = number_alone

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """A reference that is resolved when all chapters are known."""
        number, _, section = self.text.partition(".")
        text = f"chapter {number}, section {section}" if section else f"chapter {number}"
        text = self.text if self.number_alone else text
        known = page(self.env, self.text)
        text = text if known else f"{text} (not in this version)"
        words = nodes.inline(text, text)
        if not known:
            return [words], []
        return [pending_xref("", words, reftype=KIND, reftarget=self.text, refdomain="")], []


def page(env: BuildEnvironment, number: str) -> str:
    """The document of a chapter, by "5" or "5.3"; empty if the book has no such chapter."""
    wanted = number.partition(".")[0]
    return next((name for name in sorted(env.found_docs) if number_of(name) == wanted), "")


def number_of(name: str) -> str:
    """The number of the chapter in a document: "5", or "1b"; empty for other pages."""
    found = re.match(r"chapters/0?(\d+[a-z]?)_", name)
    return found[1] if found else ""


def by_file_name(env: BuildEnvironment) -> None:
    """Number chapters in titles, contents and captions as their files are."""
    for name, numbers in env.toc_secnumbers.items():
        if number := number_of(name):
            numbers[""] = (number,)
            env.titles[name]["secnumber"] = [number]
            next(env.tocs[name].findall(nodes.reference))["secnumber"] = [number]


class NumberedByFile(TocTreeCollectorWithStyles):
    """The collector of contents, with the chapters' own numbers before captions are counted."""

    def assign_section_numbers(self, env: BuildEnvironment) -> list[str]:
        """Number all sections, and say in which documents a number has changed."""
        before = env.toc_secnumbers
        super().assign_section_numbers(env)
        by_file_name(env)
        return [n for n, found in env.toc_secnumbers.items() if found != before.get(n)]


def anchor(env: BuildEnvironment, number: str) -> str:
    """The place in that document where a section begins; empty for "5".

    Raises
    ------
    ValueError
        If the chapter has no such section.
    """
    section = number.partition(".")[2]
    if not section:
        return ""
    for link in env.tocs[page(env, number)].findall(nodes.reference):
        if link.astext().startswith(f"{section}. "):
            return link["anchorname"].removeprefix("#")
    raise ValueError(f"chapter {number.partition('.')[0]} has no section {section}")


def resolve(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, words: nodes.TextElement
) -> nodes.reference | None:
    """The link that a reference to a chapter becomes."""
    if node["reftype"] != KIND:
        return None
    place = page(env, node["reftarget"]), anchor(env, node["reftarget"])
    return make_refnode(app.builder, node["refdoc"], *place, words)


def index_terms(app: Sphinx, env: BuildEnvironment) -> None:
    """Enter into the index where each term of the glossary is introduced."""
    if GLOSSARY not in env.found_docs:
        return
    entries = env.get_domain("index").data["entries"]
    for item in env.get_doctree(GLOSSARY).findall(nodes.definition_list_item):
        # straight, as where the index is asked for in the text: one entry, not two
        term = next(item.findall(nodes.term)).astext().replace("’", "'")
        for link in item.findall(pending_xref):
            if link["reftype"] == KIND:
                number = link["reftarget"]
                entry = ("single", term, anchor(env, number), "", None)
                of_page = entries.setdefault(page(env, number), [])
                if entry not in of_page:
                    of_page.append(entry)


def setup(app: Sphinx) -> dict[str, bool]:
    """Make the roles known, and connect what resolves them."""
    app.add_role("chapter", Chapter())
    app.add_role("ch", Chapter(number_alone=True))
    disable_builtin_toctree_collector(app)  # of any kind: ours takes its place
    app.add_env_collector(NumberedByFile)
    app.connect("missing-reference", resolve)
    app.connect("env-updated", index_terms)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
