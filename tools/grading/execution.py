"""Running a notebook whose author is not trusted.

The kernel runs in a sandbox. What it says is heard out here, and here it is decided whether a test
passed: from the kernel's replies and outputs, not from anything that it could write to a file.
"""

from __future__ import annotations

import contextlib
import copy
import secrets
import shutil
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jupyter_client.manager import AsyncKernelManager
from matplotlib import font_manager
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_output
from nbgrader.preprocessors import Execute
from nbgrader.utils import is_grade, is_solution

from grading.feedback import shown
from grading.sandbox import Sandbox
from grading.submissions import name_of, read_file

SETUP = "setup"  # cells whose id begins so run again before each test
FIGURE = "figure"  # cells whose id begins so show something and are not run for a grade
INCIDENTS = ("TimeLimit", "Crash", "Tampering")  # errors that are told in the table

FONTS = f"fontlist-v{font_manager.FontManager.__version__}.json"  # where matplotlib keeps its list

CELL_CHARACTERS = 100_000  # of text that a cell shows
NOTEBOOK_CHARACTERS = 4_000_000  # of text and pictures that all cells show


@dataclass(frozen=True)
class Limits:
    """What a submission may use.

    Attributes
    ----------
    cell_seconds : float
        Time of one cell.
    total_seconds : float
        Time of the whole notebook, with all its new starts.
    memory_bytes : int
        Address space of each process.
    """

    cell_seconds: float = 30.0
    total_seconds: float = 300.0
    memory_bytes: int = 8 * 2**30


# Runs before anything of the student's does; afterwards it puts back what code rebinds, by accident
# or to soften the tests. Whoever looks for it will find it, hence `_fails_where_it_must`.
GUARD = """
def _guard():
    import builtins
    import math
    import sys
    import numpy

    modules = [builtins, math, numpy, numpy.linalg, numpy.random, numpy.testing]
    kept = [
        (m, {k: v for k, v in vars(m).items() if k[:1] != "_" or k == "__import__"})
        for m in modules
    ]
    shell, streams = get_ipython(), (sys.stdout, sys.stderr)

    def restore():
        for module, names in kept:
            vars(module).update(names)
        for name in kept[0][1].keys() - {"exit", "quit"}:
            shell.user_ns.pop(name, None)
        shell.ast_transformers.clear()
        shell.input_transformers_post.clear()
        sys.stdout, sys.stderr = streams
        sys.settrace(None)
        sys.setprofile(None)

    # They would end the process between two cells, and another cell would get the blame.
    shell.user_ns.update(exit=None, quit=None)
    return restore


__import__("sys").modules["_grading"] = _guard()
del _guard
"""
RESTORE = "__import__('sys').modules['_grading']()"


