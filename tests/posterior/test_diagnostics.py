"""R-hat, effective sample sizes, and the sentences about them."""

import numpy as np
import pytest
from scipy import stats

from bnmf.posterior.diagnostics import Quantity, problems, rhat_and_ess, table, verdict

rng = np.random.default_rng(0)
GOOD = rng.normal(size=(4, 200))
SHIFTED = GOOD + np.array([0.0, 0.0, 0.0, 2.0])[:, None]
SLOW = np.cumsum(rng.normal(size=(4, 200)), axis=1)


def look(*draws):
    quantities = [Quantity(f"quantity {i}", x) for i, x in enumerate(draws)]
    return quantities, table(quantities)


def test_good_chains():
    quantities, facts = look(GOOD)
    assert facts["r_hat"].iloc[0] < 1.02
    assert facts["ess"].iloc[0] > 500
    assert facts["mean"].iloc[0] == pytest.approx(GOOD.mean())
    assert problems(quantities, facts) == []
    assert verdict(quantities, facts).startswith("No sign of trouble")


def test_one_chain_elsewhere():
    quantities, facts = look(GOOD, SHIFTED)
    (problem,) = problems(quantities, facts)
    assert problem.startswith("R-hat of the quantity 1 is 1.")
    assert problem.endswith("after 200 draws: double `burn_in`, or the rank may be too high")
    assert verdict(quantities, facts).startswith("Not converged: R-hat of the quantity 1 is")


def test_of_many_the_worst_is_shown():
    many = np.stack([GOOD, SHIFTED, GOOD], axis=2)
    _, facts = look(many)
    r_hat, ess = rhat_and_ess(many)
    assert facts["r_hat"].iloc[0] == r_hat[1] == r_hat.max()
    assert facts["ess"].iloc[0] == ess.min()
    assert np.isnan(facts["sd"].iloc[0])


def test_the_worst_of_many_has_a_wider_limit():
    shifted = GOOD + np.array([0.0, 0.0, 0.0, 1.15])[:, None]
    one, facts = look(shifted)
    assert 1.1 < facts["r_hat"].iloc[0] < 1.2
    assert problems(one, facts)
    many, facts = look(np.stack([shifted, GOOD], axis=2))
    assert not problems(many, facts)
    assert verdict(many, facts).startswith("Not converged")


def test_what_is_not_identified_is_no_problem():
    quantities = [Quantity("noise", GOOD), Quantity("factors", SHIFTED, identified=False)]
    facts = table(quantities)
    assert facts["r_hat"]["factors"] > 1.1
    assert problems(quantities, facts) == []
    assert verdict(quantities, facts).startswith("No sign of trouble")


def test_few_effective_draws():
    # Every draw 40 times, in the same order in both halves of each chain: R-hat sees no difference between them.
    half = np.random.default_rng(1).permuted(np.tile(stats.norm.ppf((np.arange(10) + 0.5) / 10), (4, 1)), axis=1)
    slow = np.tile(half.repeat(40, axis=1), (1, 2)) + 1e-3 * np.random.default_rng(2).normal(size=(4, 800))
    quantities, facts = look(slow)
    assert facts["r_hat"].iloc[0] < 1.05
    assert facts["ess"].iloc[0] < 100
    assert verdict(quantities, facts).startswith("Converged, but with ")
    assert "effective draws of the quantity 0" in verdict(quantities, facts)


def test_random_walks_have_not_converged():
    quantities, facts = look(SLOW)
    assert problems(quantities, facts)


def test_too_few_draws():
    quantities, facts = look(GOOD[:, :3])
    assert np.isnan(facts["r_hat"].iloc[0])
    assert problems(quantities, facts) == []
    assert "3 draws are too few" in verdict(quantities, facts)


def test_one_chain_alone_is_told():
    quantities, facts = look(GOOD[:1])
    assert "use several" in verdict(quantities, facts)


def test_constants_have_converged():
    r_hat, ess = rhat_and_ess(np.dstack([np.ones((4, 50)), GOOD[:, :50]]))
    assert r_hat[0] == 1.0
    assert ess[0] == 200.0
    assert np.isfinite(r_hat).all()
