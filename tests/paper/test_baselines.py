"""The baselines: properties that all share, and each against an independent computation."""

import numpy as np
import pytest
from scipy.special import kl_div
from sklearn.decomposition import NMF

from bnmf.datasets import make_low_rank
from bnmf.paper.baselines import BASELINES, column_mean, masked_nmf, row_column_mean


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


def test_column_mean_is_the_mean_of_the_column(made):
    expected = np.where(made.observed, made.data, np.nanmean(made.data, axis=0))
    np.testing.assert_allclose(column_mean(made.data), expected)


def test_row_column_mean_is_the_least_squares_fit(made):
    rows, columns = np.nonzero(made.observed)
    design = np.hstack([np.eye(40)[rows], np.eye(25)[columns]])
    effects = np.linalg.lstsq(design, made.data[rows, columns], rcond=None)[0]
    expected = effects[:40, None] + effects[40:]
    np.testing.assert_allclose(row_column_mean(made.data)[~made.observed], expected[~made.observed], rtol=1e-6)


LOSSES = {
    "squared": ("frobenius", lambda A, fitted: 0.5 * (A - fitted) ** 2),
    "kullback-leibler": ("kullback-leibler", kl_div),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_updates_of_nmf_lower_the_loss_of_the_observed_entries(loss):
    rng = np.random.default_rng(0)
    X = rng.poisson(3.0, size=(30, 20)).astype(float)  # includes zeros, which the logarithm excludes
    X[rng.random(X.shape) < 0.4] = np.nan
    seen, found = ~np.isnan(X), []
    for n in (0, 1, 2, 3, 5, 10, 50, 400):
        W, Z = masked_nmf(X, 5, loss=loss, max_iter=n, tol=0, random_state=0)
        found.append(LOSSES[loss][1](X[seen], (W @ Z)[seen]).sum())
        assert min(W.min(), Z.min()) >= 0
    assert max(np.diff(found)) < 0
    assert found[-1] < 0.5 * found[0]


@pytest.mark.parametrize("loss", LOSSES)
def test_nmf_of_complete_data_is_that_of_scikit_learn(loss):
    X = np.random.default_rng(0).gamma(2.0, size=(30, 20))
    W0, Z0 = masked_nmf(X, 4, loss=loss, max_iter=0, random_state=0)
    peer = NMF(4, init="custom", solver="mu", beta_loss=LOSSES[loss][0], max_iter=50, tol=0)
    expected = peer.fit_transform(X, W=W0.copy(), H=Z0.copy())
    W, Z = masked_nmf(X, 4, loss=loss, max_iter=50, tol=0, random_state=0)
    np.testing.assert_allclose(W, expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(Z, peer.components_, rtol=1e-4, atol=1e-6)


def test_negative_data_raise_an_error():
    with pytest.raises(ValueError, match=r"X must be nonnegative for NMF, but its smallest entry is -2.0"):
        masked_nmf([[1.0, -2.0], [np.nan, 3.0]], 1)
