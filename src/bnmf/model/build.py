"""From parameters and data to a model, in one place for fits, cross-validation and calibration."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bnmf.data.observed import ObservedMatrix
from bnmf.model.fixed import Fixed
from bnmf.model.model import Model
from bnmf.model.noise import Noise, as_noise
from bnmf.model.units import LEARNED, Units, units_of
from bnmf.priors.names import allows_negative, as_pair
from bnmf.utils.arguments import numbers
from bnmf.utils.typing import Floats

# Number of components with n_components="auto", if the data have as many rows and columns.
MAX_AUTO_COMPONENTS = 20
# Observed entries up to which noise="auto" has gross errors.
MAX_CONTAMINATED = 2_000_000
# Gap beyond which outliers are too far off to be gross errors, which would widen all intervals of their column.
WIDEST_GAP = 20.0


class Built(NamedTuple):
    """A model, the data that it counts in the user's units, and the known standard deviations of the noise."""

    model: Model
    data: ObservedMatrix
    noise_factor: Floats | None


def build(
    data: ObservedMatrix,
    *,
    n_components: Any,
    prior: Any,
    noise: Any,
    scale: str | None,
    offset: str | None,
    fixed_components: Any = None,
    fixed_weights: Any = None,
    noise_scale: Any = None,
    sample_weight: Any = None,
) -> Built:
    """Return the model of data, with the parameters of :class:`bnmf.BayesianNMF` and of its `fit`."""
    is_weighted = noise_scale is not None or sample_weight is not None
    if isinstance(noise, str) and noise == "auto":
        is_table = not data.has_implicit_zeros and data.is_mostly_observed
        is_exact = data.limits is None or 2 * len(data.limits) < data.n_observed
        is_contaminated = is_table and is_exact and data.n_observed <= MAX_CONTAMINATED and not is_weighted
        noise = "contaminated" if is_contaminated else "column"
        if is_contaminated and data.columns.gaps().max(initial=0.0) > WIDEST_GAP:
            noise = "student-t"
    law = as_noise(noise)
    check_known_noise(law, noise_scale, sample_weight)
    if law.has_entries or law.is_known or is_weighted:
        data.check_listable()
    weight = None if sample_weight is None else _weights_of_rows(sample_weight, data.shape[0])
    if weight is not None and not weight.all():
        rows, columns, _ = data.observed_entries()
        uncounted = weight[rows] == 0.0
        data = data.without(rows[uncounted], columns[uncounted])
    if offset == "auto":
        # Where components vanish that are not needed, and the user has not asked for a number of them.
        learned = [term for term in (prior.learned for prior in as_pair(prior)) if term is not None]
        is_free = n_components == "auto" and fixed_components is None and fixed_weights is None
        vanish = len(learned) == 2 and all(term.is_by_component for term in learned)
        offset = "learned" if is_free and vanish and not data.has_implicit_zeros else None
    units, shifted = units_of(data, scale, offset, robust=law.is_heavy_tailed, signed=allows_negative(prior))
    factor = noise_factor(data, units, law, noise_scale, weight)
    precision = None if factor is None else 1.0 / at_observed(factor, data) ** 2
    given = Fixed.of(fixed_components, fixed_weights, data.shape)
    fixed = given.with_effects(data.shape, units.scale, rows=offset == "both") if offset in LEARNED else given
    n_fixed = sum(fixed.counts)
    if n_components == "auto":
        n_components = max(n_fixed, min(MAX_AUTO_COMPONENTS + n_fixed, *data.shape))
    else:
        n_components += n_fixed - sum(given.counts)
    model = Model(shifted, n_components, prior, law, units, precision, fixed)
    if factor is not None and law.is_known:
        factor = factor * units.scale
    return Built(model, data, factor)


