"""BayesianNMF as scikit-learn users meet it."""

import warnings
from itertools import chain

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.utils.estimator_checks import check_estimator

from bnmf import BayesianNMF
from bnmf.posterior import fitting
from bnmf.posterior.components import Components
from bnmf.priors import L1, L2Squared

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


NOISES = ["common", "column", "row", "both"]


def low_rank(rows=40, columns=12, k=2, noise=0.1, missing=0.3, seed=0):
    """Return (X with NaN, X complete) of rank k plus noise."""
    rng = np.random.default_rng(seed)
    mean = rng.exponential(size=(rows, k)) @ rng.exponential(size=(k, columns))
    complete = np.maximum(mean + noise * rng.standard_normal(mean.shape), 0.0)
    return np.where(rng.random(mean.shape) < missing, np.nan, complete), complete


def quick(**settings):
    return BayesianNMF(**{"n_components": 2, "n_chains": 2, "burn_in": 50, "n_draws": 50, "random_state": 0} | settings)


def same_draws(a, b):
    return all(np.array_equal(getattr(a.posterior_, name), getattr(b.posterior_, name)) for name in ("W", "Z"))


@pytest.mark.filterwarnings("ignore")  # scikit-learn's checks make data that no sampler would converge on
def test_passes_check_estimator():
    # A weight is one over a variance. A row that is there twice has two rows of W, which is another model.
    names = ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")
    differs = dict.fromkeys(names, "a weight is not a number of copies")
    results = check_estimator(quick(burn_in=10, n_draws=10), expected_failed_checks=differs, on_fail=None)
    failed = {result["check_name"]: repr(result["exception"]) for result in results if result["status"] == "failed"}
    assert not failed
    assert sum(result["status"] == "passed" for result in results) > 40


@pytest.fixture(scope="module")
def fitted():
    """Data with missing entries, the same complete, and a fit of them."""
    X, complete = low_rank()
    return X, complete, quick().fit(X)


def test_every_container_gives_the_same_draws():
    """Entries that were not observed are missing, whatever is there."""
    X, complete = low_rank(missing=0.7)
    seen = ~np.isnan(X)
    sparse = sp.coo_array((complete[seen], np.nonzero(seen)), shape=X.shape)
    settings = {"burn_in": 8, "n_draws": 8, "noise": "both", "scale": None, "offset": "min"}
    reference = quick(**settings).fit(X)
    masked, garbage = np.ma.array(np.where(seen, complete, 1e6), mask=~seen), np.where(seen, X, np.inf)
    for given, observed in ((pd.DataFrame(X), None), (masked, None), (garbage, seen)):
        assert same_draws(reference, quick(**settings).fit(given, observed=observed))
    for name in ("transform", "impute", "score"):
        expected = getattr(reference, name)(X)
        np.testing.assert_array_equal(getattr(reference, name)(masked), expected)
        np.testing.assert_array_equal(getattr(reference, name)(garbage, observed=seen), expected)
    for form in ("csr", "csc", "coo"):
        assert same_draws(reference, quick(**settings, unstored="missing").fit(sparse.asformat(form)))


@pytest.mark.parametrize("noise", NOISES)
def test_unstored_zeros_are_data(noise):
    _, complete = low_rank(missing=0.0)
    complete[complete < np.quantile(complete, 0.7)] = 0.0
    few = {"noise": noise, "burn_in": 2, "n_draws": 3}  # sweeps: rounding grows from sweep to sweep
    sparse = quick(**few).fit(sp.csr_array(complete))
    dense = quick(**few).fit(complete)
    np.testing.assert_allclose(sparse.posterior_.mean(), dense.posterior_.mean(), rtol=1e-6)
    np.testing.assert_allclose(sparse.noise_variance_, dense.noise_variance_, rtol=1e-6)
    missing = quick(**few, unstored="missing").fit(sp.csr_array(complete))
    assert not np.allclose(missing.posterior_.mean(), dense.posterior_.mean(), rtol=0.1)


def test_threads_do_not_change_the_draws():
    X, _ = low_rank(rows=600)
    one, two, four = (quick(n_draws=5, n_jobs=n).fit(X) for n in (1, 2, 4))
    assert same_draws(one, two)
    assert same_draws(one, four)


