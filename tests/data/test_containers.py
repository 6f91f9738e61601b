"""From containers to checked arrays."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from bnmf import BayesianNMF, NMFImputer
from bnmf.data.containers import as_csr, as_floats

NAN = np.nan
X = np.array([[1.0, NAN, 0.0], [2.5, 3.0, -4.0]])


# --- dense data


DAYS = np.array([["2020-01-01", "NaT"], ["2020-01-02", "2020-01-05"]], "M8[D]")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("days", [DAYS, DAYS - DAYS[0, 0]])
def test_dates_are_no_numbers(days):
    """NumPy makes numbers of them, and of NaT -9.2e18."""
    numbers = np.ones((2, 2))
    model = BayesianNMF(1, prior="normal", n_chains=1, burn_in=1, n_draws=4, random_state=0).fit(numbers)
    objects = np.empty((2, 2), object)
    objects.flat[:] = list(days.flat)
    for given in (days, [list(row) for row in days], np.ma.masked_array(days), objects, pd.DataFrame(days)):
        for call in (
            model.fit,
            model.transform,
            model.score,
            NMFImputer(model).fit,
            NMFImputer(model).fit(numbers).transform,
        ):
            with pytest.raises((TypeError, ValueError), match=r"dates or durations|(datetime|timedelta)64"):
                call(given)
    with pytest.raises(TypeError, match="lower must be an array of numbers, got ndarray"):
        model.fit(numbers, lower=days)


# --- sparse data


def test_arrays_and_canonical_matrices_share_their_memory_and_stored_zeros_and_nan_stay_stored():
    assert as_floats(X) is X
    given = sp.csr_array(X)
    found = as_csr(given)
    assert np.shares_memory(found.data, given.data)
    assert np.shares_memory(found.indices, given.indices)
    found = as_csr(sp.coo_array(([0.0, NAN, 3.0], ([0, 0, 1], [1, 2, 0])), shape=(2, 3)))
    np.testing.assert_array_equal(found.data, [0.0, NAN, 3.0])
    np.testing.assert_array_equal(found.indices, [1, 2, 0])


# --- positions outside the shape, which compiled code would read from memory


def with_position_outside(kind, where):
    """Return a 4 x 3 matrix in a sparse format with one position outside of it."""
    given = sp.csr_array(np.ones((4, 3))).asformat(kind)
    if kind == "coo":
        given.coords[1][1] = where
    elif kind == "lil":
        given.rows[2][1] = where
    elif kind == "dok":
        given._dict[(2, where)] = 1.0
    else:
        given.indices[2] = where
    return given


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_positions_outside_are_refused():
    formats = "csr", "csc", "bsr", "coo", "lil", "dok"
    matrices = [with_position_outside(kind, where) for kind, where in product(formats, (-1, 100, 2**31 - 1))]
    for pointers in ([0, 3, 11, 9, 12], [0, 3, 6, 9, 10**6], [0, 3, 6, 9]):
        matrices.append(sp.csr_array(np.ones((4, 3))))
        matrices[-1].indptr = np.array(pointers, np.int32)
    models = [BayesianNMF(1, n_chains=1, burn_in=1, n_draws=4, unstored=unstored) for unstored in ("zero", "missing")]
    fitted = models[0].fit(np.ones((4, 3)))
    others = fitted.transform, fitted.impute, fitted.score, fitted.posterior_.posterior_of
    for matrix, call in product(matrices, (as_csr, models[0].fit, models[1].fit, *others)):
        with pytest.raises(ValueError, match=r"^X is not a valid sparse matrix: "):
            call(matrix)
