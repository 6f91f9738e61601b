"""What limits mean: of each entry, of whole columns and rows, of sparse data, and as caps, floors and steps."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from bnmf import limits
from bnmf.data import ObservedMatrix
from bnmf.data.identity import fingerprint, row_ids

INF, NAN = np.inf, np.nan
X = np.array([[1.0, NAN, 3.0], [4.0, 5.0, 100.0]])


def read(X=X, **given):
    return ObservedMatrix.from_data(X, negative=True, **given)


def limits_of(data):
    found = data.limits
    return {} if found is None else {
        (int(i), int(j)): (low, high)
        for i, j, low, high in zip(found.rows, found.columns, found.lower, found.upper, strict=True)
    }  # fmt: skip


def test_limits_of_entries():
    lower = np.array([[NAN, -INF, 3.0], [NAN, 2.0, 100.0]])
    upper = np.array([[INF, 0.01, 3.0], [NAN, 6.0, INF]])
    data = read(lower=lower, upper=upper)
    assert limits_of(data) == {(0, 1): (-INF, 0.01), (1, 1): (2.0, 6.0), (1, 2): (100.0, INF)}
    assert data.n_observed == 6
    # A number stands for each where one is needed: the finite end, or the middle.
    np.testing.assert_array_equal(data.dense_rows(np.arange(2)), [[1.0, 0.01, 3.0], [4.0, 4.0, 100.0]])


def test_equal_limits_are_exact_whatever_x_has_and_infinite_ones_change_nothing():
    data = read(lower=np.full(X.shape, 7.0), upper=np.full(X.shape, 7.0))
    assert data.limits is None
    assert (data.dense_rows(np.arange(2)) == 7.0).all()
    for given in ({"lower": np.full(X.shape, -INF), "upper": np.full(X.shape, NAN)}, {"lower": np.full(X.shape, INF)}):
        data = read(**given)
        assert data.limits is None
        assert data.n_observed == 5
        assert fingerprint(data) == fingerprint(read())


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"lower": 0.5}, (0.5, INF)),
        ({"upper": np.where(np.isnan(X), 0.01, NAN)}, (-INF, 0.01)),
        ({"lower": [NAN, 0.5, NAN], "upper": 9.0}, (0.5, 9.0)),
        ({"upper": np.array([[9.0], [NAN]])}, (-INF, 9.0)),
        ({"upper": {"b": 9.0}, "names": list("abc")}, (-INF, 9.0)),
    ],
)
def test_limits_of_whole_columns_and_rows_are_for_missing_entries(given, expected):
    data = read(**given)
    assert limits_of(data) == {(0, 1): expected}
    assert data.dense_rows(np.arange(2))[1, 2] == 100.0


def test_limits_by_name():
    frame = pd.DataFrame(X, columns=list("abc"))
    assert limits_of(read(frame, lower={"b": 2.0}, upper=pd.Series({"b": 3.0}))) == {(0, 1): (2.0, 3.0)}
    upper = pd.DataFrame(np.where(np.isnan(X), 0.5, NAN), columns=list("abc"))
    assert limits_of(read(frame, upper=upper)) == {(0, 1): (-INF, 0.5)}


def test_entries_that_were_not_observed_have_no_limits():
    observed = np.array([[True, False, True], [True, True, False]])
    data = read(observed=observed, lower=np.full(X.shape, 2.0), upper=np.full(X.shape, 3.0))
    assert set(limits_of(data)) == {(0, 0), (0, 2), (1, 0), (1, 1)}
    assert read(observed=observed, lower=0.5).limits is None


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"upper": 100.0}, r"1 entries of X are exactly at it, .* row 1, column 2.*bnmf.limits\(X, capped=100\)"),
        ({"lower": [1.0, NAN, NAN]}, "floored=1"),
        ({"lower": np.full(X.shape, 2.0), "upper": np.full(X.shape, 1.0)}, "lower must not be above upper, got 2 "),
        ({"lower": np.zeros((3, 2))}, r"lower must have the shape of X, \(2, 3\)"),
        ({"upper": [1.0, 2.0]}, "upper must be one number or one for each of 3 columns"),
        ({"upper": {"b": 1.0}}, "upper by column name needs a DataFrame"),
        ({"upper": {"z": 1.0}, "names": list("abc")}, "upper names a column that X does not have: 'z'"),
        ({"upper": "many"}, "upper must be an array of numbers"),
    ],
)
def test_errors_name_the_argument(given, match):
    with pytest.raises((ValueError, TypeError), match=match):
        read(**given)


def test_limits_of_nonnegative_data():
    with pytest.raises(ValueError, match="lower and upper must be nonnegative"):
        ObservedMatrix.from_data(X, upper=np.where(np.isnan(X), -1.0, NAN))
    assert ObservedMatrix.from_data(X, upper=np.where(np.isnan(X), 1.0, NAN)).nonnegative


@pytest.mark.parametrize("unstored", ["zero", "missing"])
def test_sparse_limits(unstored):
    rows, columns = [0, 1, 2, 2], [1, 0, 2, 3]
    matrix = sp.csr_array(([5.0, NAN, 0.0, 3.0], (rows, columns)), shape=(4, 5))
    lower = sp.csr_array(([0.0, 2.0], ([2, 2], [2, 3])), shape=(4, 5))
    upper = sp.coo_array(([1.0, NAN, 2.0], ([1, 0, 2], [0, 1, 3])), shape=(4, 5))
    data = ObservedMatrix.from_data(matrix, lower=lower, upper=upper, unstored=unstored)
    assert limits_of(data) == {(1, 0): (-INF, 1.0), (2, 2): (0.0, INF)}
    assert data.dense_rows(np.array([2]))[0, 3] == 2.0
    for wrong, match in ((np.zeros((4, 5)), "must be a sparse matrix"), (sp.eye_array(4, 5), "does not store")):
        with pytest.raises(ValueError, match=f"upper .*{match}"):
            ObservedMatrix.from_data(matrix, upper=wrong, unstored=unstored)


def test_other_forms_of_the_data_keep_their_limits():
    data = read(lower=np.where(X > 3, X, NAN))
    hidden = np.array([1]), np.array([1])
    assert set(limits_of(data.without(*hidden))) == {(1, 0), (1, 2)}
    assert set(limits_of(data.listed())) == set(limits_of(data))
    assert limits_of(data.shifted(np.array([1.0, 2.0, 3.0])))[1, 1] == (3.0, INF)
    assert data.without(np.array([1, 1, 1]), np.arange(3)).limits is None


def test_identities_depend_on_limits():
    plain, limited = read(), read(lower=np.where(X == 100.0, X, NAN))
    assert fingerprint(plain) != fingerprint(limited)
    assert (row_ids(plain) == row_ids(limited)).tolist() == [True, False]
    other = read(upper=np.where(X == 100.0, X, NAN))
    assert row_ids(other)[1] != row_ids(limited)[1]
    scaled = ObservedMatrix.from_data(4.0 * X, lower=np.where(X == 100.0, 4.0 * X, NAN))
    np.testing.assert_array_equal(row_ids(scaled, np.array([4.0])), row_ids(limited))


def test_caps_floors_and_steps():
    table = np.array([[-1.0, 0.0, 57.0, 100.0, 120.0, NAN]])
    lower, upper = limits(table, capped=100, floored=0)
    np.testing.assert_array_equal(lower, [[-INF, -INF, 57.0, 100.0, 100.0, NAN]])
    np.testing.assert_array_equal(upper, [[0.0, 0.0, 57.0, INF, INF, NAN]])
    lower, upper = limits(table, step=[NAN, 1, 1, 10, NAN, 1])
    np.testing.assert_array_equal(lower, [[-1.0, -0.5, 56.5, 95.0, 120.0, NAN]])
    np.testing.assert_array_equal(upper, [[-1.0, 0.5, 57.5, 105.0, 120.0, NAN]])
    lower, upper = limits(table, capped=100, floored=0, step=1, rounded="down")
    np.testing.assert_array_equal(lower, [[-INF, -INF, 57.0, 100.0, 100.0, NAN]])
    np.testing.assert_array_equal(upper, [[1.0, 1.0, 58.0, INF, INF, NAN]])
    frame = pd.DataFrame(table, columns=list("abcdef"), index=["one"])
    lower, upper = limits(frame, floored={"b": 0.5})
    assert upper.loc["one", "b"] == 0.5
    assert lower.loc["one", "b"] == -INF
    pd.testing.assert_series_equal(lower["a"], upper["a"])


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"step": 0.0}, "step must be positive"),
        ({"capped": 1.0, "floored": 2.0}, "floored must not be above capped"),
        ({"rounded": "up"}, "rounded must be"),
        ({"capped": {"a": 1}}, "capped by column name"),
    ],
)
def test_errors_of_caps_name_the_argument(given, match):
    with pytest.raises(ValueError, match=match):
        limits(X, **given)
