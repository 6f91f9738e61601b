"""From parameters and data to a model, in one place for fits, cross-validation and calibration."""

from __future__ import annotations

from typing import Any, NamedTuple

from bnmf.data.observed import ObservedMatrix
from bnmf.model.fixed import Fixed
from bnmf.model.known_noise import at_observed, noise_factor, uncounted_rows
from bnmf.model.model import Model, may_have_outliers
from bnmf.model.noise import as_noise
from bnmf.model.units import units_of
from bnmf.priors.names import allows_negative
from bnmf.utils.typing import Floats

# Number of components with n_components="auto", if the data have as many rows and columns.
MAX_AUTO_COMPONENTS = 20
# Observed entries up to which noise="auto" has gross errors.
MAX_CONTAMINATED = 2_000_000


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
        is_table = may_have_outliers(data) and data.is_mostly_observed
        is_contaminated = is_table and data.n_observed <= MAX_CONTAMINATED and not is_weighted
        noise = "contaminated" if is_contaminated else "column"
    law = as_noise(noise)
    if law.has_entries or law.is_known or is_weighted:
        data.check_listable()
    if sample_weight is not None and len(uncounted := uncounted_rows(sample_weight, data.shape[0])):
        data = data.without_rows(uncounted)
    units, shifted = units_of(data, scale, offset, robust=law.is_heavy_tailed, signed=allows_negative(prior))
    factor = noise_factor(data, units, law, noise_scale, sample_weight)
    precision = None if factor is None else 1.0 / at_observed(factor, data) ** 2
    fixed = Fixed.of(fixed_components, fixed_weights, data.shape)
    if offset == "both":
        fixed = fixed.with_effects(data.shape, units.scale)
        n_components = n_components if n_components == "auto" else n_components + 2
    if n_components == "auto":
        n_fixed = sum(fixed.counts)
        n_components = max(n_fixed, min(MAX_AUTO_COMPONENTS + n_fixed, *data.shape))
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
