"""The draws on a cluster are those of one process, bit for bit, for every model and every form of the data."""

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from dask import delayed

from bnmf import BayesianNMF
from bnmf.data.identity import fingerprint
from bnmf.data.observed import ObservedMatrix
from bnmf.distributed import RowBlocks, ShardedMatrix, sharded
from bnmf.priors import L1, L2Squared, Laplace, LInf, Normal
from tests.distributed.clusters import assert_same_draws, low_rank

SHAPE = (700, 600)  # three tiles of rows, and three of columns


def shared_patterns():
    """Return data of which blocks of rows miss the same columns, and some rows nothing."""
    X = low_rank(SHAPE)
    for start in range(0, 600, 60):
        X[start : start + 40, start // 2 : start // 2 + 50] = np.nan
    return X


def sparse(density, nan=0.0, seed=2):
    rng = np.random.default_rng(seed)
    X = np.where(rng.random(SHAPE) < density, low_rank(SHAPE), 0.0)
    matrix = sp.csr_array(X)
    matrix.data[rng.random(matrix.nnz) < nan] = np.nan
    return matrix


def negative_with_constant_column():
    X = low_rank(SHAPE, missing=0.1) - 2.0
    X[:, 5] = 1.5
    X[:, 7] = np.nan
    return np.round(X, 1)


BY_ENTRY = L1(0.5 + np.random.default_rng(0).random((SHAPE[0], 3))), L1(0.5 + np.ones((3, SHAPE[1])))
SIGNED = Normal(0.0, 1.0) + Laplace(0.5 + np.random.default_rng(1).random((3, SHAPE[1])))
CASES = {
    "defaults": (low_rank(missing=0.2), {}),
    "a floor of the noise, from some of many rows": (low_rank((1300, 30), missing=0.2), {}),
    "shared patterns, max term": (shared_patterns(), {"prior": "gl22inf", "noise": "common", "scale": "matrix"}),
    "noise by row": (shared_patterns(), {"prior": "gl12", "noise": "row", "scale": None}),
    "noise by both, offset": (negative_with_constant_column(), {"noise": "both", "offset": "min"}),
    "prior by entry": (low_rank(missing=0.1), {"prior": BY_ENTRY, "noise": "column"}),
    "pair of priors": (low_rank(missing=0.1), {"prior": (LInf(0.3), L2Squared()), "noise": "common"}),
    "listed, offset": (low_rank(missing=0.7) - 1.0, {"noise": "column", "offset": "min", "prior": "gee"}),
    "listed, both": (low_rank(missing=0.7), {"noise": "both"}),
    "both signs by entry, mean": (low_rank(missing=0.2) - 2.0, {"prior": (BY_ENTRY[0], SIGNED), "offset": "mean"}),
    "sparse, zeros": (sparse(0.1, nan=0.1), {"noise": "column"}),
    "sparse, zeros, both": (sparse(0.1, nan=0.1), {"noise": "both", "prior": "gl22"}),
    "sparse, missing": (sparse(0.2, nan=0.1), {"unstored": "missing", "noise": "row", "prior": "glinf"}),
    "sparse, mostly stored": (sparse(0.8, nan=0.1), {"unstored": "missing", "noise": "column"}),
}
# Each form of the data once; the others are for the proofs.
QUICK = {
    "defaults", "a floor of the noise, from some of many rows", "shared patterns, max term", "noise by both, offset",
    "listed, both", "sparse, zeros", "sparse, missing",
}  # fmt: skip


def on_cluster(X):
    """Return data in blocks whose bounds have nothing to do with tiles."""
    if not sp.issparse(X):
        return da.from_array(X, chunks=(130, 333))
    return RowBlocks([delayed(X[start : start + 150]) for start in range(0, SHAPE[0], 150)])


def fitted(X, **options):
    return BayesianNMF(3, **{"n_chains": 1, "burn_in": 1, "n_draws": 2, "random_state": 7, **options}).fit(X)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "case", [*sorted(QUICK), *(pytest.param(name, marks=pytest.mark.proof) for name in sorted(CASES.keys() - QUICK))]
)
def test_draws_are_those_of_one_process(client, case):
    X, options = CASES[case]
    assert_same_draws(fitted(on_cluster(X), **options).posterior_, fitted(X, **options).posterior_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_blocks_and_chains_do_not_matter(client, monkeypatch):
    X = low_rank(missing=0.2)
    expected = fitted(X, n_chains=2).posterior_
    monkeypatch.setattr(sharded, "bounds_of", lambda n_rows, *_: np.array([0, 512, n_rows]))
    assert_same_draws(fitted(da.from_array(X, chunks=(700, 60)), n_chains=2).posterior_, expected)


@pytest.mark.parametrize(
    "case", ["shared patterns, max term", "listed, both", "sparse, zeros", "sparse, mostly stored"]
)
def test_fingerprint_and_numbers_of_columns_are_those_of_one_process(client, case):
    X, options = CASES[case]
    unstored = options.get("unstored", "zero")
    local = ObservedMatrix.from_data(X, unstored=unstored)
    data = ShardedMatrix.from_dask(on_cluster(X), unstored=unstored)
    assert fingerprint(data) == fingerprint(local)
    assert data.has_implicit_zeros == local.has_implicit_zeros
    for view, expected in ((data.rows, local.rows), (data.columns, local.columns)):
        assert view.n_rows == expected.n_rows
        np.testing.assert_array_equal(view.n_observed, expected.n_observed)
        for name in ("root_mean_squares", "resolutions", "largest_magnitudes", "sums", "minima"):
            np.testing.assert_array_equal(getattr(view, name)(), getattr(expected, name)(), err_msg=name)
    np.testing.assert_array_equal(data.columns.observed_values(300), local.columns.observed_values(300))
    for rows in (np.arange(200, 530), np.arange(3, 700, 31)):
        np.testing.assert_array_equal(data.dense_rows(rows), local.dense_rows(rows))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_fit_begun_in_one_process_goes_on_on_the_cluster(client, tmp_path):
    X = low_rank(missing=0.2)
    fitted(X, checkpoint=tmp_path, n_draws=1)
    went_on = fitted(on_cluster(X), checkpoint=tmp_path)
    assert_same_draws(went_on.sample_more(1).posterior_, fitted(X, n_draws=3).posterior_)
