"""Experiment 4: the error on held-out entries when noise is added to the data.

Gaussian noise with a variance of 0, 10, 20, 50 or 100% of the variance of the data is added to every observed entry;
negative values are kept. A tenth of the observed entries is held out and predicted from the others. The paper does
not say which values the predictions are compared with, so there are two errors: against the noisy held-out entries,
and against the held-out entries before noise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bnmf.paper.experiments import Settings
from bnmf.paper.fits import Fit, Result, as_matrix
from bnmf.paper.grid import Cell, Grid, number
from bnmf.paper.methods import in_order, label_of
from bnmf.paper.run import run_fits

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RATIO_CAPTIONS = {
    "ratio": "against the noisy entries: variance of the noisy data / MSE",
    "ratio_clean": "against the entries before noise: variance of the data / MSE",
}
"""Columns of the two ratios, and their captions."""


def plan(settings: Settings, observed: float) -> list[Fit]:
    """Return the fits of this experiment.

    Parameters
    ----------
    settings : Settings
        Settings of the run.
    observed : float
        Observed fraction of the matrix; `Settings.noise_held_out` of it is held out.

    Returns
    -------
    list of Fit
        The fits to run.
    """
    unobserved = round(1.0 - (1.0 - settings.noise_held_out) * observed, 6)
    return [
        Fit(settings.noise_dataset, model, settings.noise_k, repeat, unobserved, level, **settings.chain())
        for level in settings.noise_levels
        for model in settings.prediction_models
        for repeat in range(settings.repeats)
    ]


def observed_fraction(X: Any) -> float:
    """Return the observed fraction of a matrix."""
    return float(np.mean(~np.isnan(as_matrix(X))))


def table(results: Mapping[Fit, Result]) -> pd.DataFrame:
    """Return one row for each fit.

    Parameters
    ----------
    results : mapping of Fit to dict
        The fits of `plan` (others are ignored).

    Returns
    -------
    DataFrame
        Columns `dataset`, `noise` (variance of the noise / variance of the data), `k`, `model`, `repeat`, `mse` and
        `mse_clean` (on the held-out entries with and before noise), `ratio` and `ratio_clean` (variance of the data
        with and before noise, divided by these errors).
    """
    rows = []
    for fit, result in results.items():
        if fit.noise is None or "test_mse" not in result:
            continue
        mse, clean = float(result["test_mse"]), float(result["test_mse_clean"])
        ratios = float(result["variance"]) / mse, float(result["variance_clean"]) / clean
        rows.append((fit.dataset, fit.noise, fit.k, fit.model, fit.repeat, mse, clean, *ratios))
    columns = ["dataset", "noise", "k", "model", "repeat", "mse", "mse_clean", "ratio", "ratio_clean"]
    return pd.DataFrame(rows, columns=columns)


def measure(datasets: Mapping[str, Any], settings: Settings, **options: Any) -> pd.DataFrame:
    """Run the experiment.

    Parameters
    ----------
    datasets : mapping of str to DataFrame or array-like
        The data by name.
    settings : Settings
        Settings of the run.
    **options
        `finished`, `n_jobs` and `progress` of `bnmf.paper.run.run_fits`.

    Returns
    -------
    DataFrame
        See `table`.
    """
    observed = observed_fraction(datasets[settings.noise_dataset])
    return table(run_fits(plan(settings, observed), datasets, **options))


def figure(measured: pd.DataFrame, title: str) -> Figure:
    """Draw the ratio of variance to error against the noise, for both ratios.

    Parameters
    ----------
    measured : DataFrame
        See `table`.
    title : str
        Title of the figure.

    Returns
    -------
    matplotlib.figure.Figure
        Means and ranges over the repeats.
    """
    from bnmf.paper import figures

    drawn, axes = figures.panels(2, title, "variance / MSE (higher is better)", columns=2)
    titles = {"ratio": "against the noisy entries", "ratio_clean": "against the entries before noise"}
    levels = sorted(measured["noise"].unique())
    for axis, column in zip(axes, RATIO_CAPTIONS, strict=True):
        for model in in_order(measured["model"]):
            groups = measured[measured["model"] == model].groupby("noise")[column].agg(["mean", "min", "max"])
            axis.plot(range(len(levels)), groups["mean"], **figures.line(model))
            axis.fill_between(range(len(levels)), groups["min"], groups["max"], **figures.band(model))
        axis.set_title(titles[column])
        axis.set_xticks(range(len(levels)), [f"{100 * level:g}%" for level in levels])
        axis.set_xlabel("variance of the noise / variance of the data")
    figures.legend(drawn, axes)
    return drawn


def grids(measured: pd.DataFrame, names: Mapping[str, str]) -> list[Grid]:
    """Return tables of the two ratios, for which the paper prints no numbers.

    Parameters
    ----------
    measured : DataFrame
        See `table`.
    names : mapping of str to str
        Name of each data set in the tables.

    Returns
    -------
    list of Grid
        One table for each ratio.
    """
    if measured.empty:
        return []
    models = in_order(measured["model"])
    name = names[measured["dataset"].iloc[0]]
    grids = []
    for column, text in RATIO_CAPTIONS.items():
        groups = measured.groupby(["noise", "model"])[column].agg(["mean", "std"])
        rows: list[list[str | Cell]] = [
            [f"{100 * level:g}%", *(_with_spread(groups.loc[(level, model)]) for model in models)]
            for level in sorted(measured["noise"].unique())
        ]
        grids.append(Grid(["noise", *map(label_of, models)], rows, f"{name}: {text}"))
    return grids


def _with_spread(row: Any) -> Cell:
    return Cell(number(row["mean"], 3), "" if np.isnan(row["std"]) else f"± {row['std']:.3f}")


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
