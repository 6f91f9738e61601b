"""Noise: Gaussian or Student's t, whose variance is common to all entries, or differs between columns, rows or both.

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
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln

from bnmf.model.precisions import (
    MAX_PRECISION,
    NOISE_FLOOR,
    SCALE_RATE,
    SCALE_SHAPE,
    draw_precisions,
    draw_scale,
    draw_strength,
    log_gammas,
)
from bnmf.utils.typing import Array, Floats, Indices, Ints, Shape

STRENGTHS: Floats = 2.0 ** np.arange(2.0, 8.0)
"""Possible strengths α of the sharing: that of 2 α entries. With less, a column with rare large entries can take a
component for itself, which fits them exactly, and lose its noise."""
DEGREES_OF_FREEDOM: Floats = np.array([3.0, 4.0, 6.0, 8.0, 12.0, 20.0, 40.0, 100.0])
"""Possible degrees of freedom of Student's t where they are learned, each equally likely."""
NOISE_NAMES = ("common", "column", "row", "both")
NO_ENTRIES, ONE = np.empty(0), np.ones(1)


class NoiseState(NamedTuple):
    """Variances of the noise, and what is learned of their distribution.

    Attributes
    ----------
    row, column : ndarray of shape (1 or rows,) and (1 or columns,)
        Entry (i, j) has variance row_i column_j.
    scale : float
        s; 1 for common noise.
    row_strength, column_strength : float
        α of each side; 0 where the variances of a side do not differ.
    df : float
        Degrees of freedom of Student's t; 0 for Gaussian noise.
    entry : ndarray of shape (observed entries,) or (0,)
        Factor of the precision of each entry, which makes the noise Student's t.
    """

    row: Floats
    column: Floats
    scale: float = 1.0
    row_strength: float = 0.0
    column_strength: float = 0.0
    df: float = 0.0
    entry: Floats = NO_ENTRIES

    def variance_at(self, rows: Indices, columns: Array) -> Floats:
        """Return the variances at paired positions, apart from the factors of entries."""
        row = self.row if self.row.size == 1 else self.row[rows]
        return row * (self.column if self.column.size == 1 else self.column[columns])


def common(sigma2: float) -> NoiseState:
    """Return the state of a common variance."""
    return NoiseState(ONE, np.array([sigma2]))


@dataclass(frozen=True)
class CommonNoise:
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

    by = "common"
    floor = 0.0
    halves = ("W", "Z")
    updated_after = ("Z",)

    @property
    def shared(self) -> CommonNoise:
        """The same noise: all variances are equal."""
        return self

    def start(self, shape: Shape) -> NoiseState:
        """Return a state to start from."""
        return common(1.0)

    def update(
        self, half: str, noise: NoiseState, errors: Floats, counts: Ints, bounds: Floats, rng: np.random.Generator
    ) -> NoiseState:
        """Draw σ² after the last half-sweep, given the squared errors of its rows."""
        return common(self.draw(int(np.add.reduce(counts)), float(np.add.reduce(errors)), rng))

    def draw(self, n_observed: int, squared_error: float, rng: np.random.Generator) -> float:
        """Draw σ² given the squared error over the observed entries; without any, from the prior.

        Parameters
        ----------
        n_observed : int
            Number of observed entries, not M times N.
        squared_error : float
            Σ (a - w z)² over them.
        rng : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        float
            σ².
        """
        return (self.scale + 0.5 * squared_error) / rng.standard_gamma(self.shape + 0.5 * n_observed)

    def draw_prior(self, shape: Shape, rng: np.random.Generator) -> NoiseState:
        """Draw the noise from its prior."""
        return common(self.draw(0, 0.0, rng))

    def log_density(self, noise: NoiseState) -> float:
        """Return the log density of the prior, up to a constant."""
        sigma2 = float(noise.column[0])
        return -(self.shape + 1.0) * math.log(sigma2) - self.scale / sigma2


