"""Measured beside printed: means over repeats, their spread, and whether a printed number lies within it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from bnmf.experiments.grid import Cell, number

PRINTED_REPEATS = 10
"""The paper averages ten repeats."""
CLOSE = 3.0
"""A difference up to this many percent is called close."""


class Comparison(NamedTuple):
    """One measured number beside the printed one.

    Attributes
    ----------
    measured, spread : float
        Mean and standard deviation over the repeats.
    printed : float
        The printed number.
    percent : float
        Difference in percent of the printed number; NaN where that is 0.
    verdict : {"within", "close", "off", ""}
        See `compare`; empty if there is nothing to compare.
    """

    measured: float
    spread: float
    printed: float
    percent: float
    verdict: str


def compare(values: Sequence[float], printed: float | None, unit: float) -> Comparison:
    """Compare the repeats of a measurement with a printed mean of ten repeats.

    Both are means, so their difference has the standard error s √(1/n + 1/10), s being the standard deviation of our
    repeats, which the printed ones are taken to share. "within" means at most two of these (and half a unit of the
    last printed digit) apart, "close" at most 3% apart, and "off" neither.

    Parameters
    ----------
    values : sequence of float
        The repeats.
    printed : float or None
        The printed number.
    unit : float
        Its last digit.

    Returns
    -------
    Comparison
        The two beside each other.

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
        verdict = "close" if abs(percent) <= CLOSE else "off"
    return Comparison(mean, spread, printed, percent, verdict)


def compare_tables(measured: pd.DataFrame, printed: pd.DataFrame, column: str, unit: float) -> pd.DataFrame:
    """Compare every cell of a printed table with the repeats of a measured one.

    Parameters
    ----------
    measured : DataFrame
        One row for each repeat, with the printed table's columns and `repeat`.
    printed : DataFrame
        One row for each number.
    column : str
        The column with the numbers.
    unit : float
        Last digit of the printed numbers.

    Returns
    -------
    DataFrame
        The columns of `printed` that say which number it is, the fields of `Comparison`, and `n` repeats; only the
        cells that were measured. The printed numbers of GL2²,∞ are compared with its exact conditional and with
        the rule that the paper prints, from which they presumably come.
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
    again = printed[printed["model"] == "gl22inf"].assign(model="gl22inf-published")
    return pd.concat([printed, again], ignore_index=True)


def versus(cell: Any, digits: int, printed_digits: int) -> Cell:
    """Return a cell with the measured mean, the printed number and their difference.

    Parameters
    ----------
    cell : row of `compare_tables`
        The comparison.
    digits, printed_digits : int
        Decimals of the two.

    Returns
    -------
    Cell
        The cell.
    """
    percent = "" if np.isnan(cell.percent) else f", {cell.percent:+.1f}%"
    return Cell(number(cell.measured, digits), f"printed {cell.printed:.{printed_digits}f}{percent}", cell.verdict)
