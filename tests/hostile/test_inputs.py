"""Inputs of every container, shape, scale and pattern of missing entries, fitted by every model."""

from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bnmf import BayesianNMF
from bnmf.priors import L1, L1Squared, L2Squared, LInf, Normal, TruncatedNormal
from bnmf.priors.names import as_pair
from tests.hostile.outcomes import TIMES, is_right

CLEAR_ERRORS = (ValueError, TypeError, MemoryError, FloatingPointError)
ARGUMENTS = r"\b(X|n_components|prior|noise|scale|offset|observed|unstored|n_draws)\b"

SHAPES = [(1, 1), (1, 2), (1, 9), (2, 1), (9, 1), (2, 2), (5, 4), (30, 3), (3, 30), (17, 9), (8, 16)]
VALUES = {
    "exponential": lambda rng, shape: rng.exponential(size=shape),
    "counts": lambda rng, shape: rng.poisson(3.0, shape).astype(float),
    "booleans": lambda rng, shape: (rng.random(shape) < 0.5).astype(float),
    "constant": lambda rng, shape: np.ones(shape),
    "zeros": lambda rng, shape: np.zeros(shape),
    "sparse": lambda rng, shape: rng.exponential(size=shape) * (rng.random(shape) < 0.1),
    "outlier": lambda rng, shape: np.where(rng.random(shape) < 0.05, 1e12, rng.exponential(size=shape)),
    "wide": lambda rng, shape: 10.0 ** rng.uniform(-8, 8, shape),
}
MISSING = {
    "none": lambda rng, shape: False,
    "some": lambda rng, shape: rng.random(shape) < 0.3,
    "rows": lambda rng, shape: rng.random((shape[0], 1)) < 0.4,
    "columns": lambda rng, shape: rng.random(shape[1]) < 0.4,
    "most": lambda rng, shape: rng.random(shape) < 0.99,
    "all but one": lambda rng, shape: np.arange(shape[0] * shape[1]).reshape(shape) != rng.integers(np.prod(shape)),
}
# Powers of ten. Squares of numbers beyond 1e-144 and 1e144 are refused.
EXPONENTS = [0, 0, 0, 3, -3, 30, -30, 100, -100, 130, -130, 140, -140, 154, -300, 300]
PRIORS: dict[str, Any] = {
    name: name
    for name in ("ard", "gee", "gl12", "gl22", "glinf", "gl22inf", "exponential", "half-normal", "normal", "laplace")
} | {
    "learned L2Squared": L2Squared(),
    "learned by component": L2Squared(by="component"),
    "pair": (L1(1.0), LInf(2.0)),
    "sum": L1(0.5) + L1Squared(0.1),
    "truncated normal": TruncatedNormal(1.0, 2.0),
    "normal and L1": (Normal(1.0, 2.0), L1()),
    "huge rate": L1(1e8),
    "tiny rate": L2Squared(1e-8),
}
DENSE = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "strided": lambda X: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
    "reversed": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "read-only": lambda X: np.broadcast_to(X, X.shape),
    "big-endian": lambda X: X.astype(">f8"),
    "list": lambda X: X.tolist(),
    "float32": lambda X: X.astype(np.float32),
    "masked": lambda X: np.ma.masked_array(np.where(np.isnan(X), -1.0, X), mask=np.isnan(X)),
    "frame": lambda X: pd.DataFrame(X, columns=[f"c{i}" for i in range(X.shape[1])]),
    "nullable frame": lambda X: pd.DataFrame(X).astype("Float64"),
    "whole numbers": lambda X: X.astype(np.int64),
    "nullable whole numbers": lambda X: pd.DataFrame(X).astype("Int64"),
    "booleans": lambda X: X.astype(bool),
}
SPARSE = ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"]


CASES = st.fixed_dictionaries(
    {
        "shape": st.sampled_from(SHAPES),
        "values": st.sampled_from(list(VALUES)),
        "missing": st.sampled_from(["none", *MISSING]),
        "numbers": st.integers(0, 999),  # the seed of all random numbers
        "exponents": st.lists(st.sampled_from(EXPONENTS), min_size=1, max_size=2),
        "container": st.sampled_from([*DENSE, *SPARSE]),
        "unstored": st.sampled_from(["zero", "missing"]),
        "prior": st.sampled_from(list(PRIORS)),
        "noise": st.sampled_from(["common", "column", "row", "both"]),
        "scale": st.sampled_from(["column", "column", "matrix", None]),
        "offset": st.sampled_from(["auto", None, "min", "mean"]),
        "n_components": st.sampled_from(["auto", 1, 2, 3, 5, 12]),
        "keep_draws": st.sampled_from([True] * 5 + [False]),
    }
)


