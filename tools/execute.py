"""Run notebooks from top to bottom and store their outputs in place: `execute.py NOTEBOOK ...`.

A notebook whose run fails keeps its old outputs. Cells tagged `skip-execution` are not run.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError


def execute(path: Path, timeout: float = 600) -> None:
    """Run one notebook in its own folder and replace the file.

    No timestamps are stored: all that changes from run to run is what the cells themselves print.

    Raises
    ------
    nbclient.exceptions.CellExecutionError
        If a cell raises; the file is then as it was.
    """
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        for timestamps in ("execution", "ExecuteTime"):
            cell.metadata.pop(timestamps, None)
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    NotebookClient(
        notebook,
        kernel_name="python3",
        timeout=timeout,
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(path.parent)}},
    ).execute()
    nbformat.validate(notebook)
    unfinished = path.with_name(path.name + ".part")
    nbformat.write(notebook, unfinished)
    unfinished.replace(path)


def main(names: list[str]) -> int:
    """Execute every named notebook; 1 if one failed."""
    if not names:
        print(__doc__)
        return 2
    # A kernel of this environment, not one that the user has installed under the same name.
    os.environ["JUPYTER_PREFER_ENV_PATH"] = "1"
    failed = []
    for name in names:
        start = time.perf_counter()
        try:
            execute(Path(name))
        except CellExecutionError as error:
            failed.append(name)
            print(f"{name}: failed, its outputs are as they were\n{error}", file=sys.stderr)
        else:
            print(f"{name}: {time.perf_counter() - start:.1f} s")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
