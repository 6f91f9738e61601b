"""Fits that go on: bit for bit those of one longer fit."""

import pickle
import time
import warnings
from copy import copy

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from bnmf import BayesianNMF
from bnmf.noise import StudentT
from bnmf.priors import L1, L2Squared
from bnmf.sampler import chains
from bnmf.sampler.checkpoint import CheckpointError

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

VARIANTS = {
    "default": {},
    "thinning": {"thinning": 3},
    "no draws, thinning": {"keep_draws": False, "thinning": 2, "noise": "both"},
    "max prior": {"prior": "gl22inf", "noise": "row", "scale": None},
    "rates of a pair, float32": {"prior": (L1(by="component"), L2Squared()), "draws_dtype": "float32"},
    "no draws, Student's t": {"noise": StudentT(None, "both"), "keep_draws": False},
    "no draws, known": {"noise": "known", "keep_draws": False},
    "known, Student's t": {"noise": StudentT()},
    "limits": {"noise": "both"},
    "limits, Student's t": {"noise": StudentT(None), "offset": "mean", "prior": ("ard", "normal")},
    "given start": {"init": (np.full((12, 2), 0.5), np.full((2, 7), 1.5)), "burn_in": 0, "offset": "min"},
}


def data():
    rng = np.random.default_rng(0)
    X = rng.exponential(size=(12, 7))
    X[rng.random(X.shape) < 0.2] = np.nan
    return X


def quick(**settings):
    return BayesianNMF(**{"n_components": 2, "n_chains": 2, "burn_in": 5, "n_draws": 6, "random_state": 1} | settings)


def content(value):
    """Return all arrays inside an object, by their place in it."""
    if isinstance(value, np.ndarray):
        return {"": np.array(value)}
    if isinstance(value, (tuple, list)):
        value = dict(enumerate(value))
    elif not isinstance(value, dict):
        value = getattr(value, "__dict__", {})
    return {f"{name}.{place}": array for name, part in value.items() for place, array in content(part).items()}


def assert_same(a, b):
    """Assert that all that was fitted is equal."""
    assert a.posterior_.problems() == b.posterior_.problems()
    for name in ("posterior_", "components_", "noise_variance_", "_mean_W", "offset_"):
        found, expected = content([getattr(a, name)]), content([getattr(b, name)])
        places = found.keys() & expected.keys()  # one of them may have computed more
        assert places or not expected
        for place in places:
            array = expected[place]
            np.testing.assert_array_equal(found[place], array, err_msg=f"{name}{place}")
    assert a.n_iter_ == b.n_iter_
    assert a.reconstruction_err_ == b.reconstruction_err_
    assert a.message_ == b.message_


def case(name):
    """Return data, the settings of a variant, and further arguments of `fit`."""
    X = data()
    given = {"noise_scale": np.random.default_rng(1).uniform(0.5, 2.0, size=X.shape)} if "known" in name else {}
    return X, VARIANTS[name], given | ({"lower": np.where(X > 1.0, 1.0, np.nan)} if "limits" in name else {})


@pytest.mark.parametrize("name", VARIANTS)
def test_the_same_as_one_longer_fit(name):
    """Also in a copy that was pickled."""
    X, settings, given = case(name)
    model = quick(**settings, n_jobs=1).fit(X, **given)
    again = pickle.loads(pickle.dumps(model))
    assert_same(again, model)
    assert model.sample_more(4) is model
    assert model.posterior_.n_draws == 10
    assert_same(model, quick(n_draws=10, n_jobs=5, **settings).fit(X, **given))
    assert_same(again.sample_more(5), model.sample_more(1))


@pytest.mark.parametrize("name", ["default", "thinning", "limits", "limits, Student's t"])
def test_with_a_checkpoint(tmp_path, monkeypatch, name):
    X, settings, given = case(name)
    whole = quick(n_draws=10, **settings)
    monkeypatch.chdir(tmp_path)
    model = quick(checkpoint="here", **settings).fit(X, **given)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert_same(model.sample_more(4), whole.fit(X, **given))
    assert not list((tmp_path / "elsewhere").iterdir())
    # The directory has the draws: a fit of that length reads them, and a pickle goes on from them.
    monkeypatch.setattr(chains.gibbs, "step", None)
    assert_same(quick(checkpoint=tmp_path / "here", n_draws=10, **settings).fit(X, **given), model)
    monkeypatch.undo()
    again = pickle.loads(pickle.dumps(model))
    assert_same(again.sample_more(1), quick(n_draws=11, **settings).fit(X, **given))


