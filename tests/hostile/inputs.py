"""Inputs of every container, shape, scale and pattern of missing entries, fitted by every model."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from bnmf import BayesianNMF
from bnmf.priors import L1, L1Squared, L2Squared, LInf, Normal, TruncatedNormal
from bnmf.priors.names import as_pair
from tests.hostile.outcomes import Outcome, judged, require

CLEAR_ERRORS = (ValueError, TypeError, MemoryError, FloatingPointError)
ARGUMENTS = r"\b(X|n_components|prior|noise|scale|offset|observed|unstored|n_draws)\b"

SHAPES = [(1, 1), (1, 2), (1, 9), (2, 1), (9, 1), (2, 2), (5, 4), (30, 3), (3, 30), (17, 9), (8, 16)]
VALUES = ["exponential", "counts", "booleans", "constant", "zeros", "sparse", "outlier", "wide"]
# Powers of ten. Squares of numbers beyond 1e-144 and 1e144 are refused.
EXPONENTS = [0, 0, 0, 3, -3, 30, -30, 100, -100, 130, -130, 140, -140, 154, -300, 300]
MISSING = ["none", "none", "some", "rows", "columns", "most", "all but one"]
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
    "read-only": lambda X: _read_only(X.copy()),
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


def _read_only(X: np.ndarray) -> np.ndarray:
    X.flags.writeable = False
    return X


@st.composite
def cases(draw: Callable[[Any], Any]) -> dict[str, Any]:
    """Draw what a case consists of; its numbers come from a seed."""
    pick = lambda options: draw(st.sampled_from(options))  # noqa: E731
    case = {
        "shape": pick(SHAPES),
        "values": pick(VALUES),
        "missing": pick(MISSING),
        "numbers": draw(st.integers(0, 999)),
    }
    case["exponents"] = [pick(EXPONENTS)] if draw(st.integers(0, 3)) else [pick(EXPONENTS), pick(EXPONENTS)]
    case["container"] = pick([*DENSE, *SPARSE])
    case["unstored"] = pick(["zero", "missing"])
    case["prior"] = pick(list(PRIORS))
    case["noise"] = pick(["common", "column", "row", "both"])
    case["scale"] = pick(["column", "column", "matrix", None])
    case["offset"] = pick([None, None, "min", "mean"])
    case["n_components"] = pick(["auto", 1, 2, 3, 5, 12])
    case["keep_draws"] = draw(st.integers(0, 5)) > 0
    return case


def matrix(case: dict[str, Any]) -> np.ndarray:
    """Return the data of a case, NaN where missing."""
    rng = np.random.default_rng(case["numbers"])
    shape = case["shape"]
    whole = case["container"] in ("whole numbers", "nullable whole numbers", "booleans")
    X = {
        "exponential": lambda: rng.exponential(size=shape),
        "counts": lambda: rng.poisson(3.0, shape).astype(float),
        "booleans": lambda: (rng.random(shape) < 0.5).astype(float),
        "constant": lambda: np.ones(shape),
        "zeros": lambda: np.zeros(shape),
        "sparse": lambda: rng.exponential(size=shape) * (rng.random(shape) < 0.1),
        "outlier": lambda: np.where(rng.random(shape) < 0.05, 1e12, rng.exponential(size=shape)),
        "wide": lambda: 10.0 ** rng.uniform(-8, 8, shape),
    }[case["values"]]()
    if whole:
        X = (X > 0.5).astype(float) if case["container"] == "booleans" else np.floor(np.minimum(X, 1e15))
    else:
        with np.errstate(over="ignore", under="ignore"):
            powers = 10.0 ** np.array(case["exponents"], float)
            X = X * np.resize(powers, shape[1])
        if case["container"] == "float32":
            with np.errstate(over="ignore", under="ignore"):
                X = X.astype(np.float32).astype(float)
    if case["container"] not in ("whole numbers", "booleans"):
        X[_missing(case["missing"], shape, rng)] = np.nan
    return X


def _missing(pattern: str, shape: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    missing = np.zeros(shape, bool)
    if pattern == "some":
        missing = rng.random(shape) < 0.3
    elif pattern == "rows":
        missing[rng.random(shape[0]) < 0.4] = True
    elif pattern == "columns":
        missing[:, rng.random(shape[1]) < 0.4] = True
    elif pattern == "most":
        missing = rng.random(shape) < 0.99
    elif pattern == "all but one":
        missing[...] = True
        missing.flat[rng.integers(missing.size)] = False
    return missing


def contained(X: np.ndarray, container: str, unstored: str) -> Any:
    """Return a matrix in a container."""
    if container in DENSE:
        return DENSE[container](X)
    stored = ~np.isnan(X) if unstored == "missing" else X != 0.0
    found = sp.coo_array((X[stored], np.nonzero(stored)), shape=X.shape)
    return found.asformat(container)


def attempt(case: dict[str, Any]) -> Outcome:
    """Fit a case, and check everything that the fit returns."""
    return judged(lambda: check(case), repr(case), CLEAR_ERRORS, ARGUMENTS)


def check(case: dict[str, Any]) -> None:
    """Raise `Wrong` if a fit gives something that it must not."""
    X = matrix(case)
    given = contained(X, case["container"], case["unstored"])
    names = ("noise", "scale", "offset", "n_components", "keep_draws", "unstored")
    options = {name: case[name] for name in names} | {"prior": PRIORS[case["prior"]]}
    schedule = {"n_chains": 2, "burn_in": 4, "n_draws": 4, "random_state": case["numbers"]}
    model = BayesianNMF(**schedule, **options).fit(given)
    # These formats drop stored zeros.
    keeps_zeros = case["container"] not in ("lil", "dok") or case["unstored"] == "zero"
    _check_fit(model, X, keeps_zeros)
    is_implicit = case["container"] in SPARSE and case["unstored"] == "zero"
    if case["keep_draws"] and keeps_zeros:
        if not is_implicit:
            same = BayesianNMF(**schedule, **options).fit(X).posterior_
            for name in ("W", "Z", "noise_variance", "train_mse"):
                found, expected = getattr(model.posterior_, name), getattr(same, name)
                require(np.array_equal(found, expected), f"{name} differs from that of an array")
        _check_new_rows(model, X)


def _check_fit(model: BayesianNMF, X: np.ndarray, keeps_zeros: bool) -> None:
    k = model.n_components_
    require(model.components_.shape == (k, X.shape[1]), "shape of components_")
    lowest = [-np.inf if prior.is_real else 0.0 for prior in as_pair(model.prior)]
    _finite("components_", model.components_, lowest=lowest[1])
    _finite("noise_variance_", model.noise_variance_, lowest=0.0)
    posterior = model.posterior_
    if hasattr(posterior, "W"):
        require(posterior.W.shape == (2, 4, X.shape[0], k), "shape of W")
        require(posterior.Z.shape == (2, 4, k, X.shape[1]), "shape of Z")
        _finite("W", posterior.W, lowest=lowest[0])
        _finite("Z", posterior.Z, lowest=lowest[1])
    _finite("train_mse", posterior.train_mse, lowest=0.0)
    low, high = model.interval()
    for name, found in {"mean": model.reconstruct(), "std": posterior.std(), "low": low, "high": high}.items():
        require(found.shape == X.shape, f"shape of {name}")
        _finite(name, found)
    require((low <= high).all(), "an interval is upside down")
    filled = model.impute()
    filled = filled.toarray() if sp.issparse(filled) else np.asarray(filled)
    _finite("imputed", filled)
    observed = ~np.isnan(X)
    if keeps_zeros:
        require(np.array_equal(filled[observed], X[observed]), "an observed entry was changed")
    posterior.summary()
    _finite("reconstruction_err_", model.reconstruction_err_)


def _check_new_rows(model: BayesianNMF, X: np.ndarray) -> None:
    new = X[::-1] * 0.75
    lowest = -np.inf if as_pair(model.prior)[0].is_real else 0.0
    _finite("weights of new rows", model.transform(new), lowest=lowest)
    filled = np.asarray(model.impute(new))
    _finite("imputed new rows", filled)
    observed = ~np.isnan(new)
    require(np.array_equal(filled[observed], new[observed]), "an observed entry of a new row was changed")
    if observed.any():
        _finite("score", model.score(new))


def _finite(name: str, found: Any, lowest: float = -np.inf) -> None:
    require(np.isfinite(found).all(), f"{name} is not finite")
    require(np.all(np.asarray(found) >= lowest), f"{name} is negative")


def run(number: int, report: Callable[[Outcome], None], n: int = 100) -> None:
    """Attempt n cases of a given seed."""

    @seed(number)
    @settings(
        max_examples=n,
        database=None,
        deadline=None,
        derandomize=False,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(cases())
    def attempts(case: dict[str, Any]) -> None:
        report(attempt(case))

    attempts()
