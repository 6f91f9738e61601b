"""Base classes of noise models: a state, a law of the noise, its prior and conditional draws.

A new noise model is a subclass of `Noise` in a new file, with a subclass of `Law` if its noise is not normal.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bnmf.data.limits import log_normal_mass
from bnmf.kernels.compiled import draw_within
from bnmf.utils.typing import Array, Floats, Indices, Ints, Key, Shape

NO_ENTRIES, ONE = np.empty(0), np.ones(1)


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
    """The law of noise of scale 1 under each of S draws, with parameters where tails are heavier: the normal law."""

    has_entries: ClassVar[bool] = False
    """Whether it is normal given a factor of the precision of each entry, which is drawn."""
    has_outliers: ClassVar[bool] = False
    """Whether that factor is one of two, for entries with and without a gross error."""
    spread: ClassVar[str] = "sd"
    """What the root of a variance is, in words."""
    of_trace: ClassVar[dict[str, type[Law]]] = {}

    def __init_subclass__(cls, trace: str) -> None:
        """Register the law of draws that have a trace of this name, its parameter."""
        Law.of_trace[trace] = cls

    @staticmethod
    def of(traces: Mapping[str, Any]) -> Law:
        """Return the law of draws, given those of its parameter (chain, draw, ...) by name."""
        for name, law in Law.of_trace.items():
            if (draws := traces.get(name)) is not None:
                return law(np.reshape(draws, (-1, *np.shape(draws)[2:])))  # type: ignore[call-arg]
        return Law()

    def describe(self, scale: str) -> str:
        """Return the noise in words, given those of its scale."""
        return scale

    def choose(self, draws: Any) -> Law:
        """Return the law of some of the draws."""
        return self

    def at(self, columns: Indices) -> Law:
        """Return the law at some entries, given their columns."""
        return self

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


class Noise(ABC):
    """A noise model: its prior, its conditional draws, and what the rest of the program must know about it."""

    names: ClassVar[tuple[str, ...]] = ()
    """Its names, as values of the parameter `noise`."""
    has_rows: bool = False
    has_columns: bool = False
    has_entries: ClassVar[bool] = False
    """Whether each entry has a factor of its precision that is drawn (:meth:`update_entries`)."""
    has_outliers: ClassVar[bool] = False
    """Whether rare entries have a gross error, which is drawn (:meth:`update_share`)."""
    is_known: ClassVar[bool] = False
    """Whether nothing is learned: standard errors must be given."""
    is_heavy_tailed: ClassVar[bool] = False
    """Whether single entries may be far off, so that they neither set the unit of a column nor count as a fault."""
    floor: float = 0.0
    """Smallest noise of a column, as a fraction of what the other columns leave unexplained."""
    by_name: ClassVar[dict[str, type[Noise]]] = {}

    def __init_subclass__(cls) -> None:
        Noise.by_name |= dict.fromkeys(cls.names, cls)

    @classmethod
    def named(cls, name: str) -> Noise:
        """Return the model of one of the names."""
        return cls()

    @property
    def halves(self) -> tuple[str, str]:
        """Order of the half-sweeps: the last one yields the errors that the variances are drawn from."""
        return ("Z", "W") if self.has_rows and not self.has_columns else ("W", "Z")

    @property
    def updated_after(self) -> tuple[str, ...]:
        """The half-sweeps after which variances are drawn."""
        return ("W", "Z") if self.has_rows and self.has_columns else self.halves[1:]

    @property
    def shared(self) -> Noise:
        """The noise of the first sweeps of a chain, whose variances are nearly equal."""
        return self

    @abstractmethod
    def start(self, shape: Shape) -> NoiseState:
        """Return a state to start from."""

    @abstractmethod
    def update(
        self, half: str, noise: NoiseState, errors: Floats, counts: Ints, bounds: Floats, key: Key
    ) -> NoiseState:
        """Draw what a half-sweep ("W" or "Z") tells about the noise."""
        # `errors` are the squared errors of each row (after W) or column (after Z), divided by the variances of the
        # other side, `counts` the observed entries of each, and `bounds` their largest precisions. `key` is that of the
        # random stream to draw from.

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

    def log_law(self, squares: Floats, noise: NoiseState) -> Floats:
        """Return the log density of noise of scale 1 without factors of entries, given its squares."""
        return -0.5 * (squares + math.log(2.0 * math.pi))

    def traced_values(self, noise: NoiseState, scale: Floats) -> dict[str, Floats | float]:
        """Return the values that are kept of a draw, in the user's units, given the units of the data."""
        by_row = self.has_rows and not self.has_columns
        # Factors of entries are their standard errors if those are known.
        variance = np.ones(1) if self.is_known else (noise.scale if by_row else noise.column) * scale**2
        is_by_column = not self.is_known and (self.has_columns or scale.size > 1)
        values = {"noise_variance": variance if is_by_column else float(variance[0])}
        if not self.has_rows:
            return values
        return values | {"row_noise": noise.row / (noise.scale if by_row else 1.0), "row_strength": noise.row_strength}


def as_noise(noise: Any) -> Noise:
    """Return a noise model, given one or its name."""
    if isinstance(noise, Noise):
        return noise
    if isinstance(noise, str) and noise in Noise.by_name:
        return Noise.by_name[noise].named(noise)
    names = ", ".join(map(repr, Noise.by_name))
    raise ValueError(f"noise must be one of {names}, or an object of bnmf.noise such as GroupedNoise(), got {noise!r}")
