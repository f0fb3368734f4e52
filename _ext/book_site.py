"""Sphinx extension of this book: scripts that work offline, and buttons that need a repository.

Three things that `_config.yml` cannot say by itself:

- the folder `vendor/` (MathJax, require.js, the widget manager) is published under `_static/`, but
  its scripts are loaded only by the pages that need them;
- the buttons that lead to a repository (Colab, source, edit) exist only where an address is
  configured, so that no copy of the book carries dead buttons;
- the scripts for live code in the page, which this book does not use, are left out.
"""

from __future__ import annotations

import os

from sphinx.application import Sphinx
from sphinx.config import Config

COLAB = "https://colab.research.google.com"


def publish_vendor(app: Sphinx, config: Config) -> None:
    """Copy `vendor/` into the built book.

    Not through `html_static_path` in `_config.yml`: Jupyter Book would then load every script
    found there on every page.
    """
    config.html_static_path.append("vendor")


def add_repository_buttons(app: Sphinx, config: Config) -> None:
    """Switch on launch, source and edit buttons where a repository address is configured.

    The address is `repository.url` in `_config.yml`; the environment variable DGBOOK_REPOSITORY
    goes before it (a fork's workflow sets it, so that its buttons lead to the fork).
    """
    options = config.html_theme_options
    url = os.environ.get("DGBOOK_REPOSITORY", options.get("repository_url", "")).rstrip("/")
    options["repository_url"] = url
    if url:
        options["launch_buttons"] = options.get("launch_buttons", {}) | {"colab_url": COLAB}
        options["use_repository_button"] = True
        options["use_edit_page_button"] = True


def leave_out_live_code(
    app: Sphinx, pagename: str, templatename: str, context: dict, doctree: object
) -> None:
    """Drop the scripts of sphinx-thebe, which Jupyter Book loads on every page, twice.

    Code does not run in these pages; the second copy raises an error in the browser's console.
    """
    for kind in ("script_files", "css_files"):
        context[kind] = [file for file in context[kind] if "thebe" not in str(file).lower()]


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the parts; the theme reads its options at the default priority, so go before it."""
    app.connect("config-inited", publish_vendor, priority=100)
    app.connect("config-inited", add_repository_buttons, priority=100)
    app.connect("html-page-context", leave_out_live_code, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
