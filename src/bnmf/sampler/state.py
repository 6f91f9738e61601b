"""The state of a chain."""

from __future__ import annotations

from typing import NamedTuple

from bnmf.model.model import Rates
from bnmf.model.noise import NoiseState
from bnmf.utils.typing import Floats


class State(NamedTuple):
    """One state of a chain, in units of the model.

    Attributes
    ----------
    W, Zt : ndarray of shape (rows, K) and (columns, K)
        The factors; Zt is Z transposed.
    noise : NoiseState
        Variances of the noise.
    rates : tuple of ndarray
        Learned rates of the priors.
    squared_error : float
        Σ (a - w z)² over the observed entries.
    log_likelihood : float
        Log density of the observed entries.
    sweep : int
        Number of sweeps so far.
    """

    W: Floats
    Zt: Floats
    noise: NoiseState
    rates: Rates
    squared_error: float
    log_likelihood: float
    sweep: int

    @property
    def Z(self) -> Floats:
        """Z, of shape (K, columns)."""
        return self.Zt.T

    @property
    def sigma2(self) -> float:
        """The variance of common noise."""
        return float(self.noise.row[0] * self.noise.column[0])
