"""One fit: what to run, and the few numbers that are kept of it.

A `Fit` is a plain description. `run_fit` is a pure function of it and of the data: all randomness comes from the
description, so a fit can be run anywhere, in any order, and is never run twice. In one scenario (data set, K,
fraction, noise, repeat) every model gets the same split, the same noise and the same random numbers.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from bnmf import gibbs
from bnmf.experiments.baselines import BASELINES
from bnmf.experiments.models import METHODS, prior_of
from bnmf.experiments.splits import hold_out
from bnmf.observed import ObservedMatrix
from bnmf.workers import single_threaded_blas

Floats = npt.NDArray[np.float64]
Result = dict[str, npt.NDArray[Any]]

LAST = 20
"""The factors are looked at in this many sweeps at the end."""
SMALL = 0.1
"""An entry below this counts as zero in the paper's table of the factors."""
BIN_EDGES = np.linspace(-4.0, 4.0, 161)
"""Bins of log10 w; entries outside are counted in the first and last bin."""
STARTS = ("prior", "exponential", "small", "gee")
"""Where a chain may start: see `start_values`."""


@dataclass(frozen=True)
class Fit:
    """What to run.

    Parameters
    ----------
    dataset : str
        Name of the data.
    model : str
        A model of `bnmf.experiments.models`, or a baseline.
    k : int
        Number of components; 0 for a baseline that has none.
    repeat : int
        Number of the repeat.
    unobserved : float, optional
        Fraction of all entries that the training set lacks; None trains on everything that was observed.
    noise : float, optional
        Variance of Gaussian noise that is added to the data, as a multiple of the data's variance.
    start : str, default="prior"
        Where the chain starts: one of `STARTS`.
    n_sweeps, burn_in : int
        Length of the chain, and how much of it is not used for predictions.
    rate : float, default=0.1
        λ of the priors.
    seed : int, default=0
        Seed of the whole run.
    """

    dataset: str
    model: str
    k: int
    repeat: int
    unobserved: float | None = None
    noise: float | None = None
    start: str = "prior"
    n_sweeps: int = 500
    burn_in: int = 300
    rate: float = 0.1
    seed: int = 0

    def __post_init__(self) -> None:
        if self.model not in METHODS:
            raise ValueError(f"model must be one of {', '.join(METHODS)}, got {self.model!r}")
        if self.start not in STARTS:
            raise ValueError(f"start must be one of {', '.join(STARTS)}, got {self.start!r}")
        if not 0 <= self.burn_in < self.n_sweeps:
            raise ValueError(f"burn_in must be at least 0 and below n_sweeps={self.n_sweeps}, got {self.burn_in}")

    @property
    def is_baseline(self) -> bool:
        """Whether this is no model but a baseline."""
        return self.model in BASELINES

    def settings(self) -> dict[str, Any]:
        """Return the description as plain values for JSON; what a baseline does not use is left out."""
        plain = asdict(self)
        unused = ("n_sweeps", "burn_in", "rate", "start") if self.is_baseline else ()
        return {name: value for name, value in plain.items() if name not in unused}

    def cost(self, n_entries: int) -> float:
        """Return a rough measure of the time it takes, in no unit."""
        if self.is_baseline:
            return METHODS[self.model].cost * n_entries * 20 * 500
        starts = 1.6 if self.start == "gee" else 1.0
        return METHODS[self.model].cost * starts * n_entries * (self.k + 2) * self.n_sweeps


