"""Compare settings and other imputers on real tables, to choose the defaults and to say what they are worth.

    python -m benchmarks.defaults [--data-dir ../shared/data] [--splits 3] [--only wine,iris] [--write docs/defaults.md]

In each split a fifth of the observed entries is hidden at random. The error of a method is the root mean square of its
errors on hidden entries, each in units of its column's standard deviation, first over a column and then over columns:
the column mean scores about 1. The log density is that of a hidden entry in the same units. Coverage is the part of the
hidden entries within the central 90% predictive interval. Other imputers get columns of mean 0 and deviation 1, which
helps KNNImputer most.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd

from benchmarks import pages
from benchmarks.tables_of_packages import load_tables
from bnmf import BayesianNMF, NMFImputer
from bnmf.imputer import ANY_TABLE
from bnmf.noise import StudentT
from bnmf.priors.names import allows_negative

HIDDEN_FRACTION = 0.2
# Trees are fitted column by column, ten times over: wider tables would take hours.
MAX_COLUMNS_OF_TREES = 40

OTHERS = ("column mean", "KNNImputer", "IterativeImputer", "IterativeImputer, trees", "NMF on filled data")
DEFAULT = "NMFImputer, default"
CANDIDATES: dict[str, dict[str, Any]] = {
    DEFAULT: {},
    "nonnegative factors, learned offset (default of BayesianNMF)": {"prior": "ard", "offset": "learned"},
    "nonnegative factors, minimum subtracted": {"prior": "ard", "offset": "min"},
    "nonnegative factors, no offset": {"prior": "ard", "offset": None},
    "normal factors": {"prior": "normal"},
    "Laplace profiles": {"prior": ("ard", "laplace")},
    "minimum in place of the mean": {"offset": "min"},
    "K = 5": {"n_components": 5},
    "normal noise by column": {"noise": "column"},
    "common noise": {"noise": "common"},
    "noise of rows and columns": {"noise": "both"},
    "Student's t": {"noise": StudentT()},
    "no offset": {"offset": None},
    "scale of the matrix": {"scale": "matrix"},
    "the paper's model": {"prior": "gl22", "noise": "common", "scale": None, "offset": None},
}
"""Settings of the model, as changes of the defaults of NMFImputer."""


DID_NOT_HELP = """## What did not help

For `BayesianNMF` on columns that vary little far from zero:

- *The minimum of such columns subtracted*, from 5, 10 or 25 deviations on: tables of 10 to 25 rows get worse.
- *All but three deviations* of that distance subtracted: better on some tables, worse on as many.

`offset="learned"` is better than both. It is a component more, so it is the default only where the number of components
is chosen too.
"""


def hide(X: np.ndarray, seed: int) -> np.ndarray:
    """Return a mask of entries to hide, which leaves every column at least two observed entries."""
    hidden = (np.random.default_rng(seed).random(X.shape) < HIDDEN_FRACTION) & ~np.isnan(X)
    hidden[:, (~np.isnan(X) & ~hidden).sum(axis=0) < 2] = False
    return hidden


def error(X: np.ndarray, hidden: np.ndarray, filled: np.ndarray) -> float:
    """Return the error in units of the columns' standard deviations."""
    counts = hidden.sum(axis=0)
    squares = np.where(hidden, (filled - X) ** 2, 0.0).sum(axis=0)
    relative = squares[counts > 0] / counts[counts > 0] / np.nanvar(X, axis=0)[counts > 0]
    return float(np.sqrt(relative.mean()))


def measure(X: np.ndarray, method: str, seed: int) -> dict[str, float] | None:
    """Return error, log density, coverage, its deviation by column, and seconds of one method on one split."""
    with warnings.catch_warnings(action="ignore"):
        hidden = hide(X, seed)
        A = np.where(hidden, np.nan, X)
        began = time.perf_counter()
        if method in OTHERS:
            fill = _other(method, A)
            if fill is None:
                return None
            mean, deviation = np.nanmean(A, axis=0), np.nanstd(A, axis=0)
            deviation[deviation == 0.0] = 1.0
            filled, facts = fill((A - mean) / deviation) * deviation + mean, {}
        else:
            settings = ANY_TABLE | CANDIDATES[method]
            is_shifted = settings["offset"] in ("min", "mean")
            if np.nanmin(X) < 0 and not (is_shifted or allows_negative(settings["prior"])):
                return None
            imputer = NMFImputer(BayesianNMF(**settings, random_state=seed)).fit(A)
            filled = imputer.transform(A)
            facts = _uncertainty(imputer.estimator_.posterior_, X, hidden)
        return {"error": error(X, hidden, filled), **facts, "seconds": time.perf_counter() - began}


def _uncertainty(posterior: Any, X: np.ndarray, hidden: np.ndarray) -> dict[str, float]:
    rows, columns = np.nonzero(hidden)
    values, sd = X[rows, columns], np.nanstd(X, axis=0)
    density = posterior.log_predictive_density(rows, columns, values) + np.log(sd[columns])
    low, high = posterior.interval(0.9, rows, columns)
    inside = (low <= values) & (values <= high)
    by_column = pd.Series(inside).groupby(columns).mean()
    return {
        "log density": float(density.mean()),
        "coverage": float(inside.mean()),
        "mean coverage of a column": float(by_column.mean()),
    }


