"""Experiment 1: the training error after each sweep."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bnmf.paper.experiments import Settings
from bnmf.paper.fits import Fit, Result
from bnmf.paper.grid import Cell, Grid, number
from bnmf.paper.methods import in_order, label_of
from bnmf.paper.run import experiment

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plan(settings: Settings) -> list[Fit]:
    """Return the fits of convergence and factors: every model and K, trained on all observed entries.

    Parameters
    ----------
    settings : Settings
        Settings of the run.

    Returns
    -------
    list of Fit
        The fits to run.
    """
    return [
        Fit(dataset, model, k, repeat, **settings.chain())
        for dataset in settings.datasets
        for k in settings.full_k
        for model in settings.full_models
        for repeat in range(_n_repeats(model, settings))
    ]


def _n_repeats(model: str, settings: Settings) -> int:
    return min(settings.repeats, settings.divergent_repeats) if model == "glinf-published" else settings.repeats


def table(results: Mapping[Fit, Result]) -> pd.DataFrame:
    """Return one row for each sweep of each fit.

    Parameters
    ----------
    results : mapping of Fit to dict
        The fits of `plan` (others are ignored).

    Returns
    -------
    DataFrame
        Columns `dataset`, `k`, `model`, `repeat`, `sweep`, `train_mse`; NaN after a chain has diverged.
    """
    frames = [
        pd.DataFrame(
            {
                "dataset": fit.dataset,
                "k": fit.k,
                "model": fit.model,
                "repeat": fit.repeat,
                "sweep": np.arange(1, len(result["train_mse"]) + 1),
                "train_mse": result["train_mse"],
            }
        )
        for fit, result in results.items()
        if fit.unobserved is None and not fit.is_baseline
    ]
    columns = ["dataset", "k", "model", "repeat", "sweep", "train_mse"]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=columns)


measure = experiment(plan, table)


def curves(measured: pd.DataFrame) -> pd.DataFrame:
    """Return the mean, lowest and highest training error over the repeats, at each sweep.

    Parameters
    ----------
    measured : DataFrame
        See `table`.

    Returns
    -------
    DataFrame
        Columns `dataset`, `k`, `model`, `sweep`, `mean`, `min`, `max`.
    """
    groups = measured.groupby(["dataset", "k", "model", "sweep"], sort=False)["train_mse"]
    return groups.agg(["mean", "min", "max"]).reset_index()


def summary(measured: pd.DataFrame, burn_in: int) -> pd.DataFrame:
    """Return the final error of each curve and how fast it is reached.

    Parameters
    ----------
    measured : DataFrame
        See `table`.
    burn_in : int
        Number of sweeps that do not count for the final error.

    Returns
    -------
    DataFrame
        One row for each data set, K and model: `final_mse` (mean after the burn-in), its `spread` (standard deviation
        over repeats) and `sweeps` (the first sweep at which the mean curve is within 10% of `final_mse`); NaN if the
        chains diverged before.
    """
    rows = []
    for (dataset, k, model), group in measured.groupby(["dataset", "k", "model"], sort=False):
        ends = group[group["sweep"] > burn_in].groupby("repeat")["train_mse"].mean()
        final = ends.mean()
        curve = group.groupby("sweep")["train_mse"].mean()
        near = curve.index[curve <= 1.1 * final]
        rows.append(
            {
                "dataset": dataset,
                "k": k,
                "model": model,
                "final_mse": final,
                "spread": ends.std(ddof=1) if len(ends) > 1 else np.nan,
                "sweeps": int(near[0]) if len(near) else np.nan,
            }
        )
    return pd.DataFrame(rows)


def figure(measured: pd.DataFrame, title: str) -> Figure:
    """Draw the training error by sweep, with one panel for each K.

    Parameters
    ----------
    measured : DataFrame
        See `table`; the rows of one data set.
    title : str
        Title of the figure.

    Returns
    -------
    matplotlib.figure.Figure
        Mean over the repeats on logarithmic axes; the first sweeps are outside the limits.
    """
    from bnmf.paper import figures

    averages = curves(measured)
    ks = sorted(averages["k"].unique())
    drawn, axes = figures.panels(len(ks), title, "training MSE")
    for axis, k in zip(axes, ks, strict=True):
        at_k = averages[averages["k"] == k]
        for model in in_order(at_k["model"]):
            curve = at_k[at_k["model"] == model]
            axis.plot(curve["sweep"], curve["mean"], **figures.line(model, marker=False))
            axis.fill_between(curve["sweep"], curve["min"], curve["max"], **figures.band(model))
        axis.set(title=f"K = {k}", xlabel="sweep", xscale="log", yscale="log", ylim=_limits(at_k))
        figures.plain_numbers(axis.xaxis)
        figures.plain_numbers(axis.yaxis, (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0))
    figures.legend(drawn, axes)
    return drawn


def _limits(averages: pd.DataFrame) -> tuple[float, float]:
    """Return limits for the end of the curves: the errors of the first sweeps are orders of magnitude larger."""
    ends = averages[averages["sweep"] == averages["sweep"].max()]["mean"].dropna()
    return 0.85 * ends.min(), 2.5 * ends.median() + 0.5 * ends.max()


def grids(measured: pd.DataFrame, names: Mapping[str, str], burn_in: int) -> list[Grid]:
    """Return tables of the summary, for which the paper prints no numbers.

    Parameters
    ----------
    measured : DataFrame
        See `table`.
    names : mapping of str to str
        Name of each data set in the tables.
    burn_in : int
        Number of sweeps that do not count for the final error.

    Returns
    -------
    list of Grid
        One table for each data set.
    """
    ends = summary(measured, burn_in).set_index(["dataset", "k", "model"])
    grids = []
    for dataset, group in measured.groupby("dataset", sort=False):
        models = in_order(group["model"])
        rows: list[list[str | Cell]] = []
        for k in sorted(group["k"].unique()):
            row: list[str | Cell] = [str(k)]
            for model in models:
                key: Any = (dataset, k, model)
                end: Any = ends.loc[key]
                sweeps = "" if np.isnan(end["sweeps"]) else f"sweep {end['sweeps']:.0f}"
                row.append(Cell(number(end["final_mse"]), sweeps))
            rows.append(row)
        caption = f"{names[str(dataset)]}: training MSE after the burn-in, and the first sweep within 10% of it"
        grids.append(Grid(["K", *map(label_of, models)], rows, caption))
    return grids


def markdown(measured: pd.DataFrame, names: Mapping[str, str], burn_in: int) -> str:
    """Return the tables of `grids` as Markdown.

    Parameters
    ----------
    measured : DataFrame
        See `table`.
    names : mapping of str to str
        Name of each data set in the tables.
    burn_in : int
        Number of sweeps that do not count for the final error.

    Returns
    -------
    str
        Markdown.
    """
    return "\n\n".join(grid.markdown() for grid in grids(measured, names, burn_in))
