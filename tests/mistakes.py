"""Wrong kernels: right ones, made again from their texts but for one mistake."""

import linecache
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dgbook.gpu.source import CudaKernel
from dgbook.lab.maxwell import EditedKernel
from dgbook.page.show import source


def remade(name: str, functions: Sequence[Callable], right: str, wrong: str) -> dict[str, Any]:
    """Functions by name, made again; those behind call those in front.

    Parameters
    ----------
    name : str
        Of the mistake, which tracebacks tell in place of a file.
    functions : sequence of functions
    right, wrong : str
        What stands once in the texts of all of them, and what is put in its place.
    """
    # Without lines of comments, so that a mistake may go over several lines of code.
    texts = [re.sub(r"^ *#.*\n", "", source(f), flags=re.MULTILINE) for f in functions]
    assert sum(text.count(right) for text in texts) == 1, f"{name}: the text has changed"
    namespace: dict[str, Any] = {}
    for function in functions:
        namespace |= function.__globals__
    for function, text in zip(functions, texts, strict=True):
        text = text.replace(right, wrong)
        file = f"<{name}: {function.__name__}>"
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        exec(compile(text, file, "exec"), namespace)
    return namespace


@dataclass(frozen=True)
class Mistake:
    """What is wrong in a kernel, and the text that makes it so.

    Attributes
    ----------
    functions : tuple of functions
        In one of which the mistake is; the last is the kernel's factory.
    """

    name: str
    right: str
    wrong: str
    functions: tuple[Callable, ...]

    def make(self, *arguments: Any) -> Any:
        """The wrong kernel."""
        made = remade(self.name, self.functions, self.right, self.wrong)
        return made[self.functions[-1].__name__](*arguments)


@dataclass(frozen=True)
class CudaMistake:
    """What is wrong in a kernel in CUDA C++, and the text that makes it so.

    Attributes
    ----------
    right, wrong : str
        What stands once in the source, and what is put in its place.
    order, dtype, capability
        For which the kernel is made, with the plan that is shipped.
    """

    name: str
    right: str
    wrong: str
    order: int = 4
    dtype: str = "float32"
    capability: tuple[int, int] = (9, 0)

    def make(self, kernel: CudaKernel) -> CudaKernel:
        """The wrong kernel."""
        assert kernel.code.count(self.right) == 1, f"{self.name}: the text has changed"
        return EditedKernel(kernel, [(self.right, self.wrong)])
