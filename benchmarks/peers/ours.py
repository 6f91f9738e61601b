"""bnmf itself, through the sampler that every public door leads to."""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.peers.effective import worst_ess
from benchmarks.peers.timing import timed
from bnmf import gibbs
from bnmf.observed import ObservedMatrix
from bnmf.workers import Workers, single_threaded_blas

# Early sweeps are not typical. On small data this many are enough; on large data the time decides.
MOST_BURN_IN, LEAST_BURN_IN = 200, 2


def model_of(X: Any, rank: int) -> gibbs.Model:
    """Return the GEE model of a matrix."""
    options = {"unstored": "missing"} if sp.issparse(X) else {}
    return gibbs.Model(ObservedMatrix.from_data(X, negative=True, **options), rank, prior="gee")


class Chain:
    """One chain that can be asked for more sweeps."""

    def __init__(self, model: gibbs.Model, number: int, n_threads: int) -> None:
        self.model = model
        self.stream = gibbs.Stream(0, number)
        self.workers = Workers(n_threads)
        self.state = gibbs.start(model, self.stream, workers=self.workers)

    def sweep(self, n: int) -> None:
        for _ in range(n):
            self.state = gibbs.step(self.model, self.state, self.stream, self.workers)

    def burn_in(self, seconds: float) -> None:
        self.sweep(1)  # compiles
        began = time.perf_counter()
        for sweep in range(MOST_BURN_IN):
            if sweep >= LEAST_BURN_IN and time.perf_counter() - began > seconds:
                return
            self.sweep(1)


class Sweeps:
    """Time of a sweep, the threads sharing its rows."""

    def __init__(self, X: Any, rank: int, n_threads: int, burn_in: float) -> None:
        self.chain = Chain(model_of(X, rank), 0, n_threads)
        self.chain.burn_in(burn_in)

    def measure(self, n: int) -> dict[str, float]:
        return {"seconds": timed(lambda: self.chain.sweep(n)) / n}


class Chains:
    """Time of a sweep when as many chains as threads run at once, each in a thread of its own."""

    def __init__(self, X: Any, rank: int, n_threads: int, burn_in: float) -> None:
        model = model_of(X, rank)
        self.chains = [Chain(model, number, 1) for number in range(n_threads)]
        for chain in self.chains:
            chain.burn_in(burn_in / n_threads)
        self.pool = ThreadPoolExecutor(n_threads)

    def measure(self, n: int) -> dict[str, float]:
        def all_chains() -> None:
            with single_threaded_blas():  # held for all chains at once, as `bnmf.chains.run` does
                list(self.pool.map(lambda chain: chain.sweep(n), self.chains))

        return {"seconds": timed(all_chains) / (n * len(self.chains))}


class Effective:
    """Seconds of one effective sample of the worst prediction; `n` draws are kept, each after `thinning` sweeps."""

    def __init__(self, X: Any, rank: int, n_threads: int, warmup: int, thinning: int) -> None:
        self.chain = Chain(model_of(X, rank), 0, n_threads)
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
