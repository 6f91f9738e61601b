"""A run: the chains of a model, which can be continued."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np

from bnmf.model.model import Model
from bnmf.sampler import chains
from bnmf.sampler.checkpoint import SETTINGS_FILE, CheckpointError, DiskStore, describe
from bnmf.sampler.moves import MIXING, Moves
from bnmf.sampler.stores import PREDICTION, SWEEPS, RunningMoments, Schedule, Store, stored_bytes
from bnmf.utils.arguments import checkpoint_directory, whole_number
from bnmf.utils.memory import warn_if_large
from bnmf.utils.text import counted, duration, size
from bnmf.utils.typing import Floats


class Ending(StrEnum):
    """Why sampling ended."""

    COMPLETE = "complete"
    INTERRUPTED = "interrupted"
    TIME = "max_time"
    MEMORY = "memory"


class InterruptedRunWarning(UserWarning):
    """A run was interrupted by Ctrl-C, and what was drawn until then is kept."""


class Drawn(NamedTuple):
    """Results of a run, in the user's units: the same number of draws of each chain."""

    W: Floats  # (chain, draw, rows, K), or only the means (chain, rows, K)
    Z: Floats  # (chain, draw, K, columns), or only the means (chain, K, columns)
    prediction: RunningMoments | None  # the moments of W Z then
    traces: dict[str, Any]  # draws of the noise and of other quantities (chain, draw, ...)
    train_mse: Floats  # (chain, sweep): mean squared error on the observed entries, burn-in included


