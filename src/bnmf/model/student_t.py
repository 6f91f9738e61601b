"""Student's t: normal noise with a factor of the precision of each entry, which is drawn."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaln, stdtr, stdtrit

from bnmf.model.noise import Law, Noise, NoiseState
from bnmf.utils.typing import Floats, Shape

DEGREES_OF_FREEDOM: Floats = np.array([3.0, 4.0, 6.0, 8.0, 12.0, 20.0, 40.0, 100.0])
"""Possible degrees of freedom where they are learned, each equally likely."""
MIN_DF = 0.1
"""Smallest degrees of freedom that can be given: with fewer, noise leaves the range of floating-point numbers."""


@dataclass(frozen=True)
class StudentT(Noise):
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

    names = ("student-t",)
    has_entries = True
    is_heavy_tailed = True

    def __post_init__(self) -> None:
        df = self.df
        if df is not None:
            if not (isinstance(df, (int, float, np.number)) and MIN_DF <= df < math.inf):
                raise ValueError(f"df of StudentT must be a finite number of at least {MIN_DF} or None, got {df!r}")
            object.__setattr__(self, "df", float(df))
        self._check("column", "row", "both", "common")

    @property
    def _dfs(self) -> Floats:
        return DEGREES_OF_FREEDOM if self.df is None else np.array([float(self.df)])

    def start(self, shape: Shape) -> NoiseState:
        return super().start(shape)._replace(df=float(self._dfs[len(self._dfs) // 2]))

    def update_entries(self, noise: NoiseState, squares: Floats, rng: np.random.Generator) -> NoiseState:
        """Draw the degrees of freedom without the factors, and then the factor of each entry."""
        df = noise.df
        if len(self._dfs) > 1:
            log_weights = np.array([log_student_t(squares, df).sum() for df in self._dfs])
            weights = np.exp(log_weights - log_weights.max())
            df = float(self._dfs[np.searchsorted(np.cumsum(weights), rng.uniform() * weights.sum())])
        return noise._replace(df=df, entry=_draw_factors(df, squares, rng))

    def law(self, noise: NoiseState) -> StudentTLaw:
        return StudentTLaw(np.array([noise.df]))

    def traced_values(self, noise: NoiseState, scale: Floats) -> dict[str, Floats | float]:
        return super().traced_values(noise, scale) | {"df": noise.df}


def log_student_t(squares: Floats, df: Any) -> Floats:
    """Return the log density of Student's t with scale 1, given the squares of its values."""
    constant = gammaln(0.5 * (df + 1.0)) - gammaln(0.5 * df) - 0.5 * np.log(np.pi * df)
    return constant - 0.5 * (df + 1.0) * np.log1p(squares / df)


def _draw_factors(df: float, squares: Floats, rng: np.random.Generator) -> Floats:
    """Draw the factor of the precision of each entry, given squared residuals over variances."""
    return rng.standard_gamma(0.5 * (df + 1.0), size=squares.size) / (0.5 * (df + squares))


class StudentTLaw(Law, trace="df"):
    """Student's t with degrees of freedom df (S,)."""

    has_entries = True
    spread = "scale of Student's t"

    df = property(lambda self: self.parameter)

    def describe(self, scale: str) -> str:
        return f"Student's t, scale {scale}"

    @property
    def variance(self) -> Floats:
        return np.where(self.df > 2.0, self.df / np.maximum(self.df - 2.0, 1e-300), np.inf)[:, None]

    def draw(self, shape: tuple[int, ...], rng: np.random.Generator, dtype: Any = np.float64) -> Floats:
        return rng.standard_t(self.df.reshape(-1, *[1] * (len(shape) - 1)), size=shape).astype(dtype)

    def log_density(self, squares: Floats) -> Floats:
        return log_student_t(squares, self.df[:, None])

    def log_probability(self, low: Floats, high: Floats) -> Floats:
        swapped = low + high > 0.0  # the tail that is not far out keeps its digits
        low, high, df = np.where(swapped, -high, low), np.where(swapped, -low, high), self.df[:, None]
        with np.errstate(divide="ignore"):
            return np.log(stdtr(df, high) - stdtr(df, low))

    def _draw_left(self, low: Floats, high: Floats, rng: np.random.Generator) -> Floats:
        df = self.df[:, None]
        below, above = stdtr(df, low), stdtr(df, high)
        return stdtrit(df, below + rng.uniform(size=high.shape) * (above - below))

    def _mean_beyond(self, density: Floats, limit: Floats) -> Floats:
        df = np.maximum(self.df, 1.0 + 1e-9)[:, None]  # with less there is no mean
        return density * (df + limit**2) / (df - 1.0)

    def draw_entries(self, draw: int, squares: Floats, rng: np.random.Generator) -> Floats:
        return _draw_factors(float(self.df[draw]), squares, rng)
