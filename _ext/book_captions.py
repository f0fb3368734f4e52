"""Sphinx extension of this book: tables and listings that code cells show, and lists of captions.

myst-nb makes a figure of all that a cell with a caption shows. Here a name that begins with
``tab-`` or ``lst-`` makes it a table or a listing, which Sphinx counts apart. The directive
``list-of-captions`` stands for the list of all figures, tables or listings of the book:
``{list-of-captions} figure``, ``table`` or ``code-block``.
"""

from __future__ import annotations

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms import SphinxTransform
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import make_refnode


class ShownTable(nodes.figure):
    """A table that a code cell shows."""


class ShownListing(nodes.figure):
    """A listing that a code cell shows."""


KINDS = {"tab-": (ShownTable, "table"), "lst-": (ShownListing, "code-block")}


class Placeholder(nodes.General, nodes.Element):
    """Where a list of captions will stand."""


class CountApart(SphinxTransform):
    """Make tables and listings of the figures that are named so."""

    default_priority = 300  # before Sphinx looks for what it counts

    def apply(self, **kwargs: object) -> None:
        """Replace each node by one of its kind."""
        for figure in list(self.document.findall(nodes.figure)):
            name = next(iter(figure["names"]), "")
            if name[:4] in KINDS and type(figure) is nodes.figure:
                kind, _ = KINDS[name[:4]]
                other = kind("", *figure.children, **figure.attributes)
                other.source, other.line = figure.source, figure.line
                figure.replace_self(other)
                for identifier in other["ids"]:
                    self.document.ids[identifier] = other


class ListOfCaptions(SphinxDirective):
    """The directive ``list-of-captions``."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """A place to be filled when all captions have their numbers."""
        if self.arguments[0] not in ("figure", "table", "code-block"):
            raise self.error(f"{self.arguments[0]!r}; allowed: figure, table, code-block")
        return [Placeholder(kind=self.arguments[0])]


def fill(app: Sphinx, document: nodes.document, name: str) -> None:
    """Write the lists of a page that is ready otherwise."""
    for place in list(document.findall(Placeholder)):
        # captions have formulas, so that the page needs MathJax
        app.env.get_domain("math").data["has_equations"][name] = True
        items = captions(app, place["kind"], name)
        place.replace_self(nodes.bullet_list("", *items, bullet="-", classes=["dg-captions"]))


def captions(app: Sphinx, kind: str, page: str) -> list[nodes.list_item]:
    """All captions of a kind in the book's order, as links from a page."""
    label = app.config.numfig_format[kind]
    items = []
    for where in reading_order(app.env, app.config.root_doc):
        numbers = app.env.toc_fignumbers.get(where, {}).get(kind, {})
        if not numbers:
            continue
        known = app.env.get_doctree(where).ids
        for identifier, number in numbers.items():
            caption = next(known[identifier].findall(says))
            words = nodes.inline("", label % ".".join(map(str, number)))
            link = make_refnode(app.builder, page, where, identifier, words)
            said = [child.deepcopy() for child in caption.children if not unresolved(child)]
            line = nodes.paragraph("", "", link, nodes.Text(". "), *said)
            items.append(nodes.list_item("", line))
    return items


def says(node: nodes.Node) -> bool:
    """Whether a node is a caption; a table calls its own a title."""
    return isinstance(node, nodes.caption | nodes.title)


def unresolved(node: nodes.Node) -> bool:
    """Whether a part of a caption is a reference that only its own page resolves."""
    return any(True for _ in node.findall(addnodes.pending_xref))


def reading_order(env: BuildEnvironment, root: str) -> list[str]:
    """All pages, as the table of contents lists them."""
    found = [root]
    for page in env.toctree_includes.get(root, []):
        found += reading_order(env, page)
    return found


def setup(app: Sphinx) -> dict[str, bool]:
    """Make the kinds, the directive and what fills it known."""
    from sphinx.writers.html5 import HTML5Translator

    draw = HTML5Translator.visit_figure, HTML5Translator.depart_figure
    for kind, counted_as in KINDS.values():
        app.add_enumerable_node(kind, counted_as, html=draw)
    app.add_node(Placeholder)
    app.add_transform(CountApart)
    app.add_directive("list-of-captions", ListOfCaptions)
    app.connect("doctree-resolved", fill)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
