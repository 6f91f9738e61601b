"""Experiment 3: the error on held-out entries, for increasing fractions of unobserved entries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd

from bnmf.paper import printed
from bnmf.paper.baselines import BASELINES
from bnmf.paper.experiments import Settings
from bnmf.paper.fits import Fit, Result
from bnmf.paper.grid import Cell, Grid, number
from bnmf.paper.methods import in_order, label_of
from bnmf.paper.run import experiment
from bnmf.paper.tables import compare_tables, versus

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BASELINES_WITHOUT_K = ("column_mean", "row_column_mean", "knn")
"""Baselines without components; their fits have k = 0."""
PRINTED_DATASET = "gdsc"
"""The data set of the printed table."""


def plan(settings: Settings) -> list[Fit]:
    """Return the fits of this experiment: every fraction, K, model and baseline, on the same splits.

    Parameters
    ----------
    settings : Settings
        Settings of the run.

    Returns
    -------
    list of Fit
        The fits to run.
    """
    fits = []
    for dataset in settings.datasets:
        for unobserved in settings.fractions[dataset]:
            models = list(settings.prediction_models)
            if dataset == PRINTED_DATASET and unobserved >= settings.printed_rule_from:
                models.append("gl22inf-published")
            for repeat in range(settings.repeats):
                where: dict[str, Any] = {"dataset": dataset, "repeat": repeat, "unobserved": unobserved}
                fits += [Fit(model=m, k=k, **where, **settings.chain()) for m in models for k in settings.prediction_k]
                if settings.baselines:
                    fits += _baselines(where, settings)
    return fits


def _baselines(where: dict[str, Any], settings: Settings) -> list[Fit]:
    return [
        Fit(model=name, k=k, seed=settings.seed, **where)
        for name in BASELINES
        for k in ((0,) if name in BASELINES_WITHOUT_K else settings.prediction_k)
    ]


def table(results: Mapping[Fit, Result]) -> pd.DataFrame:
    """Return one row for each fit.

    Parameters
    ----------
    results : mapping of Fit to dict
        The fits of `plan` (others are ignored).

    Returns
    -------
    DataFrame
        Columns `dataset`, `unobserved` (fraction of all entries), `k`, `model`, `repeat`, `mse` (on the held-out
        entries) and `train_mse` (of the same prediction on the training entries).
    """
    rows = [
        (
            fit.dataset,
            fit.unobserved,
            fit.k,
            fit.model,
            fit.repeat,
            float(result["test_mse"]),
            float(result["train_mse_mean"]),
        )
        for fit, result in results.items()
        if fit.unobserved is not None and fit.noise is None and fit.start == "prior" and "test_mse" in result
    ]
    return pd.DataFrame(rows, columns=["dataset", "unobserved", "k", "model", "repeat", "mse", "train_mse"])


measure = experiment(plan, table)


def averages(measured: pd.DataFrame) -> pd.DataFrame:
    """Return means over the repeats; baselines without components appear with every K.

    Parameters
    ----------
    measured : DataFrame
        See `table`.

    Returns
    -------
    DataFrame
        Columns `dataset`, `unobserved`, `k`, `model`, `mse`, `min`, `max` and `spread` (standard deviation).
    """
    keys = ["dataset", "unobserved", "k", "model"]
    means = measured.groupby(keys, sort=False)["mse"].agg(["mean", "min", "max", "std"]).reset_index()
    means = means.rename(columns={"mean": "mse", "std": "spread"})
    ks = sorted(set(means["k"]) - {0})
    with_every_k = [means[means["k"] > 0], *(means[means["k"] == 0].assign(k=k) for k in ks)]
    return pd.concat(with_every_k, ignore_index=True)


def figure(measured: pd.DataFrame, title: str) -> Figure:
    """Draw the held-out error against the fraction unobserved, with one panel for each K.

    Parameters
    ----------
    measured : DataFrame
        See `table`; the rows of one data set.
    title : str
        Title of the figure.

    Returns
    -------
    matplotlib.figure.Figure
        Means over the repeats; curves far above the others are cut off.
    """
    from bnmf.paper import figures

    means = averages(measured)
    ks = sorted(means["k"].unique())
    drawn, axes = figures.panels(len(ks), title, "MSE on held-out entries", columns=2)
    low, high = _limits(means)
    for axis, k in zip(axes, ks, strict=True):
        at_k = means[means["k"] == k]
        for model in in_order(at_k["model"]):
            curve = at_k[at_k["model"] == model].sort_values("unobserved")
            axis.plot(100 * curve["unobserved"], curve["mse"], **figures.line(model))
        axis.set(title=f"K = {k}", xlabel="% of all entries unobserved", ylim=(low, high))
    figures.legend(drawn, axes)
    return drawn


def _limits(means: pd.DataFrame) -> tuple[float, float]:
    """Return limits that fit the methods with moderate errors, with a margin."""
    ordinary = means[means["model"].isin(["gee", "gl22", "gl22inf", "row_column_mean"])]
    low, high = ordinary["mse"].min(), ordinary["mse"].max()
    return low - 0.12 * (high - low), high + 0.6 * (high - low)


def grids(measured: pd.DataFrame, names: Mapping[str, str]) -> list[Grid]:
    """Return tables of the measured errors, with the printed ones where they exist.

    Parameters
    ----------
    measured : DataFrame
        See `table`.
    names : mapping of str to str
        Name of each data set in the tables.

    Returns
    -------
    list of Grid
        For each data set one table of the models and one of the baselines.
    """
    grids = []
    for dataset in measured["dataset"].unique():
        rows = measured[measured["dataset"] == dataset]
        is_baseline = rows["model"].isin(list(BASELINES))
        if not is_baseline.all():
            caption = f"{names[dataset]}: MSE on held-out entries"
            grids.append(_grid(rows[~is_baseline], caption))
        if is_baseline.any():
            grids.append(_grid(rows[is_baseline], f"{names[dataset]}: MSE of the baselines on the same entries"))
    return grids


def _grid(measured: pd.DataFrame, caption: str) -> Grid:
    compared = compare_tables(measured, printed.prediction(), "mse", 0.01).set_index(["unobserved", "k", "model"])
    means = averages(measured).set_index(["unobserved", "k", "model"])["mse"]
    if measured["k"].max() == 0:
        means = measured.groupby(["unobserved", "k", "model"])["mse"].mean()
    models = in_order(measured["model"])
    digits = 2 if means.median() > 100 else 3
    rows: list[list[str | Cell]] = []
    for unobserved in sorted(measured["unobserved"].unique()):
        for k in sorted({key[1] for key in means.index if key[0] == unobserved}):
            row: list[str | Cell] = [f"{100 * unobserved:.0f}%", str(k)]
            for model in models:
                key: Any = (unobserved, k, model)
                if key in compared.index:
                    row.append(versus(compared.loc[key], digits, 2))
                else:
                    row.append(number(float(means[key]), digits) if key in means.index else "")
            rows.append(row)
    return Grid(["unobserved", "K", *map(label_of, models)], rows, caption, n_labels=2)


def markdown(measured: pd.DataFrame, names: Mapping[str, str]) -> str:
    """Return the tables of `grids` as Markdown.

    Parameters
    ----------
    measured : DataFrame
        See `table`.
    names : mapping of str to str
        Name of each data set in the tables.

    Returns
    -------
    str
        Markdown.
    """
    return "\n\n".join(grid.markdown() for grid in grids(measured, names))
