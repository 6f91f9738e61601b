"""The terms of a prior: norms of each row, which are the models of the paper, and normal and Laplace priors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import gammaln

from bnmf.priors.base import Gamma, Term


@dataclass(frozen=True, eq=False, repr=False)
class L1(Term):
    """R = λ Σ w: an exponential prior, the GEE model.

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
    degree: ClassVar[int] = 1

    def penalty(self) -> dict[str, Any]:
        return {"linear": self.rate}


@dataclass(frozen=True, eq=False, repr=False)
class L2Squared(Term):
    """R = ½ λ Σ w²: a half-normal prior, the GL2² model.

    Parameters
    ----------
    rate, by : optional
        As for :class:`L1`.
    """

    rate: Any = None
    by: str = "factor"
    degree: ClassVar[int] = 2

    def penalty(self) -> dict[str, Any]:
        return {"quadratic": self.rate}

    def unit_mean(self, n_components: int) -> float:
        """Return the mean of a half-normal with precision 1."""
        return float(np.sqrt(2.0 / np.pi))


@dataclass(frozen=True, eq=False, repr=False)
class L1Squared(Term):
    """R = ½ λ (Σ w)²: the square of the sum of each row, the GL1² model.

    Parameters
    ----------
    rate : float, Gamma or None, default=None
        λ, one number for the whole factor. With None, or a :class:`~bnmf.priors.Gamma` prior of it, λ is learned.
    """

    rate: Any = None
    allows_arrays: ClassVar[bool] = False
    degree: ClassVar[int] = 2

    def penalty(self) -> dict[str, Any]:
        return {"quadratic": self.rate, "pairwise": self.rate}

    def unit_mean(self, n_components: int) -> float:
        """Return the mean of an entry whose row sum follows a chi distribution with K degrees of freedom."""
        k = n_components
        return float(np.sqrt(2.0) * np.exp(gammaln(0.5 * (k + 1)) - gammaln(0.5 * k)) / k)


@dataclass(frozen=True, eq=False, repr=False)
class LInf(Term):
    """R = λ max w: the GL∞ model, and with L2Squared the GL2²,∞ model.

    Parameters
    ----------
    rate : float, Gamma or None, default=None
        λ, one number for the whole factor. With None, or a :class:`~bnmf.priors.Gamma` prior of it, λ is learned.
    rule : {"exact", "paper"}, default="exact"
        "exact" draws an entry from its conditional density. "paper" is the rule that the paper prints: it adds λ if
        the *old* value of the entry is the largest of its row. It is not the conditional of any density, and with
        LInf alone the chain diverges. It exists only to reproduce the paper.
    """

    rate: Any = None
    rule: str = "exact"
    allows_arrays: ClassVar[bool] = False
    degree: ClassVar[int] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rule not in ("exact", "paper"):
            raise ValueError(f"rule of LInf must be 'exact' or 'paper', got {self.rule!r}")

    def penalty(self) -> dict[str, Any]:
        return {"max_rate": self.rate, "paper_rule": self.rule == "paper"}

    def unit_mean(self, n_components: int) -> float:
        """Return the mean of an entry whose row maximum follows Gamma(K, 1)."""
        return 0.5 * (n_components + 1)


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

    def penalty(self) -> dict[str, Any]:
        return {"linear": -self.precision * self.mean, "quadratic": self.precision}


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

    def penalty(self) -> dict[str, Any]:
        return {"linear": -self.precision * self.mean, "quadratic": self.precision}


@dataclass(frozen=True, eq=False, repr=False)
class Laplace(Term):
    """R = λ times the sum of magnitudes: a Laplace prior, whose entries have either sign.

    Parameters
    ----------
    rate, by : optional
        As for :class:`L1`.
    """

    rate: Any = None
    by: str = "factor"
    allows_negative: ClassVar[bool] = True
    degree: ClassVar[int] = 1

    def penalty(self) -> dict[str, Any]:
        return {"absolute": self.rate}
