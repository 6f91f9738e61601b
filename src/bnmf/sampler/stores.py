"""How long to sample, and where the states of a run go: all draws in memory, or only their moments."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from bnmf.model.model import Model
from bnmf.sampler.gibbs import State
from bnmf.utils.arguments import whole_number
from bnmf.utils.typing import Array, Floats, Shape


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

    def sweeps_for(self, n_draws: int) -> int:
        """Return how many sweeps a chain needs for `n_draws` draws."""
        return self.burn_in + n_draws * self.thinning

    def draws_after(self, sweep: int) -> int:
        """Return how many draws a chain has kept after `sweep` sweeps."""
        return max(sweep - self.burn_in, 0) // self.thinning

    def keeps(self, sweep: int) -> bool:
        """Return whether the state after `sweep` sweeps is kept."""
        return sweep > self.burn_in and (sweep - self.burn_in) % self.thinning == 0


def stored_bytes(model: Model, schedule: Schedule, dtype: Any) -> int:
    """Return the size in bytes of everything that is kept of a run; with no `dtype`, without the draws of factors."""
    entries = 0 if dtype is None else sum(model.data.shape) * model.n_components * np.dtype(dtype).itemsize
    traced = sum(math.prod(shape) for shape in traced_shapes(model).values())
    return schedule.n_chains * (schedule.n_draws * (entries + 8 * traced) + 8 * schedule.n_sweeps)


def traced_shapes(model: Model) -> dict[str, tuple[int, ...]]:
    """Return the shape of each traced quantity of one draw, by its name in :class:`bnmf.Posterior`."""
    none = np.empty((0, 0))
    start = State(none, none, model.noise_model.start(model.data.shape), model.starting_rates, 0.0, 0.0, 0)
    return {name: np.shape(value) for name, value in traced_values(model, start).items()}


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
    """Receives the state of every chain after every sweep; subclasses decide what is kept of the factors."""

    # `traces` has draws of the noise and of other quantities, with leading axes (chain, draw); `train_mse` (chain,
    # sweep) the mean squared error after every sweep, NaN for those to come; `states` the last state of each chain that
    # has begun.

    def __init__(self, model: Model, schedule: Schedule) -> None:
        self.model = model
        self.states: dict[int, State] = {}
        self._arrays: dict[str, Array] = {}
        self._take(schedule)

    def grown(self, schedule: Schedule) -> Self:
        """Return a store for more chains or draws that holds what this one does; this one stays as it is."""
        other = copy.copy(self)
        other.states, other._arrays = dict(self.states), dict(self._arrays)
        other._take(schedule)
        return other

    def _take(self, schedule: Schedule) -> None:
        """Make room for a schedule; what was recorded stays."""
        self.schedule = schedule
        draws = (schedule.n_chains, schedule.n_draws)
        shapes = traced_shapes(self.model)
        self.traces = {name: self.allocate(name, (*draws, *shape)) for name, shape in shapes.items()}
        self.train_mse: Floats = self.allocate("train_mse", (schedule.n_chains, schedule.n_sweeps), fill=np.nan)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what only refers to parts of the arrays, so that a pickle holds each number once."""
        return {
            name: value for name, value in vars(self).items() if name != "traces" and not isinstance(value, np.ndarray)
        }

    def __setstate__(self, content: dict[str, Any]) -> None:
        self.__dict__.update(content)
        self._take(self.schedule)

    def allocate(self, name: str, shape: tuple[int, ...], dtype: Any = np.float64, fill: float = 0.0) -> Array:
        """Return the array of one quantity of the whole run, with what was recorded of it before."""
        array = self._existing(name, shape, dtype)
        if array is None:
            array = self._create(name, shape, dtype, fill)
        elif array.shape[0] < shape[0] or array.shape[1] < shape[1]:
            # After an interruption there may be more of the old run than the new one is to have.
            larger = max(array.shape[0], shape[0]), max(array.shape[1], shape[1]), *shape[2:]
            array = self._create(name, larger, dtype, fill, array)
        self._arrays[name] = array
        return array[: shape[0], : shape[1]]

    def _existing(self, name: str, shape: tuple[int, ...], dtype: Any) -> Array | None:
        """Return the stored array of a quantity, which may have fewer or more chains and draws."""
        return self._arrays.get(name)

    def _create(self, name: str, shape: tuple[int, ...], dtype: Any, fill: float, old: Array | None = None) -> Array:
        """Return a new array of a quantity, with the content of a smaller one."""
        array = np.full(shape, fill, dtype) if fill else np.zeros(shape, dtype)
        if old is not None:
            array[: old.shape[0], : old.shape[1]] = old
        return array

    def resume(self, chain: int) -> State | None:
        """Return the state that a chain continues from, or None for a new chain."""
        return self.states.get(chain)

    def record(self, chain: int, state: State) -> None:
        """Take the state after a sweep."""
        self.states[chain] = state
        self.train_mse[chain, state.sweep - 1] = training_mse(self.model, state)
        if self.schedule.keeps(state.sweep):
            draw = self.schedule.draws_after(state.sweep) - 1
            for name, value in traced_values(self.model, state).items():
                self.traces[name][chain, draw] = value
            self.keep(chain, draw, state.W, state.Z * self.model.units.scale)

    def keep(self, chain: int, draw: int, W: Floats, Z: Floats) -> None:
        """Keep the factors of a draw, in the user's units."""
        raise NotImplementedError

    def checkpoint(self, chain: int, state: State) -> None:
        """Make everything up to this state durable; nothing to do in memory."""

    def close(self) -> None:
        """Release what the store holds besides memory."""


