"""Calibration of a fit, measured on entries that were hidden from two more chains for this purpose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from bnmf.data.folds import Fold
from bnmf.data.observed import ObservedMatrix
from bnmf.utils.typing import Bools, Floats, Indices

if TYPE_CHECKING:
    from bnmf.posterior.posterior import Posterior

# Probability of the intervals whose coverage is measured.
PROB = 0.9


@dataclass(frozen=True, eq=False)
class Calibration:
    """How well hidden entries were predicted, and how many of them are inside their 90% intervals.

    Attributes
    ----------
    columns : ndarray of int of shape (n,)
        Column of each hidden entry.
    inside : ndarray of bool of shape (n,)
        Whether it is inside its interval.
    errors : ndarray of shape (n,)
        Difference of the entry and its prediction, in standard deviations of its column. NaN where an entry has a limit
        on one side only: the mean of such entries is that of the limits, and no prediction to compare with.
    errors_of_mean : ndarray of shape (n,)
        The same for the mean of the other observed entries of its column.
    """

    columns: Indices
    inside: Bools
    errors: Floats
    errors_of_mean: Floats

    @property
    def n_entries(self) -> int:
        """Number of hidden entries."""
        return len(self.columns)

    @property
    def coverage(self) -> float:
        """Share of the hidden entries that are inside their 90% intervals."""
        return float(self.inside.mean())

    @property
    def error(self) -> float:
        """Root mean squared error of the predictions, in units of the standard deviations of the columns."""
        return _root_mean_square(self.errors)

    @property
    def error_of_mean(self) -> float:
        """Root mean squared error of the means of the columns, in the same unit."""
        return _root_mean_square(self.errors_of_mean)

    def by_column(self) -> pd.DataFrame:
        """Return the number of hidden entries, coverage and errors of each column that has any.

        Returns
        -------
        DataFrame
            Columns `n`, `coverage`, `error`, `error_of_mean` and `n_compared`, the number of entries that the errors
            are those of; the index is the number of the column.
        """
        squares = {"error": self.errors**2, "error_of_mean": self.errors_of_mean**2}
        groups = pd.DataFrame({"column": self.columns, "inside": self.inside, **squares}).groupby("column")
        means = groups.mean()
        content = {"n": groups.size(), "coverage": means["inside"]} | {name: means[name] ** 0.5 for name in squares}
        return pd.DataFrame({**content, "n_compared": groups["error"].count()})

    def __repr__(self) -> str:
        found = ("coverage", "error", "error_of_mean")
        numbers = ", ".join(f"{name}={getattr(self, name):.3g}" for name in found)
        return f"<Calibration: n_entries={self.n_entries}, {numbers}>"

    def to_array(self) -> Floats:
        """Return everything as one array (4, n), for files."""
        return np.array([self.columns, self.inside, self.errors, self.errors_of_mean], dtype=np.float64)

    @classmethod
    def from_array(cls, array: Floats) -> Calibration:
        """Return the calibration that :meth:`to_array` was called for."""
        columns, inside, errors, errors_of_mean = array
        return cls(columns.astype(np.intp), inside.astype(bool), errors, errors_of_mean)


def measure(posterior: Posterior, fold: Fold, data: ObservedMatrix) -> Calibration:
    """Return how well a posterior predicts the entries of all data that a fold hid from it."""
    low, high = posterior.interval(PROB, fold.rows, fold.columns)
    predicted = posterior.mean(fold.rows, fold.columns)
    mean = column_moments(fold.rest)[0][fold.columns]
    deviation = column_moments(data)[1][fold.columns]  # of hidden entries too: the others may be nearly equal
    deviation = np.where(deviation > 0.0, deviation, 1.0)
    inside = (low <= fold.nearest(low)) & (fold.nearest(high) <= high)
    errors = np.array([fold.nearest(guess) - guess for guess in (predicted, mean)]) / deviation
    for limit in (fold.lower, fold.upper):
        if limit is not None:
            errors[:, np.isinf(limit)] = np.nan
    return Calibration(fold.columns, inside, *errors)


def _root_mean_square(errors: Floats) -> float:
    """Return the root mean square of the errors that are known, NaN if there are none."""
    known = errors[~np.isnan(errors)]
    return float(np.sqrt(np.mean(known**2))) if known.size else np.nan


def column_moments(data: ObservedMatrix) -> tuple[Floats, Floats]:
    """Return mean and standard deviation of each column, 0 for one without any entry."""
    return data.columns.sums() / np.maximum(data.columns.n_observed, 1), data.columns.deviations()
