"""The fits of the experiments: their settings and results, finished fits on disk, and many fits in parallel.

`run_fit` is a pure function of a `Fit` and of the data. All random numbers are derived from the settings, so fits can
run in any order and in any process, and a result can be reused. All models of a scenario (data set, K, fraction,
noise, repeat) share the split, the added noise and the seed.
"""

from __future__ import annotations

import io
import json
import os
import signal
import sys
import threading
import time
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import numpy.typing as npt

from bnmf.data.observed import ObservedMatrix
from bnmf.model.model import Model
from bnmf.paper.baselines import BASELINES
from bnmf.paper.methods import PRIORS
from bnmf.sampler import gibbs
from bnmf.sampler.moves import PLAIN
from bnmf.sampler.streams import Stream
from bnmf.sampler.threads import single_threaded_blas
from bnmf.utils import digests, files
from bnmf.utils.progress import counted
from bnmf.utils.typing import Array, Bools, Floats

Result = dict[str, Array]

N_FACTOR_SWEEPS = 20
"""Number of sweeps at the end of a chain from which the entries of W are summarised."""
SPARSITY_THRESHOLD = 0.1
"""Entries of W below this value count as zero in the paper's table of the factors."""
BIN_EDGES = np.linspace(-4.0, 4.0, 161)
"""Histogram bins of log10 w. Entries outside are counted in the first or last bin."""
RATE = 0.1
"""λ of every model."""
STARTS = {
    "prior": "draw from the prior of the model",
    "exponential": "exponential, mean 10 (GEE's prior)",
    "small": "exponential, mean 0.1",
    "gee": "last state of a GEE chain",
    "columns": "draw from the prior, Z updated before W",
}
"""Starting points of a chain, with their names in tables."""


@dataclass(frozen=True)
class Fit:
    """The settings of one fit."""

    dataset: str
    model: str
    k: int  # 0 for a baseline without components
    repeat: int
    unobserved: float | None = None  # fraction of all entries that are not in the training set; None: all observed are
    noise: float | None = None  # variance of the added Gaussian noise over that of the data
    start: str = "prior"
    n_sweeps: int = 500
    burn_in: int = 300
    rate: float = RATE
    seed: int = 0

    @property
    def is_baseline(self) -> bool:
        """Whether this is a baseline rather than a model."""
        return self.model in BASELINES

    def settings(self) -> dict[str, Any]:
        """Return the settings as plain values for JSON, without those that a baseline does not use."""
        unused = ("n_sweeps", "burn_in", "rate", "start") if self.is_baseline else ()
        return {name: value for name, value in asdict(self).items() if name not in unused}


def seed_of(*parts: Any) -> int:
    """Return a seed below 2**63 that is determined by values that JSON can represent."""
    return int(digests.of_json(parts)[:16], 16) >> 1


def noisy(fit: Fit, X: Floats) -> Floats:
    """Return the data with the noise of the fit, which all models and K of a repeat share."""
    if not fit.noise:
        return X
    rng = np.random.default_rng(seed_of(fit.seed, "noise", fit.dataset, fit.noise, fit.repeat))
    return X + np.sqrt(fit.noise * np.nanvar(X)) * rng.standard_normal(X.shape)


def masks(fit: Fit, X: Floats) -> tuple[Bools, Bools]:
    """Return the masks of the training and held-out entries, which all models and K of a repeat share."""
    train = observed = ~np.isnan(X)
    if fit.unobserved is not None:
        rng = np.random.default_rng(seed_of(fit.seed, "split", fit.dataset, fit.unobserved, fit.repeat))
        train = training_mask(observed, fit.unobserved, rng)
    return train, observed & ~train


