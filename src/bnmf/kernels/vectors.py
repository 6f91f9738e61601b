"""Vectors of eight numbers, for the few loops that a compiler does not vectorise by itself.

A loop over arrays of unknown overlap and length is guarded by checks that cost more than the loop when K is 20. Here
the vectors are said in so many words. Any processor takes them: eight numbers are one register of AVX-512, two of
AVX2 and four of NEON.

There are three kinds: numbers, words of 64 random bits, and masks. Operators work on them lane by lane.
"""

import operator
from functools import partial
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import extending, types
from numba.core.typing.templates import ConcreteTemplate, infer_global, signature
from numba.extending import lower_builtin, models, register_model

# The functions below take one argument fewer than they are written with, which a checker of types cannot know.
intrinsic: Any = extending.intrinsic

WIDTH = 8
_DOUBLE = ir.DoubleType()
_INT, _WORD = ir.IntType(32), ir.IntType(64)
_VECTOR = ir.VectorType(_DOUBLE, WIDTH)
_WORDS = ir.VectorType(_WORD, WIDTH)
_MASK = ir.VectorType(ir.IntType(1), WIDTH)


class Vector(types.Type):
    """The types that Numba knows vectors by."""

    def __init__(self, name, lowered):
        super().__init__(name=f"{name}{WIDTH}")
        self.lowered = lowered


vector, words, mask = Vector("Vector", _VECTOR), Vector("Words", _WORDS), Vector("Mask", _MASK)


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, kind.lowered)


def _kind_in(array):
    """Return the kind of vector that an array holds."""
    return vector if array.dtype == types.float64 else words


def _data(context, builder, kind, array):
    """Return the address that an array, or a pointer, starts at."""
    return array if isinstance(kind, types.CPointer) else context.make_array(kind)(context, builder, array).data


def _address(context, builder, kind, array, index):
    return builder.gep(_data(context, builder, kind, array), [index])


def _vector_address(context, builder, kind, array, index):
    return builder.bitcast(_address(context, builder, kind, array, index), _kind_in(kind).lowered.as_pointer())


def _spread(builder, number):
    undefined = ir.Constant(ir.VectorType(number.type, WIDTH), ir.Undefined)
    first = builder.insert_element(undefined, number, ir.Constant(_INT, 0))
    return builder.shuffle_vector(first, undefined, _constant([0] * WIDTH))


def _constant(numbers):
    """Return a constant vector of whole numbers."""
    return ir.Constant(ir.VectorType(_INT, len(numbers)), list(numbers))


def _called(builder, name, result, args, **flags):
    """Call a function that LLVM knows by name."""
    kind = ir.FunctionType(result, [arg.type for arg in args])
    function = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
    return builder.call(function, args, **flags)


def _operator(which, instruction, *kinds, result=None):
    """Give an operator on two vectors of the same kind its instruction."""

    def generate(context, builder, signature, args):
        return instruction(builder, *args)

    @infer_global(which)
    class _Typing(ConcreteTemplate):
        cases = tuple(signature(result or kind, kind, kind) for kind in kinds)

    for kind in kinds:
        lower_builtin(which, kind, kind)(generate)


def _comparison(sign):
    return lambda builder, x, y: builder.fcmp_ordered(sign, x, y)


_fused = partial(partial, flags=("contract",))  # a product and a sum may become one instruction
_operator(operator.add, _fused(ir.IRBuilder.fadd), vector)
_operator(operator.sub, _fused(ir.IRBuilder.fsub), vector)
_operator(operator.mul, _fused(ir.IRBuilder.fmul), vector)
_operator(operator.truediv, ir.IRBuilder.fdiv, vector)
_operator(operator.gt, _comparison(">"), vector, result=mask)
_operator(operator.ge, _comparison(">="), vector, result=mask)
_operator(operator.lt, _comparison("<"), vector, result=mask)
_operator(operator.add, ir.IRBuilder.add, words)
_operator(operator.lshift, ir.IRBuilder.shl, words)
_operator(operator.rshift, ir.IRBuilder.lshr, words)
_operator(operator.xor, ir.IRBuilder.xor, words)
_operator(operator.and_, ir.IRBuilder.and_, words, mask)
_operator(operator.or_, ir.IRBuilder.or_, words, mask)


