"""Products of paired rows and columns of draws, and the check for numbers that are not finite."""

import numpy as np
import pytest

from bnmf.kernels.compiled import all_finite, products_of_pairs


@pytest.mark.parametrize("n_components", [1, 4, 7])
@pytest.mark.parametrize("precision", [np.float64, np.float32])
def test_products_of_any_strides(n_components, precision):
    rng = np.random.default_rng(0)
    W, Z = rng.random((n_components, 9, 6)).T, rng.random((6, n_components, 11), precision)[::2, :, ::-1]
    W = W[::2].astype(precision, order="K")
    rows, columns = rng.integers(0, 9, 25), rng.integers(0, 11, 25)
    out = np.empty((3, 25))
    products_of_pairs(W, Z, rows, columns, out)
    wanted = np.einsum("sik,ski->si", W[:, rows].astype(float), Z[:, :, columns].astype(float))
    np.testing.assert_allclose(out, wanted, rtol=1e-14)


def test_numbers_that_are_not_finite_are_found_wherever_they_are():
    numbers = np.random.default_rng(0).normal(size=(3, 31))
    numbers[0, 0] = np.finfo(float).max
    assert all_finite(numbers)
    for place in np.ndindex(*numbers.shape):
        for value in (np.nan, np.inf, -np.inf):
            changed = numbers.copy()
            changed[place] = value
            assert not all_finite(changed)
