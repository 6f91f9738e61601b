"""New rows: recognised if they were fitted, and otherwise drawn from their exact conditional."""

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import cumulative_trapezoid
from scipy.special import logsumexp
from tests.statistical.checks import assert_follows, assert_uniform, grid_cdf

from bnmf import BayesianNMF
from bnmf.data import ObservedMatrix
from bnmf.posterior import Posterior, new_rows
from bnmf.posterior.new_rows import draw, find_fitted
from bnmf.priors import L1, L2Squared

N_ROWS = 1500


# --- rows that were fitted


def test_find_fitted_against_a_search_of_every_row():
    """Equal rows keep their own draws if the data are those of the fit."""
    assert find_fitted(np.arange(2, dtype=np.uint64), None).tolist() == [-1, -1]
    rng = np.random.default_rng(0)
    for _ in range(50):
        fitted = rng.integers(12, size=rng.integers(1, 10), dtype=np.uint64) << np.uint64(60)
        ids = rng.integers(12, size=rng.integers(0, 10), dtype=np.uint64) << np.uint64(60)
        expected = [np.append(np.flatnonzero(fitted == identity), -1)[0] for identity in ids]
        np.testing.assert_array_equal(find_fitted(ids, fitted), expected)
        np.testing.assert_array_equal(find_fitted(fitted, fitted), np.arange(len(fitted)))


# --- rows that are drawn


@pytest.fixture
def given():
    """Two chains of three draws with one component and two columns, and rows with one observed entry each."""
    rng = np.random.default_rng(0)
    column = rng.integers(2, size=N_ROWS)
    values = rng.exponential(2.0, size=N_ROWS)
    X = np.full((N_ROWS, 2), np.nan)
    X[np.arange(N_ROWS), column] = values
    Z = np.array([[[[0.5, 3.0]], [[1.0, 0.2]], [[2.0, 1.0]]], [[[0.3, 0.8]], [[4.0, 2.0]], [[1.5, 0.6]]]])
    sigma2 = np.array([[0.5, 2.0, 4.0], [1.0, 3.0, 0.2]])
    W = rng.exponential(size=(2, 3, 5, 1))
    return X, values, W, Z, sigma2


def ids_of(n_rows):
    return np.arange(n_rows, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)


def assert_conditional(drawn, X, Z, variance, linear, quadratic=0.0):
    """exp(-Σ(a - w z)² / 2σ² - λ w - κ w² / 2) on w >= 0 is a truncated normal; draws are those of one Z."""
    precision = np.nansum(Z**2 / variance + 0.0 * X, axis=1) + quadratic
    mean, sd = (np.nansum(X * Z / variance, axis=1) - linear) / precision, 1 / np.sqrt(precision)
    assert_uniform(stats.truncnorm.cdf(drawn, -mean / sd, np.inf, loc=mean, scale=sd))


def draw_rows(X, W, Z, sigma2, prior, seed=1, ids=None, **others):
    """Return draws of W (chain, draw, row, K) and of the noise of rows X, with identities of their own by default."""
    data = ObservedMatrix.from_data(X, empty=True)
    is_weighted = not {"df", "noise_factor"}.isdisjoint(others)
    view = (data.listed() if is_weighted else data).rows.select(np.arange(len(X)))
    fitted = Posterior(W, Z, sigma2, np.ones((len(W), 1)), n_observed=1, prior_W=prior, **others)
    return draw(view, ids_of(len(X)) if ids is None else ids, fitted, seed)


@pytest.mark.parametrize("kind", ["L1", "L2Squared", "learned", "noise by column", "known factors"])
def test_draws_follow_the_conditional(given, kind):
    X, values, W, Z, sigma2 = given
    rng, options, linear, quadratic = np.random.default_rng(1), {}, np.full((2, 3), 0.7), 0.0
    prior, variance = L1(0.7), np.broadcast_to(sigma2[:, :, None, None], (2, 3, N_ROWS, 2))
    if kind == "L2Squared":
        prior, linear, quadratic = L2Squared(1.3), 0.0 * linear, 1.3
    elif kind == "learned":
        prior, linear = L1(), rng.uniform(0.1, 5.0, size=(2, 3))
        options["rate_W"] = linear[:, :, None]
    elif kind != "L1":  # rows with one or two entries, each with a variance of its own
        X = np.stack([values, rng.exponential(2.0, size=N_ROWS)], axis=1)
        X[::3, 1] = np.nan
        sigma2 = rng.uniform(0.1, 4.0, size=(2, 3, 2))
        factor = rng.uniform(2.0, 5.0, size=(N_ROWS, 2)) if kind == "known factors" else np.ones((N_ROWS, 2))
        variance = sigma2[:, :, None] * factor**2
        options |= {"noise_factor": factor} if kind == "known factors" else {}
    drawn, row_noise = draw_rows(X, W, Z, sigma2, prior, **options)
    assert (row_noise == 1.0).all()
    assert drawn.shape == (2, 3, N_ROWS, 1)
    for at in np.ndindex(2, 3):
        assert_conditional(drawn[at][:, 0], X, Z[at][0], variance[at], linear[at], quadratic)


