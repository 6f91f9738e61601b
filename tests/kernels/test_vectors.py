"""Every vector operation, compiled, against what it means: the NumPy function that it wraps."""

import operator

import numba
import numpy as np
import pytest
from numba.core.errors import TypingError

from bnmf.kernels import vectors
from bnmf.kernels.processor import TILE, WIDTH
from bnmf.kernels.vectors import (
    absolute,
    add_product,
    add_tile,
    bits_to_mask,
    broadcast,
    extract_lane,
    gather_pairs,
    insert_lane,
    larger,
    load,
    load_broadcast,
    mask_to_bits,
    pointer_at,
    prefetch,
    row_sums,
    select,
    square_root,
    store,
    to_floats,
    transposed,
)

U64 = np.uint64
SPECIAL = np.array([0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan, 1e-320])


def some_numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def some_words(*shape, seed=0):
    return np.random.default_rng(seed).integers(2**64, size=shape, dtype=np.uint64)


def test_every_operation_is_tested():
    """An operation that is added has to be added here as well."""
    found = {name for name, value in vars(vectors).items() if hasattr(value, "__wrapped__") and name[0] != "_"}
    assert found == {
        "absolute", "add_product", "add_tile", "bits_to_mask", "broadcast", "extract_lane", "gather_pairs",
        "insert_lane", "larger", "load", "load_broadcast", "mask_to_bits", "pointer_at", "prefetch", "row_sums",
        "select", "square_root", "store", "to_floats", "transposed",
    }  # fmt: skip


# --- lane by lane


def of_one(operation):
    return numba.njit(lambda x, out: store(out, 0, operation(load(x, 0))))


def of_two(operation):
    return numba.njit(lambda x, y, out: store(out, 0, operation(load(x, 0), load(y, 0))))


@pytest.mark.parametrize("x", [some_numbers(WIDTH), SPECIAL], ids=["normal", "special"])
@pytest.mark.parametrize("operation", [square_root, absolute])
def test_functions_of_a_vector(operation, x):
    out = np.empty(WIDTH)
    of_one(operation)(x, out)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(out, operation.__wrapped__(x))


@pytest.mark.parametrize("which", [operator.add, operator.sub, operator.mul, operator.truediv, larger])
def test_functions_of_two_vectors(which):
    function = of_two(which)
    meaning = getattr(which, "__wrapped__", which)
    pairs = [(some_numbers(WIDTH), some_numbers(WIDTH, seed=1))]
    pairs += [(SPECIAL, np.roll(SPECIAL, shift)) for shift in range(WIDTH)]
    for x, y in pairs:
        out = np.empty(WIDTH)
        function(x, y, out)
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(out, meaning(x, y))


def test_larger_ignores_what_is_no_number():
    x, y, out = np.full(WIDTH, np.nan), some_numbers(WIDTH), np.empty(WIDTH)
    of_two(larger)(x, y, out)
    np.testing.assert_array_equal(out, y)
    np.testing.assert_array_equal(larger.__wrapped__(y, x), y)


@pytest.mark.parametrize("which", [operator.gt, operator.ge, operator.lt])
def test_comparisons(which):
    function = numba.njit(lambda x, y: mask_to_bits(which(load(x, 0), load(y, 0))))
    for shift in range(WIDTH):
        x, y = SPECIAL, np.roll(SPECIAL, shift)
        assert function(x, y) == mask_to_bits.__wrapped__(which(x, y))


def test_products_are_added():
    function = numba.njit(lambda x, y, z, out: store(out, 0, add_product(load(x, 0), load(y, 0), load(z, 0))))
    x, y, z = some_numbers(3, WIDTH)
    out = np.empty(WIDTH)
    function(x, y, z, out)
    np.testing.assert_allclose(out, add_product.__wrapped__(x, y, z), rtol=0, atol=1e-15 * np.abs(y * z).max())


@pytest.mark.parametrize("which", [operator.add, operator.xor, operator.and_, operator.or_])
def test_operators_on_words(which):
    x, y, out = some_words(WIDTH), some_words(WIDTH, seed=1), np.empty(WIDTH, np.uint64)
    of_two(which)(x, y, out)
    np.testing.assert_array_equal(out, which(x, y))


@pytest.mark.parametrize("which", [operator.lshift, operator.rshift])
def test_shifts(which):
    x, y, out = some_words(WIDTH), np.array([0, 1, 7, 11, 31, 32, 41, 63], np.uint64), np.empty(WIDTH, np.uint64)
    of_two(which)(x, y, out)
    np.testing.assert_array_equal(out, which(x, y))


