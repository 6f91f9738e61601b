"""bnmf: the Gibbs sampler that all public functions use."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import scipy.sparse as sp
from arviz_stats.base import array_stats

from bnmf.data.observed import ObservedMatrix
from bnmf.model.model import Model
from bnmf.sampler.gibbs import start, step
from bnmf.sampler.moves import MIXING, Moves
from bnmf.sampler.streams import Stream
from bnmf.sampler.threads import Workers, single_threaded_blas
from bnmf.utils.typing import Floats

# Limits on the sweeps of burn-in; between them the time decides. Early sweeps are not typical.
MAX_BURN_IN_SWEEPS, MIN_BURN_IN_SWEEPS = 200, 3
# What an iteration of others is compared with: every entry is drawn once. Effective samples are compared by default.
ONE_PASS = Moves(n_passes=1, n_partners=0)


def timed(call: Callable[[], Any]) -> float:
    """Return the seconds of a call."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def effective(seconds: float, predictions: Floats, noise_variance: Any) -> dict[str, float]:
    """Return the seconds per effective sample of the worst of some predictions (draws, entries) of one chain."""
    ess = float(np.min(array_stats.ess(predictions[None], chain_axis=0, draw_axis=1, method="bulk")))
    facts = {"worst ESS": ess, "draws": len(predictions), "noise variance": float(np.mean(noise_variance))}
    return {"seconds": seconds / ess, **facts}


def model_of(X: Any, rank: int, prior: str = "gee", **settings: Any) -> Model:
    """Return the model of a matrix, GEE unless stated."""
    options: Any = {"unstored": "missing"} if sp.issparse(X) else {}
    return Model(ObservedMatrix.from_data(X, negative=True, **options), rank, prior, **settings)


class Chain:
    """One chain that can be continued."""

    def __init__(self, model: Model, number: int = 0, n_threads: int = 1, moves: Moves = ONE_PASS) -> None:
        self.model, self.moves = model, moves
        self.stream = Stream(0, number)
        self.workers = Workers(n_threads)
        self.state = start(model, self.stream, workers=self.workers)

    def sweep(self, n: int = 1) -> None:
        for _ in range(n):
            self.state = step(self.model, self.state, self.stream, self.workers, self.moves)

    def burn_in(self, seconds: float) -> None:
        began = time.perf_counter()
        for sweep in range(MAX_BURN_IN_SWEEPS):
            if sweep >= MIN_BURN_IN_SWEEPS and time.perf_counter() - began > seconds:
                return
            self.sweep()


class Sweeps:
    """Time per sweep of one chain whose rows are shared between the threads."""

    def __init__(self, X: Any, rank: int, n_threads: int, burn_in: float) -> None:
        self.chain = Chain(model_of(X, rank), n_threads=n_threads)
        self.chain.burn_in(burn_in)

    def measure(self, n: int) -> dict[str, float]:
        return {"seconds": timed(lambda: self.chain.sweep(n)) / n}


class FastestSweep:
    """Minimum CPU time of a sweep of one chain on one thread, which other load on the machine affects least."""

    def __init__(
        self, X: Any, rank: int, n_threads: int, burn_in: float, default_moves: bool = False, **settings: Any
    ) -> None:
        self.chain = Chain(model_of(X, rank, **settings), moves=MIXING if default_moves else ONE_PASS)
        self.chain.burn_in(burn_in)

    def cpu_seconds(self) -> float:
        """Return the CPU time of the next sweep."""
        began = time.thread_time_ns()
        self.chain.sweep()
        return (time.thread_time_ns() - began) * 1e-9

    def measure(self, n: int) -> dict[str, float]:
        return {"seconds": min(self.cpu_seconds() for _ in range(n))}


class Chains:
    """Time per sweep of parallel chains, one per thread."""

    def __init__(self, X: Any, rank: int, n_threads: int, burn_in: float) -> None:
        model = model_of(X, rank)
        self.chains = [Chain(model, number) for number in range(n_threads)]
        for chain in self.chains:
            chain.burn_in(burn_in / n_threads)
        self.pool = ThreadPoolExecutor(n_threads)

    def measure(self, n: int) -> dict[str, float]:
        def all_chains() -> None:
            with single_threaded_blas():  # around all chains, as in `bnmf.sampler.chains.run`
                list(self.pool.map(lambda chain: chain.sweep(n), self.chains))

        return {"seconds": timed(all_chains) / (n * len(self.chains))}


class Effective:
    """Time per effective sample of the worst prediction, with one draw kept every `thinning` sweeps."""

    def __init__(self, X: Any, rank: int, n_threads: int, warmup: int, thinning: int) -> None:
        self.chain = Chain(model_of(X, rank), n_threads=n_threads, moves=MIXING)
        self.chain.sweep(warmup)
        self.thinning = thinning

    def measure(self, n: int) -> dict[str, float]:
        draws = []

        def run() -> None:
            for _ in range(n):
                self.chain.sweep(self.thinning)
                draws.append(self.chain.state)

        seconds = timed(run)
        predictions = np.stack([(draw.W @ draw.Z).ravel() for draw in draws])
        return effective(seconds, predictions, [draw.sigma2 for draw in draws])
