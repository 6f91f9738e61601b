"""implicit's alternating least squares by conjugate gradients.

Its factors may be negative, and unstored entries are zeros with a low weight.
"""

from typing import Any

import numpy as np
from implicit.cpu.als import AlternatingLeastSquares

from benchmarks.matrices import entries


class Implicit:
    """Time per iteration as reported by implicit, in double precision."""

    def __init__(self, X: Any, rank: int, n_threads: int) -> None:
        self.X = entries(X)
        self.rank, self.n_threads = rank, n_threads

    def measure(self, n: int) -> dict[str, float]:
        seconds: list[float] = []
        model = AlternatingLeastSquares(
            factors=self.rank,
            iterations=n,
            num_threads=self.n_threads,
            dtype=np.float64,
            random_state=0,
        )
        model.fit(self.X, show_progress=False, callback=lambda _, elapsed, *loss: seconds.append(elapsed))
        return {"seconds": sum(seconds) / n}
