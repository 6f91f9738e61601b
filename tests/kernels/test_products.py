"""Sums over complete rows, against NumPy: ZᵀZ, and the data times Z, dense and sparse."""

import numpy as np
import pytest
import scipy.sparse as sp

from bnmf.kernels.processor import TILE
from bnmf.kernels.products import LINES_PER_CHUNK, set_other
from bnmf.kernels.rows import aligned_zeros, padded_length
from bnmf.sampler.threads import Workers
from tests.kernels.compiled import add_outer_products, set_dense_product, set_sparse_product

RANKS = [1, 2, 7, 8, 9, 15, 16, 17, 23, 24, 25, 33, 41, 48]
NONE = np.zeros(0)


def some_factor(n_rows, n_components, seed=0):
    return np.random.default_rng(seed).normal(size=(n_rows, n_components))


def padded(Z):
    """Return a factor with padding: components to whole vectors, and a row of zeros at the end."""
    out = np.zeros((len(Z) + 1, padded_length(Z.shape[1])))
    out[:-1, : Z.shape[1]] = Z
    return out


# --- the other factor


@pytest.mark.parametrize("K", RANKS)
@pytest.mark.parametrize("n_rows", [1, 5, LINES_PER_CHUNK - 1, LINES_PER_CHUNK, LINES_PER_CHUNK + 1, 300])
def test_factor_and_its_gram_matrix(K, n_rows):
    given = some_factor(n_rows, K)
    Z, scaled, gram = Workers().other_factor(n_rows, K, is_scaled=False)
    Z[:] = gram[:] = np.nan  # whatever is left of earlier work
    set_other(given, NONE, NONE, (Z, scaled, gram))
    np.testing.assert_array_equal(Z, padded(given))
    assert scaled is Z
    np.testing.assert_allclose(gram, padded(given).T @ padded(given), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(gram, gram.T)


@pytest.mark.parametrize("with_deviation", [False, True])
@pytest.mark.parametrize("with_scale", [False, True])
@pytest.mark.parametrize("n_rows", [1, 50])
def test_deviations_and_scales_of_columns(with_deviation, with_scale, n_rows):
    rng = np.random.default_rng(1)
    given, deviation, scale = some_factor(n_rows, 5), rng.uniform(0.1, 3.0, n_rows), rng.uniform(0.1, 3.0, n_rows)
    before = given.copy()
    other = Workers().other_factor(n_rows, 5, is_scaled=with_scale)
    set_other(given, deviation if with_deviation else NONE, scale if with_scale else NONE, other)
    expected = given / deviation[:, None] if with_deviation else given
    np.testing.assert_allclose(other[0], padded(expected), rtol=1e-15)
    np.testing.assert_allclose(other[1], padded(expected * scale[:, None] if with_scale else expected), rtol=1e-14)
    np.testing.assert_allclose(other[2], padded(expected).T @ padded(expected), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(given, before)


def test_memory_is_used_again():
    """What a half-sweep wrote before leaves no trace."""
    workers = Workers()
    for seed in range(3):
        given = some_factor(40, 11, seed)
        other = workers.other_factor(40, 11, is_scaled=True)
        set_other(given, NONE, np.full(40, 2.0), other)
        np.testing.assert_array_equal(other[0], padded(given))
        np.testing.assert_array_equal(other[1], padded(2.0 * given))
        np.testing.assert_allclose(other[2], padded(given).T @ padded(given), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("K", RANKS)
@pytest.mark.parametrize("factor", [1.0, -1.0, 0.5])
def test_outer_products_are_added_above_the_diagonal(K, factor):
    lines = padded(some_factor(37, K))
    side = lines.shape[1]
    for n in (0, 1, 37):
        system = some_factor(side, side, seed=3)
        expected = system + factor * lines[:n].T @ lines[:n]
        before = system.copy()
        add_outer_products(factor, lines.ravel(), n, system.ravel(), side)
        upper = np.triu_indices(side)
        np.testing.assert_allclose(system[upper], expected[upper], rtol=1e-12, atol=1e-12)
        below = np.arange(side)[:, None] // 8 > np.arange(side) // 8  # submatrices below the diagonal are not touched
        np.testing.assert_array_equal(system[below], before[below])


# --- the data times the factor


def products(make, n_rows, K, row_scale, start, stop):
    """Return rows of a product in memory that was used before, and what lies behind them."""
    side = padded_length(K)
    product = aligned_zeros((n_rows + 1) * side)
    product[:] = np.nan
    make(row_scale, start, stop, product)
    return product[: (stop - start) * side].reshape(-1, side), product[(stop - start) * side :]


RANGES = [(0, 1), (0, TILE.rows), (3, 4 + TILE.rows), (2, 29), (0, 31), (5, 5)]


@pytest.mark.parametrize("K", RANKS)
@pytest.mark.parametrize("n_columns", [1, 5, LINES_PER_CHUNK, LINES_PER_CHUNK + 1, 300])
def test_dense_product(K, n_columns):
    rng = np.random.default_rng(0)
    A, Z = rng.normal(size=(31, n_columns)), padded(some_factor(n_columns, K))
    for row_scale in (np.ones(1), np.full(1, 0.5), rng.uniform(0.5, 2.0, size=31)):
        for start, stop in RANGES:
            found, behind = products(
                lambda *rest: set_dense_product(A, Z, K, *rest), 31, K, row_scale, start, stop
            )  # fmt: skip
            expected = (np.broadcast_to(row_scale, 31)[:, None] * (A @ Z[:-1]))[start:stop]
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
            assert np.isnan(behind).all()


@pytest.mark.parametrize("K", RANKS)
@pytest.mark.parametrize("n_columns", [1, 40])
def test_sparse_product(K, n_columns):
    rng = np.random.default_rng(0)
    A = np.where(rng.uniform(size=(31, n_columns)) < 0.2, rng.normal(size=(31, n_columns)), 0.0)
    A[4], A[7] = 0.0, 1.0
    Z, stored = padded(some_factor(n_columns, K)), sp.csr_array(A)
    csr = stored.indptr.astype(np.int64), stored.indices.astype(np.uint32), stored.data
    for row_scale in (np.ones(1), np.full(1, 0.5), rng.uniform(0.5, 2.0, size=31)):
        for start, stop in RANGES:
            found, behind = products(lambda *rest: set_sparse_product(*csr, Z, *rest), 31, K, row_scale, start, stop)
            expected = (np.broadcast_to(row_scale, 31)[:, None] * (A @ Z[:-1]))[start:stop]
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
            assert np.isnan(behind).all()
