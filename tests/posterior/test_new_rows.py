"""New rows: recognised if they were fitted, and otherwise drawn from their exact conditional."""

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import cumulative_trapezoid
from scipy.special import logsumexp
from tests.statistical.checks import assert_follows, assert_uniform, grid_cdf

from bnmf.data import ObservedMatrix
from bnmf.data.half_sweeps import ScaledView
from bnmf.posterior import Posterior, new_rows
from bnmf.posterior.new_rows import draw, find_fitted
from bnmf.priors import L1, L2Squared

N_ROWS = 1500


def words(*numbers):
    return np.array(numbers, np.uint64)


# --- rows that were fitted


def test_find_fitted():
    """Equal rows keep their own draws if the data are those of the fit."""
    is_fitted, where = find_fitted(words(5, 3, 5, 5), words(5, 3, 5, 5))
    assert is_fitted.all()
    np.testing.assert_array_equal(where, [0, 1, 2, 3])
    is_fitted, where = find_fitted(words(1, 2), None)
    np.testing.assert_array_equal(is_fitted, [False, False])
    assert np.empty(3)[where].shape == (0,)


def test_find_fitted_against_a_search_of_every_row():
    rng = np.random.default_rng(0)
    for _ in range(50):
        fitted = rng.integers(12, size=rng.integers(1, 10), dtype=np.uint64) << np.uint64(60)
        ids = rng.integers(12, size=rng.integers(0, 10), dtype=np.uint64) << np.uint64(60)
        is_fitted, where = find_fitted(ids, fitted)
        np.testing.assert_array_equal(is_fitted, np.isin(ids, fitted))
        first = [] if np.array_equal(ids, fitted) else [np.flatnonzero(fitted == i)[0] for i in ids[is_fitted]]
        np.testing.assert_array_equal(where, first)


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


def draw_rows(*args, **options):
    """Return draws of W (chain, draw, row, K)."""
    return draw_both(*args, **options)[0]


def draw_both(X, W, Z, sigma2, prior, seed=1, ids=None, **others):
    """Return draws of W and of the noise of rows X with identities of their own, unless they are given."""
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
    drawn, row_noise = draw_both(X, W, Z, sigma2, prior, **options)
    assert row_noise is None
    assert drawn.shape == (2, 3, N_ROWS, 1)
    for at in np.ndindex(2, 3):
        assert_conditional(drawn[at][:, 0], X, Z[at][0], variance[at], linear[at], quadratic)


def test_components_are_not_exchanged(given):
    """If each column belongs to one component, both components have truncated normals of their own."""
    values = given[1]
    X = np.stack([values, 3.0 + 0.0 * values], axis=1)
    Z = np.array([[[[0.5, 0.0], [0.0, 2.0]]]])
    prior = L1(np.array([0.2, 1.1]))
    drawn = draw_rows(X, np.ones((1, 1, 4, 2)), Z, np.array([[1.5]]), prior, seed=2)
    for k, (a, z, rate) in enumerate(((values, 0.5, 0.2), (3.0, 2.0, 1.1))):
        assert_conditional(drawn[0, 0, :, k], np.broadcast_to(a, N_ROWS)[:, None], z, 1.5, rate)


def test_rows_without_an_observed_entry_follow_the_prior():
    Z = np.ones((1, 1, 2, 3))
    X = np.full((N_ROWS, 3), np.nan)
    drawn = draw_rows(X, np.ones((1, 1, 4, 2)), Z, np.ones((1, 1)), L1(2.0), seed=0)
    assert_follows(drawn[0, 0].ravel(), stats.expon(scale=0.5).cdf)


def test_rows_have_streams_of_their_own(given):
    """What is drawn for a row depends on its content, its id and the seed, and not on the rows beside it."""
    X, _, W, Z, sigma2 = given
    ids = ids_of(N_ROWS)
    whole = draw_rows(X, W, Z, sigma2, L1(0.7))
    chosen = np.array([7, 3, 1400, 3])
    some = draw_rows(X[chosen], W, Z, sigma2, L1(0.7), ids=ids[chosen])
    np.testing.assert_allclose(some, whole[:, :, chosen], rtol=1e-12)
    np.testing.assert_array_equal(some[:, :, 1], some[:, :, 3])

    equal = np.repeat(X[:1], 2, axis=0)
    first, second = draw_rows(equal, W, Z, sigma2, L1(0.7)).transpose(2, 0, 1, 3)
    assert not (first == second).any()
    other = draw_rows(equal, W, Z, sigma2, L1(0.7), seed=2)
    assert not (other[:, :, 0] == first).any()
    # So do chains and draws.
    same = np.broadcast_to(Z[:1, :1], Z.shape)
    drawn = draw_rows(X[:20], np.repeat(W[:1], 2, axis=0), same, np.ones((2, 3)), L1(0.7))
    assert len(np.unique(drawn)) == drawn.size


def test_rows_start_from_the_mean_of_the_fitted_ones(given, monkeypatch):
    monkeypatch.setattr(new_rows, "BURN_IN_SWEEPS", 0)
    X, _, W, Z, sigma2 = given
    drawn = draw_rows(X[:20], W.astype(np.float32), Z, sigma2, L1(0.7))
    for chain in range(2):
        expected = W[chain, 0].astype(np.float32).astype(float).mean(axis=0)
        np.testing.assert_allclose(drawn[chain, 0], np.repeat(expected[None], 20, axis=0), rtol=1e-12)
    assert drawn.dtype == np.float64


