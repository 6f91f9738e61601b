"""Standard errors that are known for each entry, and weights of rows, as factors of the noise of a model."""

from __future__ import annotations

from typing import Any

import numpy as np

from bnmf.data.observed import ObservedMatrix
from bnmf.model.noise import Noise
from bnmf.model.units import Units
from bnmf.utils.arguments import numbers
from bnmf.utils.typing import Floats, Indices


def noise_factor(
    data: ObservedMatrix, units: Units, noise: Noise, noise_scale: Any, sample_weight: Any
) -> Floats | None:
    """Return the known standard deviation of the noise of every entry, in units of the model.

    With learned variances only ratios matter: the factors of the observed entries then have a geometric mean of 1.
    """
    if noise.is_known and noise_scale is None:
        raise ValueError("noise='known' needs noise_scale, the standard error of each entry")
    if noise_scale is None and sample_weight is None:
        return None
    # Weights alone have no unit: noise that is learned in units of the columns stays so.
    factor = np.ones((1, 1)) if noise_scale is None else _checked(noise_scale, data) / units.scale
    if sample_weight is not None:
        weight = _checked_weights(sample_weight, data.shape[0])
        factor = factor / np.sqrt(np.where(weight == 0.0, 1.0, weight))[:, None]  # predictions of the others: weight 1
    factor = np.broadcast_to(factor, (len(factor), data.shape[1]))
    if noise.is_known:
        return np.ascontiguousarray(factor)
    return factor / np.exp(np.mean(np.log(at_observed(factor, data))))


def at_observed(factor: Floats, data: ObservedMatrix) -> Floats:
    """Return the factors of the observed entries, row by row."""
    rows, columns, _ = data.listed().observed_entries()
    return factor[0 if len(factor) == 1 else rows, columns]


def uncounted_rows(sample_weight: Any, n_rows: int) -> Indices:
    """Return the rows of weight zero, which a fit does not see."""
    return np.flatnonzero(_checked_weights(sample_weight, n_rows) == 0.0)


def _checked_weights(sample_weight: Any, n_rows: int) -> Floats:
    """Return weights of rows, not negative and not all zero."""
    weight = numbers(sample_weight, "sample_weight")
    if weight.shape != (n_rows,):
        raise ValueError(f"sample_weight must have one number for each row of X, shape ({n_rows},), got {weight.shape}")
    if not (np.isfinite(weight) & (weight >= 0)).all():
        raise ValueError(f"sample_weight must be finite and not negative, got {_first_wrong(weight)!r}")
    if not weight.any():
        raise ValueError("sample_weight must be above zero for at least one row: rows of weight zero do not count")
    return weight


def _first_wrong(numbers: Floats) -> float:
    """Return the first number that is not finite, or else the smallest."""
    infinite = numbers[~np.isfinite(numbers)]
    return float(infinite[0] if infinite.size else numbers.min())


def _checked(noise_scale: Any, data: ObservedMatrix) -> Floats:
    """Return standard errors that are all positive, in two dimensions."""
    scale = numbers(noise_scale, "noise_scale")
    scale = scale.reshape(1, -1) if scale.ndim == 1 else scale
    wanted = f"noise_scale must have the shape of X, {data.shape}, or one number for each column or each row (rows, 1)"
    if scale.ndim != 2 or any(n not in (1, size) for n, size in zip(scale.shape, data.shape, strict=True)):
        raise ValueError(f"{wanted}, got {np.shape(noise_scale)}")
    if scale.shape == data.shape:
        missing = np.isnan(scale)
        if (missing & data.mask()).any():
            raise ValueError("noise_scale is NaN where X was observed")
        if missing.any():
            known = np.where(missing.all(axis=0), np.nanmedian(scale), 0.0)
            some = ~missing.all(axis=0)
            known[some] = np.nanmedian(scale[:, some], axis=0)
            scale = np.where(missing, known, scale)
    if not (np.isfinite(scale) & (scale > 0)).all():
        raise ValueError(f"noise_scale must be positive and finite, got {_first_wrong(scale)!r}")
    return scale
