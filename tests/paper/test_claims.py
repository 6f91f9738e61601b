"""The paper's claims on small versions of its data: large values, small values, and holes."""

import numpy as np
import pytest

from bnmf.datasets import make_drug_response
from bnmf.experiments.fits import Fit, run_fit

CHAIN = {"n_sweeps": 300, "burn_in": 150}


@pytest.fixture(scope="module")
def large():
    """Drug response on a small scale: entries from 0 to 100."""
    return make_drug_response(120, 40, random_state=0).data


@pytest.fixture(scope="module")
def small():
    """Entries from 0 to 20 with a strong level for each row, as methylation has."""
    rng = np.random.default_rng(1)
    level = rng.uniform(0.5, 18.0, (60, 1))
    pattern = 1.0 + 0.15 * rng.standard_normal((60, 3)) @ rng.standard_normal((3, 70))
    return np.floor(np.clip(level * pattern, 0.0, 20.0))


@pytest.fixture(scope="module")
def fitted(large, small):
    models = ("gee", "gl12", "gl22", "gl22inf")
    data = {"large": large, "small": small}
    return {(name, m): run_fit(Fit(name, m, 10, 0, **CHAIN), X) for name, X in data.items() for m in models}


def training_error(result):
    return result["train_mse"][CHAIN["burn_in"] :].mean()


def test_gl12_regularises_far_more_than_gee_on_large_values(fitted):
    gee, gl12 = fitted["large", "gee"], fitted["large", "gl12"]
    assert gl12["w_mean"] < 0.4 * gee["w_mean"]
    assert gl12["w_sparsity"] > 2 * gee["w_sparsity"]
    assert training_error(gl12) > 1.1 * training_error(gee)


def test_gl12_does_not_on_small_values(fitted):
    gee, gl12 = fitted["small", "gee"], fitted["small", "gl12"]
    assert gl12["w_mean"] > 2 * gee["w_mean"]
    assert gl12["w_sparsity"] < 0.5 * gee["w_sparsity"]
    assert training_error(gl12) < 1.15 * training_error(gee)


@pytest.mark.parametrize("model", ["gl22", "gl22inf"])
def test_gl22_and_gl22inf_are_consistent_on_both(fitted, model):
    for name in ("large", "small"):
        assert training_error(fitted[name, model]) < 1.15 * training_error(fitted[name, "gee"])
    ratio = {m: fitted["large", m]["w_mean"] / fitted["small", m]["w_mean"] for m in ("gee", model)}
    assert ratio[model] < 0.5 * ratio["gee"]


def test_printed_rule_of_glinf_runs_away_and_the_exact_one_does_not(large):
    exact, printed = (run_fit(Fit("large", m, 10, 0, **CHAIN), large) for m in ("glinf", "glinf-published"))
    assert exact["w_mean"] < 1e3
    assert not printed["w_mean"] < 1e5  # NaN, if it left the numbers altogether
    assert training_error(exact) < 1.3 * np.nanmean(printed["train_mse"][CHAIN["burn_in"] :])


def test_error_of_gl22_grows_gently_from_60_to_80_percent_unobserved(large):
    errors = {
        unobserved: np.mean(
            [run_fit(Fit("large", "gl22", 5, r, unobserved, **CHAIN), large)["test_mse"] for r in range(3)]
        )
        for unobserved in (0.6, 0.8)
    }
    assert 1.0 < errors[0.8] / errors[0.6] < 1.5
    assert errors[0.8] < 1.1 * np.nanvar(large)
