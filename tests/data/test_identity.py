"""Rows are recognised by their content, whatever the storage."""

import numpy as np
import scipy.sparse as sp

from bnmf.data.identity import fingerprint, row_ids
from bnmf.data.observed import ObservedMatrix


def forms(X):
    """Return X (with NaN) in every storage that ObservedMatrix has, by way of added rows that tip the balance."""
    wide = np.full((4 * len(X), X.shape[1]), np.nan)  # mostly missing: lists
    full = np.ones((4 * len(X), X.shape[1]))  # mostly observed: dense
    zeros = sp.csr_array(np.zeros((20 * len(X), X.shape[1])))  # mostly zeros: sparse with zeros
    return {
        "lists": ObservedMatrix.from_data(np.vstack([X, wide])),
        "dense": ObservedMatrix.from_data(np.vstack([X, full])),
        "zeros": ObservedMatrix.from_data(sp.vstack([sp.csr_array(X), zeros])),
    }


def example():
    rng = np.random.default_rng(0)
    X = rng.poisson(1.0, size=(6, 10)).astype(float)
    X[rng.random(X.shape) < 0.3] = np.nan
    return X


def test_the_same_in_every_storage():
    X = example()
    stored = forms(X)
    assert stored["lists"].rows.form == "listed"
    assert stored["dense"].rows.form == "dense"
    assert stored["zeros"].rows.form == "sparse"
    ids = [row_ids(data)[:6] for data in stored.values()]
    np.testing.assert_array_equal(ids[0], ids[1])
    np.testing.assert_array_equal(ids[0], ids[2])


def test_every_change_of_a_row_changes_its_id():
    X = example()
    X[0] = [1, 0, 2, np.nan, 3, 0, np.nan, 1, 0, 4]
    before = row_ids(ObservedMatrix.from_data(X))
    assert len(set(before)) == 6
    for column in range(10):
        for value in (0.0, 7.0, np.nan, 1e-300):
            changed = X.copy()
            changed[0, column] = value
            after = row_ids(ObservedMatrix.from_data(changed))
            unchanged = np.array_equal(changed, X, equal_nan=True)
            assert (after[0] == before[0]) == unchanged
            np.testing.assert_array_equal(after[1:], before[1:])
    swapped = X[:, [1, 0, *range(2, 10)]]
    assert row_ids(ObservedMatrix.from_data(swapped))[0] != before[0]


def test_fingerprint_sees_every_entry():
    X = example()
    first = fingerprint(ObservedMatrix.from_data(X))
    assert fingerprint(ObservedMatrix.from_data(X.copy(order="F"))) == first
    for position in ((0, 0), (5, 9)):
        changed = X.copy()
        changed[position] = 99.0
        assert fingerprint(ObservedMatrix.from_data(changed)) != first
    for form in forms(X).values():
        assert len(fingerprint(form)) == 64
