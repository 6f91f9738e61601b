"""Posterior: what is computed from draws besides predictions, against the same by hand."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from tests.posteriors import sample_posterior

from bnmf import Posterior
from bnmf.data import ObservedMatrix
from bnmf.data.identity import row_ids
from bnmf.model import Model
from bnmf.model.units import units_of
from bnmf.noise import StudentT
from bnmf.priors import L1
from bnmf.sampler.stores import Schedule
from bnmf.utils.text import prose


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


def test_intervals_are_quantiles_and_repeated_calls_agree(posterior):
    for at in ((), ([0, 1], [2, 2])):
        np.testing.assert_allclose(posterior.interval(0.8, *at), posterior.quantile([0.1, 0.9], *at))
        assert not np.array_equal(posterior.quantile(0.5, *at), posterior.quantile(0.5, *at, random_state=1))
    assert posterior.mean([], []).shape == (0,)
    first, again = (posterior.draws_of([0], [0], random_state=seed) for seed in (3, np.random.default_rng(3)))
    np.testing.assert_array_equal(first, again)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda p: p.mean([0], None), ValueError, "give both or neither"),
        (lambda p: p.std([6], [0]), IndexError, "rows must be whole numbers below 6"),
        (lambda p: p.quantile(1.5), ValueError, "q must be a number between 0 and 1, or a list of them, got 1.5"),
        (lambda p: p.interval(0.0), ValueError, "prob must be a number between 0 and 1, got 0.0"),
        (lambda p: p.interval(0.9, noise="no"), TypeError, "noise must be True or False, got 'no'"),
        (lambda p: p.std(noise=1), TypeError, "noise must be True or False"),
        (lambda p: p.log_likelihood([0], [0], [1.0, 2.0]), ValueError, "values must be as many"),
        (lambda p: p.log_likelihood([0], [0], None), TypeError, "values must hold real numbers, got None"),
        (lambda p: p.posterior_of(np.ones((1, 3))), ValueError, "X has 3 columns"),
        (lambda p: p.posterior_of(np.ones((1, 5))), ValueError, "does not hold the prior of W"),
        (lambda p: p.quantile(0.5, noise=True, random_state="x"), ValueError, "random_state must be None, a whole"),
        (lambda p: p.after(-1), ValueError, "sweep must be"),
        (lambda p: p.after(80), ValueError, "sweep must be at least 0 and less than the number of sweeps, 80, got 80"),
    ],
)
def test_bad_calls(posterior, call, error, words):
    with pytest.raises(error, match=words):
        call(posterior)


def test_summary_shows_the_worst_and_ends_with_a_sentence(posterior):
    log_density = np.random.default_rng(1).normal(size=(2, 50))
    table = replace(posterior, log_density=log_density).summary()
    assert list(table.index) == ["noise variance", "log likelihood", "predictions", "aligned W", "aligned Z"]
    assert table.loc["log likelihood", "mean"] == pytest.approx(log_density.mean())
    assert list(posterior.summary().index) == ["noise variance", "predictions", "aligned W", "aligned Z"]
    assert table.loc["noise variance", "mean"] == pytest.approx(posterior.noise_variance.mean())
    assert 0.95 < table.loc["predictions", "r_hat"] < 1.2
    assert repr(table).endswith(table.verdict)
    assert prose(table.verdict) in table._repr_html_()


def shifted(posterior, distance):
    """Return the posterior with the predictions of its second chain moved by a multiple of the noise."""
    W = np.concatenate([posterior.W, np.ones((*posterior.W.shape[:3], 1))], axis=3)
    Z = np.concatenate([posterior.Z, np.zeros((2, 50, 1, 5))], axis=2)
    Z[1, :, -1] = distance
    noise, density = np.full((2, 50), 9.0), np.random.default_rng(1).normal(size=(2, 50))
    return Posterior(W, Z, noise, posterior.train_mse, n_observed=20, log_density=density)


@pytest.mark.parametrize("distance", [0.0, 0.5, 30.0])
def test_prediction_error_is_the_spread_of_the_chains(posterior, distance):
    moved = shifted(posterior, distance)
    products = np.einsum("cdmk,cdkn->cdmn", moved.W, moved.Z).reshape(2, 50, -1)
    means = products.mean(axis=1)
    between = np.abs(means[0] - means[1]) / np.sqrt(2) / np.sqrt(2)  # sd of two numbers, over √2 chains
    sd = np.sqrt(products.var(axis=(0, 1)) + 9.0)
    assert moved.prediction_error() == pytest.approx(np.sqrt(np.mean((between / sd) ** 2)), rel=1e-9)
    level = {0.0: "good", 0.5: "good", 30.0: "poor"}[distance]
    assert moved.verdict["predictions"].level == level
    assert moved.verdict["noise"].level == "good"
    problems = moved.problems()
    assert len(problems) == (level == "poor")
    assert all(problem.startswith("the chains' predictions disagree (Monte Carlo error ") for problem in problems)


def test_prediction_error_of_noise_without_a_variance(posterior):
    """It is in units of the scale of Student's t, and not zero."""
    apart = shifted(posterior, 2.0)
    found = replace(apart, df=np.full((2, 50), 2.0)).prediction_error()
    assert found == pytest.approx(apart.prediction_error())
    assert replace(apart, df=np.full((2, 50), 3.0)).prediction_error() < found


