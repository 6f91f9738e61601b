"""Priors of the factors. A prior is four coefficients, and priors add.

The prior of a row w of W (of a column of Z, by symmetry) is exp(-R(w)) on w >= 0 with

    R(w) = Σ_k linear_k w_k + ½ Σ_k quadratic_k w_k² + coupling Σ_{j<k} w_j w_k + slope max_k w_k

so that every prior here is a penalty on the norms of the rows, and their sum is a prior again:
``L2Squared(0.1) + LInf(0.1)`` is the GL2²,∞ model of the paper.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bnmf import prior_draws

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Coefficients:
    """What the kernels know of a prior: `linear` and `quadratic` of shape (1 or rows, K), and two numbers."""

    linear: Floats
    quadratic: Floats
    coupling: float
    slope: float
    published: bool


class Prior:
    """A prior of one factor: the sum of its terms."""

    terms: tuple[Prior, ...]

    def __add__(self, other: Any) -> Prior:
        if not isinstance(other, Prior):
            return NotImplemented
        return Sum(self.terms + other.terms)

    def transposed(self) -> Prior:
        """Return this prior with every rate that is a matrix transposed: from Z's (K, columns) to (columns, K)."""
        return Sum(tuple(term.transposed() for term in self.terms))

    def penalty(self, shape: tuple[int, int]) -> tuple[Floats, Floats, float, float]:
        """Return what this one term adds to linear, quadratic, coupling and slope for a factor of `shape`."""
        raise NotImplementedError

    def coefficients(self, shape: tuple[int, int]) -> Coefficients:
        """Return the four coefficients for a factor of `shape` (rows, K).

        Parameters
        ----------
        shape : tuple of int
            Rows and components. A rate that is a vector must have K entries, a matrix this shape.

        Returns
        -------
        Coefficients
            Arrays and numbers for the kernels.
        """
        linear, quadratic = np.zeros((1, shape[1])), np.zeros((1, shape[1]))
        coupling = slope = 0.0
        for term in self.terms:
            add_linear, add_quadratic, add_coupling, add_slope = term.penalty(shape)
            linear, quadratic = linear + add_linear, quadratic + add_quadratic
            coupling, slope = coupling + add_coupling, slope + add_slope
        if np.any((quadratic <= 0) & (linear + slope <= 0)):
            raise ValueError(f"{self} is no prior: some entries have neither a positive rate nor a precision")
        published = any(isinstance(term, LInf) and term.rule == "published" for term in self.terms)
        # A transposed matrix would have every kernel compiled once more for its order in memory.
        linear, quadratic = np.ascontiguousarray(linear), np.ascontiguousarray(quadratic)
        return Coefficients(linear, quadratic, coupling, slope, published)

    def log_density(self, W: Any) -> float:
        """Return the log density of a factor W (rows, K), up to a constant that does not depend on W.

        Parameters
        ----------
        W : array-like of shape (rows, K)
            A factor; the log density is -inf if an entry is negative.

        Returns
        -------
        float
            -Σ R(w) over the rows w of W.
        """
        W = np.asarray(W, dtype=np.float64)
        if np.any(W < 0):
            return -np.inf
        c = self.coefficients(_two(W.shape))
        total = W.sum(axis=1)
        pairs = 0.5 * (total**2 - (W**2).sum(axis=1))
        penalty = (c.linear * W).sum() + 0.5 * (c.quadratic * W**2).sum()
        return float(-(penalty + c.coupling * pairs.sum() + c.slope * W.max(axis=1).sum()))

    def draw(self, shape: tuple[int, int], rng: np.random.Generator) -> Floats:
        """Draw a factor exactly and independently, by rejection and not by a chain.

        Parameters
        ----------
        shape : tuple of int
            Rows and components.
        rng : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        ndarray of shape `shape`
            One draw from the prior.
        """
        c = self.coefficients(shape)
        return prior_draws.draw(shape, c.linear, c.quadratic, c.coupling, c.slope, rng)


@dataclass(frozen=True)
class Sum(Prior):
    """The sum of several priors: its penalty is the sum of theirs."""

    terms: tuple[Prior, ...]

    def __str__(self) -> str:
        return " + ".join(map(str, self.terms))


