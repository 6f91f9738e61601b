"""One fit: its result, its random numbers, and its errors."""

import numpy as np
import pytest

from bnmf.data.observed import ObservedMatrix
from bnmf.model.model import Model
from bnmf.model.noise import common
from bnmf.paper import fits
from bnmf.paper.fits import BIN_EDGES, Fit, run_fit
from bnmf.paper.methods import METHODS, PRIORS
from bnmf.sampler import gibbs
from bnmf.sampler.moves import PLAIN
from bnmf.sampler.state import State
from bnmf.sampler.streams import Stream

SHORT_CHAIN = {"n_sweeps": 30, "burn_in": 10}


@pytest.fixture
def X():
    rng = np.random.default_rng(0)
    X = rng.exponential(3.0, (20, 4)) @ rng.exponential(1.0, (4, 12)) + rng.uniform(0, 1, (20, 12))
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


def test_fit_of_all_entries_has_curve_and_factor_summary(X):
    result = run_fit(Fit("made", "gl22", 3, 0, **SHORT_CHAIN), X)
    assert result["train_mse"].shape == (30,)
    assert np.isfinite(result["train_mse"]).all()
    assert result["w_mean"] > 0
    assert 0 <= result["w_sparsity"] <= 100
    assert result["w_counts"].sum() == fits.N_FACTOR_SWEEPS * 20 * 3
    assert len(result["w_counts"]) == len(BIN_EDGES) - 1
    assert result["contributions"].shape == (3,)
    assert (np.diff(result["contributions"]) <= 0).all()
    assert "test_mse" not in result


def test_prediction_is_the_mean_of_products(X):
    fit = Fit("made", "gee", 3, 1, unobserved=0.5, **SHORT_CHAIN)
    train, test = fits.masks(fit, X)
    assert train.sum() == int(X.size * 0.5)
    assert not (train & test).any()
    seed = fits.seed_of(fit.seed, "chain", fit.dataset, fit.k, fit.unobserved, fit.noise, fit.repeat)
    model = Model(ObservedMatrix.from_data(X, train), 3, "gee")
    states = list(gibbs.sample(model, Stream(seed), n_sweeps=30, moves=PLAIN))[10:]
    prediction = np.mean([s.W @ s.Z for s in states], axis=0)
    expected = np.mean((prediction - X)[test] ** 2)
    result = run_fit(fit, X)
    assert result["test_mse"] == pytest.approx(expected)
    assert result["test_mse"] == result["test_mse_clean"]


def test_the_settings_determine_the_result(X):
    fit = Fit("made", "gl22inf", 3, 0, unobserved=0.5, **SHORT_CHAIN)
    first, again = run_fit(fit, X), run_fit(fit, X)
    other = run_fit(Fit("made", "gl22inf", 3, 1, unobserved=0.5, **SHORT_CHAIN), X)
    assert first["test_mse"] == again["test_mse"] != other["test_mse"]


def test_models_of_a_scenario_share_split_and_noise(X):
    gee, gl22 = (Fit("made", model, 3, 2, unobserved=0.5, noise=0.5) for model in ("gee", "gl22"))
    np.testing.assert_array_equal(fits.masks(gee, X)[0], fits.masks(gl22, X)[0])
    np.testing.assert_array_equal(fits.noisy(gee, X), fits.noisy(gl22, X))
    assert np.nanvar(fits.noisy(gee, X) - X) == pytest.approx(0.5 * np.nanvar(X), rel=0.3)


def test_noise_can_make_entries_negative(X):
    fit = Fit("made", "gl22", 2, 0, unobserved=0.3, noise=1.0, **SHORT_CHAIN)
    assert np.nanmin(fits.noisy(fit, X)) < 0
    result = run_fit(fit, X)
    assert result["test_mse"] > result["test_mse_clean"]
    assert result["variance"] > result["variance_clean"]


@pytest.mark.parametrize("model", list(METHODS))
def test_every_model_and_baseline_predicts(model, X):
    k = 0 if model in ("column_mean", "row_column_mean", "knn") else 3
    result = run_fit(Fit("made", model, k, 0, unobserved=0.5, **SHORT_CHAIN), X)
    assert result["test_mse"] > 0


@pytest.mark.parametrize("start", fits.START_KINDS)
def test_starting_points(start, X):
    fit = Fit("made", "gl12", 3, 0, unobserved=0.5, start=start, **SHORT_CHAIN)
    model = Model(ObservedMatrix.from_data(X), 3, "gl12")
    values = fits.start_values(fit, model)
    if start == "prior":
        assert values == "random"
    else:
        W, Z = values
        assert W.shape == (20, 3)
        assert Z.shape == (3, 12)
        assert min(W.min(), Z.min()) > 0
    if start in ("exponential", "small"):
        # The standard error of the mean of 60 exponential draws is 13% of the mean.
        assert W.mean() == pytest.approx({"exponential": 10.0, "small": 0.1}[start], rel=0.5)
    if start == "gee":
        # A GEE chain fits the data much better than their mean does.
        assert np.nanmean((W @ Z - X) ** 2) < 0.2 * np.nanvar(X)
    assert run_fit(fit, X)["test_mse"] > 0


def test_starting_points_give_different_results(X):
    errors = {
        float(run_fit(Fit("made", "gl12", 3, 0, unobserved=0.5, start=start, **SHORT_CHAIN), X)["test_mse"])
        for start in fits.START_KINDS
    }
    assert len(errors) == len(fits.START_KINDS)


def test_seeds_do_not_change_between_versions():
    assert fits.seed_of(0, "split", 3) == 6983916786341917709
    assert fits.seed_of(0, "chain", "gdsc", 10, None, 0.1, 2) == 3480689404638645337


def test_a_chain_ends_at_an_overflow(X, monkeypatch):
    def divergent(model, stream, *, init, n_sweeps, moves):
        for sweep, size in enumerate([1.0, 1e200, np.inf, np.nan], start=1):
            yield State(np.full((20, 3), size), np.ones((12, 3)), common(1.0), (), 5.0, 0.0, sweep)

    monkeypatch.setattr(fits.gibbs, "sample", divergent)
    result = run_fit(Fit("made", "glinf-published", 3, 0, unobserved=0.5, **SHORT_CHAIN), X)
    assert np.isfinite(result["train_mse"][:2]).all()
    assert np.isnan(result["train_mse"][2:]).all()
    assert np.isnan(result["w_mean"])
    assert "test_mse" not in result


def test_settings_of_a_baseline_do_not_include_the_chain():
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
def test_invalid_settings_raise_an_error(wrong, message):
    with pytest.raises(ValueError, match=message):
        Fit(**{"dataset": "made", "model": "gee", "k": 3, "repeat": 0, **wrong})


def test_fingerprint_depends_on_the_model_and_its_prior(monkeypatch):
    before = fits.sampler_fingerprint("gee")
    assert len(before) == 16
    assert len({fits.sampler_fingerprint(model) for model in PRIORS}) == len(PRIORS)
    fits.sampler_fingerprint.cache_clear()
    assert fits.sampler_fingerprint("gee") == before
    monkeypatch.setitem(PRIORS, "gee", PRIORS["gl22"])
    fits.sampler_fingerprint.cache_clear()
    assert fits.sampler_fingerprint("gee") != before
    fits.sampler_fingerprint.cache_clear()
