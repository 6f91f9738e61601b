"""Where the states of a run go: all draws in memory, or only their moments. Draws on disk: see `checkpoint`."""

from __future__ import annotations

from typing import Any

import numpy as np

from bnmf.model.model import Model
from bnmf.sampler.recorded import traced_shapes, traced_values, training_mse
from bnmf.sampler.schedule import Schedule
from bnmf.sampler.state import State
from bnmf.utils.typing import Array, Floats, Shape


def draw_bytes(model: Model, schedule: Schedule, dtype: Any) -> int:
    """Return the size of all draws of a run in bytes."""
    entries = sum(model.data.shape) * model.n_components
    return schedule.n_chains * schedule.n_draws * entries * np.dtype(dtype).itemsize


class Store:
    """Receives the state of every chain after every sweep. Subclasses decide what is kept of the factors.

    Parameters
    ----------
    model : Model
        What is sampled from.
    schedule : Schedule
        How long.

    Attributes
    ----------
    traces : dict of str to ndarray with leading axes (chain, draw)
        Draws of the noise and of other quantities; see :mod:`bnmf.sampler.recorded`.
    train_mse : ndarray of shape (chain, sweep)
        Mean squared error on the observed entries after every sweep, burn-in included; NaN for later sweeps.
    """

    def __init__(self, model: Model, schedule: Schedule) -> None:
        self.model = model
        self.schedule = schedule
        draws = (schedule.n_chains, schedule.n_draws)
        self.traces = {name: self.allocate(name, (*draws, *shape)) for name, shape in traced_shapes(model).items()}
        self.train_mse: Floats = self.allocate("train_mse", (schedule.n_chains, schedule.n_sweeps), fill=np.nan)

    def allocate(self, name: str, shape: tuple[int, ...], dtype: Any = np.float64, fill: float = 0.0) -> Array:
        """Return the array that holds one quantity of the whole run."""
        return np.full(shape, fill, dtype) if fill else np.zeros(shape, dtype)

    def resume(self, chain: int) -> State | None:
        """Return the state that a chain continues from, or None for a new chain."""
        return None

    def record(self, chain: int, state: State) -> None:
        """Take the state after a sweep."""
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
    """Keeps every draw in memory.

    Parameters
    ----------
    model : Model
        What is sampled from.
    schedule : Schedule
        How long.
    dtype : dtype, default=float64
        Precision of the draws.

    Attributes
    ----------
    W, Z : ndarray of shape (chain, draw, rows, K) and (chain, draw, K, columns)
        The draws.
    """

    def __init__(self, model: Model, schedule: Schedule, dtype: Any = np.float64) -> None:
        super().__init__(model, schedule)
        (rows, columns), k = model.data.shape, model.n_components
        draws = (schedule.n_chains, schedule.n_draws)
        self.W = self.allocate("W", (*draws, rows, k), dtype)
        self.Z = self.allocate("Z", (*draws, k, columns), dtype)

    def keep(self, chain: int, draw: int, W: Floats, Z: Floats) -> None:
        """Keep the factors of a draw."""
        self.W[chain, draw] = W
        self.Z[chain, draw] = Z


class RunningMoments:
    """Mean and sum of squared deviations of a matrix, updated draw by draw for each chain (Welford's algorithm).

    Parameters
    ----------
    n_chains : int
        Number of chains.
    shape : tuple of int
        Shape of the matrix.
    """

    def __init__(self, n_chains: int, shape: Shape) -> None:
        self.mean = np.zeros((n_chains, *shape))
        self.squares = np.zeros((n_chains, *shape))
        self.counts = np.zeros(n_chains, np.int64)

    def add(self, chain: int, draw: int, value: Floats) -> None:
        """Add a draw, the first of a chain being number 0."""
        mean = self.mean[chain]
        difference = value - mean
        self.counts[chain] = draw + 1
        mean += difference / (draw + 1)
        self.squares[chain] += difference * (value - mean)


class MomentStore(Store):
    """Keeps running moments of W Z, W and Z in place of the draws.

    Parameters
    ----------
    model : Model
        What is sampled from.
    schedule : Schedule
        How long.

    Attributes
    ----------
    prediction, W, Z : RunningMoments
        Moments of the products W Z (rows, columns) and of the factors.
    """

    def __init__(self, model: Model, schedule: Schedule) -> None:
        super().__init__(model, schedule)
        (rows, columns), k = model.data.shape, model.n_components
        self.prediction = RunningMoments(schedule.n_chains, (rows, columns))
        self.W = RunningMoments(schedule.n_chains, (rows, k))
        self.Z = RunningMoments(schedule.n_chains, (k, columns))

    def keep(self, chain: int, draw: int, W: Floats, Z: Floats) -> None:
        """Add a draw to the moments."""
        self.prediction.add(chain, draw, W @ Z)
        self.W.add(chain, draw, W)
        self.Z.add(chain, draw, Z)
