"""Gamma draws, precisions that share a distribution, and learned rates: each against its density."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln

from bnmf.kernels.compiled import draw_gamma, draw_rate, draw_variances
from bnmf.model.noise import STRENGTHS
from bnmf.priors import L1, L1Squared, L2Squared, Laplace, LInf, Normal
from tests.statistical.checks import assert_counts, assert_follows, assert_uniform, grid_cdf

KEY = 11, 7


def with_variances(errors, counts, bounds, strength, scale, has_scale, strengths, key):
    """Return precisions, their scale and their strength."""
    out = np.empty(len(errors))
    scale, strength = draw_variances(errors, counts, bounds, strength, scale, has_scale, strengths, key, out)
    return 1.0 / out, scale, strength


@pytest.mark.parametrize("shape", [0.02, 0.5, 0.9999, 1.0, 1.3, 4.0, 60.0, 1e7])
def test_gamma(shape):
    n = 300_000
    draws = np.array([draw_gamma(shape, 2.5, (KEY[0], number)) for number in range(n)])
    u = stats.gamma(shape).cdf(2.5 * draws)
    assert_counts(np.histogram(u, np.linspace(0.0, 1.0, 1001))[0], np.full(1000, 1e-3))
    assert len(np.unique(draws)) > 0.999 * n


@pytest.mark.parametrize("shape", [0.0, -1.0, np.nan])
def test_a_shape_that_no_gamma_has_gives_no_number_and_ends(shape):
    assert not draw_gamma(shape, 1.0, KEY) > 0.0


@pytest.mark.parametrize(
    ("shape", "rate"),
    [(0.1, 1e-9), (0.5, 0.02), (0.5, 3.0), (1.0, 1e-6), (2.0, 1.0), (3.0, 1e-9), (5.0, 2.0), (40.0, 8.0), (40.0, 0.5),
     (40.0, 6.4), (40.0, 6.1), (40.0, 6.2), (500.0, 1e-9), (3000.0, 499.8), (3000.0, 450.0), (3000.0, 496.0)],
)  # fmt: skip
def test_bounded_gamma(shape, rate):
    """With nearly all of the mass below the bound, in part, or nearly none of it."""
    n, bound = 50_000, 6.0
    nothing = np.zeros(n), np.zeros(n, np.int64), np.array([bound])
    draws, _, _ = with_variances(*nothing, shape, rate / shape, False, np.array([shape]), KEY)
    assert draws.max() <= bound * (1.0 + 1e-15)
    points = np.linspace(-60.0 / min(shape, 1.0), 0.0, 400_001)
    assert_follows(np.log(draws / bound), grid_cdf(lambda x: shape * x - rate * bound * np.exp(x), points))


def test_a_bound_that_has_underflowed_gives_no_numbers():
    given = np.zeros(3), np.zeros(3, np.int64), np.array([6.0, 0.0, 6.0])
    draws, scale, strength = with_variances(*given, 5.0, 0.2, True, STRENGTHS, KEY)
    np.testing.assert_array_equal(np.isnan(draws), [False, True, False])
    assert np.isnan(scale)
    assert strength in STRENGTHS


@pytest.mark.parametrize("has_scale", [True, False])
def test_precisions_scale_and_strength_follow_their_conditionals(has_scale):
    """Precisions ~ Gamma(α, α s) and n entries of squared error E: Gamma(α + n / 2, α s + E / 2), and so on."""
    errors, counts, rng = np.array([2.6, 0.4, 9.0]), np.array([4, 0, 7]), np.random.default_rng(0)
    precisions, scales, strengths, of_strengths = [], [], [], []
    for i in range(5_000):
        precision, scale, strength = with_variances(
            errors, counts, np.array([1e12]), 1.5, 0.7, has_scale, STRENGTHS[:3], (i, 7)
        )
        precisions.append(precision)
        scales.append(stats.gamma.cdf(scale * (0.5 + 1.5 * precision.sum()), 0.5 + 1.5 * 3) if has_scale else scale)
        logs = [
            (a * np.log(a * scale) - gammaln(a) + (a - 1.0) * np.log(precision) - a * scale * precision).sum()
            for a in STRENGTHS[:3]
        ]
        weights = np.exp(logs - np.max(logs)) / np.exp(logs - np.max(logs)).sum()
        chosen = list(STRENGTHS[:3]).index(strength)
        strengths.append(weights[:chosen].sum() + rng.random() * weights[chosen])
        of_strengths.append(chosen)
    for j in range(3):
        gamma = stats.gamma(1.5 + counts[j] / 2, scale=1.0 / (1.5 * 0.7 + errors[j] / 2))
        assert_follows(np.array(precisions)[:, j], gamma.cdf)
    u = np.array(precisions)
    assert abs(np.corrcoef(u, rowvar=False)[np.triu_indices(3, 1)]).max() < 6.0 / np.sqrt(len(u))
    assert_uniform(scales) if has_scale else np.testing.assert_array_equal(scales, 0.7)
    assert_uniform(strengths)
    assert np.bincount(of_strengths, minlength=3).min() > 250


def test_bounds_of_each_precision():
    given = np.zeros(3), np.full(3, 9), np.array([1.0, 100.0, 0.01])
    precision, _, _ = with_variances(*given, 4.0, 1e-3, False, STRENGTHS, KEY)
    assert (precision <= given[2]).all()
    assert (precision > 0.1 * given[2]).all()


PENALTIES = {
    "gee": (L1, lambda w: np.abs(w)),
    "gl22": (L2Squared, lambda w: 0.5 * w**2),
    "laplace": (Laplace, lambda w: np.abs(w)),
    "normal": (lambda **by: Normal(0.7, **by), lambda w: 0.5 * (w - 0.7) ** 2),
}
JOINT = {
    "gl12": (L1Squared, lambda W: 0.5 * (W.sum(axis=1) ** 2).sum()),
    "glinf": (LInf, lambda W: W.max(axis=1).sum()),
}


def rates_drawn(term, W, Z, parts, n=4000):
    """Return draws of the rate of a term with the prior Gamma(2, 3), (n, 1 or components)."""
    priors = [term.with_rate(1.0).coefficients(factor.shape).kernel_prior for factor in (W, Z)]
    out = np.empty((n, W.shape[1] if term.is_by_component else 1))
    for i in range(n):
        draw_rate(W, Z, *priors, *parts, term.is_by_component, term.degree, 2.0, 3.0, (i, 7), out[i])
    return out


@pytest.mark.parametrize("parts", [((0, 3), (0, 3)), ((0, 0), (0, 3)), ((0, 2), (1, 3))], ids=str)
@pytest.mark.parametrize("name", PENALTIES)
def test_rate_follows_its_conditional(name, parts):
    """Gamma(a + entries / degree, b + penalty at rate 1): of both factors or of one, without what is fixed."""
    rng, (make, penalty) = np.random.default_rng(0), PENALTIES[name]
    W, Z = rng.exponential(size=(5, 3)), rng.exponential(size=(4, 3))
    terms = make(by="factor"), make(by="component")
    if terms[0].is_real:
        W, Z = W - 0.5, Z - 0.5
    used = [penalty(factor[:, slice(*part)]) for factor, part in zip((W, Z), parts, strict=True)]
    (draws,) = rates_drawn(terms[0], W, Z, parts).T
    n_entries = sum(part.size for part in used)
    rate = 3.0 + sum(part.sum() for part in used)
    assert_follows(draws, stats.gamma(2.0 + n_entries / terms[0].degree, scale=1.0 / rate).cdf)
    draws = rates_drawn(terms[1], W, Z, parts)
    for k in range(3):
        own = [factor[:, k] for factor, part in zip((W, Z), parts, strict=True) if part[0] <= k < part[1]]
        n_entries, rate = sum(map(len, own)), 3.0 + sum(penalty(w).sum() for w in own)
        assert_follows(draws[:, k], stats.gamma(2.0 + n_entries / terms[1].degree, scale=1.0 / rate).cdf)


@pytest.mark.parametrize("name", JOINT)
def test_rate_of_a_norm_of_rows_follows_its_conditional(name):
    rng, (make, penalty) = np.random.default_rng(0), JOINT[name]
    W, Z, parts = rng.exponential(size=(5, 3)), rng.exponential(size=(4, 3)), ((0, 3), (0, 2))
    (draws,) = rates_drawn(make(), W, Z, parts).T
    rate = 3.0 + penalty(W) + penalty(Z[:, :2])
    assert_follows(draws, stats.gamma(2.0 + 23 / make().degree, scale=1.0 / rate).cdf)
