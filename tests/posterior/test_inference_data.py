"""Draws as ArviZ InferenceData: names, dimensions and groups."""

import sys
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy import stats

from bnmf.data import ObservedMatrix
from bnmf.model import Model
from bnmf.posterior import inference_data
from bnmf.posterior.draws import Draws
from bnmf.posterior.fitting import sample_posterior
from bnmf.sampler.schedule import Schedule


@pytest.fixture(autouse=True, scope="module")
def arviz():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # ArviZ announces its next version on import
        return pytest.importorskip("arviz")


def make(n_sweeps=9, **options):
    """Return 2 chains of 4 draws of a matrix of 5 rows and 3 columns."""
    rng = np.random.default_rng(0)
    return Draws(
        rng.exponential(size=(2, 4, 5, 2)),
        rng.exponential(size=(2, 4, 2, 3)),
        rng.uniform(0.5, 1.5, size=(2, 4)),
        rng.uniform(0.5, 1.5, size=(2, n_sweeps)),
        n_observed=12,
        **options,
    )


@pytest.fixture
def X():
    X = np.random.default_rng(1).exponential(size=(5, 3))
    X[1, 2] = X[3, 0] = X[4, 1] = np.nan
    return X


def test_posterior_group():
    draws = make()
    posterior = inference_data.convert(draws).posterior
    assert set(posterior.data_vars) == {"W", "Z", "noise_variance"}
    assert posterior["W"].dims == ("chain", "draw", "row", "component")
    assert posterior["Z"].dims == ("chain", "draw", "component", "column")
    assert posterior["noise_variance"].dims == ("chain", "draw")
    for name in ("W", "Z", "noise_variance"):
        np.testing.assert_array_equal(posterior[name].values, getattr(draws, name))
    for name, size in (("row", 5), ("column", 3), ("component", 2), ("chain", 2), ("draw", 4)):
        np.testing.assert_array_equal(posterior[name].values, np.arange(size))


def test_names():
    posterior = inference_data.convert(
        make(row_names=pd.Index(list("abcde")), column_names=pd.Index([10, 20, 30]))
    ).posterior
    assert list(posterior["row"].values) == list("abcde")
    assert list(posterior["column"].values) == [10, 20, 30]
    draws = make()
    np.testing.assert_array_equal(posterior["W"].sel(row="d").values, draws.W[:, :, 3])
    np.testing.assert_array_equal(posterior["Z"].sel(column=20).values, draws.Z[:, :, :, 1])


def test_sample_stats_are_those_of_the_last_sweeps():
    draws = make(n_sweeps=9)
    found = inference_data.convert(draws)
    assert found.groups() == ["posterior", "sample_stats"]
    assert found.sample_stats["train_mse"].dims == ("chain", "draw")
    np.testing.assert_array_equal(found.sample_stats["train_mse"].values, draws.train_mse[:, 5:])
    exactly = make(n_sweeps=4)
    np.testing.assert_array_equal(inference_data.convert(exactly).sample_stats["train_mse"].values, exactly.train_mse)


def test_no_sample_stats_without_an_error_for_each_draw():
    assert inference_data.convert(make(n_sweeps=3)).groups() == ["posterior"]


@pytest.mark.xfail(raises=AssertionError, reason="with thinning, the last sweeps are not those of the kept draws")
def test_sample_stats_with_thinning(X):
    model = Model(ObservedMatrix.from_data(X), 1)
    schedule = Schedule(n_chains=2, burn_in=3, n_draws=4, thinning=3)
    found = inference_data.convert(sample_posterior(model, schedule, 0)).sample_stats["train_mse"].values
    posterior = sample_posterior(model, schedule, 0)
    errors = np.nanmean((X - np.einsum("cdmk,cdkn->cdmn", posterior.W, posterior.Z)) ** 2, axis=(2, 3))
    np.testing.assert_allclose(found, errors, rtol=1e-8)


@pytest.mark.parametrize("storage", ["dense", "listed"])
def test_log_likelihood(X, storage):
    data = ObservedMatrix.from_data(X)
    if storage == "listed":
        few = np.full_like(X, np.nan)
        few[2], few[0, 1] = X[2], X[0, 1]
        X, data = few, ObservedMatrix.from_data(few)
        assert data.rows.matrix is None
    draws = make()
    found = inference_data.convert(draws, data)
    assert set(found.groups()) == {"posterior", "sample_stats", "log_likelihood", "observed_data"}
    rows, columns = np.nonzero(~np.isnan(X))
    products = np.einsum("cdmk,cdkn->cdmn", draws.W, draws.Z)[:, :, rows, columns]
    expected = stats.norm.logpdf(X[rows, columns], products, np.sqrt(draws.noise_variance)[:, :, None])
    assert found.log_likelihood["X"].dims == ("chain", "draw", "entry")
    np.testing.assert_allclose(found.log_likelihood["X"].values, expected, rtol=1e-10)
    assert found.observed_data["X"].dims == ("entry",)
    np.testing.assert_array_equal(found.observed_data["X"].values, X[rows, columns])
    np.testing.assert_array_equal(found.log_likelihood["entry"].values, np.arange(len(rows)))


def test_implicit_zeros_are_too_many():
    data = ObservedMatrix.from_data(sp.csr_array(([1.0], ([0], [0])), shape=(5, 3)))
    with pytest.raises(ValueError, match="implicit zeros are too many to list"):
        inference_data.convert(make(), data)


def test_without_arviz(monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(ImportError, match=r"to_inference_data needs ArviZ: pip install 'bnmf\[arviz\]'"):
        inference_data.convert(make())
