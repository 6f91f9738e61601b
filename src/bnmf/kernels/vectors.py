"""Vectors of eight numbers, for the few loops that the compiler does not vectorise well.

The compiler guards a loop over arrays of unknown length and aliasing with checks that cost more than the loop itself
for K around 20. Here vector operations are spelled out. They are portable: eight numbers take one AVX-512 register, two
AVX2 registers or four NEON registers.

There are three kinds of vector: 64-bit floats, 64-bit words, and masks. Operators act lane by lane.
"""

import operator
from functools import partial
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import extending, types
from numba.core.typing.templates import ConcreteTemplate, infer_global, signature
from numba.extending import lower_builtin, models, register_model

# Callers omit the first argument (the typing context) of an intrinsic, which a type checker cannot know.
intrinsic: Any = extending.intrinsic

# Lanes of a vector.
WIDTH = 8
_DOUBLE = ir.DoubleType()
_INT, _WORD = ir.IntType(32), ir.IntType(64)
_VECTOR = ir.VectorType(_DOUBLE, WIDTH)
_WORDS = ir.VectorType(_WORD, WIDTH)
_MASK = ir.VectorType(ir.IntType(1), WIDTH)


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


def _kind_of(array):
    """Return the kind of vector that is loaded from an array."""
    return vector if array.dtype == types.float64 else words


def _data_address(context, builder, kind, array):
    """Return the address of the first element of an array or pointer."""
    return array if isinstance(kind, types.CPointer) else context.make_array(kind)(context, builder, array).data


def _address(context, builder, kind, array, index):
    return builder.gep(_data_address(context, builder, kind, array), [index])


def _vector_address(context, builder, kind, array, index):
    return builder.bitcast(_address(context, builder, kind, array, index), _kind_of(kind).lowered.as_pointer())


def _broadcast(builder, number):
    undefined = ir.Constant(ir.VectorType(number.type, WIDTH), ir.Undefined)
    first = builder.insert_element(undefined, number, ir.Constant(_INT, 0))
    return builder.shuffle_vector(first, undefined, _int_vector([0] * WIDTH))


def _int_vector(numbers):
    """Return a constant vector of integers."""
    return ir.Constant(ir.VectorType(_INT, len(numbers)), list(numbers))


def _call_llvm(builder, name, result, args, **flags):
    """Call an LLVM intrinsic by name."""
    kind = ir.FunctionType(result, [arg.type for arg in args])
    function = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
    return builder.call(function, args, **flags)


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


_contracted = partial(partial, flags=("contract",))  # allows a multiply and an add to be fused
_register_operator(operator.add, _contracted(ir.IRBuilder.fadd), vector)
_register_operator(operator.sub, _contracted(ir.IRBuilder.fsub), vector)
_register_operator(operator.mul, _contracted(ir.IRBuilder.fmul), vector)
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


@intrinsic
def pointer_at(typing, array, index):
    """Return a pointer to element `index` of the flattened array; it is indexed like an array that starts there.

    Passing an array to a function costs reference counting even if the function is inlined; passing a pointer does not.
    A pointer does not keep the array alive.
    """

    def generate(context, builder, signature, args):
        return _address(context, builder, signature.args[0], *args)

    return types.CPointer(array.dtype)(array, types.intp), generate


@intrinsic
def load(typing, array, index):
    """Return the vector that starts at element `index` of a flattened contiguous array.

    Here and below, `array` may also be a pointer.
    """

    def generate(context, builder, signature, args):
        return builder.load(_vector_address(context, builder, signature.args[0], *args), align=8)

    return _kind_of(array)(array, types.intp), generate


@intrinsic
def store(typing, array, index, value):
    """Write a vector to elements `index` to `index + WIDTH` of the flattened array."""

    def generate(context, builder, signature, args):
        builder.store(args[2], _vector_address(context, builder, signature.args[0], *args[:2]), align=8)
        return context.get_dummy_value()

    return types.void(array, types.intp, _kind_of(array)), generate


@intrinsic
def load_strided(typing, array, index, stride):
    """Return a vector of the numbers at `index`, `index + stride`, `index + 2 stride`, ..."""

    def generate(context, builder, signature, args):
        array, index, stride = args
        loaded = ir.Constant(_VECTOR, ir.Undefined)
        for lane in range(WIDTH):
            number = builder.load(_address(context, builder, signature.args[0], array, index))
            loaded = builder.insert_element(loaded, number, ir.Constant(_INT, lane))
            index = builder.add(index, stride)
        return loaded

    return vector(array, types.intp, types.intp), generate


@intrinsic
def transpose(typing, array, index, to, stride):
    """Copy the transpose of the 8 x 8 submatrix at `index` to the one at `to`; `stride` is the length of a row."""

    def generate(context, builder, signature, args):
        array, index, to, stride = args
        kind = signature.args[0]
        rows = []
        for _ in range(WIDTH):
            rows.append(builder.load(_vector_address(context, builder, kind, array, index), align=8))
            index = builder.add(index, stride)
        for distance in (4, 2, 1):
            rows = _exchange(builder, rows, distance)
        for row in rows:
            builder.store(row, _vector_address(context, builder, kind, array, to), align=8)
            to = builder.add(to, stride)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp, types.intp), generate


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


