"""An extra: GL1² started from different places, to see why its printed errors are met in some cells and not in others.

The penalty of GL1² is on the square of a row's sum, so that components compete. A component that explains nothing stays
small because the others take the whole of the sum: it is asleep, and rarely wakes. How many components a chain of 500
sweeps has awake decides its error, and that depends on where it started.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from bnmf.experiments.fits import STARTS, Fit, Result
from bnmf.experiments.grid import Cell, Grid, number
from bnmf.experiments.prediction import PRINTED_FOR
from bnmf.experiments.published import prediction as printed_prediction
from bnmf.experiments.run import run_fits
from bnmf.experiments.settings import Settings

MODEL = "gl12"
AWAKE = 3.0
"""A component is awake if ‖w_:k‖ ‖z_k:‖ is more than this many times the median over the components."""
NAMES = {
    "prior": "draw from GL₁²'s prior",
    "exponential": "exponential, mean 10 (GEE's prior)",
    "small": "exponential, mean 0.1",
    "gee": "last state of a GEE chain",
}
"""How the starts are called."""


def plan(settings: Settings) -> list[Fit]:
    """Return the fits of this experiment; those that start from the prior are fits of prediction too.

    Parameters
    ----------
    settings : Settings
        Size of the run.

    Returns
    -------
    list of Fit
        What to run.
    """
    if PRINTED_FOR not in settings.datasets:
        return []
    return [
        Fit(PRINTED_FOR, MODEL, k, repeat, unobserved, start=start, **settings.chain())
        for unobserved, k in settings.start_scenarios
        for start in STARTS
        for repeat in range(settings.repeats)
    ]


def awake(contributions: Any) -> int:
    """Return how many components stand out from the others.

    Parameters
    ----------
    contributions : array-like
        ‖w_:k‖ ‖z_k:‖ of each component.

    Returns
    -------
    int
        How many are more than three times the median.

    Examples
    --------
    >>> awake([14135, 3299, 218, 198, 196, 151])
    2
    """
    sizes = np.asarray(contributions, dtype=float)
    return int((sizes > AWAKE * np.median(sizes)).sum())


def table(results: Mapping[Fit, Result], settings: Settings) -> pd.DataFrame:
    """Return one row for each fit.

    Parameters
    ----------
    results : mapping of Fit to dict
        The fits of `plan` (others are passed over).
    settings : Settings
        Size of the run.

    Returns
    -------
    DataFrame
        Columns `unobserved`, `k`, `start`, `repeat`, `mse` (on held-out entries), `train_mse`, `w_mean`, `awake`
        (components) and `log_joint` (of data and last state, up to a constant of the scenario).
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
            "awake": awake(results[fit]["contributions"]),
            "log_joint": float(results[fit]["log_joint"]),
        }
        for fit in plan(settings)
        if fit in results
    ]
    names = ["unobserved", "k", "start", "repeat", "mse", "train_mse", "w_mean", "awake", "log_joint"]
    return pd.DataFrame(rows, columns=names)


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
    return table(run_fits(plan(settings), datasets, **how), settings)


def grids(measured: pd.DataFrame, names: Mapping[str, str]) -> list[Grid]:
    """Return what each start leads to, one table for each scenario.

    Parameters
    ----------
    measured : DataFrame
        See `table`.
    names : mapping of str to str
        How each data set is called.

    Returns
    -------
    list of Grid
        The tables.
    """
    printed = printed_prediction().query(f"model == '{MODEL}'").set_index(["unobserved", "k"])["mse"]
    grids = []
    unobserved: Any
    for (unobserved, k), scenario in measured.groupby(["unobserved", "k"]):
        best = scenario["log_joint"].max()
        rows: list[list[str | Cell]] = []
        for start in [name for name in STARTS if name in set(scenario["start"])]:
            group = scenario[scenario["start"] == start]
            rows.append(
                [
                    NAMES[start],
                    number(group["mse"].mean()),
                    f"{group['mse'].min():.0f} … {group['mse'].max():.0f}",
                    number(group["train_mse"].mean()),
                    f"{group['awake'].min()} … {group['awake'].max()}",
                    number(group["w_mean"].mean(), 3),
                    str(round(group["log_joint"].mean() - best)),
                ]
            )
        key: Any = (unobserved, k)
        beside = f", printed {printed[key]:.2f}" if key in printed.index else ""
        caption = f"{names[PRINTED_FOR]}: GL₁², {100 * unobserved:.0f}% unobserved, K = {k}{beside}"
        header = ["start", "held-out MSE", "range", "training MSE", "awake", "mean of W", "log density"]
        grids.append(Grid(header, rows, caption))
    return grids


