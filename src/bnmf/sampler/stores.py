"""How long to sample, and what is kept of the states of a run: all draws, or only their moments."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from bnmf.model.model import Model
from bnmf.sampler.gibbs import State
from bnmf.utils.arguments import whole_number
from bnmf.utils.typing import Array, Floats

SWEEPS = "train_mse"
"""The quantity that has a value for each sweep; all others have one for each kept draw."""
PREDICTION = "prediction"
"""The moments of W Z."""


@dataclass(frozen=True)
class Schedule:
    """Number of chains, sweeps that each discards first, draws that it keeps, and sweeps from one draw to the next."""

    n_chains: int = 4
    burn_in: int = 300
    n_draws: int = 200
    thinning: int = 1

    def __post_init__(self) -> None:
        for name, lowest in (("n_chains", 1), ("burn_in", 0), ("n_draws", 1), ("thinning", 1)):
            object.__setattr__(self, name, whole_number(getattr(self, name), name, lowest))

    @property
    def n_sweeps(self) -> int:
        """Sweeps of one chain."""
        return self.sweeps_for(self.n_draws)

    @property
    def total_sweeps(self) -> int:
        """Sweeps of all chains."""
        return self.n_chains * self.n_sweeps

    def sweeps_for(self, n_draws: int) -> int:
        """Return how many sweeps a chain needs for `n_draws` draws."""
        return self.burn_in + n_draws * self.thinning

    def draws_after(self, sweep: int) -> int:
        """Return how many draws a chain has kept after `sweep` sweeps."""
        return max(sweep - self.burn_in, 0) // self.thinning

    def keeps(self, sweep: int) -> bool:
        """Return whether the state after `sweep` sweeps is kept."""
        return sweep > self.burn_in and (sweep - self.burn_in) % self.thinning == 0


class Quantity(NamedTuple):
    """Shape and type of an array that is kept of a run."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


def quantities(model: Model, schedule: Schedule, dtype: Any, *, keep_draws: bool = True) -> dict[str, Quantity]:
    """Return what is kept of a run, by its name in :class:`bnmf.Posterior`; `dtype` is that of draws of the factors."""
    numbers, none = np.dtype(np.float64), np.empty((0, 0))
    start = State(none, none, model.noise_model.start(model.data.shape), model.starting_rates, 0.0, 0.0, 0)
    (n_rows, n_columns), k = model.data.shape, model.n_components
    draws = schedule.n_chains, schedule.n_draws
    found = {name: Quantity((*draws, *np.shape(value)), numbers) for name, value in traced_values(model, start).items()}
    found[SWEEPS] = Quantity((schedule.n_chains, schedule.n_sweeps), numbers)
    factors = {"W": (n_rows, k), "Z": (k, n_columns)}
    if keep_draws:
        return found | {name: Quantity((*draws, *shape), np.dtype(dtype)) for name, shape in factors.items()}
    moments = factors | {PREDICTION: (n_rows, n_columns)}
    return found | {name: Quantity((schedule.n_chains, 2, *shape), numbers) for name, shape in moments.items()}


def stored_bytes(model: Model, schedule: Schedule, dtype: Any, *, keep_draws: bool = True) -> int:
    """Return the size of what is kept of a run."""
    found = quantities(model, schedule, dtype, keep_draws=keep_draws).values()
    return sum(math.prod(shape) * kind.itemsize for shape, kind in found)


def traced_values(model: Model, state: State) -> dict[str, Floats | float]:
    """Return what is traced of a state in addition to the factors, in the user's units."""
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


class Store:
    """What is kept of a run in memory: draws, or only their moments, and the last state of each chain."""

    # `arrays` have an axis for the chains and one for the draws, in the user's units; there may be more of both than
    # the schedule has, of a run that was to be longer. `train_mse` has an axis for the sweeps in place of the draws.
    # Moments have means and sums of squared deviations there, updated draw by draw.

    def __init__(self, model: Model, schedule: Schedule, dtype: Any = np.float64, *, keep_draws: bool = True) -> None:
        self.model, self.schedule, self.dtype, self.keep_draws = model, schedule, dtype, keep_draws
        self.states: dict[int, State] = {}
        self.arrays: dict[str, Array] = {}
        self._allocate()

    def grown(self, schedule: Schedule) -> Self:
        """Return a store for more chains or draws that holds what this one does; this one stays as it is."""
        other = copy.copy(self)
        other.schedule, other.states = schedule, dict(self.states)
        other._allocate()
        return other

    def _allocate(self) -> None:
        """Make room for the schedule; what was recorded stays."""
        wanted = quantities(self.model, self.schedule, self.dtype, keep_draws=self.keep_draws)
        self.arrays = {name: self._allocated(name, quantity) for name, quantity in wanted.items()}

    def _allocated(self, name: str, wanted: Quantity) -> Array:
        """Return a new array of a quantity with what was recorded of it before."""
        old = self.arrays.get(name)
        array = np.zeros(wanted.shape if old is None else larger(wanted.shape, old.shape), wanted.dtype)
        if old is not None:
            array[: old.shape[0], : old.shape[1]] = old
        return array

    @property
    def sweeps(self) -> list[int]:
        """Sweeps of each chain so far."""
        chains = range(self.schedule.n_chains)
        return [self.states[chain].sweep if chain in self.states else 0 for chain in chains]

    def record(self, chain: int, state: State) -> None:
        """Take the state after a sweep."""
        self.states[chain] = state
        self.arrays[SWEEPS][chain, state.sweep - 1] = training_mse(self.model, state)
        if not self.schedule.keeps(state.sweep):
            return
        draw = self.schedule.draws_after(state.sweep) - 1
        factors = {"W": state.W, "Z": state.Z * self.model.units.scale}
        values: dict[str, Any] = traced_values(self.model, state)
        if self.keep_draws:
            values |= factors
        else:
            factors[PREDICTION] = factors["W"] @ factors["Z"]
            for name, factor in factors.items():
                add_to_moments(self.arrays[name][chain], draw, factor)
        for name, value in values.items():
            self.arrays[name][chain, draw] = value

    def checkpoint(self, chain: int, state: State) -> None:
        """Make everything up to this state durable; nothing to do in memory."""

    def close(self) -> None:
        """Release what the store holds besides memory."""


def larger(shape: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape with room for both: after an interruption there may be more of the old run than of the new."""
    return max(shape[0], other[0]), max(shape[1], other[1]), *shape[2:]


def add_to_moments(moments: Floats, draw: int, value: Floats) -> None:
    """Add a draw, the first being number 0, to a mean and a sum of squared deviations (Welford's algorithm)."""
    mean, squares = moments
    difference = value - mean
    mean += difference / (draw + 1)
    squares += difference * (value - mean)


class RunningMoments(NamedTuple):
    """Mean and sum of squared deviations of a matrix over the draws of each chain, and how many these are."""

    mean: Floats
    squares: Floats
    counts: list[int]
