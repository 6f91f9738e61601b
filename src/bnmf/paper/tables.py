"""The tables of the page: measured means, compared with the numbers that the paper prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from bnmf.paper import experiments
from bnmf.paper.baselines import BASELINES
from bnmf.paper.methods import (
    PAPER_MODELS,
    PRINTED_DESCRIPTIONS,
    in_order,
    labels,
    printed_factors,
    printed_prediction,
)
from bnmf.paper.page import Cell, Table, number

PRINTED_REPEATS = 10
"""Number of repeats behind a printed mean."""
GRADED_REPEATS = 5
"""Numbers from fewer repeats are shown without a verdict."""
CLOSE_PERCENT = 3.0
"""Largest deviation from the printed number that is "close" without regard to the Monte Carlo error."""
TELLING_PERCENT = 10.0
"""Largest deviation within the Monte Carlo error that is "close"; a larger one is "unclear"."""
START_NAMES = {
    "prior": "draw from the prior of the model",
    "exponential": "exponential, mean 10 (GEE's prior)",
    "small": "exponential, mean 0.1",
    "gee": "last state of a GEE chain",
    "columns": "draw from the prior, Z updated before W",
}
"""Names of the starting points in the tables."""
RATIO_CAPTIONS = {
    "ratio": "against the noisy entries: variance of the noisy data / MSE",
    "ratio_clean": "against the entries before noise: variance of the data / MSE",
}
"""Columns of the two ratios of the noise experiment, and their captions."""

_LABELS = {"k": ("K", "{}"), "unobserved": ("unobserved", "{:.0%}"), "noise": ("noise", "{:.0%}")}
# Column of the table of factors: its caption, its decimals, and the unit of its last printed digit.
_FACTOR_COLUMNS = {"mean": ("mean of W", 3, 0.1), "sparsity": ("percentage of W below 0.1", 1, 0.1)}


# ---------------------------------------------------------------- comparison


def compare(measured: pd.DataFrame, printed: pd.DataFrame, column: str, unit: float) -> pd.DataFrame:
    """Compare the mean over the repeats of every measured cell with the printed number.

    Returns `measured`, `printed`, `percent` (the deviation) and `verdict` by cell, NaN or empty where no number is
    printed. `unit` is that of the last printed digit. The printed numbers of GL2²,∞ are compared with both its exact
    conditional and the printed rule, from which they presumably come.
    """
    keys = [name for name in ("dataset", "unobserved", "k", "model") if name in printed]
    paper_rule = printed[printed["model"] == "gl22inf"].assign(model="gl22inf-published")
    numbers = pd.concat([printed, paper_rule])[[*keys, column]].rename(columns={column: "printed"})
    means = measured.groupby(keys, sort=False)[column].agg(["mean", "std", "count"]).reset_index()
    cells = means.merge(numbers, how="left", on=keys)
    cells["percent"] = 100.0 * (cells["mean"] / cells["printed"].replace(0.0, np.nan) - 1.0)
    cells["verdict"] = verdicts(cells["mean"], cells["std"], cells["count"], cells["printed"], unit)
    return cells.drop(columns=["std", "count"]).rename(columns={"mean": "measured"})


def verdicts(
    mean: npt.ArrayLike, spread: npt.ArrayLike, repeats: npt.ArrayLike, printed: npt.ArrayLike, unit: float
) -> Any:
    """Return "close", "unclear", "off", or "" for numbers that are not printed or come from too few repeats.

    The difference of the two means has the standard error s √(1/n + 1/10), if both have the standard deviation s of
    our n repeats. The Monte Carlo error is two of them plus half a unit of the last printed digit.
    """
    mean, spread, repeats, printed = (np.asarray(x, dtype=float) for x in (mean, spread, repeats, printed))
    difference = np.abs(mean - printed)
    error = 2.0 * spread * np.sqrt(1.0 / np.maximum(repeats, 1) + 1.0 / PRINTED_REPEATS) + 0.5 * unit
    within = difference <= error
    is_close = (difference <= CLOSE_PERCENT / 100 * printed) | within & (difference <= TELLING_PERCENT / 100 * printed)
    not_graded = np.isnan(difference) | (repeats < GRADED_REPEATS)
    return np.select([not_graded, is_close, within], ["", "close", "unclear"], "off")


def _cells(compared: pd.DataFrame, digits: int, printed_digits: int) -> list[Cell]:
    """Return a cell for each row of `compare`: the measured mean, the printed number and the deviation."""
    cells = []
    columns = (compared[name] for name in ("measured", "printed", "percent", "verdict"))
    for measured, theirs, percent, verdict in zip(*columns, strict=True):
        deviation = "" if np.isnan(percent) else f", {percent:+.1f}%"
        note = "" if np.isnan(theirs) else f"printed {theirs:.{printed_digits}f}{deviation}"
        cells.append(Cell(number(measured, digits), note, verdict))
    return cells


def _by_model(tidy: pd.DataFrame, cells: Sequence[Cell], keys: Sequence[str], caption: str) -> Table:
    """Return a table of cells, one for each row of `tidy`, with a row for each key and a column for each model."""
    models = in_order(tidy["model"])
    places = tidy[[*keys, "model"]].itertuples(index=False, name=None)
    found: dict[tuple[Any, ...], Cell] = dict(zip(places, cells, strict=True))
    rows: list[list[str | Cell]] = [
        [
            *(_LABELS[name][1].format(value) for name, value in zip(keys, key, strict=True)),
            *(found.get((*key, model), "") for model in models),
        ]
        for key in sorted({place[:-1] for place in found})
    ]
    return Table([*(_LABELS[name][0] for name in keys), *labels(models)], rows, caption, n_labels=len(keys))


def agreement(factors: pd.DataFrame | None, prediction: pd.DataFrame | None, names: Mapping[str, str]) -> Table | None:
    """Return by model how many printed numbers are close; None if nothing was compared."""
    kinds = []
    if factors is not None:
        from_prior = factors[factors["start"] == "prior"]
        for column, (title, _, unit) in _FACTOR_COLUMNS.items():
            kinds.append((title, compare(from_prior, printed_factors(), column, unit)))
    if prediction is not None:
        kinds.append(("held-out MSE", compare(prediction, printed_prediction(), "mse", 0.01)))
    models = (*PAPER_MODELS, "gl22inf-published")
    rows: list[list[str | Cell]] = [
        [names[str(dataset)], title, *(_tally(group[group["model"] == model]) for model in models)]
        for title, compared in kinds
        for dataset, group in compared.dropna(subset="printed").groupby("dataset", sort=False)
    ]
    caption = "Printed numbers that are close, out of those that were run, and the largest deviation"
    return Table(["data", "number", *labels(models)], rows, caption, n_labels=2) if rows else None


def _tally(compared: pd.DataFrame) -> Cell:
    if compared.empty:
        return Cell("–")
    n_close, n_graded = (compared["verdict"] == "close").sum(), (compared["verdict"] != "").sum()
    percents = compared["percent"].dropna()
    note = f"{max(percents, key=abs):+.1f}%" if len(percents) else ""
    if n_graded == 0:
        return Cell("not graded", note)
    return Cell(f"{n_close} of {n_graded}", note, "close" if n_close == n_graded else "")


# ---------------------------------------------------------------- the data and the experiments


def data(datasets: Mapping[str, Any]) -> Table:
    """Return shape, observed fraction and rank of the data, compared with the printed ones, and mean and variance."""
    rows: list[list[str | Cell]] = []
    for name, dataset in datasets.items():
        X = np.asarray(dataset.data, dtype=float)
        observed = ~np.isnan(X)
        rank = int(np.linalg.matrix_rank(np.where(observed, X, 0.0)))
        row: list[str | Cell] = [dataset.title]
        for value, other in zip((*X.shape, float(observed.mean()), rank), PRINTED_DESCRIPTIONS[name], strict=True):
            shape = ".3f" if isinstance(value, float) else "d"
            # A difference of one unit in the third decimal may be rounding.
            verdict = "close" if abs(round(value, 3) - other) < 0.0015 else "off"
            row.append(Cell(f"{value:{shape}}", f"printed {other:{shape}}", verdict))
        rows.append([*row, f"{X[observed].mean():.2f}", f"{X[observed].var():.2f}"])
    header = ["data", "rows", "columns", "fraction observed", "rank (missing as 0)", "mean", "variance"]
    return Table(header, rows, "The data")


def convergence(measured: pd.DataFrame, name: str, burn_in: int) -> Table:
    """Return the training error of one data set after the burn-in, and how fast it is reached."""
    ends = experiments.convergence_summary(measured, burn_in)
    cells = [
        Cell(number(final), "" if np.isnan(sweeps) else f"sweep {sweeps:.0f}")
        for final, sweeps in zip(ends["final_mse"], ends["sweeps"], strict=True)
    ]
    caption = f"{name}: training MSE after the burn-in, and the first sweep within 10% of it"
    return _by_model(ends, cells, ["k"], caption)


def factors(measured: pd.DataFrame, name: str) -> list[Table]:
    """Return the mean and the sparsity of W of one data set, compared with the printed numbers."""
    from_prior = measured[measured["start"] == "prior"]
    tables = []
    for column, (title, digits, unit) in _FACTOR_COLUMNS.items():
        compared = compare(from_prior, printed_factors(), column, unit)
        caption = f"{name}: {title} in the last 20 sweeps"
        tables.append(_by_model(compared, _cells(compared, digits, 1), ["k"], caption))
    return tables


def factors_by_start(measured: pd.DataFrame, name: str) -> Table:
    """Return mean and sparsity of W of one data set by starting point, with the printed numbers below."""
    cells = _means_by_start(measured).to_dict("index")
    rows: list[list[str | Cell]] = [
        [str(k), text, *(_mean_and_sparsity(cells[k, start, model]) for model in PAPER_MODELS)]
        for k in sorted(set(measured["k"]))
        for start, text in {**START_NAMES, "printed": "printed"}.items()
        if (k, start, PAPER_MODELS[0]) in cells
    ]
    caption = f"{name}: mean of W (percentage below 0.1) in the last 20 sweeps, by starting point"
    return Table(["K", "start", *labels(PAPER_MODELS)], rows, caption, n_labels=2)


def nearest_start(measured: pd.DataFrame) -> tuple[str, Table]:
    """Return a sentence and a table on how near each starting point comes to the printed table of one data set."""
    wide = _means_by_start(measured).unstack("start").dropna()
    starts = [start for start in START_NAMES if start in set(measured["start"])]
    gaps = {column: wide[column][starts].sub(wide[column]["printed"], axis=0).abs() for column in ("sparsity", "mean")}
    parts = {model: [model] for model in PAPER_MODELS} | {"all": list(PAPER_MODELS)}
    rows: list[list[str | Cell]] = []
    for start in starts:
        differences = {
            column: [gap[start][gap.index.isin(chosen, level="model")].mean() for chosen in parts.values()]
            for column, gap in gaps.items()
        }
        cells = zip(differences["sparsity"], differences["mean"], strict=True)
        rows.append([START_NAMES[start], *(Cell(number(points, 1), number(mean)) for points, mean in cells)])
    errors = measured[measured["model"].isin(PAPER_MODELS)].groupby(["k", "model", "start"])["train_mse"].mean()
    by_start = errors.unstack("start")
    largest = (by_start.max(axis=1) / by_start.min(axis=1) - 1.0).max()
    nearest = min(starts, key=lambda start: float(gaps["sparsity"][start].mean()))
    text = (
        f"Over all {len(wide)} printed cells the nearest start is: {START_NAMES[nearest]}. For the "
        f"same K and model, the training errors of the starts differ by at most {largest:.0%}."
    )
    caption = "Mean absolute difference from the printed cells: percentage points below 0.1 (mean of W)"
    return text, Table(["start", *labels(PAPER_MODELS), "all"], rows, caption)


def _means_by_start(measured: pd.DataFrame) -> pd.DataFrame:
    theirs = printed_factors().assign(start="printed")
    theirs = theirs[theirs["dataset"].isin(measured["dataset"]) & theirs["k"].isin(measured["k"])]
    both = pd.concat([measured[measured["model"].isin(PAPER_MODELS)], theirs])
    return both.groupby(["k", "start", "model"])[["mean", "sparsity"]].mean()


def _mean_and_sparsity(means: Any) -> Cell:
    return Cell(number(means["mean"]), f"{means['sparsity']:.1f}%")


def prediction(measured: pd.DataFrame, name: str) -> list[Table]:
    """Return the errors of one data set on held-out entries: those of the models, and those of the baselines."""
    compared = compare(experiments.with_every_k(measured), printed_prediction(), "mse", 0.01)
    digits = 2 if compared["measured"].median() > 100 else 3
    is_baseline = compared["model"].isin(list(BASELINES))
    captions = {False: "MSE on held-out entries", True: "MSE of the baselines on the same entries"}
    parts = [(compared[is_baseline == kind], caption) for kind, caption in captions.items()]
    return [
        _by_model(part, _cells(part, digits, 2), ["unobserved", "k"], f"{name}: {caption}") for part, caption in parts
    ]


def noise(measured: pd.DataFrame, name: str) -> list[Table]:
    """Return the two ratios of the variance of the data to the error, for which the paper prints no numbers."""
    tables = []
    for column, caption in RATIO_CAPTIONS.items():
        means = measured.groupby(["noise", "model"])[column].agg(["mean", "std"]).reset_index()
        cells = [
            Cell(number(mean, 3), "" if np.isnan(spread) else f"± {spread:.3f}")
            for mean, spread in zip(means["mean"], means["std"], strict=True)
        ]
        tables.append(_by_model(means, cells, ["noise"], f"{name}: {caption}"))
    return tables


def starts(measured: pd.DataFrame, name: str) -> list[Table]:
    """Return the results of GL1² by starting point for each scenario, and by the number of active components."""
    tables = []
    by_active: list[list[str | Cell]] = []
    theirs = printed_prediction().query("model == 'gl12'").set_index(["unobserved", "k"])["mse"]
    key: Any
    for key, scenario in measured.groupby(["unobserved", "k"]):
        unobserved, k = f"{key[0]:.0%}", str(key[1])
        scenario = scenario.assign(behind=scenario["log_joint"] - scenario["log_joint"].max())
        rows: list[list[str | Cell]] = [
            [
                START_NAMES[str(start)],
                number(group["mse"].mean()),
                f"{group['mse'].min():.0f} … {group['mse'].max():.0f}",
                number(group["train_mse"].mean()),
                f"{group['active'].min()} … {group['active'].max()}",
                number(group["w_mean"].mean(), 3),
                f"{group['behind'].mean():.0f}",
            ]
            for start, group in scenario.groupby("start", sort=False)
        ]
        compared_with = f", printed {theirs[key]:.2f}" if key in theirs.index else ""
        caption = f"{name}: GL₁², {unobserved} unobserved, K = {k}{compared_with}"
        header = ["start", "held-out MSE", "range", "training MSE", "active", "mean of W", "log density"]
        tables.append(Table(header, rows, caption))
        by_active += [
            [
                unobserved,
                k,
                str(count),
                str(len(group)),
                number(group["mse"].mean()),
                number(group["train_mse"].mean()),
                f"{group['behind'].mean():.0f}",
            ]
            for count, group in scenario.groupby("active")
        ]
    header = ["unobserved", "K", "active", "chains", "held-out MSE", "training MSE", "log density"]
    caption = "GL₁²: error by the number of active components at the end, over all starts"
    return [*tables, Table(header, by_active, caption, n_labels=3)]


def explain_starts(measured: pd.DataFrame) -> list[str]:
    """Return an explanation of the results of GL1² by starting point, as paragraphs."""
    paragraphs = [
        "In GL₁² the penalty on a component depends on the sum of all components in its row, so a component that does "
        "not explain anything yet is kept small by those that do, and by their number. A component counts as active if "
        "the product of the norms of its column of W and its row of Z is more than three times the median over the "
        "components. The chains below share the data and the random numbers and differ only in their starting point; "
        "“log density” is that of data and last state together, relative to the best chain of the scenario."
    ]
    best = measured.groupby(["unobserved", "k"])["log_joint"].transform("max")
    behind = (best - measured["log_joint"])[measured["active"] == 0]
    if len(behind):
        paragraphs.append(
            f"In {len(behind)} of the {len(measured)} chains no component became active. Their predictions are far too "
            "small everywhere: their training error is as large as their held-out error, and their log density is "
            f"{behind.mean():.0f} below the best. They are stuck and do not sample the posterior. A mean over repeats "
            "with different numbers of active components reflects how often components became active in time, rather "
            "than how well the model predicts."
        )
    return paragraphs
