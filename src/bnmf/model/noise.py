"""Noise: its state, its law, its prior and conditional draws; and normal noise.

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

A new noise model is a subclass of `Noise` in a new file, with a subclass of `Law` if its noise is not normal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bnmf.data.limits import log_normal_mass
from bnmf.kernels.compiled import draw_gamma, draw_variances, draw_within
from bnmf.utils.arguments import positive
from bnmf.utils.typing import Array, Floats, Indices, Ints, Key, Shape

NO_ENTRIES, ONE = np.empty(0), np.ones(1)
# Possible strengths α of the sharing: that of 2 α entries. With less, a column with rare large entries can take a
# component for itself, which fits them exactly, and lose its noise.
STRENGTHS: Floats = 2.0 ** np.arange(2.0, 8.0)
# Smallest noise of a column by default, as a fraction of what the other columns leave unexplained of it (both standard
# deviations). A component that follows one column alone cannot be told from its noise (a Heywood case), so the data do
# not say how the two share that column; with hardly any noise, intervals would depend on the prior of weights alone.
NOISE_FLOOR = 0.35
# Largest precision of an entry, in units of the data: a noise of one millionth of the data.
MAX_PRECISION = 1e12
# Largest part of the variance of a column that counts as rounding: that of two values, each half of the time. If one of
# them is rare, the variance is below that of rounding to their step.
MAX_ROUNDING = 1.0 / 3.0
# Step, in units of the data, that is taken for a column whose entries are all equal, where no other column has one.
CONSTANT_STEP = 0.1
# Rows that are used to regress columns on each other, and columns up to which that is done.
MAX_REGRESSED_ROWS, MAX_REGRESSED_COLUMNS = 1000, 500
# Rows of an identity matrix that are added to them, in units of the columns, and rounds that fill missing entries.
RIDGE_ROWS, FILLING_ROUNDS = 0.1, 20
# Variances are rounded to multiples of 2^(1/16), so that rounding errors of sums do not change any draw.
STEPS_PER_DOUBLING = 16


class NoiseState(NamedTuple):
    """Variances of the noise, and what is learned of their distribution; what a model does not have is 0 or empty."""

    # Entry (i, j) has variance row_i column_j, with one number for a side whose variances do not differ.
    row: Floats
    column: Floats
    scale: float = 1.0  # s
    row_strength: float = 0.0  # α of a side
    column_strength: float = 0.0
    df: float = 0.0  # degrees of freedom of Student's t
    entry: Floats = NO_ENTRIES  # its factor of the precision of each observed entry
    share: Floats = NO_ENTRIES  # of gross errors in each column
    gross: Floats = NO_ENTRIES  # (2, columns): their number in the last sweep, and sum of squares as a sweep begins

    def variance_at(self, rows: Indices, columns: Array) -> Floats:
        """Return the variances at paired positions, apart from the factors of entries."""
        row = self.row if self.row.size == 1 else self.row[rows]
        return row * (self.column if self.column.size == 1 else self.column[columns])


def common(sigma2: float) -> NoiseState:
    """Return the state of a common variance."""
    return NoiseState(ONE, np.array([sigma2]))


class Law:
    """The normal law of noise of scale 1 under each of S draws; other laws have a parameter, (S,) or (S, columns)."""

    has_entries: ClassVar[bool] = False
    """Whether it is normal given a factor of the precision of each entry, which is drawn."""
    has_outliers: ClassVar[bool] = False
    """Whether that factor is one of two, for entries with and without a gross error."""
    spread: ClassVar[str] = "sd"
    """What the root of a variance is, in words."""
    of_trace: ClassVar[dict[str, type[Law]]] = {}

    def __init__(self, parameter: Any = None) -> None:
        self.parameter = parameter

    def __init_subclass__(cls, trace: str) -> None:
        """Register the law of draws that have a trace of this name, its parameter."""
        Law.of_trace[trace] = cls

    @staticmethod
    def of(traces: Mapping[str, Any]) -> Law:
        """Return the law of draws, given those of its parameter (chain, draw, ...) by name."""
        for name, law in Law.of_trace.items():
            if (draws := traces.get(name)) is not None:
                return law(np.reshape(draws, (-1, *np.shape(draws)[2:])))
        return Law()

    def describe(self, scale: str) -> str:
        """Return the noise in words, given those of its scale."""
        return scale

    def choose(self, draws: Any) -> Law:
        """Return the law of some of the draws."""
        return self if self.parameter is None else type(self)(self.parameter[draws])

    def at(self, columns: Indices) -> Law:
        """Return the law at some entries, given their columns."""
        return type(self)(self.parameter[:, columns]) if np.ndim(self.parameter) == 2 else self

    @property
    def variance(self) -> Floats:
        """Variance of noise of scale 1, (1 or S, 1 or n); it may be infinite."""
        return np.ones((1, 1))

    def draw(self, shape: tuple[int, ...], rng: np.random.Generator, dtype: Any = np.float64) -> Floats:
        """Draw noise, of a shape that starts with the number of draws."""
        return rng.standard_normal(shape, dtype=dtype)

    def log_density(self, squares: Floats) -> Floats:
        """Return the log density, given the squares (S, n) of noise."""
        return -0.5 * (squares + np.log(2.0 * np.pi))

    def draw_entries(self, draw: int, squares: Floats, rng: np.random.Generator) -> Floats:
        """Draw the factors of the entries of a row under one of the draws, given squared residuals over variances."""
        return np.ones(squares.size)

    def gross_factors(self, draw: int, squares: Floats, columns: Indices, uniforms: Floats) -> Floats:
        """Return the factors of entries of some columns under one of the draws, given a uniform number for each."""
        raise NotImplementedError

    def log_probability(self, low: Floats, high: Floats) -> Floats:
        """Return the log probability that noise lies between limits (S, n), one of which may be infinite."""
        return log_normal_mass(low, high)

    def draw_between(self, low: Floats, high: Floats, rng: np.random.Generator) -> Floats:
        """Draw noise between limits (S, n), one of which may be infinite."""
        swapped = low + high > 0.0
        drawn = self._draw_left(np.where(swapped, -high, low), np.where(swapped, -low, high), rng)
        return np.where(swapped, -drawn, drawn)

    def _draw_left(self, low: Floats, high: Floats, rng: np.random.Generator) -> Floats:
        """Draw noise between limits of which the lower one is further out."""
        b, width = (np.ascontiguousarray(x).ravel() for x in (high, high - low))
        drawn = draw_within(b, np.ones(high.size), width, rng.integers(2**63, size=2, dtype=np.uint64))
        return high - drawn.reshape(high.shape)

    def mean_between(self, low: Floats, high: Floats) -> Floats:
        """Return the mean of noise that lies between limits (S, n), one of which may be infinite."""
        log_mass, sides = self.log_probability(low, high), []
        for limit in (low, high):
            finite = np.where(np.isinf(limit), 0.0, limit)
            density = np.exp(self.log_density(finite**2) - log_mass)
            sides.append(np.where(np.isinf(limit), 0.0, self._mean_beyond(density, finite)))
        return sides[0] - sides[1]

    def _mean_beyond(self, density: Floats, limit: Floats) -> Floats:
        """Return ∫ x f(x) dx over x > limit, given the density f there."""
        return density


class Noise:
    """A noise model: its prior, its conditional draws, and what the rest of the program must know about it.

    The variances of rows, columns or both are drawn here; a model overrides what differs.
    """

    names: ClassVar[tuple[str, ...]] = ()
    """Its names, as values of the parameter `noise`."""
    by_name: ClassVar[dict[str, type[Noise]]] = {}
    by: str = "common"
    """Whose variances differ: "column", "row", "both", or "common" if there is one."""
    shape: float = 1.0
    scale: float = 1.0
    """Of the inverse-gamma prior of one variance."""
    strength: float | None = None
    """α of variances that differ, None if it is learned."""
    floor: float = 0.0
    """Smallest noise of a column, as a fraction of what the other columns leave unexplained."""
    has_entries: ClassVar[bool] = False
    """Whether each entry has a factor of its precision that is drawn (:meth:`update_entries`)."""
    has_outliers: ClassVar[bool] = False
    """Whether rare entries have a gross error, which is drawn (:meth:`update_share`)."""
    is_known: ClassVar[bool] = False
    """Whether nothing is learned: standard errors must be given."""
    is_heavy_tailed: ClassVar[bool] = False
    """Whether single entries may be far off, so that they neither set the unit of a column nor count as a fault."""
    has_rows = property(lambda self: self.by in ("row", "both"))
    has_columns = property(lambda self: self.by in ("column", "both"))

    def __init_subclass__(cls) -> None:
        Noise.by_name |= dict.fromkeys(cls.names, cls)

    @classmethod
    def named(cls, name: str) -> Noise:
        """Return the model of one of the names."""
        return cls()

    def _check(self, *sides: str) -> None:
        """Check and convert the settings of variances that differ; `sides` are what `by` may be."""
        kind = type(self).__name__
        if self.by not in sides:
            raise ValueError(f"by of {kind} must be one of {', '.join(map(repr, sides))}, got {self.by!r}")
        if not (isinstance(self.floor, (int, float, np.number)) and 0 <= self.floor <= 1):
            raise ValueError(f"floor of {kind} must be a number from 0 to 1, got {self.floor!r}")
        object.__setattr__(self, "floor", float(self.floor) if self.has_columns else 0.0)
        if self.strength is not None:
            if self.by == "common":
                raise ValueError(f"strength of {kind} is for scales that differ: leave it None with by='common'")
            object.__setattr__(self, "strength", positive(self.strength, f"strength of {kind}"))

    @property
    def halves(self) -> tuple[str, str]:
        """Order of the half-sweeps: the last one yields the errors that the variances are drawn from."""
        return ("Z", "W") if self.by == "row" else ("W", "Z")

    @property
    def updated_after(self) -> tuple[str, ...]:
        """The half-sweeps after which variances are drawn."""
        return ("W", "Z") if self.by == "both" else self.halves[1:]

    @property
    def shared(self) -> Noise:
        """The noise of the first sweeps of a chain, whose variances are nearly equal."""
        return self if self.by == "common" else replace(self, strength=float(STRENGTHS[-1]))  # type: ignore[type-var]

    @property
    def _strengths(self) -> Floats:
        return STRENGTHS if self.strength is None else np.array([self.strength])

    def start(self, shape: Shape) -> NoiseState:
        """Return a state to start from: the variance of the data, and a middling strength."""
        strength, (rows, columns) = float(self._strengths[len(self._strengths) // 2]), shape
        return NoiseState(
            np.ones(rows if self.has_rows else 1),
            np.ones(columns if self.has_columns else 1),
            1.0,
            strength if self.has_rows else 0.0,
            strength if self.has_columns else 0.0,
        )

    def update(
        self, half: str, noise: NoiseState, errors: Floats, counts: Ints, bounds: Floats, key: Key
    ) -> NoiseState:
        """Draw what a half-sweep ("W" or "Z") tells about the variances, of a side with their scale and strength."""
        # `errors` are the squared errors of each row (after W) or column (after Z), divided by the variances of the
        # other side, `counts` the observed entries of each, and `bounds` their largest precisions. `key` is that of the
        # random stream to draw from.
        if self.by == "common":
            shape, rate = self.shape + 0.5 * np.add.reduce(counts), self.scale + 0.5 * np.add.reduce(errors)
            return noise._replace(column=np.array([1.0 / draw_gamma(shape, rate, key)]))
        side = "row" if half == "W" else "column"
        has_scale = side == "column" or self.by == "row"  # with both, the precisions of the rows have mean 1
        strength = noise.row_strength if side == "row" else noise.column_strength
        scale, variance = noise.scale if has_scale else 1.0, np.empty(len(errors))
        scale, strength = draw_variances(
            errors, counts, bounds, strength, scale, has_scale, self._strengths, key, variance
        )
        drawn: dict[str, Any] = {side: variance, f"{side}_strength": strength}
        return noise._replace(scale=scale if has_scale else noise.scale, **drawn)

    def update_entries(self, noise: NoiseState, squares: Floats, rng: np.random.Generator) -> NoiseState:
        """Draw the factor of each entry, given squared residuals over the variances of their rows and columns."""
        return noise

    def gross_errors(self, noise: NoiseState) -> dict[str, Any]:
        """Return the options of the kernel that draws gross errors."""
        raise NotImplementedError

    def update_share(self, noise: NoiseState, gross: Floats, counts: Ints, key: Key) -> NoiseState:
        """Draw the share of gross errors in each column, given these as in `NoiseState.gross`, and all counts."""
        return noise

    def log_gross(self, noise: NoiseState, counts: Ints) -> float:
        """Return the log density of the gross errors of the last sweep."""
        return 0.0

    def law(self, noise: NoiseState) -> Law:
        """Return the law of noise of scale 1, without factors of entries."""
        return Law()

    def traced_values(self, noise: NoiseState, scale: Floats) -> dict[str, Floats | float]:
        """Return the values that are kept of a draw, in the user's units, given the units of the data."""
        # Factors of entries are their standard errors if those are known.
        variance = np.ones(1) if self.is_known else (noise.scale if self.by == "row" else noise.column) * scale**2
        is_by_column = not self.is_known and (self.has_columns or scale.size > 1)
        values = {"noise_variance": variance if is_by_column else float(variance[0])}
        if not self.has_rows:
            return values
        row = noise.row / (noise.scale if self.by == "row" else 1.0)
        return values | {"row_noise": row, "row_strength": noise.row_strength}