@dataclass(frozen=True, eq=False)
class _Term(Prior):
    """A prior of one name: rates that may be a number, a vector by component or a matrix by entry."""

    per_entry: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if hasattr(self, "rate"):
            object.__setattr__(self, "rate", self._checked("rate", self.rate))

    def transposed(self) -> Prior:
        """Return the same prior with every matrix of rates transposed."""
        return replace(self, **{item.name: _transposed(getattr(self, item.name)) for item in fields(self)})

    @property
    def terms(self) -> tuple[Prior, ...]:  # type: ignore[override]
        return (self,)

    def _checked(self, name: str, value: Any, *, positive: bool = True) -> Any:
        """Return `value` as a number or an array of at most two dimensions, or say what is wrong with it."""
        kind = type(self).__name__
        try:
            array = np.array(value, dtype=np.float64)
        except (TypeError, ValueError):
            raise TypeError(f"{name} of {kind} must be a number or an array, got {value!r}") from None
        if array.ndim > 0 and not self.per_entry:
            raise ValueError(
                f"{name} of {kind} must be one number, got shape {array.shape}: its norm joins all components of a "
                "row, and only one common rate gives conditionals of one joint density"
            )
        if array.ndim > 2:
            raise ValueError(f"{name} of {kind} must be a number, a vector or a matrix, got {array.ndim} dimensions")
        if not np.isfinite(array).all() or (positive and (array < 0).any()):
            raise ValueError(f"{name} of {kind} must be finite{' and nonnegative' if positive else ''}, got {value!r}")
        array.setflags(write=False)
        return float(array) if array.ndim == 0 else array


def _two(shape: tuple[int, ...]) -> tuple[int, int]:
    if len(shape) != 2:
        raise ValueError(f"a factor has two dimensions (rows, components), got shape {shape}")
    return shape[0], shape[1]


def _spread(value: Any, shape: tuple[int, int], owner: object) -> Floats:
    """Return a rate as (1, K) or (rows, K)."""
    array = np.asarray(value, dtype=np.float64)
    if array.ndim == 0:
        return np.full((1, shape[1]), float(array))
    if array.ndim == 1 and array.shape == (shape[1],):
        return array[None, :].copy()
    if array.ndim == 2 and array.shape == tuple(shape):
        return array
    raise ValueError(
        f"a rate of {type(owner).__name__} has shape {array.shape}; this factor takes a number, a vector of "
        f"{shape[1]} (one for each component) or a matrix of {shape[0]} x {shape[1]} (rows or columns of the data x "
        "components)"
    )


def _transposed(value: Any) -> Any:
    return value.T if isinstance(value, np.ndarray) and value.ndim == 2 else value


@dataclass(frozen=True, eq=False)
class L1(_Term):
    """R = λ Σ w: an exponential prior, the GEE model.

    Parameters
    ----------
    rate : float or array-like
        λ, as a number, a vector by component or a matrix by entry.
    """

    rate: Any

    def penalty(self, shape: tuple[int, int]) -> tuple[Floats, Floats, float, float]:
        """Return the coefficients of this term."""
        return _spread(self.rate, shape, self), np.zeros((1, shape[1])), 0.0, 0.0


@dataclass(frozen=True, eq=False)
class L2Squared(_Term):
    """R = ½ λ Σ w²: a half-normal prior, the GL2² model.

    Parameters
    ----------
    rate : float or array-like
        λ, as a number, a vector by component or a matrix by entry.
    """

    rate: Any

    def penalty(self, shape: tuple[int, int]) -> tuple[Floats, Floats, float, float]:
        """Return the coefficients of this term."""
        return np.zeros((1, shape[1])), _spread(self.rate, shape, self), 0.0, 0.0


