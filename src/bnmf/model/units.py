"""Units: the model works on columns that are shifted and scaled, and results come back in the user's units."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from bnmf.data.containers import SMALLEST
from bnmf.data.limits import log_normal_mass
from bnmf.data.observed import ObservedMatrix
from bnmf.utils.typing import Floats

# Offsets that are components.
LEARNED = ("learned", "both")
# Size of a column, as a part of what was subtracted from it, that counts as zero.
ROUNDING = 1e-13
# Entries of a column with limits that count with the spread of other columns, rounds to find its moments, and entries
# of the data that are used for that.
EXTRA_ENTRIES, EM_ROUNDS, MAX_ENTRIES = 2.0, 30, 10**6
# Ratio to the median from which an entry counts as an outlier when units are robust.
MAX_RATIO = 20.0


@dataclass(frozen=True, eq=False)
class Units:
    """The model sees the data less an offset of each column, divided by a scale, one for all or one for each column."""

    scale: Floats
    offset: Floats | None = None

    @property
    def by_column(self) -> bool:
        """Whether each column has a scale."""
        return self.scale.size > 1


NO_UNITS = Units(np.ones(1))
"""The model works in the user's units."""


def units_of(
    data: ObservedMatrix, scale: str | None, offset: str | None, *, robust: bool = False, signed: bool = True
) -> tuple[Units, ObservedMatrix]:
    """Return the units of a matrix, and the matrix with its offsets subtracted, for factors that may be `signed`."""
    is_common = offset == "both" and scale != "column"
    if offset in LEARNED:  # effects are learned around the mean, or above zero
        offset = "mean" if signed else None
    subtracted, level = None, np.zeros(data.shape[1])
    latent = None if data.limits is None or data.has_implicit_zeros else _latent_moments(data)
    if offset is not None:
        if data.has_implicit_zeros:
            raise ValueError(
                f"offset={offset!r} needs dense data: subtracting it from implicit zeros would store them all"
            )
        subtracted = data.columns.minima() if offset == "min" else _centres(data, robust)
        if latent is not None and offset == "mean":
            subtracted = np.where(np.isnan(latent[0]), subtracted, latent[0])
        if is_common:
            subtracted = np.full(len(subtracted), np.average(subtracted, weights=data.columns.n_observed))
        data, level = data.shifted(subtracted), subtracted
    sizes, counts = data.columns.root_mean_squares(), data.columns.n_observed
    sizes = np.where(sizes < ROUNDING * np.abs(level), 0.0, sizes)  # of equal entries, the rounding of their mean
    _refuse_tiny(sizes)
    if scale is None:
        return Units(np.ones(1), subtracted), data
    if robust:
        sizes = np.array([_robust_size(data.columns.observed_values(column)) for column in range(len(sizes))])
    if latent is not None:
        mean, variance = latent[0] - level, latent[1]
        sizes = np.where(np.isnan(mean), sizes, np.sqrt(mean**2 + variance))
    if scale == "matrix":
        return Units(np.array([_root_mean_square(sizes, counts)]), subtracted), data
    # A column of equal entries has the size of a typical column, or their own if that is less.
    typical = np.median(sizes[sizes > 0]) if sizes.any() else 1.0
    constant = np.where(np.abs(level) >= SMALLEST, np.minimum(np.abs(level), typical), typical)
    return Units(np.where(sizes > 0, sizes, constant), subtracted), data


def _latent_moments(data: ObservedMatrix) -> tuple[Floats, Floats]:
    """Return mean and variance of the values of each column that has limits, NaN for others, by an EM algorithm."""
    # A column of which nearly all entries were capped would have no spread at all, so the less is known, the more of
    # EXTRA_ENTRIES count, which have the spread of other columns of its size.
    columns, values, lower, upper = data.every(-(-data.n_observed // MAX_ENTRIES))
    limited, n_columns = np.flatnonzero(~np.isnan(lower)), data.shape[1]
    lower, upper, of = lower[limited], upper[limited], columns[limited]

    def means(x: Floats) -> Floats:
        return np.bincount(columns, x, n_columns) / counts

    counts = np.maximum(np.bincount(columns, minlength=n_columns), 1)
    share = np.bincount(of, minlength=n_columns) / counts
    mean = means(values)
    variance = means((values - mean[columns]) ** 2)
    size = np.sqrt(mean**2 + variance)
    typical = (size > 0.0) & (share < 0.5)
    ratio = float(np.median(np.sqrt(variance[typical]) / size[typical])) if typical.any() else 1.0
    usual = (ratio * size) ** 2
    variance = (1.0 - share) * variance + share * usual
    known = (share > 0.0) & (variance > 0.0)
    lower, upper, limited = lower[known[of]], upper[known[of]], limited[known[of]]
    of = of[known[of]]
    for _ in range(EM_ROUNDS):
        deviation = np.sqrt(variance[of])
        low, high = ((side - mean[of]) / deviation for side in (lower, upper))
        log_mass = log_normal_mass(low, high)
        moved, square = np.zeros(len(of)), np.ones(len(of))
        for sign, limit in ((1.0, low), (-1.0, high)):
            finite = np.where(np.isinf(limit), 0.0, limit)
            log_density = np.where(np.isinf(limit), -np.inf, -0.5 * (finite**2 + math.log(2.0 * math.pi)))
            density = np.exp(log_density - log_mass)
            moved, square = moved + sign * density, square + sign * finite * density
        distance, squares = values - mean[columns], (values - mean[columns]) ** 2
        distance[limited], squares[limited] = moved * deviation, np.maximum(square, 0.0) * deviation**2
        unknown = np.bincount(of, np.clip(square - moved**2, 0.0, 1.0), n_columns) / counts
        shift, extra = means(distance), EXTRA_ENTRIES * unknown
        variance = (counts * (means(squares) - shift**2) + extra * usual) / (counts + extra)
        mean = mean + shift
    return np.where(known, mean, np.nan), np.where(known, variance, np.nan)


def _centres(data: ObservedMatrix, robust: bool) -> Floats:
    """Return the mean of the observed entries of each column, or their median, and 0 for a column without any."""
    columns, counts = data.columns, data.columns.n_observed
    if robust:
        found = [np.median(columns.observed_values(column)) if counts[column] else 0.0 for column in range(len(counts))]
        return np.array(found)
    return columns.sums() / np.maximum(counts, 1)


def _robust_size(values: Floats) -> float:
    """Return the root mean square of a column whose outliers are cut."""
    magnitude = np.abs(values)
    if not magnitude.any():
        return 0.0
    limit = MAX_RATIO * float(np.median(magnitude[magnitude > 0.0]))
    return limit * math.sqrt(np.mean((np.minimum(magnitude, limit) / limit) ** 2))


def _root_mean_square(sizes: Floats, counts: Any) -> float:
    """Return the root mean square of all entries, given those of groups and their sizes; 1 if all are zero."""
    largest = sizes.max()
    if largest == 0:
        return 1.0
    return float(largest * np.sqrt(np.average((sizes / largest) ** 2, weights=counts)))


def _refuse_tiny(sizes: Floats) -> None:
    """Raise an error if a column is so small that its squares are zero."""
    tiny = np.flatnonzero((sizes > 0.0) & (sizes < SMALLEST))
    if len(tiny):
        raise ValueError(
            f"X must have columns of zeros or of sizes above {SMALLEST:g}, got {sizes[tiny[0]]:g} in column {tiny[0]}: "
            "squares of such numbers leave the range of floating-point numbers, so multiply X by a constant"
        )
