"""Tables of unlike columns, with other imputers for comparison: a fifth of the entries is hidden and predicted.

    python -m benchmarks.mixed [--splits 2] [--tables iris,fair] [--jobs 1] [--peers PYTHON] [--write docs/columns.md]

Tables come with scikit-learn and statsmodels. The other imputers see numbers: codes of ordered categories, a column of
zeros and ones for each category without an order, and standardised columns. miceforest and gcimpute are run by another
Python that has them, if --peers names one.
"""

import argparse
import os
import subprocess
import tempfile
import warnings
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np
import pandas as pd
from scipy.stats import norm
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401 (makes the import below possible)
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer

from benchmarks import pages
from benchmarks.held_out import MAX_ROWS, frame_of
from bnmf import BayesianNMF, NMFImputer
from bnmf.imputer import ANY_TABLE

CHAINS = {"n_chains": 2, "burn_in": 200, "n_draws": 150, "calibrate": False}
PROBABILITY = 0.9
NUMBERS = ("number", "nonnegative", "whole")
PEER = Path(__file__).parent / "peers" / "imputers.py"


class Table(NamedTuple):
    """A table, and the kinds of its columns."""

    frame: pd.DataFrame
    kinds: dict[str, str]


def load(name: str) -> Table:
    """Return a table whose columns have the dtypes of their kinds."""
    frame = frame_of(name)
    if len(frame) > 2 * MAX_ROWS:
        frame = frame.sample(MAX_ROWS, random_state=0).sort_index()
    frame = frame.drop(columns=["logpopul", "individual", "INCOMESQ"], errors="ignore").reset_index(drop=True)
    kinds = dict.fromkeys(frame, "number") | {c: kind for kind, cs in KINDS[name].items() for c in cs.split()}
    for column, kind in kinds.items():
        if kind == "whole":
            frame[column] = frame[column].astype("Int64")
        elif kind == "binary":
            frame[column] = (frame[column] > frame[column].min()).astype("boolean")
        elif kind == "ordered":
            frame[column] = pd.Categorical(frame[column], ordered=True)
        elif kind == "categorical":
            frame[column] = frame[column].astype("string")
    return Table(frame, kinds)


KINDS = {
    "fair": {
        "ordered": "rate_marriage religious educ",
        "categorical": "occupation occupation_husb",
        "nonnegative": "affairs",
    },
    "anes96": {
        "whole": "popul TVnews age",
        "ordered": "selfLR ClinLR DoleLR PID educ income",
        "binary": "vote",
    },
    "modechoice": {"categorical": "mode", "binary": "choice", "whole": "ttme invc invt gc hinc psize"},
    "randhie": {"whole": "mdvis", "nonnegative": "fmde disea", "binary": "idp hlthg hlthf hlthp"},
    "ccard": {"whole": "AGE", "binary": "OWNRENT"},
    "heart": {"whole": "survival", "binary": "censors"},
    "spector": {"whole": "TUCE", "binary": "PSI GRADE"},
    "grunfeld": {"whole": "year", "categorical": "firm"},
    "iris": {"categorical": "target"},
    "wine": {"whole": "proline magnesium", "categorical": "target"},
    "breast_cancer": {"binary": "target"},
    "diabetes": {"whole": "target", "binary": "sex"},
}
"""Kinds of the columns of each table; all others are numbers."""


# --- bnmf


class Forecast(NamedTuple):
    """Predictions of a column at hidden rows: values; ends of intervals, or probabilities of categories by name."""

    values: np.ndarray
    low: np.ndarray | None = None
    high: np.ndarray | None = None
    probabilities: pd.DataFrame | None = None


def ours(seen: pd.DataFrame, kinds: dict[str, str], hidden: pd.DataFrame, seed: int) -> dict[str, Forecast]:
    """Return forecasts of hidden entries by `NMFImputer`, which needs to be told of bounds only."""
    told = {column: kind for column, kind in kinds.items() if kind == "nonnegative"}
    imputer = NMFImputer(BayesianNMF(**ANY_TABLE, **CHAINS), kinds=told, random_state=seed, n_jobs=1).fit(seen)
    filled, (low, high), found = imputer.transform(seen), imputer.interval(seen), imputer.probabilities(seen)
    out = {}
    for column, kind in kinds.items():
        at = hidden[column].to_numpy()
        if kind in NUMBERS:
            out[column] = Forecast(*(frame[column][at].to_numpy(float) for frame in (filled, low, high)))
        else:
            out[column] = Forecast(filled[column][at].to_numpy(object), probabilities=found[column][at])
    return out


# --- imputers of numbers


def categories_of(values: pd.Series) -> list[Any]:
    """Return the categories of a column that are seen, in order."""
    return sorted(values.dropna().unique())