def seed_of(*parts: Any) -> int:
    """Return a seed that is always the same for the same parts, and unrelated for others.

    Parameters
    ----------
    *parts
        Values that JSON can hold.

    Returns
    -------
    int
        A number below 2**63.

    Examples
    --------
    >>> seed_of(0, "split", 3) == seed_of(0, "split", 3) != seed_of(0, "split", 4)
    True
    """
    digest = hashlib.sha256(json.dumps(parts).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def as_matrix(data: Any) -> Floats:
    """Return a DataFrame or array as a matrix of floats with NaN for what is missing."""
    return data.to_numpy(dtype=float) if isinstance(data, pd.DataFrame) else np.asarray(data, dtype=float)


def noisy(fit: Fit, X: Floats) -> Floats:
    """Return the data with the fit's noise added; the same noise for every model and K of a repeat."""
    if not fit.noise:
        return X
    rng = np.random.default_rng(seed_of(fit.seed, "noise", fit.dataset, fit.noise, fit.repeat))
    return X + np.sqrt(fit.noise * np.nanvar(X)) * rng.standard_normal(X.shape)


def masks(fit: Fit, X: Floats) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return what is trained on and what is held out; the same for every model and K of a repeat."""
    if fit.unobserved is None:
        observed = ~np.isnan(X)
        return observed, np.zeros_like(observed)
    rng = np.random.default_rng(seed_of(fit.seed, "split", fit.dataset, fit.unobserved, fit.repeat))
    split = hold_out(X, fit.unobserved, rng)
    return split.train, split.test


def run_fit(fit: Fit, X: npt.ArrayLike) -> Result:
    """Run one fit.

    Parameters
    ----------
    fit : Fit
        What to run.
    X : array-like of shape (M, N)
        The data, NaN where missing.

    Returns
    -------
    dict of str to ndarray
        `test_mse`: error of the prediction (the posterior mean of W Z) on the held-out entries; `test_mse_clean`: the
        same against the data before noise was added; `variance` and `variance_clean`: of the observed data with and
        without noise; `seconds` of processor time. For a model also `train_mse` (of each sweep), `train_mse_mean` (of
        the prediction), `w_mean` and `w_sparsity` (mean of W in the last 20 sweeps, and percentage of it below 0.1),
        `w_counts` (their histogram over `BIN_EDGES`), `log_joint` (of data and last state, up to a constant) and
        `contributions` (‖w_:k‖ ‖z_k:‖ of each component in the last state, largest first). A chain that leaves the
        range of floating point numbers ends there, and NaN follows.
    """
    began = time.process_time()
    clean = as_matrix(X)
    A = noisy(fit, clean)
    train, test = masks(fit, clean)
    result: Result = {}
    if fit.is_baseline:
        prediction: Floats | None = _baseline(fit, np.where(train, A, np.nan))
    else:
        prediction, result = _chain(fit, A, train)
    if prediction is not None and test.any():
        result["test_mse"] = _mse(prediction, A, test)
        result["test_mse_clean"] = _mse(prediction, clean, test)
        result.setdefault("train_mse_mean", _mse(prediction, A, train))
    result["variance"], result["variance_clean"] = np.array(np.nanvar(A)), np.array(np.nanvar(clean))
    result["seconds"] = np.array(time.process_time() - began)
    return result


def _baseline(fit: Fit, A: Floats) -> Floats:
    """Fill the holes of the training data."""
    settings: dict[str, Any] = {}
    if fit.k:
        seed = seed_of(fit.seed, "baseline", fit.dataset, fit.k, fit.unobserved, fit.repeat)
        settings = {"n_components": fit.k, "random_state": seed}
    with single_threaded_blas():
        return BASELINES[fit.model](A, **settings)


def _chain(fit: Fit, A: Floats, train: npt.NDArray[np.bool_]) -> tuple[Floats | None, Result]:
    """Run the chain of a model; return its prediction and what is kept of its sweeps."""
    data = ObservedMatrix.from_data(A, train, negative=bool(fit.noise))
    model = gibbs.Model(data, fit.k, prior_of(fit.model, fit.rate), rescale=False)
    predicts = fit.unobserved is not None
    curve = np.full(fit.n_sweeps, np.nan)
    last: list[Floats] = []
    prediction = np.zeros(A.shape)
    state = None
    for state in _finite_states(model, fit):
        curve[state.sweep - 1] = state.squared_error / data.n_observed
        if predicts and state.sweep > fit.burn_in:
            # A running mean of the products: the product of the means would be another, and wrong, number.
            with single_threaded_blas():
                prediction += (state.W @ state.Z - prediction) / (state.sweep - fit.burn_in)
        if state.sweep > fit.n_sweeps - LAST:
            last.append(state.W)
    result = {"train_mse": curve, **_factor_numbers(last)}
    if state is not None:
        with np.errstate(all="ignore"):
            result["log_joint"] = np.array(model.log_joint(state))
            sizes = np.linalg.norm(state.W, axis=0) * np.linalg.norm(state.Zt, axis=0)
        result["contributions"] = np.sort(sizes)[::-1]
    if not predicts or np.isnan(curve[-1]):
        return None, result
    result["train_mse_mean"] = _mse(prediction, A, train)
    return prediction, result


def _finite_states(model: gibbs.Model, fit: Fit) -> Iterator[gibbs.State]:
    """Yield the states of the chain for as long as they are finite: the printed rule of GL∞ runs away."""
    stream = gibbs.Stream(seed_of(fit.seed, "chain", fit.dataset, fit.k, fit.unobserved, fit.noise, fit.repeat))
    states = gibbs.sample(model, stream, init=start_values(fit, model), n_sweeps=fit.n_sweeps)
    while True:
        with np.errstate(all="ignore"):
            state = next(states, None)
            if state is None or not np.isfinite((state.squared_error, state.W.sum(), state.Zt.sum())).all():
                return
        yield state


def start_values(fit: Fit, model: gibbs.Model) -> Any:
    """Return where the chain of a fit starts, as `bnmf.gibbs.start` takes it.

    Parameters
    ----------
    fit : Fit
        Its `start` says where: "prior" is a draw from the model's own prior; "exponential" a draw from GEE's prior
        (exponential with rate λ) for any model; "small" an exponential draw with mean 0.1; "gee" the state in which
        a GEE chain of `burn_in` sweeps ends.
    model : bnmf.gibbs.Model
        The model.

    Returns
    -------
    "random" or pair of ndarray
        The start.
    """
    if fit.start == "prior":
        return "random"
    M, N = model.data.shape
    stream_seed = seed_of(fit.seed, "start", fit.dataset, fit.k, fit.unobserved, fit.noise, fit.repeat)
    if fit.start == "gee":
        gee = gibbs.Model(model.data, fit.k, prior_of("gee", fit.rate), rescale=False)
        *_, state = gibbs.sample(gee, gibbs.Stream(stream_seed), n_sweeps=max(fit.burn_in, 1))
        return state.W, state.Z
    rng = np.random.default_rng(stream_seed)
    mean = 1.0 / fit.rate if fit.start == "exponential" else 0.1
    return rng.exponential(mean, (M, fit.k)), rng.exponential(mean, (fit.k, N))


def _factor_numbers(last: list[Floats]) -> Result:
    """Return mean, sparsity and histogram of W over the last sweeps; NaN if the chain did not get there."""
    if len(last) < LAST:
        return {
            "w_mean": np.array(np.nan),
            "w_sparsity": np.array(np.nan),
            "w_counts": np.zeros(len(BIN_EDGES) - 1, dtype=np.int64),
        }
    W = np.concatenate([state.ravel() for state in last])
    exponent = np.log10(np.maximum(W, 1e-300))
    counts, _ = np.histogram(np.clip(exponent, BIN_EDGES[0], BIN_EDGES[-1]), bins=BIN_EDGES)
    return {"w_mean": W.mean(), "w_sparsity": 100.0 * (W < SMALL).mean(), "w_counts": counts}


def _mse(prediction: Floats, truth: Floats, where: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
    return np.array(np.mean((prediction[where] - truth[where]) ** 2))


@cache
def sampler_fingerprint(model: str) -> str:
    """Return a short text that changes when what the sampler draws for a model changes.

    It is made of a few sweeps on a small matrix, rounded to six digits, so that a kernel that only became faster keeps
    the results that are there, and one that draws otherwise never mixes with them.

    Parameters
    ----------
    model : str
        One of the keys of `bnmf.experiments.models.PRIORS`.

    Returns
    -------
    str
        Sixteen hexadecimal digits.
    """
    rng = np.random.default_rng(0)
    X = rng.exponential(5.0, (9, 7)).round(2)
    X[rng.random(X.shape) < 0.3] = np.nan
    sampled = gibbs.Model(ObservedMatrix.from_data(X), 3, prior_of(model, 0.1), rescale=False)
    numbers = [
        number
        for state in gibbs.sample(sampled, gibbs.Stream(0), n_sweeps=5)
        for number in (state.W.sum(), (state.Zt**2).sum(), state.sigma2, state.squared_error)
    ]
    return hashlib.sha256(" ".join(f"{number:.6g}" for number in numbers).encode()).hexdigest()[:16]
