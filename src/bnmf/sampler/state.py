"""The state of a chain, and what is traced of it beside the factors, in the user's units."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bnmf.model.model import Model, Rates
from bnmf.model.noise import KnownNoise, NoiseState, StudentT
from bnmf.utils.typing import Floats


class State(NamedTuple):
    """One state of a chain, in units of the model.

    Attributes
    ----------
    W, Zt : ndarray of shape (rows, K) and (columns, K)
        The factors; Zt is Z transposed.
    noise : NoiseState
        Variances of the noise.
    rates : tuple of ndarray
        Learned rates of the priors.
    squared_error : float
        Σ (a - w z)² over the observed entries.
    log_likelihood : float
        Log density of the observed entries.
    sweep : int
        Number of sweeps so far.
    """

    W: Floats
    Zt: Floats
    noise: NoiseState
    rates: Rates
    squared_error: float
    log_likelihood: float
    sweep: int

    @property
    def Z(self) -> Floats:
        """Z, of shape (K, columns)."""
        return self.Zt.T

    @property
    def sigma2(self) -> float:
        """The variance of common noise."""
        return float(self.noise.row[0] * self.noise.column[0])


def traced_shapes(model: Model) -> dict[str, tuple[int, ...]]:
    """Return the shape of each traced quantity of one draw, by its name in :class:`bnmf.posterior.draws.Draws`."""
    n_rows, n_columns = model.data.shape
    by = model.noise_model.by
    is_known = isinstance(model.noise_model, KnownNoise)
    by_column = not is_known and (by in ("column", "both") or model.units.by_column)
    shapes: dict[str, tuple[int, ...]] = {"noise_variance": (n_columns,) if by_column else (), "log_density": ()}
    if by in ("row", "both"):
        shapes |= {"row_noise": (n_rows,), "row_strength": ()}
    if isinstance(model.noise_model, StudentT):
        shapes["df"] = ()
    for learned in model.learned_rates:
        size = model.n_components if learned.term.is_by_component else 1
        shapes |= dict.fromkeys((("rate_W", "rate_Z")[factor] for factor in learned.factors), (size,))
    return shapes


def traced_values(model: Model, state: State) -> dict[str, Floats | float]:
    """Return the traced quantities of a state."""
    noise, scale = state.noise, model.units.scale
    by_row = model.noise_model.by == "row"
    if isinstance(model.noise_model, KnownNoise):
        variance = np.ones(1)  # the factors of entries are their standard errors
    else:
        variance = (noise.scale if by_row else noise.column) * scale**2
    density = state.log_likelihood - (model.data.columns.n_observed * np.log(scale)).sum()
    values: dict[str, Floats | float] = {
        "noise_variance": variance if np.size(variance) > 1 else float(variance[0]),
        "log_density": float(density),
    }
    if noise.row.size > 1 or noise.row_strength:
        values |= {"row_noise": noise.row / (noise.scale if by_row else 1.0), "row_strength": noise.row_strength}
    if noise.df:
        values["df"] = noise.df
    for learned, rate in zip(model.learned_rates, state.rates, strict=True):
        values |= dict.fromkeys((("rate_W", "rate_Z")[factor] for factor in learned.factors), rate)
    return values


def training_mse(model: Model, state: State) -> float:
    """Return the mean squared error on the observed entries: in units of each column if the columns are scaled."""
    unit = 1.0 if model.units.by_column else float(model.units.scale[0])
    return state.squared_error / max(model.data.n_observed, 1) * (unit * unit)  # unit**2 would raise an OverflowError
