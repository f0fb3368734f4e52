"""What is measured of the product with a trace matrix: all methods and libraries, by order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from dgbook.gpu import Device
from dgbook.gpu.libraries import random_numbers
from dgbook.gpu.plan import choose
from dgbook.gpu.timing import measure
from dgbook.gpu.tune import Result, tune
from dgbook.hdg.blocks import BlockMatrix, face_columns, face_nodes, random_matrix
from dgbook.hdg.cost import contract_cost, csr_cost, inflate_cost, matrix_bytes, product_cost
from dgbook.hdg.exact import cylinder_mesh
from dgbook.hdg.launch import CoreProduct, Product, shape_of
from dgbook.hdg.plan import METHODS, Plan, Shape
from dgbook.hdg.problem import FarField, NavierStokes, Stream
from dgbook.hdg.system import assemble
from dgbook.lab.hdg_solve import solve_rows
from dgbook.lab.measuring import Rows, Sweep, all_cores, on_cores
from dgbook.lab.rivals.hdg import Rival
from dgbook.lab.session import Session, Subject
from dgbook.mesh import Mesh, box

COMPONENTS = {2: 4, 3: 5}
"""Of compressible flow, by dimension."""
LIBRARIES = ("csr", "bsr", "gemv")
FASTEST = ("wide", "bulk")
PAPER_ORDERS = range(1, 6)
PAPER_GRID = (62, 40.0, 63)
"""Edges around a cylinder, the outer radius, and layers: 11,780 faces, as many as the paper has."""
REYNOLDS, MACH = 20.0, 0.1
CORE_ORDERS = (1, 2, 3, 5, 10)
MEBIBYTES = (10, 20, 50, 100, 200, 500)
"""Sizes of Figures 2 to 4, whose axis ends at 500 in double precision."""
SAME = 1e3
"""Roundings by which results may differ, for sums of up to some thousand products."""


# ---------------------------------------------------------------------------------------- matrices


def mesh_of(dim: int, faces: float) -> Mesh:
    """A square or a cube cut into simplices with about so many faces."""
    cells = (faces / 3) ** (1 / 2) if dim == 2 else (faces / 12) ** (1 / 3)
    return box((max(1, round(cells)),) * dim)


@lru_cache(maxsize=2)
def columns_of(dim: int, faces: float) -> np.ndarray:
    """The columns of the blocks of such a mesh."""
    return face_columns(mesh_of(dim, faces))


def matrix_on(
    device: Device, dim: int, n_c: int, order: int, dtype: str, nbytes: float
) -> BlockMatrix:
    """A random matrix of about so many bytes with the blocks of a real mesh, made on a GPU."""
    shape = Shape(n_c * face_nodes(dim, order), 2 * dim + 1, dtype)
    columns = columns_of(dim, nbytes / matrix_bytes(shape, 1))
    values = random_numbers((*columns.shape, shape.m, shape.m), dtype, seed=1)
    filling = columns == columns[:, :1]
    filling[:, 0] = False
    values[device.array(filling)] = 0
    return BlockMatrix(values, columns)


def matrices(
    sweep: Sweep, sizes: Iterable[float], device: Device
) -> Iterator[tuple[int, BlockMatrix]]:
    """Orders and matrices of compressible flow, see `matrix_on`, of every size in bytes."""
    for dim, order, dtype in sweep.points():
        for nbytes in sizes:
            yield order, matrix_on(device, dim, COMPONENTS[dim], order, dtype, nbytes)


def flow_matrix(order: int, dtype: str) -> BlockMatrix:
    """A Newton system of the laminar flow past a cylinder, with the paper's 11,780 faces.

    The first one, at the uniform stream.
    """
    return _flow_system(order).astype(dtype)


@lru_cache(maxsize=1)
def _flow_system(order: int) -> BlockMatrix:
    boundary = {"cylinder": "adiabatic", "farfield": FarField(Stream(MACH))}
    problem = NavierStokes(REYNOLDS, MACH, boundary)
    return assemble(problem, cylinder_mesh(*PAPER_GRID), order, device="auto").matrix


# -------------------------------------------------------------------------------------------- rows


def subject_of(shape: Shape, faces: int, order: int) -> Subject:
    """What the rows about products with a matrix share."""
    size = {
        "dim": (shape.blocks - 1) // 2,
        "m": shape.m,
        "faces": faces,
        "matrix_bytes": matrix_bytes(shape, faces),
    }
    return Subject(order, shape.dtype, size, faces * shape.m)


def language(method: str) -> str:
    """In which a method's kernels are written."""
    return "cuda" if method in ("wide", "bulk") else "numba"


