"""Exact prior draws against integration, and against the distributions that are known by name."""

import numpy as np
import pytest
from scipy import stats
from tests.statistical.checks import assert_follows, grid_cdf
from tests.statistical.prior_pairs import rates

from bnmf.priors import L1, L1Squared, L2Squared, Laplace, LInf, Normal, Prior, TruncatedNormal

N = 20_000
VECTOR = [0.5, 2.0]
PRIORS = [
    L1(1.0), L1(VECTOR), L1Squared(1.0), L2Squared(VECTOR), LInf(2.0), L2Squared(1.0) + LInf(1.0),
    L2Squared(VECTOR) + LInf(3.0), L1(VECTOR) + L2Squared(1.0), L1Squared(1.0) + LInf(1.0),
    L1Squared(0.5) + L2Squared(VECTOR), L1Squared(2.0) + L1(VECTOR) + LInf(0.5), TruncatedNormal([-1.0, 1.5], 1.0),
    TruncatedNormal([-1.0, 1.5], [4.0, 1.0]) + LInf(1.0), TruncatedNormal(2.0, 1.0) + L1Squared(1.0),
    TruncatedNormal(1.0, 2.0) + L1(VECTOR),
]  # fmt: skip
STATISTICS = {
    "first": lambda w: w[..., 0],
    "second": lambda w: w[..., 1],
    "sum": lambda w: w.sum(axis=-1),
    "largest": lambda w: w.max(axis=-1),
    "difference": lambda w: w[..., 0] - w[..., 1],
}


def cdf_of(statistic, prior: Prior):
    """Return the distribution function of a statistic of one row of two entries, by summing the density over a grid."""
    middle = (np.arange(500) + 0.5) / 500 * 20.0
    # Finer near zero: the squares of an even grid.
    edge = middle**2 / 20.0
    w = np.stack(np.meshgrid(edge, edge, indexing="ij"), axis=-1)
    c = prior.coefficients((1, 2))
    w1, w2 = w[..., 0], w[..., 1]
    penalty = (
        (c.linear * w).sum(-1) + 0.5 * (c.quadratic * w**2).sum(-1) + c.pairwise * w1 * w2 + c.max_rate * w.max(-1)
    )
    mass = np.exp(penalty.min() - penalty) * np.outer(middle, middle)
    order = np.argsort(statistic(w), axis=None)
    total = np.cumsum(mass.ravel()[order])
    values = statistic(w).ravel()[order]
    return lambda x: np.interp(x, values, total / total[-1])


@pytest.mark.parametrize("prior", PRIORS, ids=str)
def test_draws_of_two_entries_against_integration(prior):
    draws = prior.draw((N, 2), np.random.default_rng(0))
    for statistic in STATISTICS.values():
        assert_follows(statistic(draws), cdf_of(statistic, prior))


@pytest.mark.parametrize(
    ("prior", "law"),
    [
        (Normal(1.5, 4.0), stats.norm(1.5, 0.5)),
        (Normal(-3.0, 0.25), stats.norm(-3.0, 2.0)),
        (Laplace(2.0), stats.laplace(0.0, 0.5)),
    ],
    ids=["normal", "wide normal", "Laplace"],
)
def test_draws_of_real_entries(prior, law):
    assert_follows(prior.draw((N, 1), np.random.default_rng(0)), law.cdf)


def test_draws_of_a_sum_of_real_priors():
    prior, points = Normal(1.0, 2.0) + Laplace(1.5), np.linspace(-6.0, 6.0, 40_001)
    draws = prior.draw((N, 1), np.random.default_rng(1))
    assert_follows(draws, grid_cdf(lambda w: -((w - 1.0) ** 2) - 1.5 * np.abs(w), points))


@pytest.mark.parametrize(
    "of_rates",
    [L1, L2Squared, lambda r: L1(r) + LInf(1.0), lambda r: L1(r) + L1Squared(1.0), lambda r: TruncatedNormal(r, r)],
    ids=["L1", "L2Squared", "L1 + LInf", "L1 + L1Squared", "TruncatedNormal"],
)
def test_every_row_has_its_own_rates(of_rates):
    three = rates(3, 2)
    draws = of_rates(np.tile(three, (2000, 1))).draw((6000, 2), np.random.default_rng(1))
    for i in range(3):
        for statistic in STATISTICS.values():
            assert_follows(statistic(draws[i::3]), cdf_of(statistic, of_rates(three[i])))


@pytest.mark.parametrize("K", [1, 2, 7, 50])
def test_largest_entry_under_linf_is_gamma(K):
    w = LInf(0.1).draw((N, K), np.random.default_rng(2))
    assert_follows(w.max(axis=1), stats.gamma(K, scale=10.0).cdf)
    if K > 1:  # the largest is any of them, and the others are uniform below it
        assert_follows(np.sort(w, axis=1)[:, -2] / w.max(axis=1), stats.beta(K - 1, 1).cdf)


@pytest.mark.parametrize("K", [1, 2, 7, 50])
def test_row_sum_under_l1_squared_is_chi(K):
    w = L1Squared(0.1).draw((N, K), np.random.default_rng(3))
    assert_follows(0.1 * w.sum(axis=1) ** 2, stats.chi2(K).cdf)
    if K > 1:
        assert_follows(w[:, 0] / w.sum(axis=1), stats.beta(1, K - 1).cdf)


@pytest.mark.parametrize("rate", [1e-6, 0.1, 1e6])
@pytest.mark.parametrize(
    "of_rate",
    [L1, L1Squared, L2Squared, LInf, lambda r: L2Squared(r) + LInf(r), lambda r: L1Squared(r) + LInf(r)],
    ids=["gee", "gl12", "gl22", "glinf", "gl22inf", "L1Squared + LInf"],
)
def test_draws_of_any_scale(of_rate, rate):
    w = of_rate(rate).draw((500, 20), np.random.default_rng(4))
    assert np.isfinite(w).all()
    assert (w > 0).all()
    assert len(np.unique(w)) == w.size
