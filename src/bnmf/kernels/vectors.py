"""Vectors of eight numbers, for the few loops that the compiler does not vectorise well.

The compiler guards a loop over arrays of unknown length and aliasing with checks that cost more than the loop itself
for K around 20. Here vector operations are spelled out, for any processor.

There are three kinds of vector: 64-bit floats, 64-bit words, and masks. Operators act lane by lane. Each operation is
written twice: in NumPy, which says what it means and is what runs if the compiler is disabled, and as LLVM code.
"""

import inspect
import operator
from functools import update_wrapper
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import config, errors, extending, types
from numba.core.typing.templates import ConcreteTemplate, infer_global, signature
from numba.extending import lower_builtin, models, register_model

from bnmf.kernels.processor import WIDTH

_DOUBLE = ir.DoubleType()
_INT, _WORD = ir.IntType(32), ir.IntType(64)
_VECTOR = ir.VectorType(_DOUBLE, WIDTH)
_WORDS = ir.VectorType(_WORD, WIDTH)
_MASK = ir.VectorType(ir.IntType(1), WIDTH)


# --- types and operators


class Vector(types.Type):
    """Numba type of a vector."""

    def __init__(self, name, lowered):
        super().__init__(name=f"{name}{WIDTH}")
        self.lowered = lowered


vector, words, mask = Vector("Vector", _VECTOR), Vector("Words", _WORDS), Vector("Mask", _MASK)


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, kind.lowered)


def _register_operator(which, instruction, *kinds, result=None):
    """Compile an operator on two vectors of the same kind to an instruction."""

    def generate(context, builder, signature, args):
        return instruction(builder, *args)

    @infer_global(which)
    class _Typing(ConcreteTemplate):
        cases = tuple(signature(result or kind, kind, kind) for kind in kinds)

    for kind in kinds:
        lower_builtin(which, kind, kind)(generate)


def _comparison(sign):
    return lambda builder, x, y: builder.fcmp_ordered(sign, x, y)


_register_operator(operator.add, ir.IRBuilder.fadd, vector)
_register_operator(operator.sub, ir.IRBuilder.fsub, vector)
_register_operator(operator.mul, ir.IRBuilder.fmul, vector)
_register_operator(operator.truediv, ir.IRBuilder.fdiv, vector)
_register_operator(operator.gt, _comparison(">"), vector, result=mask)
_register_operator(operator.ge, _comparison(">="), vector, result=mask)
_register_operator(operator.lt, _comparison("<"), vector, result=mask)
_register_operator(operator.add, ir.IRBuilder.add, words)
_register_operator(operator.lshift, ir.IRBuilder.shl, words)
_register_operator(operator.rshift, ir.IRBuilder.lshr, words)
_register_operator(operator.xor, ir.IRBuilder.xor, words)
_register_operator(operator.and_, ir.IRBuilder.and_, words, mask)
_register_operator(operator.or_, ir.IRBuilder.or_, words, mask)


# --- tools to define operations


def _compiled_by(typing, *, prefer_literal=False):
    """Return a decorator that compiles an operation by `typing`, an intrinsic of Numba, unless the JIT is disabled.

    The decorated function is what the operation means; it stays available as ``operation.__wrapped__``.
    """

    def decorate(meaning):
        if config.DISABLE_JIT:  # type: ignore[attr-defined]
            return meaning
        # Callers omit the typing context, the first argument of an intrinsic, which a type checker cannot know.
        operation: Any = extending.intrinsic(prefer_literal=prefer_literal)(typing)
        return update_wrapper(operation, meaning)

    return decorate


def _elements_of(array, *dtypes):
    """Return the element type of a pointer or of a C-contiguous array; anything else is a typing error."""
    if isinstance(array, types.CPointer) or (isinstance(array, types.Array) and array.layout == "C" and array.aligned):
        dtype = array.dtype
    else:
        raise errors.TypingError(f"vectors are loaded from pointers and C-contiguous arrays, got {array}")
    if dtypes and dtype not in dtypes:
        raise errors.TypingError(f"expected elements of type {' or '.join(map(str, dtypes))}, got {array}")
    return dtype


