"""Folds: what is hidden, what is left, and what the hidden entries stand for."""

import numpy as np
import pytest
import scipy.sparse as sp
from tests.statistical.checks import assert_counts
from tests.storages import storages

from bnmf.data import ObservedMatrix
from bnmf.data.folds import folds

NAN = np.nan


def assert_hides(fold, data, X):
    """Assert that a fold hides entries of X, and nothing else."""
    at = fold.rows, fold.columns
    np.testing.assert_array_equal(fold.values, X[at])
    expected = X.copy()
    expected[at] = NAN
    np.testing.assert_array_equal(np.vstack([block for _, block in fold.rest.blocks()]), expected)
    assert fold.rest.n_observed == data.n_observed - len(fold.rows)
    assert fold.rest.nonnegative == data.nonnegative


STORAGES = storages()
DENSE = STORAGES["dense"][1]
LISTED = {
    "dense": STORAGES["dense"],
    "mostly missing": STORAGES["listed"],
    "negative": (ObservedMatrix.from_data(DENSE - 1.5, negative=True), DENSE - 1.5, None),
}


@pytest.mark.parametrize("n_folds", [2, 3, 7])
@pytest.mark.parametrize("name", LISTED)
def test_every_observed_entry_is_hidden_once(name, n_folds):
    data, X, _ = LISTED[name]
    found = list(folds(data, n_folds, np.random.default_rng(1)))
    assert len(found) == n_folds
    times = np.zeros(X.shape, int)
    for fold in found:
        np.add.at(times, (fold.rows, fold.columns), 1)
        assert_hides(fold, data, X)
        np.testing.assert_array_equal(fold.weights, np.ones(len(fold.rows)))
    np.testing.assert_array_equal(times, ~np.isnan(X))
    sizes = [len(fold.rows) for fold in found]
    assert max(sizes) - min(sizes) <= 1


# --- sparse data with implicit zeros


@pytest.mark.parametrize("n_folds", [2, 5])
def test_implicit_zeros(n_folds):
    data, X, is_stored = STORAGES["sparse"]
    assert data.has_implicit_zeros
    seen = is_stored & ~np.isnan(X)
    times, total = np.zeros(X.shape, int), 0.0
    found = list(folds(data, n_folds, np.random.default_rng(1)))
    assert len(found) == n_folds
    for fold in found:
        np.add.at(times, (fold.rows, fold.columns), 1)
        assert_hides(fold, data, X)
        total += fold.weights.sum()
        sampled = ~is_stored[fold.rows, fold.columns]
        np.testing.assert_allclose(fold.weights[sampled], (~is_stored).sum() / seen.sum(), rtol=1e-12)
        np.testing.assert_array_equal(fold.weights[~sampled], 1.0)
    np.testing.assert_array_equal(times[is_stored], seen[is_stored])  # once, and never if missing
    assert times.max() == 1
    assert times[~is_stored].sum() == seen.sum()  # as many zeros
    assert total == pytest.approx(data.n_observed, rel=1e-12)


def test_sparse_data_stay_sparse():
    wide = sp.random_array((10_000, 10_000), density=1e-6, rng=np.random.default_rng(0), format="csr")
    data = ObservedMatrix.from_data(wide)  # dense it would take 800 MB
    total = 0.0
    for fold in folds(data, 2, np.random.default_rng(0)):
        assert fold.rest.has_implicit_zeros
        total += fold.weights.sum()
    assert total == pytest.approx(1e8, rel=1e-9)


def test_zeros_alone():
    """Without an observed stored entry one zero is hidden, and it stands for all."""
    stored = sp.coo_array(([NAN, NAN], ([0, 2], [1, 2])), shape=(4, 3))
    (fold,) = folds(ObservedMatrix.from_data(stored), 3, np.random.default_rng(0))
    np.testing.assert_array_equal(fold.values, [0.0])
    np.testing.assert_array_equal(fold.weights, [10.0])
    assert (int(fold.rows[0]), int(fold.columns[0])) not in {(0, 1), (2, 2)}


def test_zeros_are_sampled_uniformly():
    data = ObservedMatrix.from_data(sp.coo_array(([2.0, NAN], ([0, 1], [1, 3])), shape=(3, 4)))
    counts = np.zeros(12, int)
    for seed in range(200):
        (fold,) = folds(data, 1, np.random.default_rng(seed))
        counts[data.flat(fold.rows, fold.columns)] += 1
    assert counts[1] == 200
    assert counts[7] == 0  # missing
    assert_counts(np.delete(counts, [1, 7]), np.full(10, 0.1))


@pytest.mark.parametrize("missing", [0.0, 0.5, 0.9])
def test_balanced_folds_leave_every_row_and_column_something(missing):
    rng = np.random.default_rng(0)
    X = rng.exponential(size=(40, 15))
    X[rng.random(X.shape) < missing] = np.nan
    X[3], X[3, 2] = np.nan, 1.0  # a row with one entry
    data = ObservedMatrix.from_data(X)
    hidden = np.zeros(X.shape, int)
    for fold in folds(data, 3, np.random.default_rng(1), balanced=True):
        rest = fold.rest.mask()
        np.testing.assert_array_equal(rest.any(axis=0), data.mask().any(axis=0))
        np.testing.assert_array_equal(rest.any(axis=1), data.mask().any(axis=1))
        assert_hides(fold, data, X)
        hidden[fold.rows, fold.columns] += 1
    assert hidden.max() == 1
    assert hidden[3, 2] == 0
    alone = data.n_observed - hidden.sum()
    assert alone <= (1 if missing < 0.9 else 25)  # nearly all entries are hidden once
    assert np.ptp([hidden[i].sum() - data.mask()[i].sum() for i in range(40)]) <= 3 or missing > 0.5


def test_columns_of_two_entries_keep_one():
    rng, X = np.random.default_rng(0), np.full((30, 200), np.nan)
    for column in range(200):
        X[rng.permutation(30)[:2], column] = 1.0
    for fold in folds(ObservedMatrix.from_data(X), 2, np.random.default_rng(1), balanced=True):
        assert fold.rest.mask().any(axis=0).all()
        assert fold.rest.mask().any(axis=1).all()


def test_more_folds_than_entries():
    X = np.full((3, 3), NAN)
    X[[0, 1, 2, 0], [0, 1, 2, 1]] = 1.0
    data = ObservedMatrix.from_data(X)
    assert [len(fold.rows) for fold in folds(data, 10, np.random.default_rng(0))] == [1, 1, 1, 1]
    with pytest.raises(ValueError, match="n_folds=3 is too many"):
        list(folds(data, 3, np.random.default_rng(0), balanced=True))
