"""The noise: conditionals of its variances, laws, bounds of its precisions, and arguments."""

import math
import warnings
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats
from scipy.integrate import quad
from scipy.special import gammainc
from tests.statistical.checks import Contaminated, assert_counts, assert_follows, grid_cdf

from bnmf import BayesianNMF
from bnmf.data import ObservedMatrix
from bnmf.model import Model
from bnmf.model.contaminated import ContaminatedLaw
from bnmf.model.noise import (
    MAX_PRECISION,
    STRENGTHS,
    Law,
    as_noise,
    common,
    max_precisions,
    unexplained_variances,
)
from bnmf.model.student_t import DEGREES_OF_FREEDOM, StudentTLaw
from bnmf.model.units import units_of
from bnmf.noise import CommonNoise, GroupedNoise, KnownNoise, StudentT


@pytest.mark.parametrize(("shape", "scale"), [(1.0, 1.0), (5.0, 0.3)])
@pytest.mark.parametrize(("n_observed", "squared_error"), [(0, 0.0), (1, 3.0), (20, 1e-8), (1000, 4e6)])
def test_draw_follows_the_conditional(shape, scale, n_observed, squared_error):
    noise, start = CommonNoise(shape, scale), common(1.0)
    errors, counts = np.array([0.25, 0.75]) * squared_error, np.array([n_observed, 0])
    draws = [noise.update("Z", start, errors, counts, np.array([1e12]), (i, 7)).column[0] for i in range(10_000)]
    assert_follows(draws, stats.invgamma(shape + n_observed / 2, scale=scale + squared_error / 2).cdf)


# --- variances that differ


@pytest.mark.parametrize(("half", "by"), [("Z", "column"), ("W", "row"), ("W", "both")])
def test_variances_follow_their_conditional(half, by):
    """Precisions ~ Gamma(α, α s) and n entries of squared error E: Gamma(α + n / 2, α s + E / 2), written out."""
    model, size = GroupedNoise(by, strength=1.5), 20_000
    noise = model.start((size, size))._replace(scale=0.7)
    counts, errors = np.full(size, 4), np.full(size, 2.6)
    after = model.update(half, noise, errors, counts, np.array([1e12]), (11, 7))
    precision = 1.0 / (after.column if half == "Z" else after.row)
    scale = 1.0 if by == "both" else 0.7
    assert_follows(precision, stats.gamma(1.5 + 2.0, scale=1.0 / (1.5 * scale + 1.3)).cdf)


def test_names_and_plain_arguments():
    assert [as_noise(name) for name in ("common", "student-t", "known")] == [CommonNoise(), StudentT(), KnownNoise()]
    assert [as_noise(by) for by in ("column", "row", "both")] == [GroupedNoise(by) for by in ("column", "row", "both")]
    assert as_noise(GroupedNoise("both", 2.0)).strength == 2.0
    assert StudentT() == StudentT(4.0, "column", None)
    given = StudentT(np.int64(5), "row", np.float32(2.0))
    assert (type(given.df), given.df, type(given.strength), given.strength) == (float, 5.0, float, 2.0)
    assert given.shared == StudentT(5.0, "row", float(STRENGTHS[-1]))
    assert StudentT(by="common").shared == StudentT(by="common")


@pytest.mark.parametrize(
    ("make", "wrong", "words"),
    [
        (as_noise, ("columns", None, 1.0, CommonNoise), "noise must be one of 'common', 'column', 'row', 'both', .* "),
        (CommonNoise, (0.0, -1.0, math.inf, math.nan, "1", None), "shape of CommonNoise must be a positive finite "),
        (partial(CommonNoise, 1.0), (0.0, math.nan, "1"), "scale of CommonNoise must be a positive finite number, "),
        (GroupedNoise, ("common",), "by of GroupedNoise must be one of 'column', 'row', 'both', got "),
        (partial(GroupedNoise, "row"), (0,), "strength of GroupedNoise must be a positive finite number, "),
        (StudentT, (0, -1.0, 0.02, math.inf, math.nan, "4"), "df of StudentT must be a finite number of at "),
        (partial(StudentT, 4.0), ("cell",), "by of StudentT must be one of 'column', 'row', 'both', 'common', "),
        (partial(StudentT, 4.0, "common"), (2.0,), "strength of StudentT is for scales that differ"),
        (partial(StudentT, 4.0, "row"), (-1,), "strength of StudentT must be a positive finite number, "),
    ],
)
def test_wrong_arguments(make, wrong, words):
    for value in wrong:
        with pytest.raises(ValueError, match=words):
            make(value)