def coded(values: pd.Series, kind: str) -> pd.DataFrame:
    """Return a column as numbers: itself, codes of its categories, or a column of zeros and ones for each of them."""
    if kind in NUMBERS:
        return values.astype(float).to_frame(0)
    codes = pd.Categorical(values, categories=categories_of(values)).codes
    numbers = np.eye(codes.max() + 1)[codes] if kind == "categorical" else codes[:, None].astype(float)
    return pd.DataFrame(np.where(codes[:, None] < 0, np.nan, numbers), index=values.index)


def decoded(numbers: pd.DataFrame, seen: pd.Series, kind: str) -> np.ndarray:
    """Return valid values: rounded, within the range of the column, the category with the largest number."""
    first = numbers[0].to_numpy()
    if kind in NUMBERS:
        values = first if kind == "number" else np.clip(first, seen.min(), seen.max())
        return np.rint(values) if kind == "whole" else values
    categories = np.array(categories_of(seen), object)
    is_one_of_many = kind == "categorical"
    codes = numbers.to_numpy().argmax(axis=1) if is_one_of_many else np.clip(np.rint(first), 0, len(categories) - 1)
    return categories[codes.astype(int)]


def filled_by(fill: Callable, seen: pd.DataFrame, kinds: dict[str, str], seed: int) -> pd.DataFrame:
    """Return a table that an imputer of numbers has filled."""
    numbers = pd.concat({column: coded(seen[column], kind) for column, kind in kinds.items()}, axis=1)
    found = pd.DataFrame(fill(numbers.to_numpy(), seed), index=numbers.index, columns=numbers.columns)
    return pd.DataFrame({c: decoded(found[c], seen[c], kind) for c, kind in kinds.items()}, index=seen.index)


def scaled(imputer: Callable[[int], Any]) -> Callable[[np.ndarray, int], np.ndarray]:
    """Return a function that fills standardised columns with an imputer of scikit-learn."""

    def fill(numbers: np.ndarray, seed: int) -> np.ndarray:
        mean, deviation = np.nanmean(numbers, axis=0), np.nanstd(numbers, axis=0, ddof=1)
        deviation[deviation == 0.0] = 1.0
        return imputer(seed).fit_transform((numbers - mean) / deviation) * deviation + mean

    return fill


def peer(python: str, name: str) -> Callable[[np.ndarray, int], np.ndarray]:
    """Return a function that fills a table with a library of another Python."""

    def fill(numbers: np.ndarray, seed: int) -> np.ndarray:
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "table.csv"
            pd.DataFrame(numbers).to_csv(path, index=False)
            subprocess.run([python, str(PEER), name, str(path), str(seed)], check=True, capture_output=True)
            return pd.read_csv(path).to_numpy()

    return fill


METHODS: dict[str, Callable] = {
    "mean, most frequent": scaled(lambda seed: SimpleImputer()),
    "KNNImputer": scaled(lambda seed: KNNImputer(n_neighbors=10)),
    "IterativeImputer": scaled(lambda seed: IterativeImputer(random_state=seed)),
    "IterativeImputer, trees": scaled(
        lambda seed: IterativeImputer(
            ExtraTreesRegressor(20, min_samples_leaf=3, random_state=seed), max_iter=2, random_state=seed
        )
    ),
}


def theirs(
    fill: Callable, seen: pd.DataFrame, kinds: dict[str, str], hidden: pd.DataFrame, seed: int
) -> dict[str, Forecast]:
    """Return forecasts of hidden entries by an imputer of numbers.

    How far it errs, and how often it takes one category for another, is measured on a fifth of the entries that it does
    see, which are hidden for that: intervals are normal, and frequencies are the probabilities of categories.
    """
    inner = hide(seen, seed + 1000)
    checked, filled = (filled_by(fill, table, kinds, seed) for table in (seen.mask(inner), seen))
    out = {}
    reach = norm.ppf(0.5 + 0.5 * PROBABILITY)
    for column, kind in kinds.items():
        at, of_inner = hidden[column].to_numpy(), inner[column].to_numpy() & seen[column].notna().to_numpy()
        values, guesses, truth = filled[column][at].to_numpy(), checked[column][of_inner], seen[column][of_inner]
        if kind in NUMBERS:
            width = reach * np.sqrt(np.mean((guesses.to_numpy(float) - truth.to_numpy(float)) ** 2))
            low, high = values - width, values + width
            if kind != "number":
                low, high = (np.maximum(end, seen[column].min()) for end in (low, high))
            if kind == "whole":
                low, high = np.rint(low.astype(float)), np.rint(high.astype(float))
            out[column] = Forecast(values.astype(float), low.astype(float), high.astype(float))
            continue
        categories = categories_of(seen[column])
        share = seen[column].value_counts(normalize=True).reindex(categories).fillna(0.0).to_numpy()
        rows = []
        for value in values:
            counts = truth[(guesses == value).to_numpy()].value_counts().reindex(categories).fillna(0.0)
            rows.append((counts.to_numpy(float) + 5.0 * share) / (counts.sum() + 5.0))
        out[column] = Forecast(values, probabilities=pd.DataFrame(rows, columns=pd.Index(categories, dtype=object)))
    return out