def by_awake(measured: pd.DataFrame) -> Grid:
    """Return the error by the number of components that are awake, whatever the start.

    Parameters
    ----------
    measured : DataFrame
        See `table`.

    Returns
    -------
    Grid
        One row for each scenario and number of components awake.
    """
    rows: list[list[str | Cell]] = []
    unobserved: Any
    for (unobserved, k), scenario in measured.groupby(["unobserved", "k"]):
        best = scenario["log_joint"].max()
        for count, group in scenario.groupby("awake"):
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
    header = ["unobserved", "K", "awake", "chains", "held-out MSE", "training MSE", "log density"]
    return Grid(header, rows, "GL₁²: error by the number of components awake at the end, over all starts", n_labels=3)


def markdown(measured: pd.DataFrame, names: Mapping[str, str]) -> str:
    """Render the tables as Markdown.

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
    return "\n\n".join(grid.markdown() for grid in [*grids(measured, names), by_awake(measured)])


def explanation(measured: pd.DataFrame) -> list[str]:
    """Return, in words and with the numbers of `table`, what the starts tell.

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
    printed = printed_prediction().query(f"model == '{MODEL}'").set_index(["unobserved", "k"])["mse"]
    paragraphs = [
        "In GL₁² every component pays for the sum of all the others in its row, so a component that explains nothing "
        "yet is kept small by those that do, and by the mere number of them: it is asleep. A component counts as awake "
        "if the product of the norms of its column of W and its row of Z is more than three times the median over the "
        "components. The chains below have the same data and the same random numbers and differ only in where they "
        "start; “log density” is that of data and last state together, relative to the best chain of the scenario."
    ]
    unobserved: Any
    for (unobserved, k), scenario in measured.groupby(["unobserved", "k"]):
        key: Any = (unobserved, k)
        beside = f" (printed: {printed[key]:.2f})" if key in printed.index else ""
        parts = [
            f"{NAMES[start]}: {group['mse'].mean():.0f}, {_counts(group['awake'])} awake"
            for start, group in ((name, scenario[scenario["start"] == name]) for name in STARTS)
            if len(group)
        ]
        paragraphs.append(
            f"{100 * unobserved:.0f}% unobserved, K = {k}{beside}. Mean held-out MSE by start, and how many components "
            f"are awake at the end: {'; '.join(parts)}."
        )
    groups = measured.groupby(["unobserved", "k"])["log_joint"]
    behind = (groups.transform("max") - measured["log_joint"])[measured["awake"] == 0]
    if len(behind):
        paragraphs.append(
            f"In {len(behind)} of the {len(measured)} chains nothing woke up. Their predictions are far too small "
            "everywhere, so that their training error is as large as the held-out one, and their log density is "
            f"{behind.mean():.0f} below the best: they are stuck, and no sample of the posterior. A mean over repeats "
            "that mixes chains with different numbers awake says how often components woke in time, rather than how "
            "well the model predicts."
        )
    return paragraphs


def _counts(counts: pd.Series) -> str:
    few, many = counts.min(), counts.max()
    return f"{few}" if few == many else f"{few} to {many}"