def test_chains_take_the_cores_unless_joblib_runs_fits_side_by_side(monkeypatch):
    X, _ = low_rank(rows=10)
    found, sampled = [], fitting.Run.sampled
    monkeypatch.setattr(
        fitting.Run,
        "sampled",
        lambda *args, n_jobs, **others: found.append(n_jobs) or sampled(*args, n_jobs=n_jobs, **others),
    )
    monkeypatch.setattr("bnmf.estimator.cpu_count", lambda: 3)
    for model in (quick(n_chains=2), quick(n_chains=4), quick(n_jobs=1), quick(n_jobs=5)):
        model.fit(X)
    assert found == [2, 3, 1, 5]
    joblib.Parallel(2, backend="threading")(joblib.delayed(quick().fit)(X) for _ in range(2))
    assert found[4:] == [1, 1]
    with joblib.parallel_config(n_jobs=2):
        quick(n_chains=4).fit(X)
    assert found[6:] == [2]


def test_a_report_needs_the_draws(tmp_path):
    X, _ = low_rank(rows=10)
    with pytest.raises(TypeError, match="keep_draws=False"):
        quick(keep_draws=False).fit(X).report(tmp_path / "report.html")


def test_components_are_numbered_by_size():
    """In `components_`, weights, aligned draws and summaries alike, with draws and without."""
    X, _ = low_rank(rows=60, k=3, missing=0.1)
    X[:, 0] *= 1e6  # in units of the fit, in which no column dominates
    size = np.sqrt(np.nanmean(X**2, axis=0))
    for keep_draws in (True, False):
        model = quick(n_components=3, keep_draws=keep_draws)
        W, Z = model.fit_transform(X), model.components_ / size
        assert (np.diff(W.sum(axis=0) * Z.sum(axis=1)) <= 0).all()
    posterior = quick(n_components=3, scale=None).fit(X[:, 1:]).posterior_
    assert (np.diff(Components.of(posterior).sizes) <= 0).all()
    aligned = posterior.align()
    assert (np.diff((aligned.W.sum(axis=2) * aligned.Z.sum(axis=3)).mean(axis=(0, 1))) < 0).all()


def test_random_state():
    X, _ = low_rank()
    assert same_draws(quick().fit(X), quick().fit(X))
    assert not same_draws(quick().fit(X), quick(random_state=1).fit(X))
    assert not same_draws(quick(random_state=None).fit(X), quick(random_state=None).fit(X))


def test_predictive_intervals_cover():
    """90% intervals on held-out data of the model cover 88 to 92%.

    Over 12 other seeds and twice the columns the coverage had a standard deviation of 0.002.
    """
    rng = np.random.default_rng(5)
    mean = rng.exponential(size=(400, 3)) @ rng.exponential(size=(3, 100)) + 20.0  # far from the cut at zero
    complete = mean + rng.standard_normal(mean.shape)
    X = np.where(rng.random(mean.shape) < 0.6, np.nan, complete)
    model = quick(n_components=4, n_chains=2, burn_in=200, n_draws=200).fit(X)
    low, high = model.interval(0.9)
    hidden = np.isnan(X)
    coverage = np.mean(((low <= complete) & (complete <= high))[hidden])
    assert 0.88 < coverage < 0.92
    # Predictions err little more than the noise, whose size is found.
    assert np.sqrt(np.mean((model.reconstruct() - mean)[hidden] ** 2)) < 0.5
    assert np.abs(np.mean(model.noise_variance_) - 1.0) < 0.05
    narrow = model.interval(0.9, noise=False)
    assert np.mean(narrow[1] - narrow[0]) < 0.5 * np.mean(high - low)