def matrix(case: dict[str, Any]) -> np.ndarray:
    """Return the data of a case, NaN where missing."""
    rng, shape, container = np.random.default_rng(case["numbers"]), case["shape"], case["container"]
    X = VALUES[case["values"]](rng, shape)
    if container == "booleans":
        X = (X > 0.5).astype(float)
    elif "whole numbers" in container:
        X = np.floor(np.minimum(X, 1e15))
    else:
        with np.errstate(over="ignore", under="ignore"):
            X = X * np.resize(10.0 ** np.array(case["exponents"], float), shape[1])
            X = X.astype(np.float32).astype(float) if container == "float32" else X
    missing = container not in ("whole numbers", "booleans") and MISSING[case["missing"]](rng, shape)
    return np.where(missing, np.nan, X)


def contained(X: np.ndarray, container: str, unstored: str) -> Any:
    """Return a matrix in a container."""
    if container in DENSE:
        return DENSE[container](X)
    stored = ~np.isnan(X) if unstored == "missing" else X != 0.0
    return sp.coo_array((X[stored], np.nonzero(stored)), shape=X.shape).asformat(container)


def check(case: dict[str, Any]) -> None:
    """Fit a case, and check everything that the fit returns."""
    X = matrix(case)
    names = ("noise", "scale", "offset", "n_components", "keep_draws", "unstored")
    options = {name: case[name] for name in names} | {"prior": PRIORS[case["prior"]]}
    options |= {"n_chains": 2, "burn_in": 4, "n_draws": 4, "random_state": case["numbers"]}
    model = BayesianNMF(**options).fit(contained(X, case["container"], case["unstored"]))
    # These formats drop stored zeros.
    keeps_zeros = case["container"] not in ("lil", "dok") or case["unstored"] == "zero"
    check_fit(model, X, keeps_zeros)
    if case["keep_draws"] and keeps_zeros:
        if case["container"] in DENSE or case["unstored"] == "missing":
            same = BayesianNMF(**options).fit(X).posterior_
            for name in ("W", "Z", "noise_variance", "train_mse"):
                found, expected = getattr(model.posterior_, name), getattr(same, name)
                assert np.array_equal(found, expected), f"{name} differs from that of an array"
        check_new_rows(model, X)


def check_fit(model: BayesianNMF, X: np.ndarray, keeps_zeros: bool) -> None:
    k, posterior = model.n_components_, model.posterior_
    lowest = [-np.inf if prior.is_real else 0.0 for prior in as_pair(model.prior)]
    assert_finite("components_", model.components_, (k, X.shape[1]), lowest[1])
    if hasattr(posterior, "W"):
        assert_finite("W", posterior.W, (2, 4, X.shape[0], k), lowest[0])
        assert_finite("Z", posterior.Z, (2, 4, k, X.shape[1]), lowest[1])
    for name, found in (("noise_variance_", model.noise_variance_), ("train_mse", posterior.train_mse)):
        assert_finite(name, found, np.shape(found), lowest=0.0)
    low, high = model.interval()
    filled = model.impute()
    filled = filled.toarray() if sp.issparse(filled) else np.asarray(filled)
    shown = {"mean": model.reconstruct(), "std": posterior.std(), "low": low, "high": high, "imputed": filled}
    for name, found in shown.items():
        assert_finite(name, found, X.shape)
    assert (low <= high).all(), "an interval is upside down"
    observed = ~np.isnan(X)
    assert not keeps_zeros or np.array_equal(filled[observed], X[observed]), "an observed entry was changed"
    posterior.summary()
    assert np.isfinite(model.reconstruction_err_)


def check_new_rows(model: BayesianNMF, X: np.ndarray) -> None:
    new = X[::-1] * 0.75
    lowest = -np.inf if as_pair(model.prior)[0].is_real else 0.0
    assert_finite("weights of new rows", model.transform(new), (len(X), model.n_components_), lowest)
    filled = np.asarray(model.impute(new))
    assert_finite("imputed new rows", filled, X.shape)
    observed = ~np.isnan(new)
    assert np.array_equal(filled[observed], new[observed]), "an observed entry of a new row was changed"
    assert not observed.any() or np.isfinite(model.score(new))


def assert_finite(name: str, found: Any, shape: tuple[int, ...], lowest: float = -np.inf) -> None:
    assert np.shape(found) == shape, f"shape of {name}"
    assert np.isfinite(found).all(), f"{name} is not finite"
    assert (np.asarray(found) >= lowest).all(), f"{name} is negative"


@settings(
    max_examples=25 * TIMES,
    derandomize=TIMES == 1,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(CASES)
def test_inputs(case):
    is_right(lambda: check(case), repr(case), CLEAR_ERRORS, ARGUMENTS)