def test_rounding_bounds_the_precision():
    steps = np.array([0.5, 0.0, np.nan, 0.1])
    np.testing.assert_allclose(max_precisions(steps), [48.0, 1e12, 12 / 0.3**2, 1200.0])
    np.testing.assert_allclose(max_precisions(np.array([np.nan, 0.0])), [1200.0, 1e12])
    # It is at most a third of the variance: that of two values, each half of the time.
    bounds = max_precisions(np.array([1.0, 1.0, 1.0, 0.1]), np.array([0.25, 2.0**-6, 0.0, 4.0]))
    np.testing.assert_allclose(bounds, [12.0, 3 * 2.0**6, 12.0, 1200.0])


def test_the_noise_of_rare_values_is_below_that_of_their_step():
    """A column of zeros and a few ones has less variance than rounding to whole numbers gives."""
    X = np.random.default_rng(0).random((200, 3))
    X[:, 0] = np.arange(200) % 50 == 0
    data = ObservedMatrix.from_data(X)
    units = units_of(data, "column", None)[0]
    bound = Model(data, 1, noise=GroupedNoise(floor=0.0), units=units).max_precisions["Z"][0] / units.scale[0] ** 2
    assert bound == pytest.approx(3.0 / X[:, 0].var(), rel=0.05)
    shifted = ObservedMatrix.from_data(X + 2.0**10)
    units = units_of(shifted, "column", None)[0]
    np.testing.assert_allclose(Model(shifted, 1, units=units).variances * units.scale**2, X.var(axis=0), rtol=0.02)
    assert Model(ObservedMatrix.from_data(np.full((9, 2), 0.1)), 1).variances.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("storage", ["dense", "listed", "sparse"])
def test_resolutions(storage):
    rng = np.random.default_rng(0)
    X = np.stack(
        [rng.integers(3, size=40) * 2.0, rng.random(40), np.full(40, 3.0), rng.integers(2, size=40) * 0.25], axis=1
    )
    X[rng.random(X.shape) < (0.7 if storage == "listed" else 0.1)] = np.nan
    if storage == "sparse":
        X = np.concatenate([X, np.zeros((200, 4))])
        X[:, 1] = rng.random(240)
        X[:, 2] = 0.0
        data = ObservedMatrix.from_data(sp.csr_array(np.concatenate([X, np.zeros((240, 8))], axis=1)))
        assert data.has_implicit_zeros
    else:
        data = ObservedMatrix.from_data(X)
    np.testing.assert_array_equal(data.columns.resolutions()[:4], [2.0, 0.0, np.nan, 0.25])


# --- laws of predictions


LAWS = {
    "normal": (Law(), stats.norm()),
    "Student's t": (StudentTLaw(np.array([3.0])), stats.t(3.0)),
    "contaminated": (ContaminatedLaw(np.array([[0.1]])), Contaminated(0.1)),
}
INTERVALS = [
    (-np.inf, -0.5), (-1.0, 2.0), (0.3, 0.31), (2.0, np.inf), (5.0, 6.0), (-6.0, -5.0), (1.0, 1.0 + 1e-6),
    (-30.0, -29.0),
]  # fmt: skip


