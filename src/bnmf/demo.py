"""The demonstration: tables of scikit-learn with a fifth of their entries hidden and filled again."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment
from sklearn import datasets

from bnmf.checking import TableCheck
from bnmf.plots.look import ACCENT, INK, SOFT, legend, tidy
from bnmf.posterior import Posterior
from bnmf.tables.arrays import numpy_array
from bnmf.tables.table import Table
from bnmf.utils.files import replacing
from bnmf.utils.typing import Bools

HIDDEN_FRACTION = 0.2
# Hidden entries of one column in the picture.
N_SHOWN = 40
COLUMN = "mean area"
# From light to dark: the others, then bnmf.
COLOURS = ("#d5d8dd", "#b4b9c1", SOFT, INK)


class Example(NamedTuple):
    """A complete table, and which of its entries are hidden."""

    complete: pd.DataFrame
    hidden: Bools

    def table(self) -> Table:
        """Return what the model sees, with names."""
        seen = self.complete.to_numpy(copy=True)
        seen[self.hidden] = np.nan
        return Table(seen, numpy_array(seen), [*map(str, self.complete.index)], [*self.complete.columns])


def tables() -> dict[str, pd.DataFrame]:
    """Return the tables that every installation has, by name."""
    loaders = {
        "breast cancer": datasets.load_breast_cancer,
        "diabetes": datasets.load_diabetes,
        "wine": datasets.load_wine,
    }
    return {name: load(as_frame=True).data for name, load in loaders.items()}


def cultivars() -> Example:
    """Return the wines with a fifth of their entries hidden, named by cultivar and number."""
    wine = datasets.load_wine(as_frame=True)
    names = [f"cultivar {kind + 1}, #{number}" for number, kind in enumerate(wine.target, start=1)]
    return example(wine.data.set_axis(names))


def recognised(posterior: Posterior) -> float:
    """Return the share of wines whose largest weight is in the component that stands for their cultivar."""
    W = posterior.factor_means()[0]
    counts = pd.crosstab((W / W.mean(axis=0)).argmax(axis=1), datasets.load_wine().target).to_numpy()
    return float(counts[linear_sum_assignment(-counts)].sum() / counts.sum())


def example(complete: pd.DataFrame) -> Example:
    """Return a table with a fifth of its entries hidden at random."""
    return Example(complete, np.random.default_rng(0).random(complete.shape) < HIDDEN_FRACTION)


def draw(checks: dict[str, TableCheck], shown: Example, posterior: Posterior, path: Path) -> None:
    """Draw the errors of all methods on all tables, and hidden entries of one column with their intervals."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2, width_ratios=(1.0, 1.15))
    methods = [*next(iter(checks.values())).table.index[1:], "bnmf"]
    width = 0.8 / len(methods)
    for number, (method, colour) in enumerate(zip(methods, COLOURS, strict=True)):
        errors = [check.table.loc[method, "error"] for check in checks.values()]
        bars = left.bar(
            np.arange(len(checks)) + (number - 1.5) * width, errors, 0.92 * width, color=colour, label=method
        )
        left.bar_label(bars, fmt="%.2f", fontsize=7, padding=1)
    left.set_xticks(range(len(checks)), [*checks])
    left.set(ylabel="error of the hidden entries\n(standard deviations of their column)", ylim=(0.0, 1.32))
    left.set_title("A fifth of each table hidden: error", fontsize=10)
    tidy(left, grid="y")
    legend(left, loc="upper center", ncols=len(methods), columnspacing=0.9, handlelength=1.2)

    column = shown.complete.columns.get_loc(COLUMN)
    rows = np.flatnonzero(shown.hidden[:, column])
    truth = shown.complete.to_numpy()[rows, column]
    order = np.argsort(truth)[np.linspace(0, len(rows) - 1, min(N_SHOWN, len(rows))).astype(int)]
    rows, truth = rows[order], truth[order]
    low, high = posterior.interval(0.9, rows, np.full(len(rows), column))
    inside, x = (low <= truth) & (truth <= high), np.arange(len(rows))
    right.vlines(x, low, high, color="#9db4d0", linewidth=4.0, label="90% interval")
    for chosen, colour, label in ((inside, INK, "hidden value"), (~inside, ACCENT, "hidden value outside")):
        if chosen.any():
            right.plot(x[chosen], truth[chosen], "o", color=colour, markersize=4, label=label)
    right.set(xlabel=f"{len(rows)} tumours whose entry was hidden, by size", ylabel=COLUMN, xticks=[])
    right.set_title(f"Breast cancer, '{COLUMN}': predicted intervals and hidden values", fontsize=10)
    tidy(right, grid="y")
    legend(right, loc="upper left")
    with replacing(path) as temporary:
        figure.savefig(temporary, dpi=130, format="png")
