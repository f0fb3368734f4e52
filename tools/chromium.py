"""Find a Chromium for the browser tests, or install one: prints its path.

python tools/chromium.py [--install]
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def candidates() -> Iterator[str]:
    """Where a Chromium may be: $CHROMIUM, the search path, Playwright's own folder."""
    if named := os.environ.get("CHROMIUM"):
        yield named
    for name in NAMES:
        if path := shutil.which(name):
            yield path
    if (own := playwrights_own()) and Path(own).exists():
        yield own


def playwrights_own() -> str | None:
    """Where Playwright would put a Chromium of its own, or None if its driver does not start.

    A bare Debian lacks libatomic, which the driver needs.
    """
    from playwright.sync_api import sync_playwright

    try:
        with sync_playwright() as playwright:
            return playwright.chromium.executable_path
    except Exception as error:  # the driver ends before it can say anything more precise
        print(f"Playwright's driver does not start: {error}", file=sys.stderr)
        return None


def works(path: str) -> bool:
    """Whether the file at `path` is a browser that starts."""
    try:
        return subprocess.run([path, "--version"], capture_output=True, timeout=60).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def find() -> str | None:
    """The first Chromium that starts, or None."""
    return next(filter(works, candidates()), None)


def install() -> None:
    """Install a Chromium: the system's where we may, else Playwright's own."""
    if hasattr(os, "geteuid") and os.geteuid() == 0 and shutil.which("apt-get"):
        environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        packages = ["apt-get", "install", "-y", "chromium", "libatomic1"]
        commands = [["apt-get", "update"], packages]
    else:
        environment = os.environ
        commands = [[sys.executable, "-m", "playwright", "install", "chromium"]]
    for command in commands:
        print(" ".join(command), file=sys.stderr)
        subprocess.run(command, env=environment, stdout=sys.stderr, check=False)


def main(arguments: list[str]) -> int:
    """Print the path of a Chromium; 1 and a sentence if none starts, or its driver does not."""
    path, driver = find(), playwrights_own()
    if None in (path, driver) and "--install" in arguments:
        install()
        path, driver = find(), playwrights_own()
    if None in (path, driver):
        print(
            "There is no Chromium that starts, or no driver for it. Install them (Debian: apt-get "
            "install chromium libatomic1), or name a Chromium in the variable CHROMIUM.",
            file=sys.stderr,
        )
        return 1
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