def test_sweeps_of_each_draw(given, monkeypatch):
    """30 half-sweeps before the first draw and 3 before each other, with the Z and σ² of that draw."""
    calls = []

    def half_sweep(view, rows, Zt, prior, row_variance, entry_variance, key, *others, needs_errors, **options):
        calls.append((Zt.copy(), float(entry_variance[0]), tuple(key)))
        rows += 1.0

    monkeypatch.setattr(ScaledView, "half_sweep", half_sweep)
    X, _, W, Z, sigma2 = given
    drawn = draw_rows(X[:4], np.zeros_like(W), Z, sigma2, L1(0.7))
    np.testing.assert_array_equal(drawn[:, :, 0, 0], [[30.0, 33.0, 36.0]] * 2)
    expected = [(chain, number) for chain in range(2) for number in [0] * 30 + [1] * 3 + [2] * 3]
    assert len(calls) == len(expected)
    for (Zt, variance, _), (chain, number) in zip(calls, expected, strict=True):
        np.testing.assert_array_equal(Zt, Z[chain, number].T)
        assert variance == sigma2[chain, number]
    assert len({key for _, _, key in calls}) == len(calls)


# --- noise by column and by row, and learned rates


STRENGTHS = np.array([[0.5, 2.0, 16.0]])


def by_row():
    """Return what noise by row adds to the draws: a strength for each, and noise of fitted rows, which is not used."""
    return {"row_noise": np.full((1, 3, 4), np.nan), "row_strength": STRENGTHS}


@pytest.mark.parametrize("by_column", [False, True])
def test_noise_of_rows_without_an_observed_entry_follows_its_distribution(by_column):
    """The inverse of a relative variance has the distribution Gamma(strength, strength)."""
    variance = np.full((1, 3, 2), 5.0) if by_column else np.full((1, 3), 5.0)
    X = np.full((N_ROWS, 2), np.nan)
    W, Z = np.ones((1, 3, 4, 2)), np.ones((1, 3, 2, 2))
    drawn, row_noise = draw_both(X, W, Z, variance, L1(2.0), **by_row())
    assert row_noise.shape == (1, 3, N_ROWS)
    for number, strength in enumerate(STRENGTHS[0]):
        assert_follows(1.0 / row_noise[0, number], stats.gamma(strength, scale=1.0 / strength).cdf)
        assert_follows(drawn[0, number].ravel(), stats.expon(scale=0.5).cdf)


@pytest.mark.parametrize("by_column", [False, True])
def test_weight_and_noise_of_a_row_follow_their_joint_distribution(by_column):
    """Both marginals of the joint density of w and of the precision u of a row, on grids."""
    a, rate = np.array([2.0, 0.3, 1.5]), 0.7
    Z = np.array([[[[1.0, 0.4, 2.0]], [[0.5, 0.1, 1.0]], [[2.0, 1.0, 0.3]]]])
    variance = np.array([[[0.5, 0.1, 2.0]] * 3]) if by_column else np.full((1, 3), 0.4)
    X = np.tile(a, (N_ROWS, 1))
    drawn, row_noise = draw_both(X, np.ones((1, 3, 4, 1)), Z, variance, L1(rate), **by_row())
    for number, strength in enumerate(STRENGTHS[0]):
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
    drawn = draw_rows(X, W, Z, np.ones((2, 2)), kind(by=by), rate_W=rate)
    for chain, number, k in np.ndindex(2, 2, 2):
        value = rate[chain, number, k % rate.shape[2]]
        expected = stats.expon(scale=1.0 / value) if kind is L1 else stats.halfnorm(scale=value**-0.5)
        assert_follows(drawn[chain, number, :, k], expected.cdf)


def test_weights_that_are_not_finite_are_an_error(monkeypatch):
    rng = np.random.default_rng(0)
    posterior = Posterior(
        rng.random((1, 4, 3, 2)), rng.random((1, 4, 2, 5)), np.ones((1, 4)), np.ones((1, 4)), 15, prior_W=L1(1.0)
    )
    monkeypatch.setattr(new_rows, "draw", lambda *args: (np.full((1, 4, 2, 2), np.inf), None))
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
    drawn = draw_rows(X, np.ones((1, 3, 4, 1)), Z, variance, L1(rate), df=df, noise_factor=factor)
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
                          L1(0.7), df=np.full((1, 1), df))[0, 0]  # fmt: skip
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


@pytest.mark.parametrize("has_row_noise", [False, True])
def test_weighted_rows_have_streams_of_their_own(has_row_noise):
    """A row drawn alone, or beside others in another order, has the same draws."""
    rng = np.random.default_rng(0)
    X = rng.exponential(size=(6, 2))
    X[2, 1] = X[3, 0] = X[3, 1] = np.nan
    Z, variance, factor = rng.exponential(size=(1, 3, 1, 2)), rng.exponential(size=(1, 3)), rng.uniform(size=(6, 2))
    others = {"df": np.array([[3.0, 4.0, 9.0]])} | (by_row() if has_row_noise else {})
    given, ids = (np.ones((1, 3, 4, 1)), Z, variance, L1(1.0)), ids_of(6)
    whole = draw_rows(X, *given, noise_factor=factor, **others)
    for chosen in ([0], [2], [4, 3, 2]):
        some = draw_rows(X[chosen], *given, ids=ids[chosen], noise_factor=factor[chosen], **others)
        np.testing.assert_allclose(some, whole[:, :, chosen], rtol=1e-10)
    assert len(np.unique(whole)) == whole.size
