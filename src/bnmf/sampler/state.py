"""The state of a chain."""

from __future__ import annotations

from typing import NamedTuple

from bnmf.utils.typing import Floats


class State(NamedTuple):
    """One state of a chain.

    Attributes
    ----------
    W, Zt : ndarray of shape (rows, K) and (columns, K)
        The factors; Zt is Z transposed.
    sigma2 : float
        The noise variance.
    squared_error : float
        Σ (a - w z)² over the observed entries.
    sweep : int
        Number of sweeps so far.
    """

    W: Floats
    Zt: Floats
    sigma2: float
    squared_error: float
    sweep: int

    @property
    def Z(self) -> Floats:
        """Z, of shape (K, columns)."""
        return self.Zt.T
