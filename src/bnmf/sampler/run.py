"""A run: the chains of a model, which can be continued."""

from __future__ import annotations

import copy
import sys
import time
from dataclasses import replace
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np

from bnmf.model.model import Model
from bnmf.sampler import chains
from bnmf.sampler.checkpoint import SETTINGS_FILE, CheckpointError, DiskStore, describe
from bnmf.sampler.moves import MIXING, Moves
from bnmf.sampler.stores import DrawStore, MomentStore, RunningMoments, Schedule, stored_bytes
from bnmf.utils.arguments import checkpoint_directory
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

    W: Any  # (chain, draw, rows, K), or only the moments
    Z: Any  # (chain, draw, K, columns), or only the moments
    prediction: RunningMoments | None  # the moments of W Z then
    traces: dict[str, Any]  # draws of the noise and of other quantities (chain, draw, ...)
    train_mse: Floats  # (chain, sweep): mean squared error on the observed entries, burn-in included


class Run:
    """Chains of a model that can be continued: :meth:`sampled` and :meth:`extended` return another run."""

    # Its draws are those of a single run of that length, because every sweep of every chain has its own random stream.
    # A pickled run can be continued too.

    # Of a run that was sampled:
    schedule: Schedule  # that it was to have
    counts: list[int]  # draws of each chain
    drawn: Drawn  # what is kept of them: after Ctrl-C a part of what was requested
    _is_in_time: bool

    def __init__(
        self,
        model: Model,
        seed: int,
        *,
        init: Any = "random",
        moves: Moves = MIXING,
        dtype: Any = np.float64,
        keep_draws: bool = True,
        checkpoint: Any = None,
    ) -> None:
        self.model, self.seed, self.init, self.moves = model, seed, init, moves
        self.dtype, self.keep_draws = dtype, keep_draws
        self.checkpoint = None if checkpoint is None else checkpoint_directory(checkpoint)
        self._store: DrawStore | MomentStore | None = None

    def sampled(
        self, schedule: Schedule, *, n_jobs: int = 1, progress: bool | str = False, deadline: float | None = None
    ) -> Run:
        """Return a run that has been sampled to the end of a schedule, without drawing again what this one has."""
        self._warn_if_large(schedule, n_jobs)
        store = self._store_for(schedule)
        options = {"init": self.init, "moves": self.moves, "n_jobs": n_jobs, "progress": progress}
        began = time.monotonic()
        try:
            counts = chains.run(self.model, schedule, store, self.seed, **options, deadline=deadline)
        finally:
            store.close()
        after = copy.copy(self)
        after._store = None if isinstance(store, DiskStore) else store
        after.schedule, after.counts = schedule, counts
        after._is_in_time = deadline is None or time.monotonic() < deadline
        if not any(counts):
            after._raise_without_draws(store, time.monotonic() - began)
        after.drawn = after._drawn(store)
        return after

    def extended(self, n_draws: int, *, n_jobs: int = 1, progress: bool = False, deadline: float | None = None) -> Run:
        """Return a run with more draws of every chain; those that were cut off catch up."""
        if self.checkpoint is not None and not (self.checkpoint / SETTINGS_FILE).exists():
            raise CheckpointError(
                f"checkpoint={str(self.checkpoint)!r}, which holds the states of this fit, is gone: fit again"
            )
        more = replace(self.schedule, n_draws=n_draws).n_draws  # checks it
        schedule = replace(self.schedule, n_draws=self.kept[1] + more)
        return self.sampled(schedule, n_jobs=n_jobs, progress=progress, deadline=deadline)

    @property
    def kept(self) -> tuple[list[int], int]:
        """The chains that are kept, and the number of draws of each."""
        return chains.largest_block(self.counts)

    @property
    def is_complete(self) -> bool:
        """Whether every chain has all its draws."""
        return all(count == self.schedule.n_draws for count in self.counts)

    @property
    def ending(self) -> Ending:
        """Why this run ended: with all its draws, by Ctrl-C, or at its deadline."""
        if self.is_complete:
            return Ending.COMPLETE
        return Ending.INTERRUPTED if self._is_in_time else Ending.TIME

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

    def _raise_without_draws(self, store: DrawStore | MomentStore, seconds: float) -> None:
        """Raise an error if Ctrl-C or the deadline came before the first draw of any chain."""
        hint = self._hint("with checkpoint=DIRECTORY an interrupted fit can be continued")
        if self._is_in_time:
            raise KeyboardInterrupt(f"interrupted before the first draw; {hint}")
        n_done = sum(state.sweep for state in store.states.values())
        n_needed = self.schedule.n_chains * self.schedule.n_sweeps
        needed = f", and all draws need about {duration(seconds * n_needed / n_done)}" if n_done else ""
        raise TimeoutError(
            f"max_time was over before the first draw, after {n_done} of {n_needed} sweeps{needed}: allow more time, "
            f"take fewer components, or a shorter burn_in; {hint}"
        )

    def _hint(self, without_checkpoint: str) -> str:
        if self.checkpoint is None:
            return without_checkpoint
        return f"call fit again with checkpoint={str(self.checkpoint)!r} to continue"

    def _store_for(self, schedule: Schedule) -> DrawStore | MomentStore:
        if self.checkpoint is not None:
            settings = describe(self.model, self.seed, self.init, self.moves)
            return DiskStore(self.model, schedule, self.dtype, self.checkpoint, settings)
        needed = stored_bytes(self.model, schedule, self.dtype if self.keep_draws else None)
        try:
            if needed > sys.maxsize:
                raise MemoryError
            if self._store is not None:
                return self._store.grown(schedule)
            return DrawStore(self.model, schedule, self.dtype) if self.keep_draws else MomentStore(self.model, schedule)
        except MemoryError:
            raise MemoryError(
                f"what is kept of the draws takes {size(needed)}, which this machine does not give: see whether "
                "n_components, n_chains, burn_in, n_draws and thinning are what you want; checkpoint=DIRECTORY keeps "
                "them on disk"
            ) from None

    def _drawn(self, store: DrawStore | MomentStore) -> Drawn:
        """Return the draws that are kept, without a copy of the factors if all chains are."""
        kept, n_draws = self.kept
        choose: Any = slice(None) if len(kept) == self.schedule.n_chains else kept
        traces = {name: np.array(trace[choose, :n_draws]) for name, trace in store.traces.items()}
        train_mse = np.array(store.train_mse[choose, : self.schedule.sweeps_for(n_draws)])
        if isinstance(store, MomentStore):
            W, Z, prediction = (moments.of(choose) for moments in (store.W, store.Z, store.prediction))
            return Drawn(W, Z, prediction, traces, train_mse)
        draws = store.W[choose, :n_draws], store.Z[choose, :n_draws]
        if isinstance(store, DiskStore):  # whose files must stay as their checksums say
            draws[0].flags.writeable = draws[1].flags.writeable = False
        return Drawn(*draws, None, traces, train_mse)

    def peak_bytes(self, schedule: Schedule, n_jobs: int) -> int:
        """Return about how much memory sampling takes that keeps all draws there, in addition to the data."""
        # The state of a chain and the one before it, the factor that is read in whole vectors, and what moves try.
        n_factors = 4 * min(n_jobs, schedule.n_chains)
        working = 8 * n_factors * sum(self.model.data.shape) * self.model.n_components
        return stored_bytes(self.model, schedule, self.dtype) + working

    def _warn_if_large(self, schedule: Schedule, n_jobs: int) -> None:
        if not self.keep_draws:
            warn_if_large(
                schedule.n_chains * 2 * 8 * self.model.data.shape[0] * self.model.data.shape[1],
                "keeping mean and variance of every entry",
                "use fewer chains, or keep some draws on disk with checkpoint=DIRECTORY",
            )
        elif self.checkpoint is None:
            warn_if_large(
                self.peak_bytes(schedule, n_jobs),
                "keeping all draws in memory, and sampling,",
                "take fewer draws or a larger thinning, draws_dtype='float32', keep them on disk with "
                "checkpoint=DIRECTORY, or keep only means and variances with keep_draws=False",
            )

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the draws if the store holds them."""
        content = vars(self).copy()
        if self._store is not None:
            content.pop("drawn", None)
        return content

    def __setstate__(self, content: dict[str, Any]) -> None:
        self.__dict__.update(content)
        if self._store is not None:
            self.drawn = self._drawn(self._store)
