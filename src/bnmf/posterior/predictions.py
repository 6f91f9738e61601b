"""Predictions of entries of W Z, without ever holding all draws of all entries.

Everything works on tiles of rows, or of entries, whose draws fit into `TILE_BYTES`.

The predictive law of new data at an entry is y = max(lower bound, w z + ε) with noise ε of the law of the fit: data
that cannot be negative are cut at zero. Intervals, predictive draws and multiple imputations all use it
(:func:`add_noise`).
Log densities are those of w z + ε, the likelihood of the model.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

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

    def choose(self, draws: Any) -> NoiseDraws:
        """Return some of the draws."""
        row = self.row if len(self.row) == 1 else self.row[draws]
        return NoiseDraws(self.column[draws], row, self.law.choose(draws), self.factor)


def _at(sizes: Floats, chosen: Any) -> Floats:
    """Return some of sizes (S, n), or what is the same for all (S, 1)."""
    return sizes if sizes.shape[1] == 1 else sizes[:, chosen]


NoisyFlat = tuple[Array, Array, NoiseDraws]
Flat = NoisyFlat | tuple[Array, Array, None]
"""Draws of W (S, rows, K) and Z (S, K, columns), and of the noise, without which predictions are of W Z alone."""


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


def std(draws: Flat) -> Floats:
    """Return the standard deviation of each entry over the draws."""
    W, Z, noise = draws
    centre = mean(W, Z)
    variance = np.zeros_like(centre)
    for rows in tiles(len(centre), 8 * centre.shape[1]):
        for draw in range(len(W)):
            variance[rows] += (W[draw, rows] @ Z[draw] - centre[rows]) ** 2
        variance[rows] /= len(W)
        if noise is not None:
            variance[rows] += noise.mean_variance(rows)
    return np.sqrt(variance)


def quantiles(
    draws: Flat, probabilities: Floats, offset: Floats | float, lower_bound: float, rng: np.random.Generator
) -> Floats:
    """Return quantiles (probability, rows, columns) of all entries."""
    W, Z, noise = draws
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


def add_noise(
    draws: Floats, noise: NoiseDraws, rows: Indices, columns: Indices, lower_bound: float, rng: np.random.Generator
) -> Floats:
    """Return draws (S, n) of new data at paired positions, given draws of their means and of the noise."""
    drawn = noise.law.at(columns).draw(draws.shape, rng)
    return np.maximum(draws + np.sqrt(noise.at(rows, columns)) * drawn, lower_bound)


# --- entries at paired positions


def entries(W: Array, Z: Array, rows: Indices, columns: Indices) -> Floats:
    """Return draws (S, n) of the entries of W Z at paired rows and columns."""
    out = np.empty((len(W), len(rows)))
    products_of_pairs(W, Z, np.ascontiguousarray(rows, np.int64), np.ascontiguousarray(columns, np.int64), out)
    return out


def entry_mean(W: Array, Z: Array, rows: Indices, columns: Indices) -> Floats:
    """Return the mean (n,) of the entries of W Z at paired rows and columns."""
    out = np.empty(len(rows))
    for part in tiles(len(rows), 8 * len(W)):
        out[part] = entries(W, Z, rows[part], columns[part]).mean(axis=0)
    return out


def entry_std(draws: Flat, rows: Indices, columns: Indices) -> Floats:
    """Return the standard deviation (n,) of entries at paired positions."""
    W, Z, noise = draws
    variance = np.empty(len(rows))
    for part in tiles(len(rows), 16 * len(W)):
        variance[part] = entries(W, Z, rows[part], columns[part]).var(axis=0)
        if noise is not None:
            of_noise = noise.at(rows[part], columns[part]) * noise.law.at(columns[part]).variance
            variance[part] += of_noise.T.mean(axis=1)
    return np.sqrt(variance)


def _log_densities(
    means: Floats, variance: Floats, law: Law, values: Floats, lower: Floats | None, upper: Floats | None
) -> Floats:
    """Return log densities of values, or log probabilities of intervals where there are limits, given draws (S, n)."""
    terms = law.log_density((values - means) ** 2 / variance) - 0.5 * np.log(variance)
    if lower is None or upper is None:
        return terms
    at = np.flatnonzero(~np.isnan(lower))
    deviation = np.sqrt(np.broadcast_to(variance, terms.shape)[:, at])
    low, high = ((side[at] - means[:, at]) / deviation for side in (lower, upper))
    terms[:, at] = law.at(at).log_probability(low, high)
    return terms


def log_likelihood(
    draws: NoisyFlat, rows: Indices, columns: Indices, values: Floats, lower: Any = None, upper: Any = None
) -> Floats:
    """Return the log density of each entry given w z and the noise, (S, n), or the log probability of its interval."""
    W, Z, noise = draws
    variance, law = noise.at(rows, columns), noise.law.at(columns)
    return _log_densities(entries(W, Z, rows, columns), variance, law, values, lower, upper)


def _between(
    draws: NoisyFlat, rows: Indices, columns: Indices, lower: Floats, upper: Floats
) -> Iterator[tuple[slice, Floats, Floats, Law, Floats, Floats]]:
    """Yield parts of entries with means and deviations of their draws, the law, and limits in units of the noise."""
    W, Z, noise = draws
    for part in tiles(len(rows), 64 * len(W)):
        means = entries(W, Z, rows[part], columns[part])
        deviation = np.sqrt(noise.at(rows[part], columns[part]))
        low, high = ((side[part] - means) / deviation for side in (lower, upper))
        yield part, means, deviation, noise.law.at(columns[part]), low, high


def mean_between(
    draws: NoisyFlat, rows: Indices, columns: Indices, lower: Floats, upper: Floats, lowest: Floats
) -> Floats:
    """Return the mean (n,) of values that are known to lie between limits, of which those below `lowest` are cut."""
    out, is_cut = np.array(upper), (lower < lowest) & (lowest < upper)
    above = np.flatnonzero(lowest < upper)
    start = np.maximum(lower, lowest)
    for part, means, deviation, law, low, high in _between(
        draws, rows[above], columns[above], start[above], upper[above]
    ):
        at = above[part]
        drawn = np.clip(means + deviation * law.mean_between(low, high), start[at], upper[at])
        cut = np.flatnonzero(is_cut[at])
        if cut.size:
            scale, law = np.broadcast_to(deviation, means.shape)[:, cut], law.at(cut)
            whole = law.log_probability((lower[at[cut]] - means[:, cut]) / scale, high[:, cut])
            share = np.exp(law.log_probability(low[:, cut], high[:, cut]) - whole)
            drawn[:, cut] = start[at[cut]] + share * (drawn[:, cut] - start[at[cut]])
        out[at] = drawn.mean(axis=0)
    return out


def quantiles_between(
    draws: NoisyFlat, rows: Indices, columns: Indices, q: Floats, lower: Floats, upper: Floats, rng: np.random.Generator
) -> Floats:
    """Return quantiles (probability, n) of values that are known to lie between limits."""
    out = np.empty((len(q), len(rows)))
    for part, means, deviation, law, low, high in _between(draws, rows, columns, lower, upper):
        drawn = np.clip(means + deviation * law.draw_between(low, high, rng), lower[part], upper[part])
        out[:, part] = quantiles_of(drawn, q)
    return out


def log_predictive_density(
    draws: NoisyFlat, rows: Indices, columns: Indices, values: Floats, lower: Any = None, upper: Any = None
) -> Floats:
    """Return the log predictive density of each entry, (n,): the mean likelihood over the draws, smoothed."""
    W, Z, noise = draws
    out = np.empty(len(rows))
    # Where the noise is small compared with the spread of w z over the draws, the mean of S narrow peaks is no estimate
    # of the density between them: the variance of each is enlarged by the square of Silverman's bandwidth of w z.
    for part in tiles(len(rows), 48 * len(W)):
        means = entries(W, Z, rows[part], columns[part])
        variance = noise.at(rows[part], columns[part]) + bandwidths(means) ** 2
        limits = (None if side is None else side[part] for side in (lower, upper))
        terms = _log_densities(means, variance, noise.law.at(columns[part]), values[part], *limits)
        out[part] = logsumexp(terms, axis=0) - np.log(len(W))
    return out


def bandwidths(draws: Floats) -> Floats:
    """Return Silverman's bandwidth (n,) of a kernel density estimate from draws (S, n)."""
    low, high = np.quantile(draws, [0.25, 0.75], axis=0)
    deviation = draws.std(axis=0)
    spread = np.minimum(deviation, (high - low) / 1.34)
    return np.asarray(0.9 * len(draws) ** -0.2 * np.where(spread > 0.0, spread, deviation))
