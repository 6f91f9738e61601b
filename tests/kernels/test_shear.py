"""The shear move leaves the product W Z and the prior distributions unchanged, and draws ε from its conditional."""

import numpy as np
import pytest

from bnmf.kernels.compiled import shear, testing
from bnmf.priors import L1, L1Squared, L2Squared, LInf, TruncatedNormal
from bnmf.sampler.moves import can_shear
from tests.kernels.draws import used_memory
from tests.statistical.calibration import Problem, statistics
from tests.statistical.checks import assert_follows, assert_same, grid_cdf
from tests.statistical.prior_pairs import NAMES, pairs

SHEARED = [
    name
    for name, (prior_W, prior_Z) in pairs(2, 2, 2).items()
    if can_shear(prior_W.coefficients((2, 2)), prior_Z.coefficients((2, 2)))
]

MEMORY = used_memory()
# Its draws are rejected most often.
SLOW = "L1Squared + LInf"


def kernel_priors(prior_W, prior_Z, M, N, K):
    """Return the priors as the kernel takes them."""
    return prior_W.coefficients((M, K)).kernel_prior, prior_Z.transposed().coefficients((N, K)).kernel_prior


def sheared(W, Zt, priors, key, partners=(0, 4)):
    W, Zt = W.copy(), Zt.copy()
    shear(W, Zt, *priors, 9, key, *partners, MEMORY)
    return W, Zt


@pytest.mark.parametrize("name", SHEARED)
def test_product_is_unchanged(name):
    rng = np.random.default_rng(0)
    W, Zt = rng.exponential(size=(11, 3)), rng.exponential(size=(4, 3))
    new_W, new_Zt = sheared(W, Zt, kernel_priors(*pairs(11, 4, 3)[name], 11, 4, 3), 1)
    np.testing.assert_allclose(new_W @ new_Zt.T, W @ Zt.T, rtol=1e-12)
    for factor, prior in zip((new_W, new_Zt), pairs(11, 4, 3)[name], strict=True):
        assert prior.is_real or (factor >= 0).all()
    assert not np.isclose(new_W, W).all(axis=0).any()
    assert not np.isclose(new_Zt, Zt).all(axis=0).any()


@pytest.mark.parametrize(
    "name", [name for name in SHEARED if name != SLOW] + [pytest.param(SLOW, marks=pytest.mark.proof)]
)
def test_prior_is_invariant(name):
    n = 600 if name == "L1Squared + LInf" else 2000  # its exact draws take long
    for shape in [(5, 2), (1, 9)]:
        prior = pairs(*shape, 3)[name]
        problem = Problem(prior, shape)
        priors = kernel_priors(*prior, *shape, 3)
        rng = np.random.default_rng(NAMES.index(name))
        W, Zt, sigma2 = problem.truths(n, rng)
        for i in range(len(W)):
            W[i], Zt[i] = sheared(W[i], Zt[i], priors, i, partners=(0, 6))
        fresh = statistics(*problem.truths(2 * n, rng))
        for after, from_prior in zip(statistics(W, Zt, sigma2).T, fresh.T, strict=True):
            assert_same(after, from_prior)