def _vector_of(array):
    """Return the kind of vector that is loaded from an array of floats or words."""
    return vector if _elements_of(array, types.float64, types.uint64) == types.float64 else words


def _address(context, builder, kind, array, index):
    """Return the address of an element of an array or pointer."""
    data = array if isinstance(kind, types.CPointer) else context.make_array(kind)(context, builder, array).data
    return builder.gep(data, [index], source_etype=context.get_data_type(kind.dtype))


def _load(builder, address, kind):
    """Load a number, or a vector that need not be aligned."""
    return builder.load(address, align=8, typ=kind)


def _store(builder, value, address):
    """Store a vector that need not be aligned."""
    if not address.type.is_opaque:  # Numba still gives pointers a type, and a store checks it
        address = builder.bitcast(address, value.type.as_pointer())
    builder.store(value, address, align=8)


def _broadcast(builder, number, width=WIDTH):
    undefined = ir.Constant(ir.VectorType(number.type, width), ir.Undefined)
    first = builder.insert_element(undefined, number, ir.Constant(_INT, 0))
    return builder.shuffle_vector(first, undefined, _int_vector([0] * width))


def _int_vector(numbers):
    """Return a constant vector of integers."""
    return ir.Constant(ir.VectorType(_INT, len(numbers)), list(numbers))


def _add_product(builder, x, y, z):
    return _call_llvm(builder, f"llvm.fmuladd.v{x.type.count}f64", x.type, [y, z, x])


def _call_llvm(builder, name, result, args, **flags):
    """Call an LLVM intrinsic by name."""
    kind = ir.FunctionType(result, [arg.type for arg in args])
    function = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
    return builder.call(function, args, **flags)


def _lanewise(result, *arguments):
    """Return a decorator for the code of an operation with vectors as arguments and result."""

    def decorate(code):
        def generate(context, builder, signature, args):
            return code(builder, *args)

        def type_operation(typing, *given):
            return (result(*arguments), generate) if given == arguments else None

        names = ["typing", *(f"x{i}" for i in range(len(arguments)))]  # Numba reads them
        parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names]
        type_operation.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return type_operation

    return decorate


# --- memory


def _type_pointer_at(typing, array, index):
    def generate(context, builder, signature, args):
        return _address(context, builder, signature.args[0], *args)

    return types.CPointer(_elements_of(array))(array, types.intp), generate


@_compiled_by(_type_pointer_at)
def pointer_at(array, index):
    """Return a pointer to element `index` of a C-contiguous array or pointer; it is indexed like an array.

    Passing an array to a function costs reference counting even if the function is inlined; passing a pointer does not.
    A pointer does not keep its array alive, so it is only made of arrays that the caller of a kernel passes.
    """
    return array.reshape(-1)[index:]


def _type_load(typing, array, index):
    def generate(context, builder, signature, args):
        return _load(builder, _address(context, builder, signature.args[0], *args), signature.return_type.lowered)

    return _vector_of(array)(array, types.intp), generate


@_compiled_by(_type_load)
def load(array, index):
    """Return the vector that starts at element `index`. Here and below, `array` may also be a pointer."""
    return array.reshape(-1)[index : index + WIDTH].copy()


def _type_store(typing, array, index, value):
    def generate(context, builder, signature, args):
        _store(builder, args[2], _address(context, builder, signature.args[0], *args[:2]))
        return context.get_dummy_value()

    return types.void(array, types.intp, _vector_of(array)), generate


@_compiled_by(_type_store)
def store(array, index, value):
    """Write a vector to elements `index` to `index + WIDTH`."""
    array.reshape(-1)[index : index + WIDTH] = value


def _type_load_broadcast(typing, array, index):
    def generate(context, builder, signature, args):
        return _broadcast(builder, _load(builder, _address(context, builder, signature.args[0], *args), _DOUBLE))

    _elements_of(array, types.float64)
    return vector(array, types.intp), generate


@_compiled_by(_type_load_broadcast)
def load_broadcast(array, index):
    """Return a vector with element `index` in every lane; the index must not be negative."""
    return np.full(WIDTH, array.reshape(-1)[index])


