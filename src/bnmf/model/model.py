"""The joint density of data, factors, noise and learned rates."""

from __future__ import annotations

import warnings
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from bnmf.data.half_sweeps import ScaledView
from bnmf.data.observed import ObservedMatrix
from bnmf.kernels.compiled import draw_rate
from bnmf.model.fixed import NOTHING_FIXED, Fixed
from bnmf.model.noise import (
    MAX_PRECISION,
    MAX_REGRESSED_COLUMNS,
    MAX_REGRESSED_ROWS,
    Noise,
    NoiseState,
    as_noise,
    max_precisions,
    unexplained_variances,
)
from bnmf.model.units import NO_UNITS, ROUNDING, Units
from bnmf.priors.base import Coefficients, Prior, Term
from bnmf.priors.names import as_pair
from bnmf.utils import memory
from bnmf.utils.arguments import whole_number
from bnmf.utils.typing import Floats, Key, Shape

Rates = tuple[Floats, ...]
"""The value of each learned rate of a model: one number, or one for each component."""


class LearnedRate(NamedTuple):
    """A term of a prior whose rate is learned, and the factors that have it: 0 for W, 1 for Z."""

    term: Term
    factors: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Model:
    """Data, number of components, priors, noise and units."""

    data: ObservedMatrix  # with the offsets of the units subtracted
    n_components: int
    # One prior of both factors, which then share a learned rate, or a pair for W and for Z; a matrix of rates for Z has
    # shape (K, columns).
    prior: Any = "gl22"
    noise: Any = "common"
    units: Units = NO_UNITS
    entry_precision: Floats | None = None  # known factor of the precision of each observed entry, row by row
    fixed: Fixed = NOTHING_FIXED  # components that are given in one of the factors

    def __post_init__(self) -> None:
        object.__setattr__(self, "noise", as_noise(self.noise))
        k = whole_number(self.n_components, "n_components", 1)
        memory.require(8 * k * sum(self.data.shape), f"one draw with n_components={k}", "take fewer components")
        object.__setattr__(self, "n_components", k)
        if k > min(self.data.shape):
            warnings.warn(
                f"n_components={k} is larger than the smaller side of the matrix, {min(self.data.shape)}: that is a "
                "valid model, but more components than the data can tell apart",
                stacklevel=3,
            )
        if self.noise_model.has_outliers and (self.entry_precision is not None or self.data.has_implicit_zeros):
            raise ValueError(
                "noise='contaminated' needs data that are not sparse with zeros, without noise_scale or "
                "sample_weight: use noise='column', or 'student-t' for outliers"
            )
        if self.is_weighted:
            object.__setattr__(self, "data", self.data.listed())
        self.fixed.check(k, self.prior)
        # Raise errors now, rather than in the first sweep.
        _ = self.coefficients(self.starting_rates)

    # --- data in units of the model

    @cached_property
    def rows(self) -> ScaledView:
        """The data, as the half-sweep of W reads them."""
        factor = 1.0 / self.units.scale
        return self.data.rows.scaled(factor) if self.units.by_column else self.data.rows.scaled(row_scale=factor)

    @cached_property
    def columns(self) -> ScaledView:
        """The transposed data, as the half-sweep of Z reads them."""
        return self.data.columns.scaled(row_scale=1.0 / self.units.scale)

    @cached_property
    def max_precisions(self) -> dict[str, Floats]:
        """Largest precision of each row (after the half-sweep of W) and of each column (after that of Z)."""
        none = np.array([MAX_PRECISION])
        has_rows, has_columns = self.noise_model.has_rows, self.noise_model.has_columns
        if not (has_rows or has_columns):
            return {"W": none, "Z": none}
        steps = self.data.columns.resolutions() / self.units.scale
        of_columns = np.minimum(max_precisions(steps, self.variances), self._precisions_at_the_floor())
        if not has_rows:
            return {"W": none, "Z": of_columns}
        # The entries of a row have different units, so that all rows share the median step of the columns.
        known = steps[steps > 0]
        of_rows = max_precisions(np.array([np.median(known) if known.size else 0.0]))
        return {"W": of_rows, "Z": of_columns}

    @cached_property
    def variances(self) -> Floats:
        """Variance of the data of each column in units of the model, 0 if they are all equal."""
        columns = self.data.columns
        size, mean = columns.root_mean_squares(), columns.sums() / np.maximum(columns.n_observed, 1)
        variance = size**2 - mean**2
        return np.where(variance > ROUNDING * size**2, variance, 0.0) / self.units.scale**2

    @cached_property
    def mean_square(self) -> float:
        """Mean square of the data in units of the model, of each column and then over these, 1 if all are zero."""
        return float(np.mean((self.data.columns.root_mean_squares() / self.units.scale) ** 2)) or 1.0

    def _precisions_at_the_floor(self) -> Floats:
        """Return the precision of each column at the smallest noise that it may have."""
        floor, (n_rows, n_columns) = self.noise_model.floor, self.data.shape
        if floor == 0.0 or not 1 < n_columns <= MAX_REGRESSED_COLUMNS:
            return np.full(n_columns, MAX_PRECISION)
        some = self.data.dense_rows(np.arange(0, n_rows, -(-n_rows // MAX_REGRESSED_ROWS)))
        smallest = floor**2 * unexplained_variances(some / self.units.scale)
        return 1.0 / np.maximum(smallest, 1.0 / MAX_PRECISION)

    # --- entries that differ in how much they count

    @property
    def is_weighted(self) -> bool:
        """Whether precisions differ between entries, known or drawn."""
        return self.entry_precision is not None or self.noise_model.has_entries

    def roots(self, noise: NoiseState) -> dict[str, Floats | None]:
        """Return the roots of the weights of the entries, in the order of rows and in that of columns, or None."""
        if not self.is_weighted:
            return {"W": None, "Z": None}
        root = np.sqrt(self.weights(noise))
        return {"W": root, "Z": root[self.data.column_order]}

    def weights(self, noise: NoiseState) -> Floats:
        """Return the factor of the precision of each entry, known and drawn, in the order of rows."""
        known = self.entry_precision
        if not noise.entry.size:
            return np.ones(self.data.n_observed) if known is None else known
        return noise.entry if known is None else known * noise.entry

    def standardised_squares(self, residuals: Floats, noise: NoiseState) -> tuple[Floats, Floats]:
        """Return squared residuals of entries over their variances, and those variances, without drawn factors."""
        variance = noise.variance_at(self.data.listed_rows, self.data.rows.indices)
        if self.entry_precision is not None:
            variance = variance / self.entry_precision
        return residuals**2 / variance, variance

    def log_likelihood_of(self, residuals: Floats, noise: NoiseState) -> float:
        """Return the log density of the observed entries given their residuals, without drawn factors."""
        squares, variance = self.standardised_squares(residuals, noise)
        logs = self.noise_model.law(noise).log_density(squares)
        return float(logs.sum() - 0.5 * (np.broadcast_to(np.log(variance), squares.shape)).sum())

    # --- priors

    @cached_property
    def priors(self) -> tuple[Prior, Prior]:
        """Priors of W and of Zᵀ, both with rows first."""
        prior_W, prior_Z = as_pair(self.prior)
        return prior_W, prior_Z.transposed()

    @property
    def noise_model(self) -> Noise:
        """The noise, as an object."""
        return self.noise

    def with_data(self, rows: ScaledView, columns: ScaledView) -> Model:
        """Return this model with other values of the same entries; what was computed of the data is shared."""
        _ = self.max_precisions, self.drawn
        other = copy(self)
        other.__dict__.update(rows=rows, columns=columns)
        return other

    def with_shared_noise(self) -> Model:
        """Return this model with nearly equal variances of the noise; what was computed of the data is shared."""
        _ = self.max_precisions, self.rows, self.columns
        other = copy(self)
        object.__setattr__(other, "noise", self.noise_model.shared)
        if self.data.limits is not None:  # values beyond a limit would follow the factors, wherever a chain starts
            object.__setattr__(other, "data", replace(self.data, limits=None))
        return other

    @property
    def factor_shapes(self) -> tuple[Shape, Shape]:
        """Shapes of W and of Zᵀ."""
        n_rows, n_columns = self.data.shape
        return (n_rows, self.n_components), (n_columns, self.n_components)

    @cached_property
    def drawn(self) -> dict[str, tuple[int, int]]:
        """First component of W and of Z that is drawn, and the one after the last: the others are fixed."""
        n_components, n_weights = self.fixed.counts
        return {"W": (0, self.n_components - n_weights), "Z": (n_components, self.n_components)}

    @cached_property
    def learned_rates(self) -> list[LearnedRate]:
        """The rates that are learned."""
        terms = [prior.learned for prior in as_pair(self.prior)]
        if terms[0] is not None and terms[0] is terms[1] and not isinstance(self.prior, (tuple, list)):
            return [LearnedRate(terms[0], (0, 1))]
        return [LearnedRate(term, (factor,)) for factor, term in enumerate(terms) if term is not None]

    @property
    def starting_rates(self) -> Rates:
        """Rates to start from."""
        return tuple(learned.term.starting_rate(self.n_components) for learned in self.learned_rates)

    def coefficients(self, rates: Rates = ()) -> tuple[Coefficients, Coefficients]:
        """Return the coefficients of the priors of W and of Zᵀ with given values of the learned rates."""
        coefficients = list(self._unit_coefficients)
        for learned, rate in zip(self.learned_rates, rates, strict=True):
            for factor in learned.factors:
                coefficients[factor] = coefficients[factor].times(rate)
        return coefficients[0], coefficients[1]

    @cached_property
    def _unit_coefficients(self) -> tuple[Coefficients, Coefficients]:
        """Coefficients with learned rates of 1, to which they are proportional."""
        of_W, of_Z = (prior if prior.learned is None else prior.learned.with_rate(1.0) for prior in self.priors)
        return of_W.coefficients(self.factor_shapes[0]), of_Z.coefficients(self.factor_shapes[1])

    def draw_rates(self, W: Floats, Zt: Floats, key: Key) -> Rates:
        """Draw the learned rates given the factors: λ | W ~ Gamma(a + entries / degree, b + penalty at λ = 1)."""
        unit_W, unit_Z = self._unit_coefficients
        rates = []
        for number, (term, factors) in enumerate(self.learned_rates):
            part_W, part_Z = (self.drawn[half] if factor in factors else (0, 0) for factor, half in enumerate("WZ"))
            hyperprior, by_component = getattr(term, term.rate_name), term.is_by_component
            rate = np.empty(self.n_components if by_component else 1)
            draw_rate(
                W, Zt, unit_W.kernel_prior, unit_Z.kernel_prior, part_W, part_Z, by_component, term.degree,
                hyperprior.shape, hyperprior.rate, (key[0] ^ number, key[1]), rate,
            )  # fmt: skip
            rates.append(rate)
        return tuple(rates)
