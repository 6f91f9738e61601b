"""Choosing K."""

import os

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from bnmf import BayesianNMF, select_rank
from bnmf.sampler.run import Ending, Run
from bnmf.selection import _choose

QUICK = BayesianNMF(n_chains=1, burn_in=150, n_draws=80)
SHORTEST = BayesianNMF(n_chains=1, burn_in=5, n_draws=5)


def example(k=3, noise=0.3, seed=0):
    rng = np.random.default_rng(seed)
    mean = rng.exponential(size=(60, k)) @ rng.exponential(size=(k, 25))
    X = np.abs(mean + noise * rng.standard_normal(mean.shape))
    X[rng.random(X.shape) < 0.2] = np.nan
    return X


def select(X, ks, **settings):
    return select_rank(X, ks, **{"estimator": SHORTEST, "n_folds": 2, "random_state": 0} | settings)


def test_finds_the_rank_of_the_data():
    choice = select(example(), [1, 3, 2, 8], n_folds=3, estimator=QUICK)
    assert choice.best_k == 3
    assert list(choice.table.index) == [1, 2, 3, 8]
    assert choice.table.loc[3, "rmse"] < choice.table.loc[1, "rmse"]
    assert repr(choice).splitlines()[-1] == f"best_k = 3. {choice.sentence}"


def test_the_estimator_decides_prior_and_length():
    X = example()
    gee, gl22, without_draws = (
        select(X, [2], estimator=clone(SHORTEST).set_params(**settings)).table
        for settings in ({"prior": "gee"}, {"prior": "gl22"}, {"prior": "gl22", "keep_draws": False})
    )
    assert gee.loc[2, "rmse"] != gl22.loc[2, "rmse"]
    pd.testing.assert_frame_equal(without_draws, gl22)  # what cannot work for many fits is overridden


def test_random_state_and_progress(capsys):
    X = example()[:12]
    first, second = (
        select(X, [1, 2], n_folds=3, random_state=np.random.RandomState(1), progress=progress).table
        for progress in (False, True)
    )
    pd.testing.assert_frame_equal(first, second)
    assert "6/6 fits" in capsys.readouterr().err
    fresh = [select(X, [1], random_state=None).table for _ in range(2)]
    assert not fresh[0].equals(fresh[1])
    seeded = clone(SHORTEST).set_params(random_state=1)
    of_estimator = select(X, [1, 2], n_folds=3, estimator=seeded, random_state=None).table
    pd.testing.assert_frame_equal(of_estimator, select(X, [1, 2], n_folds=3, random_state=1).table)


def test_sparse_data_with_implicit_zeros():
    """The rank of block-diagonal data, most of it zeros that are not stored, is found without a dense copy."""
    rng = np.random.default_rng(0)
    parts = [np.outer(1 + rng.random(30), 1 + rng.random(10)) for _ in range(3)]
    X = sp.block_diag([sp.coo_array(part) for part in parts], format="csr")
    X.data += 0.05 * rng.standard_normal(X.nnz)
    choice = select(X, [1, 3], estimator=None)
    assert choice.best_k == 3
    assert choice.table.loc[3, "rmse"] < 0.5 * choice.table.loc[1, "rmse"]


def test_a_smaller_rank_wins_within_one_standard_error():
    densities, squares = np.array([[-2.0, -2.0, -2.0], [-1.05, -0.9, -1.0], [-1.0, -0.9, -0.98]]), np.ones((3, 3))
    best = _choose([1, 2, 3], densities, squares)
    assert best.best_k == 3
    assert best.sentence.startswith("K = 3 predicts hidden entries best (log density -0.96). It")
    assert best.sentence.endswith("It is the largest that was tried: try larger ones too.")
    densities[1] = [-1.0, -0.95, -0.94]
    within = _choose([1, 2, 3], densities, squares)
    assert within.best_k == 2
    assert within.sentence.startswith("K = 2 is the smallest number of components within one standard error of the")
    assert "below that of K = 3" in within.sentence
    assert "only number of components" in _choose([4], densities[:1], squares[:1]).sentence


def test_ctrl_c_during_a_fit_ends_the_selection(monkeypatch):
    fits = []
    monkeypatch.setattr(Run, "ending", property(lambda run: fits.append(run) or Ending.INTERRUPTED))
    with pytest.raises(KeyboardInterrupt):
        select(np.ones((6, 4)), [1, 2])
    assert len({id(run.model) for run in fits}) == 1


