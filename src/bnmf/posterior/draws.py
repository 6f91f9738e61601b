"""The draws of a fit: a plain container, which files and ArviZ are made from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from bnmf.priors.base import Prior
from bnmf.utils.typing import Array, Floats, Words


@dataclass(eq=False, repr=False)
class Draws:
    """Draws of the factors and of the noise variance, and what is needed to use them.

    Parameters
    ----------
    W : ndarray of shape (chain, draw, rows, K)
        Draws of the left factor.
    Z : ndarray of shape (chain, draw, K, columns)
        Draws of the right factor.
    noise_variance : ndarray of shape (chain, draw)
        Draws of σ².
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
    def flat(self) -> tuple[Array, Array, Floats]:
        """W, Z and σ² with the draws of all chains along the first axis."""
        W, Z = (draws.reshape(-1, *draws.shape[2:]) for draws in (self.W, self.Z))
        return W, Z, np.asarray(self.noise_variance).reshape(-1)