@intrinsic
def pointer_at(typing, array, index):
    """Return a pointer to the number at `index` of the flat array, to be read and written like an array from there on.

    An array that is handed to a function is counted, at a price, even if the function is inlined; a pointer is not.
    So it does not keep the array alive either.
    """

    def generate(context, builder, signature, args):
        return _address(context, builder, signature.args[0], *args)

    return types.CPointer(array.dtype)(array, types.intp), generate


@intrinsic
def load(typing, array, index):
    """Return the vector that starts at `index` of a contiguous array, counted as if it had one dimension.

    Here and below an array may as well be a pointer.
    """

    def generate(context, builder, signature, args):
        return builder.load(_vector_address(context, builder, signature.args[0], *args), align=8)

    return _kind_in(array)(array, types.intp), generate


@intrinsic
def store(typing, array, index, value):
    """Write a vector from `index` on."""

    def generate(context, builder, signature, args):
        builder.store(args[2], _vector_address(context, builder, signature.args[0], *args[:2]), align=8)
        return context.get_dummy_value()

    return types.void(array, types.intp, _kind_in(array)), generate


@intrinsic
def load_strided(typing, array, index, stride):
    """Return the numbers at `index`, `index + stride`, and so on."""

    def generate(context, builder, signature, args):
        array, index, stride = args
        found = ir.Constant(_VECTOR, ir.Undefined)
        for lane in range(WIDTH):
            number = builder.load(_address(context, builder, signature.args[0], array, index))
            found = builder.insert_element(found, number, ir.Constant(_INT, lane))
            index = builder.add(index, stride)
        return found

    return vector(array, types.intp, types.intp), generate


@intrinsic
def transpose(typing, array, index, to, stride):
    """Copy the square of eight by eight numbers at `index` to that at `to`, lines `stride` apart, turned over."""

    def generate(context, builder, signature, args):
        array, index, to, stride = args
        kind = signature.args[0]
        lines = []
        for _ in range(WIDTH):
            lines.append(builder.load(_vector_address(context, builder, kind, array, index), align=8))
            index = builder.add(index, stride)
        for apart in (4, 2, 1):
            lines = _exchanged(builder, lines, apart)
        for line in lines:
            builder.store(line, _vector_address(context, builder, kind, array, to), align=8)
            to = builder.add(to, stride)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp, types.intp), generate


def _exchanged(builder, lines, apart):
    """Exchange, for each two lines that are so far apart, the squares of that size off their diagonal."""
    keep, swap = [], []
    for i in range(WIDTH):
        upper = i & apart == 0
        keep.append(i if upper else WIDTH + i - apart)
        swap.append(i + apart if upper else WIDTH + i)
    out = list(lines)
    for i in range(WIDTH):
        if i & apart == 0:
            above, below = lines[i], lines[i + apart]
            out[i] = builder.shuffle_vector(above, below, _constant(keep))
            out[i + apart] = builder.shuffle_vector(above, below, _constant(swap))
    return out


@intrinsic
def gather_pairs(typing, table, index):
    """Return the first and the second columns of a table of two columns, at the row that each lane names.

    A pair is one load. The loads are put together by hand, because the gather of many processors is slower.
    """

    def generate(context, builder, signature, args):
        data = _data(context, builder, signature.args[0], args[0])
        pair_pointer = ir.VectorType(_DOUBLE, 2).as_pointer()
        pairs = []
        for lane in range(WIDTH):
            at = builder.shl(builder.extract_element(args[1], ir.Constant(_INT, lane)), ir.Constant(_WORD, 1))
            pairs.append(builder.load(builder.bitcast(builder.gep(data, [at]), pair_pointer), align=8))
        even, odd = _joined(builder, pairs[::2]), _joined(builder, pairs[1::2])
        # Even lanes are in the one and odd ones in the other, each a pair: first, second, first, second, ...
        columns = []
        for column in range(2):
            order = [x for i in range(column, WIDTH, 2) for x in (i, WIDTH + i)]
            columns.append(builder.shuffle_vector(even, odd, _constant(order)))
        return context.make_tuple(builder, signature.return_type, columns)

    return types.UniTuple(vector, 2)(table, words), generate


