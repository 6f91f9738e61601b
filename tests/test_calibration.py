"""A fit that tests itself: entries hidden from one more chain, their error and coverage, by column too."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from bnmf import BayesianNMF, Posterior
from bnmf.data.folds import Fold
from bnmf.data.observed import ObservedMatrix
from bnmf.noise import GroupedNoise
from bnmf.posterior import fitting
from bnmf.posterior.calibration import measure


def low_rank(rows=80, columns=10, noise=0.3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.exponential(size=(rows, 2)) @ rng.exponential(size=(2, columns)) + noise * rng.standard_normal(
        (rows, columns)
    )
    return np.where(rng.random(X.shape) < 0.2, np.nan, np.maximum(X, 0.0))


def quick(**settings):
    return BayesianNMF(
        **{"n_components": 2, "n_chains": 2, "burn_in": 60, "n_draws": 100, "random_state": 0} | settings
    )


def like_rain():
    """Mostly zeros, and the rest skewed: the noise of single columns collapses, and intervals are too narrow."""
    rng = np.random.default_rng(1)
    amounts = rng.gamma(0.7, 5.0, (300, 8)) * rng.exponential(size=(300, 1))
    return np.where(rng.random((300, 8)) < 0.6, 0.0, amounts)


def test_intervals_of_data_from_the_model_hold():
    X = pd.DataFrame(low_rank(300, 12), columns=[f"c{i}" for i in range(12)])
    with warnings.catch_warnings(action="ignore"):
        good = quick(n_draws=200, burn_in=200).fit(X)
    found = good.calibration_
    assert found.n_entries == pytest.approx(0.1 * good.posterior_.n_observed, rel=0.05)
    # Entries of a column share its noise and profile: four standard errors and 0.02 for the draws that there are.
    assert abs(found.coverage - 0.9) < 4.0 * np.sqrt(0.09 / found.n_entries) + 0.02
    assert found.error < 0.7 * found.error_of_mean
    assert good.posterior_.verdict["intervals"].level == "good"
    assert f"of {found.n_entries} entries hidden for this purpose".capitalize() in good.posterior_.summary().verdict


def test_intervals_that_fail_are_a_warning():
    X, settings = like_rain(), {"n_components": 6, "prior": "ard", "burn_in": 150}
    with pytest.warns(ConvergenceWarning, match=r"entries hidden for this purpose .* inside their 90% intervals"):
        model = quick(noise=GroupedNoise(floor=0.0), **settings).fit(X)
    assert model.calibration_.coverage < 0.7
    assert model.posterior_.verdict["intervals"].level == "poor"
    with warnings.catch_warnings(action="ignore"):
        assert quick(**settings).fit(X).calibration_.coverage > 0.8  # with a floor of the noise


def test_the_hidden_entries_are_predicted_without_them(monkeypatch):
    """What the additional chain sees has none of them, and everything else."""
    X, seen = low_rank(), []
    build = fitting.build
    monkeypatch.setattr(fitting, "build", lambda data, **options: seen.append(data) or build(data, **options))
    found = quick().fit(X).calibration_
    whole, rest = (data.mask() for data in seen)
    assert (whole | ~rest).all()
    assert (whole & ~rest).sum() == found.n_entries
    np.testing.assert_array_equal(np.sort(found.columns), np.sort(np.nonzero(whole & ~rest)[1]))
    for axis in (0, 1):
        assert rest.any(axis=axis).all()


def test_measured_against_the_definition():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3)) * [1.0, 10.0, 0.1] + 5.0
    rows, columns = np.arange(30), np.arange(30) % 3
    data = ObservedMatrix.from_data(X, negative=True)
    fold = Fold(data.without(rows, columns), rows, columns, X[rows, columns], np.ones(30))
    W, Z = np.ones((1, 400, 30, 1)), rng.normal(5.0, [1.0, 20.0, 0.01], size=(1, 400, 1, 3))
    posterior = Posterior(W, Z, np.full((1, 400), 1e-8), np.ones((1, 400)), n_observed=60, lower_bound=-np.inf)
    found = measure(posterior, fold, data)
    left = np.where(fold.rest.mask(), X, np.nan)
    deviation = X.std(axis=0)[columns]
    np.testing.assert_allclose(found.errors, (X[rows, columns] - Z.mean(axis=(0, 1, 2))[columns]) / deviation)
    np.testing.assert_allclose(found.errors_of_mean, (X[rows, columns] - np.nanmean(left, axis=0)[columns]) / deviation)
    low, high = np.quantile(Z[0, :, 0], [0.05, 0.95], axis=0, method="weibull")
    expected = (low[columns] <= X[rows, columns]) & (X[rows, columns] <= high[columns])
    assert (found.inside == expected).mean() > 0.9  # the noise moves the ends a little
    table = found.by_column()
    assert table["n"].tolist() == [10, 10, 10]
    assert table["coverage"].tolist() == [found.inside[columns == j].mean() for j in range(3)]
    np.testing.assert_allclose(table["error"] ** 2, [np.mean(found.errors[columns == j] ** 2) for j in range(3)])
    assert found.coverage == found.inside.mean()
    assert found.error == pytest.approx(np.sqrt(np.mean(found.errors**2)))
    assert repr(found).startswith("<Calibration: ")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_it_changes_no_draw():
    X, short = low_rank(), {"burn_in": 20, "n_draws": 20}
    with_it, without, again = (quick(calibrate=choice, **short).fit(X) for choice in (True, False, True))
    np.testing.assert_array_equal(with_it.posterior_.W, without.posterior_.W)
    assert without.calibration_ is None
    expected = with_it.calibration_.errors
    for other in (again, pickle.loads(pickle.dumps(with_it)), with_it.sample_more(5)):
        np.testing.assert_array_equal(other.calibration_.errors, expected)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("settings", "given"),
    [
        ({"n_draws": 99}, {}),
        ({"n_chains": 1}, {}),
        ({"calibrate": True, "n_draws": 10, "noise": "student-t"}, {}),
        ({"calibrate": True, "n_draws": 10}, {"sample_weight": np.arange(80) % 3}),
        ({"calibrate": True, "n_draws": 10, "noise": "known"}, {"noise_scale": np.full((80, 10), 0.3)}),
        ({"calibrate": True, "n_draws": 10, "offset": "min", "keep_draws": False}, {}),
    ],
    ids=["few draws", "one chain", "student-t", "weights", "known", "moments"],
)
def test_when_it_is_measured(settings, given):
    model = quick(**settings).fit(low_rank(), **given)
    assert (model.calibration_ is None) == ("calibrate" not in settings)
    if model.calibration_ is not None:
        assert model.posterior_.verdict["intervals"].number == model.calibration_.coverage


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_sparse_data():
    rng = np.random.default_rng(0)
    X = rng.poisson(0.5, size=(60, 20)) * rng.exponential(size=(60, 1))
    sparse = quick(calibrate=True, n_draws=10).fit(sp.csr_array(X)).calibration_
    dense = quick(calibrate=True, n_draws=10).fit(X).calibration_
    assert sparse.error_of_mean == pytest.approx(dense.error_of_mean, rel=0.5)


def test_too_few_entries_to_hide_any():
    X = np.full((4, 3), np.nan)
    X[[0, 1, 2, 3], [0, 1, 2, 0]] = 1.0
    with warnings.catch_warnings(action="ignore"):
        assert quick(calibrate=True, n_draws=10).fit(X).calibration_ is None


def test_ctrl_c_in_the_last_chain_loses_nothing(monkeypatch):
    X = low_rank()
    sampled, runs = fitting.Run.sampled, []

    def interrupted(run, schedule, **options):
        runs.append(run)
        if len(runs) == 2:
            raise KeyboardInterrupt
        return sampled(run, schedule, **options)

    monkeypatch.setattr(fitting.Run, "sampled", interrupted)
    model = quick().fit(X)
    assert model.calibration_ is None
    assert model.posterior_.W.shape[:2] == (2, 100)


def test_entries_with_a_limit_on_one_side_are_not_compared_with_the_mean():
    """The mean of yes or no is the cut point, which lies in both intervals: a prediction that is never wrong."""
    rng = np.random.default_rng(0)
    level = rng.standard_normal((300, 1))
    above = level + rng.standard_normal((300, 4)) > 0.0  # a third of the hidden ones are predicted wrong
    X = pd.DataFrame(np.hstack([level + 0.3 * rng.standard_normal((300, 2)), np.zeros((300, 4))])).add_prefix("c")
    exact = np.zeros((300, 2), bool)
    lower = np.where(np.hstack([exact, ~above]), -np.inf, X)
    upper = np.where(np.hstack([exact, above]), np.inf, X)
    settings = {"n_draws": 200, "burn_in": 100, "prior": ("ard", "normal"), "offset": "mean"}
    model = quick(**settings).fit(X, lower=lower, upper=upper)
    found = model.calibration_
    np.testing.assert_array_equal(np.isnan(found.errors), found.columns >= 2)
    np.testing.assert_array_equal(np.isnan(found.errors_of_mean), found.columns >= 2)
    by_column = found.by_column()
    np.testing.assert_array_equal(by_column["n_compared"], np.where(by_column.index < 2, by_column["n"], 0))
    assert 0.0 < found.error < found.error_of_mean
    assert "worse than the mean" not in str(model.posterior_.verdict)
