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
def fitted(large):
    """Results by size of the entries and by model; the small entries depend strongly on the row, as methylation."""
    rng = np.random.default_rng(1)
    level = rng.uniform(0.5, 18.0, (60, 1))
    pattern = 1.0 + 0.15 * rng.standard_normal((60, 3)) @ rng.standard_normal((3, 70))
    data = {"large": large, "small": np.floor(np.clip(level * pattern, 0.0, 20.0))}
    models = "gee", "gl12", "gl22", "gl22inf"
    return {name: {m: run_fit(Fit(name, m, 10, 0, **CHAIN), X) for m in models} for name, X in data.items()}


def training_error(result):
    return result["train_mse"][CHAIN["burn_in"] :].mean()


def test_gl12_regularises_far_more_than_gee_on_large_values_and_not_on_small_ones(fitted):
    gee, gl12 = (fitted["large"][model] for model in ("gee", "gl12"))
    assert gl12["w_mean"] < 0.4 * gee["w_mean"]
    assert gl12["w_sparsity"] > 2 * gee["w_sparsity"]
    assert training_error(gl12) > 1.1 * training_error(gee)
    gee, gl12 = (fitted["small"][model] for model in ("gee", "gl12"))
    assert gl12["w_mean"] > 2 * gee["w_mean"]
    assert gl12["w_sparsity"] < 0.5 * gee["w_sparsity"]
    assert training_error(gl12) < 1.15 * training_error(gee)


@pytest.mark.parametrize("model", ["gl22", "gl22inf"])
def test_gl22_and_gl22inf_are_consistent_on_large_and_small_values(fitted, model):
    for results in fitted.values():
        assert training_error(results[model]) < 1.15 * training_error(results["gee"])
    ratio = {m: fitted["large"][m]["w_mean"] / fitted["small"][m]["w_mean"] for m in ("gee", model)}
    assert ratio[model] < 0.5 * ratio["gee"]


def test_glinf_diverges_with_the_printed_rule_and_not_with_the_exact_one(large):
    exact, printed = (run_fit(Fit("large", m, 10, 0, **CHAIN), large) for m in ("glinf", "glinf-published"))
    assert exact["w_mean"] < 1e3
    assert not printed["w_mean"] < 1e5  # or NaN after an overflow
    assert training_error(exact) < 1.3 * np.nanmean(printed["train_mse"][CHAIN["burn_in"] :])
