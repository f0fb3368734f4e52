"""Meshes and polynomials on which the hybridized method is tested."""

import itertools
from typing import ClassVar

import numpy as np

from dgbook.gpu import Device
from dgbook.mesh import Mesh, box, build, face_vertices


def scrambled(cells: tuple[int, ...], random: np.random.Generator) -> Mesh:
    """An irregular box [0, 1]^d with named sides, whose faces meet in all ways and orders."""
    mesh = box(cells)
    faces = {
        name: mesh.elements[f[:, :1], face_vertices(mesh.dim)[f[:, 1]]]
        for name, f in mesh.boundary.items()
    }
    elements = random.permuted(random.permutation(mesh.elements), axis=1)
    inside = ((mesh.vertices > 0) & (mesh.vertices < 1)).all(axis=1)
    moved = random.uniform(-0.15, 0.15, mesh.vertices.shape) / max(cells) * inside[:, None]
    return build(mesh.vertices + moved, elements, faces, reorient=True)


class Polynomial:
    """A random polynomial of total degree `degree` in `dim` variables, with its derivatives."""

    def __init__(self, dim: int, degree: int, random: np.random.Generator) -> None:
        powers = itertools.product(range(degree + 1), repeat=dim)
        self.terms = [(random.uniform(-1, 1), p) for p in powers if sum(p) <= degree]

    def __call__(self, *x):
        return sum(c * np.prod([v**n for v, n in zip(x, p, strict=True)], axis=0)
                   for c, p in self.terms)  # fmt: skip

    def derivative(self, axis: int) -> "Polynomial":
        other = object.__new__(Polynomial)
        other.terms = []
        for c, p in self.terms:
            lower = list(p)
            lower[axis] -= 1
            other.terms.append((c * p[axis], tuple(lower)) if p[axis] else (0.0, p))
        return other

    def gradient(self, *x):
        return np.stack([self.derivative(axis)(*x) for axis in range(len(x))])

    def laplacian(self, *x):
        return sum(self.derivative(axis).derivative(axis)(*x) for axis in range(len(x)))


class Alien(np.lib.mixins.NDArrayOperatorsMixin):
    """An array that is not NumPy's and does not mix with those, as a GPU's: for want of a GPU.

    NumPy's functions reach it through their protocols; NumPy's arrays beside it are an error.
    """

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    @staticmethod
    def inside(thing):
        if isinstance(thing, Alien):
            return thing.values
        if isinstance(thing, list | tuple):
            return type(thing)(Alien.inside(part) for part in thing)
        assert not (isinstance(thing, np.ndarray) and thing.ndim), "an array of the host"
        return thing

    @staticmethod
    def wrapped(thing):
        if isinstance(thing, list | tuple):
            return type(thing)(Alien.wrapped(part) for part in thing)
        return Alien(thing) if isinstance(thing, np.ndarray) else thing

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **options):
        if out is not None:
            options["out"] = tuple(Alien.inside(part) for part in out)
        return Alien.wrapped(getattr(ufunc, method)(*Alien.inside(inputs), **options))

    def __array_function__(self, function, types, args, options):
        if function is np.asarray:  # moves what is the host's
            return Alien(np.array(args[0]))
        options = {name: Alien.inside(value) for name, value in options.items()}
        return Alien.wrapped(function(*Alien.inside(args), **options))

    def __getitem__(self, index):
        return Alien.wrapped(self.values[Alien.inside(index)])

    def __setitem__(self, index, value):
        self.values[Alien.inside(index)] = Alien.inside(value)

    def __getattr__(self, name):
        attribute = getattr(self.values, name)
        if not callable(attribute):
            return Alien.wrapped(attribute)
        return lambda *args, **options: Alien.wrapped(attribute(*Alien.inside(args), **options))

    def __len__(self):
        return len(self.values)


class AlienDevice(Device):
    """A device whose arrays are aliens; the methods are what solvers ask of a GPU's.

    ``fetched`` are the sizes of all arrays that came to the host.
    """

    fetched: ClassVar[list[int]] = []

    def array(self, values):
        return Alien(np.array(values))

    def to_numpy(self, array):
        self.fetched.append(array.size)
        return array.values.copy()

    def zeros(self, shape, dtype):
        return Alien(np.zeros(shape, dtype))

    def synchronize(self):
        """There is nothing to wait for."""
