"""Experiment 2: the entries of W in the last 20 sweeps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bnmf.paper import printed
from bnmf.paper.convergence import plan
from bnmf.paper.fits import BIN_EDGES, SPARSITY_THRESHOLD, Fit, Result
from bnmf.paper.grid import Cell, Grid, number
from bnmf.paper.methods import in_order, label_of
from bnmf.paper.run import experiment
from bnmf.paper.tables import compare_tables, versus

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["figure", "grids", "histogram", "markdown", "measure", "plan", "table"]


def table(results: Mapping[Fit, Result]) -> pd.DataFrame:
    """Return one row for each fit.

    Parameters
    ----------
    results : mapping of Fit to dict
        The fits of `bnmf.paper.convergence.plan` (others are ignored).

    Returns
    -------
    DataFrame
        Columns `dataset`, `k`, `model`, `repeat`, `mean` and `sparsity` (percentage below 0.1) of W in the last 20
        sweeps; NaN if the chain diverged before.
    """
    rows = [
        (fit.dataset, fit.k, fit.model, fit.repeat, float(result["w_mean"]), float(result["w_sparsity"]))
        for fit, result in results.items()
        if fit.unobserved is None and not fit.is_baseline
    ]
    return pd.DataFrame(rows, columns=["dataset", "k", "model", "repeat", "mean", "sparsity"])


def histogram(results: Mapping[Fit, Result]) -> pd.DataFrame:
    """Return the distribution of the entries of W, over all repeats.

    Parameters
    ----------
    results : mapping of Fit to dict
        The fits of `bnmf.paper.convergence.plan` (others are ignored).

    Returns
    -------
    DataFrame
        Columns `dataset`, `k`, `model`, `log10_w` (centre of the bin) and `density` (per unit of log10 w).
    """
    sums: dict[tuple[str, int, str], Any] = {}
    for fit, result in results.items():
        if fit.unobserved is None and not fit.is_baseline:
            key = (fit.dataset, fit.k, fit.model)
            sums[key] = sums.get(key, 0) + result["w_counts"]
    centres = 0.5 * (BIN_EDGES[:-1] + BIN_EDGES[1:])
    frames = [
        pd.DataFrame(
            {
                "dataset": dataset,
                "k": k,
                "model": model,
                "log10_w": centres,
                "density": counts / max(counts.sum(), 1) / np.diff(BIN_EDGES),
            }
        )
        for (dataset, k, model), counts in sums.items()
    ]
    columns = ["dataset", "k", "model", "log10_w", "density"]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=columns)


measure = experiment(plan, table)


def figure(density: pd.DataFrame, title: str) -> Figure:
    """Draw the distribution of the entries of W, with one panel for each K.

    Parameters
    ----------
    density : DataFrame
        See `histogram`; the rows of one data set.
    title : str
        Title of the figure.

    Returns
    -------
    matplotlib.figure.Figure
        Densities over a logarithmic axis, with a line at 0.1.
    """
    from bnmf.paper import figures

    ks = sorted(density["k"].unique())
    seen = density.loc[(density["density"] > 0.01) & ~density["model"].str.endswith("published"), "log10_w"]
    limits = (10 ** max(seen.min(), -3.5), 10 ** (seen.max() + 0.1)) if len(seen) else (None, None)
    drawn, axes = figures.panels(len(ks), title, "density over log10 w")
    for axis, k in zip(axes, ks, strict=True):
        at_k = density[density["k"] == k]
        for model in in_order(at_k["model"]):
            curve = at_k[at_k["model"] == model].iloc[1:-1]  # the first and last bins include the entries outside
            axis.plot(10 ** curve["log10_w"], curve["density"], **figures.line(model, marker=False))
        axis.axvline(SPARSITY_THRESHOLD, color="#888888", linewidth=0.8, linestyle=":")
        axis.set(title=f"K = {k}", xlabel="entry of W", xscale="log", xlim=limits, ylim=(0, None))
    figures.legend(drawn, axes)
    return drawn


def grids(measured: pd.DataFrame, names: Mapping[str, str]) -> list[Grid]:
    """Return tables of the measured and printed numbers: for each data set one of means and one of sparsities.

    Parameters
    ----------
    measured : DataFrame
        See `table`.
    names : mapping of str to str
        Name of each data set in the tables.

    Returns
    -------
    list of Grid
        The tables.
    """
    shown = (("mean", "mean of W", 3), ("sparsity", "percentage of W below 0.1", 1))
    return [
        _grid(measured[measured["dataset"] == dataset], names[dataset], column, text, digits)
        for dataset in measured["dataset"].unique()
        for column, text, digits in shown
    ]


def _grid(measured: pd.DataFrame, name: str, column: str, text: str, digits: int) -> Grid:
    compared = compare_tables(measured, printed.factors(), column, 0.1).set_index(["k", "model"])
    models = in_order(measured["model"])
    rows: list[list[str | Cell]] = []
    for k in sorted(measured["k"].unique()):
        row: list[str | Cell] = [str(k)]
        for model in models:
            values = measured.loc[(measured["k"] == k) & (measured["model"] == model), column]
            if (k, model) in compared.index:
                row.append(versus(compared.loc[(k, model)], digits, 1))
            else:
                row.append(number(float(values.mean()), digits))
        rows.append(row)
    return Grid(["K", *map(label_of, models)], rows, f"{name}: {text} in the last 20 sweeps")


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
