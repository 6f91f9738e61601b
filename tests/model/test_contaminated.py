"""Contaminated noise: gross errors and their shares against the joint density, the law of predictions, and fits."""

import numpy as np
import pytest
from scipy import stats
from tests.statistical.checks import Contaminated, assert_follows, assert_same, grid_cdf

from bnmf import BayesianNMF, Posterior
from bnmf.data import ObservedMatrix
from bnmf.model import Model
from bnmf.model.contaminated import ERROR_VARIANCE, FACTOR, SHARE_PRIOR, ContaminatedLaw
from bnmf.model.units import Units
from bnmf.noise import ContaminatedNoise, GroupedNoise
from bnmf.posterior import new_rows
from bnmf.priors import L1
from bnmf.sampler.gibbs import start, step, with_latent_values
from bnmf.sampler.streams import Stream
from bnmf.sampler.threads import Workers

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

SHARE = np.array([0.3, 0.05, 0.2, 0.5, 0.01, 0.1, 0.3, 0.2, 0.4, 0.1])
SCALE = np.array([2.5, 3.0, 0.2, 5.0, 0.5, 11.0, 1.0, 2.0, 1.0, 3.0])


def problem(missing):
    """Return a model of 5 x 10 entries, some of which are far off, in units of the columns, and a state of it."""
    rng = np.random.default_rng(1)
    W, Zt = rng.exponential(size=(5, 2)), rng.exponential(size=(10, 2))
    A = (W @ Zt.T + rng.normal(size=(5, 10)) * np.where(rng.random((5, 10)) < 0.3, 8.0, 1.0)) * SCALE
    observed = rng.random(A.shape) >= missing
    A[2, 3], observed[2, 3] = A[2, 3] + 80.0 * SCALE[3], True
    data = ObservedMatrix.from_data(A, observed, negative=True)
    data = data.listed() if missing == 0.0 else data
    model = Model(data, 2, "gee", ContaminatedNoise(), Units(SCALE))
    noise = model.noise_model.start(A.shape)._replace(column=rng.uniform(0.5, 2.0, size=10), share=SHARE)
    return model, A, W, Zt, noise


def with_latent(model, W, Zt, noise, seed, count=4000):
    """Yield the data with latent values, the noise given these, and how rows and columns hold them."""
    with Workers() as workers:
        for i in range(count):
            filled, after = with_latent_values(model, W, Zt, noise, Stream(seed), i, workers)
            copy = ObservedMatrix(model.data.shape, model.data.n_observed, filled.rows.view, filled.columns.view)
            yield copy.dense_rows(np.arange(len(W))), after, filled


@pytest.mark.parametrize("missing", [0.2, 0.7, 0.0], ids=["dense", "listed", "complete but listed"])
def test_gross_errors_follow_their_conditional(missing):
    """Which entries have one has the odds of the joint density without y, and y is normal between w z and the data."""
    model, A, W, Zt, noise = problem(missing)
    count, seen = 4000, model.data.mask()
    values, sums = np.empty((count, 5, 10)), np.empty((count, 2, 10))
    for i, (dense, after, filled) in enumerate(with_latent(model, W, Zt, noise, 3, count)):
        values[i], sums[i] = dense, after.gross
        if i % 1000 == 0:  # rows and columns have the same values
            listed = [filled.columns.view.observed_values(j) for j in range(10)]
            np.testing.assert_array_equal(np.concatenate(listed), values[i].T[seen.T])
    mean, sd = W @ Zt.T, np.sqrt(noise.column)
    is_gross = (values != A) & seen
    np.testing.assert_array_equal(sums[:, 0], is_gross.sum(axis=1))
    squares = np.where(is_gross, ((A - values) / SCALE) ** 2, 0.0).sum(axis=1)
    np.testing.assert_allclose(sums[:, 1], squares, rtol=1e-6, atol=1e-12)
    x = A / SCALE
    plain, gross = (stats.norm.pdf(x, mean, sd * np.sqrt(factor)) for factor in (1.0, FACTOR))
    odds = SHARE * gross / (SHARE * gross + (1.0 - SHARE) * plain)
    for i, j in np.argwhere(seen):
        n = is_gross[:, i, j].sum()
        assert stats.binomtest(int(n), count, odds[i, j]).pvalue > 1e-7
        if n > 300:
            drawn = values[is_gross[:, i, j], i, j] / SCALE[j]
            centre = mean[i, j] + (x[i, j] - mean[i, j]) / FACTOR
            assert_follows(drawn, stats.norm(centre, sd[j] * np.sqrt(ERROR_VARIANCE / FACTOR)).cdf)
    assert (odds[seen] > 0.99).any()
    assert (odds[seen] < 0.1).any()