def test_components_are_not_exchanged(given):
    """If each column belongs to one component, both components have truncated normals of their own."""
    values = given[1]
    X = np.stack([values, 3.0 + 0.0 * values], axis=1)
    Z = np.array([[[[0.5, 0.0], [0.0, 2.0]]]])
    prior = L1(np.array([0.2, 1.1]))
    drawn, _ = draw_rows(X, np.ones((1, 1, 4, 2)), Z, np.array([[1.5]]), prior, seed=2)
    for k, (a, z, rate) in enumerate(((values, 0.5, 0.2), (3.0, 2.0, 1.1))):
        assert_conditional(drawn[0, 0, :, k], np.broadcast_to(a, N_ROWS)[:, None], z, 1.5, rate)


@pytest.mark.parametrize("kind", ["plain", "Student's t, known", "Student's t by row, known"])
def test_rows_have_streams_of_their_own(given, kind):
    """What is drawn for a row depends on its content, its id and the seed, and not on the rows beside it."""
    X, values, W, Z, sigma2 = given
    X, known = X[:20].copy(), np.random.default_rng(1).uniform(0.5, 2.0, size=(20, 2))
    X[::3, 0] = values[:7]  # which makes some rows complete
    others = {} if kind == "plain" else {"df": np.full((2, 3), 4.0)}
    if "by row" in kind:
        others |= {"row_noise": np.ones((2, 3, 5)), "row_strength": np.full((2, 3), 2.0)}

    def drawn(rows, ids, seed=1):
        factor = {} if kind == "plain" else {"noise_factor": known[rows]}
        return draw_rows(X[rows], W, Z, sigma2, L1(0.7), seed, ids_of(20)[ids], **others, **factor)[0]

    whole = drawn(np.arange(20), np.arange(20))
    for chosen in ([7], [7, 3, 19, 3]):
        np.testing.assert_allclose(drawn(chosen, chosen), whole[:, :, chosen], rtol=1e-10)
    equal = drawn([0, 0], [0, 1])
    assert not (equal[:, :, 0] == equal[:, :, 1]).any()
    assert not (drawn([0, 0], [0, 1], seed=2) == equal).any()
    # So do chains and draws.
    same = np.broadcast_to(Z[:1, :1], Z.shape)
    assert len(np.unique(draw_rows(X, np.repeat(W[:1], 2, axis=0), same, np.ones((2, 3)), L1(0.7))[0])) == whole.size


# --- noise by column and by row, and learned rates


@pytest.mark.parametrize("by_column", [False, True])
def test_weight_and_noise_of_a_row_follow_their_joint_distribution(by_column):
    """Both marginals of the joint density of w and of the precision u of a row, on grids."""
    a, rate = np.array([2.0, 0.3, 1.5]), 0.7
    Z = np.array([[[[1.0, 0.4, 2.0]], [[0.5, 0.1, 1.0]], [[2.0, 1.0, 0.3]]]])
    variance = np.array([[[0.5, 0.1, 2.0]] * 3]) if by_column else np.full((1, 3), 0.4)
    X, strengths = np.tile(a, (N_ROWS, 1)), np.array([[0.5, 2.0, 16.0]])
    by_row = {"row_noise": np.full((1, 3, 4), np.nan), "row_strength": strengths}  # noise of fitted rows is not used
    drawn, row_noise = draw_rows(X, np.ones((1, 3, 4, 1)), Z, variance, L1(rate), **by_row)
    for number, strength in enumerate(strengths[0]):
        z, c = Z[0, number, 0], np.broadcast_to(variance[0, number], 3)

        def of_precision(u, z=z, c=c, strength=strength):
            p, b = u * (z**2 / c).sum(), u * (a * z / c).sum() - rate
            integral = 0.5 * b**2 / p - 0.5 * np.log(p) + stats.norm.logcdf(b / np.sqrt(p))  # over w
            return (strength + 0.5 * 3 - 1.0) * np.log(u) - u * (strength + 0.5 * (a**2 / c).sum()) + integral

        def of_weight(w, z=z, c=c, strength=strength):
            errors = ((a - np.multiply.outer(w, z)) ** 2 / c).sum(axis=1)
            return -(strength + 0.5 * 3) * np.log(strength + 0.5 * errors) - rate * w  # integrated over u

        assert_follows(1.0 / row_noise[0, number], grid_cdf(of_precision, np.geomspace(1e-6, 200.0, 40_000)))
        assert_follows(drawn[0, number, :, 0], grid_cdf(of_weight, np.linspace(0.0, 60.0, 40_000)))


@pytest.mark.parametrize("by", ["factor", "component"])
@pytest.mark.parametrize("kind", [L1, L2Squared])
def test_learned_rates_are_those_of_each_draw(kind, by):
    """Rows without an observed entry follow the prior with the rate of the draw, and of the component."""
    rate = np.array([[[0.2, 5.0], [30.0, 1.0]], [[2.0, 0.5], [0.7, 9.0]]])
    rate = rate if by == "component" else rate[:, :, :1]
    W, Z = np.ones((2, 2, 4, 2)), np.ones((2, 2, 2, 3))
    X = np.full((N_ROWS, 3), np.nan)
    drawn, _ = draw_rows(X, W, Z, np.ones((2, 2)), kind(by=by), rate_W=rate)
    for chain, number, k in np.ndindex(2, 2, 2):
        value = rate[chain, number, k % rate.shape[2]]
        expected = stats.expon(scale=1.0 / value) if kind is L1 else stats.halfnorm(scale=value**-0.5)
        assert_follows(drawn[chain, number, :, k], expected.cdf)


