"""Sphinx extension of this book: chapters by their number, in links and in the index.

- ``{chapter}`5.3``` links to section 3 of chapter 5 and says so, ``{ch}`5``` shows only the number;
  a chapter that is not in the book is named and not linked, and said not to be there.
- What the glossary says of where a term is introduced becomes an entry of the index, so that the
  index leads into chapters, too. Chapters are notebooks and cannot carry entries of their own: on
  Colab a directive would be seen as it is typed.
"""

from __future__ import annotations

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxRole
from sphinx.util.nodes import make_refnode

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
    start = f"chapters/{int(number.partition('.')[0]):02}_"
    return next((name for name in sorted(env.found_docs) if name.startswith(start)), "")


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
    app.connect("missing-reference", resolve)
    app.connect("env-updated", index_terms)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