def test_a_checkpoint_that_is_gone(tmp_path):
    model = quick(checkpoint=tmp_path / "run").fit(data())
    (tmp_path / "run").rename(tmp_path / "moved")
    with pytest.raises(CheckpointError, match="which holds the states of this fit, is gone"):
        model.sample_more(1)
    assert not (tmp_path / "run").exists()


def test_a_pickle_holds_the_draws_once():
    X = np.random.default_rng(0).exponential(size=(60, 40))
    model = quick(n_draws=100).fit(X)
    draws = model.posterior_.W.nbytes + model.posterior_.Z.nbytes
    assert len(pickle.dumps(model)) < 1.2 * draws + 12 * X.nbytes


@pytest.mark.parametrize("settings", [{}, {"keep_draws": False}])
def test_a_shallow_copy_and_an_old_posterior_stay_as_they_are(settings):
    X = data()
    model = quick(**settings).fit(X)
    other, posterior = copy(model), model.posterior_
    before = content(posterior)
    model.sample_more(4)
    for place, array in content(posterior).items():
        np.testing.assert_array_equal(array, before[place])
    assert other.posterior_.n_draws == 6
    assert_same(other.sample_more(4), model)


def test_parameters_that_were_set_since_do_not_count():
    X = data()
    model = quick().fit(X).set_params(n_components=3, n_chains=1, thinning=2, random_state=9, prior="gee", n_draws=99)
    assert_same(model.sample_more(4), quick(n_draws=10).fit(X))


def test_bad_arguments():
    model = quick()
    with pytest.raises(NotFittedError):
        model.sample_more(1)
    assert not hasattr(model, "posterior_")
    model.fit(data())
    for n_draws, error in ((0, ValueError), (-3, ValueError), (2.0, TypeError), ("auto", TypeError)):
        with pytest.raises(error, match="n_draws must be"):
            model.sample_more(n_draws)
    assert model.posterior_.n_draws == 6


# --- Ctrl-C


def interrupt_after(monkeypatch, n_sweeps):
    """Let Ctrl-C come after so many sweeps of all chains together."""
    step, wait, count = chains.gibbs.step, chains.wait, []

    def counting(*args):
        if len(count) == n_sweeps:
            time.sleep(0.3)  # Ctrl-C is seen meanwhile
        count.append(1)
        return step(*args)

    def press(*args):
        while len(count) < n_sweeps:
            time.sleep(0.001)
        monkeypatch.setattr(chains, "wait", wait)
        raise KeyboardInterrupt

    monkeypatch.setattr(chains.gibbs, "step", counting)
    monkeypatch.setattr(chains, "wait", press)


@pytest.mark.parametrize("settings", [{}, {"thinning": 2}, {"keep_draws": False}])
def test_ctrl_c_keeps_what_was_drawn_and_can_be_continued(monkeypatch, settings):
    """The first chain has more draws than the second: those are kept for later."""
    X = data()
    model = quick(**settings).fit(X)
    interrupt_after(monkeypatch, 15 * settings.get("thinning", 1))
    with pytest.warns(UserWarning, match="interrupted: .*; sample_more continues from here") as caught:
        model.sample_more(20)
    assert caught[0].filename == __file__
    assert model.message_ == str(caught[0].message)
    monkeypatch.undo()
    n_draws = model.posterior_.n_draws
    assert 6 < n_draws < 26
    assert_same(model.sample_more(30), quick(n_draws=n_draws + 30, **settings).fit(X))


def test_an_interrupted_fit_goes_on(monkeypatch):
    """Also if the next length is less than what one chain had already, and after pickling."""
    X = data()
    interrupt_after(monkeypatch, 5 + 8)
    with pytest.warns(UserWarning, match=r"interrupted: [89] draws of 1 of 2 chains are kept"):
        model = quick(n_draws=20, n_jobs=1).fit(X)
    monkeypatch.undo()
    n_draws = model.posterior_.n_draws
    model = pickle.loads(pickle.dumps(model))
    assert_same(model.sample_more(1), quick(n_draws=n_draws + 1).fit(X))
    assert_same(model.sample_more(30), quick(n_draws=n_draws + 31).fit(X))


def test_convergence_warnings_come_again(monkeypatch):
    model = quick().fit(data())
    monkeypatch.setattr("bnmf.posterior.Posterior.problems", lambda posterior: ["the predictions have not converged"])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.sample_more(1)
    assert [str(warning.message) for warning in caught] == ["the predictions have not converged"]
    assert caught[0].filename == __file__
