"""An additional experiment: GL1² from different starting points, to explain its errors.

GL1² penalises the square of the sum of a row, so its components compete. A component that explains nothing is kept
small by the others, and rarely becomes active. The error of a chain of 500 sweeps is determined by its number of active
components, which depends on the starting point.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from bnmf.paper.experiments import Settings
from bnmf.paper.fits import START_KINDS, Fit, Result
from bnmf.paper.grid import Cell, Grid, number
from bnmf.paper.prediction import PRINTED_DATASET
from bnmf.paper.printed import prediction as printed_prediction
from bnmf.paper.run import run_fits

STUDIED_MODEL = "gl12"
ACTIVE_RATIO = 3.0
"""A component is active if ‖w_:k‖ ‖z_k:‖ is more than this multiple of the median over the components."""
START_NAMES = {
    "prior": "draw from GL₁²'s prior",
    "exponential": "exponential, mean 10 (GEE's prior)",
    "small": "exponential, mean 0.1",
    "gee": "last state of a GEE chain",
}
"""Names of the starting points in the tables."""


def plan(settings: Settings) -> list[Fit]:
    """Return the fits of this experiment; those that start from the prior are also fits of prediction.

    Parameters
    ----------
    settings : Settings
        Settings of the run.

    Returns
    -------
    list of Fit
        The fits to run.
    """
    if PRINTED_DATASET not in settings.datasets:
        return []
    return [
        Fit(PRINTED_DATASET, STUDIED_MODEL, k, repeat, unobserved, start=start, **settings.chain())
        for unobserved, k in settings.start_scenarios
        for start in START_KINDS
        for repeat in range(settings.repeats)
    ]


def n_active(contributions: Any) -> int:
    """Return the number of active components.

    Parameters
    ----------
    contributions : array-like
        ‖w_:k‖ ‖z_k:‖ of each component.

    Returns
    -------
    int
        Number of components above three times the median.

    Examples
    --------
    >>> n_active([14135, 3299, 218, 198, 196, 151])
    2
    """
    sizes = np.asarray(contributions, dtype=float)
    return int((sizes > ACTIVE_RATIO * np.median(sizes)).sum())


def table(results: Mapping[Fit, Result], settings: Settings) -> pd.DataFrame:
    """Return one row for each fit.

    Parameters
    ----------
    results : mapping of Fit to dict
        The fits of `plan` (others are ignored).
    settings : Settings
        Settings of the run.

    Returns
    -------
    DataFrame
        Columns `unobserved`, `k`, `start`, `repeat`, `mse` (on held-out entries), `train_mse`, `w_mean`, `active`
        (number of components) and `log_joint` (of data and last state, up to a constant of the scenario).
    """
    rows = [
        {
            "unobserved": fit.unobserved,
            "k": fit.k,
            "start": fit.start,
            "repeat": fit.repeat,
            "mse": float(results[fit]["test_mse"]),
            "train_mse": float(results[fit]["train_mse_mean"]),
            "w_mean": float(results[fit]["w_mean"]),
            "active": n_active(results[fit]["contributions"]),
            "log_joint": float(results[fit]["log_joint"]),
        }
        for fit in plan(settings)
        if fit in results
    ]
    names = ["unobserved", "k", "start", "repeat", "mse", "train_mse", "w_mean", "active", "log_joint"]
    return pd.DataFrame(rows, columns=names)


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
    return table(run_fits(plan(settings), datasets, **options), settings)


def grids(measured: pd.DataFrame, names: Mapping[str, str]) -> list[Grid]:
    """Return the results of each starting point, one table for each scenario.

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
    printed = printed_prediction().query(f"model == '{STUDIED_MODEL}'").set_index(["unobserved", "k"])["mse"]
    grids = []
    unobserved: Any
    for (unobserved, k), scenario in measured.groupby(["unobserved", "k"]):
        best = scenario["log_joint"].max()
        rows: list[list[str | Cell]] = []
        for start in [name for name in START_KINDS if name in set(scenario["start"])]:
            group = scenario[scenario["start"] == start]
            rows.append(
                [
                    START_NAMES[start],
                    number(group["mse"].mean()),
                    f"{group['mse'].min():.0f} … {group['mse'].max():.0f}",
                    number(group["train_mse"].mean()),
                    f"{group['active'].min()} … {group['active'].max()}",
                    number(group["w_mean"].mean(), 3),
                    str(round(group["log_joint"].mean() - best)),
                ]
            )
        key: Any = (unobserved, k)
        printed_text = f", printed {printed[key]:.2f}" if key in printed.index else ""
        caption = f"{names[PRINTED_DATASET]}: GL₁², {100 * unobserved:.0f}% unobserved, K = {k}{printed_text}"
        header = ["start", "held-out MSE", "range", "training MSE", "active", "mean of W", "log density"]
        grids.append(Grid(header, rows, caption))
    return grids


