"""SMURFF's Bayesian probabilistic matrix factorisation: a Gibbs sampler in C++."""

from typing import Any

import smurff

from benchmarks.matrices import entries, is_complete
from benchmarks.peers.measures import timed

# Larger than any number of sweeps that is timed; the session is advanced one sweep at a time.
N_SAMPLES = 10_000_000


class Smurff:
    """Time per sweep. A complete matrix is passed as a dense array, an incomplete one as CSR."""

    def __init__(self, X: Any, rank: int, n_threads: int) -> None:
        self.session = smurff.BPMFSession(
            X if is_complete(X) else entries(X),
            is_scarce=True,
            num_latent=rank,
            num_threads=n_threads,
            burnin=2,
            nsamples=N_SAMPLES,
            seed=1,
            verbose=0,
        )
        self.session.init()
        self.session.step()

    def measure(self, n: int) -> dict[str, float]:
        return {"seconds": timed(lambda: [self.session.step() for _ in range(n)]) / n}