def test_results_for_the_fitted_rows(fitted):
    X, _, model = fitted
    filled, seen = model.impute(), ~np.isnan(X)
    np.testing.assert_array_equal(filled, np.where(seen, X, model.reconstruct()))
    np.testing.assert_array_equal(model.impute(X), filled)
    assert model.reconstruction_err_ == pytest.approx(np.linalg.norm((X - model.reconstruct())[seen]))
    with pytest.raises(TypeError, match="positional"):
        model.interval(0.9, False)
    W = quick().fit_transform(X)
    assert W.shape == (40, 2)
    np.testing.assert_allclose(model.transform(X), W)
    np.testing.assert_allclose(model.transform(X[[7, 3]]), W[[7, 3]])
    np.testing.assert_allclose(W.mean(axis=0), 1.0)
    np.testing.assert_array_equal(model.inverse_transform(W), W @ model.components_)
    assert model.n_iter_ == 100


def test_frames_in_and_out():
    X, _ = low_rank(columns=4)
    frame = pd.DataFrame(X, columns=list("abcd"), index=[f"row {i}" for i in range(len(X))])
    model = quick().set_output(transform="pandas").fit(frame)
    assert list(model.feature_names_in_) == list(model.posterior_.column_names) == list("abcd")
    assert list(model.posterior_.row_names[:2]) == ["row 0", "row 1"]
    assert list(model.transform(frame).columns) == ["bayesiannmf0", "bayesiannmf1"]
    with pytest.raises(ValueError, match="feature names"):
        model.transform(frame[list("dcba")])
    expected = pd.DataFrame(quick().fit(X).impute(), index=frame.index, columns=frame.columns)
    for filled in (model.impute(), model.impute(frame)):
        pd.testing.assert_frame_equal(filled, expected)
    np.testing.assert_array_equal(model.impute(frame.iloc[3:5]).index, ["row 3", "row 4"])


def test_score_does_not_reward_components_that_fit_noise():
    X, _ = low_rank(rows=60, columns=15, k=2, noise=0.5, missing=0.3)
    train, test = X[:40], X[40:]
    scores = {k: quick(n_components=k).fit(train).score(test) for k in (1, 2, 10)}
    assert scores[2] > scores[1]
    assert scores[2] > scores[10] - 0.05


def test_a_problem_is_a_warning_of_scikit_learn_that_points_at_the_caller(monkeypatch):
    X, _ = low_rank()
    monkeypatch.setattr("bnmf.posterior.Posterior.problems", lambda posterior: ["the predictions have not converged"])
    with pytest.warns(ConvergenceWarning, match="^the predictions have not converged$") as caught:
        quick().fit(X)
    assert caught[0].filename == __file__
    monkeypatch.undo()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quick(n_chains=4, burn_in=300, n_draws=300, calibrate=False).fit(X)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"n_components": "all"}, "'n_components' parameter of BayesianNMF must be .* Got 'all'"),
        ({"n_components": True}, "n_components must be a whole number, got True"),
        ({"n_chains": True}, "n_chains must be a whole number, got True"),
        ({"progress": "no"}, "'progress' parameter .* 'bool'.* Got 'no'"),
        ({"random_state": -1}, "random_state must not be negative, got -1"),
        ({"checkpoint": ""}, "checkpoint must be the name of a directory, got ''"),
        ({"checkpoint": __file__}, "checkpoint=.*test_estimator.py' is a file: give a directory"),
        ({"checkpoint": "somewhere", "keep_draws": False}, "cannot be combined with keep_draws=False"),
        ({"n_draws": "auto", "keep_draws": False}, "cannot be combined with keep_draws=False"),
        ({"prior": "gaussian"}, "prior must be a Prior or one of 'ard', 'exponential'"),
        ({"prior": L1() + L2Squared(1.0)}, "cannot be learned in a sum"),
        ({"noise": "none"}, "noise must be one of .common., .column., .row., .both."),
        ({"noise": "known"}, "noise='known' needs noise_scale"),
        ({"offset": "mean"}, "offset='mean' leaves entries below zero"),
        ({"init": (np.ones((9, 2)),) * 3}, "init must be 'random' or a pair .W0, Z0., got 3"),
        ({"init": ("a", np.ones((2, 12)))}, "init must hold real numbers, got 'a'"),
        ({"fixed_components": [["a", "b"]]}, "fixed_components must be an array of numbers, got list"),
        ({"noise_scale": [1.0, -1.0, np.nan]}, "noise_scale must be positive and finite, got -1.0"),
        ({"sample_weight": [1.0, np.nan]}, "sample_weight must be finite and not negative, got nan"),
    ],
)
def test_wrong_arguments_are_found_before_the_data_are_touched(settings, words):
    given = {name: settings[name] for name in ("noise_scale", "sample_weight") if name in settings}
    model = quick(**{name: value for name, value in settings.items() if name not in given})
    with pytest.raises((ValueError, TypeError), match=words):
        model.fit(None, **given)


