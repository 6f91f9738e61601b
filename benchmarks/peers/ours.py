"""bnmf: the Gibbs sampler that all public functions use."""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.peers.measures import timed, worst_ess
from bnmf.data.observed import ObservedMatrix
from bnmf.model.model import Model
from bnmf.sampler.gibbs import start, step
from bnmf.sampler.moves import MIXING, Moves
from bnmf.sampler.streams import Stream
from bnmf.sampler.threads import Workers, single_threaded_blas

# Limits on the sweeps of burn-in; between them the time decides. Early sweeps are not typical.
MAX_BURN_IN_SWEEPS, MIN_BURN_IN_SWEEPS = 200, 2
# What an iteration of others is compared with: every entry is drawn once. Effective samples are compared by default.
ONE_PASS = Moves(n_passes=1, n_partners=0)


def model_of(X: Any, rank: int) -> Model:
    """Return the GEE model of a matrix."""
    options: Any = {"unstored": "missing"} if sp.issparse(X) else {}
    return Model(ObservedMatrix.from_data(X, negative=True, **options), rank, prior="gee")


class Chain:
    """One chain that can be continued."""

    def __init__(self, model: Model, number: int, n_threads: int, moves: Moves = ONE_PASS) -> None:
        self.model, self.moves = model, moves
        self.stream = Stream(0, number)
        self.workers = Workers(n_threads)
        self.state = start(model, self.stream, workers=self.workers)

    def sweep(self, n: int) -> None:
        for _ in range(n):
            self.state = step(self.model, self.state, self.stream, self.workers, self.moves)

    def burn_in(self, seconds: float) -> None:
        self.sweep(1)
        began = time.perf_counter()
        for sweep in range(MAX_BURN_IN_SWEEPS):
            if sweep >= MIN_BURN_IN_SWEEPS and time.perf_counter() - began > seconds:
                return
            self.sweep(1)


class Sweeps:
    """Time per sweep of one chain whose rows are shared between the threads."""

    def __init__(self, X: Any, rank: int, n_threads: int, burn_in: float) -> None:
        self.chain = Chain(model_of(X, rank), 0, n_threads)
        self.chain.burn_in(burn_in)

    def measure(self, n: int) -> dict[str, float]:
        return {"seconds": timed(lambda: self.chain.sweep(n)) / n}


class Chains:
    """Time per sweep of parallel chains, one per thread."""

    def __init__(self, X: Any, rank: int, n_threads: int, burn_in: float) -> None:
        model = model_of(X, rank)
        self.chains = [Chain(model, number, 1) for number in range(n_threads)]
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
        self.chain = Chain(model_of(X, rank), 0, n_threads, MIXING)
        self.chain.sweep(warmup)
        self.thinning = thinning

    def measure(self, n: int) -> dict[str, float]:
        draws = []

        def run() -> None:
            for _ in range(n):
                self.chain.sweep(self.thinning)
                draws.append(self.chain.state)

        seconds = timed(run)
        ess = worst_ess(np.stack([(draw.W @ draw.Z).ravel() for draw in draws]))
        noise = float(np.mean([draw.sigma2 for draw in draws]))
        return {"seconds": seconds / ess, "worst ESS": ess, "draws": n, "noise variance": noise}
