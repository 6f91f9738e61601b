"""Contaminated normal noise: a few entries are far off, and the share of these in each column is learned.

An entry is y + e with y ~ N(w z, c_j). With probability π_j there is a gross error e ~ N(0, `ERROR_VARIANCE` c_j), else
e = 0. So the noise has heavy tails where the data have them. Once a sweep, which entries have a gross error is drawn
given the residuals of all, without y, and then y: W and Z see y in place of the data. Precisions of entries do not
differ then, so that rows still share their sums. Where only limits of y + e are known, the odds of a gross error are
those of the masses between them, and y + e is drawn before y.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, logsumexp

from bnmf.kernels.compiled import draw_beta
from bnmf.model.noise import NOISE_FLOOR, STRENGTHS, GroupedNoise, Law, Noise, NoiseState
from bnmf.utils.typing import Floats, Indices, Ints, Key, Shape

ERROR_VARIANCE = 100.0
"""Variance of a gross error over that of the noise."""
FACTOR = 1.0 + ERROR_VARIANCE
"""Variance of an entry with a gross error over that of one without."""
SHARE_PRIOR = (1.0, 50.0)
"""Beta prior of the share π of gross errors in a column: they are rare unless a column says otherwise."""


@dataclass(frozen=True)
class ContaminatedNoise(Noise):
    """Normal noise with a variance for each column, of which rare entries have an error ten times as large.

    The share of such entries is learned for each column. Predictions have tails as heavy as the data have, and entries
    that are far off count little, at nearly the speed of normal noise.

    Parameters
    ----------
    strength : float, optional
        α of the variances of the columns; learned by default.
    floor : float, default=0.35
        Smallest noise of a column, as for :class:`GroupedNoise`.
    """

    strength: float | None = None
    floor: float = NOISE_FLOOR
    by = "column"
    names = ("contaminated", "auto")
    has_outliers = True

    def __post_init__(self) -> None:
        self._check("column")

    @property
    def shared(self) -> GroupedNoise:
        """Nearly equal variances without gross errors, for the first sweeps, when many entries are far off."""
        return GroupedNoise("column", float(STRENGTHS[-1]), self.floor)

    def start(self, shape: Shape) -> NoiseState:
        return super().start(shape)._replace(share=np.full(shape[1], SHARE_PRIOR[0] / sum(SHARE_PRIOR)))

    def update(
        self, half: str, noise: NoiseState, errors: Floats, counts: Ints, bounds: Floats, key: Key
    ) -> NoiseState:
        """Draw variances given the squared errors of y, and the gross errors, whose variances are multiples of them."""
        if noise.gross.size:
            n_gross, squares = noise.gross
            errors, counts = errors + squares / ERROR_VARIANCE, counts + n_gross.astype(np.int64)
        return super().update(half, noise, errors, counts, bounds, key)

    def gross_errors(self, noise: NoiseState) -> dict[str, Any]:
        return {"log_odds": log_odds(noise.share), "factor": FACTOR}

    def update_share(self, noise: NoiseState, gross: Floats, counts: Ints, key: Key) -> NoiseState:
        a, b = SHARE_PRIOR
        share = draw_beta(a + gross[0], b + (counts - gross[0]), key)
        return noise._replace(share=_inside(share), gross=gross)

    def log_gross(self, noise: NoiseState, counts: Ints) -> float:
        if not noise.gross.size:
            return 0.0
        (n_gross, squares), variance = noise.gross, ERROR_VARIANCE * noise.column
        errors = n_gross * np.log(2.0 * math.pi * variance) + squares / variance
        chosen = n_gross * np.log(noise.share) + (counts - n_gross) * np.log1p(-noise.share)
        return float((chosen - 0.5 * errors).sum())

    def traced_values(self, noise: NoiseState, scale: Floats) -> dict[str, Floats | float]:
        return super().traced_values(noise, scale) | {"outlier_share": noise.share}


def _inside(share: Floats) -> Floats:
    """Return shares whose logarithms and those of their complements are finite."""
    return np.minimum(np.maximum(share, 1e-300), 1.0 - 1e-16)


def log_odds(share: Floats) -> Floats:
    """Return the log odds of a gross error."""
    return np.log(share) - np.log1p(-share)


class ContaminatedLaw(Law, trace="outlier_share"):
    """A mixture of two normal laws, of scales 1 and √`FACTOR`, with the share (S, n) of the second."""

    has_entries = True
    has_outliers = True
    spread = "sd without gross errors"

    share = property(lambda self: self.parameter)

    def describe(self, scale: str) -> str:
        share = float(self.share.mean())
        return f"{scale}, and gross errors in {f'{share:.1%}' if share >= 0.001 else '<0.1%'} of the entries"

    def gross_factors(self, draw: int, squares: Floats, columns: Indices, uniforms: Floats) -> Floats:
        """Return 1 / `FACTOR` for entries that have a gross error under one of the draws, and 1 for the others."""
        odds = log_odds(np.asarray(self.share[draw], dtype=np.float64)) - 0.5 * math.log(FACTOR)
        is_gross = uniforms < expit(odds[columns] + (0.5 - 0.5 / FACTOR) * squares)
        return np.where(is_gross, 1.0 / FACTOR, 1.0)

    @property
    def variance(self) -> Floats:
        return 1.0 + ERROR_VARIANCE * self.share

    def _parts(self, *of_parts: Floats) -> Floats:
        """Return the log of each part of the mixture, given those of the two laws."""
        return np.stack([np.log1p(-self.share) + of_parts[0], np.log(self.share) + of_parts[1]])

    def draw(self, shape: tuple[int, ...], rng: np.random.Generator, dtype: Any = np.float64) -> Floats:
        share = self.share.reshape(len(self.share), *[1] * (len(shape) - 2), -1)
        drawn = rng.standard_normal(shape, dtype=dtype)
        drawn[rng.random(shape, dtype=np.float32) < share] *= math.sqrt(FACTOR)
        return drawn

    def log_density(self, squares: Floats) -> Floats:
        normal = super().log_density
        return logsumexp(self._parts(normal(squares), normal(squares / FACTOR) - 0.5 * math.log(FACTOR)), axis=0)

    def _log_masses(self, low: Floats, high: Floats) -> Floats:
        """Return the log probability of each part together with intervals, (2, S, n)."""
        inside, root = super().log_probability, math.sqrt(FACTOR)
        return self._parts(inside(low, high), inside(low / root, high / root))

    def log_probability(self, low: Floats, high: Floats) -> Floats:
        return logsumexp(self._log_masses(low, high), axis=0)

    def _spread_between(self, low: Floats, high: Floats, is_gross: Any, values: Any) -> Floats:
        """Return values of the normal law between limits over the scale of a part, times that scale."""
        scale = np.where(is_gross, math.sqrt(FACTOR), 1.0)
        return scale * values(low / scale, high / scale)

    def draw_between(self, low: Floats, high: Floats, rng: np.random.Generator) -> Floats:
        log_masses = self._log_masses(low, high)
        is_gross = np.log(rng.random(low.shape)) < log_masses[1] - logsumexp(log_masses, axis=0)
        between = super().draw_between
        return self._spread_between(low, high, is_gross, lambda low, high: between(low, high, rng))

    def mean_between(self, low: Floats, high: Floats) -> Floats:
        log_masses = self._log_masses(low, high)
        weights = np.exp(log_masses - logsumexp(log_masses, axis=0))
        normal = Law()
        means = [self._spread_between(low, high, is_gross, normal.mean_between) for is_gross in (False, True)]
        return weights[0] * means[0] + weights[1] * means[1]