def training_mask(observed: Bools, unobserved: float, rng: np.random.Generator) -> Bools:
    """Return the mask of a random training set that leaves a fraction of *all* entries out, as Brouwer et al. do.

    At least one entry stays in every row and every column that has any.
    """
    # The small constant compensates for rounding of 1 - unobserved: 100 (1 - 0.9) is 10, not 9.
    n_keep = int(observed.size * (1 - unobserved) + 1e-9)
    places = np.argwhere(observed)
    places = places[rng.permutation(len(places))]
    needed = np.union1d(*(np.unique(labels, return_index=True)[1] for labels in places.T))  # the first of each
    # The others keep their random order. If its first n_keep entries cover all rows and columns, they are the training
    # set, as with rejection sampling.
    kept = np.concatenate((needed, np.delete(np.arange(len(places)), needed)))[:n_keep]
    train = np.zeros_like(observed)
    train[tuple(places[kept].T)] = True
    return train


def run_fit(fit: Fit, X: npt.ArrayLike) -> Result:
    """Run one fit: a pure function of its settings and of the data."""
    # The result has `test_mse`, the error of the prediction (the posterior mean of W Z) on the held-out entries, and
    # `test_mse_clean`, the same against the data before noise was added; `train_mse_mean`, the error of the prediction
    # on the training entries; `variance` and `variance_clean` of the observed data; `seconds` of processor time. For a
    # model also `train_mse` (of each sweep), `w_mean`, `w_sparsity` and `w_counts` (mean, percentage below 0.1 and
    # histogram of W in the last 20 sweeps), `log_joint` (of data and last state, up to a constant) and `contributions`
    # (‖w_:k‖ ‖z_k:‖ in the last state, largest first). A chain that overflows ends there; later values
    # are NaN or absent.
    began = time.process_time()
    clean = np.asarray(X, dtype=float)
    A, (train, test) = noisy(fit, clean), masks(fit, clean)
    with single_threaded_blas():
        prediction, result = _baseline(fit, A, train) if fit.is_baseline else _chain(fit, A, train)
    if prediction is not None:
        for name, truth, where in (
            ("train_mse_mean", A, train),
            ("test_mse", A, test),
            ("test_mse_clean", clean, test),
        ):
            result[name] = np.array(np.mean((prediction[where] - truth[where]) ** 2))
    return result | {
        "variance": np.nanvar(A),
        "variance_clean": np.nanvar(clean),
        "seconds": np.array(time.process_time() - began),
    }


def _baseline(fit: Fit, A: Floats, train: Bools) -> tuple[Floats, Result]:
    """Return the prediction of a baseline from the training entries; it has no other results."""
    settings: dict[str, Any] = {}
    if fit.k:
        seed = seed_of(fit.seed, "baseline", fit.dataset, fit.k, fit.unobserved, fit.repeat)
        settings = {"n_components": fit.k, "random_state": seed}
    return BASELINES[fit.model](np.where(train, A, np.nan), **settings), {}


def _chain(fit: Fit, A: Floats, train: Bools) -> tuple[Floats | None, Result]:
    """Run the chain of a model; return its prediction, if it has one, and its part of the result."""
    data = ObservedMatrix.from_data(A, train, negative=bool(fit.noise))
    model = Model(data, fit.k, PRIORS[fit.model](fit.rate))
    stream = Stream(seed_of(fit.seed, "chain", fit.dataset, fit.k, fit.unobserved, fit.noise, fit.repeat))
    curve, prediction = np.full(fit.n_sweeps, np.nan), np.zeros(A.shape)
    last_W: list[Floats] = []
    last = None
    result: Result = {"train_mse": curve}
    with np.errstate(all="ignore"):  # with the printed rule GL∞ diverges, until values overflow
        for state in gibbs.sample(model, stream, init=start_values(fit, model), n_sweeps=fit.n_sweeps, moves=PLAIN):
            if not np.isfinite((state.squared_error, state.W.sum(), state.Zt.sum())).all():
                break
            last = state
            curve[state.sweep - 1] = state.squared_error / data.n_observed
            if fit.unobserved is not None and state.sweep > fit.burn_in:
                # The running mean of the products W Z, which is not the product of the means.
                prediction += (state.W @ state.Z - prediction) / (state.sweep - fit.burn_in)
            if state.sweep > fit.n_sweeps - N_FACTOR_SWEEPS:
                last_W.append(state.W)
        if last is not None:
            prior_W, prior_Z = model.priors
            noise = -(model.noise.shape + 1.0) * np.log(last.sigma2) - model.noise.scale / last.sigma2
            log_prior = prior_W.log_density(last.W) + prior_Z.log_density(last.Zt) + noise
            result["log_joint"] = np.array(last.log_likelihood + log_prior)
            sizes = np.linalg.norm(last.W, axis=0) * np.linalg.norm(last.Zt, axis=0)
            result["contributions"] = np.sort(sizes)[::-1]
    is_predicted = fit.unobserved is not None and np.isfinite(curve[-1])
    return prediction if is_predicted else None, result | _factor_summary(last_W)


