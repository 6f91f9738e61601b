"""Notes on a fit: said when something is wrong, and not otherwise."""

import re

import numpy as np
import pytest
import scipy.sparse as sp

from bnmf import BayesianNMF
from bnmf.data import ObservedMatrix
from bnmf.model import Model
from bnmf.posterior import notes

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


class Predicts:
    """A posterior with a given mean."""

    def __init__(self, mean):
        self._mean = np.asarray(mean)

    def mean(self, rows, columns):
        return self._mean[rows, columns]


def low_rank(rows=40, columns=10):
    rng = np.random.default_rng(0)
    return rng.exponential(size=(rows, 2)) @ rng.exponential(size=(2, columns)) + 0.1


def found(X, predictions=None, k=1, **settings):
    data = ObservedMatrix.from_data(X)
    dense = X.toarray() if sp.issparse(X) else X
    return notes.of_fit(Predicts(dense if predictions is None else predictions), data, Model(data, k, **settings))


def test_a_good_fit_has_none():
    assert found(low_rank()) == ()


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_a_fit_that_explains_nothing(make):
    X = low_rank()
    (note,) = found(make(X), np.zeros_like(X))
    assert note.sentence == "the fit explains the observed entries worse than the mean of each column does"


def test_a_column_that_is_not_explained_is_named():
    X = low_rank()
    X[:, 3] = 2000.0 + X[:, 3]
    predictions = X.copy()
    predictions[:, 3] += 1.8 * X[:, 3].std() * np.where(np.arange(40) % 2, 1.0, -1.0)
    (note,) = found(X, predictions)
    assert note.sentence == "the fit explains column 3 worse than the mean does"
    assert 'offset="learned"' in note.advice
    predictions[:, 3] = X[:, 3].mean()
    assert found(X, predictions) == ()


def test_errors_that_are_small_beside_the_column_are_not_noted():
    """The mean has no error in a constant column, and hardly any where the rare values are not among the compared."""
    X = np.hstack([low_rank(400), np.full((400, 1), 7.0), np.zeros((400, 1))])
    X[0, -1] = 1.0
    predictions = X.copy()
    predictions[:, -2] += 0.02 * np.where(np.arange(400) % 2, 1.0, -1.0)
    predictions[:, -1] = 0.02
    assert found(X, predictions) == ()
    predictions[:, -2] += 1.0
    (note,) = found(X, predictions)
    assert note.sentence == "the fit explains column 10 worse than the mean does"


def test_neither_means_of_columns_nor_missing_entries_are_compared():
    X = low_rank()
    assert found(X, np.broadcast_to(X.mean(axis=0), X.shape)) == ()
    predictions = X.copy()
    X[::2, ::3] = np.nan
    predictions[::2, ::3] = 1e9
    assert found(X, predictions) == ()


def test_more_parameters_than_entries():
    X = low_rank(12, 8)
    (note,) = found(X, k=5)  # 5 (12 + 8) = 100 parameters
    assert note.sentence.startswith("5 components have 100 parameters for 96 observed entries, so predictions rest")
    assert found(X, k=4) == ()
    assert found(X, k=5, prior="ard") == ()  # superfluous components vanish


def test_an_outlier_is_named():
    X = low_rank()
    X[3, 4] = 1e6
    (note,) = found(X)
    assert re.fullmatch("column 4 has outliers [0-9,]+ times as far from its median as all others", note.sentence)
    assert note.level == "poor"
    X[5, 7] = 1e7
    (note,) = found(X)
    assert note.sentence.startswith("column 7 has outliers")
    assert note.sentence.endswith("(so have 1 more)")
    (note,) = found(X, noise="student-t")
    assert note.level == "usable"  # a question


@pytest.mark.parametrize("others", [0.0, np.nan])
def test_one_nonzero_entry_and_one_of_few_are_no_outliers(others):
    X = low_rank()
    X[4:, 4], X[3, 4] = others, 1e6
    if others == 0.0:
        X[:3, 4] = 0.0
    assert found(X) == ()


def test_many_entries_at_an_end_are_pointed_out_but_not_of_marks():
    X = np.round(low_rank(60), 2)
    X[:, 2], X[:, 5] = np.minimum(X[:, 2], np.quantile(X[:, 2], 0.8)), np.arange(60) % 10
    (note,) = found(X)
    assert note.sentence == f"20% of the entries of column 2 are exactly {X[:, 2].max():g}, its largest value"
    assert note.level == "usable"
    assert f"capped={X[:, 2].max():g}" in note.advice
    X[:, 2] = np.arange(60) % 5 + 1
    assert found(X) == ()


def test_notes_are_problems_and_part_of_the_verdict():
    model = BayesianNMF(6, prior="gee", n_chains=2, burn_in=50, n_draws=8, random_state=0).fit(low_rank(9, 6))
    words = "6 components have 90 parameters for 54 observed entries"
    (note,) = (note for note in model.posterior_.notes if note.sentence.startswith(words))
    assert f"{note.sentence}; {note.advice}" in model.posterior_.problems()
    assert note.text in model.posterior_.summary().verdict
    assert note in model.sample_more(4).posterior_.notes
