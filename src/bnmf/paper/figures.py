"""The figures of the page, drawn without a display."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from bnmf.paper import experiments
from bnmf.paper.fits import SPARSITY_THRESHOLD
from bnmf.paper.methods import METHODS, in_order
from bnmf.plots.look import tidy
from bnmf.utils.files import replacing


def data(datasets: Mapping[str, Any]) -> Figure:
    """Draw the distribution of the observed entries, with one panel for each data set."""
    figure, axes = _panels(len(datasets), "Distribution of the data", "fraction of entries", columns=2)
    for axis, dataset in zip(axes, datasets.values(), strict=True):
        X = np.asarray(dataset.data, dtype=float)
        values = X[~np.isnan(X)]
        end = max(int(values.max()), 1) + 1
        edges = np.linspace(0.0, end, min(end, 21) + 1)  # a bin for each whole number where they are few
        axis.hist(values, bins=list(edges), weights=np.full(len(values), 1.0 / len(values)), color="#0072B2")
        axis.set(title=dataset.title, xlabel="value")
    return _with_legend(figure)


def convergence(measured: pd.DataFrame, title: str) -> Figure:
    """Draw the training error of one data set by sweep, with one panel for each K; the first sweeps are cut off."""
    averages = experiments.curves(measured)
    figure, panels = _by_k(averages, title, "training MSE")
    for axis, k, at_k in panels:
        for model, curve in _by_model(at_k):
            axis.plot(curve["sweep"], curve["mean"], **_line(model, marker=False))
            axis.fill_between(curve["sweep"], curve["min"], curve["max"], **_band(model))
        # The errors of the first sweeps are orders of magnitude larger than at the end.
        ends = at_k[at_k["sweep"] == at_k["sweep"].max()]["mean"].dropna()
        limits = 0.85 * ends.min(), 2.5 * ends.median() + 0.5 * ends.max()
        axis.set(title=f"K = {k}", xlabel="sweep", xscale="log", yscale="log", ylim=limits)
        _plain_numbers(axis.xaxis)
        _plain_numbers(axis.yaxis, (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0))
    return _with_legend(figure)


def factors(density: pd.DataFrame, title: str) -> Figure:
    """Draw the distribution of the entries of W of one data set, with one panel for each K and a line at 0.1."""
    seen = density.loc[(density["density"] > 0.01) & ~density["model"].str.endswith("published"), "log10_w"]
    limits = (10 ** max(seen.min(), -3.5), 10 ** (seen.max() + 0.1)) if len(seen) else (None, None)
    figure, panels = _by_k(density, title, "density over log10 w")
    for axis, k, at_k in panels:
        for model, curve in _by_model(at_k):
            inner = curve.iloc[1:-1]  # the first and last bins include the entries outside
            axis.plot(10 ** inner["log10_w"], inner["density"], **_line(model, marker=False))
        axis.axvline(SPARSITY_THRESHOLD, color="#888888", linewidth=0.8, linestyle=":")
        axis.set(title=f"K = {k}", xlabel="entry of W", xscale="log", xlim=limits, ylim=(0, None))
    return _with_legend(figure)


def prediction(measured: pd.DataFrame, title: str) -> Figure:
    """Draw the held-out error of one data set by fraction unobserved, a panel for each K, without curves far above."""
    keys = ["unobserved", "k", "model"]
    means = experiments.with_every_k(measured).groupby(keys)["mse"].mean().reset_index()
    ordinary = means[means["model"].isin(["gee", "gl22", "gl22inf", "row_column_mean"])]["mse"]
    spread = ordinary.max() - ordinary.min()
    limits = ordinary.min() - 0.12 * spread, ordinary.max() + 0.6 * spread
    figure, panels = _by_k(means, title, "MSE on held-out entries", columns=2)
    for axis, k, at_k in panels:
        for model, curve in _by_model(at_k):
            axis.plot(100 * curve["unobserved"], curve["mse"], **_line(model))
        axis.set(title=f"K = {k}", xlabel="% of all entries unobserved", ylim=limits)
    return _with_legend(figure)


def noise(measured: pd.DataFrame, title: str) -> Figure:
    """Draw the two ratios of variance to error against the noise, with their ranges over the repeats."""
    figure, axes = _panels(2, title, "variance / MSE (higher is better)", columns=2)
    titles = {"ratio": "against the noisy entries", "ratio_clean": "against the entries before noise"}
    levels = sorted(measured["noise"].unique())
    for axis, (column, text) in zip(axes, titles.items(), strict=True):
        for model, rows in _by_model(measured):
            groups = rows.groupby("noise")[column].agg(["mean", "min", "max"])
            axis.plot(range(len(levels)), groups["mean"], **_line(model))
            axis.fill_between(range(len(levels)), groups["min"], groups["max"], **_band(model))
        axis.set(title=text, xlabel="variance of the noise / variance of the data")
        axis.set_xticks(range(len(levels)), [f"{level:.0%}" for level in levels])
    return _with_legend(figure)


def save(figure: Figure, path: Path) -> None:
    """Write a figure as PNG and as PDF; the path has no suffix."""
    with replacing(path.with_suffix(".png")) as temporary:
        figure.savefig(temporary, format="png", dpi=130)
    with replacing(path.with_suffix(".pdf")) as temporary:
        # Without the date, the same figure gives the same file.
        figure.savefig(temporary, format="pdf", metadata={"CreationDate": None})


# ---------------------------------------------------------------- panels, lines and legend


def _by_k(table: pd.DataFrame, title: str, y_label: str, columns: int = 3) -> tuple[Figure, Any]:
    """Return a figure with a panel for each K, and the panels with their K and their rows of a table."""
    groups = list(table.groupby("k"))
    figure, axes = _panels(len(groups), title, y_label, columns)
    return figure, [(axis, k, rows) for axis, (k, rows) in zip(axes, groups, strict=True)]


def _by_model(table: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield each model of a table with its rows, in the order of `METHODS`."""
    for model in in_order(table["model"]):
        yield model, table[table["model"] == model]


