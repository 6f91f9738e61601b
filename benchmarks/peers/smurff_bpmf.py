"""SMURFF's Bayesian probabilistic matrix factorisation: a Gibbs sampler in C++."""

from typing import Any

import smurff

from benchmarks.data import entries, is_full
from benchmarks.peers.timing import timed

ENDLESS = 10_000_000


class Smurff:
    """Time of a sweep. A full matrix goes in dense, one with holes as CSR."""

    def __init__(self, X: Any, rank: int, n_threads: int) -> None:
        self.session = smurff.BPMFSession(
            X if is_full(X) else entries(X),
            is_scarce=True,
            num_latent=rank,
            num_threads=n_threads,
            burnin=2,
            nsamples=ENDLESS,
            seed=1,
            verbose=0,
        )
        self.session.init()
        self.session.step()

    def measure(self, n: int) -> dict[str, float]:
        return {"seconds": timed(lambda: [self.session.step() for _ in range(n)]) / n}