@dataclass(eq=False)
class Run:
    """Chains of a model that can be continued: :meth:`sampled` and :meth:`extended` return another run."""

    # Its draws are those of a single run of that length, because every sweep of every chain has its own random stream.
    # A pickled run can be continued too.

    model: Model
    seed: int
    init: Any = "random"
    moves: Moves = MIXING
    dtype: Any = np.float64
    keep_draws: bool = True
    checkpoint: Any = None
    store: Any = None
    """What was drawn, of a run that was sampled."""
    counts: Sequence[int] = ()
    """Draws of each chain: after Ctrl-C a part of what was requested."""
    is_in_time: bool = True

    def __post_init__(self) -> None:
        if self.checkpoint is not None:
            self.checkpoint = checkpoint_directory(self.checkpoint)

    def sampled(
        self, schedule: Schedule, *, n_jobs: int = 1, progress: bool | str = False, deadline: float | None = None
    ) -> Run:
        """Return a run that has been sampled to the end of a schedule, without drawing again what this one has."""
        self._warn_if_large(schedule, n_jobs)
        store = self._store_for(schedule)
        options: dict[str, Any] = {"n_jobs": n_jobs, "progress": progress, "deadline": deadline}
        began = time.monotonic()
        try:
            counts = chains.run(store, self.seed, init=self.init, moves=self.moves, **options)
        finally:
            store.close()
        is_in_time = deadline is None or time.monotonic() < deadline
        after = replace(self, store=store, counts=counts, is_in_time=is_in_time)
        if not any(counts):
            after._raise_without_draws(time.monotonic() - began)
        return after

    def extended(self, n_draws: int, *, n_jobs: int = 1, progress: bool = False, deadline: float | None = None) -> Run:
        """Return a run with more draws of every chain; those that were cut off catch up."""
        if self.checkpoint is not None and not (self.checkpoint / SETTINGS_FILE).exists():
            raise CheckpointError(
                f"checkpoint={str(self.checkpoint)!r}, which holds the states of this fit, is gone: fit again"
            )
        more = whole_number(n_draws, "n_draws", 1)
        schedule = replace(self.schedule, n_draws=self.kept[1] + more)
        return self.sampled(schedule, n_jobs=n_jobs, progress=progress, deadline=deadline)

    @property
    def schedule(self) -> Schedule:
        """Chains and draws that this run was to have."""
        schedule: Schedule = self.store.schedule
        return schedule

    @property
    def kept(self) -> tuple[list[int], int]:
        """The chains and the common number of draws that keep most draws of an interrupted run."""
        n_draws = max(self.counts, key=lambda n: n * sum(count >= n for count in self.counts))
        return [chain for chain, count in enumerate(self.counts) if count >= n_draws], n_draws

    @property
    def drawn(self) -> Drawn:
        """The draws that are kept, without a copy of the factors if all chains are."""
        kept, n_draws = self.kept
        choose: Any = slice(self.schedule.n_chains) if len(kept) == self.schedule.n_chains else kept
        arrays = dict(self.store.arrays)
        train_mse = np.array(arrays.pop(SWEEPS)[choose, : self.schedule.sweeps_for(n_draws)])
        W, Z, prediction = arrays.pop("W"), arrays.pop("Z"), arrays.pop(PREDICTION, None)
        traces = {name: np.array(array[choose, :n_draws]) for name, array in arrays.items()}
        if prediction is None:
            return Drawn(W[choose, :n_draws], Z[choose, :n_draws], None, traces, train_mse)
        counts = [self.schedule.draws_after(self.store.states[chain].sweep) for chain in kept]
        moments = RunningMoments(prediction[choose, 0], prediction[choose, 1], counts)
        return Drawn(W[choose, 0], Z[choose, 0], moments, traces, train_mse)

    @property
    def is_complete(self) -> bool:
        """Whether every chain has all its draws."""
        return all(count == self.schedule.n_draws for count in self.counts)

    @property
    def ending(self) -> Ending:
        """Why this run ended: with all its draws, by Ctrl-C, or at its deadline."""
        if self.is_complete:
            return Ending.COMPLETE
        return Ending.INTERRUPTED if self.is_in_time else Ending.TIME

    def message(self, ending: Ending) -> str:
        """Return a sentence on how sampling ended."""
        kept, n_draws = self.kept
        if ending == Ending.INTERRUPTED:
            hint = self._hint("sample_more continues from here")
            return f"interrupted: {n_draws} draws of {len(kept)} of {len(self.counts)} chains are kept; {hint}"
        drawn = f"{counted(n_draws, 'draw')} of {counted(len(kept), 'chain')}"
        return {
            Ending.COMPLETE: f"{drawn} were taken",
            Ending.TIME: f"the time was up after {drawn}",
            Ending.MEMORY: f"more than {drawn} would not fit into memory",
        }[ending]

    def _raise_without_draws(self, seconds: float) -> None:
        """Raise an error if Ctrl-C or the deadline came before the first draw of any chain."""
        hint = self._hint("with checkpoint=DIRECTORY an interrupted fit can be continued")
        if self.is_in_time:
            raise KeyboardInterrupt(f"interrupted before the first draw; {hint}")
        n_done = sum(state.sweep for state in self.store.states.values())
        n_needed = self.schedule.total_sweeps
        needed = f", and all draws need about {duration(seconds * n_needed / n_done)}" if n_done else ""
        raise TimeoutError(
            f"max_time was over before the first draw, after {n_done} of {n_needed} sweeps{needed}: allow more time, "
            f"take fewer components, or a shorter burn_in; {hint}"
        )

    def _hint(self, without_checkpoint: str) -> str:
        if self.checkpoint is None:
            return without_checkpoint
        return f"call fit again with checkpoint={str(self.checkpoint)!r} to continue"

    def _store_for(self, schedule: Schedule) -> Store:
        """Return a store with room for a schedule that holds what was drawn before."""
        if self.checkpoint is not None:
            settings = describe(self.model, self.seed, self.init, self.moves)
            return DiskStore(self.model, schedule, self.dtype, self.checkpoint, settings)
        needed = stored_bytes(self.model, schedule, self.dtype, keep_draws=self.keep_draws)
        try:
            if needed > sys.maxsize:
                raise MemoryError
            if self.store is None:
                return Store(self.model, schedule, self.dtype, keep_draws=self.keep_draws)
            grown: Store = self.store.grown(schedule)
            return grown
        except MemoryError:
            raise MemoryError(
                f"what is kept of the draws takes {size(needed)}, which this machine does not give: see whether "
                "n_components, n_chains, burn_in, n_draws and thinning are what you want; checkpoint=DIRECTORY keeps "
                "them on disk"
            ) from None

    def peak_bytes(self, schedule: Schedule, n_jobs: int) -> int:
        """Return about how much memory sampling takes in addition to the data."""
        # The state of a chain and the one before it, the factor that is read in whole vectors, and what moves try.
        n_factors = 4 * min(n_jobs, schedule.n_chains)
        kept = stored_bytes(self.model, schedule, self.dtype, keep_draws=self.keep_draws)
        return kept + 8 * n_factors * sum(self.model.data.shape) * self.model.n_components

    def _warn_if_large(self, schedule: Schedule, n_jobs: int) -> None:
        if self.checkpoint is None:
            kept, fewer = "all draws", "fewer draws, a larger thinning, draws_dtype='float32' or keep_draws=False"
            if not self.keep_draws:
                kept, fewer = "mean and variance of every entry", "fewer chains"
            warn_if_large(
                self.peak_bytes(schedule, n_jobs),
                f"keeping {kept} in memory, and sampling,",
                f"take {fewer}, or keep draws on disk with checkpoint=DIRECTORY",
            )
