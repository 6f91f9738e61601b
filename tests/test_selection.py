"""Choosing K."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from bnmf import BayesianNMF, select_rank
from bnmf.selection import _choose


def example(k=3, noise=0.3, seed=0):
    rng = np.random.default_rng(seed)
    mean = rng.exponential(size=(60, k)) @ rng.exponential(size=(k, 25))
    X = np.abs(mean + noise * rng.standard_normal(mean.shape))
    X[rng.random(X.shape) < 0.2] = np.nan
    return X


def test_finds_the_rank_of_the_data():
    choice = select_rank(example(), ks=[1, 3, 2, 8], n_folds=3)
    assert choice.best_k == 3
    assert list(choice.table.index) == [1, 2, 3, 8]
    assert choice.table.loc[3, "rmse"] < choice.table.loc[1, "rmse"]
    assert "best_k = 3" in str(choice)


def test_containers_agree():
    X = example()
    seen = ~np.isnan(X)
    sparse = sp.coo_array((X[seen], np.nonzero(seen)), shape=X.shape)
    settings = {"ks": [1, 2], "n_folds": 2}
    quick = BayesianNMF(n_chains=2, burn_in=30, n_draws=20)
    table = select_rank(X, estimator=quick, **settings).table
    listed = clone(quick).set_params(unstored="missing")
    pd.testing.assert_frame_equal(select_rank(sparse, estimator=listed, **settings).table, table)
    pd.testing.assert_frame_equal(
        select_rank(np.nan_to_num(X), estimator=quick, observed=seen, **settings).table, table
    )


def test_the_estimator_decides_prior_and_length():
    X = example()
    settings = {"ks": [2], "n_folds": 2}
    tables = [
        select_rank(X, estimator=BayesianNMF(prior=prior, n_chains=1, burn_in=20, n_draws=20), **settings).table
        for prior in ("gee", "gl22")
    ]
    assert tables[0].loc[2, "rmse"] != tables[1].loc[2, "rmse"]
    # What cannot work for many fits is overridden.
    without_draws = BayesianNMF(n_chains=1, burn_in=20, n_draws=20, keep_draws=False, prior="gl22")
    pd.testing.assert_frame_equal(select_rank(X, estimator=without_draws, **settings).table, tables[1])


def test_random_state_may_be_a_generator():
    settings = {"ks": [1], "n_folds": 2, "estimator": BayesianNMF(n_chains=1, burn_in=5, n_draws=5)}
    X = example()
    first, second = (select_rank(X, random_state=np.random.RandomState(1), **settings).table for _ in range(2))
    pd.testing.assert_frame_equal(first, second)


def test_sparse_data_with_implicit_zeros():
    """The rank of block-diagonal data, most of it zeros that are not stored, is found without a dense copy."""
    rng = np.random.default_rng(0)
    parts = [np.outer(1 + rng.random(30), 1 + rng.random(10)) for _ in range(3)]
    X = sp.block_diag(parts, format="csr")
    X.data += 0.05 * rng.standard_normal(X.nnz)
    choice = select_rank(X, ks=[1, 3], n_folds=2)
    assert choice.best_k == 3
    assert choice.table.loc[3, "rmse"] < 0.5 * choice.table.loc[1, "rmse"]


def test_a_smaller_rank_wins_within_one_standard_error():
    densities = np.array([[-2.0, -2.0, -2.0], [-1.05, -0.9, -1.0], [-1.0, -0.9, -0.98]])
    assert _choose([1, 2, 3], densities, np.ones((3, 3))).best_k == 3
    densities[1] = [-1.0, -0.95, -0.94]
    assert _choose([1, 2, 3], densities, np.ones((3, 3))).best_k == 2


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"ks": []}, "ks must name"), ({"ks": [1], "n_folds": 1}, "n_folds must be at least 2")],
)
def test_bad_settings(settings, words):
    with pytest.raises(ValueError, match=words):
        select_rank(example(), **settings)


@pytest.mark.parametrize(("ks", "words"), [(3, "ks must be a list"), ([], "ks must name at least one"), ([0], "ks")])
def test_wrong_numbers_of_components(ks, words):
    with pytest.raises((ValueError, TypeError), match=words):
        select_rank(example(), ks)