class DrawStore(Store):
    """Keeps every draw in memory: W (chain, draw, rows, K) and Z (chain, draw, K, columns)."""

    def __init__(self, model: Model, schedule: Schedule, dtype: Any = np.float64) -> None:
        self.dtype = np.dtype(dtype)
        super().__init__(model, schedule)

    def _take(self, schedule: Schedule) -> None:
        super()._take(schedule)
        (rows, columns), k = self.model.data.shape, self.model.n_components
        draws = (schedule.n_chains, schedule.n_draws)
        self.W = self.allocate("W", (*draws, rows, k), self.dtype)
        self.Z = self.allocate("Z", (*draws, k, columns), self.dtype)

    def keep(self, chain: int, draw: int, W: Floats, Z: Floats) -> None:
        """Keep the factors of a draw."""
        self.W[chain, draw] = W
        self.Z[chain, draw] = Z


class RunningMoments:
    """Mean and sum of squared deviations of a matrix, updated draw by draw for each chain (Welford's algorithm)."""

    def __init__(self, n_chains: int, shape: Shape) -> None:
        self.mean = np.zeros((n_chains, *shape))
        self.squares = np.zeros((n_chains, *shape))
        self.counts = np.zeros(n_chains, np.int64)

    def grown(self, n_chains: int) -> RunningMoments:
        """Return a copy with room for at least so many chains."""
        other = RunningMoments(max(n_chains, len(self.counts)), self.mean.shape[1:])
        for old, new in ((self.mean, other.mean), (self.squares, other.squares), (self.counts, other.counts)):
            new[: len(old)] = old
        return other

    def of(self, chains: Any) -> RunningMoments:
        """Return the moments of some chains."""
        other = copy.copy(self)
        other.mean, other.squares, other.counts = self.mean[chains], self.squares[chains], self.counts[chains]
        return other

    def add(self, chain: int, draw: int, value: Floats) -> None:
        """Add a draw, the first of a chain being number 0."""
        mean = self.mean[chain]
        difference = value - mean
        self.counts[chain] = draw + 1
        mean += difference / (draw + 1)
        self.squares[chain] += difference * (value - mean)


class MomentStore(Store):
    """Keeps running moments of W Z, W and Z in place of the draws."""

    def __init__(self, model: Model, schedule: Schedule) -> None:
        (rows, columns), k = model.data.shape, model.n_components
        self.prediction, self.W, self.Z = (RunningMoments(0, s) for s in ((rows, columns), (rows, k), (k, columns)))
        super().__init__(model, schedule)

    def _take(self, schedule: Schedule) -> None:
        super()._take(schedule)
        self.prediction, self.W, self.Z = (m.grown(schedule.n_chains) for m in (self.prediction, self.W, self.Z))

    def keep(self, chain: int, draw: int, W: Floats, Z: Floats) -> None:
        """Add a draw to the moments."""
        self.prediction.add(chain, draw, W @ Z)
        self.W.add(chain, draw, W)
        self.Z.add(chain, draw, Z)
