"""Checking a table: what is hidden, the numbers by hand, and what is concluded from them."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.experimental import enable_iterative_imputer  # noqa: F401 (makes the import below possible)
from sklearn.impute import IterativeImputer, KNNImputer

from bnmf import BayesianNMF, NMFImputer, check_table, checking, limits
from bnmf.checking import _hidden_parts
from bnmf.imputer import ANY_TABLE
from bnmf.posterior import verdict
from bnmf.posterior.verdict import Finding, Verdict
from bnmf.sampler.run import Ending, Run

SHORTEST = BayesianNMF(1, **ANY_TABLE, n_chains=1, burn_in=5, n_draws=5)


def example(n_rows=60, n_columns=6, noise=0.3, seed=0):
    rng = np.random.default_rng(seed)
    mean = rng.exponential(size=(n_rows, 2)) @ rng.normal(size=(2, n_columns))
    X = 5.0 + 10.0 ** np.arange(n_columns) * (mean + noise * rng.normal(size=mean.shape))
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


def check(X, **settings):
    return check_table(X, **{"estimator": SHORTEST, "n_repeats": 1, "random_state": 0} | settings)


def parts_of(X, n_repeats=3, fraction=0.1, seed=0):
    varies = np.nanmax(X, axis=0) > np.nanmin(X, axis=0)
    return _hidden_parts(X, varies, n_repeats, fraction, np.random.default_rng(seed))


def test_limited_entries_are_not_hidden_and_other_imputers_get_the_limit(monkeypatch):
    """Entries whose limits are equal are exact."""
    X, seen = example(), []
    cap = np.nanquantile(X[:, 2], 0.4)
    capped = pd.DataFrame(X).clip(upper={**dict.fromkeys(range(6), np.inf), 2: cap})
    is_capped = X[:, 2] >= cap
    fit, impute = NMFImputer.fit, checking._impute

    def fitting(self, rest, **limits):
        seen.append((rest, limits["lower"]))
        return fit(self, rest, **limits)

    def imputing(imputer, repeat):
        seen.append((repeat.rest, None))
        return impute(imputer, repeat)

    monkeypatch.setattr(NMFImputer, "fit", fitting)
    monkeypatch.setattr(checking, "_impute", imputing)
    found = check(capped, **limits(capped, capped={2: cap})._asdict(), fraction=0.5)
    (_, lower), *others = seen
    assert (lower[is_capped, 2] == cap).all()
    assert 0 < found.by_column["hidden"].iloc[2] <= np.sum(X[:, 2] < cap)
    assert len(others) == 3
    for table, _ in others:
        assert (table[is_capped, 2] == cap).all()
    with pytest.raises(ValueError, match="upper must have the shape of X"):
        check(X, upper=X[:, 1:])


# --- what is hidden


@pytest.mark.parametrize(("n_repeats", "fraction"), [(3, 0.1), (2, 0.5), (1, 0.9)])
def test_hidden_entries_were_observed_and_leave_something_of_every_row_and_column(n_repeats, fraction):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(15, 6))
        X[rng.random(X.shape) < 0.6] = np.nan
        X[0], X[1] = np.nan, [np.nan, 1.0, *np.full(4, np.nan)]  # a row without entries, and one with a single entry
        X[2] = rng.normal(size=6)  # so that all columns have entries
        X[~np.isnan(X[:, 5]), 5] = 7.0
        seen, times_hidden = ~np.isnan(X), np.zeros(X.shape, int)
        for part in parts_of(X, n_repeats, fraction, seed):
            hidden = np.zeros(X.shape, bool)
            hidden[part.rows, part.columns] = True
            assert 0 < hidden.sum() == len(part.values) <= fraction * seen[:, :5].sum()
            assert seen[hidden].all()
            assert not hidden[:, 5].any()  # constant
            np.testing.assert_array_equal(part.values, X[part.rows, part.columns])
            np.testing.assert_array_equal(part.rest, np.where(hidden, np.nan, X))
            left = seen & ~hidden
            assert left.any(axis=0).all()
            np.testing.assert_array_equal(left.any(axis=1), seen.any(axis=1))
            times_hidden += hidden
        assert times_hidden.max() == 1


# --- the numbers


def scaled(imputer, rest):
    """Return what an imputer fills into columns of mean 0 and variance 1."""
    mean, sd = np.nanmean(rest, axis=0), np.nanstd(rest, axis=0)
    return imputer.fit_transform((rest - mean) / sd) * sd + mean


@pytest.mark.filterwarnings(
    "ignore:.*Early stopping criterion not reached", "ignore::sklearn.exceptions.ConvergenceWarning"
)
def test_numbers_by_hand():
    X, estimator = example(), BayesianNMF(2, **ANY_TABLE, n_chains=2, burn_in=10, n_draws=20)
    check = check_table(X, estimator=estimator, n_repeats=2, fraction=0.2, random_state=3)
    errors = {method: [] for method in check.table.index}
    squares, inside = np.zeros(X.shape), np.zeros(X.shape)
    hidden = np.zeros(X.shape)
    for part in parts_of(X, 2, 0.2, seed=3):
        model = NMFImputer(clone(estimator).set_params(random_state=3)).fit(part.rest).estimator_
        filled = {
            "bnmf": model.impute(),
            "column mean": np.broadcast_to(np.nanmean(part.rest, axis=0), X.shape),
            "KNNImputer": scaled(KNNImputer(), part.rest),
            "IterativeImputer": scaled(IterativeImputer(random_state=0), part.rest),
        }
        low, high = model.posterior_.interval(0.9, part.rows, part.columns)
        for method, predicted in filled.items():
            total = 0.0
            for i, j in zip(part.rows, part.columns, strict=True):
                total += (predicted[i, j] - X[i, j]) ** 2 / np.nanvar(X[:, j])
            errors[method].append(np.sqrt(total / len(part.rows)))
        for i, j, lower, upper in zip(part.rows, part.columns, low, high, strict=True):
            hidden[i, j] += 1
            squares[i, j] += (filled["bnmf"][i, j] - X[i, j]) ** 2 / np.nanvar(X[:, j])
            inside[i, j] += lower <= X[i, j] <= upper
    assert list(errors) == ["bnmf", "column mean", "KNNImputer", "IterativeImputer"]
    for method, of_repeats in errors.items():
        expected = [np.mean(of_repeats), min(of_repeats), max(of_repeats)]
        np.testing.assert_allclose(check.table.loc[method, ["error", "lowest", "highest"]], expected, rtol=1e-6)
    assert check.table.loc["bnmf", "coverage"] == pytest.approx(inside.sum() / hidden.sum())
    assert check.table["coverage"].isna().tolist() == [False, True, True, True]
    assert (check.table["seconds"] > 0).all()
    np.testing.assert_array_equal(check.by_column["hidden"], hidden.sum(axis=0))
    np.testing.assert_allclose(check.by_column["error"], np.sqrt(squares.sum(axis=0) / hidden.sum(axis=0)), rtol=1e-6)
    np.testing.assert_allclose(check.by_column["coverage"], inside.sum(axis=0) / hidden.sum(axis=0))
    assert check.n_hidden == hidden.sum()


def test_units_containers_and_columns_that_are_not_scored():
    """Columns without variation or entries are not; the others do not depend on them."""
    X = example()
    wider = pd.DataFrame(np.column_stack([np.full(60, np.nan), X * 2.0**-400, np.full(60, 0.1)]))
    wider.columns = ["empty", "a", "a", *"cdef", "constant"]
    plain, masked, found = map(check, (X, np.ma.masked_invalid(X), wider))
    np.testing.assert_allclose(masked.table.drop(columns="seconds"), plain.table.drop(columns="seconds"), rtol=1e-6)
    of_mean = [each.table.loc["column mean", "error"] for each in (plain, found)]
    np.testing.assert_allclose(*of_mean, rtol=1e-6)
    found = found.by_column
    assert found.index.tolist() == wider.columns.tolist()
    assert (found["hidden"] > 0).tolist() == [False, *6 * [True], False]
    assert found.iloc[[0, -1]][["error", "coverage"]].isna().all(axis=None)


def test_methods_that_would_take_too_long_are_limited(monkeypatch):
    monkeypatch.setattr(checking, "MAX_ROWS_OF_KNN", 59)
    monkeypatch.setattr(checking, "MAX_COLUMNS_OF_ITERATIVE", (5, 6))
    monkeypatch.setattr(checking, "N_NEAREST_FEATURES", 3)
    found = check(example())
    assert found.table.index.tolist() == ["bnmf", "column mean", "IterativeImputer"]
    assert "KNNImputer is left out: with 60 rows" in found.notes[0]
    assert "each of 6 columns from 3 others" in found.notes[1]
    monkeypatch.setattr(checking, "MAX_COLUMNS_OF_ITERATIVE", (4, 5))
    found = check(example())
    assert found.table.index.tolist() == ["bnmf", "column mean"]
    assert "IterativeImputer is left out: with 6 columns" in found.notes[1]


# --- what is concluded


def test_the_verdict_judges_intervals_and_chains(monkeypatch):
    judged = []

    def on_intervals(hidden, names, has_offset):
        judged.append((hidden, names))
        return [Finding("intervals", "poor", "too few are inside", "do something")]

    monkeypatch.setattr(checking, "on_intervals", on_intervals)
    monkeypatch.setattr(verdict, "PREDICTION_ERRORS", (0.0, 0.0))
    found = check(pd.DataFrame(example(), columns=list("abcdef")), n_repeats=2)
    ((hidden, names),) = judged
    assert found.conclusion.endswith(" Too few are inside. Do something.")
    assert hidden.n_entries == found.n_hidden
    assert hidden.coverage == found.table.loc["bnmf", "coverage"]
    assert list(names) == list("abcdef")
    assert found.notes[-1].startswith("the chains' predictions disagree in 2 of 2 repeats; more draws may")
    # In words: escaped in a notebook.
    shown = repr(found)
    assert all(text in shown for text in (*found.table.index, found.conclusion))
    other = checking.TableCheck(
        found.table, found.by_column, Verdict((Finding("errors", "good", "not in <b>"),)), ("<i>",)
    )
    assert "Not in &lt;b&gt;" in other._repr_html_()
    assert "Note: &lt;i&gt;" in other._repr_html_()
    assert repr(other).endswith("Note: <i>")


# --- calls


def test_random_state_and_progress(capsys):
    first, second, other = (
        check(example(), random_state=state, progress=True).by_column
        for state in (np.random.default_rng(1), np.random.default_rng(1), None)
    )
    pd.testing.assert_frame_equal(first, second)
    assert "4/4 fits" in capsys.readouterr().err
    assert not other.equals(first)
    seeded = clone(SHORTEST).set_params(random_state=1)
    of_estimator = check(example(), estimator=seeded, random_state=None).by_column
    pd.testing.assert_frame_equal(of_estimator, check(example(), random_state=1).by_column)


def test_ctrl_c_ends_the_check(monkeypatch):
    monkeypatch.setattr(Run, "ending", Ending.INTERRUPTED)
    monkeypatch.setattr(checking, "_impute", lambda *_: pytest.fail("it went on"))
    with pytest.raises(KeyboardInterrupt):
        check(example())


@pytest.mark.parametrize(
    ("X", "options", "error", "words"),
    [
        (sp.csr_array(np.eye(9)), {}, TypeError, "for dense tables .* got a sparse matrix .csr_array"),
        (np.full((9, 4), np.nan), {}, ValueError, "no observed entry at all"),
        (np.arange(6.0).reshape(3, 2), {}, ValueError, "too small to be checked: it has 6 observed entries"),
        (np.where(np.eye(30) > 0, np.arange(30.0), np.nan), {}, ValueError, "no column whose observed entries differ"),
        (np.array([[1.0, np.inf], [2.0, 3.0]]), {}, ValueError, "finite"),
        (pd.DataFrame({"a": ["x", "y"]}), {}, TypeError, "not: a"),
        (None, {"fraction": 0.4}, ValueError, "at most 1, .* got 3 times 0.4"),
        (None, {"estimator": BayesianNMF(noise="known")}, ValueError, "noise='known' needs noise_scale"),
        (None, {"estimator": NMFImputer()}, TypeError, "estimator must be a BayesianNMF"),
        (example(), {"estimator": BayesianNMF()}, ValueError, "Negative values"),
        (None, {"progress": 1}, TypeError, "progress must be True or False"),
    ],
)
def test_wrong_calls_say_what_is_wrong(X, options, error, words):
    with pytest.raises(error, match=words):
        check_table(X, **options)
