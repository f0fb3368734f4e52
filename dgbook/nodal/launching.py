"""What launchers share: arrays on a device, and kernels launched on them as a plan says."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, Self

import numpy as np

from dgbook.gpu import Device
from dgbook.gpu.plan import require_legal
from dgbook.mesh import inverse_permutation

MOST = 2**32
"""Entries that indices of 32 bits can number."""
PIECE = 2**13
"""Elements that are converted together: what that takes is little beside the state."""
ALL, INTERIOR, EDGE = "all", "interior", "edge"
"""Elements of which a stage is launched: of a part, those that wait for nobody, and the others."""
Convert = Callable[[Any], Any]
"""From nodal values (..., Np) to what an operator works on, or back; arrays of host or device."""
Launches = tuple[Callable[..., None], Any]
"""``launch()`` launches a stage, and with it comes the array that the stage writes. Of launchers
`in_ranges`, ``launch(INTERIOR)`` and ``launch(EDGE)`` do the same, in any order or side by side."""


def pieces(K: int, most: int) -> Iterator[slice]:
    """K places, up to so many at a time."""
    return (slice(first, min(first + most, K)) for first in range(0, K, most))


def as_it_is(values: Any) -> Any:
    """Where the operator works on nodal values."""
    return values


class Launcher(ABC):
    """An operator's arrays on a device, and kernels launched on them; families derive their own.

    Parameters
    ----------
    operator : a family's operator
    device : Device
        "cuda" or "simulator".
    dtype : str
        The kernels'.

    Attributes
    ----------
    operator, device
    real : type
        Of a real number.
    plan : a plan of the family's kernels
    size : int, or tuple of int
        Entries of a state, or its shape.
    arrays : dict
        By name, on the device.
    in_ranges : bool
        Whether a stage can be launched of `INTERIOR` and `EDGE`, one beside the other.
    """

    in_ranges = False

    plan: Any
    size: int | tuple[int, ...]
    arrays: dict[str, Any]

    def __init__(self, operator: Any, device: Device, dtype: str) -> None:
        self.operator, self.device = operator, device
        self.real = np.dtype(dtype).type

    def planned(self, plan: Any) -> Self:
        """The same arrays, with kernels for another plan.

        States are the same, too, but for plans that say how states are stored.

        Raises
        ------
        ValueError
            If the plan is not legal.
        """
        other = copy.copy(self)
        other._load(plan)
        return other

    @abstractmethod
    def _load(self, plan: Any) -> None:
        """Take a plan: make its kernels, and the arrays that depend on it."""

    def zeros(self) -> Any:
        """A state of zeros."""
        return self.device.zeros(self.size, self.real)

    def upload(self, u: np.ndarray, unknowns: Convert = as_it_is) -> Any:
        """A state (fields, K, Np) on the device, which converts it, some elements at a time.

        Parameters
        ----------
        u : (fields, K, Np) array
        unknowns : function, optional
            What makes unknowns of u, if u is not the unknowns themselves.
        """
        state = self.zeros()
        flat = state.reshape(-1)
        for some in pieces(u.shape[1], PIECE):
            self._put(flat, some, unknowns(self.device.array(u[:, some])))
        return state

    def _put(self, state: Any, some: slice, values: Any) -> None:
        """Write values (fields, n, Np) of some elements to a flat state, both on the device.

        This is for launchers of which a `part` is a view, with elements in the mesh's order.
        """
        self.part(state, some)[...] = values

    @property
    def elements(self) -> np.ndarray:
        """The number of the element at each place of a state, (K,)."""
        return np.arange(self.operator.mesh.K)

    @cached_property
    def place(self) -> np.ndarray:
        """The place of each element in a state, (K,)."""
        return inverse_permutation(self.elements)

    @abstractmethod
    def part(self, states: Any, places: slice) -> Any:
        """States, flat (..., entries), at some places: (..., fields, places, Np) on the device."""

    def entries(self, elements: np.ndarray, nodes: np.ndarray) -> np.ndarray:
        """Where in a flat state the values are that belong to some nodes of some elements.

        Parameters
        ----------
        elements : (n,) ints
        nodes : (n, m) ints

        Returns
        -------
        (fields, n, m) ints

        Raises
        ------
        ValueError
            If these kernels know whole meshes only, and not parts with ghosts.
        """
        raise ValueError(
            f"{type(self).__name__} knows whole meshes only; allowed for a mesh in parts: "
            "path 'fused', whose kernel takes a stage at once"
        )

    def download(self, state: Any, nodal: Convert = as_it_is) -> np.ndarray:
        """A state of the device, which converts it, as a NumPy array (fields, K, Np).

        Parameters
        ----------
        state : array of the device
        nodal : function, optional
            What makes nodal values of unknowns, if unknowns are not what is asked for.
        """
        fields, _, Np = self.part(state.reshape(-1), slice(0, 1)).shape
        u = np.empty((fields, len(self.elements), Np), self.real)
        for values, elements in self.values(state, nodal):
            u[:, elements] = self.device.to_numpy(values)
        return u

    def values(self, state: Any, nodal: Convert = as_it_is) -> Iterator[tuple[Any, np.ndarray]]:
        """What `download` copies, on the device: (fields, m, Np) values of m elements at a time.

        Beside them stand the numbers of these elements, (m,).
        """
        flat, elements = state.reshape(-1), self.elements
        for places in pieces(len(elements), PIECE):
            values = self.part(flat, places).astype(self.real, copy=False)
            yield nodal(values), elements[places]

    def _on_device(
        self, integers: Mapping[str, np.ndarray], reals: Mapping[str, np.ndarray]
    ) -> dict[str, Any]:
        """Arrays by name, flat: unsigned integers of 32 bits, and real numbers."""
        groups = (integers, np.uint32), (reals, self.real)
        return {
            name: self._flat(values, dtype)
            for arrays, dtype in groups
            for name, values in arrays.items()
        }

    def _check_indices(self, largest: int) -> None:
        """Raise ValueError if 32 bits cannot number the entries of the largest array."""
        if largest >= MOST:
            raise ValueError(
                f"mesh.K = {self.operator.mesh.K} elements of this order need an array of "
                f"{largest} entries; allowed: less than {MOST}"
            )

    def _flat(self, values: np.ndarray, dtype: type) -> Any:
        return self.device.array(values.astype(dtype).ravel())


class EitherForm(Launcher):
    """Stages of low-storage methods, and of factored ones by another kernel.

    Attributes
    ----------
    factored : bool
        Whether stages are those of a factored method, see `dgbook.time.ndb14_factored`.
    """

    factored = False

    def with_factors(self) -> Self:
        """The same arrays, with the kernel for stages of a factored method."""
        other = copy.copy(self)
        other.factored = True
        other._load(self.plan)
        return other


class StageByOneKernel(Launcher):
    """A stage in one launch, on a state whose elements stand in an order of their own.

    Attributes
    ----------
    kernel : Kernel or CudaKernel
        The plan's.
    order : (K,)
        Which element stands at each place of a state: those that meet no ghosts come first.
    shape : the sizes that the kernel closes over
    """

    in_ranges = True

    kernel: Any
    order: np.ndarray
    shape: Any

    def _load(self, plan: Any) -> None:
        require_legal(plan, self.shape, self.device.compute_capability)
        self.plan = plan
        self.arrays = self.arrays | self._of_plan(plan)
        self.kernel = self._kernel(plan)

    def _of_plan(self, plan: Any) -> dict[str, Any]:
        """The arrays on the device that depend on a plan."""
        return {}

    @abstractmethod
    def _kernel(self, plan: Any) -> Any:
        """The plan's kernel."""

    @property
    def elements(self) -> np.ndarray:
        """The number of the element at each place of a state, (K,)."""
        return self.order

    @cached_property
    def interior(self) -> int:
        """How many elements meet no ghosts."""
        return int(np.count_nonzero(~self.operator.mesh.at_edge))

    def _range(self, some: str, elements: int) -> tuple[np.uint32, int]:
        """The first element and the number of blocks of a launch, with so many elements per block.

        A block that has elements of both kinds belongs to `EDGE`, and so does the last one, which
        may reach beyond own elements.
        """
        inside, end = self.interior // elements, -(-self.operator.mesh.owned // elements)
        first, last = {ALL: (0, end), INTERIOR: (0, inside), EDGE: (inside, end)}[some]
        return np.uint32(first * elements), last - first


