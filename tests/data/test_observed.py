"""ObservedMatrix: every container means the same data, and what is no matrix is refused before any work."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from bnmf import BayesianNMF
from bnmf.data.observed import ObservedMatrix

NAN = np.nan
X = np.array([[1.0, NAN, 0.0, 2.0], [NAN, 3.0, 4.0, 0.0], [0.0, 5.0, 6.0, NAN]])
MASK = ~np.isnan(X)
FEW = np.where(np.arange(80).reshape(8, 10) % 7 == 0, np.arange(80.0).reshape(8, 10), NAN)


def entries(data):
    """Return the observed entries in rows and in columns view, read from nothing but the lists and the matrix."""
    found = []
    for view in (data.rows, data.columns):
        width = data.shape[1] if view is data.rows else data.shape[0]
        dense = np.full((view.n_rows, width), NAN)
        matrix = view.dense()
        for row in range(view.n_rows):
            listed = view.indices[view.indptr[row] : view.indptr[row + 1]]
            if view.lists_missing[row]:
                dense[row] = matrix[row]
                assert (matrix[row, listed] == 0).all()
                dense[row, listed] = NAN
            else:
                dense[row, listed] = view.values[view.indptr[row] : view.indptr[row + 1]]
        found.append(dense)
    np.testing.assert_array_equal(found[0], found[1].T)
    return found[0]


def assert_holds(data, expected):
    np.testing.assert_array_equal(entries(data), expected)
    mask = ~np.isnan(expected)
    assert data.shape == expected.shape
    assert data.n_observed == mask.sum()
    np.testing.assert_array_equal(data.mask(), mask)


NULLABLE = pd.DataFrame({"a": [True, None, False]}, dtype="boolean").assign(
    b=pd.array([None, 3, 5], "Int64"), c=[0, 4, 6], d=pd.array([2.0, 0.0, None], "Float64")
)
CONTAINERS = {
    "array": lambda: (X,),
    "list": lambda: (X.tolist(),),
    "mask": lambda: (np.where(MASK, X, 7.0), MASK),
    "mask of numbers": lambda: (np.where(MASK, X, 7.0), MASK.astype(int)),
    "mask over bad values": lambda: (np.where(MASK, X, -np.inf), MASK),
    "mask and NaN": lambda: (X, MASK | (np.arange(4) == 1)),
    "masked array": lambda: (np.ma.array(np.where(MASK, X, 7.0), mask=~MASK),),
    "masked whole numbers": lambda: (np.ma.array(np.where(MASK, X, 7).astype(int), mask=~MASK),),
    "float32": lambda: (X.astype(np.float32),),
    "long double": lambda: (X.astype(np.longdouble),),
    "Fortran order": lambda: (np.asfortranarray(X),),
    "big endian": lambda: (X.astype(">f8"),),
    "frame": lambda: (pd.DataFrame(X),),
    "nullable frame": lambda: (NULLABLE,),
    "mask as a frame": lambda: (pd.DataFrame(np.where(MASK, X, 7.0)), pd.DataFrame(MASK)),
}


@pytest.mark.parametrize("make", CONTAINERS.values(), ids=CONTAINERS)
def test_dense_containers(make):
    assert_holds(ObservedMatrix.from_data(*make()), X)


@pytest.mark.parametrize("kind", [np.int64, np.int8, np.uint16, bool])
def test_whole_numbers(kind):
    given = np.array([[1, 0, 1], [0, 1, 0]], kind)
    assert_holds(ObservedMatrix.from_data(given), given.astype(float))


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
def test_sparse_formats(kind):
    make = sp.csr_matrix if kind in ("csr", "coo") else sp.csr_array
    given = make(np.where(np.isnan(FEW), 0.0, FEW))
    given = given.tobsr((2, 2)) if kind == "bsr" else given.asformat(kind)
    assert_holds(ObservedMatrix.from_data(given), np.nan_to_num(FEW))
    missing = np.where(np.nan_to_num(FEW) == 0, NAN, FEW)  # entry (0, 0) is a zero
    if kind not in ("bsr", "dia"):
        assert_holds(ObservedMatrix.from_data(given, unstored="missing"), missing)
        return
    for call in (ObservedMatrix.from_data, lambda X, unstored: BayesianNMF(1, unstored=unstored).fit(X)):
        with pytest.raises(ValueError, match=f"X is of the sparse format '{kind}' and stores zeros"):
            call(given, unstored="missing")


def test_blocks_and_diagonals_without_zeros():
    blocks = sp.bsr_array(np.kron(np.eye(3), np.ones((2, 2))), blocksize=(2, 2))
    for given in (blocks, sp.dia_array(np.eye(4)), sp.bsr_array(np.eye(4), blocksize=(1, 1))):
        dense = given.toarray()
        assert_holds(ObservedMatrix.from_data(given, unstored="missing"), np.where(dense == 0, NAN, dense))


@pytest.mark.parametrize("density", [0.1, 0.9])
@pytest.mark.parametrize("missing", [0.0, 0.2, 0.7])
@pytest.mark.parametrize("unstored", ["zero", "missing"])
def test_sparse_with_missing_entries(density, missing, unstored):
    rng = np.random.default_rng(3)
    stored = rng.uniform(size=(30, 20)) < density
    given = sp.csr_array(np.where(stored, rng.uniform(1, 2, size=stored.shape), 0.0))
    given.data[rng.uniform(size=given.nnz) < missing] = NAN
    expected = given.toarray()
    if unstored == "missing":
        expected[~stored] = NAN
    assert_holds(ObservedMatrix.from_data(given, unstored=unstored), expected)


def test_duplicates_are_summed_and_the_given_matrix_is_left_alone():
    given = sp.coo_array((np.ones(5), ([0, 0, 1, 1, 5], [2, 2, 0, 0, 3])), shape=(6, 9)).tocsr()
    unsorted = sp.csr_array((np.ones(4), [3, 1, 1, 0], [0, 3, 4]), shape=(2, 6))
    before = unsorted.indices.copy()
    assert_holds(ObservedMatrix.from_data(given), given.toarray())
    assert_holds(ObservedMatrix.from_data(unsorted), [[0, 2.0, 0, 1, 0, 0], [1.0, 0, 0, 0, 0, 0]] @ np.eye(6))
    np.testing.assert_array_equal(unsorted.indices, before)


def test_sparse_data_never_becomes_dense():
    wide = sp.random_array((300_000, 300_000), density=1e-8, rng=np.random.default_rng(0), format="csr")
    data = ObservedMatrix.from_data(wide)  # dense it would take 720 GB
    assert data.rows.form == "sparse"
    listed = ObservedMatrix.from_data(wide, unstored="missing")
    assert listed.rows.form == "listed"
    assert listed.n_observed == wide.nnz


def test_names():
    frame = pd.DataFrame(X, index=list("abc"), columns=list("wxyz"))
    data = ObservedMatrix.from_data(frame)
    assert list(data.row_names) == list("abc")
    assert list(data.column_names) == list("wxyz")


def test_data_are_copied_from_a_dense_array():
    given = X.copy()
    data = ObservedMatrix.from_data(given)
    given[:] = 9.0
    assert_holds(data, X)


def test_negative_and_large_entries():
    for given in (-X, sp.csr_array(-np.eye(9)), 1e144 * np.sign(X - 1.0)):
        expected = given.toarray() if sp.issparse(given) else given
        assert_holds(ObservedMatrix.from_data(given, negative=True), expected)


BAD = {
    "negative": (lambda: (np.array([[1.0, -2.0], [-3.0, 1.0]]),), ValueError, "nonnegative, got 2 negative.*lowest -3"),
    "negative in sparse": (lambda: (sp.csr_array(-np.eye(9)),), ValueError, "nonnegative, got 9 negative entries"),
    "infinite": (lambda: (np.array([[1.0, np.inf]]),), ValueError, "finite where it is observed, got 1 infinite"),
    "infinite in sparse": (lambda: (sp.csr_array(np.diag([np.inf] + [1.0] * 9)),), ValueError, "got 1 infinite"),
    "all NaN": (lambda: (np.full((2, 2), NAN),), ValueError, "no observed entry at all"),
    "empty sparse": (lambda: (sp.csr_array((0, 3)),), ValueError, r"must not be empty, got shape \(0, 3\)"),
    "empty": (lambda: (np.empty((0, 3)),), ValueError, r"must not be empty, got shape \(0, 3\)"),
    "vector": (lambda: (np.ones(3),), ValueError, r"two dimensions, got 1 \(shape \(3,\)\)"),
    "sparse vector": (lambda: (sp.coo_array(np.ones(3)),), ValueError, "two dimensions, got 1"),
    "object": (lambda: (np.array([[1, None]], object),), TypeError, "real numbers, got an array of dtype object"),
    "strings": (lambda: ([["a", "b"]],), TypeError, "real numbers, got an array of dtype <U1"),
    "complex": (lambda: (np.ones((2, 2), complex),), TypeError, "real numbers, got an array of dtype complex128"),
    "complex sparse": (lambda: (sp.csr_array(np.eye(2) * 1j),), TypeError, "sparse matrix of dtype complex128"),
    "dates": (lambda: (np.zeros((2, 2), "M8[s]"),), TypeError, "real numbers, got an array of dtype datetime64"),
    "text columns": (lambda: (pd.DataFrame({n: ["x"] for n in "abcdef"}),), TypeError, "are not: a, b, c, d, e$"),
    "columns of dates": (lambda: (pd.DataFrame({"a": [1.0], "b": pd.to_datetime(["2020"]), 3: [1j]}),), TypeError,
                         "columns are not: b, 3$"),
    "too large": (lambda: (np.array([[0.0, 1.1e144]]),), ValueError, r"not exceed 1e\+144, .* by a constant"),
    "too large below zero": (lambda: (np.array([[0.0, -1e300]]),), ValueError, r"must not exceed .* size 1e\+300"),
    "mask of wrong shape": (lambda: (X, MASK.T), ValueError, r"shape of X, \(3, 4\), got \(4, 3\)"),
    "mask of fractions": (lambda: (X, MASK * 0.5), ValueError, "observed must hold booleans"),
    "one number as a mask": (lambda: (X, True), ValueError, r"shape of X, \(3, 4\), got \(\)"),
    "mask of strings": (lambda: (X, np.full(X.shape, "yes")), ValueError, "observed must hold booleans"),
    "lists of unequal length": (lambda: ([[1.0, 2.0], [3.0]],), ValueError, "X must be a matrix, got lists of unequal"),
    "mask of unequal lists": (lambda: (np.ones((2, 2)), [[True, False], [True]]), ValueError, "got lists of unequal"),
    "mask with sparse": (lambda: (sp.csr_array(X), MASK), ValueError, "observed is for a dense X"),
}  # fmt: skip


@pytest.mark.parametrize(("make", "error", "message"), BAD.values(), ids=BAD)
def test_bad_input(make, error, message):
    with pytest.raises(error, match=message):
        ObservedMatrix.from_data(*make())


# --- entries that differ in how much they count


@pytest.mark.parametrize(
    ("matrix", "options"),
    [
        (pd.DataFrame(X - 3.0, index=list("abc")), {"negative": True}),
        (np.asfortranarray(X), {}),
        (FEW, {}),
        (sp.csr_array(np.nan_to_num(FEW)), {"unstored": "missing"}),
        (sp.csc_array(np.nan_to_num(X, nan=7.0)), {"unstored": "missing"}),
        (np.full((3, 2), NAN), {"empty": True}),
    ],
    ids=["dense", "Fortran", "mostly missing", "sparse", "sparse, mostly stored", "empty"],
)
def test_listed(matrix, options):
    """Every row and column lists what was observed, and the order of columns is that of their lists."""
    data = ObservedMatrix.from_data(matrix, **options)
    listed = data.listed()
    assert_holds(listed, entries(data))
    for view in (listed.rows, listed.columns):
        assert view.form == "listed"
        assert not view.lists_missing.any()
    rows, columns, values = listed.observed_entries()
    np.testing.assert_array_equal(listed.listed_rows, rows)
    np.testing.assert_array_equal(values, data.observed_entries()[2])
    np.testing.assert_array_equal(listed.columns.values, values[listed.column_order])
    np.testing.assert_array_equal(listed.columns.indices, rows[listed.column_order])
    np.testing.assert_array_equal(np.repeat(np.arange(data.shape[1]), listed.columns.n_observed),
                                  columns[listed.column_order])  # fmt: skip
    assert listed.listed() is listed
    assert (listed is data) == (data.rows.form == "listed")
    assert listed.row_names is data.row_names
    assert listed.nonnegative == data.nonnegative


def test_implicit_zeros_cannot_be_listed():
    data = ObservedMatrix.from_data(sp.csr_array(np.nan_to_num(FEW)))
    with pytest.raises(ValueError, match=r"implicit zeros of a sparse X .* pass a dense X, or unstored='missing'"):
        data.listed()
