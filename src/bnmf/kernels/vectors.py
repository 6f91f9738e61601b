"""Vectors of eight numbers, for the few loops that a compiler does not vectorise by itself.

A loop over arrays of unknown overlap and length is guarded by checks that cost more than the loop when K is 20. Here
the vectors are said in so many words. Any processor takes them: eight numbers are one register of AVX-512, two of
AVX2 and four of NEON.
"""

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import extending, types
from numba.extending import models, register_model

# The functions below take one argument fewer than they are written with, which a checker of types cannot know.
intrinsic: Any = extending.intrinsic

WIDTH = 8
_DOUBLE = ir.DoubleType()
_INT = ir.IntType(32)
_VECTOR = ir.VectorType(_DOUBLE, WIDTH)
_UNDEFINED = ir.Constant(_VECTOR, ir.Undefined)


class Vector(types.Type):
    """The type that Numba knows a vector by."""

    def __init__(self):
        super().__init__(name=f"Vector{WIDTH}")


vector = Vector()


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, _VECTOR)


def _address(context, builder, kind, array, index):
    data = context.make_array(kind)(context, builder, array).data
    return builder.gep(data, [index])


def _vector_address(context, builder, kind, array, index):
    return builder.bitcast(_address(context, builder, kind, array, index), _VECTOR.as_pointer())


def _spread(builder, number):
    first = builder.insert_element(_UNDEFINED, number, ir.Constant(_INT, 0))
    return builder.shuffle_vector(first, _UNDEFINED, ir.Constant(ir.VectorType(_INT, WIDTH), [0] * WIDTH))


@intrinsic
def load(typing, array, index):
    """Return the vector that starts at `index` of a contiguous array, counted as if it had one dimension."""

    def generate(context, builder, signature, args):
        return builder.load(_vector_address(context, builder, signature.args[0], *args), align=8)

    return vector(array, types.intp), generate


@intrinsic
def store(typing, array, index, value):
    """Write a vector from `index` on."""

    def generate(context, builder, signature, args):
        builder.store(args[2], _vector_address(context, builder, signature.args[0], *args[:2]), align=8)
        return context.get_dummy_value()

    return types.void(array, types.intp, vector), generate


@intrinsic
def prefetch(typing, array, index):
    """Ask for the cache line at `index`, and do not wait for it."""

    def generate(context, builder, signature, args):
        address = builder.bitcast(_address(context, builder, signature.args[0], *args), ir.IntType(8).as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [address.type, _INT, _INT, _INT])
        name = "llvm.prefetch.p0"
        function = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
        builder.call(function, [address, *(ir.Constant(_INT, x) for x in (0, 3, 1))])  # for reading, kept near, data
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
    """Return the vector that holds one number eight times."""

    def generate(context, builder, signature, args):
        return _spread(builder, args[0])

    return vector(types.float64), generate


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
def total(typing, x):
    """Return the sum of the eight numbers."""

    def generate(context, builder, signature, args):
        kind = ir.FunctionType(_DOUBLE, [_DOUBLE, _VECTOR])
        function = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
        return builder.call(function, [ir.Constant(_DOUBLE, 0.0), args[0]], fastmath=("reassoc",))

    name = f"llvm.vector.reduce.fadd.v{WIDTH}f64"
    return types.float64(vector), generate