def _panels(count: int, title: str, y_label: str, columns: int) -> tuple[Figure, list[Axes]]:
    """Return a figure and its panels in rows; the first panel of a row has the label."""
    columns = min(columns, count)
    rows = math.ceil(count / columns)
    figure = Figure(figsize=(max(3.3 * columns, 5.5), 2.75 * rows + 1.1), layout="constrained")
    figure.suptitle(title, fontsize=12, fontweight="bold", color="#222222")
    axes = [figure.add_subplot(rows, columns, i + 1) for i in range(count)]
    for i, axis in enumerate(axes):
        tidy(axis)
        axis.tick_params(labelsize=8, colors="#444444")
        axis.set_ylabel(y_label if i % columns == 0 else "")
        for label in (axis.xaxis.label, axis.yaxis.label):
            label.set_fontsize(9)
    return figure, axes


def _line(method: str, *, marker: bool = True) -> dict[str, Any]:
    """Return the arguments of `Axes.plot` for a model, or for a baseline, which is thin."""
    look = METHODS[method]
    size = {"linewidth": 1.6, "alpha": 1.0} if look.marker else {"linewidth": 1.1, "alpha": 0.8}
    shape = {"linestyle": look.line, "marker": look.marker if marker else "", "markersize": 4}
    return {"label": look.label, "color": look.colour, **shape, **size}


def _band(method: str) -> dict[str, Any]:
    """Return the arguments of `Axes.fill_between` for the range over the repeats."""
    return {"color": METHODS[method].colour, "alpha": 0.13, "linewidth": 0}


def _plain_numbers(axis: Axis, steps: Sequence[float] = (1.0, 2.0, 5.0)) -> None:
    """Label a logarithmic axis with plain numbers, at the given multiples of every power of ten."""
    axis.set_major_locator(LogLocator(subs=steps, numticks=12))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}" if value < 1e5 else f"{value:.0e}"))
    axis.set_minor_formatter(NullFormatter())


def _with_legend(figure: Figure) -> Figure:
    """Add a common legend below the panels in the order of `METHODS`, and set the size of their titles."""
    for axis in figure.axes:
        axis.title.set_fontsize(10)
    entries = {text: line for axis in figure.axes for line, text in zip(*axis.get_legend_handles_labels(), strict=True)}
    shown = {look.label: entries[look.label] for look in METHODS.values() if look.label in entries}
    if shown:
        style: dict[str, Any] = {"fontsize": 8.5, "frameon": False, "handlelength": 2.8}
        columns = 5 if len(shown) == 5 else 4
        figure.legend(list(shown.values()), list(shown), loc="outside lower center", ncols=columns, **style)
    return figure
