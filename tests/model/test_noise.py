"""The noise variance: its conditional, its prior, its arguments."""

import math

import numpy as np
import pytest
from scipy import stats
from tests.statistical.checks import assert_follows

from bnmf.model.noise import CommonNoise


@pytest.mark.parametrize(("shape", "scale"), [(1.0, 1.0), (5.0, 0.3)])
@pytest.mark.parametrize(("n_observed", "squared_error"), [(0, 0.0), (1, 3.0), (20, 1e-8), (1000, 4e6)])
def test_draw_follows_the_conditional(shape, scale, n_observed, squared_error):
    rng = np.random.default_rng(0)
    draws = [CommonNoise(shape, scale).draw(n_observed, squared_error, rng) for _ in range(10_000)]
    assert_follows(draws, stats.invgamma(shape + n_observed / 2, scale=scale + squared_error / 2).cdf)


@pytest.mark.parametrize("value", [0.0, -1.0, math.inf, math.nan, "1", None])
@pytest.mark.parametrize("name", ["shape", "scale"])
def test_arguments_are_checked(name, value):
    with pytest.raises(ValueError, match=rf"{name} of CommonNoise must be a positive finite number, got"):
        CommonNoise(**{name: value})
