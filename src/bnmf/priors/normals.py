"""Normal priors truncated at zero, by the names that statisticians use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bnmf.priors.base import Coefficients, Prior, Term
from bnmf.priors.norms import L1, L2Squared
from bnmf.utils.typing import Shape


@dataclass(frozen=True, eq=False, repr=False)
class TruncatedNormal(Term):
    """A normal of given mean and precision, truncated to w >= 0.

    Parameters
    ----------
    mean, precision : float or array-like
        μ and τ of the normal, each as a number, a vector by component or a matrix by entry.
    """

    mean: Any
    precision: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", self._validated("mean", self.mean, positive=False))
        object.__setattr__(self, "precision", self._validated("precision", self.precision))
        if np.any(np.asarray(self.precision) <= 0):
            raise ValueError(f"precision of TruncatedNormal must be positive, got {self.precision!r}")

    def coefficients_of_term(self, shape: Shape) -> Coefficients:
        """Return the coefficients of this term."""
        precision = self._by_entry(self.precision, shape)
        return Coefficients(-precision * self._by_entry(self.mean, shape), precision)


def half_normal(precision: Any) -> Prior:
    """Return the half-normal prior, which is L2Squared."""
    return L2Squared(precision)


def rectified_normal(mean: Any, precision: Any, rate: Any) -> Prior:
    """Return the rectified-normal prior: a truncated normal times an exponential."""
    return TruncatedNormal(mean, precision) + L1(rate)
