"""Vectors of eight numbers: every operation means what NumPy means."""

import numpy as np
import pytest

from bnmf.kernels.compiled import LEVEL, testing
from tests.kernels.draws import WIDTH

NUMBERS = np.array([0.5, -3.0, np.inf, -np.inf, np.nan, 0.0, -0.0, 1e300])


def some_numbers(*shape, seed=1):
    return np.random.default_rng(seed).normal(size=shape)


def applied(name, x, y, z):
    out = np.empty(WIDTH)
    testing.apply(name, x, y, z, out)
    return out


@pytest.mark.parametrize(
    ("name", "meaning"),
    [
        ("square_root", lambda x, y, z: np.sqrt(x)),
        ("absolute", lambda x, y, z: np.abs(x)),
        ("larger", lambda x, y, z: np.fmax(x, y)),  # the other one if one is no number
        ("select_greater", lambda x, y, z: np.where(x > y, y, z)),
        ("select_at_least", lambda x, y, z: np.where(x >= y, y, z)),
    ],
)
def test_operations_lane_by_lane(name, meaning):
    for shift in range(WIDTH):
        x, y, z = NUMBERS, np.roll(NUMBERS, shift), some_numbers(WIDTH)
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal(applied(name, x, y, z), meaning(x, y, z))


def test_product_and_sum_are_rounded_once_where_the_processor_can():
    x, y, z = some_numbers(3, WIDTH)
    np.testing.assert_allclose(applied("add_product", x, y, z), x + y * z, rtol=1e-14)
    y = np.full(WIDTH, 1.0 + 2.0**-30)
    lost = applied("add_product", -y * y, y, y)
    np.testing.assert_array_equal(lost, 0.0 if LEVEL == "v2" else 2.0**-60)


def test_words_become_floats():
    words = np.array([0, 1, 255, 2**31, 2**32 + 5, 2**52 - 1, 2**53 - 1, 2**52 + 2**31], np.uint64)
    out = np.empty(WIDTH)
    testing.to_floats(words, out)
    np.testing.assert_array_equal(out, words.astype(float))


def test_gather_pairs():
    table, index, out = some_numbers(50, 2), np.array([3, 49, 0, 7, 7, 20, 31, 1], np.uint64), np.empty((2, WIDTH))
    testing.gather_pairs(table, index, out)
    np.testing.assert_array_equal(out, table[index].T)


def test_transposed():
    x = some_numbers(WIDTH, WIDTH)
    out = x.copy()
    testing.transpose(out)
    np.testing.assert_array_equal(out, x.T)


def test_row_sums():
    x, out = some_numbers(WIDTH, WIDTH), np.empty(WIDTH)
    testing.row_sums(x, out)
    np.testing.assert_allclose(out, x.sum(axis=1), rtol=1e-13, atol=1e-14)


def test_row_sums_keep_rows_apart():
    out = np.empty(WIDTH)
    for row in range(WIDTH):
        x = np.zeros((WIDTH, WIDTH))
        x[row] = 2.0 ** np.arange(WIDTH)
        testing.row_sums(x, out)
        np.testing.assert_array_equal(out, np.where(np.arange(WIDTH) == row, 255.0, 0.0))


def test_tile_fits_the_registers():
    """Its sums, the numbers of one line and one broadcast number."""
    number, lanes = {"v2": (16, 2), "v3": (16, 4), "v4": (32, 8), "generic": (32, 2)}[LEVEL]
    rows, *columns = testing.tile()
    for width in columns:
        assert (rows + 1) * -(-width // lanes) + 1 <= number


@pytest.mark.parametrize("is_odd", [False, True])
def test_add_tile(is_odd):
    rows, columns = testing.tile()[0], testing.tile()[2 if is_odd else 1]
    x, y = some_numbers(600), some_numbers(2000, seed=1)
    # Lines of x and y next to each other or apart; numbers of a line of x side by side, or one for each row.
    for line_x, step_x, line_y, line_out in [(8, 1, 24, 28), (11, 1, 40, 32), (1, 50, 24, 56), (0, 3, 24, 29)]:
        for n in (0, 1, 2, 31):
            for factor in (1.0, -1.0, 0.25):
                found = some_numbers(600, seed=2)
                expected = found.copy()
                lines = np.arange(n)[:, None]
                xs, ys = x[lines * line_x + np.arange(rows) * step_x], y[lines * line_y + np.arange(columns)]
                expected[np.arange(rows)[:, None] * line_out + np.arange(columns)] += factor * (xs.T @ ys)
                testing.add_tile(is_odd, x, line_x, step_x, y, line_y, n, factor, found, line_out)
                np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
