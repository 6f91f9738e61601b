"""Algorithm 1 of the paper: the NumPy reference implementation of the tests."""

from typing import Any

import numpy as np
from tests.reference import reference_sample

from benchmarks.peers.measures import timed


class Reference:
    """Time per sweep."""

    def __init__(self, X: Any, rank: int, n_threads: int) -> None:
        rng = np.random.default_rng(0)
        scale = np.sqrt(np.nanmean(X) / rank)
        W, Z = (scale * rng.exponential(size=shape) for shape in ((X.shape[0], rank), (rank, X.shape[1])))
        self.states = reference_sample(np.nan_to_num(X), ~np.isnan(X), W, Z, "gee", rng=rng)

    def measure(self, n: int) -> dict[str, float]:
        return {"seconds": timed(lambda: [next(self.states) for _ in range(n)]) / n}
