"""The built book, served on this machine, and a browser to look at it with."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves files and says nothing."""

    def log_message(self, format: str, *args: object) -> None:
        """Leave the test's output to the tests."""


@pytest.fixture(scope="session")
def html() -> Path:
    """The folder of the built pages."""
    folder = ROOT / "_build" / "html"
    if not (folder / "index.html").exists():
        pytest.fail(f"there is no built book in {folder}; `make book` builds it", pytrace=False)
    return folder


@pytest.fixture(scope="session")
def address(html: Path) -> Iterator[str]:
    """Address of the built pages, ending in a slash, while the tests run."""
    handler = functools.partial(QuietHandler, directory=str(html))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A Chromium without a window, for one module: a thread can hold only one at a time."""
    completed = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "chromium.py")],
        capture_output=True,
        text=True,
        check=False,
    )
    if completed.returncode != 0:
        pytest.fail(completed.stderr.strip(), pytrace=False)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=completed.stdout.strip(), args=FLAGS, env=dict(os.environ)
        )
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def small_book(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[Sequence[nbformat.NotebookNode], str], Path]:
    """Build a book of one chapter with this book's settings: cells, address to its page."""

    def build(cells: Sequence[nbformat.NotebookNode], repository: str = "", **metadata) -> Path:
        folder = tmp_path_factory.mktemp("book")
        for name in ("_ext", "_static", "vendor"):
            (folder / name).symlink_to(ROOT / name)
        (folder / "chapters").mkdir()
        shutil.copy(ROOT / "_config.yml", folder)
        shutil.copy(ROOT / "chapters" / "references.bib", folder / "chapters")
        (folder / "_toc.yml").write_text("format: jb-book\nroot: chapters/one\n")
        notebook = nbformat.v4.new_notebook(cells=list(cells), metadata=metadata)
        nbformat.write(notebook, folder / "chapters" / "one.ipynb")
        command = [str(Path(sys.executable).parent / "jupyter-book"), "build", ".", "-q"]
        environment = os.environ | {"DGBOOK_REPOSITORY": repository}
        subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
        return folder / "_build" / "html" / "chapters" / "one.html"

    return build