def _type_gather_pairs(typing, table, index):
    def generate(context, builder, signature, args):
        pairs = []
        for lane in range(WIDTH):
            offset = builder.shl(builder.extract_element(args[1], ir.Constant(_INT, lane)), ir.Constant(_WORD, 1))
            address = _address(context, builder, signature.args[0], args[0], offset)
            pairs.append(_load(builder, address, ir.VectorType(_DOUBLE, 2)))
        even, odd = _concatenate(builder, pairs[::2]), _concatenate(builder, pairs[1::2])
        # `even` holds the pairs of even lanes and `odd` those of odd lanes: first, second, first, second, ...
        columns = []
        for column in range(2):
            order = [x for i in range(column, WIDTH, 2) for x in (i, WIDTH + i)]
            columns.append(builder.shuffle_vector(even, odd, _int_vector(order)))
        return context.make_tuple(builder, signature.return_type, columns)

    _elements_of(table, types.float64)
    return types.UniTuple(vector, 2)(table, words), generate


@_compiled_by(_type_gather_pairs)
def gather_pairs(table, index):
    """Return both columns of a two-column table, each lane from the row given by its index.

    Each row is one load. Combining the loads with shuffles is faster than the gather instruction of many processors.
    """
    return table[index, 0], table[index, 1]


