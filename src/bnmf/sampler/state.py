"""The state of a chain, and what is traced of it in addition to the factors, in the user's units."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bnmf.model.model import Model, Rates
from bnmf.model.noise import NoiseState
from bnmf.utils.typing import Floats


class State(NamedTuple):
    """One state of a chain, in units of the model."""

    W: Floats  # (rows, K)
    Zt: Floats  # (columns, K)
    noise: NoiseState
    rates: Rates
    squared_error: float  # of the observed entries
    log_likelihood: float  # of the observed entries
    sweep: int  # number of sweeps so far

    @property
    def Z(self) -> Floats:
        """Z, of shape (K, columns)."""
        return self.Zt.T

    @property
    def sigma2(self) -> float:
        """The variance of common noise."""
        return float(self.noise.row[0] * self.noise.column[0])


def traced_shapes(model: Model) -> dict[str, tuple[int, ...]]:
    """Return the shape of each traced quantity of one draw, by its name in :class:`bnmf.Posterior`."""
    shapes = model.noise_model.traced_shapes(model.data.shape, model.units.by_column) | {"log_density": ()}
    for learned in model.learned_rates:
        size = model.n_components if learned.term.is_by_component else 1
        shapes |= dict.fromkeys((("rate_W", "rate_Z")[factor] for factor in learned.factors), (size,))
    return shapes


def traced_values(model: Model, state: State) -> dict[str, Floats | float]:
    """Return the traced quantities of a state."""
    scale = model.units.scale
    density = state.log_likelihood - (model.data.columns.n_observed * np.log(scale)).sum()
    values = model.noise_model.traced_values(state.noise, scale) | {"log_density": float(density)}
    for learned, rate in zip(model.learned_rates, state.rates, strict=True):
        values |= dict.fromkeys((("rate_W", "rate_Z")[factor] for factor in learned.factors), rate)
    return values


def training_mse(model: Model, state: State) -> float:
    """Return the mean squared error on the observed entries: in units of each column if the columns are scaled."""
    unit = 1.0 if model.units.by_column else float(model.units.scale[0])
    return state.squared_error / max(model.data.n_observed, 1) * (unit * unit)  # unit**2 would raise an OverflowError
