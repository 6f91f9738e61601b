"""Bounds of the precisions of rows and columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from bnmf.utils.typing import Floats

# Largest precision of an entry, in units of the data: a noise of one millionth of the data.
MAX_PRECISION = 1e12
# Largest part of the variance of a column that counts as rounding: that of two values, each half of the time. If one of
# them is rare, the variance is below that of rounding to their step.
MAX_ROUNDING = 1.0 / 3.0
# Step, in units of the data, that is taken for a column whose entries are all equal, where no other column has one.
CONSTANT_STEP = 0.1
# Rows that are used to regress columns on each other, and columns up to which that is done.
MAX_REGRESSED_ROWS, MAX_REGRESSED_COLUMNS = 1000, 500
# Rows of an identity matrix that are added to them, in units of the columns, and rounds that fill missing entries.
RIDGE_ROWS, FILLING_ROUNDS = 0.1, 20
# Variances are rounded to multiples of 2^(1/16), so that rounding errors of sums do not change any draw.
STEPS_PER_DOUBLING = 16


def max_precisions(steps: Floats, variances: Any = np.inf) -> Floats:
    """Return the largest precision of rows or columns recorded in steps: rounding is noise, and a part of variances."""
    steps = np.minimum(steps, np.sqrt(12.0 * MAX_ROUNDING * rounded(variances, np.inf)))
    known = steps[steps > 0]
    steps = np.where(np.isnan(steps), np.median(known) if known.size else CONSTANT_STEP, steps)
    return np.minimum(12.0 / np.maximum(steps, 1e-9) ** 2, MAX_PRECISION)


def unexplained_variances(X: Floats) -> Floats:
    """Return the variance of each column (NaN is missing) that a linear regression on the other columns leaves."""
    # It is one over the diagonal of the inverse covariance matrix. As in the EM algorithm, missing entries are filled
    # by the regression, and the variance that it leaves is added to the covariance for each of them.
    missing = np.isnan(X)
    n_missing, counts = missing.sum(axis=0), np.maximum((~missing).sum(axis=0), 1)
    filled = np.where(missing, 0.0, X)
    filled = np.where(missing, 0.0, filled - filled.sum(axis=0) / counts)
    variance = (filled**2).sum(axis=0) / counts
    filled /= np.sqrt(np.where(variance > 0.0, variance, 1.0))
    n_rows, n_columns = X.shape
    ridge, diagonal = RIDGE_ROWS / n_rows, np.diag_indices(n_columns)
    left = size = np.ones(n_columns)
    for _ in range(FILLING_ROUNDS if n_missing.any() else 1):
        covariance = filled.T @ filled / n_rows
        covariance[diagonal] += n_missing * left / n_rows + ridge
        inverse = np.linalg.inv(covariance)
        left, size = 1.0 / inverse[diagonal], covariance[diagonal]
        for column in np.flatnonzero(n_missing):
            rows = missing[:, column]
            filled[rows, column] -= (filled[rows] @ inverse[:, column]) * left[column]
    found = np.clip((left - ridge) / size, 0.0, 1.0) * variance
    return rounded(found, 0.0)


def rounded(variances: Any, of_zero: float) -> Floats:
    """Return variances rounded to few digits; `of_zero` stands for 0."""
    powers = np.round(STEPS_PER_DOUBLING * np.log2(np.where(variances > 0.0, variances, 1.0))) / STEPS_PER_DOUBLING
    return np.where(variances > 0.0, np.exp2(powers), of_zero)
