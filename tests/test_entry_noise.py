"""Noise that differs by entry, as users meet it: known standard errors, weights of rows, and outliers."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from bnmf import BayesianNMF, NMFImputer
from bnmf.data import ObservedMatrix
from bnmf.model.units import units_of
from bnmf.noise import GroupedNoise, KnownNoise, StudentT

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

NOISES = {
    "known": KnownNoise(),
    "column, known ratios": GroupedNoise("column"),
    "both, known ratios": GroupedNoise("both"),
    "Student's t": StudentT(),
    "Student's t by both, learned, known ratios": StudentT(None, "both"),
    "Student's t, common": StudentT(by="common"),
}


def low_rank(rows=15, columns=8, missing=0.3, seed=0):
    """Return data with NaN, and standard errors of all entries."""
    rng = np.random.default_rng(seed)
    mean = 3.0 + rng.exponential(size=(rows, 2)) @ rng.exponential(size=(2, columns))
    scale = rng.uniform(0.1, 1.0, size=mean.shape)
    X = np.maximum(mean + scale * rng.standard_normal(mean.shape), 0.0)
    return np.where(rng.random(mean.shape) < missing, np.nan, X), scale


def quick(**settings):
    return BayesianNMF(**{"n_components": 2, "n_chains": 2, "burn_in": 8, "n_draws": 8, "random_state": 0} | settings)


def known(name, scale):
    """Return the arguments of `fit` for a kind of noise."""
    return {"noise_scale": scale} if "known" in name else {}


# --- what it is for


def with_outliers(rows=80, columns=30, share=0.01, seed=0):
    """Return the mean, data, the same with some entries multiplied by 1,000, and which are hidden of both."""
    rng = np.random.default_rng(seed)
    mean = rng.exponential(size=(rows, 3)) @ rng.exponential(size=(3, columns))
    X = np.maximum(mean + 0.2 * rng.standard_normal(mean.shape), 0.0)
    hidden = rng.random(X.shape) < 0.2
    dirty = np.where(~hidden & (rng.random(X.shape) < share), 1000.0 * X, X)
    return mean, X, dirty, hidden


def error(noise, X, mean, hidden):
    """Return the root mean square error at the hidden entries, and the model."""
    model = BayesianNMF(3, noise=noise, n_chains=2, burn_in=300, n_draws=100, random_state=0)
    fitted = model.fit(np.where(hidden, np.nan, X))
    return np.sqrt(np.mean((fitted.reconstruct() - mean)[hidden] ** 2)), fitted


@pytest.mark.parametrize("noise", [StudentT(), pytest.param(StudentT(None), marks=pytest.mark.proof)], ids=str)
def test_outliers_do_not_spoil_a_fit_with_student_t(noise):
    mean, X, dirty, hidden = with_outliers(share=0.05)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)  # nothing is wrong with this fit
        clean, (found, model) = error(noise, X, mean, hidden)[0], error(noise, dirty, mean, hidden)
    assert found < 1.2 * clean
    low, high = model.interval(0.9)
    assert 0.85 < np.mean(((low <= X) & (high >= X))[hidden]) < 0.98


def test_a_slipped_decimal_point_does_not_spoil_the_default():
    rng = np.random.default_rng(1)
    truth = rng.standard_normal((200, 3)) @ rng.standard_normal((3, 8)) + 0.3 * rng.standard_normal((200, 8))
    X = np.where(rng.random(truth.shape) < 0.2, np.nan, truth)
    X[0, 0] = 1e5 * truth[:, 0].std()
    hidden = np.isnan(X[:, 0])
    imputer = NMFImputer(random_state=0).fit(X)
    low, high = (end[hidden, 0] for end in imputer.interval(X))
    assert np.sqrt(np.mean((imputer.transform(X)[hidden, 0] - truth[hidden, 0]) ** 2)) < 0.4 * truth[:, 0].std()
    assert np.mean(high - low) < 2.5 * truth[:, 0].std()
    (note,) = imputer.estimator_.posterior_.notes
    assert note.sentence.startswith("column 0 has outliers")
    assert note.level == "usable"


def test_few_rows_with_outliers_are_no_failed_fit():
    """An outlier pulls the mean of its column, which then looks better than a fit that leaves it out."""
    mean, _, dirty, _ = with_outliers(rows=12, columns=10, seed=3)
    dirty[4, 5] = 5000.0 * mean.mean()
    model = BayesianNMF(2, noise=StudentT(), n_chains=2, burn_in=200, n_draws=100, random_state=0).fit(dirty)
    assert not any("worse than the mean" in note.sentence for note in model.posterior_.notes)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.proof)])
def test_small_known_noise_does_not_keep_chains_where_they_start(seed):
    """Most find the fit: one chain of four may still have a log density that is hundreds below that of the best."""
    rng = np.random.default_rng(seed)
    mean = 3.0 + rng.exponential(size=(60, 2)) @ rng.exponential(size=(2, 15))
    errors = rng.choice([0.1, 1.0], size=mean.shape)
    X = np.maximum(mean + errors * rng.standard_normal(mean.shape), 0.0)
    hidden = rng.random(X.shape) < 0.2
    model = BayesianNMF(3, noise="known", random_state=0).fit(np.where(hidden, np.nan, X), noise_scale=errors)
    densities = model.posterior_.log_density.mean(axis=1)
    assert densities.max() - np.median(densities) < 30.0


# --- arguments


@pytest.mark.parametrize("noise", ["column", "student-t"])
def test_a_row_of_weight_zero_does_not_count(noise):
    X, _ = low_rank()
    weights = np.where(np.arange(15) % 4 == 1, 0.0, 2.0)
    without = np.where(weights[:, None] == 0.0, np.nan, X)
    found = quick(noise=noise).fit(X, sample_weight=weights)
    expected = quick(noise=noise).fit(without, sample_weight=np.where(weights == 0.0, 1.0, weights))
    for name in ("W", "Z", "noise_variance"):
        np.testing.assert_array_equal(getattr(found.posterior_, name), getattr(expected.posterior_, name))
    np.testing.assert_array_equal(found.transform(X), expected.transform(X))  # as new rows, given their entries
    np.testing.assert_array_equal(found.impute()[~np.isnan(X)], X[~np.isnan(X)])
    assert np.isfinite(found.interval(0.9)).all()


def test_implicit_zeros_are_refused():
    sparse = sp.csr_array(np.where(np.random.default_rng(0).random((15, 8)) < 0.2, 1.0, 0.0))
    cases = ((StudentT(), {}), ("column", {"sample_weight": np.ones(15)}), ("known", {"noise_scale": np.ones((15, 8))}))
    for noise, given in cases:
        with pytest.raises(
            ValueError, match="noise that differs between entries needs a list of all that was observed"
        ):
            quick(noise=noise).fit(sparse, **given)


# --- the same in every form


@pytest.mark.parametrize("scale", ["matrix", "column"])
@pytest.mark.parametrize("name", NOISES)
def test_a_power_of_two_as_unit_changes_no_bit(name, scale):
    X, errors = low_rank()
    unit = 2.0**-20 if scale == "matrix" else 2.0 ** np.random.default_rng(0).integers(-20, 20, size=8)
    model = quick(noise=NOISES[name], scale=scale)

    def results(unit):
        posterior = model.fit(unit * X, **known(name, unit * errors)).posterior_
        return [posterior.mean(), posterior.std(noise=True), *posterior.interval()]

    for found, expected in zip(results(unit), results(1.0), strict=True):
        np.testing.assert_array_equal(found, unit * expected)


@pytest.mark.parametrize("name", [*NOISES, "common", "column", "row", "both"])
@pytest.mark.parametrize(("scale", "offset", "missing"), [(None, None, 0.3), ("column", "min", 0.7)])
def test_every_method(name, scale, offset, missing):
    X, errors = low_rank(missing=missing)
    noise = NOISES.get(name, name)
    settings = {"noise": noise, "scale": scale, "offset": offset}
    model = quick(**settings).fit(X, **known(name, errors))
    posterior = model.posterior_
    assert (posterior.df is None) == ("Student" not in name)
    assert (posterior.noise_factor is None) == ("known" not in name)
    if isinstance(noise, str):
        by_column = noise in ("column", "both") or scale == "column"
        assert np.shape(model.noise_variance_) == ((8,) if by_column else ())
        assert posterior.noise_variance.shape == ((2, 8, 8) if by_column else (2, 8))
        assert (posterior.row_noise is None) == (noise in ("common", "column"))
    new = model.posterior_of(X[:3] * 1.5)
    everywhere = model.reconstruct(), model.impute(), posterior.std(noise=True), *model.interval()
    for found in (*everywhere, new.mean(), new.std(noise=True)):
        assert np.isfinite(found).all()
        assert (found >= 0).all()
    assert np.isfinite(model.score(X))
    np.testing.assert_array_equal(quick(**settings).fit_transform(X, **known(name, errors)), model._mean_W)
    rows, columns = np.nonzero(~np.isnan(X))
    total = posterior.log_likelihood(rows, columns, X[rows, columns]).sum(axis=2)
    np.testing.assert_allclose(total, posterior.log_density, rtol=1e-8)
    squares = (X[rows, columns] - posterior.draws_of(rows, columns, noise=False)) ** 2
    if scale != "column":
        np.testing.assert_allclose(posterior.train_mse[:, 8:], squares.mean(axis=2), rtol=1e-8)
    half = quick(**settings, draws_dtype="float32").fit(X, **known(name, errors)).posterior_
    assert half.W.dtype == np.float32
    np.testing.assert_allclose(half.std(noise=True), posterior.std(noise=True), rtol=1e-5)
    np.testing.assert_array_equal(half.log_density, posterior.log_density)


def test_known_noise_is_that_of_the_predictions():
    """The standard errors as they were given, whatever the units of the model."""
    X, errors = low_rank()
    for scale in (None, "matrix", "column"):
        posterior = quick(noise="known", scale=scale).fit(X, noise_scale=errors).posterior_
        noise = posterior.std() ** 2 - posterior.std(noise=False) ** 2
        np.testing.assert_allclose(np.sqrt(noise), errors, rtol=1e-6)
        np.testing.assert_array_equal(posterior.noise_variance, np.ones((2, 8)))


# --- units


def test_units_of_student_t_do_not_follow_outliers():
    X = np.random.default_rng(0).exponential(size=(200, 3)) + 1.0
    dirty = X.copy()
    dirty[0, 0] *= 1e6
    dirty[5:9, 1] *= 1e3
    sizes = np.sqrt((X**2).mean(axis=0))
    data = ObservedMatrix.from_data(dirty)
    np.testing.assert_allclose(units_of(data, "column", None, robust=True)[0].scale / sizes, 1.0, atol=2.5)
    assert (units_of(data, "column", None)[0].scale[:2] > 10.0 * sizes[:2]).all()
    clean = ObservedMatrix.from_data(X)
    robust, plain = (units_of(clean, "column", None, robust=robust)[0].scale for robust in (True, False))
    np.testing.assert_allclose(robust, plain, rtol=1e-12)
