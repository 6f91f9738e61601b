"""Real tables, and how well their hidden entries are predicted.

The tables come with installed packages; the paper's two data sets are added where they are found. In each split a fifth
of the observed entries is hidden at random. Scores are in units of the standard deviation of each column.
"""

import warnings
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
from scipy.stats import norm

from bnmf import Posterior
from bnmf.utils.typing import Bools, Floats

HIDDEN_FRACTION = 0.2
# Rows of a longer table that are used, chosen at random once.
MAX_ROWS = 600

SCIKIT_LEARN = ("breast_cancer", "diabetes", "digits", "iris", "wine")
STATSMODELS = (
    "anes96", "ccard", "danish_data", "elnino", "fair", "fertility", "grunfeld", "longley", "macrodata", "modechoice",
    "randhie", "scotland", "star98", "statecrime",
)  # fmt: skip


def load_tables(data_dir: Path | None = None) -> dict[str, Floats]:
    """Return all tables by name, with NaN for missing entries.

    Columns that are constant, or observed fewer than five times, are dropped.
    """
    from bnmf.datasets import fetch_gdsc_ic50, fetch_gene_body_methylation

    tables = {name: frame_of(name).drop(columns="target", errors="ignore") for name in (*SCIKIT_LEARN, *STATSMODELS)}
    if data_dir is not None:
        for name, fetch in {"GDSC": fetch_gdsc_ic50, "methylation": fetch_gene_body_methylation}.items():
            tables[name] = fetch(data_home=data_dir, download_if_missing=False).data
    return {name: _prepared(frame.select_dtypes("number").to_numpy(float)) for name, frame in tables.items()}


def frame_of(name: str) -> pd.DataFrame:
    """Return a table of a package; those of scikit-learn have a column for the target."""
    if name in SCIKIT_LEARN:
        return getattr(import_module("sklearn.datasets"), f"load_{name}")(as_frame=True).frame
    with warnings.catch_warnings(action="ignore"):
        return import_module(f"statsmodels.datasets.{name}").load_pandas().data


def _prepared(X: Floats) -> Floats:
    if len(X) > 2 * MAX_ROWS:
        X = X[np.sort(np.random.default_rng(0).choice(len(X), MAX_ROWS, replace=False))]
    X = X[:, (~np.isnan(X)).sum(axis=0) >= 5]
    return X[:, np.nanmax(X, axis=0) > np.nanmin(X, axis=0)]


def hide(X: Floats, seed: int) -> Bools:
    """Return a mask of entries to hide, which leaves every column at least two observed entries."""
    hidden = (np.random.default_rng(seed).random(X.shape) < HIDDEN_FRACTION) & ~np.isnan(X)
    hidden[:, (~np.isnan(X) & ~hidden).sum(axis=0) < 2] = False
    return hidden


def error(X: Floats, hidden: Bools, filled: Floats) -> float:
    """Return the root mean square of the errors, first over a column and then over columns."""
    counts = hidden.sum(axis=0)
    squares = np.where(hidden, (filled - X) ** 2, 0.0).sum(axis=0)
    relative = squares[counts > 0] / counts[counts > 0] / np.nanvar(X, axis=0)[counts > 0]
    return float(np.sqrt(relative.mean()))


def uncertainty(posterior: Posterior, X: Floats, hidden: Bools) -> dict[str, float]:
    """Return log density and coverage of hidden entries, the latter over all, of a mean column and of the worst one."""
    (rows, columns), values = np.nonzero(hidden), X[hidden]
    seen, sd = np.where(hidden, np.nan, X), np.nanstd(X, axis=0)
    density = posterior.log_predictive_density(rows, columns, values)
    normal = norm.logpdf(values, np.nanmean(seen, axis=0)[columns], np.nanstd(seen, axis=0)[columns])
    low, high = posterior.interval(0.9, rows, columns)
    inside = pd.Series((low <= values) & (values <= high))
    by_column = inside.groupby(columns).agg(["mean", "size"])
    return {
        "log density": float(np.mean(density + np.log(sd[columns]))),
        "log density, less that of a normal": float(np.mean(density - normal)),
        "coverage": float(inside.mean()),
        "mean coverage of a column": float(by_column["mean"].mean()),
        "worst column": float(by_column.loc[by_column["size"] >= min(15, by_column["size"].max()), "mean"].min()),
    }


def run(
    measure: Callable[[Floats, str, int], dict[str, float] | None],
    tables: dict[str, Floats],
    methods: Iterable[str],
    splits: int,
    n_jobs: int = -1,
) -> pd.DataFrame:
    """Return every measurement, one row for each table, split and method; where it is None there is no row."""
    jobs = [(table, split, method) for table in tables for split in range(splits) for method in methods]
    longest_first = sorted(jobs, key=lambda job: -tables[job[0]].size)
    parallel = joblib.Parallel(n_jobs, verbose=1, batch_size=1)
    found = parallel(joblib.delayed(_quietly)(measure, tables[t], m, s) for t, s, m in longest_first)
    facts: dict[tuple[str, int, str], Any] = dict(zip(longest_first, found, strict=True))
    rows = [{"table": t, "split": s, "method": m, **facts[t, s, m]} for t, s, m in jobs if facts[t, s, m] is not None]
    return pd.DataFrame(rows)


def _quietly(measure: Callable, *arguments: Any) -> dict[str, float] | None:
    with warnings.catch_warnings(action="ignore"):
        return measure(*arguments)
