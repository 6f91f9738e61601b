"""Views, and what ObservedMatrix reads from them, against a dense array with NaN."""

from collections import Counter
from dataclasses import replace
from itertools import groupby, pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from tests.storages import storages

from bnmf.data import ObservedMatrix, observed
from bnmf.data.containers import pointers
from bnmf.data.half_sweeps import split_rows
from bnmf.data.views import listed_views

NAN = np.nan
STORAGES = storages()


@pytest.fixture(params=STORAGES)
def case(request):
    return STORAGES[request.param]


@pytest.fixture(params=["rows", "columns"])
def view_and_array(request, case):
    """A view with the array that it shows: the data, or their transpose."""
    data, X, _ = case
    return (data.rows, X) if request.param == "rows" else (data.columns, np.ascontiguousarray(X.T))


def factors(n_rows, n_columns):
    rng = np.random.default_rng(1)
    return rng.exponential(size=(n_rows, 3)), rng.exponential(size=(n_columns, 3))


def test_storages_are_those_that_are_meant():
    assert all(data.rows.form == data.columns.form == name for name, (data, _, _) in STORAGES.items())
    for name in ("dense", "sparse"):
        data = STORAGES[name][0]
        assert data.rows.lists_missing.any()
        assert not data.rows.lists_missing.all()


def test_a_row_of_which_half_is_missing_lists_the_same_in_every_storage():
    """What a row lists determines how its sums are rounded, so it must not depend on the container."""
    X = np.zeros((8, 4))
    X[0, :3], X[1, :2], X[2, :1] = NAN, NAN, NAN
    dense, sparse = ObservedMatrix.from_data(X), ObservedMatrix.from_data(sp.csr_array(X))
    assert sparse.has_implicit_zeros
    for data in (dense, sparse):
        np.testing.assert_array_equal(data.rows.lists_missing, [False, False] + [True] * 6)
        np.testing.assert_array_equal(np.diff(data.rows.indptr), [1, 2, 1] + [0] * 5)


# --- views


def test_mask_squares_and_squared_errors(view_and_array):
    view, X = view_and_array
    assert view.mask().dtype == bool
    np.testing.assert_array_equal(view.mask(), ~np.isnan(X))
    W, Z = factors(*X.shape)
    np.testing.assert_allclose(view.scaled().squared_errors(W, Z), np.nansum((X - W @ Z.T) ** 2, axis=1), rtol=1e-12)
    for factor in (None, np.random.default_rng(3).uniform(1.0, 2.0, X.shape[1])):
        expected = np.nansum((X if factor is None else X * factor) ** 2, axis=1)
        np.testing.assert_allclose(view.sums_of_squares(factor), expected, rtol=1e-12)
        in_kernel = np.zeros(len(X)) if view.form == "listed" else expected
        np.testing.assert_allclose(view.scaled(factor).squares, in_kernel, rtol=1e-12)


def test_select(case):
    for chosen in [[3], [11, 5, 2], [4, 4, 10, 4], [0, 1, 2], []]:
        data, X, _ = case
        rows = np.array(chosen, np.intp)
        view, expected = data.rows.select(rows), X[rows]
        assert view.n_rows == len(rows)
        np.testing.assert_array_equal(view.ids, np.arange(len(rows)))
        np.testing.assert_array_equal(view.mask(), ~np.isnan(expected))
        np.testing.assert_array_equal(view.lists_missing, data.rows.lists_missing[rows])
        W, Z = factors(*expected.shape)
        errors = np.nansum((expected - W @ Z.T) ** 2, axis=1)
        np.testing.assert_allclose(view.scaled().squared_errors(W, Z), errors, rtol=1e-12)
        np.testing.assert_array_equal(view.dense_with_nan(), expected)
        np.testing.assert_allclose(view.sums_of_squares(), np.nansum(expected**2, axis=1), rtol=1e-12)


# --- the rows that are drawn together


