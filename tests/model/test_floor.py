"""The floor of the noise of a column: a part of what a regression on the other columns leaves unexplained."""

import warnings

import numpy as np
import pytest

from bnmf import BayesianNMF
from bnmf.data.observed import ObservedMatrix
from bnmf.model.model import Model
from bnmf.model.noise import MAX_PRECISION, unexplained_variances
from bnmf.model.units import units_of
from bnmf.noise import GroupedNoise, StudentT

STEP = 2.0 ** (1 / 16)  # to whose powers shares are rounded


def correlated(n_rows=400, n_columns=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 2)) @ rng.normal(size=(2, n_columns)) + 0.3 * rng.normal(size=(n_rows, n_columns))
    return X * 10.0 ** np.arange(-2, n_columns - 2) + 100.0


def by_regression(X):
    """Return the variance of the residuals of each column regressed on the others and a constant."""
    left = []
    for column in range(X.shape[1]):
        others = np.column_stack([np.ones(len(X)), np.delete(X, column, axis=1)])
        left.append(np.var(X[:, column] - others @ np.linalg.lstsq(others, X[:, column], rcond=None)[0]))
    return np.array(left)


def test_complete_columns_are_regressed_on_each_other():
    X = correlated()
    ratio = unexplained_variances(X) / by_regression(X)
    assert (np.abs(np.log(ratio)) < np.log(STEP)).all()


def test_missing_entries_are_filled_by_the_regression():
    X = correlated()
    hidden = np.random.default_rng(1).random(X.shape) < 0.2
    ratio = unexplained_variances(np.where(hidden, np.nan, X)) / by_regression(X)
    # A fifth fewer entries, of 400: the relative error of a variance is about 0.08; five of them.
    assert (np.abs(ratio - 1.0) < 0.4).all()
    filled_by_means = by_regression(np.where(hidden, X.mean(axis=0), X)) / by_regression(X)
    assert (filled_by_means > 1.5).any()  # which would be another estimate


def test_columns_that_others_determine_have_nothing_unexplained():
    X = correlated()
    X = np.column_stack([X, X[:, 0], np.full(len(X), 3.0)])
    left = unexplained_variances(X) / np.where(X.var(axis=0) > 0, X.var(axis=0), 1.0)
    assert left[0] < 1e-3
    assert left[6] < 1e-3
    assert left[7] == 0.0
    assert unexplained_variances(np.random.default_rng(0).normal(size=(5, 40))).max() < 0.2  # more columns than rows


def test_rounding_errors_change_nothing():
    X = correlated()
    np.testing.assert_array_equal(unexplained_variances(X), unexplained_variances(X * (1.0 + 1e-15)))


def bounds(X, noise, **options):
    data = ObservedMatrix.from_data(X, negative=True, **options)
    return Model(data, 2, noise=noise, units=units_of(data, "column", None)[0]).max_precisions


@pytest.mark.parametrize("noise", [GroupedNoise("column"), GroupedNoise("both"), StudentT(floor=0.35)], ids=str)
def test_precisions_are_bounded_by_it(noise):
    X = correlated()
    scale = np.sqrt(np.mean(X**2, axis=0))
    smallest = 1.0 / np.sqrt(bounds(X, noise)["Z"]) * scale
    np.testing.assert_allclose(smallest, 0.35 * np.sqrt(unexplained_variances(X / scale)) * scale, rtol=1e-9)


def test_no_floor():
    X = correlated()
    for noise in (GroupedNoise(floor=0.0), GroupedNoise("row"), StudentT(by="row", floor=0.35), StudentT()):
        assert noise.floor == 0.0
    assert (bounds(X, GroupedNoise(floor=0.0))["Z"] == MAX_PRECISION).all()
    with pytest.raises(ValueError, match="floor of GroupedNoise must be a number from 0 to 1, got 2"):
        GroupedNoise(floor=2)


def test_noise_of_columns_of_their_own_does_not_vanish():
    """As many components as columns that have nothing in common: each could follow one column exactly."""
    rng = np.random.default_rng(1)
    X = np.where(rng.random((200, 6)) < 0.6, 0.0, rng.gamma(0.7, 5.0, (200, 6)))
    settings = {"n_components": 6, "n_chains": 1, "burn_in": 100, "n_draws": 20, "random_state": 0}
    with warnings.catch_warnings(action="ignore"):
        free, bounded = (
            BayesianNMF(noise=GroupedNoise(floor=floor), **settings).fit(X).posterior_ for floor in (0.0, 0.35)
        )
    left = np.sqrt(unexplained_variances(X))
    assert (np.sqrt(bounded.noise_variance) >= 0.33 * left).all()  # up to the rounding of the floor
    assert (np.sqrt(free.noise_variance).min(axis=(0, 1)) < 0.2 * left).any()
