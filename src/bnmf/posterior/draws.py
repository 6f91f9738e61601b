"""The draws of a fit: a plain container, which files and ArviZ are made from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtr, stdtrit

from bnmf.data.limits import log_normal_mass
from bnmf.kernels.compiled import fill_within
from bnmf.model.noise import log_student_t
from bnmf.posterior.calibration import Calibration
from bnmf.priors.base import Prior
from bnmf.utils.typing import Array, Floats, Indices, Words


@dataclass(eq=False, repr=False)
class Draws:
    """Draws of the factors and of the noise variance, and what is needed to use them.

    Parameters
    ----------
    W : ndarray of shape (chain, draw, rows, K)
        Draws of the left factor.
    Z : ndarray of shape (chain, draw, K, columns)
        Draws of the right factor.
    noise_variance : ndarray of shape (chain, draw) or (chain, draw, columns)
        Draws of the variance of the noise, common or of each column.
    train_mse : ndarray of shape (chain, sweep)
        Mean squared error on the observed entries after each sweep, burn-in included.
    n_observed : int
        Number of observed entries.
    row_names, column_names : pandas.Index, optional
        Names of the rows and columns of the data.
    prior_W : Prior, optional
        Prior of W, needed for new rows.
    row_ids : ndarray of uint64 of shape (rows,), optional
        Hashes of the fitted rows, by which they are recognised among new rows.
    lower_bound : float, default=0.0
        The smallest value that an entry of the data can take: 0, or -inf if negative data were allowed.
    log_density : ndarray of shape (chain, draw), optional
        Log density of the observed entries under each draw.
    row_noise : ndarray of shape (chain, draw, rows), optional
        Draws of the relative variance of each row: entry (i, j) has variance noise_variance_j row_noise_i.
    row_strength : ndarray of shape (chain, draw), optional
        How alike the variances of rows are: the inverse of a new row's is drawn from Gamma(strength, strength).
    rate_W, rate_Z : ndarray of shape (chain, draw, 1 or K), optional
        Draws of the learned rates of the priors, one number or one for each component.
    offset : ndarray of shape (columns,), optional
        What is added to W Z: what was subtracted from each column before the fit.
    scale : ndarray of shape (1 or columns,), optional
        Scale of each column in the fit. Z and the noise are in the user's units.
    thinning : int, default=1
        Sweeps from one draw to the next. The last draw is that of the last sweep.
    notes : tuple of str, default=()
        What is wrong with the fit as such, however well it has converged; see :mod:`bnmf.posterior.notes`.
    df : ndarray of shape (chain, draw), optional
        Draws of the degrees of freedom of Student's t, whose squared scales are then the variances above.
    noise_factor : ndarray of shape (1 or rows, columns), optional
        Known relative standard deviation of the noise of each entry.
    n_fixed : tuple of (int, int), default=(0, 0)
        How many of the first components have a fixed row of Z, and how many of the last a fixed column of W.
    signed : tuple of (bool, bool), default=(False, False)
        Whether entries of W and of Z may be negative.
    calibration : Calibration, optional
        How well entries that were hidden for this purpose are predicted.
    """

    W: Array
    Z: Array
    noise_variance: Floats
    train_mse: Floats
    n_observed: int
    row_names: pd.Index | None = None
    column_names: pd.Index | None = None
    prior_W: Prior | None = None
    row_ids: Words | None = None
    lower_bound: float = 0.0
    log_density: Floats | None = None
    row_noise: Floats | None = None
    row_strength: Floats | None = None
    rate_W: Floats | None = None
    rate_Z: Floats | None = None
    offset: Floats | None = None
    scale: Floats | None = None
    thinning: int = 1
    notes: tuple[str, ...] = ()
    df: Floats | None = None
    noise_factor: Floats | None = None
    n_fixed: tuple[int, int] = (0, 0)
    signed: tuple[bool, bool] = (False, False)
    calibration: Calibration | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the data."""
        return self.W.shape[2], self.Z.shape[3]

    @property
    def n_components(self) -> int:
        """K."""
        return self.W.shape[3]

    @property
    def n_chains(self) -> int:
        """Number of chains."""
        return self.W.shape[0]

    @property
    def n_draws(self) -> int:
        """Number of draws of each chain."""
        return self.W.shape[1]

    @property
    def flat(self) -> tuple[Array, Array, NoiseDraws]:
        """W, Z and the noise with the draws of all chains along the first axis."""
        W, Z = (draws.reshape(-1, *draws.shape[2:]) for draws in (self.W, self.Z))
        column = np.asarray(self.noise_variance).reshape(len(W), -1)
        row = np.ones((1, 1)) if self.row_noise is None else self.row_noise.reshape(len(W), -1)
        df = None if self.df is None else np.asarray(self.df).reshape(-1)
        return W, Z, NoiseDraws(column, row, df, self.noise_factor)