@dataclass(frozen=True)
class GroupedNoise:
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

    @property
    def halves(self) -> tuple[str, str]:
        """Order of the half-sweeps: the last one yields the errors that the variances are drawn from."""
        return ("Z", "W") if self.by == "row" else ("W", "Z")

    @property
    def updated_after(self) -> tuple[str, ...]:
        """The half-sweeps after which variances are drawn."""
        return {"column": ("Z",), "row": ("W",), "both": ("W", "Z")}[self.by]

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
        self, half: str, noise: NoiseState, errors: Floats, counts: Ints, bounds: Floats, rng: np.random.Generator
    ) -> NoiseState:
        """Draw what a half-sweep tells about the noise.

        Parameters
        ----------
        half : {"W", "Z"}
            Which factor was drawn.
        noise : NoiseState
            The state so far.
        errors : ndarray
            Squared error of each row (after W) or column (after Z), divided by the variances of the other side.
        counts : ndarray of int
            Number of observed entries of each.
        bounds : ndarray
            Largest precision of each.
        rng : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        NoiseState
            The new state.
        """
        side = "row" if half == "W" else "column"
        has_scale = side == "column" or self.by == "row"  # with both, the precisions of the rows have mean 1
        strength = noise.row_strength if side == "row" else noise.column_strength
        scale = noise.scale if has_scale else 1.0
        precision = draw_precisions(strength, scale, errors, counts, bounds, rng)
        if has_scale:
            scale = draw_scale(strength, precision, rng)
        strength, drawn = draw_strength(self._strengths, scale, precision, rng), scale if has_scale else noise.scale
        if side == "row":
            return noise._replace(row=1.0 / precision, scale=drawn, row_strength=strength)
        return noise._replace(column=1.0 / precision, scale=drawn, column_strength=strength)

    def draw_prior(self, shape: Shape, rng: np.random.Generator) -> NoiseState:
        """Draw the noise from its prior."""
        noise = self.start(shape)
        scale = rng.gamma(SCALE_SHAPE) / SCALE_RATE
        sides: dict[str, Any] = {}
        for side, strength, mean in (("row", noise.row_strength, scale if self.by == "row" else 1.0),
                                     ("column", noise.column_strength, scale)):  # fmt: skip
            if strength:
                strength = float(rng.choice(self._strengths))
                precision = rng.gamma(strength, size=getattr(noise, side).size) / (strength * mean)
                if np.any(precision > MAX_PRECISION):
                    return self.draw_prior(shape, rng)  # outside of the bound: draw everything again
                sides |= {side: 1.0 / precision, f"{side}_strength": strength}
        return noise._replace(scale=scale, **sides)

    def log_density(self, noise: NoiseState) -> float:
        """Return the log density of the prior of the variances, up to a constant."""
        total = (SCALE_SHAPE - 1.0) * math.log(noise.scale) - SCALE_RATE * noise.scale
        sides = ((noise.row, noise.row_strength, noise.scale if self.by == "row" else 1.0),
                 (noise.column, noise.column_strength, noise.scale))  # fmt: skip
        for variance, strength, scale in sides:
            if strength:
                total += log_gammas(np.array([strength]), scale, 1.0 / variance)[0] - 2.0 * np.log(variance).sum()
        return float(total)


