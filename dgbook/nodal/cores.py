"""What launchers for processor cores share: elements in blocks, boundaries, and threads."""

from __future__ import annotations

import copy
import hashlib
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Self

import numba
import numpy as np
from numba.core import types
from numba.extending import NativeValue, models, register_model, typeof_impl, unbox

from dgbook.arguments import check_integer
from dgbook.gpu import Device
from dgbook.mesh import along_a_curve, inverse_permutation
from dgbook.nodal import lanes
from dgbook.nodal.lanes import CACHE_LINE, load, store
from dgbook.nodal.launching import MOST, Convert, as_it_is

CORE_ARRAYS = (6, 1)
"""Of states, and of values on faces, that a run has at the same time: two states and the residual,
what the caller gave, what is kept in case the run blows up and what is looked at now; and where
neighbors' nodes are."""
BLOCKS = 8
"""That a thread takes at a time: as many use the same working memory."""


# ------------------------------------------------------------------------- threads and the compiler


def use_threads(count: int) -> None:
    """Let kernels run on so many of the processor's cores; by default it is all.

    Results do not depend on it. The environment variable NUMBA_NUM_THREADS says the same for a
    whole process.

    Raises
    ------
    TypeError, ValueError
        If it is no number from 1 to that of the threads that this process may have.
    """
    check_integer("threads", count, 1, numba.config.NUMBA_NUM_THREADS)
    numba.set_num_threads(count)


class Sources:
    """The text of modules, as an argument of compiled functions that are kept on disk.

    Numba keeps a function for the file that it stands in, and does not see when a function changes
    that it calls from another file. What it keeps is found by the types of arguments, of which this
    is one more: another text is another type.

    Parameters
    ----------
    *modules : module
        Of compiled functions. The shared ones are always among them.
    """

    def __init__(self, *modules: ModuleType) -> None:
        files = [Path(inspect.getfile(module)) for module in (lanes, *modules)]
        text = b"".join(path.read_bytes() for path in (*files, Path(__file__)))
        self.digest = hashlib.sha256(text).hexdigest()[:16]


class _SourcesType(types.Opaque):
    pass


register_model(_SourcesType)(models.OpaqueModel)


SHARED = Sources()
"""Of what all families share."""


@typeof_impl.register(Sources)
def _typeof(value: Sources, context: Any) -> _SourcesType:
    return _SourcesType(f"sources({value.digest})")


@unbox(_SourcesType)
def _unbox(kind: _SourcesType, value: Any, c: Any) -> NativeValue:
    return NativeValue(c.context.get_dummy_value())


@numba.njit
def advance(u, res, new, start, count, L, a, b, dt, slopes):
    """res = a res + dt slopes, new = u + b res, of so many numbers; res is not read if a = 0.

    Where `res` is empty it is new = a new + b u + dt slopes, with a stage of a factored method.
    """
    if res.size == 0:
        for i in range(0, count, L):
            v = dt * load(slopes, i)
            if a != 0:
                v = v + a * load(new, start + i)
            if b != 0:
                v = v + b * load(u, start + i)
            store(new, start + i, v)
        return
    for i in range(0, count, L):
        r = dt * load(slopes, i)
        if a != 0:
            r = r + a * load(res, start + i)
        store(res, start + i, r)
        if b != 0:
            store(new, start + i, load(u, start + i) + b * r)


# ----------------------------------------------------------------------------------------- blocks


