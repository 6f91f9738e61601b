"""Normal priors, truncated at zero or not, by the names that statisticians use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from bnmf.priors.base import Coefficients, Prior, Term
from bnmf.priors.hyperpriors import Gamma
from bnmf.priors.norms import L1, L2Squared
from bnmf.utils.typing import Floats, Shape


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


@dataclass(frozen=True, eq=False, repr=False)
class Normal(Term):
    """A normal of given mean and precision: entries are real numbers.

    Parameters
    ----------
    mean : float or array-like, default=0.0
        μ, as a number, a vector by component or a matrix by entry; one number if τ is learned.
    precision : float, array-like, Gamma or None, default=None
        τ, likewise. With None, which is ``Gamma(1, 0.01)``, or another :class:`~bnmf.priors.Gamma` prior of it, τ is
        learned.
    by : {"factor", "component"}, default="factor"
        Whether a learned τ is one number, or one for each component.
    """

    mean: Any = 0.0
    precision: Any = None
    by: str = "factor"
    allows_negative: ClassVar[bool] = True
    rate_name: ClassVar[str] = "precision"
    # Room for precisions of some thousands, at which superfluous components vanish.
    hyperprior: ClassVar[Gamma] = Gamma(1.0, 0.01)
    degree: ClassVar[int] = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "mean", self._validated("mean", self.mean, positive=False))
        if not self.is_learned and np.any(np.asarray(self.precision) <= 0):
            raise ValueError(f"precision of Normal must be positive, got {self.precision!r}")
        if self.is_learned and np.ndim(self.mean):
            raise ValueError(f"mean of Normal must be one number if its precision is learned, got {self.mean!r}")

    def coefficients_of_term(self, shape: Shape) -> Coefficients:
        """Return the coefficients of this term."""
        precision = self._by_entry(self.precision, shape)
        linear = -precision * self._by_entry(self.mean, shape)
        return Coefficients(linear, precision, absolute=np.zeros((1, shape[1])))

    def unit_penalty(self, W: Floats) -> Floats:
        """Return ½ Σ (w - μ)², by component or in all."""
        squares = (W - self.mean) ** 2
        return 0.5 * (squares.sum(axis=0) if self.is_by_component else squares.sum())

    def unit_mean(self, n_components: int) -> float:
        """Return the root mean square of an entry with mean 0 and precision 1, as a size."""
        return 1.0


@dataclass(frozen=True, eq=False, repr=False)
class Laplace(Term):
    """R = λ times the sum of magnitudes: a Laplace prior, whose entries have either sign.

    Parameters
    ----------
    rate : float, array-like, Gamma or None, default=None
        λ, as a number, a vector by component or a matrix by entry. With None, or a :class:`~bnmf.priors.Gamma` prior of
        it, λ is learned.
    by : {"factor", "component"}, default="factor"
        Whether a learned λ is one number, or one for each component.
    """

    rate: Any = None
    by: str = "factor"
    allows_negative: ClassVar[bool] = True
    degree: ClassVar[int] = 1

    def coefficients_of_term(self, shape: Shape) -> Coefficients:
        """Return the coefficients of this term."""
        zero = np.zeros((1, shape[1]))
        return Coefficients(zero, zero, absolute=self._by_entry(self.rate, shape))

    def unit_penalty(self, W: Floats) -> Floats:
        """Return the sum of magnitudes, by component or in all."""
        return np.abs(W).sum(axis=0) if self.is_by_component else np.abs(W).sum()

    def unit_mean(self, n_components: int) -> float:
        """Return the mean magnitude of an entry with rate 1."""
        return 1.0


def half_normal(precision: Any) -> Prior:
    """Return the half-normal prior, which is L2Squared."""
    return L2Squared(precision)


def rectified_normal(mean: Any, precision: Any, rate: Any) -> Prior:
    """Return the rectified-normal prior: a truncated normal times an exponential."""
    return TruncatedNormal(mean, precision) + L1(rate)
