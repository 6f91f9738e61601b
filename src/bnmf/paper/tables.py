"""The tables of the page: measured means, compared with the numbers that the paper prints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from bnmf.paper import experiments
from bnmf.paper.baselines import BASELINES
from bnmf.paper.fits import STARTS
from bnmf.paper.methods import PAPER_MODELS, PRINTED_DESCRIPTIONS, in_order, labels, printed_factors, printed_prediction
from bnmf.paper.page import Cell, Row, Table, number

PRINTED_REPEATS = 10
"""Number of repeats behind a printed mean."""
GRADED_REPEATS = 5
"""Numbers from fewer repeats are shown without a verdict."""
CLOSE_PERCENT = 3.0
"""Largest deviation from the printed number that is "close" without regard to the Monte Carlo error."""
TELLING_PERCENT = 10.0
"""Largest deviation within the Monte Carlo error that is "close"; a larger one is "unclear"."""
_LABELS = {"k": ("K", "{}"), "unobserved": ("unobserved", "{:.0%}"), "noise": ("noise", "{:.0%}")}
# Column of the table of factors: its caption and its decimals. The paper prints one decimal of both.
_FACTOR_COLUMNS = {"mean": ("mean of W", 3), "sparsity": ("percentage of W below 0.1", 1)}


# ---------------------------------------------------------------- comparison


def compare(measured: pd.DataFrame, printed: pd.DataFrame, column: str, printed_digits: int) -> pd.DataFrame:
    """Return the mean of every cell over the repeats, compared with the printed number."""
    # The printed numbers of GL2²,∞ presumably come from the printed rule: both that and the exact one are compared.
    keys = [name for name in ("dataset", "unobserved", "k", "model") if name in printed]
    paper_rule = printed[printed["model"] == "gl22inf"].assign(model="gl22inf-published")
    numbers = pd.concat([printed, paper_rule])[[*keys, column]].rename(columns={column: "printed"})
    means = measured.groupby(keys, sort=False)[column].agg(["mean", "std", "count"]).reset_index()
    cells = means.merge(numbers, how="left", on=keys)
    verdict = verdicts(cells["mean"], cells["std"], cells["count"], cells["printed"], 10.0**-printed_digits)
    percent = 100.0 * (cells["mean"] / cells["printed"].replace(0.0, np.nan) - 1.0)
    note = _texts(cells["printed"], f"printed {{:.{printed_digits}f}}") + _texts(percent, ", {:+.1f}%")
    cells = cells.drop(columns=["std", "count"]).rename(columns={"mean": "value"})
    return cells.assign(percent=percent, verdict=verdict, note=note)


def verdicts(
    mean: npt.ArrayLike, spread: npt.ArrayLike, repeats: npt.ArrayLike, printed: npt.ArrayLike, unit: float
) -> Any:
    """Return "close", "unclear", "off", or "" for numbers that are not printed or come from too few repeats."""
    # The Monte Carlo error is two standard errors of the difference of two means, s √(1/n + 1/10) if both have the
    # standard deviation of our n repeats, plus half a unit of the last printed digit.
    mean, spread, repeats, printed = (np.asarray(x, dtype=float) for x in (mean, spread, repeats, printed))
    difference = np.abs(mean - printed)
    error = 2.0 * spread * np.sqrt(1.0 / np.maximum(repeats, 1) + 1.0 / PRINTED_REPEATS) + 0.5 * unit
    within = difference <= error
    is_close = (difference <= CLOSE_PERCENT / 100 * printed) | within & (difference <= TELLING_PERCENT / 100 * printed)
    not_graded = np.isnan(difference) | (repeats < GRADED_REPEATS)
    return np.select([not_graded, is_close, within], ["", "close", "unclear"], "off")


def _texts(numbers: pd.Series, template: str) -> pd.Series:
    """Return numbers as texts, empty for NaN."""
    return numbers.map(lambda x: "" if np.isnan(x) else template.format(x))


def _by_model(cells: pd.DataFrame, keys: list[str], caption: str, digits: int = 2) -> Table:
    """Return a table of `value`, `note` and perhaps `verdict`, with a row for each key and a column for each model."""
    models, rows = in_order(cells["model"]), []
    for key, group in cells.groupby(keys):
        row: Row = [_LABELS[name][1].format(value) for name, value in zip(keys, key, strict=True)]
        found = {
            each["model"]: Cell(number(each["value"], digits), each["note"], each.get("verdict", ""))
            for each in group.to_dict("records")
        }
        rows.append(row + [found.get(model, "") for model in models])
    return Table([*(_LABELS[name][0] for name in keys), *labels(models)], rows, caption, n_labels=len(keys))


def agreement(factors: pd.DataFrame | None, prediction: pd.DataFrame | None, names: Mapping[str, str]) -> Table | None:
    """Return by model how many printed numbers are close; None if nothing was compared."""
    kinds = []
    if factors is not None:
        from_prior = factors[factors["start"] == "prior"]
        for column, (title, _) in _FACTOR_COLUMNS.items():
            kinds.append((title, compare(from_prior, printed_factors(), column, 1)))
    if prediction is not None:
        kinds.append(("held-out MSE", compare(prediction, printed_prediction(), "mse", 2)))
    models = (*PAPER_MODELS, "gl22inf-published")
    rows: list[Row] = [
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
    rows: list[Row] = []
    for name, dataset in datasets.items():
        X = np.asarray(dataset.data, dtype=float)
        observed = ~np.isnan(X)
        rank = int(np.linalg.matrix_rank(np.where(observed, X, 0.0)))
        row: Row = [dataset.title]
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
    cells = ends.assign(value=ends["final_mse"], note=_texts(ends["sweeps"], "sweep {:.0f}"))
    return _by_model(cells, ["k"], f"{name}: training MSE after the burn-in, and the first sweep within 10% of it")


def factors(measured: pd.DataFrame, name: str) -> list[Table]:
    """Return the mean and the sparsity of W of one data set, compared with the printed numbers."""
    from_prior = measured[measured["start"] == "prior"]
    return [
        _by_model(compare(from_prior, printed_factors(), column, 1), ["k"], f"{name}: {title} in the last 20 sweeps", n)
        for column, (title, n) in _FACTOR_COLUMNS.items()
    ]


def factors_by_start(measured: pd.DataFrame, name: str) -> tuple[str, Table, Table]:
    """Return the starting point nearest to the printed table of one data set, how near each is, and all numbers."""
    theirs = printed_factors().assign(start="printed")
    theirs = theirs[theirs["dataset"].isin(measured["dataset"]) & theirs["k"].isin(measured["k"])]
    ours = measured[measured["model"].isin(PAPER_MODELS)]
    means = pd.concat([ours, theirs]).groupby(["k", "start", "model"])[["mean", "sparsity"]].mean()
    starts = [start for start in STARTS if start in set(measured["start"])]

    wide = means.unstack("start").dropna()
    points, gaps = (wide[c][starts].sub(wide[c]["printed"], axis=0).abs() for c in ("sparsity", "mean"))
    by_model = [gap.groupby("model").mean().T[list(PAPER_MODELS)].assign(all=gap.mean()) for gap in (points, gaps)]
    nearness: list[Row] = [
        [STARTS[start], *(Cell(number(x, 1), number(y)) for x, y in zip(*both, strict=True))]
        for start, *both in zip(starts, *(table.to_numpy() for table in by_model), strict=True)
    ]
    nearest = min(starts, key=lambda start: float(points[start].mean()))
    errors = ours.groupby(["k", "model", "start"])["train_mse"].mean().groupby(["k", "model"])
    text = (
        f"Over all {len(wide)} printed cells the nearest start is: {STARTS[nearest]}. For the same K and model, "
        f"the training errors of the starts differ by at most {(errors.max() / errors.min() - 1.0).max():.0%}."
    )
    cells = {key: Cell(number(mean), f"{share:.1f}%") for key, mean, share in means.itertuples(name=None)}
    numbers: list[Row] = [
        [str(k), STARTS.get(start, start), *(cells[k, start, model] for model in PAPER_MODELS)]
        for k in sorted(set(measured["k"]))
        for start in (*starts, "printed")
        if (k, start, PAPER_MODELS[0]) in cells
    ]
    near = "Mean absolute difference from the printed cells: percentage points below 0.1 (mean of W)"
    caption = f"{name}: mean of W (percentage below 0.1) in the last 20 sweeps, by starting point"
    return (
        text,
        Table(["start", *labels(PAPER_MODELS), "all"], nearness, near),
        Table(["K", "start", *labels(PAPER_MODELS)], numbers, caption, n_labels=2),
    )


def prediction(measured: pd.DataFrame, name: str) -> list[Table]:
    """Return the errors of one data set on held-out entries: those of the models, and those of the baselines."""
    compared = compare(experiments.with_every_k(measured), printed_prediction(), "mse", 2)
    digits = 2 if compared["value"].median() > 100 else 3
    is_baseline = compared["model"].isin(list(BASELINES))
    captions = {False: "MSE on held-out entries", True: "MSE of the baselines on the same entries"}
    return [
        _by_model(compared[is_baseline == kind], ["unobserved", "k"], f"{name}: {caption}", digits)
        for kind, caption in captions.items()
    ]


def noise(measured: pd.DataFrame, name: str) -> list[Table]:
    """Return the two ratios of the variance of the data to the error, for which the paper prints no numbers."""
    captions = {
        "ratio": "against the noisy entries: variance of the noisy data / MSE",
        "ratio_clean": "against the entries before noise: variance of the data / MSE",
    }
    groups = measured.groupby(["noise", "model"])
    found = {column: groups[column].agg(value="mean", spread="std").reset_index() for column in captions}
    return [
        _by_model(cells.assign(note=_texts(cells["spread"], "± {:.3f}")), ["noise"], f"{name}: {captions[column]}", 3)
        for column, cells in found.items()
    ]


def starts(measured: pd.DataFrame, name: str) -> list[str | Table]:
    """Return an explanation of the results of GL1² by starting point, a table of each scenario, and one of all."""
    scenarios = measured.groupby(["unobserved", "k"])
    measured = measured.assign(behind=measured["log_joint"] - scenarios["log_joint"].transform("max"))
    parts: list[str | Table] = [
        "In GL₁² the penalty on a component depends on the sum of all components in its row, so a component that does "
        "not explain anything yet is kept small by those that do, and by their number. A component counts as active if "
        "the product of the norms of its column of W and its row of Z is more than three times the median over the "
        "components. The chains below share the data and the random numbers and differ only in their starting point; "
        "“log density” is that of data and last state together, relative to the best chain of the scenario."
    ]
    stuck = measured[measured["active"] == 0]
    if len(stuck):
        parts.append(
            f"In {len(stuck)} of the {len(measured)} chains no component became active. Their predictions are far too "
            "small everywhere: their training error is as large as their held-out error, and their log density is "
            f"{-stuck['behind'].mean():.0f} below the best. They are stuck and do not sample the posterior. A mean "
            "over repeats with different numbers of active components reflects how often components became active in "
            "time, rather than how well the model predicts."
        )
    theirs = printed_prediction().query("model == 'gl12'").set_index(["unobserved", "k"])["mse"]
    by_active: list[Row] = []
    key: Any
    for key, scenario in measured.groupby(["unobserved", "k"]):
        rows: list[Row] = [
            [
                STARTS[str(start)],
                number(group["mse"].mean()),
                f"{group['mse'].min():.0f} … {group['mse'].max():.0f}",
                number(group["train_mse"].mean()),
                f"{group['active'].min()} … {group['active'].max()}",
                number(group["w_mean"].mean(), 3),
                f"{group['behind'].mean():.0f}",
            ]
            for start, group in scenario.groupby("start", sort=False)
        ]
        case = f"{key[0]:.0%}", str(key[1])
        compared_with = f", printed {theirs[key]:.2f}" if key in theirs.index else ""
        header = ["start", "held-out MSE", "range", "training MSE", "active", "mean of W", "log density"]
        parts.append(Table(header, rows, f"{name}: GL₁², {case[0]} unobserved, K = {case[1]}{compared_with}"))
        for active, group in scenario.groupby("active"):
            mse, train_mse, behind = group[["mse", "train_mse", "behind"]].mean()
            by_active.append([*case, str(active), str(len(group)), number(mse), number(train_mse), f"{behind:.0f}"])
    header = ["unobserved", "K", "active", "chains", "held-out MSE", "training MSE", "log density"]
    caption = "GL₁²: error by the number of active components at the end, over all starts"
    return [*parts, Table(header, by_active, caption, n_labels=3)]