class StageByKernels(Launcher):
    """A stage of low-storage Runge-Kutta in several launches: those of du/dt, and the update.

    Attributes
    ----------
    in_place : bool
        True: the update replaces the state.
    kernels : mapping
        By name, "update" among them.
    work : dict
        What kernels leave for each other, on the device; "du" is du/dt.
    update_threads : int
        Of a block.
    """

    in_place = True

    kernels: Mapping[str, Any]
    work: dict[str, Any]
    update_threads: int

    @abstractmethod
    def rhs(self, u: Any, data: Any, out: Any) -> None:
        """out = du/dt; `data` are g on the boundary, flat (fields nb Nfp,), one zero if nb = 0."""

    def update(self, u: Any, res: Any, a: float, b: float, dt: float) -> None:
        """res = a res + dt work["du"], u += b res."""
        blocks = -(-res.size // self.update_threads)
        scalars = (self.real(value) for value in (a, b, dt))
        self.kernels["update"][blocks, self.update_threads](self.work["du"], res, u, *scalars)

    def stage(self, u: Any, res: Any, new: Any, data: Any, a: float, b: float, dt: float) -> None:
        """res = a res + dt du/dt, new = u + b res; `new` is u."""
        self.rhs(u, data, self.work["du"])
        self.update(u, res, a, b, dt)