def _joined(builder, parts):
    """Return vectors put one after the other."""
    while len(parts) > 1:
        order = _constant(range(2 * parts[0].type.count))
        parts = [builder.shuffle_vector(x, y, order) for x, y in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


@intrinsic
def lane_of(typing, x, lane):
    """Return the number, or the word, in one lane."""

    def generate(context, builder, signature, args):
        return builder.extract_element(*args)

    return (types.uint64 if x == words else types.float64)(x, types.intp), generate


@intrinsic
def with_lane(typing, x, lane, value):
    """Return the vector with another number, or word, in one lane."""

    def generate(context, builder, signature, args):
        vector, lane, value = args
        return builder.insert_element(vector, value, lane)

    return x(x, types.intp, types.uint64 if x == words else types.float64), generate


@intrinsic
def select(typing, where, x, y):
    """Return x where the mask says so, and y elsewhere."""

    def generate(context, builder, signature, args):
        return builder.select(*args)

    return x(mask, x, x), generate


@intrinsic
def bits_of(typing, where):
    """Return a mask as a number, one bit a lane, the lowest first."""

    def generate(context, builder, signature, args):
        return builder.zext(builder.bitcast(args[0], ir.IntType(WIDTH)), _WORD)

    return types.uint64(mask), generate


@intrinsic
def mask_of(typing, bits):
    """Return the mask that `bits_of` makes into this number."""

    def generate(context, builder, signature, args):
        return builder.bitcast(builder.trunc(args[0], ir.IntType(WIDTH)), _MASK)

    return mask(types.uint64), generate


@intrinsic
def to_numbers(typing, x):
    """Return words, taken as signed whole numbers, as numbers."""

    def generate(context, builder, signature, args):
        return builder.sitofp(args[0], _VECTOR)

    return vector(words), generate


@intrinsic
def magnitude(typing, x):
    """Return |x|."""

    def generate(context, builder, signature, args):
        return _called(builder, f"llvm.fabs.v{WIDTH}f64", _VECTOR, args)

    return vector(vector), generate


@intrinsic
def prefetch(typing, array, index):
    """Ask for the cache line at `index`, and do not wait for it."""

    def generate(context, builder, signature, args):
        address = builder.bitcast(_address(context, builder, signature.args[0], *args), ir.IntType(8).as_pointer())
        how = [ir.Constant(_INT, x) for x in (0, 3, 1)]  # for reading, kept near, data
        _called(builder, "llvm.prefetch.p0", ir.VoidType(), [address, *how])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


@intrinsic
def load_one(typing, array, index):
    """Return the number at `index` of the flat array."""

    def generate(context, builder, signature, args):
        return builder.load(_address(context, builder, signature.args[0], *args))

    return types.float64(array, types.intp), generate


@intrinsic
def store_one(typing, array, index, value):
    """Write the number at `index` of the flat array."""

    def generate(context, builder, signature, args):
        builder.store(args[2], _address(context, builder, signature.args[0], *args[:2]))
        return context.get_dummy_value()

    return types.void(array, types.intp, types.float64), generate


@intrinsic
def splat(typing, number):
    """Return the vector that holds one number, or one word, eight times."""

    def generate(context, builder, signature, args):
        return _spread(builder, args[0])

    return (words if number == types.uint64 else vector)(number), generate


@intrinsic
def repeated(typing, array, index):
    """Return the number at `index`, eight times; an index below zero has no meaning, and is not looked for."""

    def generate(context, builder, signature, args):
        return _spread(builder, builder.load(_address(context, builder, signature.args[0], *args)))

    return vector(array, types.intp), generate


@intrinsic
def add_product(typing, x, y, z):
    """Return x + y z."""

    def generate(context, builder, signature, args):
        product = builder.fmul(args[1], args[2], flags=("contract",))
        return builder.fadd(args[0], product, flags=("contract",))

    return vector(vector, vector, vector), generate


@intrinsic
def root(typing, x):
    """Return the square root."""

    def generate(context, builder, signature, args):
        return _called(builder, f"llvm.sqrt.v{WIDTH}f64", _VECTOR, args)

    return vector(vector), generate
