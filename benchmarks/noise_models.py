"""Time of a sweep with unequal variances, units of columns and learned rates, over that of the paper's model.

    python -m benchmarks.noise_models [--data-dir ../shared/data]

The variants take turns in one process, one thread; ratios are medians over the turns.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

from bnmf.data import ObservedMatrix
from bnmf.model import Model
from bnmf.model.units import units_of
from bnmf.priors import L1
from bnmf.sampler.gibbs import start, step
from bnmf.sampler.streams import Stream
from bnmf.sampler.threads import Workers, single_threaded_blas

VARIANTS: dict[str, dict[str, Any]] = {
    "common noise": {},
    "noise by column": {"noise": "column"},
    "noise by row": {"noise": "row"},
    "noise by both": {"noise": "both"},
    "by column, scaled columns": {"noise": "column", "scale": "column"},
    "the defaults (learned rates too)": {"noise": "column", "scale": "column", "prior": L1(by="component")},
}
TURNS, BURN_IN_SWEEPS, SECONDS_OF_A_TURN = 15, 50, 0.15


def matrices(data_dir: Path | None) -> dict[str, tuple[np.ndarray, int]]:
    """Return matrices with the number of components to use."""
    rng = np.random.default_rng(0)
    found = {}
    if data_dir is not None:
        from bnmf.datasets import fetch_gdsc_ic50

        found["GDSC"] = fetch_gdsc_ic50(data_home=data_dir, download_if_missing=False).data.to_numpy(float), 20
    for name, shape, missing, rank in (("1000 x 400, 50% missing", (1000, 400), 0.5, 20),
                                       ("100 x 50, 20% missing", (100, 50), 0.2, 5)):  # fmt: skip
        X = rng.exponential(size=(shape[0], 4)) @ rng.exponential(size=(4, shape[1])) + 0.5 * rng.random(shape)
        X[rng.random(shape) < missing] = np.nan
        found[name] = X, rank
    return found


class Chain:
    """A chain of one variant after its burn-in."""

    def __init__(self, X: np.ndarray, rank: int, scale: str | None = None, prior: Any = "gee", **settings: Any) -> None:
        data = ObservedMatrix.from_data(X)
        self.model = Model(data, rank, prior, units=units_of(data, scale, None)[0], **settings)
        self.stream, self.workers = Stream(0), Workers()
        self.state = start(self.model, self.stream)
        self.seconds_of(BURN_IN_SWEEPS)

    def seconds_of(self, n_sweeps: int) -> float:
        began = time.perf_counter()
        for _ in range(n_sweeps):
            self.state = step(self.model, self.state, self.stream, self.workers)
        return (time.perf_counter() - began) / n_sweeps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path)
    print("| | " + " | ".join(VARIANTS) + " |\n|---" + "|---" * len(VARIANTS) + "|")
    for name, (X, rank) in matrices(parser.parse_args().data_dir).items():
        with single_threaded_blas():
            chains = [Chain(X, rank, **settings) for settings in VARIANTS.values()]
            n_sweeps = max(3, int(SECONDS_OF_A_TURN / chains[0].seconds_of(5)))
            times = np.array([[chain.seconds_of(n_sweeps) for chain in chains] for _ in range(TURNS)])
        ratios = np.median(times / times[:, :1], axis=0)
        cells = [f"{np.median(times[:, 0]) * 1e6:.0f} µs", *(f"{ratio:.2f}" for ratio in ratios[1:])]
        print(f"| {name}, K = {rank} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