def part(posterior, n_chains, n_draws):
    """Return the first draws of the first chains."""
    names = ("W", "Z", "noise_variance")
    parts = {name: getattr(posterior, name)[:n_chains, :n_draws] for name in names}
    return replace(posterior, **parts, train_mse=posterior.train_mse[:n_chains])


def test_few_chains_and_draws(posterior):
    """One chain is compared with itself, and of three draws nothing is said."""
    first, few = part(posterior, 1, 50), part(posterior, 2, 3)
    assert 0.0 < first.prediction_error() < 0.5
    assert first.summary().verdict.endswith("Use several chains.")
    assert np.isnan(few.prediction_error())
    assert few.problems() == []
    assert "3 draws of each chain cannot tell whether the chains agree" in few.summary().verdict
    assert repr(posterior) == "<Posterior of a 6 x 5 matrix, K = 3: 2 chains of 50 draws>"
    assert repr(part(posterior, 1, 1)).endswith(": 1 chain of 1 draw>")


# --- alignment


def test_rates_by_component_go_with_their_components():
    """Of two distinct components, whose order differs between draws."""
    rng = np.random.default_rng(0)
    W = np.kron(np.eye(2), np.ones((3, 1))) + 0.1 * rng.random((2, 10, 6, 2))
    Z = np.kron(np.eye(2), np.ones((1, 2))) + 0.1 * rng.random((2, 10, 2, 4))
    rates, swap = np.array([2.0, 50.0]) + rng.random((2, 10, 2)), rng.random((2, 10)) < 0.5
    assert 0 < swap.sum() < 20
    for draws, axis in ((W, 2), (Z, 1), (rates, 1)):
        draws[swap] = np.flip(draws[swap], axis=axis)
    posterior = Posterior(W, Z, np.ones((2, 10)), np.ones((2, 10)), n_observed=24, rate_W=rates, rate_Z=rates[..., :1])
    aligned = posterior.align()
    np.testing.assert_array_equal(posterior.alignment.order[..., 0] != posterior.alignment.order[0, 0, 0],
                                  swap != swap[0, 0])  # fmt: skip
    np.testing.assert_allclose(aligned.mean(), posterior.mean())
    np.testing.assert_allclose(aligned.W.mean(axis=2), 1.0)
    first = 0 if aligned.rate_W[0, 0, 0] < 10.0 else 1
    assert (aligned.rate_W[..., first] < 10.0).all()
    assert (aligned.rate_W[..., 1 - first] > 10.0).all()
    np.testing.assert_array_equal(np.sort(aligned.rate_W), np.sort(posterior.rate_W))
    np.testing.assert_array_equal(aligned.rate_Z, posterior.rate_Z)  # one rate of all components