@intrinsic
def gather_pairs(typing, table, index):
    """Return both columns of a two-column table, each lane from the row given by its index.

    Each row is one load. Combining the loads with shuffles is faster than the gather instruction of many processors.
    """

    def generate(context, builder, signature, args):
        data = _data_address(context, builder, signature.args[0], args[0])
        pair_pointer = ir.VectorType(_DOUBLE, 2).as_pointer()
        pairs = []
        for lane in range(WIDTH):
            offset = builder.shl(builder.extract_element(args[1], ir.Constant(_INT, lane)), ir.Constant(_WORD, 1))
            pairs.append(builder.load(builder.bitcast(builder.gep(data, [offset]), pair_pointer), align=8))
        even, odd = _concatenate(builder, pairs[::2]), _concatenate(builder, pairs[1::2])
        # `even` holds the pairs of even lanes and `odd` those of odd lanes: first, second, first, second, ...
        columns = []
        for column in range(2):
            order = [x for i in range(column, WIDTH, 2) for x in (i, WIDTH + i)]
            columns.append(builder.shuffle_vector(even, odd, _int_vector(order)))
        return context.make_tuple(builder, signature.return_type, columns)

    return types.UniTuple(vector, 2)(table, words), generate


def _concatenate(builder, parts):
    """Return the concatenation of vectors of the same length; their number is a power of two."""
    while len(parts) > 1:
        order = _int_vector(range(2 * parts[0].type.count))
        parts = [builder.shuffle_vector(x, y, order) for x, y in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


@intrinsic
def extract_lane(typing, x, lane):
    """Return the number or word in one lane."""

    def generate(context, builder, signature, args):
        return builder.extract_element(*args)

    return (types.uint64 if x == words else types.float64)(x, types.intp), generate


@intrinsic
def insert_lane(typing, x, lane, value):
    """Return a copy of the vector with the number or word in one lane replaced."""

    def generate(context, builder, signature, args):
        vector, lane, value = args
        return builder.insert_element(vector, value, lane)

    return x(x, types.intp, types.uint64 if x == words else types.float64), generate


@intrinsic
def select(typing, where, x, y):
    """Return x in the lanes where the mask is set, and y in the others."""

    def generate(context, builder, signature, args):
        return builder.select(*args)

    return x(mask, x, x), generate


@intrinsic
def mask_to_bits(typing, where):
    """Return a mask as an integer, one bit per lane, lane 0 in the lowest bit."""

    def generate(context, builder, signature, args):
        return builder.zext(builder.bitcast(args[0], ir.IntType(WIDTH)), _WORD)

    return types.uint64(mask), generate


@intrinsic
def bits_to_mask(typing, bits):
    """Return the mask with these bits: the inverse of `mask_to_bits`."""

    def generate(context, builder, signature, args):
        return builder.bitcast(builder.trunc(args[0], ir.IntType(WIDTH)), _MASK)

    return mask(types.uint64), generate


@intrinsic
def to_floats(typing, x):
    """Convert words, read as signed integers, to floats."""

    def generate(context, builder, signature, args):
        return builder.sitofp(args[0], _VECTOR)

    return vector(words), generate


@intrinsic
def absolute(typing, x):
    """Return |x|."""

    def generate(context, builder, signature, args):
        return _call_llvm(builder, f"llvm.fabs.v{WIDTH}f64", _VECTOR, args)

    return vector(vector), generate


@intrinsic
def prefetch(typing, array, index):
    """Prefetch the cache line that holds element `index`."""

    def generate(context, builder, signature, args):
        address = builder.bitcast(_address(context, builder, signature.args[0], *args), ir.IntType(8).as_pointer())
        hints = [ir.Constant(_INT, x) for x in (0, 3, 1)]  # read, high temporal locality, data cache
        _call_llvm(builder, "llvm.prefetch.p0", ir.VoidType(), [address, *hints])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


@intrinsic
def load_scalar(typing, array, index):
    """Return element `index` of the flattened array."""

    def generate(context, builder, signature, args):
        return builder.load(_address(context, builder, signature.args[0], *args))

    return types.float64(array, types.intp), generate


@intrinsic
def store_scalar(typing, array, index, value):
    """Write element `index` of the flattened array."""

    def generate(context, builder, signature, args):
        builder.store(args[2], _address(context, builder, signature.args[0], *args[:2]))
        return context.get_dummy_value()

    return types.void(array, types.intp, types.float64), generate


@intrinsic
def broadcast(typing, number):
    """Return a vector with the same number or word in every lane."""

    def generate(context, builder, signature, args):
        return _broadcast(builder, args[0])

    return (words if number == types.uint64 else vector)(number), generate


@intrinsic
def load_broadcast(typing, array, index):
    """Return a vector with element `index` in every lane; the index must not be negative."""

    def generate(context, builder, signature, args):
        return _broadcast(builder, builder.load(_address(context, builder, signature.args[0], *args)))

    return vector(array, types.intp), generate


@intrinsic
def add_product(typing, x, y, z):
    """Return x + y z."""

    def generate(context, builder, signature, args):
        product = builder.fmul(args[1], args[2], flags=("contract",))
        return builder.fadd(args[0], product, flags=("contract",))

    return vector(vector, vector, vector), generate


@intrinsic
def square_root(typing, x):
    """Return the square root."""

    def generate(context, builder, signature, args):
        return _call_llvm(builder, f"llvm.sqrt.v{WIDTH}f64", _VECTOR, args)

    return vector(vector), generate