@pytest.mark.proof
def test_five_components_are_found_in_nearly_all_runs():
    """In 19 of 20 runs, with shorter chains than by default."""
    found = [select(example(5, 0.5, seed), [3, 5, 8], estimator=QUICK, n_folds=3).best_k for seed in range(20)]
    assert sum(4 <= k <= 6 for k in found) >= 19


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("noise", "seed"),
    [(1.0, 0), *(pytest.param(*case, marks=pytest.mark.proof) for case in ((1.0, 1), (0.5, 0), (0.5, 1)))],
)
def test_ard_finds_five_of_twenty_components(noise, seed):
    model = BayesianNMF(20, n_chains=2, random_state=0).fit(example(5, noise, seed))
    assert 4 <= model.posterior_.n_active_components() <= 6


@pytest.mark.proof
def test_leave_one_out_densities_agree_with_hidden_entries():
    X = example()
    choice = select(X, [1, 3], estimator=None, n_folds=5, loo=True)
    table = choice.table
    for name in ("loo", "waic"):
        # Without one entry a model knows more than without a fifth of them.
        assert (table[name] > table["log_density"]).all()
        np.testing.assert_allclose(table[name], table["log_density"], atol=0.25)
        assert table.loc[3, name] > table.loc[1, name]
    assert (table["loo_unreliable"] < 0.2).all()
    assert (table[["loo_se", "waic_se"]] > 0).all(axis=None)


def test_a_selection_goes_on_where_it_stopped(tmp_path, monkeypatch):
    quick = BayesianNMF(n_chains=1, burn_in=10, n_draws=50)
    settings = {"ks": [1, 2], "n_repeats": 2, "loo": True, "estimator": quick, "checkpoint": tmp_path}
    X = example()[:15, :8]
    whole = select(X, **settings | {"checkpoint": None}).table
    fit, count = BayesianNMF.fit_observed, []

    def counted(model, *arguments):
        count.append(1)
        if len(count) == 6:
            raise KeyboardInterrupt
        return fit(model, *arguments)

    monkeypatch.setattr(BayesianNMF, "fit_observed", counted)
    with pytest.raises(KeyboardInterrupt):
        select(X, **settings)
    assert len(list(tmp_path.iterdir())) == 5
    pd.testing.assert_frame_equal(select(X, **settings).table, whole)
    assert len(count) == 6 + 2 * 2 * 2 + 2 - 5
    next(tmp_path.iterdir()).write_text("damaged")
    pd.testing.assert_frame_equal(select(X, **settings).table, whole)
    assert len(count) == 6 + 2 * 2 * 2 + 2 - 5 + 1
    # Other data are not those of the directory.
    assert not select(X + 1.0, **settings).table.equals(whole)
    # Without a random_state the directory keeps the seed.
    whole = select(X, **settings, random_state=None).table
    monkeypatch.setattr(BayesianNMF, "fit_observed", None)
    pd.testing.assert_frame_equal(select(X, **settings, random_state=None).table, whole)


@pytest.mark.proof  # starts processes
@pytest.mark.skipif("BNMF_TEST_SALT" in os.environ, reason="other processes have no salt")
def test_fits_side_by_side_give_the_same():
    side_by_side, one_by_one = (select(example(), [1, 2], n_jobs=n_jobs).table for n_jobs in (2, None))
    pd.testing.assert_frame_equal(side_by_side, one_by_one)


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"ks": 3}, TypeError, "ks must be a sequence of numbers of components, got 3"),
        ({"ks": []}, ValueError, "ks must name"),
        ({"ks": [1], "n_folds": 1}, ValueError, "n_folds must be at least 2"),
        ({"ks": [1.5]}, TypeError, "every number in ks must be a whole number, got 1.5"),
        ({"ks": [1], "estimator": "gee"}, TypeError, "estimator must be a BayesianNMF"),
        ({"ks": [1], "estimator": BayesianNMF(n_draws=0)}, ValueError, "n_draws must be at least 1, got 0"),
        ({"ks": [1], "estimator": BayesianNMF(noise="known")}, ValueError, "noise='known' needs noise_scale"),
        ({"ks": [1], "random_state": -1}, ValueError, "random_state must not be negative"),
        ({"ks": [1], "checkpoint": ""}, ValueError, "checkpoint must be the name of a directory"),
        ({"ks": [1], "loo": "yes"}, TypeError, "loo must be True or False"),
        ({"ks": [1], "progress": 1}, TypeError, "progress must be True or False"),
    ],
)
def test_wrong_settings_are_found_before_the_data_are_touched(settings, error, words):
    with pytest.raises(error, match=words):
        select_rank(None, **settings)
