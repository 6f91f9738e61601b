"""What is kept of a state besides the factors, in the user's units."""

from __future__ import annotations

import numpy as np

from bnmf.model.model import Model
from bnmf.model.noise import KnownNoise, StudentT
from bnmf.sampler.state import State
from bnmf.utils.typing import Floats


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