def test_words_to_floats():
    x, out = np.array([0, 1, 2**52, 2**53 - 1, 2**63 - 1, 2**63, 2**64 - 1, 12], np.uint64), np.empty(WIDTH)
    of_one(to_floats)(x, out)
    np.testing.assert_array_equal(out, to_floats.__wrapped__(x))
    np.testing.assert_array_equal(out[[0, 1, 2, 3, 6]], [0.0, 1.0, 2.0**52, 2.0**53 - 1.0, -1.0])


@pytest.mark.parametrize(("number", "dtype"), [(1.5, np.float64), (U64(2**63 + 1), np.uint64)])
def test_broadcast(number, dtype):
    out = np.empty(WIDTH, dtype)
    numba.njit(lambda x, out: store(out, 0, broadcast(x)))(number, out)
    meaning = broadcast.__wrapped__(number)
    assert meaning.dtype == dtype
    np.testing.assert_array_equal(out, meaning)
    assert (out == number).all()


@pytest.mark.parametrize("make", [some_numbers, some_words])
def test_lanes_are_read_and_replaced(make):
    x, values = make(WIDTH), make(WIDTH, seed=1)
    read = numba.njit(lambda x, lane: extract_lane(load(x, 0), lane))
    write = numba.njit(lambda x, lane, value, out: store(out, 0, insert_lane(load(x, 0), lane, value)))
    for lane in range(WIDTH):
        assert read(x, lane) == extract_lane.__wrapped__(x, lane) == x[lane]
        out = np.empty_like(x)
        write(x, lane, values[lane], out)
        np.testing.assert_array_equal(out, insert_lane.__wrapped__(x, lane, values[lane]))
        assert out[lane] == values[lane]


# --- masks


def test_masks_and_bits_round_trip():
    there_and_back = numba.njit(lambda bits: mask_to_bits(bits_to_mask(bits)))
    for bits in range(2**WIDTH):
        mask = bits_to_mask.__wrapped__(U64(bits))
        assert [bits >> lane & 1 for lane in range(WIDTH)] == list(mask)
        assert there_and_back(U64(bits)) == mask_to_bits.__wrapped__(mask) == bits
    assert there_and_back(U64(2**64 - 1)) == 2**WIDTH - 1  # further bits are no lanes


@pytest.mark.parametrize("which", [operator.and_, operator.or_])
def test_operators_on_masks(which):
    function = numba.njit(lambda x, y: mask_to_bits(which(bits_to_mask(x), bits_to_mask(y))))
    for x, y in [(0b10110010, 0b01100111), (0, 255), (255, 255)]:
        assert function(U64(x), U64(y)) == which(x, y)


@pytest.mark.parametrize("make", [some_numbers, some_words])
def test_select(make):
    function = numba.njit(lambda bits, x, y, out: store(out, 0, select(bits_to_mask(bits), load(x, 0), load(y, 0))))
    x, y = make(WIDTH), make(WIDTH, seed=1)
    for bits in (0, 1, 0b10110010, 128, 255):
        out = np.empty_like(x)
        function(U64(bits), x, y, out)
        np.testing.assert_array_equal(out, select.__wrapped__(bits_to_mask.__wrapped__(U64(bits)), x, y))


def test_select_between_masks():
    function = numba.njit(lambda a, b, c: mask_to_bits(select(bits_to_mask(a), bits_to_mask(b), bits_to_mask(c))))
    assert function(U64(0b11110000), U64(0b10101010), U64(0b00001100)) == 0b10101100


# --- memory


@pytest.mark.parametrize("make", [some_numbers, some_words])
@pytest.mark.parametrize("shape", [(40,), (5, 8), (2, 4, 5)])
def test_load_and_store_anywhere(make, shape):
    """Any element of an array of any shape, itself or by a pointer, and nothing beside the vector."""

    @numba.njit
    def move(x, start, out, to):
        store(out, to, load(x, start))

    @numba.njit
    def move_by_pointers(x, start, out, to):
        store(pointer_at(out, to), 0, load(pointer_at(pointer_at(x, start - 1), 2), -1))

    x = make(*shape)
    for start, to in [(1, 0), (5, 11), (32, 32), (31, 3)]:
        expected = make(*shape, seed=2)
        found = [expected.copy(), expected.copy()]
        store.__wrapped__(expected, to, load.__wrapped__(x, start))
        move(x, start, found[0], to)
        move_by_pointers(x, start, found[1], to)
        for out in found:
            np.testing.assert_array_equal(out, expected)
        np.testing.assert_array_equal(expected.ravel()[to : to + WIDTH], x.ravel()[start : start + WIDTH])


def test_load_is_a_copy():
    x = some_numbers(WIDTH)
    loaded = load.__wrapped__(x, 0)
    loaded[0] = 7.0
    assert x[0] != 7.0


