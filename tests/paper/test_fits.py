"""One fit: its result and its random numbers. Many fits: saved, loaded, and run in parallel."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bnmf.data.observed import ObservedMatrix
from bnmf.datasets import make_drug_response
from bnmf.model.model import Model
from bnmf.model.noise import common
from bnmf.paper import fits
from bnmf.paper.fits import BIN_EDGES, FinishedFits, Fit, data_fingerprint, run_fit, run_fits, training_mask
from bnmf.paper.methods import PRIORS
from bnmf.sampler import gibbs
from bnmf.sampler.gibbs import State
from bnmf.sampler.moves import PLAIN
from bnmf.sampler.streams import Stream

SHORT_CHAIN = {"n_sweeps": 30, "burn_in": 10}
FIT = Fit("made", "gee", 3, 0)


@pytest.fixture
def X():
    rng = np.random.default_rng(0)
    X = rng.exponential(3.0, (20, 4)) @ rng.exponential(1.0, (4, 12)) + rng.uniform(0, 1, (20, 12))
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


def test_result_is_that_of_the_states_of_the_chain(X):
    fit = Fit("made", "gee", 3, 1, unobserved=0.5, **SHORT_CHAIN)
    train, test = fits.masks(fit, X)
    assert train.sum() == int(X.size * 0.5)
    assert not (train & test).any()
    seed = fits.seed_of(fit.seed, "chain", fit.dataset, fit.k, fit.unobserved, fit.noise, fit.repeat)
    model = Model(ObservedMatrix.from_data(X, train), 3, "gee")
    states = list(gibbs.sample(model, Stream(seed), n_sweeps=30, moves=PLAIN))[10:]
    prediction = np.mean([s.W @ s.Z for s in states], axis=0)  # the mean of products, not the product of means
    result = run_fit(fit, X)
    assert result["test_mse"] == result["test_mse_clean"] == pytest.approx(np.mean((prediction - X)[test] ** 2))
    last = states[-1]
    sizes = np.sqrt((last.W**2).sum(axis=0) * (last.Z**2).sum(axis=1))
    np.testing.assert_allclose(result["contributions"], sorted(sizes, reverse=True))
    np.testing.assert_allclose(result["train_mse"][10:], [s.squared_error / train.sum() for s in states])
    W = np.array([s.W for s in states])  # N_FACTOR_SWEEPS of them
    assert result["w_mean"] == pytest.approx(W.mean())
    assert result["w_sparsity"] == pytest.approx(100 * np.mean(W < 0.1))
    np.testing.assert_array_equal(result["w_counts"], np.histogram(np.log10(W), BIN_EDGES)[0])


def test_models_of_a_scenario_share_split_and_noise(X):
    gee, gl22 = (Fit("made", model, 3, 2, unobserved=0.5, noise=0.5) for model in ("gee", "gl22"))
    np.testing.assert_array_equal(fits.masks(gee, X)[0], fits.masks(gl22, X)[0])
    np.testing.assert_array_equal(fits.noisy(gee, X), fits.noisy(gl22, X))
    assert np.nanvar(fits.noisy(gee, X) - X) == pytest.approx(0.5 * np.nanvar(X), rel=0.3)
    assert np.nanmin(fits.noisy(gl22, X)) < 0
    result = run_fit(replace(gl22, **SHORT_CHAIN), X)
    assert result["test_mse"] > result["test_mse_clean"]
    assert result["variance"] > result["variance_clean"]


@pytest.mark.parametrize("start", fits.STARTS)
def test_starting_points(start, X):
    fit = Fit("made", "gl12", 3, 0, unobserved=0.5, start=start, **SHORT_CHAIN)
    assert run_fit(fit, X)["test_mse"] > 0
    values = fits.start_values(fit, Model(ObservedMatrix.from_data(X), 3, "gl12"))
    if start == "prior":
        assert values == "random"
        return
    W, Z = values
    assert (W.shape, Z.shape) == ((20, 3), (3, 12))
    assert min(W.min(), Z.min()) > 0
    if start in ("exponential", "small"):
        # The standard error of the mean of 60 exponential draws is 13% of the mean.
        assert W.mean() == pytest.approx({"exponential": 10.0, "small": 0.1}[start], rel=0.5)
    else:  # a GEE chain fits the data much better than their mean does, and Z alone given any W a little better
        assert np.nanmean((W @ Z - X) ** 2) < {"gee": 0.2, "columns": 1.0}[start] * np.nanvar(X)


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


def test_fingerprint_depends_on_the_model_and_its_prior(monkeypatch):
    assert len({fits.sampler_fingerprint(model) for model in PRIORS}) == len(PRIORS)
    monkeypatch.setitem(PRIORS, "gee", PRIORS["gl22"])
    assert fits.sampler_fingerprint.__wrapped__("gee") == fits.sampler_fingerprint("gl22")


# ---------------------------------------------------------------- training sets


def split(X, unobserved, seed, n_train):
    """Return the mask of a training set after a check of what every split guarantees."""
    observed = ~np.isnan(X)
    train = training_mask(observed, unobserved, np.random.default_rng(seed))
    assert not (train & ~observed).any()
    assert train.sum() == n_train
    for axis in (0, 1):
        np.testing.assert_array_equal(train.any(axis=axis), observed.any(axis=axis))
    return train


def test_training_sets_have_their_size_and_an_entry_of_every_row_and_column():
    X = make_drug_response(120, 40, random_state=0).data
    for unobserved in (0.3, 0.6, 0.8, 0.9):
        split(X, unobserved, 1, round(X.size * (1 - unobserved)))
    X = np.ones((12, 9))
    X[[0, 5]] = np.nan  # rows and a column without observed entries, and a row with one
    X[:, 8] = X[3, 1:] = np.nan
    for seed in range(30):
        split(X, 0.6, seed, 43)


def test_every_entry_is_kept_equally_often_without_constraints():
    kept = np.mean([split(np.ones((20, 20)), 0.5, seed, 200) for seed in range(500)], axis=0)
    # 400 proportions of 500 each: five standard errors.
    np.testing.assert_allclose(kept, 0.5, atol=5 * np.sqrt(0.25 / 500))


# ---------------------------------------------------------------- finished fits


@pytest.fixture
def finished(tmp_path):
    return FinishedFits(tmp_path / "fits", {"made": "of these data"})


def test_a_saved_result_is_loaded_unless_its_file_is_truncated(finished):
    result = {"train_mse": np.array([3.0, np.nan]), "w_mean": np.array(2.5)}
    assert finished.load(FIT) is None
    finished.save(FIT, result)
    back = finished.load(FIT)
    assert back.keys() == result.keys()
    np.testing.assert_array_equal(back["train_mse"], result["train_mse"])
    assert list(finished.directory.iterdir()) == [finished.path(FIT)]
    content = finished.path(FIT).read_bytes()
    for end in (50, 0):
        finished.path(FIT).write_bytes(content[:end])
        assert finished.load(FIT) is None


def test_seeds_and_keys_do_not_change_between_versions(monkeypatch):
    assert fits.seed_of(0, "split", 3) == 6983916786341917709
    assert fits.seed_of(0, "chain", "gdsc", 10, None, 0.1, 2) == 3480689404638645337
    # Keys of files that earlier versions wrote: if these change, finished fits are run again.
    X = np.array([[1.0, np.nan], [-0.0, 2.0]])
    assert data_fingerprint(X) == data_fingerprint([[1.0, -np.nan], [0.0, 2.0]]) == "328f2d37a6dade1a"
    assert data_fingerprint(X) not in (data_fingerprint(np.nan_to_num(X)), data_fingerprint(X.reshape(1, 4)))
    monkeypatch.setattr(fits, "sampler_fingerprint", lambda model: "184d9e56c25c4635")
    finished = FinishedFits("fits", {"gdsc": data_fingerprint(X)})
    assert finished.path(Fit("gdsc", "gee", 10, 3)) == Path("fits/6b112b0d4cb7b0ceb634dbb3cd1ea847.npz")
    assert finished.path(Fit("gdsc", "knn", 10, 3)) == Path("fits/ab85b3df18a1a824abf2107c41c7f16a.npz")


# ---------------------------------------------------------------- many fits


FOUR_FITS = [Fit("made", model, 2, repeat, n_sweeps=25, burn_in=5) for model in ("gee", "gl22") for repeat in range(2)]


@pytest.mark.proof  # starts processes
def test_two_processes_give_the_same_results(X, finished):
    one = run_fits([*FOUR_FITS, FOUR_FITS[0]], {"made": X})
    assert list(one) == FOUR_FITS
    two = run_fits(FOUR_FITS, {"made": X}, n_jobs=2, finished=finished)
    for fit in FOUR_FITS:
        np.testing.assert_allclose(one[fit]["train_mse"], two[fit]["train_mse"])
