"""Draws of precisions that share a gamma distribution, of that distribution, and the bounds of precisions."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammainc, gammaincinv

from bnmf.utils.typing import Array, Floats, Ints

# Largest precision of an entry, in units of the data: a noise of one millionth of the data.
MAX_PRECISION = 1e12
# Step, in units of the data, that is taken for a column whose entries are all equal, where no other column has one.
CONSTANT_STEP = 0.1
# Smallest noise of a column by default, as a fraction of what the other columns leave unexplained of it (both standard
# deviations). A component that follows one column alone cannot be told from its noise (a Heywood case), so the data do
# not say how the two share that column; with hardly any noise, intervals would depend on the prior of weights alone.
NOISE_FLOOR = 0.35
# Rows that are used to regress columns on each other, and columns up to which that is done.
MAX_REGRESSED_ROWS, MAX_REGRESSED_COLUMNS = 1000, 500
# Rows of an identity matrix that are added to them, in units of the columns, and rounds that fill missing entries.
RIDGE_ROWS, FILLING_ROUNDS = 0.1, 20
# The unexplained variance is rounded to multiples of 2^(1/16), so that rounding errors of sums do not change any draw.
STEPS_PER_DOUBLING = 16
# Rounds of proposals for precisions that are still pending, most of which are accepted in each. Only numbers beyond the
# range of floating point need more; what is pending then is NaN.
MAX_ROUNDS = 200
# Probability of a precision below its bound from which the distribution function is inverted.
MIN_INVERTED_MASS = 1e-6
SCALE_SHAPE = SCALE_RATE = 0.5
"""Gamma prior of s."""


def max_precisions(steps: Floats) -> Floats:
    """Return the largest precision of rows or columns whose entries are recorded in steps: the rounding is noise."""
    known = steps[steps > 0]
    steps = np.where(np.isnan(steps), np.median(known) if known.size else CONSTANT_STEP, steps)
    return np.minimum(12.0 / np.maximum(steps, 1e-9) ** 2, MAX_PRECISION)


def unexplained_variances(X: Floats) -> Floats:
    """Return the variance of each column (NaN is missing) that a linear regression on the other columns leaves.

    It is one over the diagonal of the inverse covariance matrix. Missing entries are filled by the regression, and the
    variance that it leaves is added to the covariance for each of them, as the EM algorithm does.
    """
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
    rounded = np.round(STEPS_PER_DOUBLING * np.log2(np.where(found > 0.0, found, 1.0))) / STEPS_PER_DOUBLING
    return np.where(found > 0.0, np.exp2(rounded), 0.0)


def draw_precisions(
    strength: float, scale: float, errors: Floats, counts: Ints, bounds: Floats, rng: np.random.Generator
) -> Floats:
    """Draw precisions with prior Gamma(strength, strength * scale), given squared errors and their counts."""
    return draw_bounded_gamma(strength + 0.5 * counts, strength * scale + 0.5 * errors, bounds, rng)


def draw_scale(strength: float, precision: Floats, rng: np.random.Generator) -> float:
    """Draw s given the precisions."""
    shape, rate = SCALE_SHAPE + strength * precision.size, SCALE_RATE + strength * np.add.reduce(precision)
    return float(rng.standard_gamma(shape) / rate)


def draw_strength(strengths: Floats, scale: float, precision: Floats, rng: np.random.Generator) -> float:
    """Draw α on its grid, given the precisions and their scale."""
    log_weights = log_gammas(strengths, scale, precision)
    largest = max(log_weights)
    weights = [math.exp(log_weight - largest) for log_weight in log_weights]  # a few: NumPy would take longer
    left = rng.random() * sum(weights)
    for strength, weight in zip(strengths.tolist(), weights, strict=True):
        left -= weight
        if left <= 0.0:
            return strength
    return float(strengths[-1])


def log_gammas(strengths: Floats, scale: float, precision: Floats) -> list[float]:
    """Return Σ_j log Gamma(precision_j | α, α scale) for each α."""
    total, logs, log_scale = float(np.add.reduce(precision)), float(np.add.reduce(np.log(precision))), math.log(scale)
    return [
        (a - 1.0) * logs - a * scale * total + precision.size * (a * (math.log(a) + log_scale) - math.lgamma(a))
        for a in strengths.tolist()
    ]


def draw_bounded_gamma(shape: Array, rate: Array, bound: Array, rng: np.random.Generator) -> Floats:
    """Draw from Gamma(shape, rate) below a bound, exactly.

    Draws above the bound are replaced, by inversion of the distribution function where there is mass below it. Where
    there is none to speak of, the bound is far in the tail: proposals fall off exponentially below it along the tangent
    of the log density, which is concave, and nearly all are accepted.
    """
    out = rng.standard_gamma(shape) / rate
    beyond = out > bound
    if not np.logical_or.reduce(beyond):
        return out
    shape, rate, bound = np.broadcast_arrays(shape, rate, bound)
    slope = (shape - 1.0) / bound - rate  # of the log density at the bound
    mass = gammainc(shape, rate * bound)
    inverted = beyond & ((slope <= 0) | (mass > MIN_INVERTED_MASS))
    k, r, b = shape[inverted], rate[inverted], bound[inverted]
    out[inverted] = np.minimum(gammaincinv(k, rng.uniform(size=k.size) * mass[inverted]) / r, b)
    pending = np.flatnonzero(beyond & ~inverted)
    for _ in range(MAX_ROUNDS):
        if not pending.size:
            break
        k, r, b, tangent = shape[pending], rate[pending], bound[pending], slope[pending]
        distance = rng.exponential(size=pending.size) / tangent
        log_ratio = (k - 1.0) * np.log1p(-np.minimum(distance / b, 1.0 - 1e-16)) + (r + tangent) * distance
        accepted = (distance < b) & (-rng.exponential(size=pending.size) < log_ratio)
        out[pending[accepted]] = b[accepted] - distance[accepted]
        pending = pending[~accepted]
    out[pending] = np.nan
    return out
