"""Fits of limited entries: from the estimator to predictions, scores, new rows, checkpoints and notes."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import integrate, stats

from bnmf import BayesianNMF, limits, select_rank
from bnmf.noise import StudentT

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

INF = np.inf
QUICK = {"n_chains": 2, "burn_in": 30, "n_draws": 25, "random_state": 0, "calibrate": False}


@pytest.fixture(scope="module")
def table():
    """Return a table of rank 2 with little noise, the same table capped at 2, and its limits."""
    rng = np.random.default_rng(0)
    X = rng.exponential(size=(60, 2)) @ rng.exponential(size=(2, 9)) + 0.2 * np.abs(rng.normal(size=(60, 9)))
    X[rng.random(X.shape) < 0.1] = np.nan
    capped = np.minimum(X, 2.0)
    return X, capped, limits(capped, capped=2.0)._asdict()


def test_values_beyond_a_cap_are_recovered(table):
    X, capped, given = table
    settings = QUICK | {"burn_in": 150, "n_draws": 100}
    as_points = BayesianNMF(2, **settings).fit(capped)
    model = BayesianNMF(2, **settings).fit(capped, **given)
    beyond = capped == 2.0
    errors = [np.sqrt(np.mean((m.reconstruct()[beyond] - X[beyond]) ** 2)) for m in (as_points, model)]
    assert errors[1] < 0.5 * errors[0]
    filled = model.impute()
    assert (filled[beyond] > 2.0).all()
    seen = (capped < 2.0) & ~np.isnan(X)
    np.testing.assert_array_equal(filled[seen], capped[seen])
    moments = BayesianNMF(2, keep_draws=False, **QUICK).fit(capped, **given)
    assert (moments.impute()[beyond] >= 2.0).all()


def test_width_zero_is_plain_noise_and_powers_of_two_give_the_same_bits(table):
    X, capped, given = table
    scaled = {name: 4.0 * x for name, x in given.items()}
    plain, exact, first, second = (
        BayesianNMF(2, **QUICK).fit(values, **limits).posterior_
        for values, limits in ((X, {}), (X, {"lower": X, "upper": X}), (capped, given), (4.0 * capped, scaled))
    )
    np.testing.assert_array_equal(plain.W, exact.W)
    np.testing.assert_array_equal(plain.noise_variance, exact.noise_variance)
    np.testing.assert_array_equal(first.W, second.W)
    np.testing.assert_array_equal(4.0 * first.Z, second.Z)


def test_another_limit_is_another_run(table, tmp_path):
    _, capped, given = table
    model = BayesianNMF(2, **QUICK, noise="column", scale=None, checkpoint=tmp_path)  # units would differ too
    model.fit(capped, **given)
    with pytest.raises(ValueError, match="other data"):
        model.fit(capped)


def test_sparse_data():
    """Those that store what was observed have the draws of dense ones; zeros that are not stored stay as they are."""
    rng = np.random.default_rng(2)
    X = rng.exponential(size=(40, 15))
    X[rng.random(X.shape) < 0.7] = np.nan
    lower = np.where(X > 1.0, 1.0, np.nan)
    at, to = np.nonzero(~np.isnan(X)), np.nonzero(~np.isnan(lower))
    stored = sp.csr_array((X[at], at), shape=X.shape), sp.csr_array((lower[to], to), shape=X.shape)
    dense = BayesianNMF(2, **QUICK).fit(X, lower=lower).posterior_
    sparse = BayesianNMF(2, **QUICK, unstored="missing").fit(stored[0], lower=stored[1]).posterior_
    np.testing.assert_array_equal(dense.W, sparse.W)
    filled = BayesianNMF(2, **QUICK).fit(stored[0], lower=stored[1]).impute().toarray()
    assert (filled[to] > 1.0).all()
    rest = np.isnan(lower)
    np.testing.assert_array_equal(filled[rest], np.nan_to_num(X)[rest])


@pytest.mark.parametrize("noise", ["auto", "row", "both", StudentT(4.0)], ids=str)
def test_new_rows(table, noise):
    X, capped, given = table
    old, new = ({name: x[rows] for name, x in given.items()} for rows in (slice(40), slice(40, None)))
    model = BayesianNMF(2, noise=noise, **QUICK).fit(capped[:40], **old)
    np.testing.assert_allclose(model.transform(capped[:40], **old), model.fit_transform(capped[:40], **old))
    together = model.posterior_of(capped[40:], **new)
    alone = model.posterior_of(capped[45:46], lower=new["lower"][5:6], upper=new["upper"][5:6])
    np.testing.assert_array_equal(alone.W[:, :, 0], together.W[:, :, 5])
    as_points = model.posterior_of(capped[40:])
    beyond = capped[40:] == 2.0
    errors = [np.mean((p.mean()[beyond] - X[40:][beyond]) ** 2) for p in (together, as_points)]
    assert errors[0] < (0.5 if noise == "auto" else 1.0) * errors[1]
    assert (model.impute(capped[40:], **new)[beyond] > 2.0).all()


def test_scores_prefer_limits(table):
    _, capped, given = table
    model = BayesianNMF(2, **QUICK)
    assert model.fit(capped, **given).score(capped, **given) > model.fit(capped).score(capped, **given)
    choice = select_rank(capped, [1, 2], estimator=BayesianNMF(**QUICK), n_folds=2, loo=True, random_state=0, **given)
    assert np.isfinite(choice.table.to_numpy()).all()


@pytest.mark.parametrize("noise", ["column", "contaminated"])
def test_the_mean_below_a_limit_is_that_of_values_cut_at_zero(noise):
    """Where latent values may be below zero, their mean is no estimate of a value that cannot."""
    rng = np.random.default_rng(0)
    truth = np.maximum(
        rng.exponential(size=(60, 2)) @ rng.exponential(0.5, (2, 5)) + 0.3 * rng.standard_normal((60, 5)), 0
    )
    lower, upper = limits(np.maximum(truth, 0.2), floored=0.2)
    settings = {"n_components": 2, "n_chains": 2, "burn_in": 50, "n_draws": 30, "random_state": 0}
    model = BayesianNMF(noise=noise, **settings).fit(truth, lower=lower, upper=upper)
    rows, columns = np.nonzero(truth < 0.2)
    filled = model.impute()[rows, columns]
    assert (filled > 0.0).all()
    assert (filled < 0.2).all()
    W, Z, drawn = model.posterior_.flat
    inside = np.linspace(0.0, 0.2, 401)
    for entry, (i, j) in enumerate(zip(rows[:10], columns[:10], strict=True)):
        means = np.einsum("sk,sk->s", W[:, i], Z[:, :, j])
        deviations = np.sqrt(drawn.at(np.array([i]), np.array([j])))
        law = drawn.law.at(np.array([j]))
        squares = ((inside[:, None] - means) / deviations[:, 0]) ** 2
        density = np.exp(np.stack([law.log_density(row[:, None])[:, 0] for row in squares])) / deviations[:, 0]
        below = np.exp(law.log_probability(np.full((len(means), 1), -INF), (0.2 - means)[:, None] / deviations))[:, 0]
        expected = integrate.simpson(inside[:, None] * density, x=inside, axis=0) / below
        assert filled[entry] == pytest.approx(expected.mean(), rel=1e-4)


def test_log_density_of_a_mixture_of_numbers_and_intervals(table):
    _, capped, given = table
    posterior = BayesianNMF(2, noise="column", **QUICK).fit(capped, **given).posterior_
    rows, columns = np.array([0, 1, 2]), np.array([1, 1, 1])
    lower, upper = np.array([np.nan, 2.0, -INF]), np.array([np.nan, INF, 2.0])
    got = posterior.log_likelihood(rows, columns, [0.5, 0.0, 0.0], lower=lower, upper=upper).reshape(-1, 3)
    means, sd = posterior.draws_of(rows, columns, noise=False), np.sqrt(posterior.noise_variance[..., 1].ravel())
    means = means.reshape(-1, 3)
    np.testing.assert_allclose(got[:, 0], stats.norm.logpdf(0.5, means[:, 0], sd), rtol=1e-9)
    np.testing.assert_allclose(got[:, 1], stats.norm.logsf(2.0, means[:, 1], sd), rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(got[:, 2], stats.norm.logcdf(2.0, means[:, 2], sd), rtol=1e-6, atol=1e-12)
    with pytest.raises(ValueError, match="together"):
        posterior.log_likelihood(rows, columns, [0.5, 0.0, 0.0], lower=lower)


def test_a_note_asks_about_values_at_the_end_of_a_column(table):
    _, capped, given = table
    posterior = BayesianNMF(2, **QUICK).fit(capped).posterior_
    assert any("bnmf.limits(X, capped=2)" in note.advice for note in posterior.notes)
    assert not any("cut there" in problem for problem in posterior.problems())  # it asks, and is no warning
    assert "cut there" in str(posterior.verdict)
    assert not BayesianNMF(2, **QUICK).fit(capped, **given).posterior_.notes
