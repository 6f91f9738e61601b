"""Sums over complete rows, against NumPy: ZᵀZ, and the data times Z, dense and sparse."""

import numpy as np
import pytest
import scipy.sparse as sp

from bnmf.data.views import dense_view, sparse_view
from bnmf.kernels.compiled import Memory, testing
from tests.kernels.draws import padded_length

RANKS = [1, 2, 7, 8, 9, 15, 16, 17, 23, 24, 25, 33, 41, 48]
LINES_PER_CHUNK = testing.LINES_PER_CHUNK
TILE_ROWS = testing.tile()[0]


def some_factor(n_rows, n_components, seed=0):
    return np.random.default_rng(seed).normal(size=(n_rows, n_components))


def padded(Z):
    """Return a factor with padding: components to whole vectors, and a row of zeros at the end."""
    out = np.zeros((len(Z) + 1, padded_length(Z.shape[1])))
    out[:-1, : Z.shape[1]] = Z
    return out


# --- the other factor


def set_factor(given, deviation=None, scale=None, memory=None):
    """Return a factor as draws read it, and its Gram matrix, after a check of its alignment."""
    side = padded_length(given.shape[1])
    Z, scaled, gram = (np.full((n, side), np.nan) for n in (len(given) + 1, len(given) + 1, side))
    assert testing.set_factor(
        given, None if deviation is None else 1.0 / deviation, scale, memory or Memory(), Z, scaled, gram
    )
    return Z, scaled, gram


@pytest.mark.parametrize("n_rows", [1, 5, LINES_PER_CHUNK - 1, LINES_PER_CHUNK, LINES_PER_CHUNK + 1, 300])
def test_factor_and_its_gram_matrix(n_rows):
    for K in RANKS:
        given = some_factor(n_rows, K)
        memory = Memory()
        set_factor(np.full((n_rows + 40, K + 9), np.nan), memory=memory)  # whatever is left of earlier work
        Z, scaled, gram = set_factor(given, memory=memory)
        np.testing.assert_array_equal(Z, padded(given))
        np.testing.assert_array_equal(scaled, Z)
        np.testing.assert_allclose(gram, padded(given).T @ padded(given), rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(gram, gram.T)


@pytest.mark.parametrize("with_deviation", [False, True])
@pytest.mark.parametrize("with_scale", [False, True])
@pytest.mark.parametrize("n_rows", [1, 50])
def test_deviations_and_scales_of_columns(with_deviation, with_scale, n_rows):
    rng = np.random.default_rng(1)
    given, deviation, scale = some_factor(n_rows, 5), rng.uniform(0.1, 3.0, n_rows), rng.uniform(0.1, 3.0, n_rows)
    before = given.copy()
    other = set_factor(given, deviation if with_deviation else None, scale if with_scale else None)
    expected = given / deviation[:, None] if with_deviation else given
    np.testing.assert_allclose(other[0], padded(expected), rtol=1e-15)
    np.testing.assert_allclose(other[1], padded(expected * scale[:, None] if with_scale else expected), rtol=1e-14)
    np.testing.assert_allclose(other[2], padded(expected).T @ padded(expected), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(given, before)


def test_memory_is_used_again():
    """What a half-sweep wrote before leaves no trace."""
    memory = Memory()
    for seed in range(3):
        given = some_factor(40, 11, seed)
        other = set_factor(given, scale=np.full(40, 2.0), memory=memory)
        np.testing.assert_array_equal(other[0], padded(given))
        np.testing.assert_array_equal(other[1], padded(2.0 * given))
        np.testing.assert_allclose(other[2], padded(given).T @ padded(given), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("factor", [1.0, -1.0, 0.5])
def test_outer_products_are_added_above_the_diagonal(factor):
    for K in RANKS:
        lines = padded(some_factor(37, K))
        side = lines.shape[1]
        for n in (0, 1, 37):
            system = some_factor(side, side, seed=3)
            expected = system + factor * lines[:n].T @ lines[:n]
            before = system.copy()
            testing.add_outer_products(factor, lines, n, system)
            upper = np.triu_indices(side)
            np.testing.assert_allclose(system[upper], expected[upper], rtol=1e-12, atol=1e-12)
            below = (
                np.arange(side)[:, None] // 8 > np.arange(side) // 8
            )  # submatrices below the diagonal are not touched
            np.testing.assert_array_equal(system[below], before[below])


# --- the data times the factor


def products(view, Z, K, row_scale, start, stop):
    """Return rows of a product in memory that was used before, and what lies behind them."""
    side = padded_length(K)
    product = np.full((view.n_rows + 1) * side, np.nan)
    testing.product(view.kernel_data, Z, K, row_scale, start, stop, product)
    return product[: (stop - start) * side].reshape(-1, side), product[(stop - start) * side :]


RANGES = [(0, 1), (0, TILE_ROWS), (3, 4 + TILE_ROWS), (2, 29), (0, 31), (5, 5)]


@pytest.mark.parametrize("n_columns", [1, 5, LINES_PER_CHUNK, LINES_PER_CHUNK + 1, 300])
def test_dense_product(n_columns):
    for K in RANKS:
        rng = np.random.default_rng(0)
        A, Z = rng.normal(size=(31, n_columns)), padded(some_factor(n_columns, K))
        view = dense_view(A, np.ones(A.shape, bool))
        for row_scale in (np.ones(1), np.full(1, 0.5), rng.uniform(0.5, 2.0, size=31)):
            for start, stop in RANGES:
                found, behind = products(view, Z, K, row_scale, start, stop)
                expected = (np.broadcast_to(row_scale, 31)[:, None] * (A @ Z[:-1]))[start:stop]
                np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
                assert np.isnan(behind).all()


@pytest.mark.parametrize("n_columns", [1, 40])
def test_sparse_product(n_columns):
    for K in RANKS:
        rng = np.random.default_rng(0)
        A = np.where(rng.uniform(size=(31, n_columns)) < 0.2, rng.normal(size=(31, n_columns)), 0.0)
        A[4], A[7] = 0.0, 1.0
        Z, view = padded(some_factor(n_columns, K)), sparse_view(sp.csr_array(A))
        for row_scale in (np.ones(1), np.full(1, 0.5), rng.uniform(0.5, 2.0, size=31)):
            for start, stop in RANGES:
                found, behind = products(view, Z, K, row_scale, start, stop)
                expected = (np.broadcast_to(row_scale, 31)[:, None] * (A @ Z[:-1]))[start:stop]
                np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
                assert np.isnan(behind).all()
