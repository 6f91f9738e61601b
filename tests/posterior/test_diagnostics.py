"""R-hat and effective sample sizes."""

import numpy as np
import pytest

from bnmf.posterior.summary import diagnostics, rhat_and_ess

rng = np.random.default_rng(0)
GOOD = rng.normal(size=(4, 200))
SHIFTED = GOOD + np.array([0.0, 0.0, 0.0, 2.0])[:, None]
SLOW = np.cumsum(rng.normal(size=(4, 200)), axis=1)


def row(draws):
    return diagnostics({"it": draws}).loc["it"]


def test_good_chains():
    found = row(GOOD)
    assert found["r_hat"] < 1.02
    assert found["ess"] > 500
    assert found["mean"] == pytest.approx(GOOD.mean())


@pytest.mark.parametrize("draws", [SHIFTED, SLOW], ids=["one chain elsewhere", "random walks"])
def test_chains_that_have_not_converged(draws):
    assert row(draws)["r_hat"] > 1.1


def test_of_many_the_worst_is_shown():
    many = np.stack([GOOD, SHIFTED, GOOD], axis=2)
    r_hat, ess = rhat_and_ess(many)
    found = row(many)
    assert found["r_hat"] == r_hat[1] == r_hat.max()
    assert found["ess"] == ess.min()
    assert np.isnan(found["sd"])


def test_too_few_draws():
    assert np.isnan(row(GOOD[:, :3])["r_hat"])


def test_constants_have_converged():
    r_hat, ess = rhat_and_ess(np.dstack([np.ones((4, 50)), GOOD[:, :50]]))
    assert r_hat[0] == 1.0
    assert ess[0] == 200.0
    assert np.isfinite(r_hat).all()