class NoiseDraws:
    """Draws of the noise: its variance at every entry, a product of one of its column and one of its row, and its law.

    Parameters
    ----------
    column : ndarray of shape (S, 1 or columns)
        Variances; squared scales of Student's t.
    row : ndarray of shape (1 or S, 1 or rows)
        Relative variances.
    df : ndarray of shape (S,), optional
        Degrees of freedom of Student's t; normal by default.
    factor : ndarray of shape (1 or rows, columns), optional
        Known relative standard deviations.
    """

    def __init__(self, column: Floats, row: Floats, df: Floats | None = None, factor: Floats | None = None) -> None:
        self.column = column
        self.row = row
        self.df = df
        self.factor = factor

    def of_rows(self, rows: slice) -> Floats:
        """Return draws of the variances of some rows, (S, 1 or rows, 1 or columns)."""
        row = self.row if self.row.shape[1] == 1 else self.row[:, rows]
        variance = self.column[:, None, :] * row[:, :, None]
        if self.factor is None:
            return variance
        return variance * (self.factor if len(self.factor) == 1 else self.factor[rows]) ** 2

    def largest_deviations(self) -> Floats:
        """Return a bound of the standard deviations in each column, (1 or columns,)."""
        factor = 1.0 if self.factor is None else self.factor.max(axis=0)
        return np.sqrt(self.column.max(axis=0)) * np.sqrt(self.row.max()) * factor

    def at(self, rows: Indices, columns: Indices) -> Floats:
        """Return draws of the variances at paired positions, (S, 1 or n)."""
        column = self.column if self.column.shape[1] == 1 else self.column[:, columns]
        variance = column * (self.row if self.row.shape[1] == 1 else self.row[:, rows])
        if self.factor is None:
            return variance
        return variance * self.factor[0 if len(self.factor) == 1 else rows, columns] ** 2

    def choose(self, draws: Any) -> NoiseDraws:
        """Return some of the draws."""
        df = None if self.df is None else self.df[draws]
        return NoiseDraws(self.column[draws], self.row if len(self.row) == 1 else self.row[draws], df, self.factor)

    # --- the law of the noise in units of the root of its variance

    def draw(self, shape: tuple[int, ...], rng: np.random.Generator, dtype: Any = np.float64) -> Floats:
        """Draw noise of scale 1, of a shape that starts with the number of draws."""
        if self.df is None:
            return rng.standard_normal(shape, dtype=dtype)
        return rng.standard_t(self.df.reshape(-1, *[1] * (len(shape) - 1)), size=shape).astype(dtype)

    def log_density(self, squares: Floats) -> Floats:
        """Return the log density of noise of scale 1, given its squares (S, n)."""
        if self.df is None:
            return -0.5 * (squares + np.log(2.0 * np.pi))
        return log_student_t(squares, self.df[:, None])

    def log_probability(self, low: Floats, high: Floats) -> Floats:
        """Return the log probability that noise of scale 1 lies between limits (S, n), one of which may be infinite."""
        if self.df is None:
            return log_normal_mass(low, high)
        swapped = low + high > 0.0  # as there
        low, high, df = np.where(swapped, -high, low), np.where(swapped, -low, high), self.df[:, None]
        with np.errstate(divide="ignore"):
            return np.log(stdtr(df, high) - stdtr(df, low))

    def draw_between(self, low: Floats, high: Floats, rng: np.random.Generator) -> Floats:
        """Draw noise of scale 1 between limits (S, n), one of which may be infinite."""
        swapped = low + high > 0.0
        low, high = np.where(swapped, -high, low), np.where(swapped, -low, high)
        if self.df is None:
            b, width = (np.ascontiguousarray(x).ravel() for x in (high, high - low))
            out, (key_high, key_low) = np.empty(high.size), rng.integers(2**63, size=2, dtype=np.uint64)
            fill_within(b, np.ones(high.size), width, key_high, key_low, out)
            drawn = high - out.reshape(high.shape)
        else:
            df = self.df[:, None]
            below, above = stdtr(df, low), stdtr(df, high)
            drawn = stdtrit(df, below + rng.uniform(size=high.shape) * (above - below))
        return np.where(swapped, -drawn, drawn)

    def mean_between(self, low: Floats, high: Floats) -> Floats:
        """Return the mean of noise of scale 1 that lies between limits (S, n), one of which may be infinite."""
        log_mass, sides = self.log_probability(low, high), []
        for limit in (low, high):
            finite = np.where(np.isinf(limit), 0.0, limit)
            density = np.exp(self.log_density(finite**2) - log_mass)
            if self.df is not None:
                df = np.maximum(self.df, 1.0 + 1e-9)[:, None]  # with less there is no mean
                density = density * (df + finite**2) / (df - 1.0)
            sides.append(np.where(np.isinf(limit), 0.0, density))
        return sides[0] - sides[1]

    @property
    def excess(self) -> Floats:
        """Variance of noise of scale 1, (S,) or (1,): that of Student's t is larger, and infinite up to df = 2."""
        if self.df is None:
            return np.ones(1)
        return np.where(self.df > 2.0, self.df / np.maximum(self.df - 2.0, 1e-300), np.inf)
