"""One fit: what it keeps, where its randomness comes from, and what may go wrong."""

import numpy as np
import pytest

from bnmf import gibbs
from bnmf.experiments import fits
from bnmf.experiments.fits import BIN_EDGES, Fit, run_fit
from bnmf.experiments.models import METHODS, PRIORS
from bnmf.observed import ObservedMatrix

SHORT = {"n_sweeps": 30, "burn_in": 10}


@pytest.fixture
def X():
    rng = np.random.default_rng(0)
    X = rng.exponential(3.0, (20, 4)) @ rng.exponential(1.0, (4, 12)) + rng.uniform(0, 1, (20, 12))
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


def test_full_fit_keeps_curve_and_factor(X):
    result = run_fit(Fit("made", "gl22", 3, 0, **SHORT), X)
    assert result["train_mse"].shape == (30,)
    assert np.isfinite(result["train_mse"]).all()
    assert result["w_mean"] > 0
    assert 0 <= result["w_sparsity"] <= 100
    assert result["w_counts"].sum() == fits.LAST * 20 * 3
    assert len(result["w_counts"]) == len(BIN_EDGES) - 1
    assert result["contributions"].shape == (3,)
    assert (np.diff(result["contributions"]) <= 0).all()
    assert "test_mse" not in result


def test_prediction_is_the_mean_of_products(X):
    fit = Fit("made", "gee", 3, 1, unobserved=0.5, **SHORT)
    train, test = fits.masks(fit, X)
    assert train.sum() == int(X.size * 0.5)
    assert not (train & test).any()
    seed = fits.seed_of(fit.seed, "chain", fit.dataset, fit.k, fit.unobserved, fit.noise, fit.repeat)
    model = gibbs.Model(ObservedMatrix.from_data(X, train), 3, "gee", rescale=False)
    states = list(gibbs.sample(model, gibbs.Stream(seed), n_sweeps=30))[10:]
    prediction = np.mean([s.W @ s.Z for s in states], axis=0)
    expected = np.mean((prediction - X)[test] ** 2)
    result = run_fit(fit, X)
    assert result["test_mse"] == pytest.approx(expected)
    assert result["test_mse"] == result["test_mse_clean"]


def test_same_description_same_numbers_other_repeat_others(X):
    fit = Fit("made", "gl22inf", 3, 0, unobserved=0.5, **SHORT)
    first, again = run_fit(fit, X), run_fit(fit, X)
    other = run_fit(Fit("made", "gl22inf", 3, 1, unobserved=0.5, **SHORT), X)
    assert first["test_mse"] == again["test_mse"] != other["test_mse"]


def test_models_of_a_scenario_share_split_and_noise(X):
    gee, gl22 = (Fit("made", model, 3, 2, unobserved=0.5, noise=0.5) for model in ("gee", "gl22"))
    np.testing.assert_array_equal(fits.masks(gee, X)[0], fits.masks(gl22, X)[0])
    np.testing.assert_array_equal(fits.noisy(gee, X), fits.noisy(gl22, X))
    assert np.nanvar(fits.noisy(gee, X) - X) == pytest.approx(0.5 * np.nanvar(X), rel=0.3)


def test_noise_may_make_entries_negative(X):
    fit = Fit("made", "gl22", 2, 0, unobserved=0.3, noise=1.0, **SHORT)
    assert np.nanmin(fits.noisy(fit, X)) < 0
    result = run_fit(fit, X)
    assert result["test_mse"] > result["test_mse_clean"]
    assert result["variance"] > result["variance_clean"]


@pytest.mark.parametrize("model", list(METHODS))
def test_every_model_and_baseline_predicts(model, X):
    k = 0 if model in ("column_mean", "row_column_mean", "knn") else 3
    result = run_fit(Fit("made", model, k, 0, unobserved=0.5, **SHORT), X)
    assert result["test_mse"] > 0


@pytest.mark.parametrize("start", fits.STARTS)
def test_starts(start, X):
    fit = Fit("made", "gl12", 3, 0, unobserved=0.5, start=start, **SHORT)
    model = gibbs.Model(ObservedMatrix.from_data(X), 3, "gl12", rescale=False)
    values = fits.start_values(fit, model)
    if start == "prior":
        assert values == "random"
    else:
        assert values[0].shape == (20, 3)
        assert values[1].shape == (3, 12)
        assert all((factor >= 0).all() for factor in values)
    assert run_fit(fit, X)["test_mse"] > 0


def test_a_chain_that_leaves_the_numbers_ends_quietly(X, monkeypatch):
    def runaway(model, stream, *, init, n_sweeps):
        for sweep, size in enumerate([1.0, 1e200, np.inf, np.nan], start=1):
            yield gibbs.State(np.full((20, 3), size), np.ones((12, 3)), 1.0, 5.0, sweep)

    monkeypatch.setattr(fits.gibbs, "sample", runaway)
    result = run_fit(Fit("made", "glinf-published", 3, 0, unobserved=0.5, **SHORT), X)
    assert np.isfinite(result["train_mse"][:2]).all()
    assert np.isnan(result["train_mse"][2:]).all()
    assert np.isnan(result["w_mean"])
    assert "test_mse" not in result


def test_settings_of_a_baseline_leave_out_the_chain():
    assert "n_sweeps" not in Fit("made", "nmf", 3, 0).settings()
    assert Fit("made", "gee", 3, 0).settings()["n_sweeps"] == 500


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"model": "gl3"}, "model must be one of"),
        ({"start": "here"}, "start must be one of"),
        ({"burn_in": 500}, "burn_in must be at least 0 and below"),
    ],
)
def test_wrong_descriptions_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        Fit(**{"dataset": "made", "model": "gee", "k": 3, "repeat": 0, **wrong})


def test_fingerprint_tells_samplers_apart(monkeypatch):
    before = fits.sampler_fingerprint("gee")
    assert len(before) == 16
    assert len({fits.sampler_fingerprint(model) for model in PRIORS}) == len(PRIORS)
    fits.sampler_fingerprint.cache_clear()
    assert fits.sampler_fingerprint("gee") == before
    monkeypatch.setitem(PRIORS, "gee", PRIORS["gl22"])
    fits.sampler_fingerprint.cache_clear()
    assert fits.sampler_fingerprint("gee") != before
    fits.sampler_fingerprint.cache_clear()