def as_noise(noise: Any) -> Noise:
    """Return a noise model, given one or its name."""
    if isinstance(noise, Noise):
        return noise
    if isinstance(noise, str) and noise in Noise.by_name:
        return Noise.by_name[noise].named(noise)
    names = ", ".join(map(repr, Noise.by_name))
    raise ValueError(f"noise must be one of {names}, or an object of bnmf.noise such as GroupedNoise(), got {noise!r}")


# --- normal noise


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
    names = ("common",)

    def __post_init__(self) -> None:
        for name in ("shape", "scale"):
            object.__setattr__(self, name, positive(getattr(self, name), f"{name} of CommonNoise"))


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
    names = ("column", "row", "both")

    def __post_init__(self) -> None:
        self._check("column", "row", "both")

    @classmethod
    def named(cls, name: str) -> GroupedNoise:
        return cls(name)


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


# --- bounds of the precisions of rows and columns


def max_precisions(steps: Floats, variances: Any = np.inf) -> Floats:
    """Return the largest precision of rows or columns recorded in steps: rounding is noise, and a part of variances."""
    steps = np.minimum(steps, np.sqrt(12.0 * MAX_ROUNDING * rounded(variances, np.inf)))
    known = steps[steps > 0]
    steps = np.where(np.isnan(steps), np.median(known) if known.size else CONSTANT_STEP, steps)
    return np.minimum(12.0 / np.maximum(steps, 1e-9) ** 2, MAX_PRECISION)