@dataclass(frozen=True, eq=False)
class L1Squared(_Term):
    """R = ½ λ (Σ w)²: the GL1² model. Rows are penalised by the square of their sum.

    Parameters
    ----------
    rate : float
        λ, one number for all.
    """

    rate: float
    per_entry: ClassVar[bool] = False

    def penalty(self, shape: tuple[int, int]) -> tuple[Floats, Floats, float, float]:
        """Return the coefficients of this term."""
        return np.zeros((1, shape[1])), np.full((1, shape[1]), self.rate), self.rate, 0.0


@dataclass(frozen=True, eq=False)
class LInf(_Term):
    """R = λ max w: the GL∞ model, and with L2Squared the GL2²,∞ model.

    Parameters
    ----------
    rate : float
        λ, one number for all.
    rule : {"exact", "published"}, default="exact"
        "exact" draws an entry from its conditional density. "published" is the rule that the paper prints: it
        adds λ if the *old* value of the entry is the largest of its row. That is the conditional of no density, so
        the chain samples from nothing in particular, and with LInf alone it runs away. It is here only to
        reproduce the paper.
    """

    rate: float
    rule: str = field(default="exact")
    per_entry: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rule not in ("exact", "published"):
            raise ValueError(f"rule of LInf must be 'exact' or 'published', got {self.rule!r}")

    def penalty(self, shape: tuple[int, int]) -> tuple[Floats, Floats, float, float]:
        """Return the coefficients of this term."""
        return np.zeros((1, shape[1])), np.zeros((1, shape[1])), 0.0, self.rate


@dataclass(frozen=True, eq=False)
class TruncatedNormal(_Term):
    """A normal of given mean and precision, cut off below zero.

    Parameters
    ----------
    mean, precision : float or array-like
        μ and τ of the normal, each as a number, a vector by component or a matrix by entry.
    """

    mean: Any
    precision: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", self._checked("mean", self.mean, positive=False))
        object.__setattr__(self, "precision", self._checked("precision", self.precision))
        if np.any(np.asarray(self.precision) <= 0):
            raise ValueError(f"precision of TruncatedNormal must be positive, got {self.precision!r}")

    def penalty(self, shape: tuple[int, int]) -> tuple[Floats, Floats, float, float]:
        """Return the coefficients of this term."""
        precision = _spread(self.precision, shape, self)
        return -precision * _spread(self.mean, shape, self), precision, 0.0, 0.0


def half_normal(precision: Any) -> Prior:
    """Return the half-normal prior: L2Squared by its name in statistics."""
    return L2Squared(precision)


def rectified_normal(mean: Any, precision: Any, rate: Any) -> Prior:
    """Return the rectified-normal prior: a truncated normal times an exponential."""
    return TruncatedNormal(mean, precision) + L1(rate)


# The models of the paper, by name.
MODELS = {
    "gee": lambda rate: L1(rate),
    "gl12": lambda rate: L1Squared(rate),
    "gl22": lambda rate: L2Squared(rate),
    "glinf": lambda rate: LInf(rate),
    "gl22inf": lambda rate: L2Squared(rate) + LInf(rate),
}
DEFAULT_RATE = 0.1


def as_prior(prior: Any) -> Prior:
    """Return a prior, given one or the name of one of the paper's models at λ = 0.1.

    Parameters
    ----------
    prior : Prior or str
        A prior, or "gee", "gl12", "gl22", "glinf" or "gl22inf".

    Returns
    -------
    Prior
        The prior.

    Examples
    --------
    >>> print(as_prior("gl22inf"))
    L2Squared(rate=0.1) + LInf(rate=0.1, rule='exact')
    """
    if isinstance(prior, Prior):
        return prior
    if isinstance(prior, str) and prior in MODELS:
        return MODELS[prior](DEFAULT_RATE)
    raise ValueError(f"prior must be a Prior or one of {', '.join(map(repr, MODELS))}, got {prior!r}")


def as_pair(prior: Any) -> tuple[Prior, Prior]:
    """Return the priors of W and Z, given one for both or a pair of them."""
    if isinstance(prior, (tuple, list)):
        if len(prior) != 2:
            raise ValueError(f"prior must be one prior or a pair (for W, for Z), got {len(prior)} of them")
        return as_prior(prior[0]), as_prior(prior[1])
    return as_prior(prior), as_prior(prior)
