"""Priors of entries that may be negative: densities, exact draws, sums and learned rates."""

import numpy as np
import pytest
from scipy import stats
from tests.statistical.checks import assert_follows, grid_cdf

from bnmf.priors import L1, Laplace, Normal, TruncatedNormal
from bnmf.priors.names import from_record, to_record

LAWS = {
    "Normal(1.5, 4.0)": (Normal(1.5, 4.0), stats.norm(1.5, 0.5)),
    "Normal(-3.0, 0.25)": (Normal(-3.0, 0.25), stats.norm(-3.0, 2.0)),
    "Laplace(2.0)": (Laplace(2.0), stats.laplace(0.0, 0.5)),
}


@pytest.mark.parametrize(("prior", "law"), LAWS.values(), ids=LAWS)
def test_exact_draws(prior, law):
    assert_follows(prior.draw((20_000, 1), np.random.default_rng(0)), law.cdf)


@pytest.mark.parametrize(("prior", "law"), LAWS.values(), ids=LAWS)
def test_densities(prior, law):
    w = np.array([[-2.0], [0.3], [1.0]])
    values = [prior.log_density(x[None]) for x in w]
    np.testing.assert_allclose(np.diff(values), np.diff(law.logpdf(w[:, 0])))


def test_sum_of_both():
    prior, points = Normal(1.0, 2.0) + Laplace(1.5), np.linspace(-6.0, 6.0, 40_001)
    draws = prior.draw((20_000, 1), np.random.default_rng(1))
    assert_follows(draws, grid_cdf(lambda w: -((w - 1.0) ** 2) - 1.5 * np.abs(w), points))


def test_a_nonnegative_term_restricts_the_sum():
    prior = Normal(1.0, 2.0) + Laplace(0.4) + L1(0.3)
    same = TruncatedNormal(1.0, 2.0) + L1(0.7)
    for name in ("linear", "quadratic"):
        np.testing.assert_allclose(getattr(prior.coefficients((2, 3)), name), getattr(same.coefficients((2, 3)), name))
    assert prior.coefficients((2, 3)).absolute is None
    assert prior.log_density([[-1.0]]) == -np.inf
    assert not prior.is_real


@pytest.mark.parametrize(
    "prior", [Normal(0.5, [1.0, 2.0]), Normal(by="component"), Laplace(), Normal(0.0, 1.0) + Laplace(0.2)], ids=str
)
def test_records(prior):
    assert to_record(from_record(to_record(prior))) == to_record(prior)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Normal(0.0, 0.0), "precision of Normal must be positive"),
        (lambda: Normal([0.0, 1.0]), "mean of Normal must be one number if its precision is learned"),
        (lambda: Normal(0.0, 1.0, by="component"), "by='component' of Normal is for a learned precision"),
        (lambda: Laplace(-1.0), "rate of Laplace must be finite and nonnegative"),
        (lambda: Laplace(0.0).coefficients((2, 2)), "improper prior"),
        (lambda: (Normal() + Laplace(1.0)).coefficients((2, 2)), "cannot be learned in a sum"),
    ],
)
def test_bad_arguments(make, words):
    with pytest.raises(ValueError, match=words):
        make()