def by_active(measured: pd.DataFrame) -> Grid:
    """Return the error by the number of active components, over all starting points.

    Parameters
    ----------
    measured : DataFrame
        See `table`.

    Returns
    -------
    Grid
        One row for each scenario and number of active components.
    """
    rows: list[list[str | Cell]] = []
    unobserved: Any
    for (unobserved, k), scenario in measured.groupby(["unobserved", "k"]):
        best = scenario["log_joint"].max()
        for count, group in scenario.groupby("active"):
            rows.append(
                [
                    f"{100 * unobserved:.0f}%",
                    str(k),
                    str(count),
                    str(len(group)),
                    number(group["mse"].mean()),
                    number(group["train_mse"].mean()),
                    str(round(group["log_joint"].mean() - best)),
                ]
            )
    header = ["unobserved", "K", "active", "chains", "held-out MSE", "training MSE", "log density"]
    return Grid(header, rows, "GL₁²: error by the number of active components at the end, over all starts", n_labels=3)


def markdown(measured: pd.DataFrame, names: Mapping[str, str]) -> str:
    """Return the tables as Markdown.

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
    return "\n\n".join(grid.markdown() for grid in [*grids(measured, names), by_active(measured)])


def explanation(measured: pd.DataFrame) -> list[str]:
    """Return an explanation of the results, with the numbers of `table`.

    Parameters
    ----------
    measured : DataFrame
        See `table`.

    Returns
    -------
    list of str
        Paragraphs.
    """
    if measured.empty:
        return []
    printed = printed_prediction().query(f"model == '{STUDIED_MODEL}'").set_index(["unobserved", "k"])["mse"]
    paragraphs = [
        "In GL₁² the penalty on a component depends on the sum of all components in its row, so a component that does "
        "not explain anything yet is kept small by those that do, and by their number. A component counts as active if "
        "the product of the norms of its column of W and its row of Z is more than three times the median over the "
        "components. The chains below share the data and the random numbers and differ only in their starting point; "
        "“log density” is that of data and last state together, relative to the best chain of the scenario."
    ]
    unobserved: Any
    for (unobserved, k), scenario in measured.groupby(["unobserved", "k"]):
        key: Any = (unobserved, k)
        printed_text = f" (printed: {printed[key]:.2f})" if key in printed.index else ""
        parts = [
            f"{START_NAMES[start]}: {group['mse'].mean():.0f}, {_counts(group['active'])} active"
            for start, group in ((name, scenario[scenario["start"] == name]) for name in START_KINDS)
            if len(group)
        ]
        paragraphs.append(
            f"{100 * unobserved:.0f}% unobserved, K = {k}{printed_text}. Mean held-out MSE by start, and number of "
            f"active components at the end: {'; '.join(parts)}."
        )
    groups = measured.groupby(["unobserved", "k"])["log_joint"]
    behind = (groups.transform("max") - measured["log_joint"])[measured["active"] == 0]
    if len(behind):
        paragraphs.append(
            f"In {len(behind)} of the {len(measured)} chains no component became active. Their predictions are far too "
            "small everywhere: their training error is as large as their held-out error, and their log density is "
            f"{behind.mean():.0f} below the best. They are stuck and do not sample the posterior. A mean over repeats "
            "with different numbers of active components reflects how often components became active in time, rather "
            "than how well the model predicts."
        )
    return paragraphs


def _counts(counts: pd.Series) -> str:
    few, many = counts.min(), counts.max()
    return f"{few}" if few == many else f"{few} to {many}"
