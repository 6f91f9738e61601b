"""Posterior: predictions from draws against the same computed by hand."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from bnmf import Posterior
from bnmf.data import ObservedMatrix
from bnmf.model import Model
from bnmf.posterior import predictions
from bnmf.posterior.fitting import sample_posterior
from bnmf.sampler.schedule import Schedule


@pytest.fixture
def posterior():
    rng = np.random.default_rng(0)
    return Posterior(
        rng.exponential(size=(2, 50, 6, 3)),
        rng.exponential(size=(2, 50, 3, 5)),
        rng.uniform(0.5, 1.5, size=(2, 50)),
        rng.uniform(0.5, 1.5, size=(2, 80)),
        n_observed=20,
        row_names=pd.Index(list("abcdef")),
        column_names=pd.Index(["v", "w", "x", "y", "z"]),
    )


@pytest.fixture
def products(posterior):
    return np.einsum("cdmk,cdkn->cdmn", posterior.W, posterior.Z)


@pytest.fixture(params=[2**26, 300])
def tile_bytes(request, monkeypatch):
    monkeypatch.setattr(predictions, "TILE_BYTES", request.param)


def quantile(draws, q):
    return np.quantile(draws, q, axis=(0, 1), method="weibull")


@pytest.mark.usefixtures("tile_bytes")
def test_mean_std_quantile(posterior, products):
    np.testing.assert_allclose(posterior.mean(), products.mean(axis=(0, 1)))
    np.testing.assert_allclose(posterior.std(), products.std(axis=(0, 1)))
    total = products.var(axis=(0, 1)) + posterior.noise_variance.mean()
    np.testing.assert_allclose(posterior.std(noise=True), np.sqrt(total))
    np.testing.assert_allclose(posterior.quantile([0.1, 0.5]), quantile(products, [0.1, 0.5]))
    np.testing.assert_allclose(posterior.quantile(0.3), quantile(products, 0.3))


@pytest.mark.usefixtures("tile_bytes")
def test_chosen_entries(posterior, products):
    rows, columns = [0, 5, 2], [4, 0, 2]
    chosen = products[:, :, rows, columns]
    np.testing.assert_allclose(posterior.draws_of(rows, columns), chosen)
    np.testing.assert_allclose(posterior.mean(rows, columns), chosen.mean(axis=(0, 1)))
    np.testing.assert_allclose(posterior.std(rows, columns), chosen.std(axis=(0, 1)))
    np.testing.assert_allclose(posterior.quantile(0.2, rows, columns), quantile(chosen, 0.2))
    np.testing.assert_allclose(posterior.mean_of_rows(slice(2, 5)), products.mean(axis=(0, 1))[2:5])
    total = chosen.var(axis=(0, 1)) + posterior.noise_variance.mean()
    np.testing.assert_allclose(posterior.std(rows, columns, noise=True), np.sqrt(total))


def test_noise_is_in_predictive_draws_and_intervals():
    """A posterior of one known value: predictive quantiles are those of a normal."""
    one = Posterior(
        np.full((1, 20_000, 1, 1), 3.0), np.full((1, 20_000, 1, 1), 2.0), np.full((1, 20_000), 4.0),
        np.ones((1, 1)), n_observed=1,
    )  # fmt: skip
    low, high = one.interval(0.8)
    # The standard error of a quantile of 20,000 draws is √(q(1-q)/n) / density: 0.024 here; five of them.
    np.testing.assert_allclose([low[0, 0], high[0, 0]], stats.norm.interval(0.8, 6.0, 2.0), atol=5 * 0.024)
    low, high = one.interval(0.8, noise=False)
    assert low[0, 0] == high[0, 0] == 6.0
    draws = one.draws_of([0], [0], noise=True)
    assert stats.kstest(draws.ravel(), stats.norm(6.0, 2.0).cdf).pvalue > 1e-4


def test_one_predictive_law():
    """Quantiles, intervals and draws of new data are those of a normal cut at the lower bound of the data."""
    draws = {
        "W": np.full((1, 20_000, 1, 1), 0.5),
        "Z": np.ones((1, 20_000, 1, 1)),
        "noise_variance": np.ones((1, 20_000)),
    }
    bounded = Posterior(**draws, train_mse=np.ones((1, 1)), n_observed=1)
    free = Posterior(**draws, train_mse=np.ones((1, 1)), n_observed=1, lower_bound=-np.inf)
    below_zero = stats.norm(0.5, 1.0).cdf(0.0)
    for posterior, expected in ((bounded, below_zero), (free, 0.0)):
        values = posterior.draws_of([0], [0], noise=True)
        # 20,000 draws: a standard error of 0.0033, and five of them.
        assert np.mean(values == 0.0) == pytest.approx(expected, abs=5 * 0.0033)
        low, high = posterior.interval(0.9)
        assert low[0, 0] == np.quantile(values, 0.05, method="weibull")
        assert high[0, 0] == np.quantile(values, 0.95, method="weibull")
    assert bounded.interval(0.9)[0][0, 0] == 0.0
    assert free.interval(0.9)[0][0, 0] < -0.5


def test_random_states(posterior):
    first = posterior.draws_of([0], [0], noise=True, random_state=3)
    assert np.array_equal(first, posterior.draws_of([0], [0], noise=True, random_state=np.random.default_rng(3)))
    old = [posterior.quantile(0.5, noise=True, random_state=np.random.RandomState(7)) for _ in range(2)]
    assert np.array_equal(*old)
    assert not np.array_equal(old[0], posterior.quantile(0.5, noise=True, random_state=np.random.RandomState(8)))


def test_log_likelihood(posterior, products):
    rows, columns, values = [1, 4], [3, 3], [0.7, 2.0]
    expected = stats.norm.logpdf(values, products[:, :, rows, columns], np.sqrt(posterior.noise_variance)[:, :, None])
    np.testing.assert_allclose(posterior.log_likelihood(rows, columns, values), expected)
    density = np.log(np.exp(expected).mean(axis=(0, 1)))
    np.testing.assert_allclose(posterior.log_predictive_density(rows, columns, values), density)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda p: p.mean([0], None), ValueError, "give both or neither"),
        (lambda p: p.mean([0, 1], [0]), ValueError, "paired lists"),
        (lambda p: p.mean([6], [0]), IndexError, "rows must be whole numbers below 6"),
        (lambda p: p.mean([0], [0.5]), IndexError, "columns must be whole numbers"),
        (lambda p: p.quantile(1.5), ValueError, "q must be between 0 and 1"),
        (lambda p: p.interval(0.0), ValueError, "prob must be between 0 and 1"),
        (lambda p: p.log_likelihood([0], [0], [1.0, 2.0]), ValueError, "values must be as many"),
        (lambda p: p.for_rows(np.ones((1, 3))), ValueError, "X has 3 columns"),
        (lambda p: p.for_rows(np.ones((1, 5))), ValueError, "does not hold the prior of W"),
        (lambda p: p.quantile(0.5, noise=True, random_state="x"), ValueError, "random_state must be None, a whole"),
        (lambda p: p.to_inference_data(np.ones((5, 6))), ValueError, r"the shape of the fitted data, \(6, 5\), got"),
    ],
)
def test_bad_calls(posterior, call, error, words):
    with pytest.raises(error, match=words):
        call(posterior)


def test_align_changes_factors_and_no_prediction(posterior):
    aligned = posterior.align()
    np.testing.assert_allclose(aligned.mean(), posterior.mean())
    np.testing.assert_allclose(aligned.W.mean(axis=2), 1.0)


def test_summary_shows_the_worst_and_ends_with_a_sentence(posterior):
    table = posterior.summary()
    assert list(table.index) == ["noise variance", "log likelihood", "predictions", "aligned W", "aligned Z"]
    assert table.loc["noise variance", "mean"] == pytest.approx(posterior.noise_variance.mean())
    assert 0.95 < table.loc["predictions", "r_hat"] < 1.2
    assert repr(table).endswith(table.verdict)
    assert table.verdict in table._repr_html_()


def test_to_inference_data(posterior):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of ArviZ, on its own next version
        arviz = pytest.importorskip("arviz")
        data = posterior.to_inference_data(aligned=False)
        summary = arviz.summary(data, var_names=["noise_variance"])
    assert data.posterior["W"].dims == ("chain", "draw", "row", "component")
    assert data.posterior["Z"].dims == ("chain", "draw", "component", "column")
    assert list(data.posterior["row"].values) == list("abcdef")
    assert list(data.posterior["column"].values) == ["v", "w", "x", "y", "z"]
    np.testing.assert_array_equal(data.posterior["Z"].values, posterior.Z)
    assert data.sample_stats["train_mse"].shape == (2, 50)
    assert summary["mean"].iloc[0] == pytest.approx(posterior.noise_variance.mean(), abs=0.01)


def test_leave_one_out_of_inference_data():
    """ArviZ's LOO takes the log likelihood, and prefers the rank that the data have."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of ArviZ on its next version and on Pareto k, and of short chains
        arviz = pytest.importorskip("arviz")
        rng = np.random.default_rng(0)
        X = rng.exponential(size=(40, 2)) @ rng.exponential(size=(2, 12)) + 0.3 * rng.random((40, 12))
        X[rng.random(X.shape) < 0.2] = np.nan
        data = ObservedMatrix.from_data(X)
        elpd = []
        for rank in (1, 2):
            model = Model(data, rank)
            posterior = sample_posterior(model, Schedule(n_chains=2, burn_in=200, n_draws=200), seed=0)
            inference = posterior.to_inference_data(X)
            elpd.append(arviz.loo(inference).elpd_loo)
    assert inference.log_likelihood["X"].shape == (2, 200, data.n_observed)
    np.testing.assert_array_equal(inference.observed_data["X"], X[~np.isnan(X)])
    assert elpd[1] > elpd[0] + 10


def test_repr(posterior):
    assert repr(posterior) == "<Posterior of a 6 x 5 matrix, K = 3: 2 chains of 50 draws>"
