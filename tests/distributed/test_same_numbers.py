"""The draws on a cluster are those of one process, bit for bit, for every model and every form of the data."""

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from dask import delayed

import bnmf
from bnmf import BayesianNMF
from bnmf.data.identity import fingerprint
from bnmf.data.observed import ObservedMatrix
from bnmf.distributed import RowBlocks, sharded
from bnmf.distributed.sharded import ShardedMatrix
from bnmf.priors import L1, L2Squared, Laplace, LInf, Normal
from tests.distributed.clusters import low_rank
from tests.posteriors import assert_same_draws

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:Sending large graph"),
]
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


def cut(X, **options):
    """Return data of which two fifths were cut at limits, parameters, and these limits."""
    low, high = np.nanquantile(X, [0.2, 0.8])
    X = np.clip(X, low, high)
    return X, options, bnmf.limits(X, floored=low, capped=high)._asdict()


def sparse_and_cut(**options):
    """Return sparse data whose largest entries were capped, parameters, and the limits of these entries."""
    X = sparse(0.2, nan=0.1)
    cap = np.nanquantile(X.data, 0.6)
    rows, columns = X.nonzero()
    capped = X.data >= cap
    lower = sp.csr_array((np.full(capped.sum(), cap), (rows[capped], columns[capped])), shape=SHAPE)
    return X, options, {"lower": lower}


BY_ENTRY = L1(0.5 + np.random.default_rng(0).random((SHAPE[0], 3))), L1(0.5 + np.ones((3, SHAPE[1])))
SIGNED = Normal(0.0, 1.0) + Laplace(0.5 + np.random.default_rng(1).random((3, SHAPE[1])))
# Data, parameters and limits. Of the first, each form of the data once; the others are for the proofs.
QUICK = {
    "defaults": (low_rank(missing=0.2), {}),
    "a floor of the noise, from some of many rows": (low_rank((1300, 30), missing=0.2), {}),
    "shared patterns, max term": (shared_patterns(), {"prior": "gl22inf", "noise": "common", "scale": "matrix"}),
    "noise by both, offset": (negative_with_constant_column(), {"noise": "both", "offset": "min"}),
    "listed, both": (low_rank(missing=0.7), {"noise": "both"}),
    "sparse, zeros": (sparse(0.1, nan=0.1), {"noise": "column"}),
    "sparse, missing": (sparse(0.2, nan=0.1), {"unstored": "missing", "noise": "row", "prior": "glinf"}),
    "limits, gross errors": cut(low_rank(missing=0.2), noise="contaminated"),
    "limits, offset": cut(low_rank(missing=0.2) - 2.0, prior="normal", offset="mean", noise="both"),
    "limits, sparse, zeros": sparse_and_cut(noise="common"),
}
CASES = {
    **QUICK,
    "noise by row": (shared_patterns(), {"prior": "gl12", "noise": "row", "scale": None}),
    "prior by entry": (low_rank(missing=0.1), {"prior": BY_ENTRY, "noise": "column"}),
    "pair of priors": (low_rank(missing=0.1), {"prior": (LInf(0.3), L2Squared()), "noise": "common"}),
    "listed, offset": (low_rank(missing=0.7) - 1.0, {"noise": "column", "offset": "min", "prior": "gee"}),
    "both signs by entry, mean": (low_rank(missing=0.2) - 2.0, {"prior": (BY_ENTRY[0], SIGNED), "offset": "mean"}),
    "sparse, zeros, both": (sparse(0.1, nan=0.1), {"noise": "both", "prior": "gl22"}),
    "sparse, mostly stored": (sparse(0.8, nan=0.1), {"unstored": "missing", "noise": "column"}),
    "gross errors, listed": (low_rank(missing=0.7), {"noise": "contaminated"}),
    "limits": cut(low_rank(missing=0.2)),
    "limits, noise by row, listed": cut(low_rank(missing=0.7), noise="row"),
    "limits, sparse, missing": sparse_and_cut(unstored="missing"),
    "limits of columns": (
        low_rank(missing=0.2), {}, {"lower": np.linspace(30.0, 40.0, 600), "upper": np.full((700, 1), 90.0)},
    ),
}  # fmt: skip


