"""The data sets of the paper, their names and their description."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bnmf.paper.fits import as_matrix
from bnmf.paper.grid import Cell, Grid

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PRINTED_DESCRIPTIONS = {"gdsc": (707, 139, 0.806, 139), "methylation": (160, 254, 1.0, 160)}
"""Printed numbers of rows and columns, observed fraction and rank of each data set."""
DATASET_TITLES = {"gdsc": "GDSC IC50", "methylation": "gene body methylation"}


@dataclass(frozen=True)
class Dataset:
    """A matrix and its name.

    Parameters
    ----------
    data : DataFrame or array-like
        The matrix, NaN where missing.
    title : str
        Name of the data.
    source : str, default=""
        Origin of the matrix.
    """

    data: Any
    title: str
    source: str = ""


def load_datasets(names: Iterable[str], data_dir: str | os.PathLike[str] | None = None) -> dict[str, Dataset]:
    """Load the data of the paper, prepared as in the paper.

    Parameters
    ----------
    names : iterable of str
        Names among "gdsc" and "methylation".
    data_dir : path-like, optional
        Directory with the data. Without it they are downloaded into the user's cache directory.

    Returns
    -------
    dict of str to Dataset
        The data by name.
    """
    from bnmf.datasets import fetch_gdsc_ic50, fetch_gene_body_methylation

    fetch = {"gdsc": fetch_gdsc_ic50, "methylation": fetch_gene_body_methylation}
    loaded = {}
    for name in names:
        bunch = fetch[name](data_home=data_dir, download_if_missing=data_dir is None)
        loaded[name] = Dataset(bunch.data, DATASET_TITLES[name], bunch.source)
    return loaded


def grid(datasets: Mapping[str, Dataset]) -> Grid:
    """Return a table of the shape, observed fraction and rank of the data, with the printed numbers.

    Parameters
    ----------
    datasets : mapping of str to Dataset
        The data by name.

    Returns
    -------
    Grid
        One row for each data set.
    """
    rows: list[list[str | Cell]] = []
    for name, dataset in datasets.items():
        X = as_matrix(dataset.data)
        observed = ~np.isnan(X)
        rank = int(np.linalg.matrix_rank(np.where(observed, X, 0.0)))
        measured = [f"{X.shape[0]}", f"{X.shape[1]}", f"{observed.mean():.3f}", f"{rank}"]
        printed = [
            f"{value:.3f}" if isinstance(value, float) else f"{value}" for value in PRINTED_DESCRIPTIONS.get(name, ())
        ]
        cells = [_with_printed(text, other) for text, other in zip(measured, printed or [""] * 4, strict=True)]
        rows.append([dataset.title, *cells, f"{X[observed].mean():.2f}", f"{X[observed].var():.2f}"])
    header = ["data", "rows", "columns", "fraction observed", "rank (missing as 0)", "mean", "variance"]
    return Grid(header, rows, "The data")


def _with_printed(text: str, printed: str) -> Cell:
    """Return a cell with both numbers; a difference of one unit in the third decimal may be rounding."""
    if not printed:
        return Cell(text)
    return Cell(text, f"printed {printed}", "within" if abs(float(text) - float(printed)) < 0.0015 else "off")


def figure(datasets: Mapping[str, Dataset]) -> Figure:
    """Draw the distribution of the observed entries.

    Parameters
    ----------
    datasets : mapping of str to Dataset
        The data by name.

    Returns
    -------
    matplotlib.figure.Figure
        One panel for each data set.
    """
    from bnmf.paper import figures

    drawn, axes = figures.panels(len(datasets), "Distribution of the data", "fraction of entries", columns=2)
    for axis, dataset in zip(axes, datasets.values(), strict=True):
        X = as_matrix(dataset.data)
        values = pd.Series(X[~np.isnan(X)])
        edges = np.linspace(0.0, max(float(values.max()), 1.0) + 1.0, 22)
        axis.hist(values, bins=list(edges), weights=np.full(len(values), 1.0 / len(values)), color="#0072B2")
        axis.set(title=dataset.title, xlabel="value")
    figures.legend(drawn, axes)
    return drawn
