"""cmfrec's nonnegative alternating least squares on the observed entries."""

from typing import Any

import scipy.sparse as sp
from cmfrec import CMF

from benchmarks.peers.timing import by_difference


class Cmfrec:
    """Time per iteration, in double precision and without biases, like the model of bnmf."""

    def __init__(self, X: Any, rank: int, n_threads: int) -> None:
        self.X = sp.coo_matrix(X) if sp.issparse(X) else X
        self.rank, self.n_threads = rank, n_threads

    def _fit(self, n: int) -> None:
        CMF(
            k=self.rank,
            nonneg=True,
            niter=n,
            nthreads=self.n_threads,
            user_bias=False,
            item_bias=False,
            center=False,
            use_float=False,
            precompute_for_predictions=False,
            verbose=False,
        ).fit(self.X)

    def measure(self, n: int) -> dict[str, float]:
        return {"seconds": by_difference(self._fit, n)}
