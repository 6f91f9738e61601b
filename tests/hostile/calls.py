"""Wrong arguments of every public method: accepted, or an error that names the argument."""

import tempfile
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from bnmf import BayesianNMF, NMFImputer
from tests.hostile.outcomes import Outcome, judged

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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return BayesianNMF(**QUICK, keep_draws=keep_draws).fit(X)


@cache
def imputer() -> NMFImputer:
    """Return a fitted imputer."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return NMFImputer(BayesianNMF(**QUICK)).fit(X)


def _fit(**arguments: Any) -> Any:
    return BayesianNMF(**QUICK | arguments).fit(X)


def _fit_parts(**arguments: Any) -> Any:
    return BayesianNMF(**QUICK).fit(**{"X": X} | arguments)


def _refit_imputer(**arguments: Any) -> Any:
    return NMFImputer(**{"estimator": BayesianNMF(**QUICK)} | arguments).fit(X)


ENTRIES = {"rows": [0, 1], "columns": [1, 2]}
# What is called, with the arguments that go along, and the arguments that are replaced.
CALLS: dict[str, tuple[Callable[..., Any], dict[str, Any], list[str]]] = {
    "BayesianNMF": (
        _fit,
        {},
        ["n_components", "prior", "noise", "scale", "offset", "n_chains", "burn_in", "thinning", "init", "unstored"]
        + ["checkpoint", "keep_draws", "draws_dtype", "n_jobs", "random_state", "progress", "max_time", "n_draws"],
    ),
    "fit": (_fit_parts, {}, ["X", "observed"]),
    "sample_more": (lambda **a: _fit().sample_more(**a), {}, ["n_draws"]),
    "transform": (lambda **a: fitted().transform(**a), {"X": X}, ["X", "observed"]),
    "inverse_transform": (lambda **a: fitted().inverse_transform(**a), {}, ["X"]),
    "estimator interval": (lambda **a: fitted().interval(**a), {}, ["prob", "noise"]),
    "impute": (lambda **a: fitted().impute(**a), {"X": X}, ["X", "observed", "out"]),
    "score": (lambda **a: fitted().score(**a), {"X": X}, ["X", "observed"]),
    "posterior_of": (lambda **a: fitted().posterior_of(**a), {"X": X}, ["X", "observed"]),
    "mean": (lambda **a: fitted().posterior_.mean(**a), ENTRIES, ["rows", "columns"]),
    "mean_of_rows": (lambda **a: fitted().posterior_.mean_of_rows(**a), {}, ["rows"]),
    "std": (lambda **a: fitted().posterior_.std(**a), ENTRIES, ["rows", "columns", "noise"]),
    "quantile": (
        lambda **a: fitted().posterior_.quantile(**a),
        {"q": 0.5, **ENTRIES, "noise": True},
        ["q", "rows", "columns", "noise", "random_state"],
    ),
    "interval": (
        lambda **a: fitted().posterior_.interval(**a),
        ENTRIES,
        ["prob", "rows", "columns", "noise", "random_state"],
    ),
    "draws_of": (
        lambda **a: fitted().posterior_.draws_of(**a),
        {**ENTRIES, "noise": True},
        ["rows", "columns", "noise", "random_state"],
    ),
    "log_likelihood": (
        lambda **a: fitted().posterior_.log_likelihood(**a),
        {**ENTRIES, "values": [1.0, 2.0]},
        ["rows", "columns", "values"],
    ),
    "log_predictive_density": (
        lambda **a: fitted().posterior_.log_predictive_density(**a),
        {**ENTRIES, "values": [1.0, 2.0]},
        ["rows", "columns", "values"],
    ),
    "after": (lambda **a: fitted().posterior_.after(**a), {}, ["sweep"]),
    "posterior of rows": (
        lambda **a: fitted().posterior_.posterior_of(**a),
        {"X": X[:2] + 1.0},
        ["X", "observed", "unstored", "random_state"],
    ),
    "moments mean": (lambda **a: fitted(False).posterior_.mean(**a), ENTRIES, ["rows", "columns"]),
    "moments std": (lambda **a: fitted(False).posterior_.std(**a), ENTRIES, ["rows", "columns", "noise"]),
    "moments interval": (lambda **a: fitted(False).posterior_.interval(**a), {}, ["prob", "noise"]),
    "save": (lambda **a: fitted().posterior_.save(**a), {}, ["path"]),
    "load": (lambda **a: type(fitted().posterior_).load(**a), {}, ["path"]),
    "NMFImputer": (_refit_imputer, {}, ["estimator", "add_indicator"]),
    "imputer fit": (lambda **a: NMFImputer(BayesianNMF(**QUICK)).fit(**a), {}, ["X"]),
    "imputer transform": (lambda **a: imputer().transform(**a), {}, ["X"]),
    "multiple_imputations": (
        lambda **a: imputer().multiple_imputations(**a),
        {"X": X, "n_imputations": 2},
        ["X", "n_imputations", "random_state"],
    ),
}


def attempt(number: int) -> Outcome:
    """Call something with one argument that is odd."""
    rng = np.random.default_rng(number)
    name = str(rng.choice(list(CALLS)))
    call, others, replaced = CALLS[name]
    argument = str(rng.choice(replaced))
    value = ODD[int(rng.integers(len(ODD)))]
    kinds = (ValueError, TypeError, IndexError, MemoryError, OSError, FloatingPointError)
    words = r"\bpath\b|posterior|[Ff]ile" if argument == "path" else rf"\b{argument}\b"
    with tempfile.TemporaryDirectory() as folder:
        if argument in ("path", "checkpoint") and isinstance(value, str) and value and "\x00" not in value:
            value = f"{folder}/{value}"
        what = f"{number}: {name}({argument}={value!r:.60})"
        return judged(lambda: call(**others | {argument: value}), what, kinds, words)


def run(number: int, report: Callable[[Outcome], None], n: int = 200) -> None:
    """Attempt n calls."""
    for i in range(n):
        report(attempt(10_000 * number + i))