# --- scores


def hide(frame: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Return a fifth of the entries of a table, at random."""
    return pd.DataFrame(np.random.default_rng(seed).random(frame.shape) < 0.2, frame.index, frame.columns)


def scores(table: Table, seen: pd.DataFrame, hidden: pd.DataFrame, found: dict[str, Forecast]) -> list[dict]:
    """Return a record for each column."""
    out = []
    for column, kind in table.kinds.items():
        forecast, truth = found[column], table.frame[column][hidden[column]]
        given = truth.notna().to_numpy()
        if not given.any():
            continue
        record: dict[str, Any] = {"column": column, "kind": kind}
        if kind in NUMBERS:
            assert forecast.low is not None
            assert forecast.high is not None
            y, sd = truth[given].to_numpy(float), float(table.frame[column].astype(float).std())
            low, high = forecast.low[given], forecast.high[given]
            beyond = np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0)
            record["error"] = np.sqrt(np.mean((forecast.values[given] - y) ** 2)) / sd
            record["coverage"] = np.mean(beyond == 0.0)
            record["interval score"] = np.mean(high - low + 2.0 / (1.0 - PROBABILITY) * beyond) / sd
        else:
            assert forecast.probabilities is not None
            y, share = truth[given].astype(object), seen[column].value_counts(normalize=True)
            known = y.isin(list(forecast.probabilities.columns)).to_numpy()
            table_of, at = forecast.probabilities[given][known].to_numpy(), y[known]
            place = [list(forecast.probabilities.columns).index(value) for value in at]
            chosen = np.maximum(table_of[np.arange(len(at)), place], 1e-6)
            record["accuracy"] = np.mean(forecast.values[given] == y.to_numpy())
            record["log score"] = np.mean(np.log(chosen)) - np.mean([np.log(share[value]) for value in at])
        out.append(record)
    return out


def run(name: str, splits: int, peers: str | None) -> list[dict]:
    """Return all records of a table."""
    methods = METHODS | ({name: peer(peers, name) for name in ("miceforest", "gcimpute")} if peers else {})
    table, out = load(name), []
    for seed in range(splits):
        hidden = hide(table.frame, seed)
        seen = table.frame.mask(hidden)
        for method in ("bnmf", *methods):
            began, arguments = sum(os.times()[:4]), (seen, table.kinds, hidden, seed)
            try:
                with warnings.catch_warnings(action="ignore"):
                    found = ours(*arguments) if method == "bnmf" else theirs(methods[method], *arguments)
            except subprocess.CalledProcessError as error:
                print(f"{method} failed on {name}: {error.stderr.decode().splitlines()[-1]}", flush=True)
                continue
            seconds = sum(os.times()[:4]) - began  # of children too
            facts = {"table": name, "split": seed, "method": method, "seconds": seconds}
            out += [facts | record for record in scores(table, seen, hidden, found)]
    print(name, flush=True)
    return out


def page(results: pd.DataFrame, splits: int) -> str:
    """Return the results as Markdown."""
    measures = ["accuracy", "log score", "error", "coverage", "interval score", "seconds"]
    order = list(dict.fromkeys(results["method"]))
    # Each table counts once.
    by_table = results.groupby(["method", "table"])[measures].mean()
    total = by_table.groupby("method").mean().loc[order]
    rows = []
    for method, row in total.iterrows():
        digits = {"seconds": 1, "error": 3}
        cells = [f"{row[measure]:.{digits.get(measure, 2)}f}" for measure in measures]
        rows.append([f"**{method}**" if method == "bnmf" else str(method), *cells])
    errors = []
    for table in dict.fromkeys(results["table"]):
        found = [by_table.loc[(m, table)] if (m, table) in by_table.index else None for m in order]
        cells = ["failed" if x is None else f"{x['accuracy']:.2f}, {x['error']:.2f}" for x in found]
        errors.append([table, *cells])
    return "\n\n".join(
        [
            f"Means over {results['table'].nunique()} tables; each counts once; splits: {splits}; intervals of 90%:",
            pages.table(["", *measures], rows),
            "By table, accuracy (share of categories that are right) and error (in standard deviations):",
            pages.table(["", *order], errors),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.mixed", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--tables", help="names of tables, separated by commas; all by default")
    parser.add_argument("--jobs", type=int, default=1, help="number of tables side by side")
    parser.add_argument("--peers", help="a Python that has miceforest and gcimpute")
    parser.add_argument("--write", type=Path, help="the page whose results are replaced")
    options = parser.parse_args()
    names = options.tables.split(",") if options.tables else list(KINDS)
    jobs = (joblib.delayed(run)(name, options.splits, options.peers) for name in names)
    results = pd.DataFrame(chain.from_iterable(joblib.Parallel(options.jobs, batch_size=1)(jobs)))
    text = page(results, options.splits)
    print(text)
    if options.write:
        pages.write(options.write, mixed=text)


if __name__ == "__main__":
    main()
