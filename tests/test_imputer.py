"""NMFImputer: what was observed stays, what was not is filled, once or several times."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from bnmf import BayesianNMF, NMFImputer, pool_estimates

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def imputer(**settings):
    model = BayesianNMF(3, n_chains=2, burn_in=100, n_draws=100, random_state=0)
    return NMFImputer(model, **settings)


def quick(**settings):
    return NMFImputer(BayesianNMF(2, n_chains=2, burn_in=20, n_draws=20, random_state=0), **settings)


def example(noise=0.2, missing=0.3):
    rng = np.random.default_rng(0)
    mean = rng.exponential(size=(100, 2)) @ rng.exponential(size=(2, 20)) + 1.0
    complete = np.abs(mean + noise * rng.standard_normal(mean.shape))
    return np.where(rng.random(mean.shape) < missing, np.nan, complete), complete


@pytest.fixture(scope="module")
def fitted():
    """A table, the same complete, and an imputer fitted to it."""
    X, complete = example()
    with warnings.catch_warnings(action="ignore"):
        return X, complete, imputer().fit(X)


@pytest.mark.filterwarnings("ignore")
def test_passes_check_estimator():
    quick = BayesianNMF(3, n_chains=1, burn_in=20, n_draws=20, random_state=0)
    results = check_estimator(NMFImputer(quick), on_fail=None)
    assert not [result["check_name"] for result in results if result["status"] == "failed"]


def test_multiple_imputations_have_the_whole_uncertainty(fitted):
    """Their spread is that of new data: noise and all. 90% of the truth lies within their central 90%."""
    X, complete, fitted = fitted
    copies = fitted.multiple_imputations(X, n_imputations=200, random_state=0)
    seen, hidden = ~np.isnan(X), np.isnan(X)
    assert copies.shape == (200, 100, 20)
    assert np.array_equal(copies[:, seen], np.broadcast_to(X[seen], (200, seen.sum())))
    assert (copies >= 0).all()
    low, high = np.quantile(copies, [0.05, 0.95], axis=0)
    coverage = np.mean(((low <= complete) & (complete <= high))[hidden])
    # 600 hidden entries: 0.9 ± 0.012, and four such standard errors.
    assert 0.85 < coverage < 0.95
    spread = copies.std(axis=0)[hidden]
    assert spread.mean() > 0.95 * np.sqrt(np.mean(fitted.estimator_.noise_variance_))
    np.testing.assert_allclose(copies.mean(axis=0)[hidden], fitted.transform(X)[hidden], atol=0.35)
    first, same, other, fresh = (fitted.multiple_imputations(X[:5], 3, random_state=seed) for seed in (0, 0, 1, None))
    assert np.array_equal(first, same)
    assert not np.array_equal(first, other)
    assert not np.array_equal(first, fresh)


def test_in_a_pipeline_with_parameters_of_the_model():
    X, complete = example()
    pipeline = make_pipeline(quick(), RandomForestRegressor(n_estimators=10, random_state=0))
    pipeline = clone(pipeline).set_params(nmfimputer__estimator__n_components=4).fit(X, complete.sum(axis=1))
    assert pipeline.score(X, complete.sum(axis=1)) > 0.5
    assert pipeline[0].estimator_.components_.shape == (4, 20)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda _: imputer().fit(np.full((4, 3), np.nan)), "no observed entry"),
        (lambda _: imputer().fit(pd.DataFrame(index=range(5))), r"X must have at least one column, got shape \(5, 0\)"),
        (lambda _: imputer().fit(np.array([[1.0, -1.0], [2.0, 3.0]])), "Negative values"),
        (lambda _: NMFImputer(n_components=0).fit(None), "n_components must be at least 1, got 0"),
        (lambda _: NMFImputer(BayesianNMF(n_draws=0)).fit(None), "n_draws must be at least 1, got 0"),
        (lambda _: quick(kinds={"a": "yesno"}).fit(None), r"kinds\['a'\] must be 'number', 'nonnegative'"),
        (lambda fitted: fitted.multiple_imputations(None, 0), "n_imputations must be at least 1, got 0"),
        (lambda fitted: fitted.multiple_imputations(None, 201), "n_imputations must be at most the 200 draws, got 201"),
        (lambda _: pool_estimates([1.0], [1.0]), "at least two"),
        (lambda _: pool_estimates([1.0, 2.0], [1.0]), r"variances must have the shape of estimates, \(2,\)"),
        (lambda _: pool_estimates([1.0, 2.0], [1.0, -1.0]), "variances must be nonnegative and finite, got -1"),
        (lambda _: pool_estimates([1.0, np.nan], [1.0, 1.0]), "estimates must be finite, got nan"),
    ],
)
def test_wrong_calls(fitted, call, words):
    with pytest.raises(ValueError, match=words):
        call(fitted[2])


def test_a_frame_for_a_frame():
    X, _ = example()
    X[:, 0] = np.nan_to_num(X[:, 0], nan=1.0)  # which has no indicator
    frame = pd.DataFrame(X, columns=[f"c{i}" for i in range(20)], index=[f"r{i}" for i in range(100)])
    fitted, of_array = quick(add_indicator=True).set_output(transform="pandas").fit(frame), quick().fit(X)
    filled = fitted.transform(frame)
    assert list(fitted.estimator_.posterior_.row_names) == list(frame.index)
    assert isinstance(filled, pd.DataFrame)
    pd.testing.assert_index_equal(filled.index, frame.index)
    assert filled.columns.tolist() == [*frame.columns, *(f"missingindicator_{name}" for name in frame.columns[1:])]
    np.testing.assert_array_equal(filled["missingindicator_c2"], np.isnan(X[:, 2]).astype(float))
    np.testing.assert_array_equal(filled.iloc[:, :20].to_numpy(), of_array.transform(X))
    copies = fitted.multiple_imputations(frame, 3, random_state=0)
    for copy, array in zip(copies, of_array.multiple_imputations(X, 3, random_state=0), strict=True):
        pd.testing.assert_index_equal(copy.index, frame.index)
        np.testing.assert_array_equal(copy.to_numpy(), array)


@pytest.mark.parametrize("names", [[0, 1], [2015, 2016], [("a", 1), ("a", 2)]])
def test_frames_have_the_columns_of_the_fit(names):
    X = pd.DataFrame([[np.nan, 101.0], [1.0, 102.0], [2.0, 100.0]], columns=pd.Index(names))
    fitted = quick().fit(X)
    assert fitted.transform(X).columns.equals(X.columns)
    others = [X.iloc[:, ::-1]] if names == [0, 1] else [X.iloc[:, ::-1], X.set_axis([7, names[1]], axis=1)]
    for other in others:
        with pytest.raises(ValueError, match="X must have the columns of the fit, in their order"):
            fitted.transform(other)


@pytest.mark.parametrize("dtype", ["Float64", "Float32", "float16", "float32", "Sparse[float64]", "double[pyarrow]"])
def test_a_frame_keeps_its_dtypes(dtype):
    if "pyarrow" in dtype:
        pytest.importorskip("pyarrow")
    X = pd.DataFrame(example()[0][:, :4].astype(np.float16), columns=list("abcd")).astype(dtype)
    fitted = quick().fit(X)
    for filled in (fitted.transform(X), *fitted.interval(X), *fitted.multiple_imputations(X, 2, random_state=0)):
        pd.testing.assert_series_equal(filled.dtypes, X.dtypes)
        assert filled.notna().all(axis=None)
        pd.testing.assert_frame_equal(filled.where(X.notna()), X)


def test_arrays(fitted):
    """Observed entries are kept bit for bit; masked ones are missing, and so is a number that stands for it."""
    X, complete, model = fitted
    seen = ~np.isnan(X)
    masked = np.ma.array(np.where(seen, complete, 1e6), mask=~seen)
    np.testing.assert_array_equal(model.transform(masked), model.transform(X))
    expected, coded = quick().fit_transform(X), np.where(seen, X, -999.0)
    np.testing.assert_array_equal(quick().fit_transform(masked), expected)
    np.testing.assert_array_equal(quick(missing_values=-999).fit(coded).transform(coded), expected)
    single = X.astype(np.float32)
    for given, filled in ((X, expected), (single, quick().fit_transform(single))):
        assert filled.dtype == given.dtype
        assert filled[seen].tobytes() == given[seen].tobytes()
        assert np.isfinite(filled).all()
        assert np.isnan(given).any()  # the input was not written to


@pytest.mark.parametrize("keep", [False, True])
def test_columns_without_an_observed_entry_are_dropped_or_zero(keep):
    """As by scikit-learn's imputers: nothing is invented."""
    X = pd.DataFrame(example()[0][:30, :5], columns=list("abcde"))
    X["c"] = np.nan
    fitted = quick(keep_empty_features=keep, add_indicator=True).fit(X)
    filled = fitted.transform(X)
    names = [*("abcde" if keep else "abde"), *(f"missingindicator_{name}" for name in "abcde")]
    assert list(filled.columns) == list(fitted.get_feature_names_out()) == names
    assert not keep or (filled["c"] == 0).all()
    rest = quick().fit_transform(X.drop(columns="c"))
    pd.testing.assert_frame_equal(filled[list("abde")], rest)
    low, high = fitted.interval(X)
    (first,) = fitted.multiple_imputations(X, 1, random_state=0)
    assert list(low.columns) == list(high.columns) == list(first.columns) == names[: 5 if keep else 4]


