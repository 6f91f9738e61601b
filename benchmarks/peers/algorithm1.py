"""Algorithm 1 of the paper, as the project's own reference has it in NumPy."""

from typing import Any

import numpy as np

from benchmarks.peers.timing import timed
from bnmf.reference import reference_sample


class Reference:
    """Time of a sweep."""

    def __init__(self, X: Any, rank: int, n_threads: int) -> None:
        rng = np.random.default_rng(0)
        level = np.sqrt(np.nanmean(X) / rank)
        W, Z = (level * rng.exponential(size=shape) for shape in ((X.shape[0], rank), (rank, X.shape[1])))
        self.states = reference_sample(np.nan_to_num(X), ~np.isnan(X), W, Z, "gee", rng=rng)

    def measure(self, n: int) -> dict[str, float]:
        return {"seconds": timed(lambda: [next(self.states) for _ in range(n)]) / n}