@pytest.mark.parametrize(("low", "high"), INTERVALS)
@pytest.mark.parametrize("name", LAWS)
def test_noise_between_limits(name, low, high):
    noise, law = LAWS[name]
    is_above = low + high > 0.0
    tail, ends = (law.sf, (low, high)) if is_above else (law.cdf, (high, low))
    mass, scale = tail(ends[0]) - tail(ends[1]), law.logpdf(ends[0])
    lower, upper = np.array([[low]]), np.array([[high]])
    if mass > 0.0:
        np.testing.assert_allclose(noise.log_probability(lower, upper), np.log(mass), rtol=1e-6)
    parts = [quad(lambda x, k=k: x**k * np.exp(law.logpdf(x) - scale), low, high, limit=2000)[0] for k in (0, 1)]
    np.testing.assert_allclose(noise.mean_between(lower, upper), parts[1] / parts[0], rtol=1e-5)
    if mass > 1e-6 and high - low > 0.1:
        drawn = noise.draw_between(np.full((1, 5000), low), np.full((1, 5000), high), np.random.default_rng(0))
        assert_follows(drawn, lambda x: np.abs(law.cdf(x) - law.cdf(low)) / mass)


# --- Student's t and known noise


def t_state(size, df=3.0):
    """Return a state of Student's t with one variance, and factors that no draw may depend on."""
    return common(1.0)._replace(df=df, entry=np.full(size, np.nan))


@pytest.mark.parametrize("df", [0.5, 3.0, 40.0])
@pytest.mark.parametrize("square", [0.0, 1.3, 400.0])
def test_factors_follow_their_conditional(df, square):
    """λ^(df/2 - 1) exp(-λ df/2) of the prior times λ^½ exp(-λ e²/2) of the entry, on a grid."""
    squares, model = np.tile([square, 100.0], 20_000), StudentT(df, "common")  # each entry has its own
    after = model.update_entries(t_state(40_000, df), squares, np.random.default_rng(0))
    assert after.df == df
    points = np.exp(np.linspace(-40.0, 6.0, 200_001))
    cdf = grid_cdf(lambda x: (0.5 * df - 1.0) * np.log(x) - 0.5 * df * x + 0.5 * np.log(x) - 0.5 * x * square, points)
    assert_follows(after.entry[::2], cdf)


def test_degrees_of_freedom_follow_their_conditional():
    """On their grid, given the entries and not their factors; and the factors follow those that were drawn."""
    squares, rng = stats.t(6.0).rvs(12, random_state=1) ** 2, np.random.default_rng(0)
    logs = np.array([stats.t(df).logpdf(np.sqrt(squares)).sum() for df in DEGREES_OF_FREEDOM])
    model, found, factors = StudentT(None), [], []
    for _ in range(10_000):
        after = model.update_entries(t_state(12), squares, rng)
        found.append(after.df)
        factors.append(gammainc(0.5 * (after.df + 1.0), after.entry[0] * 0.5 * (after.df + squares[0])))
    expected = np.exp(logs - logs.max()) / np.exp(logs - logs.max()).sum()
    assert expected.min() > 1e-3
    assert_counts([np.sum(np.array(found) == df) for df in DEGREES_OF_FREEDOM], expected)
    assert_follows(factors, stats.uniform.cdf)


def test_known_noise_learns_nothing():
    model, rng = as_noise("known"), np.random.default_rng(0)
    noise = model.start((3, 2))
    learned = model.shared.update("Z", noise, np.array([5.0, 0.0]), np.array([3, 0]), np.array([1e12]), (11, 7))
    assert learned.column.shape == (2,)  # in the first sweeps, also of a column without entries
    assert np.isfinite(learned.column).all()
    rng = np.random.default_rng(0)
    assert model.update("Z", learned, np.ones(2), np.ones(2, int), np.ones(1), rng) == noise
    assert rng.bit_generator.state == np.random.default_rng(0).bit_generator.state
    assert (noise.row.tolist(), noise.column.tolist()) == ([1.0], [1.0])


# --- the floor of a column: a part of what a regression on the other columns leaves unexplained

STEP = 2.0 ** (1 / 16)  # to whose powers shares are rounded


def correlated(n_rows=400, n_columns=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 2)) @ rng.normal(size=(2, n_columns)) + 0.3 * rng.normal(size=(n_rows, n_columns))
    return X * 10.0 ** np.arange(-2, n_columns - 2) + 100.0


