"""Checking a table: what is hidden, the numbers by hand, and what is concluded from them."""

from itertools import islice

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.experimental import enable_iterative_imputer  # noqa: F401 (makes the import below possible)
from sklearn.impute import IterativeImputer, KNNImputer

from bnmf import BayesianNMF, NMFImputer, check_table, checking, limits
from bnmf.data.folds import folds
from bnmf.data.observed import ObservedMatrix
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


def test_limited_entries_are_not_compared_and_other_imputers_get_the_limit(monkeypatch):
    """Entries whose limits are equal are exact."""
    X, seen = example(), []
    cap = np.nanquantile(X[:, 2], 0.4)
    capped = pd.DataFrame(X).clip(upper={**dict.fromkeys(range(6), np.inf), 2: cap})
    is_capped, impute = X[:, 2] >= cap, checking._impute

    def imputing(imputer, part):
        seen.append(part.rest.dense_rows(np.arange(60))[is_capped, 2])
        return impute(imputer, part)

    monkeypatch.setattr(checking, "_impute", imputing)
    found = check(capped, **limits(capped, capped={2: cap})._asdict(), fraction=0.5)
    assert 0 < found.by_column["hidden"].iloc[2] <= np.sum(X[:, 2] < cap)
    assert len(seen) == 3
    for table in seen:
        assert 0 < np.sum(table == cap) == np.sum(~np.isnan(table))
    with pytest.raises(ValueError, match="upper must have the shape of X"):
        check(X, upper=X[:, 1:])


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
    absolute = {method: [] for method in errors}
    squares, inside = np.zeros(X.shape), np.zeros(X.shape)
    hidden = np.zeros(X.shape)
    data = ObservedMatrix.from_data(X, negative=True)
    for part in islice(folds(data, 5, np.random.default_rng(3), balanced=True), 2):
        rest = part.rest.dense_rows(np.arange(60))
        assert np.isnan(rest[part.rows, part.columns]).all()
        model = NMFImputer(clone(estimator).set_params(random_state=3)).fit(rest).estimator_
        filled = {
            "bnmf": model.impute(),
            "column mean": np.broadcast_to(np.nanmean(rest, axis=0), X.shape),
            "KNNImputer": scaled(KNNImputer(), rest),
            "IterativeImputer": scaled(IterativeImputer(random_state=0), rest),
        }
        low, high = model.posterior_.interval(0.9, part.rows, part.columns)
        for method, predicted in filled.items():
            total = 0.0
            for i, j in zip(part.rows, part.columns, strict=True):
                total += (predicted[i, j] - X[i, j]) ** 2 / np.nanvar(X[:, j])
                absolute[method].append(abs(predicted[i, j] - X[i, j]) / np.nanstd(X[:, j]))
            errors[method].append(np.sqrt(total / len(part.rows)))
        for i, j, lower, upper in zip(part.rows, part.columns, low, high, strict=True):
            hidden[i, j] += 1
            squares[i, j] += (filled["bnmf"][i, j] - X[i, j]) ** 2 / np.nanvar(X[:, j])
            inside[i, j] += lower <= X[i, j] <= upper
    assert list(errors) == ["bnmf", "column mean", "KNNImputer", "IterativeImputer"]
    for method, of_repeats in errors.items():
        expected = [np.mean(of_repeats), min(of_repeats), max(of_repeats)]
        np.testing.assert_allclose(check.table.loc[method, ["error", "lowest", "highest"]], expected, rtol=1e-6)
        assert check.table.loc[method, "absolute_error"] == pytest.approx(np.mean(absolute[method]))
    assert check.table.loc["bnmf", "coverage"] == pytest.approx(inside.sum() / hidden.sum())
    assert check.table["coverage"].isna().tolist() == [False, True, True, True]
    assert (check.table["seconds"] > 0).all()
    np.testing.assert_array_equal(check.by_column["hidden"], hidden.sum(axis=0))
    np.testing.assert_allclose(check.by_column["error"], np.sqrt(squares.sum(axis=0) / hidden.sum(axis=0)), rtol=1e-6)
    np.testing.assert_allclose(check.by_column["coverage"], inside.sum(axis=0) / hidden.sum(axis=0))
    assert check.n_hidden == hidden.sum()


def test_units_containers_and_columns_that_are_not_scored():
    X = example()
    wider = pd.DataFrame(np.column_stack([np.full(60, np.nan), X, np.full(60, 0.1)]))
    wider.columns = ["empty", "a", "a", *"cdef", "constant"]
    plain, masked, scaled, found = map(check, (X, np.ma.masked_invalid(X), X * 2.0**-400, wider))
    for other in (masked, scaled):
        np.testing.assert_allclose(other.table.drop(columns="seconds"), plain.table.drop(columns="seconds"), rtol=1e-6)
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
        (np.arange(6.0).reshape(3, 2), {}, ValueError, "X is too small to be checked"),
        (np.where(np.eye(30) > 0, np.arange(30.0), np.nan), {}, ValueError, "X is too small to be checked"),
        (np.ones((30, 4)), {}, ValueError, "a part of 0.1 of them has none to compare"),
        (np.array([[1.0, np.inf], [2.0, 3.0]]), {}, ValueError, "finite"),
        (pd.DataFrame({"a": ["x", "y"]}), {}, TypeError, "not: a"),
        (None, {"fraction": 0.4}, ValueError, "at most 1, .* got 3 times 0.4"),
        (None, {"fraction": 0.6, "n_repeats": 1}, ValueError, "fraction must be at most 0.5"),
        (None, {"estimator": BayesianNMF(noise="known")}, ValueError, "noise='known' needs noise_scale"),
        (None, {"estimator": NMFImputer()}, TypeError, "estimator must be a BayesianNMF"),
        (example(), {"estimator": BayesianNMF()}, ValueError, "X must be nonnegative"),
        (None, {"progress": 1}, TypeError, "progress must be True or False"),
    ],
)
def test_wrong_calls_say_what_is_wrong(X, options, error, words):
    with pytest.raises(error, match=words):
        check_table(X, **options)