# --- sparse data whose unstored entries are zeros


def sparse_with_zeros(missing=0.05, seed=0):
    """Return block-diagonal sparse data with some entries stored as NaN, and the same data as a dense array."""
    rng = np.random.default_rng(seed)
    parts = [np.outer(1 + rng.random(20), 1 + rng.random(8)) + 0.1 * rng.random((20, 8)) for _ in range(3)]
    sparse = sp.csr_array(sp.block_diag([sp.coo_array(part) for part in parts]))
    sparse.data[rng.random(sparse.nnz) < missing] = np.nan
    assert np.isnan(sparse.data).any()
    return sparse, sparse.toarray()


def test_sparse_zeros_are_those_of_dense_data_and_imputed_sparsely():
    sparse, dense = sparse_with_zeros()
    few = {"n_components": 3, "noise": "column", "burn_in": 2, "n_draws": 3}
    model, of_dense = quick(**few).fit(sparse), quick(**few).fit(dense)
    assert model.data_.has_implicit_zeros
    assert not of_dense.data_.has_implicit_zeros
    for other in (model, quick(**few, keep_draws=False).fit(sparse)):
        assert other.reconstruction_err_ == pytest.approx(of_dense.reconstruction_err_, rel=1e-6)
    filled = model.impute()
    assert isinstance(filled, sp.csr_array)
    assert filled.nnz == sparse.nnz
    seen = ~np.isnan(dense)
    np.testing.assert_array_equal(filled.toarray()[seen], dense[seen])
    np.testing.assert_allclose(filled.toarray(), of_dense.impute(), rtol=1e-6)
    np.testing.assert_array_equal(model.impute(sparse).toarray(), filled.toarray())
    assert np.isfinite(model.posterior_of(sparse[:3] * 1.5).interval()).all()
    # Mostly stored data are kept dense inside, and come back sparse all the same.
    block = sparse[:20, :8]
    few = quick(n_components=1).fit(block)
    assert not few.data_.has_implicit_zeros
    assert isinstance(few.impute(), sp.csr_array)
    np.testing.assert_array_equal(few.impute().toarray(), few.impute(block).toarray())
    assert isinstance(quick(n_components=3, noise="column", unstored="missing").fit(sparse).impute(), np.ndarray)


def test_sparse_zeros_are_scored():
    """The score is that of the dense data, up to the choice of hidden entries."""
    sparse, dense = sparse_with_zeros(missing=0.02)
    fitted = {k: quick(n_components=k, noise="column").fit(sparse) for k in (1, 3)}
    scores = {k: model.score(sparse) for k, model in fitted.items()}
    exact = {k: quick(n_components=k, noise="column").fit(dense).score(dense) for k in (1, 3)}
    assert scores[3] > scores[1] + 0.5
    for k in (1, 3):
        assert scores[k] == pytest.approx(exact[k], abs=0.1)
    search = GridSearchCV(quick(n_chains=1), {"n_components": [1, 3]}, cv=KFold(2, shuffle=True, random_state=0))
    assert search.fit(sparse).best_params_ == {"n_components": 3}


def test_a_large_sparse_matrix_is_scored_and_imputed_without_becoming_dense():
    rng = np.random.default_rng(0)
    large = sp.random_array((20_000, 20_000), density=1e-5, rng=rng, format="csr")  # dense: 3.2 GB
    large.data[:10] = np.nan
    model = quick(n_components=1, n_chains=1, burn_in=2, n_draws=4).fit(large)
    assert np.isfinite(model.score(large[:1000]))
    filled = model.impute()
    assert filled.nnz == large.nnz
    assert np.isfinite(filled.data).all()


# --- noise and units


def short(**settings):
    """Return a model of few sweeps, and with none of the settings that may become the default."""
    return quick(**{"burn_in": 8, "n_draws": 8, "prior": "gl22", "noise": "common", "scale": None} | settings)


