"""Factors of both signs through the estimator: negative data, predictions, components, files, new rows, and reports."""

import warnings

import numpy as np
import pytest

from bnmf import BayesianNMF, NMFImputer
from bnmf.data import ObservedMatrix
from bnmf.model import Model
from bnmf.plots import plot_component
from bnmf.priors import L1, Normal
from bnmf.report import write_report
from bnmf.sampler import gibbs
from bnmf.sampler.streams import Stream

NOISE = 0.3


def table(seed=0):
    """Return means of rank 3, data with 30% missing, and where they are missing."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(80, 3)) @ rng.normal(size=(3, 25))
    hidden = rng.random(truth.shape) < 0.3
    return truth, np.where(hidden, np.nan, truth + NOISE * rng.normal(size=truth.shape)), hidden


@pytest.fixture(scope="module", params=["normal", "laplace", ("ard", "normal")], ids=str)
def fitted(request):
    """Return a fit for each of the priors."""
    return BayesianNMF(8, prior=request.param, n_chains=2, random_state=0).fit(table()[1])


def test_negative_data_are_predicted_with_intervals(fitted):
    truth, _, hidden = table()
    error = np.sqrt(np.mean((fitted.reconstruct() - truth)[hidden] ** 2))
    assert error < 0.75 * NOISE  # the mean of columns: 1.7
    new = truth + NOISE * np.random.default_rng(1).normal(size=truth.shape)
    low, high = fitted.interval(prob=0.9)
    assert 0.82 < np.mean(((low <= new) & (new <= high))[hidden]) < 0.96
    posterior = fitted.posterior_
    assert posterior.lower_bound == -np.inf
    assert (posterior.W.min() < 0) == posterior.signed[0] == (fitted.prior != ("ard", "normal"))
    assert posterior.Z.min() < 0
    assert posterior.signed[1]
    assert 3 <= posterior.n_active_components() <= 6  # of 8


def test_new_rows(fitted):
    truth, _, _ = table()
    new, seen = truth[:1] - 0.7 * truth[1:2], np.random.default_rng(2).random(25) < 0.7
    filled = fitted.impute(np.where(seen, new, np.nan))
    np.testing.assert_allclose(filled[0, ~seen], new[0, ~seen], atol=4 * NOISE)


def test_report_and_figure(fitted, tmp_path):
    write_report(fitted, tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert ("weights are nonnegative" in text) == (fitted.prior == ("ard", "normal"))
    assert "both are nonnegative" not in text
    rows, columns = plot_component(fitted.posterior_, int(np.argmax(np.abs(fitted.components_).sum(axis=1))))
    assert columns.get_xlim()[0] < 0
    assert (rows.get_xlim()[0] == 0) == (not fitted.posterior_.signed[0])


def test_negative_data_need_such_a_prior():
    _, X, _ = table()
    for prior in ("ard", (L1(), "gl22"), Normal(0.0, 1.0) + L1(1.0)):
        with pytest.raises(ValueError, match="Negative values"):
            BayesianNMF(2, prior=prior).fit(X)
    with pytest.raises(ValueError, match="Negative values"):
        NMFImputer(BayesianNMF(2)).fit(X)
    assert np.isfinite(NMFImputer(BayesianNMF(2, prior="normal", n_chains=2, random_state=0)).fit_transform(X)).all()


def test_offset_is_the_mean():
    _, X, hidden = table()
    fits = [
        BayesianNMF(4, prior=("ard", "normal"), offset="mean", n_chains=2, random_state=0).fit(X + shift).reconstruct()
        for shift in (0.0, 1024.0)
    ]
    assert np.sqrt(np.mean((fits[1] - fits[0] - 1024.0)[hidden] ** 2)) < 0.2 * NOISE
    with pytest.raises(ValueError, match="offset='mean' leaves entries below zero"):
        BayesianNMF(2, offset="mean").fit(np.ones((4, 3)))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_nonnegative_data_are_predicted_as_nonnegative():
    rng = np.random.default_rng(3)
    X = np.maximum(rng.normal(size=(30, 2)) @ rng.normal(size=(2, 12)), 0.0)
    X[::4, ::3] = np.nan
    model = BayesianNMF(2, prior="normal", n_chains=2, random_state=0).fit(X)
    assert model.posterior_.lower_bound == 0
    assert model.interval()[0].min() >= 0
    assert model.reconstruct().min() >= 0 > (model.posterior_.W @ model.posterior_.Z).mean(axis=(0, 1)).min()


@pytest.mark.parametrize("prior", [(Normal(0.0, 1.0), L1(1.0)), (L1(1.0), Normal(0.0, 1.0))], ids=str)
def test_only_a_real_factor_may_start_or_be_fixed_below_zero(prior):
    data = ObservedMatrix.from_data(np.ones((8, 6)))
    factors = {"W0": np.ones((8, 2)), "Z0": np.ones((2, 6))}
    for name, of_factor in zip(factors, prior, strict=True):
        given = {**factors, name: -factors[name]}
        if of_factor.is_real:
            state = gibbs.start(Model(data, 2, prior), Stream(0), (given["W0"], given["Z0"]))
            assert min(state.W.min(), state.Zt.min()) == -1.0
        else:
            with pytest.raises(ValueError, match=f"{name} of init must be finite and nonnegative"):
                gibbs.start(Model(data, 2, prior), Stream(0), (given["W0"], given["Z0"]))
    model = BayesianNMF(2, prior=prior, fixed_components=-np.ones((1, 6)), n_chains=1, burn_in=20, n_draws=20)
    if prior[1].is_real:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(-np.ones((8, 6)) - np.eye(8, 6))
        assert (model.posterior_.Z[:, :, 0] == -1.0).all()
    else:
        with pytest.raises(ValueError, match="fixed_components must be finite and nonnegative"):
            model.fit(np.ones((8, 6)))
