"""Vectors of compiled kernels as NumPy arrays: the kernels' texts run as Python."""

import importlib
import inspect
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from dgbook.euler.kernels import riemann
from dgbook.euler.problem import FLUXES
from dgbook.nodal import cores, lanes


def _same(*functions: Any, **options: Any) -> Any:
    """A compiler that compiles nothing."""
    return functions[0] if functions else _same


def load(array, at):
    assert 0 <= at <= len(array) - lanes.lanes(array.dtype)
    return array[at : at + lanes.lanes(array.dtype)].copy()


def store(array, at, vector):
    assert 0 <= at <= len(array) - len(vector)
    array[at : at + len(vector)] = vector


def gather(array, at, places, first):
    found = at + places[first : first + lanes.lanes(array.dtype)].astype(int)
    return array[found]


def _columns(rows, height, width, a, of, x, at):
    matrix = a[of : of + height * width].reshape(-1, width, rows).swapaxes(1, 2)
    L = lanes.lanes(x.dtype)
    return matrix.reshape(height, width) @ x[at : at + width * L].reshape(width, L)


def product(rows, height, width, a, of, x, at, out, to, add):
    value = _columns(rows, height, width, a, of, x, at)
    there = out[to : to + value.size]
    there[:] = value.ravel() + (there if add else 0)


def product_of_two(rows, height, width, a, of, x, at, apart, out, to, between, add):
    for c in range(2):
        product(rows, height, width, a, of, x, at + c * apart, out, to + c * between, add)


def difference_of_two(rows, height, width, a, of, less, x, at, other, apart, out, to, between):
    for c in range(2):
        value = _columns(rows, height, width, a, of, x, at + c * apart)
        value -= _columns(rows, height, width, a, less, x, other + c * apart)
        out[to + c * between : to + c * between + value.size] = value.ravel()


def room(like, count):
    return np.full(count, np.nan, like.dtype)


def _fluxes(flux, count, left, right, nx, ny, out):
    states = (side.reshape(4, count) for side in (left, right))
    out.reshape(4, count)[:] = list(FLUXES.values())[flux](*states, np.stack([nx, ny]))


VECTORS = {
    function.__name__: function
    for function in (load, store, gather, product, product_of_two, difference_of_two, room)
}


COMPILER = {
    "njit": _same,
    "prange": range,
    "get_thread_id": lambda: 0,
    "get_num_threads": lambda: 1,
}
"""What the texts ask of Numba."""


def _run(module: ModuleType, right: str, wrong: str) -> dict[str, Any]:
    """The names of a module whose text has been run with one change, and with these vectors."""
    text = inspect.getsource(module)
    assert right == wrong or text.count(right) == 1, f"the text has changed: {right!r}"
    names = {"__name__": module.__name__, "numba": SimpleNamespace(**COMPILER)}
    exec(text.replace(right, wrong).replace("import numba\n", ""), names)
    return names


def launcher(family: str, right: str = "", wrong: str = "") -> type:
    """A family's launcher on cores, made of its text with `wrong` in place of `right`.

    Of hybridized methods it is `hdg.cores.Elements`.
    """
    shared = {"advance": inspect.unwrap(getattr(cores.advance, "py_func", cores.advance))}
    names = _run(importlib.import_module(f"dgbook.{family}.cores"), right, wrong)
    advance: dict[str, Any] = dict(VECTORS)
    exec(inspect.getsource(shared["advance"]).replace("@numba.njit\n", ""), advance)
    names |= VECTORS | {"advance": advance["advance"], "_fluxes": _fluxes}
    if family == "euler":
        names["_primitive"] = riemann.make_primitive(np.float64, _same)
    return names["Elements" if family == "hdg" else "Cores"]