@numba.njit(parallel=True, cache=True)
def _to_blocks(sources, values, order, L, blocks):
    """Values (fields, K, Np) as ``[block][field][node][lane]``, flat; lanes to spare stay."""
    fields, _, Np = values.shape
    for block in numba.prange(len(order) // L):
        for lane in range(L):
            k = order[block * L + lane]
            if k >= 0:
                for field in range(fields):
                    for n in range(Np):
                        blocks[((block * fields + field) * Np + n) * L + lane] = values[field, k, n]


@numba.njit(parallel=True, cache=True)
def _from_blocks(sources, blocks, order, L, values):
    """The way back."""
    fields, _, Np = values.shape
    for block in numba.prange(len(order) // L):
        for lane in range(L):
            k = order[block * L + lane]
            if k >= 0:
                for field in range(fields):
                    for n in range(Np):
                        values[field, k, n] = blocks[((block * fields + field) * Np + n) * L + lane]


@numba.njit(parallel=True, cache=True)
def _places(sources, exterior, meets, order, some, fields, Np, L, places):
    """Where the first field of the node opposite each face node is, ``[block][node][lane]``.

    Of some blocks; `meets` is the place of the neighbor at each face.
    """
    _, faces, Nfp = exterior.shape
    for number in numba.prange(len(some)):
        block = some[number]
        for f in range(faces):
            for i in range(Nfp):
                for lane in range(L):
                    at = ((number * faces + f) * Nfp + i) * L + lane
                    k = order[block * L + lane]
                    places[at] = block * fields * Np * L + lane
                    if k >= 0:
                        other, there = divmod(meets[k, f], L)
                        n = exterior[k, f, i] % Np
                        places[at] = (other * fields * Np + n) * L + there


def aligned(size: int, real: Any) -> np.ndarray:
    """Zeros that begin with a line of the cache."""
    zeros = np.zeros(size + CACHE_LINE // np.dtype(real).itemsize, real)
    first = -zeros.ctypes.data % CACHE_LINE // zeros.itemsize
    return zeros[first : first + size]


class CoreLauncher(ABC):
    """An operator's states and arrays on processor cores.

    A state is flat: blocks of as many elements as a vector has lanes, along a curve that fills
    space, ``[block][field][node][lane]``. The last block may have lanes to spare.

    Parameters
    ----------
    operator : a family's operator
    device : Device
        "cpu".
    dtype : str
    fields, Np : int
        Of a state.
    exterior : (K, faces, Nfp) ints
        The nodes that an element's face nodes meet, element times Np plus node; on the boundary its
        own.
    boundary_faces : (nb, 2) ints
        Rows (element, face).

    Attributes
    ----------
    order : (places,)
        Which element stands at each place of a state, -1 where there is none; ghosts are last.
    elements : (K,)
        The same without places to spare.
    place : (K,)
        And where each element stands.
    computed : int
        The first blocks, with all elements but ghosts, which kernels compute.
    sources : Sources
        The family's.
    in_ranges : bool
        False: a stage is launched of all elements.
    """

    in_ranges = False

    sources: ClassVar[Sources]

    def __init__(
        self,
        operator: Any,
        device: Device,
        dtype: str,
        fields: int,
        Np: int,
        exterior: np.ndarray,
        boundary_faces: np.ndarray,
    ) -> None:
        self.operator, self.device, self.boundary_faces = operator, device, boundary_faces
        self.K, self.faces, self.Nfp = exterior.shape
        self.real = np.dtype(dtype).type
        self.fields, self.Np, self.L = fields, Np, lanes.lanes(dtype)
        self.computed = -(-operator.mesh.owned // self.L)
        self.order, self.place = self._sorted()
        self.blocks = len(self.order) // self.L
        self.size = self.blocks * fields * Np * self.L
        largest = self._largest()
        if largest >= MOST:
            raise ValueError(
                f"mesh.K = {self.K} elements of this order need an array of {largest} entries; "
                f"allowed: less than {MOST}"
            )
        exterior = np.ascontiguousarray(exterior, np.int32)
        self.places = np.concatenate(
            [self._places(exterior, meets, some) for meets, some in self._meetings(exterior)]
        )

    def _sorted(self) -> tuple[np.ndarray, np.ndarray]:
        """The attributes `order` and `place`."""
        along = along_a_curve(self.operator.mesh)
        return np.append(along, np.full(-self.K % self.L, -1)), inverse_permutation(along)

    def _largest(self) -> int:
        """Entries of the largest array in which `places` are."""
        return self.size

    def _meetings(self, exterior: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """Tables one behind the other in `places`: the neighbors' places, and for which blocks."""
        return [(self.place[exterior[:, :, 0] // self.Np], np.arange(self.blocks))]

    def _places(self, exterior: np.ndarray, meets: np.ndarray, some: np.ndarray) -> np.ndarray:
        places = np.empty(len(some) * self.faces * self.Nfp * self.L, np.uint32)
        _places(SHARED, exterior, meets, self.order, some, self.fields, self.Np, self.L, places)
        return places

    def prepare(self) -> bool:
        """Compile what runs use, or load it from disk; whether something had to be compiled."""
        few, values = aligned(1, self.real), np.empty((1, 1, 1), self.real)
        calls = [
            (_to_blocks, (SHARED, values, self.order, self.L, few)),
            (_from_blocks, (SHARED, few, self.order, self.L, values)),
            self._launch_on(few),
        ]
        before = sum(kernel.stats.cache_misses.total() for kernel, _ in calls)
        for kernel, arguments in calls:
            kernel.compile(tuple(map(numba.typeof, arguments)))
        return sum(kernel.stats.cache_misses.total() for kernel, _ in calls) > before

    @abstractmethod
    def _launch_on(self, state: np.ndarray) -> tuple[Any, tuple[Any, ...]]:
        """The family's kernel, and what it is called with where all states are this one."""

    # -- arrays ----------------------------------------------------------------------------

    def by_blocks(self, values: np.ndarray) -> np.ndarray:
        """What describes elements, (K, ...), flat: ``[block][...][lane]``; zero in spare lanes and
        for ghosts, whose du/dt is then zero."""
        rows = np.array(values, self.real, order="C").reshape(1, self.K, -1)
        rows[:, self.operator.mesh.owned :] = 0
        out = aligned(self.blocks * self.L * rows.shape[2], self.real)
        _to_blocks(SHARED, rows, self.order, self.L, out)
        return out

    def on_boundary(
        self, values: np.ndarray, inside: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What faces of blocks need of which some lanes are on the boundary.

        Parameters
        ----------
        values : (nb, m) array
            Of each boundary face.
        inside : (m,) array
            In lanes whose face is not on the boundary.

        Returns
        -------
        edges : (blocks faces,) int32
            The number of a face of a block among those, or -1.
        table : flat array
            ``[number][m values, whether it is on the boundary][lane]``.
        given : flat uint32
            Where the lane's data begin, ``[number][lane]``: number of the boundary face times Nfp.
        """
        k, f = self.boundary_faces.T
        block, lane = np.divmod(self.place[k], self.L)
        some, number = np.unique(block * self.faces + f, return_inverse=True)
        edges = np.full(self.blocks * self.faces, -1, np.int32)
        edges[some] = np.arange(len(some))
        columns = values.shape[1]
        table = aligned(max(1, len(some)) * (columns + 1) * self.L, self.real)
        rows = table.reshape(-1, columns + 1, self.L)
        rows[:, :columns] = np.reshape(inside, (-1, 1))
        rows[number, :columns, lane], rows[number, columns, lane] = values, 1
        given = np.zeros((max(1, len(some)), self.L), np.uint32)
        given[number, lane] = np.arange(len(k)) * self.Nfp
        return edges, table, given.ravel()

    # -- states ----------------------------------------------------------------------------

    @property
    def elements(self) -> np.ndarray:
        """The elements along the curve, (K,)."""
        return self.order[self.order >= 0]

    def zeros(self) -> np.ndarray:
        """A state of zeros."""
        return aligned(self.size, self.real)

    def upload(self, u: np.ndarray, unknowns: Convert = as_it_is) -> np.ndarray:
        """A state (fields, K, Np) in blocks; see `dgbook.nodal.launching.Launcher.upload`."""
        state = self.zeros()
        u = np.ascontiguousarray(unknowns(u), self.real)
        _to_blocks(SHARED, u, self.order, self.L, state)
        return state

    def download(self, state: np.ndarray, nodal: Convert = as_it_is) -> np.ndarray:
        """A state in blocks as an array (fields, K, Np), see `Launcher.download` there."""
        u = np.empty((self.fields, self.K, self.Np), self.real)
        _from_blocks(SHARED, state.reshape(-1), self.order, self.L, u)
        return nodal(u)

    def entries(self, elements: np.ndarray, nodes: np.ndarray) -> np.ndarray:
        """As `dgbook.nodal.launching.Launcher.entries`."""
        block, lane = np.divmod(self.place[elements][:, None], self.L)
        row = block * self.fields + np.arange(self.fields)[:, None, None]
        return (row * self.Np + nodes) * self.L + lane

    def components(self, elements: np.ndarray) -> np.ndarray:
        """What a state holds of the fields of some elements, (n, fields, fields): all as it is."""
        return np.repeat(np.eye(self.fields)[None], len(elements), axis=0)

    def part(self, states: np.ndarray, places: slice) -> np.ndarray:
        """States, flat (..., entries), at some places: (..., fields, places, Np)."""
        stack = states.shape[:-1]
        first, last = places.start // self.L, -(-places.stop // self.L)
        blocks = states.reshape(*stack, -1, self.fields, self.Np, self.L)[..., first:last, :, :, :]
        rows = np.moveaxis(blocks, -4, -2)  # fields, nodes, blocks, lanes
        rows = np.ascontiguousarray(rows).reshape(*stack, self.fields, self.Np, -1)
        rows = rows[..., places.start - first * self.L : places.stop - first * self.L]
        return rows.swapaxes(-1, -2)


class CoreStage(CoreLauncher):
    """Stages of low-storage Runge-Kutta on processor cores, each in one sweep over the blocks.

    Parameters
    ----------
    operator : a family's operator
        With its `trace`.
    device, dtype, fields
        As of `CoreLauncher`.

    Attributes
    ----------
    in_place : bool
        False: neighbors still need u, so that the new state is written elsewhere.
    factored : bool
        Whether stages are those of a factored method, see `dgbook.time.ndb14_factored`.
    kernel : function
        ``kernel(*leading, u, res, new, data, a, b, dt, *arguments)``, compiled by Numba.
    leading, arguments : tuple
    """

    in_place = False
    factored = False

    kernel: Callable[..., None]
    leading: tuple[Any, ...]
    arguments: tuple[Any, ...]

    def __init__(self, operator: Any, device: Device, dtype: str, fields: int) -> None:
        trace = operator.trace
        super().__init__(
            operator, device, dtype, fields, trace.Np, trace.exterior, trace.boundary_faces
        )

    def with_factors(self) -> Self:
        """The same arrays, for the stages of a factored method."""
        other = copy.copy(self)
        other.factored = True
        return other

    def stage(self, u: Any, res: Any, new: Any, data: Any, a: float, b: float, dt: float) -> None:
        """res = a res + dt du/dt, new = u + b res; `new` is not u.

        Where a = 0, `res` is not read; where b = 0, `new` is not written. With factors it is
        res = a res + b u + dt du/dt, and `new` is never written; `res` is not u.
        """
        if self.factored:
            res, new = res[:0], res
        numbers = (self.real(value) for value in (a, b, dt))
        self.kernel(*self.leading, u, res, new, data, *numbers, *self.arguments)

    def _launch_on(self, state: Any) -> tuple[Any, tuple[Any, ...]]:
        states, numbers = 4 * (state,), 3 * (self.real(0),)
        return self.kernel, (*self.leading, *states, *numbers, *self.arguments)

    def rhs(self, u: Any, data: Any, out: Any) -> None:
        """out = du/dt; `data` are g on the boundary, flat (fields nb Nfp,), one zero if nb = 0."""
        self.stage(u, out, out, data, 0.0, 0.0, 1.0)