def case_of(name):
    """Return data, parameters, and limits by name."""
    X, options, *limits = CASES[name]
    return X, options, *(limits or [{}])


def on_cluster(X):
    """Return data in blocks whose bounds have nothing to do with tiles."""
    if not sp.issparse(X):
        return da.from_array(X, chunks=(130, 333))
    return RowBlocks([delayed(X[start : start + 150]) for start in range(0, SHAPE[0], 150)])


def fitted(X, limits=None, **options):
    settings = {"n_chains": 1, "burn_in": 1, "n_draws": 2, "random_state": 7, **options}
    return BayesianNMF(3, **settings).fit(X, **(limits or {}))


def limits_on_cluster(limits):
    """Return limits of entries in other blocks than the data; of sparse data, and of rows or columns, as they are."""
    return {
        name: da.from_array(limit, chunks=(300, 100)) if np.shape(limit) == SHAPE and not sp.issparse(limit) else limit
        for name, limit in limits.items()
    }


@pytest.mark.parametrize(
    "case", [*QUICK, *(pytest.param(name, marks=pytest.mark.proof) for name in CASES if name not in QUICK)]
)
def test_draws_are_those_of_one_process(client, case):
    X, options, limits = case_of(case)
    model = fitted(on_cluster(X), limits_on_cluster(limits), **options)
    expected = fitted(X, limits, **options)
    assert_same_draws(model.posterior_, expected.posterior_)
    assert model.reconstruction_err_ == pytest.approx(expected.reconstruction_err_, rel=1e-12)
    assert model.posterior_.notes == tuple(note for note in expected.posterior_.notes if "exactly" not in note.text)


def test_blocks_and_chains_do_not_matter(client, monkeypatch):
    X = low_rank(missing=0.2)
    expected = fitted(X, n_chains=2).posterior_
    monkeypatch.setattr(sharded, "bounds_of", lambda n_rows, *_: np.array([0, 512, n_rows]))
    assert_same_draws(fitted(da.from_array(X, chunks=(700, 60)), n_chains=2).posterior_, expected)


@pytest.mark.parametrize(
    "case", ["shared patterns, max term", "listed, both", "sparse, zeros", "sparse, mostly stored", "limits"]
)
def test_fingerprint_and_numbers_of_columns_are_those_of_one_process(client, case):
    X, options, limits = case_of(case)
    unstored = options.get("unstored", "zero")
    local = ObservedMatrix.from_data(X, **limits, unstored=unstored)
    data = ShardedMatrix.from_dask(on_cluster(X), **limits_on_cluster(limits), unstored=unstored)
    assert fingerprint(data) == fingerprint(local)
    assert data.has_implicit_zeros == local.has_implicit_zeros
    for view, expected in ((data.rows, local.rows), (data.columns, local.columns)):
        assert view.n_rows == expected.n_rows
        np.testing.assert_array_equal(view.n_observed, expected.n_observed)
        for name in ("root_mean_squares", "resolutions", "gaps", "sums", "minima"):
            np.testing.assert_array_equal(getattr(view, name)(), getattr(expected, name)(), err_msg=name)
    np.testing.assert_array_equal(data.columns.observed_values(300), local.columns.observed_values(300))
    for rows in (np.arange(200, 530), np.arange(3, 700, 31)):
        np.testing.assert_array_equal(data.dense_rows(rows), local.dense_rows(rows))
    at, to = np.array([650, 3, 3, 300]), np.array([0, 1, 2, 3])
    np.testing.assert_array_equal(data.limits_at(at, to), local.limits_at(at, to))
    for found, expected in zip(data.every(7), local.every(7), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.proof  # starts processes; threads send each other the same messages
def test_a_fit_begun_in_one_process_goes_on_on_a_cluster_of_processes(client_of_processes, tmp_path):
    X, _, limits = cut(low_rank((700, 300), missing=0.2))
    fitted(X, limits, checkpoint=tmp_path, n_draws=1)
    model = fitted(da.from_array(X, chunks=(130, 200)), limits, checkpoint=tmp_path)
    expected = fitted(X, limits, n_draws=3)
    assert_same_draws(model.sample_more(1).posterior_, expected.posterior_)
    np.testing.assert_array_equal(model.impute(out=np.empty(X.shape)), expected.impute())