@pytest.mark.parametrize("dtype", [np.float64, np.uint64, np.int64, np.uint32, np.uint8])
def test_pointers_are_indexed_like_arrays(dtype):
    @numba.njit
    def exchange(x, start, i, value):
        pointer = pointer_at(x, start)
        old = pointer[i]
        pointer[i] = value
        return old

    x = np.arange(24).astype(dtype).reshape(4, 6)
    assert exchange(x, 7, 3, dtype(100)) == 10
    expected = np.arange(24).astype(dtype).reshape(4, 6)
    pointer_at.__wrapped__(expected, 7)[3] = dtype(100)
    np.testing.assert_array_equal(x, expected)


def test_load_broadcast():
    @numba.njit
    def both(x, i, out):
        store(out, 0, load_broadcast(x, i))
        store(out, WIDTH, load_broadcast(pointer_at(x, 2), i))

    x, out = some_numbers(4, 3), np.empty(2 * WIDTH)
    for i in (0, 4, 9):
        both(x, i, out)
        np.testing.assert_array_equal(out[:WIDTH], load_broadcast.__wrapped__(x, i))
        np.testing.assert_array_equal(out[WIDTH:], np.full(WIDTH, x.ravel()[i + 2]))


def test_gather_pairs():
    @numba.njit
    def gather(table, index, out):
        first, second = gather_pairs(table, load(index, 0))
        store(out, 0, first)
        store(out, WIDTH, second)

    table, index, out = some_numbers(50, 2), np.array([3, 49, 0, 7, 7, 20, 31, 1], np.uint64), np.empty((2, WIDTH))
    gather(table, index, out)
    np.testing.assert_array_equal(out, gather_pairs.__wrapped__(table, index))
    np.testing.assert_array_equal(out, table[index].T)


def test_prefetch_changes_nothing():
    @numba.njit
    def fetch(x):
        prefetch(x, 3)
        prefetch(pointer_at(x, 2), 0)

    x = some_numbers(20)
    before = x.copy()
    fetch(x)
    np.testing.assert_array_equal(x, before)
    assert prefetch.__wrapped__(x, 0) is None


# --- eight vectors at a time


def test_transposed():
    @numba.njit
    def transpose(x, out):
        columns = transposed(
            (load(x, 0), load(x, 8), load(x, 16), load(x, 24), load(x, 32), load(x, 40), load(x, 48), load(x, 56))
        )
        i = 0
        for column in columns:
            store(out, i, column)
            i += WIDTH

    x, out = some_numbers(WIDTH, WIDTH), np.empty((WIDTH, WIDTH))
    transpose(x, out)
    np.testing.assert_array_equal(out, x.T)
    np.testing.assert_array_equal(np.stack(transposed.__wrapped__(tuple(x))), x.T)


def test_row_sums():
    @numba.njit
    def both(x, start, out):
        store(out, 0, row_sums(x, start))
        store(out, WIDTH, row_sums(pointer_at(x, 3), start))

    x, out = some_numbers(10, WIDTH), np.empty(2 * WIDTH)
    for start in (0, 5, 13):
        both(x, start, out)
        np.testing.assert_allclose(out[:WIDTH], row_sums.__wrapped__(x, start), rtol=1e-13, atol=1e-14)
        np.testing.assert_allclose(out[WIDTH:], row_sums.__wrapped__(x, start + 3), rtol=1e-13, atol=1e-14)


def test_row_sums_keep_rows_apart():
    out = np.empty(WIDTH)
    apart = numba.njit(lambda x, out: store(out, 0, row_sums(x, 0)))
    for row in range(WIDTH):
        x = np.zeros((WIDTH, WIDTH))
        x[row] = 2.0 ** np.arange(WIDTH)
        apart(x, out)
        np.testing.assert_array_equal(out, np.where(np.arange(WIDTH) == row, 255.0, 0.0))


# --- tiles


SIZES = {(1, 8), (2, 8), (4, 8), (3, 16), (8, 24), (1, 4), (4, 12), (8, 20), (2, 28)}
SIZES |= {(TILE.rows, TILE.columns), (TILE.rows, TILE.odd_columns)}