def test_alignment_is_in_units_of_the_fit():
    """A column in millimetres in place of metres does not change which components belong together."""
    rng = np.random.default_rng(3)
    posterior = Posterior(
        rng.exponential(size=(2, 30, 6, 3)), rng.exponential(size=(2, 30, 3, 5)), np.ones((2, 30)), np.ones((2, 30)),
        n_observed=30, scale=np.ones(5),
    )  # fmt: skip
    unit = np.array([1.0, 1.0, 1000.0, 1.0, 1.0])
    other = replace(posterior, Z=posterior.Z * unit, scale=unit)
    np.testing.assert_array_equal(other.alignment.order, posterior.alignment.order)
    np.testing.assert_allclose(other.alignment.similarity, posterior.alignment.similarity)
    assert other.alignment.reference == posterior.alignment.reference
    without = replace(other, scale=None)
    assert not np.array_equal(without.alignment.order, posterior.alignment.order)  # it would have, without the scale
    np.testing.assert_allclose(other.factor_means()[0], posterior.factor_means()[0])
    np.testing.assert_allclose(other.factor_means()[1], posterior.factor_means()[1] * unit)


# --- new rows


def test_rows_of_the_fit_keep_their_draws_noise_and_factors(posterior):
    """A new row has the median of each column; what is known by column goes for all rows."""
    row_noise = np.random.default_rng(2).uniform(0.2, 3.0, size=(2, 50, 6))
    posterior = replace(posterior, row_noise=row_noise, row_strength=np.ones((2, 50)))
    X, factor = (np.random.default_rng(seed).exponential(size=(6, 5)) for seed in (4, 5))
    posterior = replace(posterior, row_ids=row_ids(ObservedMatrix.from_data(X)), prior_W=L1(1.0), noise_factor=factor)
    some = posterior.posterior_of(np.concatenate([X[[4, 1]], X[:1] + 1.0]))
    np.testing.assert_array_equal(some.W[:, :, :2], posterior.W[:, :, [4, 1]])
    np.testing.assert_array_equal(some.row_noise[:, :, :2], posterior.row_noise[:, :, [4, 1]])
    assert not (some.row_noise[:, :, 2] == posterior.row_noise[:, :, 0]).any()
    np.testing.assert_array_equal(some.noise_variance, posterior.noise_variance)
    np.testing.assert_array_equal(some.noise_factor, [factor[4], factor[1], np.median(factor, axis=0)])
    same = replace(posterior, noise_factor=factor[:1]).posterior_of(X[:2] + 1.0)
    np.testing.assert_array_equal(same.noise_factor, factor[:1])


# --- burn-in chosen afterwards


@pytest.mark.parametrize(("burn_in", "thinning"), [(0, 1), (7, 1), (np.int64(4), 3), (20, 3)])
def test_after_cuts_everything_that_has_draws(tmp_path, burn_in, thinning):
    """Counted sweep by sweep, for a posterior and for its file."""
    X = np.random.default_rng(0).exponential(size=(9, 6))
    units, data = units_of(ObservedMatrix.from_data(X), "column", "min")
    model = Model(data, 2, (L1(by="component"), L1()), StudentT(None, "both"), units)
    schedule = Schedule(n_chains=2, burn_in=0, n_draws=10, thinning=thinning)
    whole = sample_posterior(model, schedule, 0)
    whole.save(tmp_path / "file.npz")
    n_left = sum(sweep > burn_in for sweep in range(thinning, 10 * thinning + 1, thinning))
    for source in (whole, Posterior.load(tmp_path / "file.npz")):
        later = source.after(burn_in)
        np.testing.assert_array_equal(later.train_mse, whole.train_mse)
        traces = ("noise_variance", "log_density", "row_noise", "row_strength", "rate_W", "rate_Z", "df")
        for name in ("W", "Z", *traces):
            np.testing.assert_array_equal(getattr(later, name), getattr(whole, name)[:, 10 - n_left :], err_msg=name)
        again = later.after(min(burn_in + 2, 10 * thinning - 1))
        np.testing.assert_array_equal(again.W, whole.after(min(burn_in + 2, 10 * thinning - 1)).W)


def test_after_of_new_rows():
    rng = np.random.default_rng(0)
    posterior = sample_posterior(
        Model(ObservedMatrix.from_data(rng.exponential(size=(9, 6))), 2), Schedule(n_chains=2, burn_in=0, n_draws=9), 0
    )
    rows = rng.exponential(size=(3, 6))
    found, expected = posterior.posterior_of(rows).after(5), posterior.after(5).posterior_of(rows)
    assert found.n_draws == 4
    np.testing.assert_array_equal(found.alignment.order, expected.alignment.order)
    np.testing.assert_array_equal(found.align().W, found.alignment.apply_W(found.W))
