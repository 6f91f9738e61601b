"""The claims of the paper on small synthetic data: large values, small values, and missing entries."""

import numpy as np
import pytest

from bnmf.datasets import make_drug_response
from bnmf.paper.fits import Fit, run_fit

CHAIN = {"n_sweeps": 200, "burn_in": 100}


@pytest.fixture(scope="module")
def large():
    """A small matrix of drug responses, with entries from 0 to 100."""
    return make_drug_response(120, 40, random_state=0).data


@pytest.fixture(scope="module")
def small():
    """Entries from 0 to 20 that depend strongly on the row, as in the methylation data."""
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


def test_gl12_does_not_regularise_more_than_gee_on_small_values(fitted):
    gee, gl12 = fitted["small", "gee"], fitted["small", "gl12"]
    assert gl12["w_mean"] > 2 * gee["w_mean"]
    assert gl12["w_sparsity"] < 0.5 * gee["w_sparsity"]
    assert training_error(gl12) < 1.15 * training_error(gee)


@pytest.mark.parametrize("model", ["gl22", "gl22inf"])
def test_gl22_and_gl22inf_are_consistent_on_large_and_small_values(fitted, model):
    for name in ("large", "small"):
        assert training_error(fitted[name, model]) < 1.15 * training_error(fitted[name, "gee"])
    ratio = {m: fitted["large", m]["w_mean"] / fitted["small", m]["w_mean"] for m in ("gee", model)}
    assert ratio[model] < 0.5 * ratio["gee"]


def test_glinf_diverges_with_the_printed_rule_and_not_with_the_exact_one(large):
    exact, printed = (run_fit(Fit("large", m, 10, 0, **CHAIN), large) for m in ("glinf", "glinf-published"))
    assert exact["w_mean"] < 1e3
    assert not printed["w_mean"] < 1e5  # or NaN after an overflow
    assert training_error(exact) < 1.3 * np.nanmean(printed["train_mse"][CHAIN["burn_in"] :])


def test_error_of_gl22_increases_slowly_from_60_to_80_percent_unobserved(large):
    errors = {
        unobserved: np.mean(
            [run_fit(Fit("large", "gl22", 5, r, unobserved, **CHAIN), large)["test_mse"] for r in range(2)]
        )
        for unobserved in (0.6, 0.8)
    }
    assert 1.0 < errors[0.8] / errors[0.6] < 1.5
    assert errors[0.8] < 1.1 * np.nanvar(large)
