"""Compare settings and other imputers on real tables, to choose the defaults and to say what they are worth.

    python -m benchmarks.defaults [--data-dir ../shared/data] [--splits 3] [--only wine,iris] [--write docs/defaults.md]

The column mean has an error of about 1. Other imputers get columns of mean 0 and deviation 1, which helps KNNImputer
most.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.decomposition import NMF
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401 (makes the import below possible)
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer

from benchmarks import pages
from benchmarks.held_out import error, hide, load_tables, run, uncertainty
from bnmf import BayesianNMF, NMFImputer
from bnmf.imputer import ANY_TABLE
from bnmf.noise import StudentT
from bnmf.priors.names import allows_negative
from bnmf.utils.typing import Floats

TREES = "IterativeImputer, trees"
# Trees are fitted column by column, ten times over: wider tables would take hours.
MAX_COLUMNS_OF_TREES = 40


def filled_by_nmf(A: Floats) -> Floats:
    """Fill with the column means, scaled to unit range, factorise, and take the product."""
    low, high = np.nanmin(A, axis=0), np.nanmax(A, axis=0)
    width = np.where(high > low, high - low, 1.0)
    scaled = (A - low) / width
    scaled = np.where(np.isnan(A), np.nanmean(scaled, axis=0), scaled)
    model = NMF(min(5, *A.shape), init="nndsvda", max_iter=1000, random_state=0)
    return np.where(np.isnan(A), model.fit_transform(scaled) @ model.components_ * width + low, A)


OTHERS: dict[str, Callable[[Floats], Floats]] = {
    "column mean": SimpleImputer().fit_transform,
    "KNNImputer": KNNImputer().fit_transform,
    "IterativeImputer": IterativeImputer().fit_transform,
    TREES: IterativeImputer(
        ExtraTreesRegressor(n_estimators=30, random_state=0), max_iter=5, random_state=0
    ).fit_transform,
    "NMF on filled data": filled_by_nmf,
}
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


def measure(X: Floats, method: str, seed: int) -> dict[str, float] | None:
    """Return error and seconds of a method on one split, and how good its intervals are if it has some."""
    hidden = hide(X, seed)
    A = np.where(hidden, np.nan, X)
    began = time.perf_counter()
    if method in OTHERS:
        if method == TREES and X.shape[1] > MAX_COLUMNS_OF_TREES:
            return None
        mean, deviation = np.nanmean(A, axis=0), np.nanstd(A, axis=0)
        deviation[deviation == 0.0] = 1.0
        filled, facts = OTHERS[method]((A - mean) / deviation) * deviation + mean, {}
    else:
        settings = ANY_TABLE | CANDIDATES[method]
        is_shifted = settings["offset"] in ("min", "mean")
        if np.nanmin(X) < 0 and not (is_shifted or allows_negative(settings["prior"])):
            return None
        imputer = NMFImputer(BayesianNMF(**settings, random_state=seed)).fit(A)
        filled, facts = imputer.transform(A), uncertainty(imputer.estimator_.posterior_, X, hidden)
    return {"error": error(X, hidden, filled), **facts, "seconds": time.perf_counter() - began}


def summary(found: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each method: ratios of its error to others', over tables, and its uncertainty."""
    means = found.drop(columns="split").groupby(["method", "table"]).mean()
    errors = means["error"].unstack("table")
    rows = {}
    for method in (*OTHERS, *CANDIDATES):
        mean, knn, iterative, trees = (errors.loc[method] / errors.loc[other] for other in list(OTHERS)[:4])
        of_method = means.loc[method]
        rows[method] = {
            "median ratio to IterativeImputer": iterative.median(),
            "to the one with trees": trees.median(),
            "to KNNImputer": knn.median(),
            "worst ratio to the column mean": mean.max(),
            "better than KNNImputer": (knn < 1).sum() / knn.notna().sum(),
            "median log density": of_method["log density"].median(),
            "90% interval off by": (of_method["mean coverage of a column"] - 0.9).abs().mean(),
            "seconds": of_method["seconds"].median(),
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def by_table(found: pd.DataFrame, tables: dict[str, Floats]) -> pd.DataFrame:
    """Return the errors of each table, with its size."""
    errors = found.groupby(["table", "method"])["error"].mean().unstack("method").reindex(list(tables))
    sizes = [f"{name} ({X.shape[0]} x {X.shape[1]})" for name, X in tables.items()]
    return errors[[*OTHERS, DEFAULT]].set_axis(sizes)


def markdown(frame: pd.DataFrame, *, marks_best: bool = False) -> str:
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
    parser.add_argument("--write", type=Path, help="the page whose tables are replaced")
    options = parser.parse_args()
    tables = load_tables(options.data_dir)
    if options.only:
        tables = {name: tables[name] for name in options.only.split(",")}
    found = run(measure, tables, (*OTHERS, *CANDIDATES), options.splits)
    methods, errors = markdown(summary(found)), markdown(by_table(found, tables), marks_best=True)
    print(f"{methods}\n\n{errors}")
    if options.write:
        pages.write(options.write, methods=methods, errors=errors)


if __name__ == "__main__":
    main()
