"""Predictions of entries of W Z, without ever holding all draws of all entries.

Everything works on tiles of rows, or of entries, whose draws fit into `TILE_BYTES`.

The predictive law of new data at an entry is y = max(lower bound, w z + ε) with noise ε of the law of the fit: data
that cannot be negative are cut at zero. Intervals, predictive draws and multiple imputations all use it
(:meth:`Entries.draw`). Log densities are those of w z + ε, the likelihood of the model.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from bnmf.kernels.compiled import products_of_pairs
from bnmf.model.noise import Law
from bnmf.sampler.threads import single_threaded_blas
from bnmf.utils.typing import Array, Floats, Indices

TILE_BYTES = 64 * 2**20
# Rows that have their draws of the noise in common when quantiles are computed.
ROWS_PER_NOISE = 16


@dataclass(frozen=True, eq=False)
class NoiseDraws:
    """Draws of the variance of the noise, a product of three parts, and of its law."""

    column: Floats  # variances (S, 1 or columns)
    row: Floats  # relative variances (1 or S, 1 or rows)
    law: Law = field(default_factory=Law)  # normal by default
    factor: Floats | None = None  # known relative standard deviations (1 or rows, columns)

    def of_rows(self, rows: slice) -> Floats:
        """Return draws of the variances of some rows, (S, 1 or rows, 1 or columns)."""
        return self.column[:, None, :] * _at(self.row, rows)[:, :, None] * self._known(rows)

    def mean_variance(self, rows: slice = slice(None)) -> Floats:
        """Return the mean over the draws of the variances of new data in some rows, (1 or rows, 1 or columns)."""
        row, column = _at(self.row, rows), self.column * self.law.variance
        return np.broadcast_to(row, (len(column), row.shape[1])).T @ column / len(column) * self._known(rows)

    def largest_deviations(self) -> Floats:
        """Return a bound of the standard deviations in each column, (1 or columns,)."""
        factor = 1.0 if self.factor is None else self.factor.max(axis=0)
        return np.sqrt(self.column.max(axis=0)) * np.sqrt(self.row.max()) * factor

    def at(self, rows: Indices, columns: Indices) -> Floats:
        """Return draws of the variances at paired positions, (S, 1 or n)."""
        variance = _at(self.column, columns) * _at(self.row, rows)
        if self.factor is None:
            return variance
        return variance * self.factor[0 if len(self.factor) == 1 else rows, columns] ** 2

    def _known(self, rows: slice) -> Any:
        """Return the squared known factors of some rows, (1 or rows, columns), or 1 if there are none."""
        return 1.0 if self.factor is None else (self.factor if len(self.factor) == 1 else self.factor[rows]) ** 2


def _at(sizes: Floats, chosen: Any) -> Floats:
    """Return some of sizes (S, n), or what is the same for all (S, 1)."""
    return sizes if sizes.shape[1] == 1 else sizes[:, chosen]


def tiles(length: int, bytes_each: int) -> Iterator[slice]:
    """Yield slices of range(length), each small enough that its items fit into TILE_BYTES."""
    size = max(1, TILE_BYTES // max(1, bytes_each))
    for start in range(0, length, size):
        yield slice(start, min(start + size, length))


def cut(means: Floats, lower_bound: float) -> Floats:
    """Return means that are no lower than the data can be; they are changed in place."""
    return means if lower_bound == -np.inf else np.maximum(means, lower_bound, out=means)


def mean(W: Array, Z: Array) -> Floats:
    """Return the mean of the products W Z over draws W (S, rows, K) and Z (S, K, columns)."""
    n_draws, n_rows, n_components = W.shape
    stacked_Z = Z.reshape(n_draws * n_components, -1)
    out = np.empty((n_rows, Z.shape[2]))
    for rows in tiles(n_rows, 8 * n_draws * n_components):
        # Side by side, the draws are one long matrix product: Σ_s W_s Z_s = [W_1 W_2 ...] [Z_1; Z_2; ...].
        out[rows] = W[:, rows].transpose(1, 0, 2).reshape(-1, n_draws * n_components) @ stacked_Z
    return out / n_draws


def std(W: Array, Z: Array, noise: NoiseDraws | None) -> Floats:
    """Return the standard deviation of each entry over the draws."""
    centre = mean(W, Z)
    variance = np.zeros_like(centre)
    # Draw by draw, which is faster than the variance over the draws of a tile, as these do not fit into the cache.
    for rows in tiles(len(centre), 8 * centre.shape[1]):
        for draw in range(len(W)):
            variance[rows] += (W[draw, rows] @ Z[draw] - centre[rows]) ** 2
        variance[rows] /= len(W)
        if noise is not None:
            variance[rows] += noise.mean_variance(rows)
    return np.sqrt(variance)


def quantiles(
    W: Array,
    Z: Array,
    noise: NoiseDraws | None,
    probabilities: Floats,
    offset: Floats | float,
    lower_bound: float,
    rng: np.random.Generator,
) -> Floats:
    """Return quantiles (probability, rows, columns) of all entries."""
    n_draws, n_rows, _ = W.shape
    out = np.empty((len(probabilities), n_rows, Z.shape[2]))
    # In units of components and columns, single precision has more digits than any number of draws can give.
    of_W = _power_of_two(_largest(W, (0, 1)))
    largest = _largest(Z, (0,)).T @ of_W
    if noise is not None:
        largest = np.maximum(largest, noise.largest_deviations())
    unit = _power_of_two(largest)
    scaled_Z = (Z * of_W[:, None] / unit).astype(np.float32)
    lowest = np.maximum((lower_bound - offset) / unit, np.finfo(np.float32).min).astype(np.float32)
    size = max(1, min(ROWS_PER_NOISE, TILE_BYTES // (4 * n_draws * Z.shape[2])))
    parts = [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]

    # Rows of a tile have their noise draws in common, which changes the law of no single entry.
    def fill(rows: slice, rng: np.random.Generator) -> None:
        draws = np.matmul((W[:, rows] / of_W).astype(np.float32), scaled_Z)
        if noise is not None:
            scale = (np.sqrt(noise.of_rows(rows)) / unit).astype(np.float32)
            draws += scale * noise.law.draw((n_draws, 1, Z.shape[2]), rng, np.float32)
            np.maximum(draws, lowest, out=draws)
        found = quantiles_of(draws.reshape(n_draws, -1), probabilities).reshape(len(probabilities), -1, Z.shape[2])
        out[:, rows] = found * unit + offset
        if noise is not None:
            np.maximum(out[:, rows], lower_bound, out=out[:, rows])  # single precision may fall below it

    with single_threaded_blas(), ThreadPoolExecutor(min(len(parts), os.cpu_count() or 1)) as pool:
        list(pool.map(fill, parts, rng.spawn(len(parts))))
    return out


def _largest(array: Array, axes: tuple[int, ...]) -> Floats:
    """Return the largest absolute value over some axes, without a copy of the array."""
    return np.maximum(array.max(axis=axes), -array.min(axis=axes)).astype(np.float64)


def _power_of_two(sizes: Floats) -> Floats:
    """Return powers of two of given sizes: divisors without rounding."""
    return np.exp2(np.ceil(np.log2(np.where(sizes > 0.0, sizes, 1.0))))


def quantiles_of(draws: Array, probabilities: Floats) -> Floats:
    """Return quantiles (probability, n) of draws (S, n)."""
    draws = np.sort(draws.T, axis=1)
    last = draws.shape[1] - 1
    # The i-th of S draws is at i / (S + 1): such a quantile covers a new draw as often as it says.
    position = np.clip((last + 2) * probabilities - 1.0, 0.0, last)
    below = position.astype(np.intp)
    low, high = (draws[:, index].T.astype(np.float64) for index in (below, np.minimum(below + 1, last)))
    return low + (position - below)[:, None] * (high - low)


# --- entries at paired positions


def products(W: Array, Z: Array, rows: Indices, columns: Indices) -> Floats:
    """Return draws (S, n) of the entries of W Z at paired rows and columns."""
    out = np.empty((len(W), len(rows)))
    products_of_pairs(W, Z, np.ascontiguousarray(rows, np.int64), np.ascontiguousarray(columns, np.int64), out)
    return out


class Entries(NamedTuple):
    """Draws of entries at paired positions: of W Z, and of the noise around them."""

    products: Floats  # (S, n)
    offset: Floats  # of their columns, (n,)
    lower_bound: float  # of the data
    deviations: Any = None  # of the noise, (S, 1 or n); without it, predictions are of W Z alone
    law: Law = Law()

    @property
    def means(self) -> Floats:
        """Draws (S, n) of the means of new data."""
        return self.products + self.offset

    def choose(self, draws: Any) -> Entries:
        """Return some of the draws."""
        deviations, law = self.deviations[draws], self.law.choose(draws)
        return self._replace(products=self.products[draws], deviations=deviations, law=law)

    def at(self, some: Indices) -> Entries:
        """Return some of the entries."""
        deviations, law = _at(self.deviations, some), self.law.at(some)
        return Entries(self.products[:, some], self.offset[some], self.lower_bound, deviations, law)

    def mean(self) -> Floats:
        """Return the mean (n,) over the draws."""
        return np.maximum(self.products.mean(axis=0) + self.offset, self.lower_bound)

    def variance(self) -> Floats:
        """Return the variance (n,) over the draws, and of the noise."""
        variance = self.products.var(axis=0)
        if self.deviations is not None:
            variance += (self.deviations**2 * self.law.variance).mean(axis=0)
        return variance

    def draw(self, rng: np.random.Generator, *limits: Floats) -> Floats:
        """Draw new data (S, n), which may be known to lie between a lower and an upper limit."""
        if self.deviations is None:
            return self.means
        if not limits:
            return np.maximum(self.means + self.deviations * self.law.draw(self.products.shape, rng), self.lower_bound)
        low, high = map(self._standardised, limits)
        drawn = self.means + self.deviations * self.law.draw_between(low, high, rng)
        return np.clip(np.maximum(drawn, self.lower_bound), *limits)

    def mean_between(self, lower: Floats, upper: Floats) -> Floats:
        """Return the mean (n,) of new data that are known to lie between limits."""
        start = np.clip(self.lower_bound, lower, upper)
        low, high = map(self._standardised, (start, upper))
        with np.errstate(all="ignore"):  # where nothing between the limits is above the bound of the data
            drawn = self.means + self.deviations * self.law.mean_between(low, high)
        drawn = np.clip(drawn, start, upper)
        cut = np.flatnonzero((lower < start) & (start < upper))
        entries = self.at(cut)
        share = np.exp(
            entries.log_probability(start[cut], upper[cut]) - entries.log_probability(lower[cut], upper[cut])
        )
        drawn[:, cut] = start[cut] + share * (drawn[:, cut] - start[cut])
        return np.where(start < upper, drawn.mean(axis=0), upper)

    def log_probability(self, lower: Floats | float, upper: Floats | float) -> Floats:
        """Return the log probability (S, n) that new data lie between limits."""
        return self.law.log_probability(self._standardised(lower), self._standardised(upper))

    def log_density(self, values: Floats, lower: Floats, upper: Floats) -> Floats:
        """Return log densities (S, n) of values, or log probabilities of intervals where limits are not NaN."""
        terms = self.law.log_density(self._standardised(values) ** 2) - np.log(self.deviations)
        limited = np.flatnonzero(~np.isnan(lower))
        terms[:, limited] = self.at(limited).log_probability(lower[limited], upper[limited])
        return terms

    def log_predictive_density(self, values: Floats, lower: Floats, upper: Floats) -> Floats:
        """Return the log of the mean likelihood (n,) over the draws, smoothed."""
        # Where the noise is small compared with the spread of w z over the draws, the mean of S narrow peaks is no
        # estimate of the density between them: each variance is enlarged by the square of Silverman's bandwidth of w z.
        enlarged = np.sqrt(self.deviations**2 + bandwidths(self.products) ** 2)
        terms = self._replace(deviations=enlarged).log_density(values, lower, upper)
        return logsumexp(terms, axis=0) - np.log(len(terms))

    def _standardised(self, values: Floats | float) -> Floats:
        """Return values in units of the noise around the means."""
        return (values - self.means) / self.deviations


def bandwidths(draws: Floats) -> Floats:
    """Return Silverman's bandwidth (n,) of a kernel density estimate from draws (S, n)."""
    low, high = np.quantile(draws, [0.25, 0.75], axis=0)
    deviation = draws.std(axis=0)
    spread = np.minimum(deviation, (high - low) / 1.34)
    return np.asarray(0.9 * len(draws) ** -0.2 * np.where(spread > 0.0, spread, deviation))
