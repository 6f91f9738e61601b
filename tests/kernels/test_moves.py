"""The moves leave the product W Z and the prior distributions unchanged, and draw from their conditionals."""

import numpy as np
import pytest
from scipy import interpolate, stats

from bnmf.kernels.compiled import rescale, shear
from bnmf.priors import L1, L1Squared, L2Squared, LInf, TruncatedNormal
from bnmf.sampler.moves import can_shear
from tests.kernels.draws import used_memory
from tests.statistical.calibration import Problem, of_factors
from tests.statistical.checks import assert_follows, assert_same, grid_cdf
from tests.statistical.prior_pairs import NAMES, pairs

pytestmark = pytest.mark.filterwarnings("ignore:n_components=3 is larger")

MEMORY = used_memory()


def kernel_priors(prior_W, prior_Z, M, N, K):
    """Return the priors as the kernels take them."""
    return prior_W.coefficients((M, K)).kernel_prior, prior_Z.transposed().coefficients((N, K)).kernel_prior


def rescaled(W, Zt, priors, key):
    W, Zt = W.copy(), Zt.copy()
    rescale(W, Zt, *priors, (9, key), MEMORY)
    return W, Zt


def sheared(W, Zt, priors, key, partners=(0, 4)):
    W, Zt = W.copy(), Zt.copy()
    shear(W, Zt, *priors, (9, key), MEMORY, *partners)
    return W, Zt


MOVES = {"rescale": rescaled, "shear": sheared}
CASES = [
    (move, name)
    for name, (prior_W, prior_Z) in pairs(2, 2, 2).items()
    for move in MOVES
    if move == "rescale" or can_shear(prior_W.coefficients((2, 2)), prior_Z.coefficients((2, 2)))
]
SLOW = "L1Squared + LInf"  # its draws are rejected most often


@pytest.mark.parametrize(("move", "name"), CASES)
def test_product_is_unchanged(move, name):
    rng = np.random.default_rng(0)
    W, Zt = rng.exponential(size=(11, 3)), rng.exponential(size=(4, 3))
    new_W, new_Zt = MOVES[move](W, Zt, kernel_priors(*pairs(11, 4, 3)[name], 11, 4, 3), 1)
    np.testing.assert_allclose(new_W @ new_Zt.T, W @ Zt.T, rtol=1e-12)
    for old, new, prior in zip((W, Zt), (new_W, new_Zt), pairs(11, 4, 3)[name], strict=True):
        assert prior.is_real or (new >= 0).all()
        assert not np.isclose(new, old).all(axis=0).any()
    if move == "rescale":
        ratios = new_W / W
        np.testing.assert_allclose(ratios, np.tile(ratios[0], (11, 1)), rtol=1e-12)
        assert len(np.unique(ratios[0])) == 3


@pytest.mark.parametrize(
    ("move", "name"), [pytest.param(*case, marks=[pytest.mark.proof] * (case[1] == SLOW)) for case in CASES]
)
def test_prior_is_invariant(move, name):
    n = 600 if name == SLOW else 2000
    for shape in [(5, 2), (1, 4 if move == "rescale" else 9)]:
        prior = pairs(*shape, 3)[name]
        problem, priors = Problem(prior, shape=shape), kernel_priors(*prior, *shape, 3)
        rng = np.random.default_rng(NAMES.index(name))
        W, Zt, _ = problem.factors(n, rng)
        for i in range(n):
            if move == "shear":
                W[i], Zt[i] = sheared(W[i], Zt[i], priors, i, partners=(0, 6))
            else:
                for again in range(3):
                    rescale(W[i], Zt[i], *priors, (again, i), MEMORY)
        fresh_W, fresh_Zt, _ = problem.factors(2 * n, rng)
        for after, from_prior in zip(of_factors(W, Zt).T, of_factors(fresh_W, fresh_Zt).T, strict=True):
            assert_same(after, from_prior)


@pytest.mark.parametrize(("move", "name"), CASES)
def test_zero_components_stay(move, name):
    rng = np.random.default_rng(2)
    priors = kernel_priors(*pairs(5, 4, 3)[name], 5, 4, 3)
    for side in range(2):
        factors = rng.exponential(size=(5, 3)), rng.exponential(size=(4, 3))
        factors[side][:, 1] = 0.0
        W, Zt = MOVES[move](*factors, priors, 1)
        assert np.isfinite(W).all()
        assert np.isfinite(Zt).all()
        np.testing.assert_allclose(W @ Zt.T, factors[0] @ factors[1].T, rtol=1e-12)
        if move == "rescale":
            np.testing.assert_array_equal(W[:, 1], factors[0][:, 1])
            np.testing.assert_array_equal(Zt[:, 1], factors[1][:, 1])
            assert not np.isclose(W, factors[0]).all(axis=0)[[0, 2]].any()


@pytest.mark.parametrize(
    ("move", "prior_Z"), [("rescale", L1(1.0)), ("shear", L1(1.0)), ("shear", L1(1.0) + LInf(1.0))], ids=str
)
def test_a_density_beyond_the_range_of_floating_point_gives_no_numbers(move, prior_Z):
    priors = kernel_priors(TruncatedNormal(1e200, 1.0), prior_Z, 3, 4, 2)  # infinite linear and quadratic terms
    W, Zt = MOVES[move](np.full((3, 2), 1e200), np.ones((4, 2)), priors, 1)
    assert np.isnan(W).all() if move == "rescale" else np.isnan(W).any()
    assert np.isnan(Zt).all() if move == "rescale" else np.isnan(Zt).any()


# --- rescaling


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
    problem = Problem(prior, shape=(1, 1))
    priors = kernel_priors(prior, prior, 1, 1, 3)
    rng = np.random.default_rng(8)
    W, Zt, _ = problem.factors(20_000, rng)
    for i in range(len(W)):
        for again in range(5):
            rescale(W[i], Zt[i], *priors, (again, i), MEMORY)
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
    priors = kernel_priors(prior_W, prior_Z, 6, 2, 1)
    ends = [
        np.log(rescaled(np.exp(u) * W, np.exp(-u) * Zt, priors, i)[0][0, 0] / W[0, 0]) for i, u in enumerate(starts)
    ]
    assert_follows(ends, cdf)
    assert abs(np.corrcoef(starts, ends)[0, 1]) < 0.7


# --- shearing


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
        new_W, new_Z = sheared(new_W, new_Z, priors, key, partners=(0, 1))  # k = 0 and j = 1 are sheared next
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