LIMITED = {
    (0, 1): (0.4, np.inf), (1, 3): (-np.inf, -1.5), (2, 0): (1.0, 1.3), (2, 6): (-2.5, 2.8), (3, 8): (-3.4, -2.9),
    (4, 2): (-np.inf, -4.0), (4, 7): (-5.0, np.inf), (1, 5): (-0.5, 0.5), (0, 9): (1.5, 6.0),
}  # fmt: skip
"""Limits of entries as deviations from w z: narrow and wide, with the mean inside and far from it."""


@pytest.mark.parametrize("missing", [0.2, 0.7], ids=["dense", "listed"])
def test_entries_with_limits_and_gross_errors_follow_their_conditional(missing):
    """y lies between the limits without a gross error, and with one around what may have been recorded."""
    model, A, W, Zt, noise = problem(missing)
    lower, upper = np.full(A.shape, np.nan), np.full(A.shape, np.nan)
    mean, sd = W @ Zt.T, np.sqrt(noise.column)
    for (i, j), limits in LIMITED.items():
        lower[i, j], upper[i, j] = (mean[i, j] + sd[j] * np.array(limits)) * SCALE[j]
    count, at = 4000, tuple(np.array(list(LIMITED)).T)
    data = ObservedMatrix.from_data(A, model.data.mask() | ~np.isnan(lower), lower=lower, upper=upper, negative=True)
    model = Model(data, 2, "gee", ContaminatedNoise(), Units(SCALE))
    values, sums, exact = np.empty((count, len(LIMITED))), np.empty((count, 2, 10)), np.empty((count, 2, 10))
    is_exact = data.mask()
    is_exact[at] = False
    for i, (dense, after, _) in enumerate(with_latent(model, W, Zt, noise, 4, count)):
        values[i], sums[i] = dense[at] / SCALE[at[1]], after.gross
        is_gross = is_exact & (dense != A)
        exact[i] = is_gross.sum(axis=0), np.where(is_gross, ((A - dense) / SCALE) ** 2, 0.0).sum(axis=0)
    found, probabilities, rng = sums - exact, [], np.random.default_rng(5)
    for place, ((i, j), (low, high)) in enumerate(LIMITED.items()):
        # From the joint density, in deviations from the mean: those whose recorded value lies between the limits.
        y = rng.normal(size=10**6)
        error = np.where(rng.random(y.size) < SHARE[j], rng.normal(0.0, np.sqrt(ERROR_VARIANCE), size=y.size), 0.0)
        kept = (low < y + error) & (y + error < high)
        assert_same((values[:, place] - mean[i, j]) / sd[j], y[kept])
        squares = np.where(found[:, 0, j] > 0.5, found[:, 1, j], 0.0)
        assert_same(squares, noise.column[j] * error[kept] ** 2)
        probabilities.append(np.mean(error[kept] != 0.0))
    assert min(probabilities) < 0.02
    assert max(probabilities) > 0.9


def test_missing_entries_have_no_gross_errors():
    """Nor in rows of which no entry has one: the zeros that stand for missing entries are far from the fit."""
    rng = np.random.default_rng(2)
    W, Zt = rng.uniform(3.0, 4.0, size=(30, 2)), rng.uniform(3.0, 4.0, size=(19, 2))
    A = W @ Zt.T + rng.normal(size=(30, 19))
    seen = rng.random(A.shape) < 0.8
    model = Model(ObservedMatrix.from_data(A, seen), 2, "gee", ContaminatedNoise())
    noise = model.noise_model.start(A.shape)._replace(column=np.ones(19), share=np.full(19, 0.01))
    n_gross = 0
    for _, after, filled in with_latent(model, W, Zt, noise, 1, 20):
        values = filled.rows.view.dense()
        np.testing.assert_array_equal(values[~seen], 0.0)
        np.testing.assert_array_equal(filled.columns.view.dense(), values.T)
        np.testing.assert_array_equal(after.gross[0], (seen & (values != A)).sum(axis=0))
        n_gross += after.gross[0].sum()
    assert 0 < n_gross < 20 * 30  # so most rows have none