def _concatenate(builder, parts):
    """Return the concatenation of vectors of the same length; their number is a power of two."""
    while len(parts) > 1:
        order = _int_vector(range(2 * parts[0].type.count))
        parts = [builder.shuffle_vector(x, y, order) for x, y in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


def _type_prefetch(typing, array, index):
    def generate(context, builder, signature, args):
        hints = [ir.Constant(_INT, x) for x in (0, 3, 1)]  # read, high temporal locality, data cache
        address = _address(context, builder, signature.args[0], *args)
        _call_llvm(builder, "llvm.prefetch.p0", ir.VoidType(), [address, *hints])
        return context.get_dummy_value()

    _elements_of(array)
    return types.void(array, types.intp), generate


@_compiled_by(_type_prefetch)
def prefetch(array, index):
    """Prefetch the cache line that holds element `index`."""


# --- lane by lane


def _type_broadcast(typing, number):
    def generate(context, builder, signature, args):
        return _broadcast(builder, args[0])

    return (words(number) if number == types.uint64 else vector(types.float64)), generate


@_compiled_by(_type_broadcast)
def broadcast(number):
    """Return a vector with the same number or word in every lane."""
    return np.full(WIDTH, number, np.uint64 if isinstance(number, np.uint64) else np.float64)


@_compiled_by(_lanewise(vector, vector, vector, vector)(_add_product))
def add_product(x, y, z):
    """Return x + y z, rounded once if the processor can multiply and add in one instruction, and twice otherwise."""
    return x + y * z


@_compiled_by(_lanewise(vector, vector)(lambda b, x: _call_llvm(b, f"llvm.sqrt.v{WIDTH}f64", _VECTOR, [x])))
def square_root(x):
    """Return the square root."""
    return np.sqrt(x)


@_compiled_by(_lanewise(vector, vector)(lambda b, x: _call_llvm(b, f"llvm.fabs.v{WIDTH}f64", _VECTOR, [x])))
def absolute(x):
    """Return |x|."""
    return np.abs(x)


@_compiled_by(
    _lanewise(vector, vector, vector)(lambda b, x, y: _call_llvm(b, f"llvm.maxnum.v{WIDTH}f64", _VECTOR, [x, y]))
)
def larger(x, y):
    """Return the larger of x and y, or the other one if one is no number."""
    return np.fmax(x, y)


@_compiled_by(_lanewise(vector, words)(lambda b, x: b.sitofp(x, _VECTOR)))
def to_floats(x):
    """Convert words, read as signed integers, to floats."""
    return x.astype(np.int64).astype(np.float64)


def _type_select(typing, where, x, y):
    def generate(context, builder, signature, args):
        return builder.select(*args)

    return x(mask, x, x), generate


@_compiled_by(_type_select)
def select(where, x, y):
    """Return x in the lanes where the mask is set, and y in the others."""
    return np.where(where, x, y)


def _type_extract_lane(typing, x, lane):
    def generate(context, builder, signature, args):
        return builder.extract_element(*args)

    return (types.uint64 if x == words else types.float64)(x, types.intp), generate


@_compiled_by(_type_extract_lane)
def extract_lane(x, lane):
    """Return the number or word in one lane."""
    return x[lane]


def _type_insert_lane(typing, x, lane, value):
    def generate(context, builder, signature, args):
        vector, lane, value = args
        return builder.insert_element(vector, value, lane)

    return x(x, types.intp, types.uint64 if x == words else types.float64), generate


@_compiled_by(_type_insert_lane)
def insert_lane(x, lane, value):
    """Return a copy of the vector with the number or word in one lane replaced."""
    changed = x.copy()
    changed[lane] = value
    return changed


# --- masks as bits


@_compiled_by(_lanewise(types.uint64, mask)(lambda b, x: b.zext(b.bitcast(x, ir.IntType(WIDTH)), _WORD)))
def mask_to_bits(where):
    """Return a mask as an integer, one bit per lane, lane 0 in the lowest bit."""
    return np.uint64(sum(1 << lane for lane in range(WIDTH) if where[lane]))


@_compiled_by(_lanewise(mask, types.uint64)(lambda b, x: b.bitcast(b.trunc(x, ir.IntType(WIDTH)), _MASK)))
def bits_to_mask(bits):
    """Return the mask with these bits: the inverse of `mask_to_bits`."""
    return np.array([int(bits) >> lane & 1 == 1 for lane in range(WIDTH)])


# --- eight vectors at a time


def _exchange(builder, rows, distance):
    """Exchange the off-diagonal submatrices of size `distance`: one step of a recursive transposition."""
    upper_order, lower_order = [], []
    for i in range(WIDTH):
        is_upper = i & distance == 0
        upper_order.append(i if is_upper else WIDTH + i - distance)
        lower_order.append(i + distance if is_upper else WIDTH + i)
    out = list(rows)
    for i in range(WIDTH):
        if i & distance == 0:
            upper, lower = rows[i], rows[i + distance]
            out[i] = builder.shuffle_vector(upper, lower, _int_vector(upper_order))
            out[i + distance] = builder.shuffle_vector(upper, lower, _int_vector(lower_order))
    return out


def _type_transposed(typing, rows):
    def generate(context, builder, signature, args):
        lines = [builder.extract_value(args[0], i) for i in range(WIDTH)]
        for distance in (4, 2, 1):
            lines = _exchange(builder, lines, distance)
        return context.make_tuple(builder, signature.return_type, lines)

    return rows(types.UniTuple(vector, WIDTH)), generate


@_compiled_by(_type_transposed)
def transposed(rows):
    """Return the rows of the transpose of a matrix of eight vectors."""
    return tuple(np.stack(rows).T.copy())


def _type_row_sums(typing, array, index):
    def generate(context, builder, signature, args):
        array, index = args
        sums = []
        for row in range(WIDTH):
            offset = builder.add(index, ir.Constant(index.type, row * WIDTH))
            sums.append(_load(builder, _address(context, builder, signature.args[0], array, offset), _VECTOR))
        # Halve the number of vectors: each keeps the sums of two rows, in the order of the transposition.
        distance = WIDTH // 2
        while distance:
            lines = _exchange_halves(builder, sums, distance)
            sums = [builder.fadd(x, y) for x, y in lines]
            distance //= 2
        return sums[0]

    _elements_of(array, types.float64)
    return vector(array, types.intp), generate


def _exchange_halves(builder, rows, distance):
    """Return the two halves to add for each pair of rows `distance` apart."""
    keep, move = [], []
    for i in range(WIDTH):
        is_upper = i & distance == 0
        keep.append(i if is_upper else WIDTH + i)
        move.append(i + distance if is_upper else WIDTH + i - distance)
    return [
        (
            builder.shuffle_vector(rows[i], rows[i + distance], _int_vector(keep)),
            builder.shuffle_vector(rows[i], rows[i + distance], _int_vector(move)),
        )
        for i in range(distance)
    ]


@_compiled_by(_type_row_sums)
def row_sums(array, index):
    """Return a vector with the sum of each of the eight vectors that start at element `index`."""
    return array.reshape(-1)[index : index + WIDTH * WIDTH].reshape(WIDTH, WIDTH).sum(axis=1)


# --- a tile of sums


def _type_add_tile(typing, x, line_x, step_x, y, line_y, n, factor, out, line_out, rows, columns):
    tile_rows, tile_columns = rows.literal_value, columns.literal_value
    starts = range(0, tile_columns, WIDTH)  # of the vectors of a line, the last of which may be half as wide
    kinds = [ir.VectorType(_DOUBLE, min(WIDTH, tile_columns - start)) for start in starts]

    def generate(context, builder, signature, args):
        x, line_x, step_x, y, line_y, n, factor, out, line_out = args[:9]

        def element(array, *indices):
            index = indices[0]
            for further in indices[1:]:
                index = builder.add(index, further)
            return _address(context, builder, types.CPointer(types.float64), array, index)

        def times(number, base):
            return builder.mul(base, ir.Constant(base.type, number))

        zero = ir.Constant(n.type, 0)
        before = builder.block
        loop, after = builder.append_basic_block("tile"), builder.append_basic_block("tile.end")
        builder.cbranch(builder.icmp_signed(">", n, zero), loop, after)

        builder.position_at_end(loop)
        i = builder.phi(n.type)
        sums = [builder.phi(kind) for _ in range(tile_rows) for kind in kinds]
        of_x, of_y = builder.mul(i, line_x), builder.mul(i, line_y)
        ys = [
            _load(builder, element(y, of_y, ir.Constant(n.type, start)), kind)
            for start, kind in zip(starts, kinds, strict=True)
        ]
        added = []
        for row in range(tile_rows):
            number = _load(builder, element(x, of_x, times(row, step_x)), _DOUBLE)
            of_row = sums[row * len(ys) : (row + 1) * len(ys)]
            added += [
                _add_product(builder, total, _broadcast(builder, number, kind.count), line)
                for total, kind, line in zip(of_row, kinds, ys, strict=True)
            ]
        following = builder.add(i, ir.Constant(n.type, 1))
        builder.cbranch(builder.icmp_signed("<", following, n), loop, after)

        builder.position_at_end(after)
        totals = [builder.phi(phi.type) for phi in sums]
        i.add_incoming(zero, before)
        i.add_incoming(following, loop)
        for phi, new in zip(sums + totals, added + added, strict=True):
            phi.add_incoming(ir.Constant(phi.type, [0.0] * phi.type.count), before)
            phi.add_incoming(new, loop)
        for number, total in enumerate(totals):
            row, place = divmod(number, len(kinds))
            to = element(out, times(row, line_out), ir.Constant(n.type, starts[place]))
            sign = _broadcast(builder, factor, total.type.count)
            _store(builder, _add_product(builder, _load(builder, to, total.type), sign, total), to)
        return context.get_dummy_value()

    floats, whole = types.CPointer(types.float64), types.intp
    arguments = floats, whole, whole, floats, whole, whole, types.float64, floats, whole, rows, columns
    return types.void(*arguments), generate


@_compiled_by(_type_add_tile, prefer_literal=True)
def add_tile(x, line_x, step_x, y, line_y, n, factor, out, line_out, rows, columns):
    """Add factor * Σ x yᵀ, summed over n lines, to a tile of `rows` by `columns`, a multiple of half a vector.

    Lines of x, y and `out` are `line_x`, `line_y` and `line_out` numbers apart, and the numbers in a line of x are
    `step_x` apart. The sums stay in registers, so each loaded number is used many times.
    """
    lines = np.arange(n)[:, None]
    xs = x[lines * line_x + np.arange(rows) * step_x]
    ys = y[lines * line_y + np.arange(columns)]
    out[np.arange(rows)[:, None] * line_out + np.arange(columns)] += factor * (xs.T @ ys)
