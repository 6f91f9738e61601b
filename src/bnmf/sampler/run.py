"""From a model to its posterior: sample, return what was drawn, and go on from there."""

from __future__ import annotations

import copy
import math
import sys
import time
import warnings
from dataclasses import replace
from enum import StrEnum
from typing import Any

import numpy as np

from bnmf.data.identity import row_ids
from bnmf.data.observed import ObservedMatrix
from bnmf.model.model import Model
from bnmf.model.units import NO_UNITS
from bnmf.posterior import notes
from bnmf.posterior.calibration import Calibration
from bnmf.posterior.moments import Moments
from bnmf.posterior.posterior import Posterior
from bnmf.sampler import chains
from bnmf.sampler.checkpoint import SETTINGS_FILE, CheckpointError, DiskStore, describe
from bnmf.sampler.moves import MIXING, Moves
from bnmf.sampler.stores import DrawStore, MomentStore, Schedule, draw_bytes, stored_bytes, working_bytes
from bnmf.utils.arguments import checkpoint_directory
from bnmf.utils.memory import warn_if_large
from bnmf.utils.text import size
from bnmf.utils.typing import Floats


class Ending(StrEnum):
    """Why sampling ended."""

    COMPLETE = "complete"
    INTERRUPTED = "interrupted"
    TIME = "max_time"
    MEMORY = "memory"


class InterruptedRunWarning(UserWarning):
    """A run was interrupted by Ctrl-C, and what was drawn until then is kept."""