def test_shares_and_variances_follow_their_conditionals():
    """Of the errors of y, and of gross errors, which have 100 times their variance."""
    law = ContaminatedNoise(strength=3.0, floor=0.0)
    gross, counts, errors = np.array([[80.0, 0.0], [9000.0, 0.0]]), np.array([120, 7]), np.array([110.0, 4.0])
    noise = law.start((120, 2))._replace(scale=0.8)
    drawn = [law.update_share(noise, gross, counts, (i, 7)) for i in range(3000)]
    for j in range(2):
        expected = stats.beta(SHARE_PRIOR[0] + gross[0, j], SHARE_PRIOR[1] + counts[j] - gross[0, j])
        assert_follows(np.array([state.share[j] for state in drawn]), expected.cdf)

        def log_density(precision, j=j):
            total = stats.gamma.logpdf(precision, 3.0, scale=1.0 / (3.0 * 0.8))
            total += 0.5 * counts[j] * np.log(precision) - 0.5 * errors[j] * precision
            return total + 0.5 * gross[0, j] * np.log(precision) - 0.5 * gross[1, j] * precision / ERROR_VARIANCE

        updated = [law.update("Z", state, errors, counts, np.full(2, 1e12), (i, 8)) for i, state in enumerate(drawn)]
        found = [state.column[j] for state in updated]
        assert_follows(1.0 / np.array(found), grid_cdf(log_density, np.linspace(1e-3, 6.0, 4001)))


def test_log_density_of_gross_errors():
    law = ContaminatedNoise(floor=0.0)
    noise = law.start((4, 3))._replace(column=np.array([1.0, 2.0, 0.5]), share=np.array([0.1, 0.3, 0.02]))
    errors = [[3.0, -20.0], [5.0], []]
    gross = np.array([[2.0, 1.0, 0.0], [409.0, 25.0, 0.0]])
    expected = sum(
        stats.norm.logpdf(errors[j], 0.0, np.sqrt(ERROR_VARIANCE * noise.column[j])).sum()
        + len(errors[j]) * np.log(noise.share[j])
        + (4 - len(errors[j])) * np.log(1.0 - noise.share[j])
        for j in range(3)
    )
    assert law.log_gross(noise._replace(gross=gross), np.full(3, 4)) == pytest.approx(expected)
    assert law.log_gross(noise, np.full(3, 4)) == 0.0


def test_without_gross_errors_it_is_noise_by_column():
    """To the last bit, in the order of the streams."""
    rng = np.random.default_rng(0)
    data = ObservedMatrix.from_data(rng.exponential(size=(40, 9)), rng.random((40, 9)) < 0.8)
    models = [Model(data, 3, "ard", noise) for noise in (GroupedNoise(), ContaminatedNoise())]
    state = start(models[0], Stream(0))
    after = [
        step(model, state._replace(noise=state.noise._replace(share=share)), Stream(0))
        for model, share in zip(models, (np.empty(0), np.full(9, 1e-300)), strict=True)
    ]
    for name in ("W", "Zt"):
        np.testing.assert_array_equal(getattr(after[0], name), getattr(after[1], name))
    np.testing.assert_array_equal(after[0].noise.column, after[1].noise.column)
    assert not after[1].noise.gross.any()


def test_law_of_predictions():
    law = ContaminatedLaw(np.array([[0.3, 0.02], [0.1, 0.6]]))
    x = np.array([[0.5, 3.0, -12.0], [0.0, 25.0, 1.0]])
    at = law.at(np.array([0, 1, 1]))
    shares = np.array([[0.3, 0.02, 0.02], [0.1, 0.6, 0.6]])
    np.testing.assert_allclose(at.log_density(x**2), Contaminated(shares).logpdf(x), rtol=1e-10)
    np.testing.assert_array_equal(law.choose([1]).share, [[0.1, 0.6]])
    np.testing.assert_allclose(law.variance, 1.0 + 100.0 * law.share)
    for dtype in (np.float32, np.float64):
        found = law.draw((2, 1500, 2), np.random.default_rng(0), dtype)
        assert found.dtype == dtype
        for s, j in np.ndindex(2, 2):
            assert_follows(found[s, :, j].astype(float), Contaminated(law.share[s, j]).cdf)