@pytest.mark.parametrize(("rows", "columns"), sorted(SIZES))
def test_add_tile(rows, columns):
    @numba.njit
    def add(x, line_x, step_x, y, line_y, n, factor, out, line_out):
        add_tile(
            pointer_at(x, 0), line_x, step_x, pointer_at(y, 0), line_y, n, factor, pointer_at(out, 0), line_out,
            rows, columns,
        )  # fmt: skip

    x, y = some_numbers(600), some_numbers(2000, seed=1)
    # Lines of x and y next to each other or apart; numbers of a line of x side by side, or one for each row.
    for line_x, step_x, line_y, line_out in [(8, 1, 24, 28), (11, 1, 40, 32), (1, 50, 24, 56), (0, 3, 24, 29)]:
        for n in (0, 1, 2, 31):
            for factor in (1.0, -1.0, 0.25):
                found = some_numbers(600, seed=2)
                expected = found.copy()
                add(x, line_x, step_x, y, line_y, n, factor, found, line_out)
                sizes = line_x, step_x, y, line_y, n, factor, expected, line_out, rows, columns
                add_tile.__wrapped__(x, *sizes)
                np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-13)
                if n == 0:
                    np.testing.assert_array_equal(found, some_numbers(600, seed=2))


def test_meaning_of_a_tile():
    """The NumPy version against two loops and an index for each number."""
    x, y, out = some_numbers(40), some_numbers(60, seed=1), np.zeros(40)
    add_tile.__wrapped__(x, 5, 2, y, 9, 4, -0.5, out, 20, 2, 12)
    expected = np.zeros(40)
    for i in range(4):
        for row in range(2):
            for column in range(12):
                expected[row * 20 + column] -= 0.5 * x[i * 5 + row * 2] * y[i * 9 + column]
    np.testing.assert_allclose(out, expected, rtol=1e-13, atol=1e-14)


# --- what is refused when a kernel is compiled

FLOATS = np.zeros((16, 16))
CONTIGUOUS = "vectors are loaded from pointers and C-contiguous arrays, got array"
USES = {
    "pointer_at": lambda x: pointer_at(x, 0)[0],
    "load": lambda x: extract_lane(load(x, 0), 0),
    "store": lambda x: store(x, 0, broadcast(1.0)),
    "load_broadcast": lambda x: extract_lane(load_broadcast(x, 0), 0),
    "gather_pairs": lambda x: extract_lane(gather_pairs(x, broadcast(U64(0)))[0], 0),
    "prefetch": lambda x: prefetch(x, 0),
    "row_sums": lambda x: extract_lane(row_sums(x, 0), 0),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
@pytest.mark.parametrize("array", [np.asfortranarray(FLOATS), FLOATS[:, ::2], FLOATS[0, ::2]], ids=["F", "2d", "1d"])
def test_arrays_that_are_not_contiguous_are_refused(use, array):
    with pytest.raises(TypingError, match=CONTIGUOUS):
        numba.njit(use)(array)


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_what_is_no_array_is_refused(use):
    with pytest.raises(TypingError, match="vectors are loaded from pointers and C-contiguous arrays, got float64"):
        numba.njit(use)(1.0)


FLOATS_OR_WORDS, FLOATS_ONLY = "expected elements of type float64 or uint64, got", "expected elements of type float64,"


@pytest.mark.parametrize(
    ("name", "dtype", "message"),
    [
        ("load", np.float32, FLOATS_OR_WORDS),
        ("load", np.int64, FLOATS_OR_WORDS),
        ("load", np.uint32, FLOATS_OR_WORDS),
        ("store", np.float32, FLOATS_OR_WORDS),
        ("store", bool, FLOATS_OR_WORDS),
        ("load_broadcast", np.uint64, FLOATS_ONLY),
        ("load_broadcast", np.float32, FLOATS_ONLY),
        ("gather_pairs", np.float32, FLOATS_ONLY),
        ("gather_pairs", np.uint64, FLOATS_ONLY),
        ("row_sums", np.uint64, FLOATS_ONLY),
        ("row_sums", np.float32, FLOATS_ONLY),
    ],
)
def test_wrong_elements_are_refused(name, dtype, message):
    with pytest.raises(TypingError, match=message):
        numba.njit(USES[name])(np.zeros((16, 16), dtype))


def test_pointer_to_wrong_elements_is_refused():
    with pytest.raises(TypingError, match=FLOATS_OR_WORDS):
        numba.njit(lambda x: extract_lane(load(pointer_at(x, 0), 0), 0))(np.zeros(16, np.float32))


def test_kinds_of_vectors_do_not_mix():
    with pytest.raises(TypingError):
        numba.njit(lambda x: store(x, 0, broadcast(1.0)))(np.zeros(8, np.uint64))
    with pytest.raises(TypingError):
        numba.njit(lambda x, y: extract_lane(load(x, 0) + load(y, 0), 0))(np.zeros(8), np.zeros(8, np.uint64))
    with pytest.raises(TypingError):
        numba.njit(lambda x: square_root(load(x, 0)))(np.zeros(8, np.uint64))