class Run:
    """Chains of a model, which go on as long as one likes.

    A run is not changed by going on: :meth:`extended` returns another one. Its draws are those of a single run of that
    length, because every sweep of every chain has its own random stream. A pickled run goes on too.

    Parameters
    ----------
    model : Model
        Data, priors and noise.
    seed : int
        Seed of all chains.
    init : "random" or pair of arrays, default="random"
        Where chains start.
    moves : Moves, optional
        What a sweep does beside drawing each row once.
    dtype : dtype, default=float64
        Precision of the draws that are kept.
    keep_draws : bool, default=True
        If False, keep means and standard deviations only.
    checkpoint : path-like, optional
        Directory for draws and states; a run that was cut off continues from there.
    original : ObservedMatrix, optional
        The data before offsets were subtracted; by default the data of the model.
    noise_factor : ndarray of shape (1 or rows, columns), optional
        Known relative standard deviation of the noise of each entry, observed or not: that of the model's
        `entry_precision`.

    Attributes
    ----------
    schedule : Schedule
        How long the run was to be.
    counts : list of int
        Draws of each chain.
    posterior : Posterior or Moments
        What was drawn; after Ctrl-C a part of what was requested.
    """

    schedule: Schedule
    counts: list[int]
    posterior: Posterior | Moments
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
        original: ObservedMatrix | None = None,
        noise_factor: Floats | None = None,
    ) -> None:
        if checkpoint is not None and not keep_draws:
            raise ValueError("checkpoint keeps the draws on disk: it cannot be combined with keep_draws=False")
        self.model, self.seed, self.init, self.moves = model, seed, init, moves
        self.dtype, self.keep_draws = dtype, keep_draws
        self.checkpoint = None if checkpoint is None else checkpoint_directory(checkpoint)
        self.original = model.data if original is None else original
        self.noise_factor = noise_factor
        self._store: DrawStore | MomentStore | None = None
        self._calibration: Calibration | None = None

    def sampled(
        self, schedule: Schedule, *, n_jobs: int = 1, progress: bool = False, deadline: float | None = None
    ) -> Run:
        """Return a run that has been sampled to the end of a schedule. What this one has is not drawn again."""
        self._warn_if_large(schedule, n_jobs)
        store = self._store_for(schedule)
        options = {"init": self.init, "moves": self.moves, "n_jobs": n_jobs, "progress": progress}
        try:
            counts = chains.run(self.model, schedule, store, self.seed, **options, deadline=deadline)
        finally:
            store.close()
        after = copy.copy(self)
        after._store = None if isinstance(store, DiskStore) else store
        after.schedule, after.counts = schedule, counts
        after._is_in_time = deadline is None or time.monotonic() < deadline
        if not any(counts):
            hint = "with checkpoint=DIRECTORY an interrupted fit can be continued"
            raise KeyboardInterrupt(f"interrupted before the first draw; {self._hint(hint)}")
        after.posterior = after._posterior(store)
        after.posterior.notes = notes.of_fit(after.posterior, self.original, self.model)
        after.posterior.calibration = self._calibration
        return after

    def calibrated(self, calibration: Calibration | None) -> Run:
        """Return this run with a calibration, which the runs that extend it keep."""
        after = copy.copy(self)
        after._calibration = after.posterior.calibration = calibration
        return after

    def extended(self, n_draws: int, *, n_jobs: int = 1, progress: bool = False) -> Run:
        """Return a run with more draws of every chain. Chains that Ctrl-C cut off catch up."""
        if self.checkpoint is not None and not (self.checkpoint / SETTINGS_FILE).exists():
            raise CheckpointError(
                f"checkpoint={str(self.checkpoint)!r}, which holds the states of this fit, is gone: fit again"
            )
        more = replace(self.schedule, n_draws=n_draws).n_draws  # checks it
        schedule = replace(self.schedule, n_draws=self.posterior.n_draws + more)
        return self.sampled(schedule, n_jobs=n_jobs, progress=progress)

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

    def interruption(self) -> str | None:
        """Return a sentence on what was kept after Ctrl-C and how to continue, None if there was no Ctrl-C."""
        if self.ending != Ending.INTERRUPTED:
            return None
        kept, n_draws = chains.largest_block(self.counts)
        hint = self._hint("sample_more goes on from here")
        return f"interrupted: {n_draws} draws of {len(kept)} of {len(self.counts)} chains are kept; {hint}"

    def _hint(self, without_checkpoint: str) -> str:
        if self.checkpoint is None:
            return without_checkpoint
        return f"call fit again with checkpoint={str(self.checkpoint)!r} to continue"

    def _store_for(self, schedule: Schedule) -> DrawStore | MomentStore:
        if self.checkpoint is not None:
            settings = describe(self.model, self.seed, self.init, self.moves)
            return DiskStore(self.model, schedule, self.dtype, self.checkpoint, settings)
        needed = stored_bytes(self.model, schedule, self.dtype)
        if not self.keep_draws:
            needed -= draw_bytes(self.model, schedule, self.dtype)
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

    def _posterior(self, store: DrawStore | MomentStore) -> Posterior | Moments:
        """Return the draws that are kept, without a copy if all chains are."""
        kept, n_draws = chains.largest_block(self.counts)
        source, model = self.original, self.model
        lower_bound = 0.0 if source.nonnegative else -math.inf
        if isinstance(store, MomentStore):
            return Moments(store, kept, n_draws, source.n_observed, lower_bound, self.noise_factor)
        choose: Any = slice(None) if len(kept) == self.schedule.n_chains else kept
        traces: dict[str, Any] = {name: np.array(trace[choose, :n_draws]) for name, trace in store.traces.items()}
        W, Z = store.W[choose, :n_draws], store.Z[choose, :n_draws]
        if isinstance(store, DiskStore):  # whose files must stay as their checksums say
            W.flags.writeable = Z.flags.writeable = False
        scale = None if model.units is NO_UNITS else model.units.scale
        return Posterior(
            W,
            Z,
            train_mse=np.array(store.train_mse[choose, : self.schedule.sweeps_for(n_draws)]),
            **traces,
            n_observed=model.data.n_observed,
            row_names=model.data.row_names,
            column_names=model.data.column_names,
            prior_W=model.priors[0],
            row_ids=row_ids(source, scale),
            lower_bound=lower_bound,
            offset=model.units.offset,
            scale=scale,
            thinning=self.schedule.thinning,
            noise_factor=self.noise_factor,
            n_fixed=model.fixed.counts,
            signed=(model.priors[0].is_real, model.priors[1].is_real),
        )

    def peak_bytes(self, schedule: Schedule, n_jobs: int) -> int:
        """Return about how much memory sampling takes that keeps all draws there, beside the data."""
        working = working_bytes(self.model, min(n_jobs, schedule.n_chains))
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
        """Leave out the posterior if the store holds the same draws."""
        content = vars(self).copy()
        if self._store is not None:
            content["_notes"] = content.pop("posterior").notes
        return content

    def __setstate__(self, content: dict[str, Any]) -> None:
        self.__dict__.update(content)
        if self._store is not None:
            self.posterior = self._posterior(self._store)
            self.posterior.notes = self.__dict__.pop("_notes")
            self.posterior.calibration = self._calibration


def sample_posterior(
    model: Model,
    schedule: Schedule,
    seed: int,
    *,
    n_jobs: int = 1,
    progress: bool = False,
    **options: Any,
) -> Posterior | Moments:
    """Sample a model once.

    Examples
    --------
    >>> import numpy as np
    >>> from bnmf.data import ObservedMatrix
    >>> model = Model(ObservedMatrix.from_data(np.arange(12.0).reshape(4, 3)), n_components=1, prior="gee")
    >>> sample_posterior(model, Schedule(n_chains=2, burn_in=10, n_draws=5), seed=0)
    <Posterior of a 4 x 3 matrix, K = 1: 2 chains of 5 draws>
    """
    run = Run(model, seed, **options).sampled(schedule, n_jobs=n_jobs, progress=progress)
    interruption = run.interruption()
    if interruption:
        warnings.warn(interruption, stacklevel=2)
    return run.posterior
