"""Base classes of priors: coefficients, sums, the density, exact draws, and the validation of rates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from bnmf.kernels import compiled
from bnmf.priors import exact_draws
from bnmf.utils.arguments import positive
from bnmf.utils.typing import Floats, Shape


@dataclass(frozen=True)
class Gamma:
    """Gamma prior of a rate λ, density ∝ λ^(shape - 1) exp(-rate λ).

    It is conjugate for every single-term prior: a penalty of degree d in w has a normalising constant proportional to
    λ^(-K/d) for each row, so λ | W ~ Gamma(shape + entries / d, rate + penalty at λ = 1).

    Parameters
    ----------
    shape, rate : float
        a and b, both positive.
    """

    shape: float = 1.0
    rate: float = 1.0

    def __post_init__(self) -> None:
        for name, value in (("shape", self.shape), ("rate", self.rate)):
            object.__setattr__(self, name, positive(value, f"{name} of Gamma"))


@dataclass(frozen=True)
class Coefficients:
    """A prior as the kernels see it."""

    linear: Floats  # of w, (1 or rows, K)
    quadratic: Floats  # of w² / 2, (1 or rows, K)
    pairwise: float = 0.0  # of the sum of w_j w_k over pairs of components
    max_rate: float = 0.0  # of the largest entry of a row
    paper_rule: bool = False  # whether that is sampled as the paper prints it, which is not exact
    absolute: Floats | None = None  # of |w|; None if entries are nonnegative

    @cached_property
    def kernel_prior(self) -> compiled.Prior:
        """The coefficients in the form that the kernels read."""
        numbers = self.pairwise, self.max_rate, self.paper_rule
        return compiled.Prior(self.linear, self.quadratic, *numbers, self.absolute)

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields alone: the kernels' form of them is made again where they are sent to."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def map(self, function: Callable[[Floats], Floats], **numbers: Any) -> Coefficients:
        """Return the coefficients with a function of each array, and other numbers."""
        absolute = None if self.absolute is None else function(self.absolute)
        return replace(
            self, linear=function(self.linear), quadratic=function(self.quadratic), absolute=absolute, **numbers
        )

    def times(self, rate: Floats) -> Coefficients:
        """Return the coefficients multiplied by a rate: one number, or one for each component of a separable prior."""
        joint, absolute = float(rate[0]), None if self.absolute is None else self.absolute * rate
        numbers = self.pairwise * joint, self.max_rate * joint, self.paper_rule
        return Coefficients(self.linear * rate, self.quadratic * rate, *numbers, absolute)

    def of_components(self, first: int, end: int) -> Coefficients:
        """Return the coefficients of some components of a separable prior, without that of their sum or maximum."""
        return self.map(lambda x: np.ascontiguousarray(x[:, first:end]), pairwise=0.0, max_rate=0.0, paper_rule=False)

    def of_rows(self, rows: slice) -> Coefficients:
        """Return the coefficients of some rows."""
        return self.map(lambda x: x[rows] if len(x) > 1 else x)


class Prior:
    """A prior of one factor: the sum of its terms."""

    terms: tuple[Term, ...]

    def __add__(self, other: Any) -> Prior:
        if not isinstance(other, Prior):
            return NotImplemented
        return Sum(self.terms + other.terms)

    @property
    def is_by_entry(self) -> bool:
        """Whether some rate is a matrix, with a value for each entry of one particular factor."""
        return any(np.ndim(getattr(term, item.name)) == 2 for term in self.terms for item in fields(term))

    @property
    def is_real(self) -> bool:
        """Whether entries may be negative: every term has to allow it."""
        return all(term.allows_negative for term in self.terms)

    @property
    def learned(self) -> Term | None:
        """The term whose rate is learned, None if all rates are given."""
        found = [term for term in self.terms if term.is_learned]
        if found and len(self.terms) > 1:
            raise ValueError(
                f"the rate of {type(found[0]).__name__} cannot be learned in a sum of priors: its normalising constant "
                "has no closed form. Give every rate of a sum"
            )
        return found[0] if found else None

    def transposed(self) -> Prior:
        """Return this prior with every matrix of rates transposed: from the shape of Z to that of its transpose."""
        return Sum(tuple(term.transposed() for term in self.terms))

    def coefficients(self, shape: Shape) -> Coefficients:
        """Return the coefficients for a factor of `shape` (rows, K), which rates that are matrices must have."""
        if self.learned is not None:
            raise ValueError(f"the rate of {self} is learned: its coefficients need a value, from `with_rate`")
        arrays: dict[str, Any] = {name: np.zeros((1, shape[1])) for name in ("linear", "quadratic", "absolute")}
        numbers: dict[str, Any] = {"pairwise": 0.0, "max_rate": 0.0, "paper_rule": False}
        for term in self.terms:
            for name, value in term.penalty().items():
                if name in arrays:
                    arrays[name] = arrays[name] + term.by_entry(value, shape)
                else:
                    numbers[name] += value
        linear, quadratic, absolute = arrays.values()
        if self.is_real:
            slope = absolute - np.abs(linear)
        else:  # |w| is w
            linear = linear + absolute
            slope, absolute = linear + numbers["max_rate"], None
        if np.any((quadratic <= 0) & (slope <= 0)):
            raise ValueError(f"improper prior: {self} gives some entries neither a positive rate nor a precision")
        numbers["paper_rule"] = bool(numbers["paper_rule"])
        found = Coefficients(linear, quadratic, absolute=absolute, **numbers)
        return found.map(np.ascontiguousarray)  # the kernels read matrices by rows

    def log_density(self, W: Any) -> float:
        """Return the log density of a factor W (rows, K), -Σ R(w) up to a constant that does not depend on W.

        It is -inf if an entry is negative, unless the prior is one of real numbers.
        """
        W = np.asarray(W, dtype=np.float64)
        if W.ndim != 2:
            raise ValueError(f"a factor has two dimensions (rows, components), got shape {W.shape}")
        if np.any(W < 0) and not self.is_real:
            return -np.inf
        c = self.coefficients(W.shape)
        pairs = 0.5 * (W.sum(axis=1) ** 2 - (W**2).sum(axis=1))
        penalty = (c.linear * W).sum() + 0.5 * (c.quadratic * W**2).sum()
        if c.absolute is not None:
            penalty += (c.absolute * np.abs(W)).sum()
        return float(-(penalty + c.pairwise * pairs.sum() + c.max_rate * W.max(axis=1).sum()))

    def draw(self, shape: Shape, rng: np.random.Generator) -> Floats:
        """Draw a factor of `shape` (rows, K) exactly and independently, by rejection and without a Markov chain."""
        return exact_draws.draw(self.coefficients(shape), shape, rng)


@dataclass(frozen=True)
class Sum(Prior):
    """The sum of several priors: its penalty is the sum of theirs."""

    terms: tuple[Term, ...]

    def __str__(self) -> str:
        return " + ".join(map(str, self.terms))


@dataclass(frozen=True, eq=False, repr=False)
class Term(Prior):
    """A prior with a name, whose rates are numbers, vectors (by component), matrices (by entry) or learned."""

    allows_arrays: ClassVar[bool] = True
    allows_negative: ClassVar[bool] = False
    """Whether this term leaves entries that may be negative; any other restricts a sum to w >= 0."""
    rate_name: ClassVar[str] = "rate"
    """The parameter that can be learned."""
    hyperprior: ClassVar[Gamma] = Gamma()
    """The prior of that parameter, if a user gives none."""
    degree: ClassVar[int] = 0
    """The normalising constant of an entry is proportional to the rate to the power of -1 / degree; 0 if the prior has
    no such rate. That is the degree of a penalty that is homogeneous in w."""
    by_name: ClassVar[dict[str, type[Term]]] = {}
    """Every term that a file can hold."""
    by = "factor"  # of terms without such a parameter

    def __init_subclass__(cls) -> None:
        Term.by_name[cls.__name__] = cls

    def __post_init__(self) -> None:
        if not self.degree:
            return
        name, kind = self.rate_name, type(self).__name__
        rate = self.hyperprior if self._rate is None else self._rate
        object.__setattr__(self, name, rate if isinstance(rate, Gamma) else self._validated(name, rate))
        if self.by not in ("factor", "component"):
            raise ValueError(f"by of {kind} must be 'factor' or 'component', got {self.by!r}")
        if self.is_by_component and not self.is_learned:
            raise ValueError(f"by='component' of {kind} is for a learned {name}, got {name}={self._rate!r}")

    @property
    def terms(self) -> tuple[Term, ...]:  # type: ignore[override]
        """The prior itself, as its only term."""
        return (self,)

    def __repr__(self) -> str:
        shown = []
        for item in fields(self):
            value, default = getattr(self, item.name), np.asarray(item.default)
            if not np.array_equal(value, default):
                shown.append(f"{item.name}={value!r}")
        return f"{type(self).__name__}({', '.join(shown)})"

    # --- learned rates

    @property
    def _rate(self) -> Any:
        """λ, of a prior that has one."""
        return getattr(self, self.rate_name, None) if self.degree else None

    @property
    def is_learned(self) -> bool:
        """Whether the rate is learned, with a prior."""
        return isinstance(self._rate, Gamma)

    @property
    def is_by_component(self) -> bool:
        """Whether each component has its own learned rate."""
        return self.by == "component"

    def with_rate(self, rate: Any) -> Term:
        """Return this prior with a given rate in place of a learned one."""
        fixed = {self.rate_name: float(np.ravel(rate)[0]) if np.size(rate) == 1 else rate}
        return replace(self, **fixed, **({"by": "factor"} if self.is_by_component else {}))

    def unit_mean(self, n_components: int) -> float:
        """Return the mean of an entry at λ = 1, or its size if it may be negative; it sets where chains start."""
        return 1.0

    def starting_rate(self, n_components: int) -> Floats:
        """Return rates at which the prior mean of an entry of W Z is 1, the size of scaled data."""
        rate = (n_components * self.unit_mean(n_components) ** 2) ** (0.5 * self.degree)
        return np.full(n_components if self.is_by_component else 1, rate)

    def transposed(self) -> Term:
        """Return this prior with every matrix of rates transposed."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        return replace(self, **{name: value.T for name, value in values.items() if np.ndim(value) == 2})

    def penalty(self) -> dict[str, Any]:
        """Return the coefficients of the penalty of a row, named as in :class:`Coefficients`; the others are 0."""
        raise NotImplementedError

    def by_entry(self, value: Any, shape: Shape) -> Floats:
        """Return a rate in the shape (1 or rows, K)."""
        array = np.asarray(value, dtype=np.float64)
        if array.ndim == 0 or array.shape in ((shape[1],), shape):
            return np.broadcast_to(array, shape if array.ndim == 2 else (1, shape[1]))
        raise ValueError(
            f"a rate of {type(self).__name__} has shape {array.shape}; this factor takes a number, a vector of "
            f"{shape[1]} (one for each component) or a matrix of {shape[0]} x {shape[1]} (rows or columns of the data "
            "x components)"
        )

    def _validated(self, name: str, value: Any, *, positive: bool = True) -> Any:
        """Return `value` as a number or a read-only array, or raise an error that names the argument."""
        kind = type(self).__name__
        try:
            array = np.array(value, dtype=np.float64)
        except (TypeError, ValueError):
            raise TypeError(f"{name} of {kind} must be a number or an array, got {value!r}") from None
        if array.ndim > 0 and not self.allows_arrays:
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