def checked(
    product: Callable[[Any, Any], None], x: Any, right: Any, what: str
) -> tuple[Any, float]:
    """The product once, and the largest difference from another's result over its largest number.

    Raises
    ------
    RuntimeError
        If they are not the same to rounding: then its time is worth nothing.
    """
    y = right * np.nan
    product(x, y)
    difference = float(abs(y - right).max() / abs(right).max())
    if not difference < SAME * np.finfo(right.dtype).eps:
        raise RuntimeError(f"{what}: the result differs by {difference:.2e} from Algorithm 2's")
    return y, difference


def vectors(product: Any) -> tuple[Any, Any]:
    """A random x, and y for a product."""
    x = np.random.default_rng(2).uniform(-1, 1, (product.faces, product.shape.m))
    return product.upload(x), product.zeros()


def matrix_rows(
    matrix: BlockMatrix,
    order: int,
    methods: Iterable[str],
    rivals: Iterable[str],
    session: Session,
) -> Rows:
    """All methods and libraries with one matrix, and the paper's two steps by themselves.

    Every result is compared with that of the paper's Algorithm 2.
    """
    shape, faces = shape_of(matrix), matrix.faces
    device, subject = session.device, subject_of(shape, faces, order)
    first = Product(matrix, device, choose(Plan, shape, device, "paper"))
    x, right = vectors(first)
    first(x, right)
    for path, step, cost in (
        ("paper:inflate", partial(first.inflate, x), inflate_cost(shape, faces)),
        ("paper:contract", partial(first.contract, right), contract_cost(shape, faces)),
    ):
        timing = measure(step, device)
        yield session.row(subject, path, "numba", first.plan, cost, timing)
    del first
    for method in methods:
        plan = choose(Plan, shape, device, method)
        if plan.illegal(shape, device.compute_capability):
            continue
        product = Product(matrix, device, plan)
        y, error = checked(product, x, right, method)
        timing = measure(partial(product, x, y), device)
        cost = product_cost(shape, faces)
        if method == "paper":
            cost = inflate_cost(shape, faces) + contract_cost(shape, faces)
        row = session.row(subject, method, language(method), plan, cost, timing)
        yield {"error": error} | row
        del product
    for name in rivals:
        rival = Rival(matrix, device, name)
        y, error = checked(rival, x, right, name)
        timing = measure(partial(rival, x, y), device)
        cost = product_cost(shape, faces)
        row = session.row(subject, f"rival:{name}", "library", None, cost, timing)
        yield {"error": error} | row
        del rival


def product_rows(sweep: Sweep, session: Session) -> Rows:
    """Matrices of so many bytes, beyond any cache: triangles and tetrahedra, every order."""
    for order, matrix in matrices(sweep, (sweep.nbytes,), session.device):
        yield from matrix_rows(matrix, order, METHODS, LIBRARIES, session)


def size_rows(sweep: Sweep, session: Session) -> Rows:
    """Figures 2 to 4, the GPU's part: the paper's contraction and the best product by memory.

    Sizes up to 500 MiB, and `sweep.nbytes`: the smaller ones fit into this GPU's cache.
    """
    sizes = (*(count * 2**20 for count in MEBIBYTES), sweep.nbytes)
    for order, matrix in matrices(sweep, sizes, session.device):
        yield from matrix_rows(matrix, order, FASTEST, (), session)


