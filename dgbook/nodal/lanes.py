"""Vectors of a processor core as values of Numba: one number for each of some elements.

Kernels for processor cores treat as many elements at a time as a vector register has numbers, its
*lanes*. What `load` returns is such a vector; sums, differences, products and quotients with
vectors and numbers are those of the lanes. The compiler has no loop to find and turn into vector
instructions, and nothing is reordered: results are the same bits in every run.
"""

from __future__ import annotations

import operator
from typing import Any

import llvmlite.binding
import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, lower_builtin, models, register_model, type_callable

_FEATURES = llvmlite.binding.get_host_cpu_features()
REGISTER_BYTES = 64 if _FEATURES.get("avx512f") else 32 if _FEATURES.get("avx2") else 16
"""Of a vector register of this processor."""
MANY_REGISTERS = not _FEATURES.get("sse2") or REGISTER_BYTES == 64
"""Whether there are 32 vector registers, or only the 16 that x86 has without AVX-512."""
MOST_ROWS = 12 if MANY_REGISTERS else 6
"""Rows of a product at a time: two vectors of sums for each, and room for factors."""
CACHE_LINE = 64
"""Bytes."""


def lanes(dtype: Any) -> int:
    """How many numbers of a type a vector has."""
    return REGISTER_BYTES // np.dtype(dtype).itemsize


class Vector(types.Type):
    """Numba's type of a vector of 32-bit or 64-bit real numbers."""

    def __init__(self, real: types.Float) -> None:
        self.real = real
        self.lanes = REGISTER_BYTES * 8 // real.bitwidth
        super().__init__(f"vector({real} x {self.lanes})")


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Vector) -> None:
        super().__init__(manager, kind, _llvm(kind))


def _llvm(kind: Vector) -> ir.VectorType:
    return ir.VectorType(_llvm_real(kind.real), kind.lanes)


def _llvm_real(real: types.Float) -> ir.Type:
    return ir.FloatType() if real.bitwidth == 32 else ir.DoubleType()


def _pointer(context: Any, builder: Any, kind: types.Array, array: Any, index: Any) -> Any:
    """Where a flat array has the entry with that index."""
    data = context.make_array(kind)(context, builder, array).data
    return builder.gep(data, [index], inbounds=True)


def _splat(builder: Any, number: Any, kind: ir.VectorType) -> Any:
    """A vector of which every lane has that number."""
    zero = ir.Constant(ir.IntType(32), 0)
    one = builder.insert_element(ir.Constant(kind, ir.Undefined), number, zero)
    mask = ir.Constant(ir.VectorType(ir.IntType(32), kind.count), [0] * kind.count)
    return builder.shuffle_vector(one, ir.Constant(kind, ir.Undefined), mask)


