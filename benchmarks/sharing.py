"""From how many rows with the same missing entries a shared system pays: ``python -m benchmarks.sharing``.

Prints the time of a half-sweep with shared systems over that with residuals, for patterns shared by few rows. The rule
`min_sharing` in `bnmf.data.half_sweeps` follows where the ratio falls below 1.
"""

from __future__ import annotations

import time
from unittest import mock

import numpy as np

from bnmf.data import half_sweeps
from bnmf.data.observed import ObservedMatrix
from bnmf.datasets import make_low_rank
from bnmf.model.model import Model
from bnmf.sampler import gibbs
from bnmf.sampler.streams import Stream
from bnmf.sampler.threads import Workers
from bnmf.utils.typing import Floats

N_ROWS, N_COLUMNS = 256, 400
RANKS = (8, 20, 50, 100)
ALWAYS, NEVER = 2, N_ROWS + 1


def matrix(missing: float, n_sharing: int) -> Floats:
    """Return a matrix in which `n_sharing` consecutive rows have the same missing entries."""
    X = make_low_rank(N_ROWS, N_COLUMNS, 5, missing=0.0, random_state=0).data
    patterns = np.random.default_rng(0).uniform(size=(N_ROWS, N_COLUMNS)) < missing
    X[patterns[np.arange(N_ROWS) // n_sharing]] = np.nan
    return X


def half_sweep_time(model: Model, min_sharing: int, repeats: int = 12) -> int:
    """Return the minimum CPU time of a half-sweep, in nanoseconds."""
    state = gibbs.start(model, Stream(0))
    W, ones, workers = state.W.copy(), np.ones(1), Workers()
    times = []
    with mock.patch.object(half_sweeps, "min_sharing", return_value=min_sharing):
        for repeat in range(repeats):
            key = np.uint64(1), np.uint64(repeat)
            begin = time.thread_time_ns()
            prior = model.coefficients()[0]
            model.data.rows.scaled().half_sweep(W, state.Zt, prior, ones, ones, key, workers, needs_errors=False)
            times.append(time.thread_time_ns() - begin)
    return min(times)


def main() -> None:
    print("| missing | rows that share | " + " | ".join(f"K = {k}" for k in RANKS) + " |")
    print("|---|---|" + "---|" * len(RANKS))
    for missing in (0.1, 0.3):
        for n_sharing in (2, 3, 4, 6, 8, 16):
            data = ObservedMatrix.from_data(matrix(missing, n_sharing))
            models = [Model(data, k, "gee") for k in RANKS]
            ratios = [half_sweep_time(model, ALWAYS) / half_sweep_time(model, NEVER) for model in models]
            row = " | ".join(f"{ratio:.2f}" for ratio in ratios)
            print(f"| {missing:.0%} | {n_sharing} | {row} |", flush=True)


if __name__ == "__main__":
    main()
