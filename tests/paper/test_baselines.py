"""The baselines: properties that all share, and each against an independent computation."""

import numpy as np
import pytest
from sklearn.decomposition import NMF

from bnmf.datasets import make_low_rank
from bnmf.paper.baselines import BASELINES, _objective, column_mean, masked_nmf, nearest_neighbours, row_column_mean

LOSSES = {"squared": "frobenius", "kullback-leibler": "kullback-leibler"}


@pytest.fixture
def made():
    made = make_low_rank(40, 25, 2, noise=0.05, missing=0.3, negative=True, random_state=0)
    made.data = np.abs(made.data)
    return made


@pytest.mark.parametrize("name", BASELINES)
def test_missing_entries_are_filled_and_observed_ones_unchanged(name, made):
    made.data[3] = np.nan  # nothing is known of a row and of a column
    made.data[:, 7] = np.nan
    before, observed = made.data.copy(), ~np.isnan(made.data)
    filled = BASELINES[name](made.data)
    assert filled.shape == made.data.shape
    assert np.isfinite(filled).all()
    np.testing.assert_array_equal(filled[observed], before[observed])
    np.testing.assert_array_equal(made.data, before)
    assert before[observed].min() <= filled[3, 7] <= before[observed].max()


# ---------------------------------------------------------------- means and neighbours


def test_column_mean_is_the_mean_of_the_column(made):
    filled = column_mean(made.data)
    expected = np.broadcast_to(np.nanmean(made.data, axis=0), made.data.shape)
    np.testing.assert_allclose(filled[~made.observed], expected[~made.observed])


def test_row_column_mean_is_the_least_squares_fit(made):
    rows, columns = np.nonzero(made.observed)
    design = np.zeros((len(rows), 65))
    design[np.arange(len(rows)), rows] = 1
    design[np.arange(len(rows)), 40 + columns] = 1
    effects = np.linalg.lstsq(design, made.data[rows, columns], rcond=None)[0]
    expected = effects[:40, None] + effects[40:]
    np.testing.assert_allclose(row_column_mean(made.data)[~made.observed], expected[~made.observed], rtol=1e-6)


def test_neighbours_copy_the_most_similar_row():
    X = np.array([[1.0, 1, 5], [1, 1, np.nan], [9, 9, 0], [9, 9, np.nan]])
    filled = nearest_neighbours(X, n_neighbors=1)
    assert filled[1, 2] == 5
    assert filled[3, 2] == 0


# ---------------------------------------------------------------- masked NMF


def objective(loss, X, fit):
    """Return what the updates of a masked NMF lower."""
    mask = ~np.isnan(X)
    return _objective(loss, np.where(mask, X, 0.0), mask.astype(float), fit.W @ fit.Z)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_objective_never_increases(loss):
    rng = np.random.default_rng(0)
    X = rng.poisson(3.0, size=(30, 20)).astype(float)  # includes zeros, which the logarithm excludes
    X[rng.random(X.shape) < 0.4] = np.nan
    fit, found = masked_nmf(X, 5, loss=loss, max_iter=0, random_state=0), []
    for _ in range(400):
        found.append(objective(loss, X, fit))
        fit = masked_nmf(X, 5, loss=loss, max_iter=1, init=fit)
    assert np.diff(found).max() <= 1e-9 * found[0]
    assert found[-1] < 0.5 * found[0]
    assert min(fit.W.min(), fit.Z.min()) >= 0


@pytest.mark.parametrize("loss", LOSSES)
def test_the_objective_uses_the_observed_entries(loss, made):
    fit = masked_nmf(made.data, 3, loss=loss, random_state=0)
    A, fitted = made.data[made.observed], (fit.W @ fit.Z)[made.observed]
    if loss == "squared":
        expected = 0.5 * np.sum((A - fitted) ** 2)
    else:
        expected = np.sum(A * np.log(A / fitted) - A + fitted)
    assert objective(loss, made.data, fit) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_iter", [1, 50])
def test_iterations_on_complete_data_agree_with_scikit_learn(loss, n_iter):
    rng = np.random.default_rng(0)
    X = rng.gamma(2.0, size=(30, 20))
    W0, Z0 = rng.uniform(0.5, 1.5, size=(30, 4)), rng.uniform(0.5, 1.5, size=(4, 20))
    peer = NMF(4, init="custom", solver="mu", beta_loss=LOSSES[loss], max_iter=n_iter, tol=0)
    peer.fit_transform(X, W=W0.copy(), H=Z0.copy())
    fit = masked_nmf(X, 4, loss=loss, max_iter=n_iter, tol=0, init=(W0, Z0))
    assert objective(loss, X, fit) == pytest.approx(0.5 * peer.reconstruction_err_**2, rel=1e-6)
    np.testing.assert_allclose(fit.Z, peer.components_, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_missing_entries_have_no_influence(loss, made):
    fit = masked_nmf(made.data, 2, loss=loss, max_iter=50, random_state=0)
    part = masked_nmf(made.data[:, :24], 2, loss=loss, max_iter=50, tol=0, init=(fit.W, fit.Z[:, :24]))
    empty_column = np.column_stack((made.data[:, :24], np.full(40, np.nan)))
    whole = masked_nmf(empty_column, 2, loss=loss, max_iter=50, tol=0, init=(fit.W, fit.Z))
    np.testing.assert_allclose(whole.W, part.W, rtol=1e-9)


def test_negative_data_raise_an_error():
    with pytest.raises(ValueError, match=r"X must be nonnegative for NMF, but its smallest entry is -2.0"):
        masked_nmf([[1.0, -2.0], [np.nan, 3.0]], 1)