def by_regression(X):
    """Return the variance of the residuals of each column regressed on the others and a constant."""
    left = []
    for column in range(X.shape[1]):
        others = np.column_stack([np.ones(len(X)), np.delete(X, column, axis=1)])
        left.append(np.var(X[:, column] - others @ np.linalg.lstsq(others, X[:, column], rcond=None)[0]))
    return np.array(left)


def test_complete_columns_are_regressed_on_each_other():
    X = correlated()
    ratio = unexplained_variances(X) / by_regression(X)
    assert (np.abs(np.log(ratio)) < np.log(STEP)).all()


def test_missing_entries_are_filled_by_the_regression():
    X = correlated()
    hidden = np.random.default_rng(1).random(X.shape) < 0.2
    ratio = unexplained_variances(np.where(hidden, np.nan, X)) / by_regression(X)
    # A fifth fewer entries, of 400: the relative error of a variance is about 0.08; five of them.
    assert (np.abs(ratio - 1.0) < 0.4).all()
    filled_by_means = by_regression(np.where(hidden, X.mean(axis=0), X)) / by_regression(X)
    assert (filled_by_means > 1.5).any()  # which would be another estimate


def test_columns_that_others_determine_have_nothing_unexplained():
    X = correlated()
    X = np.column_stack([X, X[:, 0], np.full(len(X), 3.0)])
    left = unexplained_variances(X) / np.where(X.var(axis=0) > 0, X.var(axis=0), 1.0)
    assert left[0] < 1e-3
    assert left[6] < 1e-3
    assert left[7] == 0.0
    assert unexplained_variances(np.random.default_rng(0).normal(size=(5, 40))).max() < 0.2  # more columns than rows


def test_rounding_errors_change_nothing():
    X = correlated()
    np.testing.assert_array_equal(unexplained_variances(X), unexplained_variances(X * (1.0 + 1e-15)))


def bounds(X, noise, **options):
    data = ObservedMatrix.from_data(X, negative=True, **options)
    return Model(data, 2, noise=noise, units=units_of(data, "column", None)[0]).max_precisions


@pytest.mark.parametrize("noise", [GroupedNoise("column"), GroupedNoise("both"), StudentT(floor=0.35)], ids=str)
def test_precisions_are_bounded_by_it(noise):
    X = correlated()
    scale = np.sqrt(np.mean(X**2, axis=0))
    smallest = 1.0 / np.sqrt(bounds(X, noise)["Z"]) * scale
    np.testing.assert_allclose(smallest, 0.35 * np.sqrt(unexplained_variances(X / scale)) * scale, rtol=1e-9)


def test_no_floor():
    X = correlated()
    for noise in (GroupedNoise(floor=0.0), GroupedNoise("row"), StudentT(by="row", floor=0.35), StudentT()):
        assert noise.floor == 0.0
    assert (bounds(X, GroupedNoise(floor=0.0))["Z"] == MAX_PRECISION).all()
    with pytest.raises(ValueError, match="floor of GroupedNoise must be a number from 0 to 1, got 2"):
        GroupedNoise(floor=2)


def test_noise_of_columns_of_their_own_does_not_vanish():
    """As many components as columns that have nothing in common: each could follow one column exactly."""
    rng = np.random.default_rng(1)
    X = np.where(rng.random((200, 6)) < 0.6, 0.0, rng.gamma(0.7, 5.0, (200, 6)))
    settings = {"n_components": 6, "n_chains": 1, "burn_in": 100, "n_draws": 20, "random_state": 0}
    with warnings.catch_warnings(action="ignore"):
        free, bounded = (
            BayesianNMF(noise=GroupedNoise(floor=floor), **settings).fit(X).posterior_ for floor in (0.0, 0.35)
        )
    left = np.sqrt(unexplained_variances(X))
    assert (np.sqrt(bounded.noise_variance) >= 0.33 * left).all()  # up to the rounding of the floor
    assert (np.sqrt(free.noise_variance).min(axis=(0, 1)) < 0.2 * left).any()
