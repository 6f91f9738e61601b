"""Comparison of measured means over repeats with the numbers printed in the paper."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from bnmf.paper.grid import Cell, number

PRINTED_REPEATS = 10
"""Number of repeats behind a printed mean."""
CLOSE_PERCENT = 3.0
"""Largest difference, in percent of the printed number, with the verdict "close"."""


class Comparison(NamedTuple):
    """A measured and a printed number.

    Attributes
    ----------
    measured, spread : float
        Mean and standard deviation over the repeats.
    printed : float
        The printed number.
    percent : float
        Difference in percent of the printed number; NaN if that is 0.
    verdict : {"within", "close", "off", ""}
        See `compare`; empty if there is no printed number.
    """

    measured: float
    spread: float
    printed: float
    percent: float
    verdict: str


def compare(values: Sequence[float], printed: float | None, unit: float) -> Comparison:
    """Compare the repeats of a measurement with a printed mean of ten repeats.

    The difference of the two means has the standard error s √(1/n + 1/10), if both have the standard deviation s of
    our repeats. The verdict is "within" if they differ by at most two standard errors plus half a unit of the last
    printed digit, else "close" if they differ by at most 3%, else "off".

    Parameters
    ----------
    values : sequence of float
        The repeats.
    printed : float or None
        The printed number.
    unit : float
        Unit of the last printed digit.

    Returns
    -------
    Comparison
        The comparison.

    Examples
    --------
    >>> compare([8.0, 8.2, 8.4], 8.1, 0.1).verdict
    'within'
    >>> compare([8.0, 8.0, 8.0], 4.0, 0.1).verdict
    'off'
    """
    numbers = np.asarray(values, dtype=float)
    n = len(numbers)
    mean = float(numbers.mean()) if n else math.nan
    spread = float(numbers.std(ddof=1)) if n > 1 else math.nan
    if printed is None or math.isnan(printed):
        return Comparison(mean, spread, math.nan, math.nan, "")
    error = 2.0 * (0.0 if math.isnan(spread) else spread) * math.sqrt(1.0 / max(n, 1) + 1.0 / PRINTED_REPEATS)
    difference = mean - printed
    percent = 100.0 * difference / printed if printed else math.nan
    if abs(difference) <= error + 0.5 * unit:
        verdict = "within"
    else:
        verdict = "close" if abs(percent) <= CLOSE_PERCENT else "off"
    return Comparison(mean, spread, printed, percent, verdict)


def compare_tables(measured: pd.DataFrame, printed: pd.DataFrame, column: str, unit: float) -> pd.DataFrame:
    """Compare every cell of a printed table with the repeats of a measured one.

    Parameters
    ----------
    measured : DataFrame
        One row for each repeat, with the columns of the printed table and `repeat`.
    printed : DataFrame
        One row for each number.
    column : str
        The column to compare.
    unit : float
        Unit of the last printed digit.

    Returns
    -------
    DataFrame
        The key columns of `printed`, the fields of `Comparison` and the number `n` of repeats, for the cells that
        were measured. The printed numbers of GL2²,∞ are compared with both its exact conditional and the printed
        rule, from which they presumably come.
    """
    printed = _with_printed_rule(printed)
    keys = [name for name in ("dataset", "unobserved", "k", "model") if name in printed.columns]
    groups = {key: group[column].dropna().to_list() for key, group in measured.groupby(keys, sort=False)}
    rows = []
    for row in printed.itertuples(index=False):
        key = tuple(getattr(row, name) for name in keys)
        if groups.get(key):
            cell = compare(groups[key], float(getattr(row, column)), unit)
            rows.append({**dict(zip(keys, key, strict=True)), **cell._asdict(), "n": len(groups[key])})
    return pd.DataFrame(rows, columns=[*keys, *Comparison._fields, "n"])


def _with_printed_rule(printed: pd.DataFrame) -> pd.DataFrame:
    paper_rule = printed[printed["model"] == "gl22inf"].assign(model="gl22inf-published")
    return pd.concat([printed, paper_rule], ignore_index=True)


def versus(cell: Any, digits: int, printed_digits: int) -> Cell:
    """Return a cell with the measured mean, the printed number and their difference.

    Parameters
    ----------
    cell : row of `compare_tables`
        The comparison.
    digits, printed_digits : int
        Decimals of the measured and the printed number.

    Returns
    -------
    Cell
        The cell.
    """
    percent = "" if np.isnan(cell.percent) else f", {cell.percent:+.1f}%"
    return Cell(number(cell.measured, digits), f"printed {cell.printed:.{printed_digits}f}{percent}", cell.verdict)