def test_weights_that_are_not_finite_are_an_error(monkeypatch):
    rng = np.random.default_rng(0)
    posterior = Posterior(
        rng.random((1, 4, 3, 2)), rng.random((1, 4, 2, 5)), np.ones((1, 4)), np.ones((1, 4)), 15, prior_W=L1(1.0)
    )
    monkeypatch.setattr(new_rows, "_chain", lambda *args: [(np.full((2, 2), np.inf), np.ones(1))])
    with pytest.raises(FloatingPointError, match="X has rows so much larger than the fitted ones"):
        posterior.posterior_of(rng.random((2, 5)))


# --- Student's t and known standard errors


@pytest.mark.parametrize("by_column", [False, True])
@pytest.mark.parametrize("is_known", [False, True])
def test_weight_of_a_row_under_student_t(by_column, is_known):
    """exp(-λ w) times a density of Student's t for each entry, whose factors are integrated out, on a grid."""
    a, rate, df = np.array([2.0, 0.3, 9.0]), 0.7, np.array([[1.5, 3.0, 20.0]])
    Z = np.array([[[[1.0, 0.4, 2.0]], [[0.5, 0.1, 1.0]], [[2.0, 1.0, 0.3]]]])
    variance = np.array([[[0.5, 0.1, 2.0]] * 3]) if by_column else np.full((1, 3), 0.4)
    factor = np.array([[0.5, 2.0, 1.2]]) if is_known else None
    X = np.tile(a, (N_ROWS, 1))
    drawn, _ = draw_rows(X, np.ones((1, 3, 4, 1)), Z, variance, L1(rate), df=df, noise_factor=factor)
    for number in range(3):
        z, sd = Z[0, number, 0], np.sqrt(np.broadcast_to(variance[0, number], 3))
        law = stats.t(df[0, number], 0.0, sd if factor is None else sd * factor[0])

        def of_weight(w, z=z, law=law):
            return law.logpdf(a - np.multiply.outer(w, z)).sum(axis=1) - rate * w

        assert_follows(drawn[0, number, :, 0], grid_cdf(of_weight, np.linspace(0.0, 60.0, 40_000)))


def test_two_weights_of_a_row_under_student_t():
    """The first weight follows its marginal, and the second its conditional given the first, on a grid."""
    a, z, sd, df = np.array([2.0, 0.3, 9.0, 1.0]), np.array([[1.0, 0.4, 2.0, 0.1], [0.3, 1.0, 0.8, 2.0]]), 0.6, 3.0
    drawn = draw_rows(np.tile(a, (N_ROWS, 1)), np.ones((1, 1, 4, 2)), z[None, None], np.full((1, 1), sd**2),
                          L1(0.7), df=np.full((1, 1), df))[0][0, 0]  # fmt: skip
    points = np.linspace(0.0, 14.0, 1000)

    def log_density(first):
        """Return log densities (n, points) of the second weight and given first ones."""
        residuals = a - first[:, None, None] * z[0] - points[:, None] * z[1]
        logs = -0.5 * (df + 1.0) * np.log1p(residuals**2 / (df * sd**2)).sum(axis=2)
        return logs - 0.7 * (first[:, None] + points)

    marginal = logsumexp(log_density(points), axis=1)
    assert_follows(drawn[:, 0], grid_cdf(lambda w: np.interp(w, points, marginal), points))
    masses = cumulative_trapezoid(np.exp(log_density(drawn[:, 0]) - marginal.max()), points, axis=1, initial=0.0)
    assert_uniform([np.interp(w, points, mass / mass[-1]) for w, mass in zip(drawn[:, 1], masses, strict=True)])


def test_new_rows_follow_components_that_change_together():
    """Where the noise is small, weights that lag behind the draws of correlated components predict much worse."""
    rng = np.random.default_rng(1)
    means = rng.gamma(1.0, size=(150, 3)) @ rng.gamma(1.0, size=(3, 20))
    complete = means + 0.005 * means.std() * rng.normal(size=means.shape)
    X = np.where(rng.random(means.shape) < 0.2, np.nan, complete)
    options = {"n_chains": 2, "burn_in": 200, "n_draws": 100, "random_state": 0, "calibrate": False}
    model = BayesianNMF(prior=("ard", "normal"), offset="mean", **options).fit(X[:100])
    errors = np.where(np.isnan(X), model.impute(X) - complete, np.nan)
    fitted, new = (np.sqrt(np.nanmean(errors[rows] ** 2)) for rows in (slice(100), slice(100, None)))
    # The ratio has a standard error of 6%; with six seeds it is 0.91 to 1.05, and without the change at least 1.97.
    assert new < 1.5 * fitted
