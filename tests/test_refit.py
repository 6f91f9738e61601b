"""A fit that fails, or that Ctrl-C ends, leaves an estimator exactly as it was."""

import os
import pickle
import signal

import numpy as np
import pandas as pd
import pytest

from bnmf import BayesianNMF, NMFImputer
from bnmf.sampler import chains

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def frame(columns="abcd"):
    X = np.random.default_rng(0).exponential(size=(10, len(columns)))
    X[2, 1] = np.nan
    return pd.DataFrame(X, columns=list(columns))


def quick(**settings):
    return BayesianNMF(**{"n_components": 2, "n_chains": 1, "burn_in": 3, "n_draws": 6, "random_state": 0} | settings)


def fail(*args, **kwargs):
    raise RuntimeError("broken on purpose")


def interrupt(*args, **kwargs):
    os.kill(os.getpid(), signal.SIGINT)
    raise KeyboardInterrupt


FAILURES = {
    "an error in a chain": ("bnmf.sampler.chains.gibbs.step", fail, RuntimeError),
    "an error after the chains": ("bnmf.posterior.posterior.Posterior.factor_means", fail, RuntimeError),
    "Ctrl-C before the first draw": ("bnmf.sampler.chains.gibbs.start", interrupt, KeyboardInterrupt),
    "refused data": (None, None, ValueError),
}


def assert_unchanged(estimator, attributes, content):
    """Assert that an estimator has the same objects, and that they have not changed either."""
    assert vars(estimator).keys() == attributes.keys()
    for name, value in attributes.items():
        assert vars(estimator)[name] is value, name
    assert pickle.dumps(estimator) == content


@pytest.mark.parametrize("make", [quick, lambda: NMFImputer(quick(), add_indicator=True)], ids=["model", "imputer"])
@pytest.mark.parametrize("failure", FAILURES)
def test_a_failed_refit_changes_nothing(monkeypatch, make, failure):
    target, replacement, error = FAILURES[failure]
    estimator = make().fit(frame())
    expected = estimator.transform(frame())
    attributes, content = vars(estimator).copy(), pickle.dumps(estimator)
    other = frame("uvwxyz")  # of other names and another number of columns
    if target is None:
        other *= -1.0
    else:
        monkeypatch.setattr(target, replacement)
    with pytest.raises(error):
        estimator.fit(other)
    monkeypatch.undo()
    assert_unchanged(estimator, attributes, content)
    np.testing.assert_array_equal(estimator.transform(frame()), expected)


@pytest.mark.parametrize("make", [quick, lambda: NMFImputer(quick())], ids=["model", "imputer"])
def test_a_failed_first_fit_leaves_nothing(monkeypatch, make):
    estimator = make()
    attributes = vars(estimator).copy()
    monkeypatch.setattr(chains.gibbs, "step", fail)
    with pytest.raises(RuntimeError, match="broken on purpose"):
        estimator.fit(frame())
    assert vars(estimator) == attributes


@pytest.mark.parametrize("settings", [{}, {"keep_draws": False}])
@pytest.mark.parametrize("failure", ["an error in a chain", "an error after the chains"])
def test_a_failed_sample_more_changes_nothing(monkeypatch, settings, failure):
    model = quick(**settings).fit(frame())
    attributes, content = vars(model).copy(), pickle.dumps(model)
    target, replacement, error = FAILURES[failure]
    step, sweeps = chains.gibbs.step, iter(range(3))
    if failure == "an error in a chain":  # after some sweeps
        replacement = lambda *given: step(*given) if next(sweeps, None) is not None else fail()  # noqa: E731
    elif settings:
        target = "bnmf.posterior.base.Moments.factor_means"
    monkeypatch.setattr(target, replacement)
    with pytest.raises(error):
        model.sample_more(5)
    monkeypatch.undo()
    assert_unchanged(model, attributes, content)
    longer = quick(**settings, n_draws=11).fit(frame())
    np.testing.assert_array_equal(model.sample_more(5).reconstruct(), longer.reconstruct())


# --- results in memory that the caller gives


def test_impute_into_a_memory_map(tmp_path):
    X = frame()
    model = quick().fit(X)
    out = np.lib.format.open_memmap(tmp_path / "out.npy", mode="w+", dtype=float, shape=X.shape)
    assert model.impute(out=out) is out
    out.flush()
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), model.impute())
    np.testing.assert_array_equal(model.impute(X[:3], out=np.empty((3, 4))), model.impute(X[:3]))


def test_impute_into_something_else():
    model, fixed = quick().fit(frame()), np.empty((10, 4))
    for out in (np.empty((3, 4)), np.empty((10, 4), int), [[0.0] * 4] * 10, 3.0, "out.npy"):
        with pytest.raises(ValueError, match=r"^out must be an array of floats of shape \(10, 4\)"):
            model.impute(out=out)
    fixed.flags.writeable = False
    with pytest.raises(ValueError, match=r"out must be .* that can be written to"):
        model.impute(out=fixed)