def unexplained_variances(X: Floats) -> Floats:
    """Return the variance of each column (NaN is missing) that a linear regression on the other columns leaves."""
    # It is one over the diagonal of the inverse covariance matrix. As in the EM algorithm, missing entries are filled
    # by the regression, and the variance that it leaves is added to the covariance for each of them.
    missing = np.isnan(X)
    n_missing, counts = missing.sum(axis=0), np.maximum((~missing).sum(axis=0), 1)
    filled = np.where(missing, 0.0, X)
    filled = np.where(missing, 0.0, filled - filled.sum(axis=0) / counts)
    variance = (filled**2).sum(axis=0) / counts
    filled /= np.sqrt(np.where(variance > 0.0, variance, 1.0))
    n_rows, n_columns = X.shape
    ridge, diagonal = RIDGE_ROWS / n_rows, np.diag_indices(n_columns)
    left = size = np.ones(n_columns)
    for _ in range(FILLING_ROUNDS if n_missing.any() else 1):
        covariance = filled.T @ filled / n_rows
        covariance[diagonal] += n_missing * left / n_rows + ridge
        inverse = np.linalg.inv(covariance)
        left, size = 1.0 / inverse[diagonal], covariance[diagonal]
        for column in np.flatnonzero(n_missing):
            rows = missing[:, column]
            filled[rows, column] -= (filled[rows] @ inverse[:, column]) * left[column]
    found = np.clip((left - ridge) / size, 0.0, 1.0) * variance
    return rounded(found, 0.0)


def rounded(variances: Any, of_zero: float) -> Floats:
    """Return variances rounded to few digits; `of_zero` stands for 0."""
    powers = np.round(STEPS_PER_DOUBLING * np.log2(np.where(variances > 0.0, variances, 1.0))) / STEPS_PER_DOUBLING
    return np.where(variances > 0.0, np.exp2(powers), of_zero)