def _fma(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """The fused multiply-add a b + c, which rounds once."""
    name = "f32" if isinstance(a.type.element, ir.FloatType) else "f64"
    function = cgutils.get_or_insert_function(
        builder.module,
        ir.FunctionType(a.type, [a.type] * 3),
        f"llvm.fma.v{a.type.count}{name}",
    )
    return builder.call(function, [a, b, c])


@intrinsic
def load(typingctx, array, at):
    """The vector of the numbers of a flat array from the one with index `at`."""
    kind = Vector(array.dtype)

    def code(context, builder, signature, arguments):
        start = _pointer(context, builder, array, *arguments)
        vectors = builder.bitcast(start, _llvm(kind).as_pointer())
        return builder.load(vectors, align=array.dtype.bitwidth // 8)

    return kind(array, types.intp), code


@intrinsic
def store(typingctx, array, at, vector):
    """Write a vector to a flat array from the index `at` on."""
    if not isinstance(vector, Vector):
        return None

    def code(context, builder, signature, arguments):
        start = _pointer(context, builder, array, *arguments[:2])
        vectors = builder.bitcast(start, _llvm(vector).as_pointer())
        builder.store(arguments[2], vectors, align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.none(array, types.intp, vector), code


@intrinsic
def gather(typingctx, array, at, places, first):
    """The numbers ``array[at + places[first + lane]]`` of a flat array; `places` are uint32."""
    kind = Vector(array.dtype)

    def code(context, builder, signature, arguments):
        values, at, places, first = arguments
        result = ir.Constant(_llvm(kind), ir.Undefined)
        for lane in range(kind.lanes):
            index = builder.add(first, ir.Constant(first.type, lane))
            place = builder.load(_pointer(context, builder, signature.args[2], places, index))
            place = builder.add(at, builder.zext(place, at.type))
            number = builder.load(_pointer(context, builder, array, values, place))
            result = builder.insert_element(result, number, ir.Constant(ir.IntType(32), lane))
        return result

    return kind(array, types.intp, places, types.intp), code


def _arithmetic(function: Any, instruction: str) -> None:
    """Teach Numba an operator between vectors, and between vectors and numbers.

    A product and a sum may become one instruction, which rounds once.
    """

    @type_callable(function)
    def typed(context):
        def kind(a, b):
            vectors = [v for v in (a, b) if isinstance(v, Vector)]
            if vectors and all(isinstance(v, Vector | types.Number) for v in (a, b)):
                return vectors[0]
            return None

        return kind

    def code(context, builder, signature, arguments):
        kind = signature.return_type
        both = []
        for given, value in zip(signature.args, arguments, strict=True):
            if not isinstance(given, Vector):
                value = context.cast(builder, value, given, kind.real)
                value = _splat(builder, value, _llvm(kind))
            both.append(value)
        return getattr(builder, instruction)(*both, flags=("contract",))

    for kinds in ((Vector, Vector), (Vector, types.Number), (types.Number, Vector)):
        lower_builtin(function, *kinds)(code)


for _function, _instruction in (
    (operator.add, "fadd"),
    (operator.sub, "fsub"),
    (operator.mul, "fmul"),
    (operator.truediv, "fdiv"),
):
    _arithmetic(_function, _instruction)


@type_callable(operator.neg)
def _type_negative(context):
    return lambda a: a if isinstance(a, Vector) else None


@lower_builtin(operator.neg, Vector)
def _negative(context, builder, signature, arguments):
    return builder.fneg(*arguments)


def _make_tile(columns: int, subtract: bool) -> Any:
    """An intrinsic for some rows of a product, with all sums in registers: see `product`.

    For each number of rows there is a loop over the products' terms, straight-line code of one
    fused multiply-add for each row and vector. A term of a row is a number that all lanes share.
    """

    @intrinsic
    def tile(
        typingctx, rows, width, first, a, of, less, x, at, other, apart, out, to, between, add
    ):
        kind, size = Vector(out.dtype), out.dtype.bitwidth // 8
        kinds = dict.fromkeys(range(14), types.intp) | {3: a, 6: x, 10: out, 13: types.boolean}

        def code(context, builder, signature, arguments):
            rows, width, first, a, of, less, x, at, other, apart, out, to, between, add = arguments
            vector, index, function = _llvm(kind), rows.type, builder.function

            def number(n):
                return ir.Constant(index, n)

            def vector_at(array, n, place):
                start = _pointer(context, builder, kinds[n], array, place)
                return builder.bitcast(start, vector.as_pointer())

            def block(name):
                return function.append_basic_block(name)

            done, nowhere = block("done"), block("nowhere")
            switch = builder.switch(rows, nowhere)
            for R in range(1, MOST_ROWS + 1):
                begin, before, loop, end = map(block, ("begin", "before", "loop", "end"))
                switch.add_case(number(R), begin)
                # Sums begin with zero, or with what is there.
                builder.position_at_end(begin)
                places = [
                    builder.add(
                        builder.add(to, builder.mul(number(c), between)),
                        builder.mul(builder.add(first, number(r)), number(kind.lanes)),
                    )
                    for r in range(R)
                    for c in range(columns)
                ]
                entry = builder.mul(first, width)
                builder.cbranch(add, before, loop)
                builder.position_at_end(before)
                there = [builder.load(vector_at(out, 10, p), align=size) for p in places]
                builder.branch(loop)
                builder.position_at_end(loop)
                m = builder.phi(index)
                sums = [builder.phi(vector) for _ in places]
                for way in (begin, before):
                    m.add_incoming(number(0), way)
                for phi, value in zip(sums, there, strict=True):
                    phi.add_incoming(ir.Constant(vector, [0.0] * kind.lanes), begin)
                    phi.add_incoming(value, before)
                # A column of the matrix times a row of vectors.
                new = list(sums)
                column = builder.add(entry, builder.mul(m, number(R)))
                terms = [(of, at, False)] + [(less, other, True)] * subtract
                for matrix, start, minus in terms:
                    row = builder.add(start, builder.mul(m, number(kind.lanes)))
                    vectors = []
                    for c in range(columns):
                        place = builder.add(row, builder.mul(number(c), apart))
                        vectors.append(builder.load(vector_at(x, 6, place), align=size))
                    for r in range(R):
                        place = builder.add(matrix, builder.add(column, number(r)))
                        factor = builder.load(_pointer(context, builder, kinds[3], a, place))
                        factor = _splat(builder, builder.fneg(factor) if minus else factor, vector)
                        for c in range(columns):
                            s = r * columns + c
                            new[s] = _fma(builder, factor, vectors[c], new[s])
                following = builder.add(m, number(1))
                m.add_incoming(following, loop)
                for phi, value in zip(sums, new, strict=True):
                    phi.add_incoming(value, loop)
                builder.cbranch(builder.icmp_signed("<", following, width), loop, end)
                builder.position_at_end(end)
                for value, place in zip(new, places, strict=True):
                    builder.store(value, vector_at(out, 10, place), align=size)
                builder.branch(done)
            builder.position_at_end(nowhere)
            builder.unreachable()
            builder.position_at_end(done)
            return context.get_dummy_value()

        return types.none(*kinds.values()), code

    return tile


_tile_1 = _make_tile(1, subtract=False)
_tile_2 = _make_tile(2, subtract=False)
_tile_2_less = _make_tile(2, subtract=True)


@numba.njit
def product(rows, height, width, a, of, x, at, out, to, add):
    """A matrix times a column of vectors: out = A x, or out += A x where `add` is true.

    Parameters
    ----------
    rows : int
        `rows_together` of the matrix.
    height, width : int
        Its rows and columns.
    a, of : array, int
        Matrices as `by_rows` has them, and where this one begins.
    x, at : array, int
        And where the first of `width` vectors begins that follow each other.
    out, to : array, int
        The same of the `height` vectors of the product.
    add : bool
    """
    for first in range(0, height, rows):
        _tile_1(rows, width, first, a, of, 0, x, at, 0, 0, out, to, 0, add)


@numba.njit
def product_of_two(rows, height, width, a, of, x, at, apart, out, to, between, add):
    """`product` with two columns at once, which begin `apart`; those of `out` do `between`."""
    for first in range(0, height, rows):
        _tile_2(rows, width, first, a, of, 0, x, at, 0, apart, out, to, between, add)


@numba.njit
def difference_of_two(rows, height, width, a, of, less, x, at, other, apart, out, to, between):
    """out = A x - B y with two columns at once.

    A begins at `of` and B at `less` in a, the first of the columns x at `at` and that of the
    columns y at `other` in x.
    """
    for first in range(0, height, rows):
        _tile_2_less(rows, width, first, a, of, less, x, at, other, apart, out, to, between, False)


def rows_together(rows: int) -> int:
    """The largest divisor of a number of rows that is at most `MOST_ROWS`."""
    return max(r for r in range(1, MOST_ROWS + 1) if rows % r == 0)


def by_rows(matrix: np.ndarray) -> np.ndarray:
    """A matrix (rows, columns) in the order in which `product` reads it, flat."""
    rows, columns = matrix.shape
    together = rows_together(rows)
    return np.ascontiguousarray(matrix.reshape(-1, together, columns).swapaxes(1, 2)).ravel()


@numba.njit
def room(like, count):
    """Working memory for so many numbers of the type of `like`, from a line of the cache on."""
    spare = CACHE_LINE // like.itemsize
    memory = np.empty(count + spare, like.dtype)
    first = -memory.ctypes.data % CACHE_LINE // like.itemsize
    return memory[first : first + count]
