"""Priors that penalise a norm of each row: the models of the paper are these and their sums."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import gammaln

from bnmf.priors.base import Coefficients, Term
from bnmf.utils.typing import Floats, Shape


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

    def coefficients_of_term(self, shape: Shape) -> Coefficients:
        """Return the coefficients of this term."""
        return self._coefficients(shape, linear=self.rate)

    def unit_penalty(self, W: Floats) -> Floats:
        """Return Σ w, by component or in all."""
        return np.add.reduce(W, axis=0) if self.is_by_component else W.sum()

    def unit_mean(self, n_components: int) -> float:
        """Return the mean of an exponential with rate 1."""
        return 1.0


@dataclass(frozen=True, eq=False, repr=False)
class L2Squared(Term):
    """R = ½ λ Σ w²: a half-normal prior, the GL2² model.

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
    degree: ClassVar[int] = 2

    def coefficients_of_term(self, shape: Shape) -> Coefficients:
        """Return the coefficients of this term."""
        return self._coefficients(shape, quadratic=self.rate)

    def unit_penalty(self, W: Floats) -> Floats:
        """Return ½ Σ w², by component or in all."""
        return 0.5 * ((W**2).sum(axis=0) if self.is_by_component else (W**2).sum())

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

    def coefficients_of_term(self, shape: Shape) -> Coefficients:
        """Return the coefficients of this term."""
        return self._coefficients(shape, quadratic=self.rate, pairwise=self.rate)

    def unit_penalty(self, W: Floats) -> Floats:
        """Return ½ Σ (Σ w)² over the rows."""
        return 0.5 * (W.sum(axis=1) ** 2).sum()

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

    def coefficients_of_term(self, shape: Shape) -> Coefficients:
        """Return the coefficients of this term."""
        return self._coefficients(shape, max_rate=self.rate, paper_rule=self.rule == "paper")

    def unit_penalty(self, W: Floats) -> Floats:
        """Return Σ max w over the rows."""
        return W.max(axis=1).sum()

    def unit_mean(self, n_components: int) -> float:
        """Return the mean of an entry whose row maximum follows Gamma(K, 1)."""
        return 0.5 * (n_components + 1)
