"""Products of paired rows and columns of draws."""

import numpy as np
import pytest

from bnmf.kernels.compiled import products_of_pairs


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


def test_positions_and_shapes_are_checked():
    W, Z, out = np.ones((2, 3, 4)), np.ones((2, 4, 5)), np.empty((2, 1))
    for rows, columns in (([3], [0]), ([-1], [0]), ([0], [5])):
        with pytest.raises(ValueError, match="no such rows or columns"):
            products_of_pairs(W, Z, np.array(rows), np.array(columns), out)
    with pytest.raises(ValueError, match="same draws and components"):
        products_of_pairs(W, Z[:, :3], np.zeros(1, int), np.zeros(1, int), out)
    with pytest.raises(ValueError, match="out must have 4 elements"):
        products_of_pairs(W, Z, np.zeros(2, int), np.zeros(2, int), out)
    with pytest.raises(TypeError, match="draws must be floats"):
        products_of_pairs(W.astype(int), Z, np.zeros(1, int), np.zeros(1, int), out)