def start_values(fit: Fit, model: Model) -> Any:
    """Return the starting point of a chain, as the argument `init` of `bnmf.sampler.gibbs.start` takes it."""
    if fit.start == "prior":
        return "random"
    M, N = model.data.shape
    seed = seed_of(fit.seed, "start", fit.dataset, fit.k, fit.unobserved, fit.noise, fit.repeat)
    if fit.start == "gee":
        gee = Model(model.data, fit.k, PRIORS["gee"](fit.rate))
        *_, state = gibbs.sample(gee, Stream(seed), n_sweeps=max(fit.burn_in, 1), moves=PLAIN)
        return state.W, state.Z
    if fit.start == "columns":
        data = ObservedMatrix.from_data(model.data.dense_rows(np.arange(M)).T, negative=bool(fit.noise))
        transposed = Model(data, fit.k, PRIORS[fit.model](fit.rate))
        (state,) = gibbs.sample(transposed, Stream(seed), n_sweeps=1, moves=PLAIN)
        return state.Zt, state.W.T
    rng, mean = np.random.default_rng(seed), 1.0 / fit.rate if fit.start == "exponential" else 0.1
    return rng.exponential(mean, (M, fit.k)), rng.exponential(mean, (fit.k, N))


def _factor_summary(last_W: list[Floats]) -> Result:
    """Return mean, sparsity and histogram of W over the last sweeps; NaN if the chain ended before."""
    if len(last_W) < N_FACTOR_SWEEPS:
        nan, none = np.array(np.nan), np.zeros(len(BIN_EDGES) - 1, dtype=np.int64)
        return {"w_mean": nan, "w_sparsity": nan, "w_counts": none}
    W = np.concatenate([factor.ravel() for factor in last_W])
    exponent = np.log10(np.maximum(W, 1e-300))
    counts, _ = np.histogram(np.clip(exponent, BIN_EDGES[0], BIN_EDGES[-1]), bins=BIN_EDGES)
    return {"w_mean": W.mean(), "w_sparsity": 100.0 * (W < SPARSITY_THRESHOLD).mean(), "w_counts": counts}


@cache
def sampler_fingerprint(model: str) -> str:
    """Return a fingerprint of the draws of a model: a few sweeps on a small matrix, rounded to six digits."""
    rng = np.random.default_rng(0)
    X = rng.exponential(5.0, (9, 7)).round(2)
    X[rng.random(X.shape) < 0.3] = np.nan
    sampled = Model(ObservedMatrix.from_data(X), 3, PRIORS[model](0.1))
    numbers = [
        number
        for state in gibbs.sample(sampled, Stream(0), n_sweeps=5, moves=PLAIN)
        for number in (state.W.sum(), (state.Zt**2).sum(), state.sigma2, state.squared_error)
    ]
    return digests.of_bytes(" ".join(f"{number:.6g}" for number in numbers).encode())[:16]