def predictions_of(model, X, new):
    """Return what a user gets in the units of X: values and standard deviations of fitted rows, and of new ones."""
    fitted = model.fit(X)
    seen = ~np.isnan(X)
    assert np.array_equal(fitted.impute()[seen], X[seen])
    values = [fitted.reconstruct(), *fitted.interval(), *fitted.interval(noise=False), fitted.impute()]
    spreads = [fitted.posterior_.std(), fitted.posterior_.std(noise=False)]
    posterior = fitted.posterior_of(new)
    of_new = [posterior.mean(), *posterior.interval(), fitted.impute(new)]
    return values, spreads, of_new, [posterior.std(noise=True), fitted.transform(new) @ fitted.components_]


@pytest.mark.parametrize(
    ("scale", "noise", "missing", "prior"),
    [
        ("matrix", "common", 0.2, "gl22"),
        ("matrix", "row", 0.7, L2Squared(by="component")),
        ("column", "column", 0.2, L2Squared(by="component")),
        ("column", "both", 0.7, "gl22"),
    ],
)
def test_any_unit_gives_the_same_predictions_and_a_power_of_two_the_same_bits(scale, noise, missing, prior):
    X, _ = low_rank(rows=15, columns=8, missing=missing)
    new, _ = low_rank(rows=4, columns=8, missing=missing, seed=1)
    powers = [2.0**20, 2.0**-20]
    if scale == "column":
        powers.append(2.0 ** np.random.default_rng(0).integers(-20, 20, size=8))
    model = short(scale=scale, noise=noise, prior=prior)
    reference = [*chain(*predictions_of(model, X, new))]
    for power in powers:
        for found, expected in zip(chain(*predictions_of(model, power * X, power * new)), reference, strict=True):
            np.testing.assert_array_equal(found, power * expected)
    for unit in (3.7, 1e140, 1e-140):  # new rows have the random streams of their rounded content
        values, spreads, *_ = predictions_of(model, unit * X, unit * new)
        for found, expected in zip(chain(values, spreads), reference, strict=False):
            np.testing.assert_allclose(found / unit, expected, rtol=1e-5, atol=1e-6)  # intervals: single precision


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize(("scale", "offset"), [(None, "min"), ("matrix", None), ("column", "min"), ("column", None)])
def test_constant_zero_and_never_observed_columns_and_only_zeros(noise, scale, offset):
    X, _ = low_rank(rows=20, columns=8)
    X[:, 1], X[:, 4], X[:, 6] = 5.0, 0.0, np.nan
    X[3] = np.nan
    model = short(noise=noise, scale=scale, offset=offset).fit(X)
    if offset is not None:
        np.testing.assert_array_equal(model.posterior_.offset[[1, 4, 6]], [5.0, 0.0, 0.0])
    zeros = short(noise=noise, scale=scale).fit(np.zeros((6, 4)))
    for found in (
        model.reconstruct(), model.posterior_.std(noise=False), *model.interval(), model.transform(X),
        model.posterior_of(X[:2] + 1.0).mean(), model.posterior_.log_density,
        zeros.reconstruct(), zeros.posterior_of(np.zeros((2, 4))).mean(),
    ):  # fmt: skip
        assert np.isfinite(found).all()


# --- offsets


def with_negative_entries(rows=15, seed=0):
    """Return data that are multiples of 1/1024, so that shifts by whole numbers are exact."""
    return np.round(low_rank(rows=rows, columns=8, seed=seed)[0] * 1024.0) / 1024.0 - 1.0


