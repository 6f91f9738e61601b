"""Gaussian noise: one variance, variances of columns, rows or both, or known ones.

Entry (i, j) has variance r_i c_j. Common noise has one inverse-gamma variance. Otherwise the precisions of a side share
a gamma distribution whose scale s, and the strength α of the sharing, are learned:

    1 / c_j ~ Gamma(α, α s)      so that 1 / s is their mean, and a column with few entries borrows from the others
    s ~ Gamma(½, ½)              a half-normal standard deviation, in units of the data
    α on a grid, each value equally likely

With both, the rows have 1 / r_i ~ Gamma(α', α'), of mean 1. Precisions are bounded, so that no variance collapses to
zero on data without noise, or where a component follows one column alone: by the rounding of recorded data
(`max_precisions`), by a part of what the other columns leave unexplained (`unexplained_variances`), and always by
`MAX_PRECISION`. The bound is part of the joint density, so every conditional is exact; as it depends on the data, the
prior does too, unless ``floor=0``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from bnmf.kernels.compiled import draw_gamma, draw_variances
from bnmf.model.noise import Noise, NoiseState, common
from bnmf.model.precisions import NOISE_FLOOR
from bnmf.utils.typing import Floats, Ints, Key, Shape

STRENGTHS: Floats = 2.0 ** np.arange(2.0, 8.0)
"""Possible strengths α of the sharing: that of 2 α entries. With less, a column with rare large entries can take a
component for itself, which fits them exactly, and lose its noise."""


@dataclass(frozen=True)
class CommonNoise(Noise):
    """One variance σ² for all entries, with an inverse-gamma prior, density ∝ (σ²)^(-shape - 1) exp(-scale / σ²).

    Parameters
    ----------
    shape, scale : float, default=1.0
        Both positive, in units of the data.
    """

    shape: float = 1.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        for name, value in (("shape", self.shape), ("scale", self.scale)):
            if not (isinstance(value, (int, float, np.number)) and 0 < value < math.inf):
                raise ValueError(f"{name} of CommonNoise must be a positive finite number, got {value!r}")
            object.__setattr__(self, name, float(value))

    names = ("common",)

    def start(self, shape: Shape) -> NoiseState:
        return common(1.0)

    def update(
        self, half: str, noise: NoiseState, errors: Floats, counts: Ints, bounds: Floats, key: Key
    ) -> NoiseState:
        """Draw σ² after the last half-sweep, given the squared errors of its rows."""
        shape, rate = self.shape + 0.5 * np.add.reduce(counts), self.scale + 0.5 * np.add.reduce(errors)
        return common(1.0 / draw_gamma(shape, rate, key))


@dataclass(frozen=True)
class GroupedNoise(Noise):
    """A variance for each column, for each row, or for both.

    Parameters
    ----------
    by : {"column", "row", "both"}, default="column"
        Whose variances differ.
    strength : float, optional
        α; learned by default.
    floor : float, default=0.35
        Smallest noise of a column, as a fraction of the standard deviation that a linear regression on the other
        columns leaves unexplained; 0 for none. It keeps the noise of a column from vanishing where a component
        follows that column alone. Not for variances of rows, and not for more than 500 columns.
    """

    by: str = "column"
    strength: float | None = None
    floor: float = NOISE_FLOOR

    def __post_init__(self) -> None:
        if self.by not in ("column", "row", "both"):
            raise ValueError(f"by of GroupedNoise must be 'column', 'row' or 'both', got {self.by!r}")
        if not (isinstance(self.floor, (int, float, np.number)) and 0 <= self.floor <= 1):
            raise ValueError(f"floor of GroupedNoise must be a number from 0 to 1, got {self.floor!r}")
        object.__setattr__(self, "floor", 0.0 if self.by == "row" else float(self.floor))
        value = self.strength
        if value is not None:
            if not (isinstance(value, (int, float, np.number)) and 0 < value < math.inf):
                raise ValueError(f"strength of GroupedNoise must be a positive finite number or None, got {value!r}")
            object.__setattr__(self, "strength", float(value))

    names = ("column", "row", "both")
    has_rows = property(lambda self: self.by != "column")
    has_columns = property(lambda self: self.by != "row")

    @classmethod
    def named(cls, name: str) -> GroupedNoise:
        return cls(name)

    @property
    def _strengths(self) -> Floats:
        return STRENGTHS if self.strength is None else np.array([float(self.strength)])

    @property
    def shared(self) -> GroupedNoise:
        """The same noise with nearly equal variances, for the first sweeps of a chain."""
        return replace(self, strength=float(STRENGTHS[-1]))

    def start(self, shape: Shape) -> NoiseState:
        """Return a state to start from: the variance of the data, and a middling strength."""
        strength = float(self._strengths[len(self._strengths) // 2])
        rows, columns = shape
        return NoiseState(
            np.ones(1 if self.by == "column" else rows),
            np.ones(1 if self.by == "row" else columns),
            1.0,
            0.0 if self.by == "column" else strength,
            0.0 if self.by == "row" else strength,
        )

    def update(
        self, half: str, noise: NoiseState, errors: Floats, counts: Ints, bounds: Floats, key: Key
    ) -> NoiseState:
        """Draw the variances of a side, their scale and their strength."""
        side = "row" if half == "W" else "column"
        has_scale = side == "column" or self.by == "row"  # with both, the precisions of the rows have mean 1
        strength = noise.row_strength if side == "row" else noise.column_strength
        scale, variance = noise.scale if has_scale else 1.0, np.empty(len(errors))
        scale, strength = draw_variances(
            errors, counts, bounds, strength, scale, has_scale, self._strengths, key, variance
        )
        scale = scale if has_scale else noise.scale
        if side == "row":
            return noise._replace(row=variance, scale=scale, row_strength=strength)
        return noise._replace(column=variance, scale=scale, column_strength=strength)


@dataclass(frozen=True)
class KnownNoise(Noise):
    """Noise whose variance is given for each entry: nothing is learned."""

    names = ("known",)
    is_known = True

    @property
    def shared(self) -> GroupedNoise:
        """Noise that is learned by column beside what is known, for the first sweeps of a chain."""
        # Noise that is small from the start would keep a chain in a poor fit near to where it started.
        return GroupedNoise("column", floor=0.0)

    def start(self, shape: Shape) -> NoiseState:
        """Return the only state, from which noise by column can continue."""
        return common(1.0)._replace(column_strength=float(STRENGTHS[len(STRENGTHS) // 2]))

    def update(
        self, half: str, noise: NoiseState, errors: Floats, counts: Ints, bounds: Floats, key: Key
    ) -> NoiseState:
        """Return the only state, whatever the first sweeps have learned."""
        return self.start((1, 1))