def check_offset(offset: str | None, prior: Any) -> None:
    """Raise an error if an offset leaves negative entries that the prior cannot explain."""
    if offset == "mean" and not allows_negative(prior):
        raise ValueError(
            "offset='mean' leaves entries below zero, which factors that are not negative cannot explain: use "
            "offset='min', or a prior such as 'normal' or ('ard', 'normal')"
        )


# --- known standard errors and weights of rows, as factors of the noise


def check_known_noise(noise: Any, noise_scale: Any, sample_weight: Any) -> None:
    """Raise an error if standard errors are not there that the noise needs, or if they or weights are wrong."""
    if as_noise(noise).is_known and noise_scale is None:
        raise ValueError("noise='known' needs noise_scale, the standard error of each entry")
    if noise_scale is not None:
        scale = numbers(noise_scale, "noise_scale")
        wrong = scale[(scale <= 0) | np.isinf(scale)]
        if wrong.size:
            raise ValueError(f"noise_scale must be positive and finite, got {float(wrong[0])!r}")
    if sample_weight is not None:
        weight = numbers(sample_weight, "sample_weight")
        wrong = weight[~((weight >= 0) & np.isfinite(weight))]
        if wrong.size:
            raise ValueError(f"sample_weight must be finite and not negative, got {float(wrong[0])!r}")
        if not weight.any():
            raise ValueError("sample_weight must be above zero for at least one row: rows of weight zero do not count")


def noise_factor(
    data: ObservedMatrix, units: Units, noise: Noise, noise_scale: Any, weight: Floats | None
) -> Floats | None:
    """Return the known standard deviation of the noise of every entry, in units of the model."""
    if noise_scale is None and weight is None:
        return None
    # Weights alone have no unit: noise that is learned in units of the columns stays so.
    factor = np.ones((1, 1)) if noise_scale is None else _errors_of_entries(noise_scale, data) / units.scale
    if weight is not None:
        factor = factor / np.sqrt(np.where(weight == 0.0, 1.0, weight))[:, None]  # predictions of the others: weight 1
    factor = np.broadcast_to(factor, (len(factor), data.shape[1]))
    if noise.is_known:
        return np.ascontiguousarray(factor)
    # With learned variances only ratios matter: the observed entries have a geometric mean of 1.
    return factor / np.exp(np.mean(np.log(at_observed(factor, data))))


def at_observed(factor: Floats, data: ObservedMatrix) -> Floats:
    """Return the factors of the observed entries, row by row."""
    rows, columns, _ = data.listed().observed_entries()
    return factor[0 if len(factor) == 1 else rows, columns]


def _weights_of_rows(sample_weight: Any, n_rows: int) -> Floats:
    """Return weights, one for each row."""
    weight = numbers(sample_weight, "sample_weight")
    if weight.shape != (n_rows,):
        raise ValueError(f"sample_weight must have one number for each row of X, shape ({n_rows},), got {weight.shape}")
    return weight


def _errors_of_entries(noise_scale: Any, data: ObservedMatrix) -> Floats:
    """Return standard errors in two dimensions; those of missing entries are medians of their columns by default."""
    scale = numbers(noise_scale, "noise_scale")
    scale = scale.reshape(1, -1) if scale.ndim == 1 else scale
    if scale.ndim != 2 or any(n not in (1, size) for n, size in zip(scale.shape, data.shape, strict=True)):
        raise ValueError(
            f"noise_scale must have the shape of X, {data.shape}, or one number for each column or each row (rows, 1), "
            f"got {np.shape(noise_scale)}"
        )
    if not np.isnan(scale).any():
        return scale
    scale = np.broadcast_to(scale, data.shape)
    missing = np.isnan(scale)
    if (missing & data.mask()).any():
        raise ValueError("noise_scale is NaN where X was observed")
    some = ~missing.all(axis=0)
    known = np.full(data.shape[1], np.nanmedian(scale))
    known[some] = np.nanmedian(scale[:, some], axis=0)
    return np.where(missing, known, scale)
