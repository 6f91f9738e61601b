"""The fastest sweep of bnmf: of this version, or of the earlier one that PYTHONPATH leads to."""

import time
from typing import Any

import scipy.sparse as sp

from bnmf.data.observed import ObservedMatrix
from bnmf.model.model import Model
from bnmf.sampler.gibbs import start, step
from bnmf.sampler.moves import Moves
from bnmf.sampler.streams import Stream
from bnmf.sampler.threads import Workers

ONE_PASS: Any = [Moves(n_passes=1, n_partners=0)]
# Limits on the sweeps of burn-in; between them the time decides. Early sweeps are not typical.
MAX_BURN_IN_SWEEPS, MIN_BURN_IN_SWEEPS = 200, 3


class FastestSweep:
    """Minimum CPU time of a sweep of one chain on one thread, which other load on the machine affects least.

    A sweep draws every entry once and ends with the rescaling move, or has the default moves of this version.
    """

    def __init__(
        self,
        X: Any,
        rank: int,
        n_threads: int,
        burn_in: float,
        prior: str = "gee",
        default_moves: bool = False,
        **settings: Any,
    ) -> None:
        options: Any = {"unstored": "missing"} if sp.issparse(X) else {}
        self.model = Model(ObservedMatrix.from_data(X, negative=True, **options), rank, prior, **settings)
        self.stream, self.workers = Stream(0), Workers()
        self.moves = [] if default_moves else ONE_PASS
        self.state = start(self.model, self.stream)
        self.cpu_seconds()  # compiles
        spent = 0.0
        for sweep in range(MAX_BURN_IN_SWEEPS):
            if sweep >= MIN_BURN_IN_SWEEPS and spent > burn_in:
                break
            spent += self.cpu_seconds()

    def cpu_seconds(self) -> float:
        """Return the CPU time of the next sweep."""
        began = time.thread_time_ns()
        self.state = step(self.model, self.state, self.stream, self.workers, *self.moves)
        return (time.thread_time_ns() - began) * 1e-9

    def measure(self, n: int) -> dict[str, float]:
        return {"seconds": min(self.cpu_seconds() for _ in range(n))}
