"""Predictions of entries of W Z, without ever holding all draws of all entries.

Everything works on tiles of rows, or of entries, whose draws fit into `TILE_BYTES`.

The predictive law of new data at an entry is y = max(lower bound, w z + ε) with normal noise ε: data that cannot be
negative are cut at zero. Intervals, predictive draws and multiple imputations all use it (:func:`add_noise`).
Log densities are those of w z + ε, the likelihood of the model.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.special import logsumexp

from bnmf.posterior.draws import NoiseDraws
from bnmf.utils.typing import Array, Floats, Indices

TILE_BYTES = 64 * 2**20


def tiles(length: int, bytes_each: int) -> Iterator[slice]:
    """Yield slices of range(length), each small enough that its items fit into TILE_BYTES."""
    size = max(1, TILE_BYTES // max(1, bytes_each))
    for start in range(0, length, size):
        yield slice(start, min(start + size, length))


def mean(W: Array, Z: Array) -> Floats:
    """Return the mean of the products W Z over draws W (S, rows, K) and Z (S, K, columns)."""
    n_draws, n_rows, n_components = W.shape
    stacked_Z = Z.reshape(n_draws * n_components, -1)
    out = np.empty((n_rows, Z.shape[2]))
    for rows in tiles(n_rows, 8 * n_draws * n_components):
        # Side by side, the draws are one long matrix product: Σ_s W_s Z_s = [W_1 W_2 ...] [Z_1; Z_2; ...].
        out[rows] = W[:, rows].transpose(1, 0, 2).reshape(-1, n_draws * n_components) @ stacked_Z
    return out / n_draws


def std(W: Array, Z: Array, noise: NoiseDraws | None = None) -> Floats:
    """Return the standard deviation of W Z over the draws, including the noise if its draws are given."""
    centre = mean(W, Z)
    variance = np.zeros_like(centre)
    for rows in tiles(len(centre), 8 * centre.shape[1] * (1 if noise is None else len(W))):
        for draw in range(len(W)):
            variance[rows] += (W[draw, rows] @ Z[draw] - centre[rows]) ** 2
        variance[rows] /= len(W)
        if noise is not None:
            variance[rows] += noise.of_rows(rows).mean(axis=0)
    return np.sqrt(variance)


def quantiles(
    W: Array,
    Z: Array,
    probabilities: Floats,
    noise: NoiseDraws | None,
    offset: Floats | float,
    lower_bound: float,
    rng: np.random.Generator,
) -> Floats:
    """Return quantiles (probability, rows, columns) of W Z, or of new data if draws of the noise are given."""
    out = np.empty((len(probabilities), W.shape[1], Z.shape[2]))
    for rows in tiles(W.shape[1], 8 * len(W) * Z.shape[2]):
        draws = np.matmul(W[:, rows], Z) + offset
        if noise is not None:
            draws = add_noise(draws, noise.of_rows(rows), lower_bound, rng)
        out[:, rows] = quantiles_of(draws, probabilities)
    return out


def quantiles_of(draws: Floats, probabilities: Floats) -> Floats:
    """Return quantiles over the first axis, of the kind that covers a new draw as often as it says."""
    return np.quantile(draws, probabilities, axis=0, method="weibull")


def add_noise(draws: Floats, variance: Floats, lower_bound: float, rng: np.random.Generator) -> Floats:
    """Return draws of new data, given draws of their means and variances, of shapes that broadcast."""
    return np.maximum(draws + np.sqrt(variance) * rng.standard_normal(draws.shape), lower_bound)


# --- entries at paired positions


def entries(W: Array, Z: Array, rows: Indices, columns: Indices) -> Floats:
    """Return draws (S, n) of the entries of W Z at paired rows and columns."""
    out = np.empty((len(W), len(rows)))
    for part in tiles(len(rows), 16 * W.shape[2]):
        for draw in range(len(W)):
            out[draw, part] = np.einsum("ik,ki->i", W[draw][rows[part]], Z[draw][:, columns[part]])
    return out


def entry_mean(W: Array, Z: Array, rows: Indices, columns: Indices) -> Floats:
    """Return the mean (n,) of the entries of W Z at paired rows and columns."""
    out = np.empty(len(rows))
    for part in tiles(len(rows), 8 * len(W)):
        out[part] = entries(W, Z, rows[part], columns[part]).mean(axis=0)
    return out


def entry_std(W: Array, Z: Array, rows: Indices, columns: Indices, noise: NoiseDraws | None = None) -> Floats:
    """Return the standard deviation (n,) of the entries of W Z, including the noise if its draws are given."""
    variance = np.empty(len(rows))
    for part in tiles(len(rows), 16 * len(W)):
        variance[part] = entries(W, Z, rows[part], columns[part]).var(axis=0)
        if noise is not None:
            variance[part] += noise.at(rows[part], columns[part]).mean(axis=0)
    return np.sqrt(variance)


def log_likelihood(W: Array, Z: Array, noise: NoiseDraws, rows: Indices, columns: Indices, values: Floats) -> Floats:
    """Return log N(value | w z, variance), (S, n)."""
    variance = noise.at(rows, columns)
    difference = values - entries(W, Z, rows, columns)
    return -0.5 * (np.log(2.0 * np.pi * variance) + difference**2 / variance)


def log_predictive_density(
    W: Array, Z: Array, noise: NoiseDraws, rows: Indices, columns: Indices, values: Floats
) -> Floats:
    """Return the log of the mean likelihood over the draws, for each entry, (n,)."""
    out = np.empty(len(rows))
    for part in tiles(len(rows), 32 * len(W)):
        terms = log_likelihood(W, Z, noise, rows[part], columns[part], values[part])
        out[part] = logsumexp(terms, axis=0) - np.log(len(W))
    return out