def core_rows(sweep: Sweep, session: Session) -> Rows:
    """Figures 2 to 4, the CPU's part: Algorithm 1 on a core and on all. A floor is the GPU's.

    Orders of `CORE_ORDERS` only, and every other size: on a core they take their time.
    """
    for dim, order, dtype in sweep.limited(CORE_ORDERS).points():
        nodes = COMPONENTS[dim] * face_nodes(dim, order)
        for count in MEBIBYTES[::2]:
            faces = count * 2**20 / matrix_bytes(Shape(nodes, 2 * dim + 1, dtype), 1)
            mesh = mesh_of(dim, faces)
            random = np.random.default_rng(1)
            matrix = random_matrix(mesh, COMPONENTS[dim], order, dtype, random)
            yield from contraction_on_cores(matrix, order, session)


def contraction_on_cores(matrix: BlockMatrix, order: int, session: Session) -> Rows:
    """Algorithm 1 on one core, as the paper's compiler had it and as fast as ours can; on all."""
    host, shape = session.on_host, shape_of(matrix)
    x = np.random.default_rng(2).uniform(-1, 1, (matrix.faces, matrix.m)).astype(matrix.dtype)
    y = np.empty_like(x)
    for path, cores, fast in (
        ("cores:in order", 1, False),
        ("cores:one", 1, True),
        ("cores:all", all_cores(), True),
    ):
        with on_cores(cores):
            product = CoreProduct(matrix, cores > 1, fast)
            product.inflate(x)
            timing = measure(partial(product.contract, y), host.device)
        cost = contract_cost(shape, matrix.faces)
        subject = subject_of(shape, matrix.faces, order).sized(cores=cores)
        yield host.row(subject, path, "numba", None, cost, timing)


def table_rows(sweep: Sweep, session: Session) -> Rows:
    """Tables 2 and 3, and what Table 1 counts: the paper's five matrices, the first within a cache.

    Orders of the paper's table only, and triangles whatever the sweep's dimensions: the paper's
    mesh has its own size, too.
    """
    host = session.on_host
    triangles = replace(sweep.limited(PAPER_ORDERS), dims=(2,))
    for _, order, dtype in triangles.points():
        matrix = flow_matrix(order, dtype)
        scipy = Rival(matrix, host.device, "scipy")
        nonzeros = int(matrix.to_csr().nnz)
        for row in matrix_rows(matrix, order, METHODS, LIBRARIES, session):
            yield row | {"nonzeros": nonzeros}
        x, y = vectors(scipy)
        cost = csr_cost(nonzeros, matrix.shape[0], matrix.dtype.itemsize)
        timing = measure(partial(scipy, x, y), host.device)
        subject = subject_of(scipy.shape, matrix.faces, order)
        row = host.row(subject, "rival:scipy", "library", None, cost, timing)
        yield {"nonzeros": nonzeros} | row


# ------------------------------------------------------------------------------------------ tuning


def tune_product(matrix: BlockMatrix, method: str, device: Device) -> Result:
    """Time the plans of a method and remember the fastest; the matrix is stored once for all."""
    shape = shape_of(matrix)
    start = Plan.default(shape, device.compute_capability, method)
    product = Product(matrix, device, start)
    x, y = vectors(product)
    return tune(
        start.subject(shape),
        start.candidates(shape, device.compute_capability),
        lambda plan: partial(product.planned(plan), x, y),
        device,
        shape.order,
        shape.dtype,
    )


def runs(method: str, shape: Shape, device: Device) -> bool:
    """Whether a device has what a method needs."""
    plan = Plan.default(shape, device.compute_capability, method)
    return not plan.illegal(shape, device.compute_capability)


RECORDS = {
    "product": product_rows,
    "solve": solve_rows,
    "tables": table_rows,
    "sizes": size_rows,
    "cores": core_rows,
}