def test_parameters_of_the_model():
    X = example()[0][:20, :6]
    model = NMFImputer(n_components=3, n_jobs=2, random_state=5, missing_values=-1).fit(np.nan_to_num(X, nan=-1.0))
    fitted = model.estimator_
    assert (fitted.n_components, fitted.n_jobs, fitted.random_state, fitted.offset) == (3, 2, 5, "mean")
    np.testing.assert_allclose(fitted.offset_, np.nanmean(X, axis=0))
    assert fitted.posterior_.signed == (False, True)
    own, other = (quick(random_state=seed).fit_transform(X) for seed in (None, 1))
    np.testing.assert_array_equal(own, quick(random_state=0).fit_transform(X))
    assert not np.array_equal(own, other)


def test_intervals_are_those_of_the_posterior_and_observed_entries_have_none():
    X = pd.DataFrame(example()[0][:30, :6], columns=list("abcdef"))
    fitted = quick().fit(X)
    low, high = fitted.interval(X, 0.8)
    missing = X.isna().to_numpy()
    for at, name in enumerate(X.columns):
        rows = np.flatnonzero(missing[:, at])
        expected = fitted.estimator_.posterior_.interval(0.8, rows, np.full(len(rows), at))
        for found, end in zip((low, high), expected, strict=True):
            np.testing.assert_array_equal(found[name].to_numpy()[rows], end)
            np.testing.assert_array_equal(found[name].to_numpy()[~missing[:, at]], X[name].dropna())
    new = X.iloc[:2] * 1.5
    low, high = fitted.interval(new)
    assert (low < high).to_numpy()[new.isna()].all()


