"""Priors that penalise a norm of each row: the models of the paper are these and their sums."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from bnmf.priors.base import Coefficients, Term
from bnmf.utils.typing import Shape


@dataclass(frozen=True, eq=False)
class L1(Term):
    """R = λ Σ w: an exponential prior, the GEE model.

    Parameters
    ----------
    rate : float or array-like
        λ, as a number, a vector by component or a matrix by entry.
    """

    rate: Any

    def coefficients_of_term(self, shape: Shape) -> Coefficients:
        """Return the coefficients of this term."""
        return self._coefficients(shape, linear=self.rate)


@dataclass(frozen=True, eq=False)
class L2Squared(Term):
    """R = ½ λ Σ w²: a half-normal prior, the GL2² model.

    Parameters
    ----------
    rate : float or array-like
        λ, as a number, a vector by component or a matrix by entry.
    """

    rate: Any

    def coefficients_of_term(self, shape: Shape) -> Coefficients:
        """Return the coefficients of this term."""
        return self._coefficients(shape, quadratic=self.rate)


@dataclass(frozen=True, eq=False)
class L1Squared(Term):
    """R = ½ λ (Σ w)²: the square of the sum of each row, the GL1² model.

    Parameters
    ----------
    rate : float
        λ, one number for the whole factor.
    """

    rate: float
    allows_arrays: ClassVar[bool] = False

    def coefficients_of_term(self, shape: Shape) -> Coefficients:
        """Return the coefficients of this term."""
        return self._coefficients(shape, quadratic=self.rate, pairwise=self.rate)


@dataclass(frozen=True, eq=False)
class LInf(Term):
    """R = λ max w: the GL∞ model, and with L2Squared the GL2²,∞ model.

    Parameters
    ----------
    rate : float
        λ, one number for the whole factor.
    rule : {"exact", "paper"}, default="exact"
        "exact" draws an entry from its conditional density. "paper" is the rule that the paper prints: it adds λ if
        the *old* value of the entry is the largest of its row. It is not the conditional of any density, and with
        LInf alone the chain diverges. It exists only to reproduce the paper.
    """

    rate: float
    rule: str = "exact"
    allows_arrays: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rule not in ("exact", "paper"):
            raise ValueError(f"rule of LInf must be 'exact' or 'paper', got {self.rule!r}")

    def coefficients_of_term(self, shape: Shape) -> Coefficients:
        """Return the coefficients of this term."""
        return self._coefficients(shape, max_rate=self.rate, paper_rule=self.rule == "paper")
