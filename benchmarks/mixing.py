"""Effective samples with different moves of a sweep.

    python -m benchmarks.mixing --data-dir ../shared/data [--write docs/mixing.md]
    python -m benchmarks.mixing --limits

For each setting of `bnmf.sampler.moves.Moves`, the table has the time of a sweep and the effective samples per second
of predictions W Z, of the worst of them and of the median, both over those of plain Gibbs sampling with rescaling. Two
chains of GEE with common noise; CPU time of one thread.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from arviz_stats.base import array_stats

from benchmarks import pages
from bnmf import BayesianNMF, limits
from bnmf.data.observed import ObservedMatrix
from bnmf.datasets import make_low_rank, make_ratings
from bnmf.model.model import Model
from bnmf.sampler import gibbs
from bnmf.sampler.moves import Moves
from bnmf.sampler.streams import Stream
from bnmf.sampler.threads import Workers
from bnmf.utils.typing import Floats

SETTINGS = {
    "rescaling": Moves(1, True, 0),
    "shears with 4 partners": Moves(1, True, 4),
    "two passes": Moves(2, True, 0),
    "two passes, 4 partners": Moves(2, True, 4),
    "two passes, 8 partners": Moves(2, True, 8),
    "two passes, 16 partners": Moves(2, True, 16),
    "three passes, 8 partners": Moves(3, True, 8),
}
N_PREDICTIONS = 400


def problems(data_dir: Path, quick: bool) -> Iterator[tuple[str, ObservedMatrix, int, int]]:
    """Yield names, data, ranks and numbers of sweeps."""
    factor = 4 if quick else 1
    X = make_low_rank(100, 50, 5, missing=0.2, random_state=0).data
    yield "100 x 50, K = 5", ObservedMatrix.from_data(X), 5, 4000 // factor
    X = make_low_rank(80, 60, 4, missing=0.2, random_state=0).data
    yield "80 x 60, K = 6 of 4", ObservedMatrix.from_data(X), 6, 4000 // factor
    gdsc = data_dir / "gdsc" / "ic50.txt"
    if gdsc.exists():
        yield "GDSC, K = 10", ObservedMatrix.from_data(np.loadtxt(gdsc)), 10, 2000 // factor
    ratings = make_ratings(2000, 1500, 100_000, random_state=0).data
    yield "100,000 ratings, K = 10", ObservedMatrix.from_data(ratings, unstored="missing"), 10, 400 // factor


def predictions(model: Model, moves: Moves, n_sweeps: int, chain: int) -> tuple[Floats, float]:
    """Return predictions after each kept sweep, and the mean time of a sweep in seconds."""
    rng = np.random.default_rng(0)
    rows, columns = (rng.integers(0, side, N_PREDICTIONS) for side in model.data.shape)
    stream, kept, seconds = Stream(1, chain), np.empty((n_sweeps, N_PREDICTIONS)), 0.0
    with Workers() as workers:
        state = gibbs.start(model, stream, workers=workers)
        for sweep in range(-n_sweeps // 2, n_sweeps):
            began = time.thread_time()
            state = gibbs.step(model, state, stream, workers, moves)
            if sweep >= 0:  # the first sweeps are not typical
                seconds += time.thread_time() - began
                kept[sweep] = np.einsum("ik,ik->i", state.W[rows], state.Zt[columns])
    return kept, seconds / n_sweeps


def effective(draws: Floats) -> Floats:
    """Return the effective sample size of each prediction, from draws (chain, draw, prediction)."""
    return np.array([array_stats.ess(each, method="mean") for each in np.moveaxis(draws, 2, 0)])


def with_limits(n_draws: int) -> str:
    """Return effective samples by the share of the entries of each column that are capped or below a limit."""
    rng = np.random.default_rng(0)
    X = make_low_rank(100, 50, 5, noise=0.5, missing=0.2, random_state=0).data
    rows, columns = (rng.integers(0, side, N_PREDICTIONS) for side in X.shape)
    lines = []
    for share in (0.0, 0.1, 0.5, 0.9):
        cap, floor = np.nanquantile(X, 1.0 - 0.5 * share, axis=0), np.nanquantile(X, 0.5 * share, axis=0)
        given = limits(X, capped=cap, floored=floor)._asdict() if share else {}
        model = BayesianNMF(n_draws=n_draws, burn_in=n_draws, random_state=0, calibrate=False)
        with warnings.catch_warnings(action="ignore"):
            posterior = model.fit(X, **given).posterior_
        ess = effective(posterior.draws_of(rows, columns, noise=False))
        worst, median = f"{ess.min():.0f} of {posterior.n_chains * n_draws}", f"{np.median(ess):.0f}"
        lines.append([f"{share:.0%}", worst, median, f"{posterior.prediction_error():.0%}"])
    return pages.table(["limited", "worst prediction: ESS", "median prediction: ESS", "Monte Carlo error"], lines)


def by_moves(data_dir: Path, quick: bool) -> str:
    """Return time and effective samples of each setting of the moves on each problem."""
    lines = []
    for name, data, n_components, n_sweeps in problems(data_dir, quick):
        model, base = Model(data, n_components, "gee"), None
        for setting, moves in SETTINGS.items():
            chains = [predictions(model, moves, n_sweeps, chain) for chain in range(2)]
            seconds = sum(time for _, time in chains) / len(chains)
            ess = effective(np.stack([kept for kept, _ in chains]))
            rates = np.array([ess.min(), np.median(ess)]) / (seconds * 2 * n_sweeps)
            base = rates if base is None else base
            ratios = [f"{ratio:.2f}" for ratio in rates / base]
            lines.append([name, setting, f"{seconds * 1e6:.0f}", f"{ess.min():.0f} of {2 * n_sweeps}", *ratios])
            print(*lines[-1], sep=", ", flush=True)
    header = ["", "moves", "µs a sweep", "worst prediction: ESS", "ESS per second, ratio", "median prediction, ratio"]
    return pages.table(header, lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, default=Path("../shared/data"))
    parser.add_argument("--quick", action="store_true", help="a quarter of the sweeps")
    parser.add_argument("--limits", action="store_true", help="effective samples of limited data only")
    parser.add_argument("--write", type=Path, help="the page whose table of moves is replaced")
    options = parser.parse_args()
    if options.limits:
        print(with_limits(250 if options.quick else 1000))
        return
    table = by_moves(options.data_dir, options.quick)
    print(table)
    if options.write:
        pages.write(options.write, moves=table)


if __name__ == "__main__":
    main()
