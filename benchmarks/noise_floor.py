"""The noise of difficult tables: coverage, log density, error and time of several noise models.

    python -m benchmarks.noise_floor [--splits 1] [--write docs/noise_floor.md]

Some tables are simulated, with many zeros, duplicated or nearly collinear columns, or skewed ones; the others come with
scikit-learn and statsmodels.
"""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import norm

from benchmarks import pages
from benchmarks.defaults import hide
from benchmarks.tables_of_packages import load_tables
from bnmf import BayesianNMF
from bnmf.imputer import ANY_TABLE
from bnmf.noise import ContaminatedNoise, GroupedNoise, Noise, StudentT

NOISES = {
    "no floor": GroupedNoise(floor=0.0),
    "column": GroupedNoise(),
    "contaminated": ContaminatedNoise(),
    "student-t": StudentT(),
}
MODELS = {"BayesianNMF": {}, "NMFImputer": {name: value for name, value in ANY_TABLE.items() if name != "noise"}}
CHAINS = {"n_chains": 2, "burn_in": 200, "n_draws": 150, "calibrate": False}
REAL = ("breast_cancer", "diabetes", "iris", "wine", "ccard", "fertility", "macrodata", "star98", "statecrime")

INTRODUCTION = """# The noise of difficult tables

Two properties of a table can make intervals and densities wrong without any warning.

A component that follows one column alone cannot be told from the noise of that column (a Heywood case of factor
analysis). Its noise could then vanish. So the standard deviation of the noise of a column is at least a fraction of
what a linear regression on the other columns leaves unexplained: `floor=0.35`.

Where columns are skewed or have outliers, a few entries are many deviations off, and the density of a normal is nearly
zero there. So rare entries have a gross error of ten times the deviation, with a share that is learned for each column:
`ContaminatedNoise`, which `noise="auto"` takes for tables. Made by

    python -m benchmarks.noise_floor --splits {splits} --write docs/noise_floor.md

with a fifth of the entries hidden ({splits} times), and {n_chains} chains of {burn_in} and {n_draws} sweeps. Each cell
has the values for noise by column without a floor, with it (`noise="column"`), contaminated, and
Student's t. Coverage is that of 90% intervals. Log densities are differences from those of a normal distribution with
the mean and deviation of each column; errors are in units of those deviations. CPU seconds in the last table are
ratios.
"""

DID_NOT_HELP = """## What did not help

- *Little noise of constant columns*, in place of the rounding of the others: the shared distribution of the variances
  widens, and columns without structure fall to their floor.
- *Rounding of at most the whole variance* of a column, in place of a third: densities of rare values are lower.
- *Moves of share and variance together*: within a chain they are nearly uncorrelated, and the chains of wine with K = 3
  disagree no more about contaminated noise than about normal noise.
"""


def simulated() -> dict[str, np.ndarray]:
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


def measured(X: np.ndarray, settings: dict, noise: Noise, seed: int) -> dict[str, float]:
    """Return scores of hidden entries, in units of the standard deviation of each column."""
    hidden = hide(X, seed)
    seen = np.where(hidden, np.nan, X)
    begin = time.process_time()
    with warnings.catch_warnings(action="ignore"):
        posterior = BayesianNMF(noise=noise, random_state=seed, n_jobs=1, **CHAINS, **settings).fit(seen).posterior_
    seconds = time.process_time() - begin
    rows, columns = np.nonzero(hidden)
    values, sd = X[hidden], np.nanstd(X, axis=0)[columns]
    low, high = posterior.interval(0.9, rows, columns)
    inside = pd.Series((low <= values) & (values <= high))
    by_column = inside.groupby(columns).agg(["mean", "size"])
    normal = norm.logpdf(values, np.nanmean(seen, axis=0)[columns], np.nanstd(seen, axis=0)[columns])
    return {
        "coverage": inside.mean(),
        "worst column": by_column.loc[by_column["size"] >= min(15, by_column["size"].max()), "mean"].min(),
        "log density": float(np.mean(posterior.log_predictive_density(rows, columns, values) - normal)),
        "seconds": seconds,
        "error": float(np.sqrt(np.mean(((values - posterior.mean(rows, columns)) / sd) ** 2))),
    }


def run(splits: int) -> pd.DataFrame:
    """Return the scores of every table, model and noise, means over splits."""
    tables = simulated() | {name: table for name, table in load_tables().items() if name in REAL}
    rows = []
    for name, X in tables.items():
        for model, settings in MODELS.items():
            if model == "BayesianNMF" and np.nanmin(X) < 0:
                continue
            for noise, law in NOISES.items():
                scores = pd.DataFrame([measured(X, settings, law, seed) for seed in range(splits)]).mean()
                rows.append({"table": name, "model": model, "noise": noise, **scores})
                print(rows[-1], flush=True)
    return pd.DataFrame(rows)


def page(found: pd.DataFrame, splits: int) -> str:
    """Return the page of the documentation."""
    by_table = []
    for (name, model), part in found.groupby(["table", "model"], sort=False):
        digits = {"coverage": 2, "worst column": 2, "log density": 2, "error": 3}
        cells = [" / ".join(f"{value:.{n}f}" for value in part[score]) for score, n in digits.items()]
        by_table.append([str(name), str(model), *cells])
    summary = []
    for (model, noise), part in found.groupby(["model", "noise"], sort=False):
        part = part.set_index("table")
        plain = found[(found["model"] == model) & (found["noise"] == "column")].set_index("table")
        error, seconds = (part[["error", "seconds"]] / plain[["error", "seconds"]]).median()
        lowest = [*part[["coverage", "worst column"]].min(), *part["log density"].nsmallest(2)]
        summary.append([str(model), str(noise), *(f"{x:.2f}" for x in lowest), f"{error:.3f}", f"{seconds:.1f}"])
    names = ["model", "noise", "lowest coverage", "lowest of a column", "lowest log density", "second lowest"]
    ratios = ["error, ratio to column (median)", "seconds, ratio (median)"]
    parts = [
        INTRODUCTION.format(splits=splits, **CHAINS).rstrip(),
        pages.table(["table", "model", "coverage", "worst column", "log density", "error"], by_table),
        "## Over all tables",
        pages.table([*names, *ratios], summary),
        DID_NOT_HELP.rstrip(),
    ]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=1, help="how often a fifth of each table is hidden")
    parser.add_argument("--write", type=Path, help="write the page of the docs")
    arguments = parser.parse_args()
    text = page(run(arguments.splits), arguments.splits)
    print(text)
    if arguments.write:
        arguments.write.write_text(text, encoding="utf-8")