@dataclass(frozen=True)
class KnownNoise:
    """Noise whose variance is given for each entry: nothing is learned."""

    by = "common"
    floor = 0.0
    halves = ("W", "Z")
    updated_after = ("Z",)

    @property
    def shared(self) -> GroupedNoise:
        """Noise that is learned by column beside what is known, for the first sweeps of a chain.

        Noise that is small from the start would keep a chain in a poor fit near to where it started.
        """
        return GroupedNoise("column", floor=0.0)

    def start(self, shape: Shape) -> NoiseState:
        """Return the only state, from which noise by column can go on."""
        return common(1.0)._replace(column_strength=float(STRENGTHS[len(STRENGTHS) // 2]))

    def update(
        self, half: str, noise: NoiseState, errors: Floats, counts: Ints, bounds: Floats, rng: np.random.Generator
    ) -> NoiseState:
        """Return the only state, whatever the first sweeps have learned."""
        return self.start((1, 1))

    def draw_prior(self, shape: Shape, rng: np.random.Generator) -> NoiseState:
        """Return the only state."""
        return self.start(shape)

    def log_density(self, noise: NoiseState) -> float:
        """Return zero: there is nothing to draw."""
        return 0.0


@dataclass(frozen=True)
class StudentT:
    """Student's t in place of the normal distribution: a few entries may be far off without spoiling the rest.

    It is a normal distribution with a factor λ of the precision of each entry, λ ~ Gamma(df/2, df/2).

    Parameters
    ----------
    df : float or None, default=4.0
        Degrees of freedom: the fewer, the heavier the tails. None learns them, on a grid from 3 to 100.
    by : {"column", "row", "both", "common"}, default="column"
        Whose scales differ, as for Gaussian noise.
    strength : float, optional
        α of those scales; learned by default.
    floor : float, default=0.0
        Smallest scale of a column, as for Gaussian noise. None by default, because outliers would raise it.
    """

    df: float | None = 4.0
    by: str = "column"
    strength: float | None = None
    floor: float = 0.0

    def __post_init__(self) -> None:
        if self.by not in NOISE_NAMES:
            raise ValueError(f"by of StudentT must be 'column', 'row', 'both' or 'common', got {self.by!r}")
        df = self.df
        if df is not None and not (isinstance(df, (int, float, np.number)) and 0 < df < math.inf):
            raise ValueError(f"df of StudentT must be a positive finite number or None, got {df!r}")
        if df is not None:
            object.__setattr__(self, "df", float(df))
        if self.by == "common" and self.strength is not None:
            raise ValueError("strength of StudentT is for scales that differ: leave it None with by='common'")
        base = self.base  # checks the strength
        object.__setattr__(self, "floor", base.floor)
        if isinstance(base, GroupedNoise):
            object.__setattr__(self, "strength", base.strength)

    @property
    def base(self) -> CommonNoise | GroupedNoise:
        """The Gaussian noise whose variances are the squared scales of this one."""
        return CommonNoise() if self.by == "common" else GroupedNoise(self.by, self.strength, self.floor)

    @property
    def halves(self) -> tuple[str, str]:
        """Order of the half-sweeps."""
        return self.base.halves

    @property
    def updated_after(self) -> tuple[str, ...]:
        """The half-sweeps after which variances are drawn."""
        return self.base.updated_after

    @property
    def shared(self) -> StudentT:
        """The same noise with nearly equal scales, for the first sweeps of a chain.

        The tails stay heavy: nearly normal noise would give components to outliers, which they keep.
        """
        return self if self.by == "common" else replace(self, strength=float(STRENGTHS[-1]))

    @property
    def _dfs(self) -> Floats:
        return DEGREES_OF_FREEDOM if self.df is None else np.array([float(self.df)])

    def start(self, shape: Shape) -> NoiseState:
        """Return a state to start from, without factors of entries."""
        return self.base.start(shape)._replace(df=float(self._dfs[len(self._dfs) // 2]))

    def update(
        self, half: str, noise: NoiseState, errors: Floats, counts: Ints, bounds: Floats, rng: np.random.Generator
    ) -> NoiseState:
        """Draw variances given squared errors that count each entry by its factor."""
        drawn = self.base.update(half, noise, errors, counts, bounds, rng)
        return drawn._replace(df=noise.df, entry=noise.entry)

    def update_entries(self, noise: NoiseState, squares: Floats, rng: np.random.Generator) -> NoiseState:
        """Draw the degrees of freedom, and then the factor of each entry.

        Parameters
        ----------
        noise : NoiseState
            The state so far.
        squares : ndarray of shape (observed entries,)
            Squared residuals over the variances of their rows and columns.
        rng : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        NoiseState
            With new degrees of freedom, which are drawn without the factors, and factors.
        """
        df = noise.df
        if len(self._dfs) > 1:
            log_weights = np.array([log_student_t(squares, df).sum() for df in self._dfs])
            weights = np.exp(log_weights - log_weights.max())
            df = float(self._dfs[np.searchsorted(np.cumsum(weights), rng.uniform() * weights.sum())])
        entry = rng.standard_gamma(0.5 * (df + 1.0), size=squares.size) / (0.5 * (df + squares))
        return noise._replace(df=df, entry=entry)

    def draw_prior(self, shape: Shape, rng: np.random.Generator) -> NoiseState:
        """Draw the noise from its prior, with factors of all entries, row by row."""
        noise = self.base.draw_prior(shape, rng)
        df = float(rng.choice(self._dfs))
        return noise._replace(df=df, entry=rng.gamma(0.5 * df, size=shape[0] * shape[1]) / (0.5 * df))

    def log_density(self, noise: NoiseState) -> float:
        """Return the log density of the prior of variances and factors, up to a constant."""
        half = 0.5 * noise.df
        factors = (half - 1.0) * np.log(noise.entry) - half * noise.entry + half * math.log(half) - gammaln(half)
        return self.base.log_density(noise) + float(factors.sum())


NoiseModel = CommonNoise | GroupedNoise | KnownNoise | StudentT


def log_student_t(squares: Floats, df: Any) -> Floats:
    """Return the log density of Student's t with scale 1, given the squares of its values."""
    constant = gammaln(0.5 * (df + 1.0)) - gammaln(0.5 * df) - 0.5 * np.log(np.pi * df)
    return constant - 0.5 * (df + 1.0) * np.log1p(squares / df)


def as_noise(noise: Any) -> NoiseModel:
    """Return a noise model, given one or its name."""
    if isinstance(noise, (CommonNoise, GroupedNoise, KnownNoise, StudentT)):
        return noise
    if isinstance(noise, str) and noise in NOISE_NAMES:
        return CommonNoise() if noise == "common" else GroupedNoise(noise)
    if isinstance(noise, str) and noise == "known":
        return KnownNoise()
    if isinstance(noise, str) and noise == "student-t":
        return StudentT()
    raise ValueError(
        "noise must be 'common', 'column', 'row', 'both', 'student-t', 'known', or an object of bnmf.model.noise "
        f"(CommonNoise, GroupedNoise, StudentT), got {noise!r}"
    )
