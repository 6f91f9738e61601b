"""The draws of a fit: a plain container, which files and ArviZ are made from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from bnmf.model.noise import Law
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
        return W, Z, NoiseDraws(column, row, self.law, self.noise_factor)

    @property
    def law(self) -> Law:
        """Law of the noise, in units of the root of its variance, with the draws of all chains along the first axis."""
        return Law.of(vars(self))


class NoiseDraws:
    """Draws of the noise: its variance at every entry, a product of one of its column and one of its row, and its law.

    Parameters
    ----------
    column : ndarray of shape (S, 1 or columns)
        Variances; squared scales of Student's t.
    row : ndarray of shape (1 or S, 1 or rows)
        Relative variances.
    law : Law, optional
        Law of the noise in units of the root of its variance; normal by default.
    factor : ndarray of shape (1 or rows, columns), optional
        Known relative standard deviations.
    """

    def __init__(self, column: Floats, row: Floats, law: Law | None = None, factor: Floats | None = None) -> None:
        self.column = column
        self.row = row
        self.law = Law() if law is None else law
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
        row = self.row if len(self.row) == 1 else self.row[draws]
        return NoiseDraws(self.column[draws], row, self.law.choose(draws), self.factor)