@pytest.mark.parametrize(
    ("prior_W", "prior_Z"),
    [
        (L1(1.0), L1(2.0)),
        (L1(3.0), L1(0.1)),
        (L2Squared(1.0), L1(1.0)),
        (L1Squared(1.0), L2Squared(2.0)),
        (L1(np.linspace(0.1, 5.0, 12).reshape(6, 2)), L2Squared(np.array([[3.0, 0.2, 1.0], [1.0, 2.0, 0.3]]))),
        (TruncatedNormal(3.0, 4.0), TruncatedNormal(2.0, 3.0)),
        (LInf(2.0), L2Squared(1.0)),
        (L1(0.5) + LInf(1.0), LInf(3.0)),
        (TruncatedNormal(3.0, 4.0) + LInf(1.0), TruncatedNormal(2.0, 3.0) + LInf(1.0)),
    ],
    ids=[
        "l1", "l1-steep", "l2-l1", "l12-l22", "by-entry", "truncated-normal", "linf", "linf-both",
        "truncated-normal-linf",
    ],
)  # fmt: skip
def test_shear_follows_its_conditional(prior_W, prior_Z):
    """The first ε, for j = 0 and k = 1, against the joint density of the priors along the shear, from scratch."""
    rng = np.random.default_rng(3)
    W, Zt = rng.exponential(size=(6, 2)), rng.exponential(size=(3, 2))
    low, high = -(W[:, 0] / W[:, 1]).min(), (Zt[:, 1] / Zt[:, 0]).min()
    of_Z = prior_Z.transposed()

    def moved(epsilon):
        new_W, new_Z = W.copy(), Zt.copy()
        new_W[:, 0] += epsilon * W[:, 1]
        new_Z[:, 1] -= epsilon * Zt[:, 0]
        return np.maximum(new_W, 0.0), np.maximum(new_Z, 0.0)

    def log_density(epsilon):
        new_W, new_Z = moved(epsilon)
        return prior_W.log_density(new_W) + of_Z.log_density(new_Z)

    grid = np.linspace(low, high, 801)
    cdf = grid_cdf(lambda points: np.array([log_density(epsilon) for epsilon in points]), grid)
    # One step of slice sampling is not a draw, but from a draw it is one again.
    starts = np.interp(np.random.default_rng(5).uniform(size=4000), cdf(grid), grid)
    priors = kernel_priors(prior_W, prior_Z, 6, 3, 2)
    drawn = np.empty(len(starts))
    for key, start in enumerate(starts):
        new_W, new_Z = moved(start)
        testing.shear_first_pair(new_W, new_Z, *priors, 9, key)
        drawn[key] = (new_W[0, 0] - W[0, 0]) / W[0, 1]
        assert abs(new_Z[:, 1] - moved(drawn[key])[1][:, 1]).max() < 1e-12
    assert_follows(drawn, cdf)
    assert abs(np.corrcoef(starts, drawn)[0, 1]) < 0.9


def test_every_pair_comes_in_turn():
    rng = np.random.default_rng(1)
    W, Zt = rng.exponential(size=(5, 4)), rng.exponential(size=(3, 4))
    priors = kernel_priors(L1(1.0), L1(1.0), 5, 3, 4)
    whole = sheared(W, Zt, priors, 1, partners=(0, 3))
    again = sheared(W, Zt, priors, 1, partners=(3, 6))
    for one, other in zip(whole, again, strict=True):
        np.testing.assert_array_equal(one, other)  # distances 1, 2, 3 and again 1, 2, 3, from the same streams
    assert not np.allclose(sheared(W, Zt, priors, 1, partners=(1, 4))[0], whole[0])


def test_components_that_are_zero_stay():
    rng = np.random.default_rng(2)
    W, Zt = rng.exponential(size=(5, 3)), rng.exponential(size=(4, 3))
    W[:, 1] = 0.0
    new_W, new_Zt = sheared(W, Zt, kernel_priors(L1(1.0), L1(1.0), 5, 4, 3), 1)
    assert np.isfinite(new_W).all()
    assert np.isfinite(new_Zt).all()
    np.testing.assert_allclose(new_W @ new_Zt.T, W @ Zt.T, rtol=1e-12)


def test_a_row_of_zeros_stays_within_the_bounds():
    rng = np.random.default_rng(4)
    W, Zt = rng.exponential(size=(5, 3)), rng.exponential(size=(4, 3))
    W[2] = 0.0
    W[3, 0] = 0.0
    new_W, new_Zt = sheared(W, Zt, kernel_priors(L1(1.0), L1(1.0), 5, 4, 3), 7)
    assert (new_W[2] == 0.0).all()
    assert (new_W >= 0).all()
    assert (new_Zt >= 0).all()
    np.testing.assert_allclose(new_W @ new_Zt.T, W @ Zt.T, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("prior_Z", [L1(1.0), L1(1.0) + LInf(1.0)], ids=str)
def test_a_density_beyond_the_range_of_floating_point_gives_no_numbers(prior_Z):
    priors = kernel_priors(TruncatedNormal(1e200, 1.0), prior_Z, 3, 4, 2)
    W, Zt = sheared(np.full((3, 2), 1e200), np.ones((4, 2)), priors, 1)
    assert np.isnan(W).any()
    assert np.isnan(Zt).any()
