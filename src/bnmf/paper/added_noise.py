"""Experiment 4: how well held-out entries are predicted when noise is added to the data.

Gaussian noise with a variance of 0, 10, 20, 50 or 100% of the data's variance is added to every observed entry, which
may make it negative. A tenth of the observed entries is held out, the model is trained on the others, and its
prediction is compared with the held-out entries twice: with their noisy values, as a user would have to, and with the
values before the noise, which the paper may or may not have meant.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bnmf.experiments.fits import Fit, Result, as_matrix
from bnmf.experiments.grid import Cell, Grid, number
from bnmf.experiments.models import in_order, label_of
from bnmf.experiments.run import run_fits
from bnmf.experiments.settings import Settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RATIOS = {
    "ratio": "against the noisy entries: variance of the noisy data / MSE",
    "ratio_clean": "against the entries before noise: variance of the data / MSE",
}
"""The two measures and what they are."""


def plan(settings: Settings, observed: float) -> list[Fit]:
    """Return the fits of this experiment.

    Parameters
    ----------
    settings : Settings
        Size of the run.
    observed : float
        Fraction of the matrix that was observed; `Settings.noise_held_out` of that is held out.

    Returns
    -------
    list of Fit
        What to run.
    """
    unobserved = round(1.0 - (1.0 - settings.noise_held_out) * observed, 6)
    return [
        Fit(settings.noise_dataset, model, settings.noise_k, repeat, unobserved, level, **settings.chain())
        for level in settings.noise_levels
        for model in settings.prediction_models
        for repeat in range(settings.repeats)
    ]


def observed_fraction(X: Any) -> float:
    """Return the fraction of a matrix that is not missing."""
    return float(np.mean(~np.isnan(as_matrix(X))))


def table(results: Mapping[Fit, Result]) -> pd.DataFrame:
    """Return one row for each fit.

    Parameters
    ----------
    results : mapping of Fit to dict
        The fits of `plan` (others are passed over).

    Returns
    -------
    DataFrame
        Columns `dataset`, `noise` (its variance by the data's), `k`, `model`, `repeat`, `mse` and `mse_clean` (on the
        held-out entries with and before noise), `ratio` and `ratio_clean` (variance of the data, with and before
        noise, by these).
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


def measure(datasets: Mapping[str, Any], settings: Settings, **how: Any) -> pd.DataFrame:
    """Run the experiment.

    Parameters
    ----------
    datasets : mapping of str to DataFrame or array-like
        The data by name.
    settings : Settings
        Size of the run.
    **how
        `store`, `n_jobs` and `report` of `bnmf.experiments.run.run_fits`.

    Returns
    -------
    DataFrame
        See `table`.
    """
    observed = observed_fraction(datasets[settings.noise_dataset])
    return table(run_fits(plan(settings, observed), datasets, **how))


def figure(measured: pd.DataFrame, title: str) -> Figure:
    """Draw the ratio of variance to error against the noise, by both measures.

    Parameters
    ----------
    measured : DataFrame
        See `table`.
    title : str
        Name of the data as it is to be shown.

    Returns
    -------
    matplotlib.figure.Figure
        Means over the repeats, with the range of the repeats.
    """
    from bnmf.experiments import style

    drawn, axes = style.panels(2, title, "variance / MSE (higher is better)", columns=2)
    titles = {"ratio": "against the noisy entries", "ratio_clean": "against the entries before noise"}
    levels = sorted(measured["noise"].unique())
    for axis, column in zip(axes, RATIOS, strict=True):
        for model in in_order(measured["model"]):
            groups = measured[measured["model"] == model].groupby("noise")[column].agg(["mean", "min", "max"])
            axis.plot(range(len(levels)), groups["mean"], **style.line(model))
            axis.fill_between(range(len(levels)), groups["min"], groups["max"], **style.band(model))
        axis.set_title(titles[column])
        axis.set_xticks(range(len(levels)), [f"{100 * level:g}%" for level in levels])
        axis.set_xlabel("variance of the noise / variance of the data")
    style.legend(drawn, axes)
    return drawn


def grids(measured: pd.DataFrame, names: Mapping[str, str]) -> list[Grid]:
    """Return the two ratios as tables; the paper prints no numbers for them.

    Parameters
    ----------
    measured : DataFrame
        See `table`.
    names : mapping of str to str
        How each data set is called.

    Returns
    -------
    list of Grid
        One for each measure.
    """
    if measured.empty:
        return []
    models = in_order(measured["model"])
    name = names[measured["dataset"].iloc[0]]
    grids = []
    for column, text in RATIOS.items():
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
    """Render the tables of `grids` as Markdown.

    Parameters
    ----------
    measured : DataFrame
        See `table`.
    names : mapping of str to str
        How each data set is called.

    Returns
    -------
    str
        Markdown.
    """
    return "\n\n".join(grid.markdown() for grid in grids(measured, names))
