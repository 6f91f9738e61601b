"""The noise of difficult tables: coverage, log density, error and time of several noise models.

    python -m benchmarks.noise_floor [--splits 1] [--write docs/noise_floor.md]

Some tables are simulated, with many zeros, duplicated or nearly collinear columns, or skewed ones; the others are real.
"""

import argparse
import time
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks import pages
from benchmarks.held_out import error, hide, load_tables, run, uncertainty
from bnmf import BayesianNMF
from bnmf.imputer import ANY_TABLE
from bnmf.noise import ContaminatedNoise, GroupedNoise, StudentT
from bnmf.utils.typing import Floats

NOISES = {
    "no floor": GroupedNoise(floor=0.0),
    "column": GroupedNoise(),
    "contaminated": ContaminatedNoise(),
    "student-t": StudentT(),
}
MODELS = {"BayesianNMF": {}, "NMFImputer": ANY_TABLE}
METHODS = {f"{model}, {noise}": (model, noise) for model, noise in product(MODELS, NOISES)}
CHAINS = {"n_chains": 2, "burn_in": 200, "n_draws": 150, "calibrate": False}
REAL = ("breast_cancer", "diabetes", "iris", "wine", "ccard", "fertility", "macrodata", "star98", "statecrime")


def simulated() -> dict[str, Floats]:
    """Return tables on which the noise of a column can vanish, by name."""
    rngs = [np.random.default_rng(seed) for seed in range(1, 7)]
    rain, counts, parts, few, skewed, outlying = rngs
    clean = (
        10.0 + outlying.normal(size=(300, 2)) @ outlying.normal(size=(2, 10)) + 0.5 * outlying.normal(size=(300, 10))
    )
    means = counts.gamma(0.5, 2.0, (200, 3)) @ counts.gamma(0.5, 2.0, (3, 15))
    signal = few.exponential(size=(200, 2)) @ few.exponential(size=(2, 6)) + 0.3 * few.random((200, 6))
    nearly = signal[:, :3] * (1 + 1e-3 * few.standard_normal((200, 3)))
    return {
        "like rain": np.where(
            rain.random((300, 8)) < 0.6, 0.0, rain.gamma(0.7, 5.0, (300, 8)) * rain.exponential(size=(300, 1))
        ),
        "counts, many zeros": np.where(
            counts.random(means.shape) < 0.6, 0.0, counts.poisson(means * counts.gamma(0.7, 1 / 0.7, means.shape))
        ),
        "compositions": parts.dirichlet([0.3, 0.5, 0.8, 1.0, 1.0, 2.0, 3.0, 4.0], 300),
        "duplicated columns": np.hstack([signal, signal[:, :3]]),
        "nearly collinear columns": np.hstack([signal, nearly]),
        "skewed": np.exp(
            skewed.normal(size=(400, 2)) @ skewed.normal(size=(2, 9)) + 0.7 * skewed.normal(size=(400, 9))
        ),
        "very skewed": np.exp(
            1.5 * skewed.normal(size=(300, 2)) @ skewed.normal(size=(2, 10)) + skewed.normal(size=(300, 10))
        ),
        "normal": clean,
        "2% outliers": np.where(
            outlying.random(clean.shape) < 0.02, clean + 20.0 * outlying.random(clean.shape), clean
        ),
    }


def measure(X: Floats, method: str, seed: int) -> dict[str, float] | None:
    """Return scores of hidden entries, and seconds of the processor."""
    model, noise = METHODS[method]
    if model == "BayesianNMF" and np.nanmin(X) < 0:
        return None
    hidden, began = hide(X, seed), time.process_time()
    settings = MODELS[model] | CHAINS | {"noise": NOISES[noise]}
    fitted = BayesianNMF(random_state=seed, n_jobs=1, **settings).fit(np.where(hidden, np.nan, X))
    seconds = time.process_time() - began
    posterior = fitted.posterior_
    scores = uncertainty(posterior, X, hidden)
    return {"error": error(X, hidden, posterior.mean()), **scores, "seconds": seconds}


def by_table(found: pd.DataFrame) -> str:
    """Return a row for each table and model, with the scores of all noise models in each cell."""
    digits = {"coverage": 2, "worst column": 2, "log density, less that of a normal": 2, "error": 3}
    rows = []
    for (name, model), part in found.groupby(["table", "model"], sort=False):
        cells = [" / ".join(f"{value:.{n}f}" for value in part[score]) for score, n in digits.items()]
        rows.append([str(name), str(model), *cells])
    return pages.table(["table", "model", "coverage", "worst column", "log density", "error"], rows)


def over_tables(found: pd.DataFrame) -> str:
    """Return a row for each model and noise: the lowest scores over tables, and median ratios to noise by column."""
    rows = []
    for (model, noise), part in found.groupby(["model", "noise"], sort=False):
        part = part.set_index("table")
        plain = found[(found["model"] == model) & (found["noise"] == "column")].set_index("table")
        ratios = (part[["error", "seconds"]] / plain[["error", "seconds"]]).median()
        densities = part["log density, less that of a normal"].nsmallest(2)
        lowest = [f"{x:.2f}" for x in (*part[["coverage", "worst column"]].min(), *densities)]
        rows.append([str(model), str(noise), *lowest, f"{ratios['error']:.3f}", f"{ratios['seconds']:.1f}"])
    lowest_of = ["lowest coverage", "lowest of a column", "lowest log density", "second lowest"]
    ratios_to = ["error, ratio to column (median)", "seconds, ratio (median)"]
    return pages.table(["model", "noise", *lowest_of, *ratios_to], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", type=int, default=1, help="how often a fifth of each table is hidden")
    parser.add_argument("--write", type=Path, help="the page whose tables are replaced")
    options = parser.parse_args()
    tables = simulated() | {name: table for name, table in load_tables().items() if name in REAL}
    found = run(measure, tables, METHODS, options.splits).drop(columns="split")
    found = found.groupby(["table", "method"], sort=False).mean().reset_index()
    found[["model", "noise"]] = [METHODS[method] for method in found["method"]]
    texts = {"tables": by_table(found), "all": over_tables(found)}
    print(*texts.values(), sep="\n\n")
    if options.write:
        pages.write(options.write, **texts)


if __name__ == "__main__":
    main()
