"""The figures of the page, drawn without a display."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from bnmf.paper import experiments
from bnmf.paper.fits import SPARSITY_THRESHOLD
from bnmf.paper.methods import METHODS, in_order
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
    return _with_legend(figure, axes)


def convergence(measured: pd.DataFrame, title: str) -> Figure:
    """Draw the training error of one data set by sweep, with one panel for each K; the first sweeps are cut off."""
    averages = experiments.curves(measured)
    ks = sorted(averages["k"].unique())
    figure, axes = _panels(len(ks), title, "training MSE")
    for axis, k in zip(axes, ks, strict=True):
        at_k = averages[averages["k"] == k]
        for model in in_order(at_k["model"]):
            curve = at_k[at_k["model"] == model]
            axis.plot(curve["sweep"], curve["mean"], **_line(model, marker=False))
            axis.fill_between(curve["sweep"], curve["min"], curve["max"], **_band(model))
        # The errors of the first sweeps are orders of magnitude larger than at the end.
        ends = at_k[at_k["sweep"] == at_k["sweep"].max()]["mean"].dropna()
        limits = 0.85 * ends.min(), 2.5 * ends.median() + 0.5 * ends.max()
        axis.set(title=f"K = {k}", xlabel="sweep", xscale="log", yscale="log", ylim=limits)
        _plain_numbers(axis.xaxis)
        _plain_numbers(axis.yaxis, (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0))
    return _with_legend(figure, axes)


def factors(density: pd.DataFrame, title: str) -> Figure:
    """Draw the distribution of the entries of W of one data set, with one panel for each K and a line at 0.1."""
    ks = sorted(density["k"].unique())
    seen = density.loc[(density["density"] > 0.01) & ~density["model"].str.endswith("published"), "log10_w"]
    limits = (10 ** max(seen.min(), -3.5), 10 ** (seen.max() + 0.1)) if len(seen) else (None, None)
    figure, axes = _panels(len(ks), title, "density over log10 w")
    for axis, k in zip(axes, ks, strict=True):
        at_k = density[density["k"] == k]
        for model in in_order(at_k["model"]):
            curve = at_k[at_k["model"] == model].iloc[1:-1]  # the first and last bins include the entries outside
            axis.plot(10 ** curve["log10_w"], curve["density"], **_line(model, marker=False))
        axis.axvline(SPARSITY_THRESHOLD, color="#888888", linewidth=0.8, linestyle=":")
        axis.set(title=f"K = {k}", xlabel="entry of W", xscale="log", xlim=limits, ylim=(0, None))
    return _with_legend(figure, axes)


def prediction(measured: pd.DataFrame, title: str) -> Figure:
    """Draw the held-out error of one data set by fraction unobserved, with one panel for each K.

    Curves far above the others are cut off.
    """
    keys = ["unobserved", "k", "model"]
    means = experiments.with_every_k(measured).groupby(keys, sort=False)["mse"].mean().reset_index()
    ks = sorted(means["k"].unique())
    figure, axes = _panels(len(ks), title, "MSE on held-out entries", columns=2)
    ordinary = means[means["model"].isin(["gee", "gl22", "gl22inf", "row_column_mean"])]
    low, high = ordinary["mse"].min(), ordinary["mse"].max()
    limits = low - 0.12 * (high - low), high + 0.6 * (high - low)
    for axis, k in zip(axes, ks, strict=True):
        at_k = means[means["k"] == k]
        for model in in_order(at_k["model"]):
            curve = at_k[at_k["model"] == model].sort_values("unobserved")
            axis.plot(100 * curve["unobserved"], curve["mse"], **_line(model))
        axis.set(title=f"K = {k}", xlabel="% of all entries unobserved", ylim=limits)
    return _with_legend(figure, axes)


def noise(measured: pd.DataFrame, title: str) -> Figure:
    """Draw the two ratios of variance to error against the noise, with their ranges over the repeats."""
    figure, axes = _panels(2, title, "variance / MSE (higher is better)", columns=2)
    titles = {"ratio": "against the noisy entries", "ratio_clean": "against the entries before noise"}
    levels = sorted(measured["noise"].unique())
    for axis, (column, text) in zip(axes, titles.items(), strict=True):
        for model in in_order(measured["model"]):
            groups = measured[measured["model"] == model].groupby("noise")[column].agg(["mean", "min", "max"])
            axis.plot(range(len(levels)), groups["mean"], **_line(model))
            axis.fill_between(range(len(levels)), groups["min"], groups["max"], **_band(model))
        axis.set(title=text, xlabel="variance of the noise / variance of the data")
        axis.set_xticks(range(len(levels)), [f"{level:.0%}" for level in levels])
    return _with_legend(figure, axes)


def save(figure: Figure, path: Path) -> None:
    """Write a figure as PNG and as PDF; the path has no suffix."""
    with replacing(path.with_suffix(".png")) as temporary:
        figure.savefig(temporary, format="png", dpi=130)
    with replacing(path.with_suffix(".pdf")) as temporary:
        # Without the date, the same figure gives the same file.
        figure.savefig(temporary, format="pdf", metadata={"CreationDate": None})


# ---------------------------------------------------------------- the common style


def _panels(count: int, title: str, y_label: str, columns: int = 3) -> tuple[Figure, list[Axes]]:
    """Return a figure and its panels in rows; the first panel of a row has the label."""
    columns = min(columns, count)
    rows = math.ceil(count / columns)
    figure = Figure(figsize=(max(3.3 * columns, 5.5), 2.75 * rows + 1.1), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title, fontsize=12, fontweight="bold", color="#222222")
    axes = [figure.add_subplot(rows, columns, i + 1) for i in range(count)]
    for i, axis in enumerate(axes):
        axis.grid(True, which="major", color="#e4e4e4", linewidth=0.7)
        axis.set_axisbelow(True)
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(labelsize=8, colors="#444444")
        axis.xaxis.label.set_fontsize(9)
        axis.yaxis.label.set_fontsize(9)
        if i % columns == 0:
            axis.set_ylabel(y_label)
    return figure, axes


def _line(method: str, *, marker: bool = True) -> dict[str, Any]:
    """Return the arguments of `Axes.plot` for a model or baseline."""
    look = METHODS[method]
    thin = not look.marker
    return {
        "label": look.label,
        "color": look.colour,
        "linestyle": look.line,
        "linewidth": 1.1 if thin else 1.6,
        "marker": look.marker if marker else "",
        "markersize": 4,
        "alpha": 0.8 if thin else 1.0,
    }


def _band(method: str) -> dict[str, Any]:
    """Return the arguments of `Axes.fill_between` for the range over the repeats."""
    return {"color": METHODS[method].colour, "alpha": 0.13, "linewidth": 0}


def _plain_numbers(axis: Axis, steps: Sequence[float] = (1.0, 2.0, 5.0)) -> None:
    """Label a logarithmic axis with plain numbers, at the given multiples of every power of ten."""
    axis.set_major_locator(LogLocator(subs=steps, numticks=12))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}" if value < 1e5 else f"{value:.0e}"))
    axis.set_minor_formatter(NullFormatter())


def _with_legend(figure: Figure, axes: Sequence[Axes]) -> Figure:
    """Add a common legend below the panels in the order of `METHODS`, and set the size of their titles."""
    for axis in axes:
        axis.title.set_fontsize(10)
    entries = {text: handle for axis in axes for handle, text in zip(*axis.get_legend_handles_labels(), strict=True)}
    order = [look.label for look in METHODS.values() if look.label in entries]
    if order:
        figure.legend(
            [entries[text] for text in order],
            order,
            loc="outside lower center",
            ncols=5 if len(order) == 5 else 4,
            fontsize=8.5,
            frameon=False,
            handlelength=2.8,
        )
    return figure
