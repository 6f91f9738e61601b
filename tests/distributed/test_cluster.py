"""Where blocks go, and what cannot be had of data on a cluster."""

import pickle
import re
import warnings
from functools import partial

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from dask import delayed

from bnmf import BayesianNMF, NMFImputer, select_rank
from bnmf.distributed import RowBlocks
from bnmf.distributed.cluster import BLOCKS_IN_MEMORY, Cluster, spread
from bnmf.distributed.sharded import ShardedMatrix, bounds_of
from tests.distributed.clusters import low_rank


def quick(**options):
    return BayesianNMF(2, n_chains=1, burn_in=1, n_draws=2, random_state=0, **options)


# --- where blocks go


@pytest.mark.parametrize(
    ("held", "threads", "places"),
    [
        ("abba", {"a": 1, "b": 1}, "abba"),  # blocks stay where they are
        ("abcx", {"a": 1, "b": 1}, "abab"),  # those of a lost worker go to the others
        ("a" * 12, {"a": 2, "b": 4}, "aaaabbbbbbbb"),  # a new worker gets its share by threads
    ],
)
def test_places_of_blocks(held, threads, places):
    assert spread([None if place == "x" else place for place in held], threads) == list(places)


@pytest.mark.parametrize(
    ("n_rows", "n_bytes", "n_threads", "n_blocks"),
    [(100, 1, 8, 1), (5000, 2**30, 2, 20), (5000, 1, 3, 6), (2**20, 1, 1, 2), (20000, 10 * 2**20, 4, 12)],
)
def test_blocks_are_whole_tiles_of_about_the_same_number(n_rows, n_bytes, n_threads, n_blocks):
    bounds = bounds_of(n_rows, n_bytes, n_threads, block_bytes=2**20)
    assert (bounds[0], bounds[-1], len(bounds) - 1) == (0, n_rows, n_blocks)
    assert not (bounds[:-1] % 256).any()
    n_tiles = -(-np.diff(bounds) // 256)
    assert n_tiles.max() - n_tiles.min() <= 1


def test_blocks_are_a_small_part_of_the_memory_of_a_worker(client):
    assert Cluster(client).block_bytes() == 10**9 // BLOCKS_IN_MEMORY


# --- what a fit on a cluster can do, and what it cannot


@pytest.fixture(scope="module")
def array():
    return low_rank((300, 40), missing=0.2)


@pytest.fixture(scope="module")
def fits(client, array):
    """The same fit on the cluster and in this process."""
    with warnings.catch_warnings(action="ignore"):
        return [quick(offset="min").fit(X) for X in (da.from_array(array, chunks=(100, 40)), array)]


def test_whole_matrix_is_refused_and_blocks_are_not(fits, array):
    fit, local_fit = fits
    with pytest.raises(ValueError, match="pass out= a memory map"):
        fit.impute()
    np.testing.assert_array_equal(fit.impute(out=np.empty(array.shape)), local_fit.impute())
    for name in ("observed_entries", "missing_entries", "stored_entries", "mask"):
        with pytest.raises(ValueError, match=r"posterior_\.mean"):
            getattr(fit.data_, name)()
    assert fit.reconstruction_err_ == pytest.approx(local_fit.reconstruction_err_, rel=1e-12)


def test_report_is_that_of_the_same_data_in_one_process(fits, tmp_path):
    pages, ends = [], r'<span>[^<]*</span><span class="ramp"[^>]*></span><span>[^<]*</span>'
    for fit in fits:
        fit.report(tmp_path / "report.html", title="A report")
        page = (tmp_path / "report.html").read_text(encoding="utf-8")
        drawn = r'base64,[^"]*|<script type="application/json".*?</script>|' + ends
        pages.append(re.sub(drawn, "", page, flags=re.DOTALL))
    assert pages[0] == pages[1]  # but for pictures and their numbers, whose rows are in the order of rounding
    assert not fits[0].data_.rows.blocks._futures


def test_fitted_model_does_without_its_cluster(fits, array):
    fit, local_fit = fits
    np.testing.assert_array_equal(fit.transform(array[:5]), local_fit.transform(array[:5]))
    assert fit.n_features_in_ == 40
    assert not hasattr(fit, "feature_names_in_")
    assert not fit.data_.rows.blocks._futures  # nothing stays on the cluster
    assert not fit._fit_.run.model.data.columns.blocks._futures
    copy = pickle.loads(pickle.dumps(fit))
    np.testing.assert_array_equal(copy.components_, local_fit.components_)
    with warnings.catch_warnings(action="ignore"):
        np.testing.assert_array_equal(copy.sample_more(1).posterior_.W[:, :2], local_fit.posterior_.W)


def test_only_fit_takes_data_on_a_cluster(fits, array):
    fit = fits[0]
    rank = partial(select_rank, ks=[1, 2])
    for method in (fit.transform, fit.score, fit.posterior_of, fit.impute, NMFImputer().fit, rank):
        with pytest.raises(TypeError, match=r"only BayesianNMF\.fit takes such data"):
            method(da.from_array(array))


def fails():
    raise FileNotFoundError("part 3 is not there")


EYE, ONES = [delayed(sp.eye_array)(5, format="csr")], delayed(np.ones)((3, 3))
AT = np.arange(12_000).reshape(300, 40)
GAPS = da.from_array(np.where(AT // 40 == 6, np.nan, low_rank(AT.shape)), chunks=(100, 30))


@pytest.mark.parametrize(
    ("X", "options", "error", "message"),
    [
        (da.from_array(np.full((4, 3), np.nan)), {}, ValueError, "no observed entry"),
        (da.from_array(np.array([[1.0, -2.0]])), {}, ValueError, "1 negative entries, the lowest -2"),
        (da.from_array(np.array([[1.0, np.inf]])), {}, ValueError, "1 infinite"),
        (da.from_array(np.array([["a"]])), {}, TypeError, "real numbers"),
        (da.ones(3), {}, ValueError, "two dimensions"),
        (da.ones((3, 0)), {}, ValueError, "must not be empty"),
        (da.ones((4, 3))[da.arange(4) > 1], {}, ValueError, "unknown size"),
        (ONES, {}, TypeError, "dask.array, a RowBlocks or a list"),
        ([ONES, delayed(np.ones)((3, 4))], {}, ValueError, "same columns"),
        ([ONES, delayed(sp.eye_array)(3)], {}, TypeError, "all sparse or all dense"),
        (RowBlocks([]), {}, ValueError, "at least one block"),
        (RowBlocks([ONES], shapes=[(2, 3)]), {}, ValueError, "shapes says"),
        (RowBlocks([ONES], shapes=[(3, 3), (1, 3)]), {}, ValueError, "one shape for each"),
        (RowBlocks([delayed(fails)()], shapes=[(3, 3)]), {}, FileNotFoundError, "part 3"),
        (da.ones((4, 3)), {"observed": np.ones((4, 3))}, ValueError, "observed is for data in memory"),
        (EYE, {"lower": np.ones((5, 5))}, ValueError, "lower of a sparse X must be sparse too, got ndarray"),
        (GAPS, {"lower": np.ones((3, 2))}, ValueError, r"lower must have the shape of X, \(300, 40\)"),
        (GAPS, {"lower": da.ones((3, 2))}, ValueError, r"lower on a cluster must be dense .* its shape \(300, 40\)"),
        (GAPS, {"lower": {"a": 1.0}}, ValueError, "lower by column name needs a DataFrame"),
        (GAPS, {"lower": da.full((300, 40), 9.0), "upper": 5.0}, ValueError, "got 9 and 5 in row 0, column 0"),
        (GAPS, {"upper": np.where(AT == 7005, -1.0, np.inf)}, ValueError, "must be nonnegative"),
        (GAPS, {"lower": 3.0, "upper": np.where(AT[0] == 35, 2, 9)}, ValueError, "got 3 and 2 in row 6, column 35"),
    ],
)
def test_wrong_data_and_limits_are_refused(client, X, options, error, message):
    with pytest.raises(error, match=message):
        quick().fit(X, **options)


def test_offset_of_sparse_data_is_refused(client):
    with pytest.raises(ValueError, match="offset='min' needs dense data"):
        quick(offset="min").fit(EYE)


def test_futures_and_empty_blocks_are_taken(client):
    X = sp.csr_array(np.triu(low_rank((40, 30)), 20))
    blocks = client.scatter([X[:15], X[15:15], X[15:]])
    data = ShardedMatrix.from_dask(blocks)
    np.testing.assert_array_equal(data.dense_rows(np.arange(0, 40)), X.toarray())


def test_without_a_client_the_error_says_what_to_do(monkeypatch):
    def none():
        raise ValueError("no clients")

    monkeypatch.setattr("distributed.Client.current", none)
    with pytest.raises(RuntimeError, match=r"create a distributed.Client"):
        quick().fit(da.ones((4, 3)))