@pytest.mark.parametrize(("noise", "scale", "missing"), [("column", "matrix", 0.2), ("both", "column", 0.7)])
def test_shifting_a_column_shifts_its_predictions(monkeypatch, noise, scale, missing):
    X, new = with_negative_entries(), with_negative_entries(rows=4, seed=1)
    X[np.random.default_rng(2).random(X.shape) < missing] = np.nan
    shift = np.array([0.0, 100.0, -7.0, 0.0, 3.0, 0.0, 0.0, -50.0])
    assert np.nanmin(X) < 0
    model = short(noise=noise, scale=scale, offset="min")
    # The random streams of new rows follow their content, so here their number.
    monkeypatch.setattr(
        "bnmf.posterior.new_rows.row_ids", lambda data, scale: np.arange(data.shape[0], dtype=np.uint64)
    )
    before, after = (predictions_of(model, X + by, new + by) for by in (0.0, shift))
    for by, *parts in zip((shift, 0.0, shift, 0.0), after, before, strict=True):
        for found, expected in zip(*parts, strict=True):
            np.testing.assert_allclose(found, expected + by, rtol=1e-10, atol=1e-10)


def test_offset_is_the_smallest_observed_entry():
    X = with_negative_entries(rows=40)
    model = short(offset="min", burn_in=50, n_draws=50).fit(X)
    np.testing.assert_array_equal(model.posterior_.offset, np.nanmin(X, axis=0))
    assert model.posterior_.lower_bound == -np.inf
    assert (model.reconstruct() >= model.posterior_.offset).all()
    assert model.interval()[0].min() < 0
    seen = ~np.isnan(X)
    assert model.reconstruction_err_ == pytest.approx(np.linalg.norm((X - model.reconstruct())[seen]))
    assert model.score(X) > model.score(X + 10.0) + 0.5
    np.testing.assert_array_equal(model.offset_, model.posterior_.offset)
    W = model.transform(X)
    np.testing.assert_allclose(model.inverse_transform(W), W @ model.components_ + model.offset_)
    assert short(offset="min").fit(X + 10.0).posterior_.lower_bound == 0.0
    assert short().fit(X + 10.0).offset_ is None
    with pytest.raises(ValueError, match=r"Negative values.*unless offset='min'"):
        short().fit(X)
    assert short().__sklearn_tags__().input_tags.positive_only
    assert not short(offset="min").__sklearn_tags__().input_tags.positive_only


def test_offset_of_sparse_data():
    sparse, dense = sparse_with_zeros()
    found = quick(offset="min", unstored="missing").fit(sparse)
    np.testing.assert_array_equal(found.offset_, np.nanmin(np.where(dense == 0.0, np.nan, dense), axis=0))
    with pytest.raises(ValueError, match="offset='min' needs dense data"):
        quick(offset="min").fit(sparse)


def test_names_of_columns_need_not_be_strings():
    rng = np.random.default_rng(0)
    X = rng.exponential(size=(30, 4))
    X[rng.random(X.shape) < 0.2] = np.nan
    frame = pd.DataFrame(X, columns=range(2015, 2019))
    model = BayesianNMF(2, n_chains=1, burn_in=5, n_draws=5).fit(frame, upper={2016: 9.0})
    assert not frame.fillna(model.impute()).isna().any(axis=None)
    assert list(model.impute(frame[:3]).columns) == list(frame.columns)
    with pytest.raises(ValueError, match="X must have the columns of the fit, in their order"):
        model.impute(frame[frame.columns[::-1]])
    numbered = frame.set_axis(range(4), axis=1)  # as those of an array
    assert model.impute(numbered[:3]).shape == (3, 4)
    model.fit(numbered)
    assert model.impute(frame[:3]).shape == (3, 4)
    with pytest.raises(ValueError, match="X must have the columns of the fit, in their order"):
        model.impute(numbered[[3, 2, 1, 0]])


@pytest.mark.parametrize("name", ["observed", "lower", "upper", "noise_scale"])
def test_frames_with_other_labels_are_refused(name):
    """Entries are matched by position, and a frame in another order would be wrong without a word."""
    X = pd.DataFrame(np.ones((5, 3)), columns=list("abc"))
    given = pd.DataFrame(np.ones((5, 3), bool if name == "observed" else float), columns=X.columns)
    model = BayesianNMF(1, n_chains=1, burn_in=1, n_draws=1, noise="known" if name == "noise_scale" else "column")
    model.fit(X, **{name: given})
    for frame, axis in ((given[::-1], "rows"), (given[["b", "a", "c"]], "columns")):
        with pytest.raises(ValueError, match=f"{name} must have the {axis} of X, in their order"):
            model.fit(X, **{name: frame})
