"""The demonstration: tables of scikit-learn with a fifth of their entries hidden and filled again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment
from sklearn import datasets

from bnmf.checking import TableCheck
from bnmf.plots import plot_predictions
from bnmf.plots.look import INK, SOFT, legend, tidy
from bnmf.posterior import Posterior
from bnmf.utils.files import replacing
from bnmf.utils.typing import Bools

HIDDEN_FRACTION = 0.2
COLUMN = "mean area"
"""The column of the picture."""
COLOURS = ("#d5d8dd", "#b4b9c1", SOFT, INK)
"""From light to dark: the others, then bnmf."""


def tables() -> dict[str, pd.DataFrame]:
    """Return the tables that every installation has, by name."""
    loaders = datasets.load_breast_cancer, datasets.load_diabetes, datasets.load_wine
    names = "breast cancer", "diabetes", "wine"
    return {name: load(as_frame=True).data for name, load in zip(names, loaders, strict=True)}


def cultivars() -> pd.DataFrame:
    """Return the wines, named by cultivar and number."""
    wine = datasets.load_wine(as_frame=True)
    return wine.data.set_axis([f"cultivar {kind + 1}, #{number}" for number, kind in enumerate(wine.target, start=1)])


def hidden(complete: pd.DataFrame) -> Bools:
    """Return which entries of a table are hidden: a fifth of them at random."""
    return np.random.default_rng(0).random(complete.shape) < HIDDEN_FRACTION


def seen(complete: pd.DataFrame) -> pd.DataFrame:
    """Return a table as the model sees it."""
    return complete.mask(hidden(complete))


def recognised(posterior: Posterior) -> float:
    """Return the share of wines whose largest weight is in the component that stands for their cultivar."""
    W = posterior.factor_means()[0]
    counts = pd.crosstab((W / W.mean(axis=0)).argmax(axis=1), datasets.load_wine().target).to_numpy()
    return float(counts[linear_sum_assignment(-counts)].sum() / counts.sum())


def draw(checks: dict[str, TableCheck], complete: pd.DataFrame, posterior: Posterior, path: Path) -> None:
    """Draw the errors of all methods on all tables, and the hidden entries of one column with their intervals."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.0, 1.15))
    errors = pd.DataFrame({name: check.table["error"] for name, check in checks.items()}).T
    methods = [*errors.columns[1:], "bnmf"]
    width = 0.8 / len(methods)
    for number, (method, colour) in enumerate(zip(methods, COLOURS, strict=True)):
        places = np.arange(len(errors)) + (number - 1.5) * width
        bars = left.bar(places, errors[method], 0.92 * width, color=colour, label=method)
        left.bar_label(bars, fmt="%.2f", fontsize=7, padding=1)
    left.set_xticks(range(len(errors)), errors.index)
    left.set(ylabel="error of the hidden entries\n(standard deviations of their column)", ylim=(0.0, 1.32))
    left.set_title("A fifth of each table hidden: error", fontsize=10)
    tidy(left, grid="y")
    legend(left, loc="upper center", ncols=len(methods), columnspacing=0.9, handlelength=1.2)

    column = complete.columns.get_loc(COLUMN)
    rows = np.flatnonzero(hidden(complete)[:, column])
    plot_predictions(posterior, rows, np.full(len(rows), column), complete[COLUMN].to_numpy()[rows], right)
    right.set_title(f"Breast cancer, '{COLUMN}': hidden values, predictions and 90% intervals", fontsize=10)
    with replacing(path) as temporary:
        figure.savefig(temporary, dpi=130, format="png")
