"""The rescaling move leaves the product W Z and the prior distributions unchanged."""

import numpy as np
import pytest
from scipy import interpolate, stats

from bnmf.kernels.compiled import Memory, rescale
from bnmf.priors import L1, L1Squared, L2Squared, LInf, TruncatedNormal
from tests.kernels.draws import used_memory
from tests.statistical.calibration import Problem, statistics
from tests.statistical.checks import assert_follows, assert_same, grid_cdf
from tests.statistical.prior_pairs import NAMES, pairs

MEMORY = used_memory()
# Its draws are rejected most often.
SLOW = "L1Squared + LInf"


def coefficients(prior_W, prior_Z, M, N, K):
    """Return both priors in the form of the kernels."""
    return prior_W.coefficients((M, K)).kernel_prior, prior_Z.transposed().coefficients((N, K)).kernel_prior


def rescaled(W, Zt, numbers, key):
    W, Zt = W.copy(), Zt.copy()
    rescale(W, Zt, *numbers, 9, key, MEMORY)
    return W, Zt


def test_product_is_unchanged():
    for name in NAMES:
        rng = np.random.default_rng(0)
        W, Zt = rng.exponential(size=(6, 3)), rng.exponential(size=(4, 3))
        new_W, new_Zt = rescaled(W, Zt, coefficients(*pairs(6, 4, 3)[name], 6, 4, 3), 1)
        np.testing.assert_allclose(new_W @ new_Zt.T, W @ Zt.T, rtol=1e-12)
        ratios = new_W / W
        np.testing.assert_allclose(ratios, np.tile(ratios[0], (6, 1)), rtol=1e-12)
        assert len(np.unique(ratios[0])) == 3
        assert not np.isclose(ratios[0], 1.0).any()


@pytest.mark.parametrize(
    "name", [name for name in NAMES if name != SLOW] + [pytest.param(SLOW, marks=pytest.mark.proof)]
)
def test_prior_is_invariant(name):
    n = 600 if name == "L1Squared + LInf" else 2000  # its exact draws take long
    for shape in [(5, 2), (1, 4)]:
        prior = pairs(*shape, 3)[name]
        problem = Problem(prior, shape)
        numbers, memory = coefficients(*prior, *shape, 3), Memory()
        rng = np.random.default_rng(NAMES.index(name))
        W, Zt, sigma2 = problem.truths(n, rng)
        for i in range(len(W)):
            for again in range(3):
                rescale(W[i], Zt[i], *numbers, again, i, memory)
        fresh = statistics(*problem.truths(2 * n, rng))
        for after, from_prior in zip(statistics(W, Zt, sigma2).T, fresh.T, strict=True):
            assert_same(after, from_prior)


# With one row in each factor, a row is a draw from its prior with a statistic of known distribution; drawing a scale
# given the old scales of the other components changes it.
@pytest.mark.parametrize(
    ("prior", "statistic", "distribution"),
    [
        (L1Squared(1.0), lambda factor: factor.sum(axis=(1, 2)) ** 2, stats.chi2(3)),
        (LInf(1.0), lambda factor: factor.max(axis=(1, 2)), stats.gamma(3)),
    ],
    ids=["pairwise", "max"],
)
def test_scales_are_drawn_given_the_new_scales_of_other_components(prior, statistic, distribution):
    problem = Problem(prior, (1, 1))
    numbers, memory = coefficients(prior, prior, 1, 1, 3), Memory()
    rng = np.random.default_rng(8)
    W, Zt, _ = problem.truths(20_000, rng)
    for i in range(len(W)):
        for again in range(5):
            rescale(W[i], Zt[i], *numbers, again, i, memory)
    for factor in (W, Zt):
        assert_follows(statistic(factor), distribution.cdf)


@pytest.mark.parametrize(
    ("prior_W", "prior_Z"),
    [
        (L1(1.0), L1(2.0)),
        (L2Squared(1.0), L1(1.0)),
        (LInf(1.0), L2Squared(1.0) + LInf(0.5)),
        (TruncatedNormal(3.0, 4.0), TruncatedNormal(2.0, 3.0)),  # not log-concave in the log scale
    ],
    ids=str,
)
def test_scale_follows_its_conditional(prior_W, prior_Z):
    rng = np.random.default_rng(3)
    W, Zt = rng.exponential(size=(6, 1)), rng.exponential(size=(2, 1))
    points = np.linspace(-8.0, 8.0, 1001)

    def log_density(grid):
        orbit = [prior_W.log_density(np.exp(u) * W) + prior_Z.log_density(np.exp(-u) * Zt) for u in grid]
        return (len(W) - len(Zt)) * grid + np.array(orbit)

    cdf = grid_cdf(log_density, points)
    mass, first = np.unique(cdf(points), return_index=True)
    starts = interpolate.interp1d(mass, points[first])(rng.uniform(size=5000))
    numbers = coefficients(prior_W, prior_Z, 6, 2, 1)
    ends = [
        np.log(rescaled(np.exp(u) * W, np.exp(-u) * Zt, numbers, i)[0][0, 0] / W[0, 0]) for i, u in enumerate(starts)
    ]
    assert_follows(ends, cdf)
    assert abs(np.corrcoef(starts, ends)[0, 1]) < 0.7


def test_zero_component_is_not_rescaled():
    for name in NAMES:
        for side in ["W", "Z"]:
            W, Zt = np.ones((5, 3)), np.ones((4, 3))
            (W if side == "W" else Zt)[:, 1] = 0.0
            new_W, new_Zt = rescaled(W, Zt, coefficients(*pairs(5, 4, 3)[name], 5, 4, 3), 1)
            np.testing.assert_array_equal(new_W[:, 1], W[:, 1])
            np.testing.assert_array_equal(new_Zt[:, 1], Zt[:, 1])
            assert np.isfinite(new_W).all()
            assert np.isfinite(new_Zt).all()
            assert not np.isclose(new_W[:, [0, 2]], 1.0).any()


def test_a_density_beyond_the_range_of_floating_point_gives_no_numbers():
    huge = TruncatedNormal(1e200, 1.0)  # the linear and the quadratic term are both infinite
    W, Zt = rescaled(np.full((3, 2), 1e200), np.ones((4, 2)), coefficients(huge, L1(1.0), 3, 4, 2), 1)
    assert np.isnan(W).all()
    assert np.isnan(Zt).all()