@pytest.mark.parametrize("is_frame", [False, True])
def test_limited_entries_stay_between_their_limits(is_frame):
    """Their means, intervals and draws are those of the posterior between the limits, and the rest is as without."""
    X = example()[0][:40, :6]
    cap = np.nanquantile(X, 0.8)
    lower = np.where(cap <= X, cap, np.nan)
    lower[0, 0], capped = 1.0, cap <= X
    upper = np.where(np.arange(40)[:, None] == 0, lower, np.nan)  # one entry is exact
    capped[0] = False
    given = {"lower": lower, "upper": upper}
    table = pd.DataFrame(np.minimum(X, cap)) if is_frame else np.minimum(X, cap)
    fitted = NMFImputer(BayesianNMF(2, n_chains=2, burn_in=20, n_draws=100, random_state=0)).fit(table, **given)
    mean, (low, high) = fitted.transform(table, **given), fitted.interval(table, 0.8, **given)
    copies = np.array(fitted.multiple_imputations(table, 200, **given, random_state=0))
    mean, low, high = map(np.asarray, (mean, low, high))
    at = np.nonzero(capped)
    ends = np.full(len(at[0]), cap), np.full(len(at[0]), np.inf)
    posterior = fitted.estimator_.posterior_
    np.testing.assert_allclose(mean[at], posterior.mean_between(*at, *ends))
    assert (copies[:, *at] >= cap).all()
    # The mean of 200 draws, which differ between two chains: eight standard errors.
    np.testing.assert_array_less(np.abs(copies.mean(axis=0) - mean)[at], 8.0 * copies.std(axis=0)[at] / np.sqrt(200))
    inside = (low[at] <= copies[:, *at]) & (copies[:, *at] <= high[at])
    assert abs(inside.mean() - 0.8) < 0.05
    assert (low[at] >= cap).all()
    for found in (mean, low, high, *copies[:3]):
        assert found[0, 0] == 1.0
        exact = ~(capped | np.isnan(X))
        exact[0, 0] = False
        np.testing.assert_array_equal(found[exact], np.asarray(table)[exact])


def test_rubins_rules():
    """Intervals of a mean cover it as often as they say, where a third of the data is drawn at random."""
    rng = np.random.default_rng(0)
    n, m, inside = 60, 10, 0
    for _ in range(1000):
        data = rng.normal(size=n)
        seen = data[:40]
        # Draws from the posterior predictive distribution of a normal.
        scale = np.sqrt(39 * seen.var(ddof=1) / rng.chisquare(39, size=m))
        centre = seen.mean() + scale / np.sqrt(40) * rng.normal(size=m)
        tables = np.hstack([np.tile(seen, (m, 1)), centre[:, None] + scale[:, None] * rng.normal(size=(m, 20))])
        pooled = pool_estimates(tables.mean(axis=1), tables.var(axis=1, ddof=1) / n)
        low, high = pooled.interval(0.9)
        inside += low < 0 < high
    # 0.9 with a standard error of 0.0095, and five of them; without the variance between tables it is 0.80.
    assert abs(inside / 1000 - 0.9) < 0.05
    # Variances 2 within and (1 + 1/3) 1 between tables.
    np.testing.assert_allclose(pool_estimates([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]).missing_information, 0.4)
    same = pool_estimates([[2.0, 1.0]] * 3, [[0.25, 0.5]] * 3)
    np.testing.assert_array_equal(same.missing_information, 0.0)
    np.testing.assert_allclose(same.standard_error, np.sqrt([0.25, 0.5]))
    np.testing.assert_allclose(same.interval(0.95)[1], same.estimate + stats.norm.ppf(0.975) * same.standard_error)