def data_fingerprint(X: npt.ArrayLike) -> str:
    """Return a fingerprint of a matrix, NaN where missing."""
    matrix = np.asarray(X, dtype=float)
    # NaN and zero have several bit patterns: use one of each.
    return digests.of_arrays(np.where(np.isnan(matrix), np.nan, matrix + 0.0))[:16]


class FinishedFits:
    """The results of finished fits in a directory, one small file for each settings, data and draws of the sampler."""

    def __init__(self, directory: str | os.PathLike[str], fingerprints: Mapping[str, str]) -> None:
        self.directory = Path(directory)
        self.fingerprints = fingerprints

    def path(self, fit: Fit) -> Path:
        """Return the file of a fit."""
        identity = {"fit": fit.settings(), "data": self.fingerprints[fit.dataset]}
        if not fit.is_baseline:
            identity["sampler"] = sampler_fingerprint(fit.model)
        return self.directory / f"{digests.of_json(identity)[:32]}.npz"

    def load(self, fit: Fit) -> Result | None:
        """Return the result of a fit, or None if it has not been saved or its file is damaged."""
        try:
            # np.load leaves a file that it cannot read open; bytes need no closing.
            with np.load(io.BytesIO(self.path(fit).read_bytes())) as file:
                return {name: file[name] for name in file.files if name != "fit"}
        except (FileNotFoundError, ValueError, EOFError, KeyError, zipfile.BadZipFile):
            return None

    def save(self, fit: Fit, result: Result) -> None:
        """Write a result in one step."""
        self.directory.mkdir(parents=True, exist_ok=True)
        settings = np.array(json.dumps(fit.settings()))
        files.write_bytes(self.path(fit), files.npz_bytes({"fit": settings, **result}, compressed=True))


def run_fits(
    fits: Iterable[Fit],
    datasets: Mapping[str, Any],
    *,
    finished: FinishedFits | None = None,
    n_jobs: int | None = 1,
    progress: bool = False,
) -> dict[Fit, Result]:
    """Run every fit that is not finished, add its result to `finished` as soon as it ends, and return those of all."""
    wanted = list(dict.fromkeys(fits))
    results = {fit: found for fit in wanted if finished is not None and (found := finished.load(fit)) is not None}
    missing = _shuffled([fit for fit in wanted if fit not in results])
    matrices = {name: np.asarray(X, dtype=float) for name, X in datasets.items()}
    if progress:
        print(f"{len(wanted)} fits, {len(results)} of them already finished", file=sys.stderr, flush=True)
    parallel = joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1, pre_dispatch="3*n_jobs")
    jobs = (joblib.delayed(_run)(fit, matrices[fit.dataset], os.getpid()) for fit in missing)
    try:
        with counted(len(wanted), "fits", progress, len(results)) as show, _quiet_shutdown():
            for fit, result in parallel(jobs) if missing else ():
                if finished is not None:
                    finished.save(fit, result)
                results[fit] = result
                show(len(results))
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"{len(results)} of {len(wanted)} fits are done") from None
    return {fit: results[fit] for fit in wanted}


def _shuffled(fits: list[Fit]) -> list[Fit]:
    """Return the fits repeat by repeat, long and short ones mixed for a reliable estimate of the time left."""
    order = np.random.default_rng(0).permutation(len(fits))
    return sorted((fits[i] for i in order), key=lambda fit: fit.repeat)


def _run(fit: Fit, X: Floats, caller: int) -> tuple[Fit, Result]:
    """Run a fit, in this process or in another one."""
    if os.getpid() != caller and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process; the caller ends this one
    return fit, run_fit(fit, X)


@contextmanager
def _quiet_shutdown() -> Iterator[None]:
    """Hide a KeyError in the manager thread of loky, which a fit that ends during a shutdown by Ctrl-C can cause."""
    show = threading.excepthook
    hidden = (KeyError, "ExecutorManagerThread")
    threading.excepthook = lambda error: (error.exc_type, getattr(error.thread, "name", "")) == hidden or show(error)
    try:
        yield
    finally:
        threading.excepthook = show
