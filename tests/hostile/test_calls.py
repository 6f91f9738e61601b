"""Wrong arguments of every public method: accepted, or an error that names the argument."""

import tempfile
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from bnmf import BayesianNMF, NMFImputer, Posterior
from tests.hostile.outcomes import count_right, is_right

QUICK: dict[str, Any] = {"n_components": 1, "n_chains": 1, "burn_in": 1, "n_draws": 4, "random_state": 0}

# Values of the wrong type, or of the right type and of no sense. None of them asks for a long run.
ODD: list[Any] = [
    None, True, False, 0, -1, 2, 1.5, -0.5, np.nan, np.inf, -np.inf, 1j, 10**30, -(2**63), "", "abc", "2", b"x",
    [], [1], [-1], [0.5, 0.5], [[1, 2], [3]], [None], ["a", "b"], (), (1, 2), {}, {"a": 1}, {1, 2}, object(), print,
    np.array([]), np.array(3), np.array([[1.0]]), np.array([["a"]]), np.array([None, 1]), np.zeros((0, 3)),
    np.zeros((3, 0)), np.ones((2, 2, 2)), np.full((5, 3), np.nan), np.full((5, 3), np.inf), -np.ones((5, 3)),
    np.ones((5, 3), complex), np.ones((5, 3), "m8[s]"), np.ones((5, 4)), pd.Series([1.0, 2.0]), slice(None), range(3),
    pd.DataFrame({"a": ["x", "y"]}), pd.DataFrame(np.ones((5, 3)), columns=["a", "a", "b"]), sp.csr_array((5, 3)),
    sp.coo_array(np.ones(3)), np.datetime64("2020-01-01"), np.float32(0.5), np.int8(1), np.random.RandomState(0),
    np.random.default_rng(0), iter([1, 2]), Ellipsis, NotImplemented, type, "\x00", "a" * 300,
]  # fmt: skip

X = np.arange(15.0).reshape(5, 3)


@cache
def fitted(keep_draws: bool = True) -> BayesianNMF:
    """Return a fitted model."""
    return BayesianNMF(**QUICK, keep_draws=keep_draws).fit(X)


@cache
def imputer() -> NMFImputer:
    """Return a fitted imputer."""
    return NMFImputer(BayesianNMF(**QUICK)).fit(X)


def of_posterior(name: str, keep_draws: bool = True) -> Callable[..., Any]:
    """Return a method of a posterior."""
    return lambda **arguments: getattr(fitted(keep_draws).posterior_, name)(**arguments)


def of_model(name: str) -> Callable[..., Any]:
    """Return a method of a fitted model."""
    return lambda **arguments: getattr(fitted(), name)(**arguments)


PARAMETERS = """n_components prior noise scale offset n_chains burn_in thinning init unstored checkpoint keep_draws
draws_dtype n_jobs random_state progress max_time n_draws"""
ENTRIES = {"rows": [0, 1], "columns": [1, 2]}
VALUES = ENTRIES | {"values": [1.0, 2.0]}
# What is called, the arguments that go along, and the arguments of which one is replaced.
CALLS: list[tuple[Callable[..., Any], dict[str, Any], str]] = [
    (lambda **a: BayesianNMF(**QUICK | a).fit(X), {}, PARAMETERS),
    (BayesianNMF(**QUICK).fit, {"X": X}, "X observed"),
    (lambda **a: BayesianNMF(**QUICK).fit(X).sample_more(**a), {}, "n_draws"),
    (of_model("transform"), {"X": X}, "X observed"),
    (of_model("inverse_transform"), {}, "X"),
    (of_model("interval"), {}, "prob noise"),
    (of_model("impute"), {"X": X}, "X observed out"),
    (of_model("score"), {"X": X}, "X observed"),
    (of_model("posterior_of"), {"X": X}, "X observed"),
    (of_posterior("mean"), ENTRIES, "rows columns"),
    (of_posterior("mean_of_rows"), {}, "rows"),
    (of_posterior("std"), ENTRIES, "rows columns noise"),
    (of_posterior("quantile"), {"q": 0.5, **ENTRIES, "noise": True}, "q rows columns noise random_state"),
    (of_posterior("interval"), ENTRIES, "prob rows columns noise random_state"),
    (of_posterior("draws_of"), {**ENTRIES, "noise": True}, "rows columns noise random_state"),
    (of_posterior("log_likelihood"), VALUES, "rows columns values"),
    (of_posterior("log_predictive_density"), VALUES, "rows columns values"),
    (of_posterior("after"), {}, "sweep"),
    (of_posterior("posterior_of"), {"X": X[:2] + 1.0}, "X observed unstored random_state"),
    (of_posterior("mean", keep_draws=False), ENTRIES, "rows columns"),
    (of_posterior("std", keep_draws=False), ENTRIES, "rows columns noise"),
    (of_posterior("interval", keep_draws=False), {}, "prob noise"),
    (of_posterior("save"), {}, "path"),
    (Posterior.load, {}, "path"),
    (lambda **a: NMFImputer(**{"estimator": BayesianNMF(**QUICK)} | a).fit(X), {}, "estimator add_indicator"),
    (NMFImputer(BayesianNMF(**QUICK)).fit, {}, "X"),
    (lambda **a: imputer().transform(**a), {}, "X"),
    (lambda **a: imputer().multiple_imputations(**a), {"X": X, "n_imputations": 2}, "X n_imputations random_state"),
]


def test_wrong_calls():
    """One argument is something odd."""
    kinds = (ValueError, TypeError, IndexError, MemoryError, OSError, FloatingPointError)

    def attempt(number, rng):
        place = int(rng.integers(len(CALLS)))
        call, others, replaced = CALLS[place]
        argument = str(rng.choice(replaced.split()))
        value = ODD[int(rng.integers(len(ODD)))]
        words = r"\bpath\b|posterior|[Ff]ile" if argument == "path" else rf"\b{argument}\b"
        with tempfile.TemporaryDirectory() as folder:
            if argument in ("path", "checkpoint") and isinstance(value, str) and value and "\x00" not in value:
                value = f"{folder}/{value}"
            what = f"{number}: call {place} with {argument}={value!r:.60}"
            return is_right(lambda: call(**others | {argument: value}), what, kinds, words)

    assert 0.0 < count_right(attempt, 200) < 0.4
