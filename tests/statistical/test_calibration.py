"""Joint correctness of the whole sampler, for every prior, with and without missing entries and moves."""

from itertools import islice

import numpy as np
import pytest
from scipy import stats

from bnmf.model.noise import common
from bnmf.priors import L2Squared, LInf
from bnmf.priors.names import MODELS
from bnmf.sampler.moves import PLAIN, Moves
from tests.reference import reference_sample
from tests.statistical.calibration import (
    NOISE,
    RANKED,
    THINNING,
    Problem,
    Truth,
    assert_returns_to_prior,
    ranks,
    returned_to_prior,
    statistics,
)
from tests.statistical.checks import P_VALUE, assert_counts, assert_same, same
from tests.statistical.prior_pairs import NAMES, pairs

PRIORS = pairs(4, 3, 3)
PAPER_RULE = L2Squared(1.0) + LInf(1.0, rule="paper")


def assert_returns(name, missing, moves, replicates):
    problem = Problem(PRIORS[name], missing=missing, moves=moves)
    assert_returns_to_prior(problem, replicates, seed=NAMES.index(name))


# Of each kind of conditional one; the proofs have every prior.
SOME = (
    "gee", "gl22", "gl22inf", "L1Squared + L1 + TruncatedNormal", "normal + Laplace", "matrix rates + LInf",
    "matrix rates + L1Squared",
)  # fmt: skip


@pytest.mark.parametrize("name", SOME)
def test_sweeps_from_a_joint_draw_return_to_the_prior(name):
    assert_returns(name, 0.3, Moves(), replicates=600)


@pytest.mark.parametrize("name", ["gl12", "gee and gl22inf", "Laplace and normal by entry"])
def test_without_missing_entries_and_moves(name):
    """The code of each row alone is that of the test above; here rows share their sums."""
    assert_returns(name, 0.0, PLAIN, replicates=600)


@pytest.mark.parametrize("missing", [0.0, 0.5])
def test_sweeps_of_limited_data_return_to_the_prior(missing):
    problem = Problem(PRIORS["gl22inf"], missing=missing, is_coarse=True)
    assert_returns_to_prior(problem, 600, seed=int(10 * missing))


@pytest.mark.proof
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("moves", [Moves(), PLAIN, Moves(3, False, 0), Moves(1, False, 5)], ids=str)
@pytest.mark.parametrize("missing", [0.0, 0.5])
def test_sweeps_from_many_joint_draws_return_to_the_prior(name, missing, moves):
    assert_returns(name, missing, moves, replicates=5000)


@pytest.mark.proof
def test_paper_rule_does_not_return_to_the_prior():
    after, fresh = returned_to_prior(Problem(PAPER_RULE, missing=0.0), replicates=5000, seed=1)
    assert same(after[:, 0], fresh[:, 0]) < P_VALUE


@pytest.mark.proof
@pytest.mark.parametrize("model", MODELS)
def test_ranks_are_uniform(model):
    counts = rank_counts(Problem(MODELS[model](1.0), missing=0.0))
    for of_statistic in counts:
        assert_counts(of_statistic, np.full(20, 0.05))


@pytest.mark.proof
@pytest.mark.parametrize("rule", ["exact", "paper"])
def test_only_the_exact_rule_has_uniform_ranks(rule):
    prior = L2Squared(1.0) + LInf(1.0, rule=rule)
    counts = rank_counts(Problem(prior, missing=0.0, moves=PLAIN), thinning=10)
    pvalue = stats.chisquare(counts[RANKED.index("Σ max W")]).pvalue
    assert (pvalue > P_VALUE) == (rule == "exact"), f"p = {pvalue:.1e}"


def rank_counts(problem, thinning=THINNING):
    """Return how often each of 20 ranks came up, for every statistic."""
    found = ranks(problem, replicates=1500, draws=19, seed=1, thinning=thinning)
    return [np.bincount(column, minlength=20) for column in found.T]


@pytest.mark.proof
@pytest.mark.parametrize("order", ["interleaved", "blocks"])
@pytest.mark.parametrize("model", MODELS)
def test_sweeps_of_the_reference_return_to_the_prior(model, order):
    problem = Problem(MODELS[model](1.0))
    rng = np.random.default_rng(1)
    after = []
    for W, Zt, noise, _ in problem.truths(400, rng):
        A = W @ Zt.T + np.sqrt(noise.column) * rng.normal(size=problem.shape)
        observed = rng.uniform(size=problem.shape) < 0.7
        observed[:, 0] = observed[0] = True  # it divides by the precision, so every row and column needs something
        prior = {"noise_shape": NOISE.shape, "noise_scale": NOISE.scale}
        chain = reference_sample(A, observed, W, Zt.T, model, 1.0, **prior, order=order, rng=rng)
        *_, (W_after, Z_after, sigma2_after) = islice(chain, 3)
        after.append(statistics(Truth(W_after, Z_after.T, common(sigma2_after), ()))[: len(RANKED)])
    fresh = [statistics(truth)[: len(RANKED)] for truth in problem.truths(4000, rng)]
    for got, expected in zip(np.array(after).T, np.array(fresh).T, strict=True):
        assert_same(got, expected)