@pytest.mark.parametrize("least", [0, 1, 2, 3, 5])
def test_split_of_any_patterns(least):
    """Every row once, in its tile; patterns in one piece each, the largest first; and the marks where they go on."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        n_rows, rows_per_tile = int(rng.integers(1, 200)) if seed else 0, int(rng.integers(1, 40))
        patterns = rng.integers(-1, rng.integers(1, 12), size=n_rows)
        split = split_rows(patterns, rows_per_tile, least)
        assert len(split.n_sharing) == -(-n_rows // rows_per_tile)
        for tile, (start, stop) in enumerate(pairwise(split.indptr)):
            rows = np.arange(tile * rows_per_tile, min((tile + 1) * rows_per_tile, n_rows))
            counts = Counter(patterns[rows].tolist())
            drawn, n = split.rows[start:stop].tolist(), split.n_sharing[tile]
            assert sorted(drawn) == rows.tolist()
            assert drawn[n:] == [row for row in rows if patterns[row] < 0 or counts[patterns[row]] < least]
            pieces = [(pattern, len(list(piece))) for pattern, piece in groupby(patterns[drawn[:n]].tolist())]
            assert dict(pieces) == {pattern: counts[pattern] for pattern, _ in pieces}
            assert [size for _, size in pieces] == sorted((size for _, size in pieces), reverse=True)
            marks = [i > 0 for _, size in pieces for i in range(size)] + [False] * (len(rows) - n)
            np.testing.assert_array_equal(split.repeats[start:stop], marks)


# --- the observed matrix


def test_sums(case):
    data, X, _ = case
    assert data.n_observed == (~np.isnan(X)).sum()
    np.testing.assert_array_equal(data.rows.n_observed, (~np.isnan(X)).sum(axis=1))
    np.testing.assert_array_equal(data.columns.n_observed, (~np.isnan(X)).sum(axis=0))
    sizes = [np.sqrt(x[~np.isnan(x)] @ x[~np.isnan(x)] / max((~np.isnan(x)).sum(), 1)) for x in X.T]
    np.testing.assert_allclose(data.columns.root_mean_squares(), sizes, rtol=1e-12)
    for view, array in ((data.rows, X), (data.columns, X.T)):
        seen = [x[~np.isnan(x)] for x in array]
        np.testing.assert_allclose(view.sums(), np.nansum(array, axis=1), rtol=1e-12)
        np.testing.assert_array_equal(view.minima(), [x.min() if len(x) else 0.0 for x in seen])


def test_blocks_and_entries_that_are_listed(case, monkeypatch):
    """Row by row: those that are missing, and those that were observed, or what is stored, zeros included."""
    monkeypatch.setattr(observed, "ROWS_PER_TILE", 4)
    data, X, stored = case
    found = list(data.blocks())
    assert [(rows.start, rows.stop) for rows, _ in found] == [(0, 4), (4, 8), (8, 12), (12, 16), (16, 20), (20, 23)]
    np.testing.assert_array_equal(np.vstack([block for _, block in found]), X)
    rows, columns, values = data.stored_entries() if data.has_implicit_zeros else data.observed_entries()
    np.testing.assert_array_equal(np.stack([rows, columns], axis=1), np.argwhere(stored))
    np.testing.assert_array_equal(values, X[stored])
    np.testing.assert_array_equal(np.stack(data.missing_entries(), axis=1), np.argwhere(np.isnan(X)))
    if data.has_implicit_zeros:
        with pytest.raises(ValueError, match="too many to list"):
            data.observed_entries()


def test_without(case):
    data, X, _ = case
    rng = np.random.default_rng(4)
    seen = np.argwhere(~np.isnan(X))
    for n_hidden in (0, 1, 20, len(seen)):
        rows, columns = seen[rng.permutation(len(seen))[:n_hidden]].T
        rest = data.without(rows, columns)
        expected = X.copy()
        expected[rows, columns] = NAN
        assert rest.shape == X.shape
        assert rest.n_observed == len(seen) - n_hidden
        np.testing.assert_array_equal(np.vstack([block for _, block in rest.blocks()]), expected)
        np.testing.assert_array_equal(rest.columns.mask(), ~np.isnan(expected).T)
        assert rest.nonnegative
    np.testing.assert_array_equal(np.vstack([block for _, block in data.blocks()]), X)  # as they were


def test_numbers_beyond_32_bits():
    wide = ObservedMatrix.from_data(sp.csr_array((2**17, 2**17)), empty=True)
    small = np.array([2**17 - 1], np.int32)
    assert wide.flat(small, small)[0] == 2**34 - 1
    assert pointers(np.array([2**30] * 4, np.int32))[-1] == 2**32


@pytest.mark.parametrize(("step", "dtype"), [(1.0, np.uint8), (0.5, np.float32)])
def test_values_are_copied_in_fewer_bytes_where_that_is_exact(step, dtype):
    rng = np.random.default_rng(0)
    stars = rng.integers(1, 11, size=(30, 20)) * step
    ratings = sp.csr_array(np.where(rng.uniform(size=(30, 20)) < 0.3, stars, 0.0))
    W, Z = rng.exponential(size=(20, 3)), rng.exponential(size=(30, 3))
    rows, columns = listed_views(ratings)
    assert rows.values is ratings.data  # not copied
    assert columns.values.dtype == dtype
    double = replace(columns, values=columns.values.astype(np.float64))
    for name in ("sums", "root_mean_squares", "resolutions", "gaps", "dense_with_nan"):
        np.testing.assert_array_equal(getattr(columns, name)(), getattr(double, name)())
    np.testing.assert_array_equal(columns.sums_of_squares(), double.sums_of_squares())
    for which in ("squared_errors", "listed_residuals"):
        np.testing.assert_array_equal(*(getattr(view.scaled(), which)(W, Z) for view in (columns, double)))
    for value, kept in ((256.0, np.float32), (-1.0, np.float32), (0.1, np.float64), (1e40, np.float64)):
        ratings.data[7] = value
        assert listed_views(ratings)[1].values.dtype == kept
