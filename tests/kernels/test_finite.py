"""The check for numbers that are not finite."""

import numpy as np
import pytest

from bnmf.kernels.compiled import all_finite


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (40, 9), (1, 31)])
def test_numbers_that_are_not_finite_are_found_wherever_they_are(shape):
    W = np.random.default_rng(0).normal(size=shape)
    W[0, 0] = np.finfo(float).max
    assert all_finite(W.ravel())
    for place in np.ndindex(*shape):
        for value in (np.nan, np.inf, -np.inf):
            changed = W.copy()
            changed[place] = value
            assert not all_finite(changed.ravel())
