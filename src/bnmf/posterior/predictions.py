"""What the draws say of entries of W Z, without ever holding all draws of all entries at once.

Everything goes over tiles of rows (or over runs of entries) whose draws fit into TILE_BYTES.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

Array = NDArray[Any]
Floats = NDArray[np.float64]

TILE_BYTES = 64 * 2**20


def flat(draws: Array) -> Array:
    """Return (chain, draw, ...) as (draws of all chains, ...)."""
    return draws.reshape(-1, *draws.shape[2:])


def tiles(length: int, bytes_each: int) -> Iterator[slice]:
    """Yield slices of range(length), each of so many things that they fit into TILE_BYTES."""
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


def std(W: Array, Z: Array, noise_variance: Floats | None = None) -> Floats:
    """Return the standard deviation of W Z over the draws, with the noise if its draws are given."""
    centre = mean(W, Z)
    squares = np.zeros_like(centre)
    for rows in tiles(len(centre), 8 * centre.shape[1]):
        for draw in range(len(W)):
            squares[rows] += (W[draw, rows] @ Z[draw] - centre[rows]) ** 2
    variance = squares / len(W)
    if noise_variance is not None:
        variance += noise_variance.mean()
    return np.sqrt(variance)


def quantiles(
    W: Array, Z: Array, probabilities: Floats, noise_variance: Floats | None, rng: np.random.Generator
) -> Floats:
    """Return quantiles (probability, rows, columns) of W Z, or with noise of new data at each entry."""
    out = np.empty((len(probabilities), W.shape[1], Z.shape[2]))
    for rows in tiles(W.shape[1], 8 * len(W) * Z.shape[2]):
        out[:, rows] = _quantiles(np.matmul(W[:, rows], Z), probabilities, noise_variance, rng)
    return out


def entry_quantiles(
    draws: Floats, probabilities: Floats, noise_variance: Floats | None, rng: np.random.Generator
) -> Floats:
    """Return quantiles (probability, n) of draws (S, n) of some entries."""
    return _quantiles(draws.copy(), probabilities, noise_variance, rng)


def _quantiles(draws: Floats, probabilities: Floats, noise_variance: Floats | None, rng: np.random.Generator) -> Floats:
    if noise_variance is not None:
        sd = np.sqrt(noise_variance).reshape(-1, *[1] * (draws.ndim - 1))
        draws = draws + sd * rng.standard_normal(draws.shape)
    # This kind of quantile covers a new draw as often as it says, however few draws there are.
    return np.quantile(draws, probabilities, axis=0, method="weibull")


def entries(W: Array, Z: Array, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> Floats:
    """Return draws (S, n) of the entries of W Z at paired rows and columns."""
    out = np.empty((len(W), len(rows)))
    for part in tiles(len(rows), 16 * W.shape[2]):
        for draw in range(len(W)):
            out[draw, part] = np.einsum("ik,ki->i", W[draw][rows[part]], Z[draw][:, columns[part]])
    return out


def log_likelihood(
    W: Array, Z: Array, noise_variance: Floats, rows: NDArray[np.intp], columns: NDArray[np.intp], values: Floats
) -> Floats:
    """Return log N(value | w z, σ²), (S, n)."""
    variance = noise_variance[:, None]
    difference = values - entries(W, Z, rows, columns)
    return -0.5 * (np.log(2.0 * np.pi * variance) + difference**2 / variance)


def log_predictive_density(
    W: Array, Z: Array, noise_variance: Floats, rows: NDArray[np.intp], columns: NDArray[np.intp], values: Floats
) -> Floats:
    """Return the log of the mean likelihood over the draws, for each entry, (n,)."""
    out = np.empty(len(rows))
    for part in tiles(len(rows), 24 * len(W)):
        terms = log_likelihood(W, Z, noise_variance, rows[part], columns[part], values[part])
        out[part] = logsumexp(terms, axis=0) - np.log(len(W))
    return out