@pytest.mark.parametrize("limit", [None, 7.0], ids=["exact", "limits"])
def test_weights_of_a_new_row_follow_their_posterior(limit):
    """Whose gross errors are summed out by hand; one of three entries is far off, or known to be."""
    x, z, rate, share = np.array([2.0, 3.1, 8.0]), np.array([1.0, 1.5, 2.0]), 0.7, np.array([0.3, 0.2, 0.02])
    n, n_rows = 240, 60  # at a distance of 12 draws the autocorrelation is below 0.02
    Z = np.broadcast_to(z, (1, n, 1, 3))
    fitted = Posterior(
        np.ones((1, n, 1, 1)), Z, np.ones((1, n, 3)), np.zeros((1, n)), 3, prior_W=L1(rate),
        outlier_share=np.broadcast_to(share, (1, n, 3)),
    )  # fmt: skip
    lower = None if limit is None else np.tile([np.nan, np.nan, limit], (n_rows, 1))
    data = ObservedMatrix.from_data(np.tile(x, (n_rows, 1)), lower=lower).listed()
    ids = np.arange(5, 5 + n_rows, dtype=np.uint64)
    drawn = new_rows.draw(data.rows, ids, fitted, 0, data.limits)[0][0, :, :, 0]
    w = np.linspace(0.0, 25.0, 20_001)

    def log_density(w):
        likelihood = Contaminated(share).logpdf(x - w[:, None] * z)
        if limit is not None:
            likelihood[:, 2] = np.log(Contaminated(share[2]).sf(limit - w * z[2]))
        return likelihood.sum(axis=1) - rate * w

    assert_follows(drawn[11::12], grid_cdf(log_density, w))
    one = np.array([1])
    limits = None if limit is None else data.limits.of_rows(one)
    alone = new_rows.draw(data.rows.select(one), ids[1:2], fitted, 0, limits)[0][0, :, :, 0]
    np.testing.assert_array_equal(alone[:, 0], drawn[:, 1])


def test_new_rows_are_predicted_as_well_as_fitted_ones():
    """Where the noise is small beside what Z changes from draw to draw: no entry is taken for a gross error then."""
    rng = np.random.default_rng(0)
    complete = rng.exponential(size=(150, 2)) @ rng.exponential(size=(2, 20)) + 0.05 * rng.normal(size=(150, 20))
    X = np.where(rng.random(complete.shape) < 0.3, np.nan, np.abs(complete))
    model = BayesianNMF(2, noise="contaminated", n_chains=2, burn_in=150, n_draws=60, random_state=0, calibrate=False)
    posterior = model.fit(X[:100]).posterior_of(X[100:])
    hidden = np.isnan(X[100:])
    # 300 entries: the error has a standard error of 4%.
    assert np.sqrt(np.mean((posterior.mean() - complete[100:])[hidden] ** 2)) < 1.35 * 0.05
    low, high = posterior.interval(0.9)
    # Four standard errors of 0.9 with 300 entries, and 0.02.
    assert abs(np.mean(((low <= complete[100:]) & (complete[100:] <= high))[hidden]) - 0.9) < 0.09


def test_skewed_columns_have_heavy_tails():
    """Densities of hidden entries are not much worse than those of a normal by column, as they are without."""
    rng = np.random.default_rng(0)
    X = np.exp(1.5 * rng.normal(size=(150, 2)) @ rng.normal(size=(2, 6)) + rng.normal(size=(150, 6)))
    hidden = rng.random(X.shape) < 0.2
    seen = np.where(hidden, np.nan, X)
    rows, columns = np.nonzero(hidden)
    normal = stats.norm.logpdf(X[hidden], np.nanmean(seen, axis=0)[columns], np.nanstd(seen, axis=0)[columns])
    scores = []
    for noise in ("auto", "column"):
        options = {"n_chains": 2, "burn_in": 100, "n_draws": 60, "random_state": 0}
        posterior = BayesianNMF(noise=noise, calibrate=False, **options).fit(seen).posterior_
        scores.append(np.mean(posterior.log_predictive_density(rows, columns, X[hidden]) - normal))
        if noise == "auto":
            assert posterior.outlier_share.shape == (2, 60, 6)
    assert scores[0] > 0.5
    assert scores[1] < -0.5


def test_where_it_cannot_be():
    X = np.ones((6, 4)) + np.eye(6, 4)
    noise = ContaminatedNoise()
    for given in ({"sample_weight": np.ones(6)}, {"noise_scale": np.ones(4)}):
        with pytest.raises(ValueError, match="noise='contaminated' needs data"):
            BayesianNMF(1, noise=noise, n_draws=2, burn_in=2).fit(X, **given)
        posterior = BayesianNMF(1, noise="auto", n_draws=2, burn_in=2, random_state=0).fit(X, **given).posterior_
        assert posterior.outlier_share is None
    upper = np.where(np.arange(24).reshape(6, 4) < 11, 3.0, np.nan)  # fewer than half of the entries
    for given, has_share in ((upper, True), (np.full((6, 4), 3.0), False)):
        posterior = BayesianNMF(1, n_draws=2, burn_in=2, random_state=0).fit(X, upper=given).posterior_
        assert (posterior.outlier_share is not None) == has_share
    with pytest.raises(ValueError, match="strength of ContaminatedNoise must be"):
        ContaminatedNoise(strength=-1.0)