def _other(method: str, A: np.ndarray) -> Callable[[np.ndarray], np.ndarray] | None:
    from sklearn.decomposition import NMF
    from sklearn.ensemble import ExtraTreesRegressor
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401 (makes the import below possible)
    from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer

    if method == "IterativeImputer, trees":
        if A.shape[1] > MAX_COLUMNS_OF_TREES:
            return None
        trees = ExtraTreesRegressor(n_estimators=30, random_state=0)
        return IterativeImputer(trees, max_iter=5, random_state=0).fit_transform
    if method == "NMF on filled data":
        return lambda A: _nmf(A, NMF)
    made = {"column mean": SimpleImputer, "KNNImputer": KNNImputer, "IterativeImputer": IterativeImputer}
    return made[method]().fit_transform


def _nmf(A: np.ndarray, NMF: Any) -> np.ndarray:
    """Fill with the column means, scaled to unit range, factorise, and take the product."""
    low, high = np.nanmin(A, axis=0), np.nanmax(A, axis=0)
    width = np.where(high > low, high - low, 1.0)
    scaled = (A - low) / width
    scaled = np.where(np.isnan(A), np.nanmean(scaled, axis=0), scaled)
    model = NMF(min(5, *A.shape), init="nndsvda", max_iter=1000, random_state=0)
    return np.where(np.isnan(A), model.fit_transform(scaled) @ model.components_ * width + low, A)


def run(tables: dict[str, np.ndarray], splits: int, n_jobs: int = -1) -> pd.DataFrame:
    """Return every measurement, one row for each table, split and method."""
    jobs = [(t, s, m) for t in tables for s in range(splits) for m in (*OTHERS, *CANDIDATES)]
    jobs.sort(key=lambda job: -tables[job[0]].size)  # the longest first
    parallel = joblib.Parallel(n_jobs, verbose=1, batch_size=1)
    found = parallel(joblib.delayed(measure)(tables[t], m, s) for t, s, m in jobs)
    rows = [
        {"table": t, "split": s, "method": m, **facts}
        for (t, s, m), facts in zip(jobs, found, strict=True)
        if facts is not None
    ]
    return pd.DataFrame(rows)


def summary(found: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each method: ratios of its error to others', over tables, and its uncertainty."""
    means = found.drop(columns="split").groupby(["method", "table"]).mean()
    errors = means["error"].unstack("table")
    rows = {}
    for method in (*OTHERS, *CANDIDATES):
        own = errors.loc[method]
        ratios = {other: own / errors.loc[other] for other in OTHERS[:4]}
        of_method = means.loc[method]
        rows[method] = {
            "median ratio to IterativeImputer": ratios["IterativeImputer"].median(),
            "to the one with trees": ratios["IterativeImputer, trees"].median(),
            "to KNNImputer": ratios["KNNImputer"].median(),
            "worst ratio to the column mean": ratios["column mean"].max(),
            "better than KNNImputer": (ratios["KNNImputer"] < 1).sum() / ratios["KNNImputer"].notna().sum(),
            "median log density": of_method["log density"].median(),
            "90% interval off by": (of_method["mean coverage of a column"] - 0.9).abs().mean(),
            "seconds": of_method["seconds"].median(),
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def page(found: pd.DataFrame, tables: dict[str, np.ndarray], splits: int) -> str:
    """Return the page of the docs."""
    errors = found.groupby(["table", "method"])["error"].mean().unstack("method")
    shown = [*OTHERS, DEFAULT]
    sizes = {name: f"{X.shape[0]} x {X.shape[1]}" for name, X in tables.items()}
    lines = [
        "# How the defaults were chosen",
        "",
        "Made by",
        "",
        f"    python -m benchmarks.defaults --data-dir ../shared/data --splits {splits} --write docs/defaults.md",
        "",
        f"on {len(tables)} real tables, a fifth of the observed entries hidden, splits of each: {splits}. Errors are",
        "in units of each column's standard deviation; the column mean scores about 1. The other imputers work",
        "on columns of mean 0 and deviation 1.",
        "",
        "## Methods over all tables",
        "",
        "Ratios of errors are below 1 where a method is better. Rows below the default change one of its settings.",
        "",
        _markdown(summary(found)),
        "",
        "## Errors by table",
        "",
        _markdown(errors.reindex(list(tables))[shown].set_axis([f"{n} ({sizes[n]})" for n in tables]), marks_best=True),
        "",
        DID_NOT_HELP,
    ]
    return "\n".join(lines)


def _markdown(frame: pd.DataFrame, *, marks_best: bool = False) -> str:
    """Return a table with three digits; the smallest number of each row is bold if asked for."""
    rows = []
    for name, row in frame.iterrows():
        cells = ["" if np.isnan(value) else f"{value:.3g}" for value in row]
        if marks_best:
            cells = [f"**{cell}**" if value == row.min() else cell for cell, value in zip(cells, row, strict=True)]
        rows.append([str(name), *cells])
    return pages.table(["", *frame.columns], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, help="directory with the paper's data; without it they are left out")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--only", help="names of tables, separated by commas")
    parser.add_argument("--write", type=Path, help="write the page of the docs")
    arguments = parser.parse_args()
    tables = load_tables(arguments.data_dir)
    if arguments.only:
        tables = {name: tables[name] for name in arguments.only.split(",")}
    found = run(tables, arguments.splits)
    print(summary(found).to_string(float_format="{:.3f}".format))
    if arguments.write:
        arguments.write.write_text(page(found, tables, arguments.splits), encoding="utf-8")


if __name__ == "__main__":
    main()