class SandboxedKernelManager(AsyncKernelManager):
    """Starts a kernel in a sandbox and talks to it through sockets in its private folder."""

    def __init__(
        self,
        sandbox: Sandbox,
        environment: Mapping[str, str],
        memory_bytes: int,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._sandbox, self._environment = sandbox, environment
        self._memory_bytes = memory_bytes
        self._private = sandbox.prepare()
        # Its home is new, and matplotlib there would look for this machine's fonts once more.
        fonts = self._private / "home" / FONTS
        font_manager.json_dump(font_manager.fontManager, fonts)
        sandbox.give(fonts)
        self.transport = "ipc"
        self.ip = str(self._private / "socket")
        self.connection_file = str(self._private / "kernel.json")

    def format_kernel_cmd(self, extra_arguments: list[str] | None = None) -> list[str]:
        self._sandbox.give(Path(self.connection_file))
        home = str(self._private / "home")
        environment = {"IPYTHONDIR": home, "MPLCONFIGDIR": home, "NUMBA_CACHE_DIR": home}
        arguments = ["-f", self.connection_file, *(extra_arguments or [])]
        return self._sandbox.command(
            self._private,
            [sys.executable, "-m", "ipykernel_launcher", *arguments],
            environment | dict(self._environment),
            self._memory_bytes,
        )

    async def cleanup_resources(self, restart: bool = False) -> None:
        """End all that the kernel has started and remove its folder; its errors are told."""
        await super().cleanup_resources(restart)
        self._sandbox.end()
        with contextlib.suppress(ValueError):
            text = read_file(self._private / "log").decode(errors="replace")
            print(text[:CELL_CHARACTERS], file=sys.stderr)
        shutil.rmtree(self._private, ignore_errors=True)


def kernel_environment(seed: int) -> dict[str, str]:
    """Variables of a kernel that runs for a grade."""
    return {
        "DGBOOK_GRADING_SEED": str(seed),
        "NBGRADER_EXECUTION": "autograde",
        "CUDA_VISIBLE_DEVICES": "",  # the simulator sees more than a GPU, and sees it every time
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }


class ResilientExecute(Execute):
    """nbgrader's execution of a notebook, for code that hangs, crashes, lies or wants out."""

    interrupt_on_timeout = False  # a loop may catch the interrupt; the kernel is killed instead
    shutdown_kernel = "immediate"
    store_widget_state = False
    sandbox: Sandbox
    seed = 1
    limits = Limits()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.timeout_func = lambda _: max(1.0, min(self.limits.cell_seconds, self._time_left()))

    def create_kernel_manager(self) -> AsyncKernelManager:
        """A manager that starts one kernel in a sandbox of its own."""
        self.km = SandboxedKernelManager(
            self.sandbox, kernel_environment(self.seed), self.limits.memory_bytes
        )
        return self.km

    def preprocess(
        self, nb: NotebookNode, resources: Any = None, km: Any = None
    ) -> tuple[NotebookNode, Any]:
        """Execute a notebook; each cell that ends its kernel is left out of the next attempt."""
        self._deadline = time.monotonic() + self.limits.total_seconds
        self._failed: dict[int, tuple[str, str]] = {}
        metadata = copy.deepcopy(nb.metadata)
        setup = "\n\n".join(c.source for c in nb.cells if name_of(c).startswith(SETUP))
        # As one string: IPython would read it through, line by line, before each test.
        self._before_test = f"{RESTORE}\n__import__('builtins').exec({setup!r})"
        while True:
            try:
                nb, resources = super().preprocess(nb, resources, km)
            except CellTimeoutError:
                self._failed[self._index] = ("TimeLimit", "the cell ran too long")
            except DeadKernelError:
                self._failed[self._index] = ("Crash", "the cell ended the Python process")
            else:
                nb.metadata = metadata  # the kernel has put in what it says of itself
                return nb, resources

    def preprocess_cell(
        self, cell: NotebookNode, resources: Any, index: int
    ) -> tuple[NotebookNode, Any]:
        """Execute a cell, unless it is known to end its kernel or no time is left for it."""
        self._index = index
        if cell.cell_type != "code":
            return cell, resources
        if self._time_left() <= 0:
            self._failed[index] = ("TimeLimit", "there was no time left for this cell")
        if index in self._failed:
            cell.outputs = [_error(*self._failed[index])]
            return cell, resources
        if name_of(cell).startswith(FIGURE):
            return cell, resources
        if not self.code_cells_executed:
            self._room, self._token = NOTEBOOK_CHARACTERS, ""
            self._run_aside(GUARD)
        if is_grade(cell) and not is_solution(cell):
            return self._test(cell), resources
        self._cell_room = CELL_CHARACTERS
        cell, resources = super().preprocess_cell(cell, resources, index)
        cell.outputs = shown(cell.outputs)
        return cell, resources

    def _test(self, cell: NotebookNode) -> NotebookNode:
        """Run a test. It is passed if it ends by itself, and a check that must fail does fail."""
        self._run_aside(self._before_test)
        self._token, self._ended = secrets.token_hex(16), False
        proof = f"get_ipython().display_pub.publish({{'text/plain': '{self._token}'}})"
        done = self._run_aside(f"{cell.source}\n{proof}")
        cell.execution_count = done.execution_count
        # nbgrader takes a value that a test shows for its points, and a warning for a failure.
        cell.outputs = [_countable(o, self._token) for o in shown(done.outputs) if _counts(o)]
        passed = not any(o.output_type == "error" for o in cell.outputs)
        if passed and not (self._ended and self._fails_where_it_must()):
            cell.outputs.append(_error("Tampering", "the test did not run as it is written"))
        return cell

    def _fails_where_it_must(self) -> bool:
        """Whether an assertion that does not hold is reported as such."""
        word, number = secrets.token_hex(8), secrets.randbelow(10**6)
        done = self._run_aside(f"assert {number} == {number + 1 + secrets.randbelow(9)}, '{word}'")
        return any(
            o.output_type == "error" and (o.ename, o.evalue) == ("AssertionError", word)
            for o in done.outputs
        )

    def _run_aside(self, source: str) -> NotebookNode:
        """Execute what is not a cell of the notebook; returns it as one."""
        self._cell_room = CELL_CHARACTERS
        cell = self.nb.cells[self._index]
        done = self.execute_cell(new_code_cell(source), self._index, store_history=False)
        self.nb.cells[self._index] = cell  # nbclient has put the other in its place
        return done

    def process_message(
        self, msg: dict[str, Any], cell: NotebookNode, cell_index: int
    ) -> NotebookNode | None:
        """Take a message from the kernel, as long as there is room for what it shows.

        What would change what another cell has shown, or take it back, is not heard.
        """
        kind, content = msg["msg_type"], msg["content"]
        if kind.startswith("comm") or kind in ("clear_output", "update_display_data"):
            return None
        if kind == "display_data" and content.get("data") == {"text/plain": self._token}:
            self._ended = True
            return None
        content.pop("transient", None)
        if kind in ("stream", "display_data", "execute_result"):
            length = sum(len(str(v)) for v in (content.get("data") or content).values())
            pictures = kind != "stream"
            room = self._room if pictures else min(self._room, self._cell_room)
            if length > room:
                if self._cell_room > 0:
                    self._cell_room = 0
                    cut = {"name": "stdout", "text": "\n... output cut ...\n"}
                    msg = msg | {"msg_type": "stream", "content": cut}
                    msg["header"] = msg["header"] | {"msg_type": "stream"}
                    return super().process_message(msg, cell, cell_index)
                return None
            self._room -= length
            self._cell_room -= 0 if pictures else length
        return super().process_message(msg, cell, cell_index)

    def _time_left(self) -> float:
        return self._deadline - time.monotonic()


def _error(name: str, message: str) -> NotebookNode:
    return new_output("error", ename=name, evalue=message, traceback=[message])


def _counts(output: NotebookNode) -> bool:
    return output.output_type in ("error", "stream")


def _countable(output: NotebookNode, token: str) -> NotebookNode:
    if output.output_type == "stream":
        output.name = "stdout"
    else:  # the token's line is none of the test's
        output.traceback = [
            "\n".join(line for line in part.split("\n") if token not in line)
            for part in output.traceback
        ]
    return output


def incidents(notebook: NotebookNode) -> str:
    """Which cells of a graded notebook ran too long, crashed or were tampered with."""
    found = []
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if output.output_type == "error" and output.ename in INCIDENTS:
                found.append(f"{output.ename} in {name_of(cell) or 'a cell of their own'}")
    return ", ".join(found)
