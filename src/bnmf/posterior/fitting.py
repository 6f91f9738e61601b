"""From a model to its posterior: sample, and return what was drawn."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from bnmf.data.identity import row_ids
from bnmf.data.observed import ObservedMatrix
from bnmf.model.model import Model
from bnmf.model.units import NO_UNITS
from bnmf.posterior.interface import BasePosterior
from bnmf.posterior.moments import Moments
from bnmf.posterior.posterior import Posterior
from bnmf.sampler import chains
from bnmf.sampler.checkpoint import DiskStore, describe
from bnmf.sampler.schedule import Schedule
from bnmf.sampler.stores import DrawStore, MomentStore, draw_bytes
from bnmf.utils.memory import warn_if_large


def sample_posterior(
    model: Model,
    schedule: Schedule,
    seed: int,
    *,
    init: Any = "random",
    rescale: bool = True,
    dtype: Any = np.float64,
    keep_draws: bool = True,
    checkpoint: Any = None,
    n_jobs: int = 1,
    progress: bool = False,
    original: ObservedMatrix | None = None,
) -> BasePosterior:
    """Sample a model.

    Parameters
    ----------
    model : Model
        Data, priors and noise.
    schedule : Schedule
        Chains, burn-in, draws, thinning.
    seed : int
        Seed of all chains.
    init : "random" or pair of arrays, default="random"
        Where chains start.
    rescale : bool, default=True
        End each sweep with the rescaling move.
    dtype : dtype, default=float64
        Precision of the draws that are kept.
    keep_draws : bool, default=True
        If False, keep means and standard deviations only.
    checkpoint : path-like, optional
        Directory for draws and states; a run that was cut off continues from there.
    n_jobs : int, default=1
        Threads.
    progress : bool, default=False
        Show progress on standard error.
    original : ObservedMatrix, optional
        The data before offsets were subtracted; by default the data of the model.

    Returns
    -------
    Posterior or Moments
        What was drawn. After Ctrl-C this is a part of what was requested, and a warning says so.

    Examples
    --------
    >>> import numpy as np
    >>> from bnmf.data import ObservedMatrix
    >>> model = Model(ObservedMatrix.from_data(np.arange(12.0).reshape(4, 3)), n_components=1, prior="gee")
    >>> sample_posterior(model, Schedule(n_chains=2, burn_in=10, n_draws=5), seed=0)
    <Posterior of a 4 x 3 matrix, K = 1: 2 chains of 5 draws>
    """
    if checkpoint is not None and not keep_draws:
        raise ValueError("checkpoint keeps the draws on disk: it cannot be combined with keep_draws=False")
    _warn_if_large(model, schedule, dtype, keep_draws, checkpoint)
    store: DrawStore | MomentStore
    if checkpoint is not None:
        store = DiskStore(model, schedule, dtype, checkpoint, describe(model, seed, init, rescale))
    else:
        store = DrawStore(model, schedule, dtype) if keep_draws else MomentStore(model, schedule)
    try:
        counts = chains.run(model, schedule, store, seed, init=init, rescale=rescale, n_jobs=n_jobs, progress=progress)
    finally:
        store.close()
    source = model.data if original is None else original
    kept, n_draws = chains.largest_block(counts)
    if counts != [schedule.n_draws] * schedule.n_chains:
        _warn_interrupted(len(kept), n_draws, schedule, checkpoint)
    if isinstance(store, MomentStore):
        return Moments(store, kept, n_draws, source.n_observed, _lower_bound(source))
    return _posterior(model, schedule, store, kept, n_draws, source)


def _posterior(
    model: Model, schedule: Schedule, store: DrawStore, kept: list[int], n_draws: int, source: ObservedMatrix
) -> Posterior:
    """Return the kept draws, without a copy if all chains are kept."""
    choose: Any = slice(None) if len(kept) == schedule.n_chains else kept
    return Posterior(
        store.W[choose, :n_draws],
        store.Z[choose, :n_draws],
        train_mse=np.array(store.train_mse[choose, : schedule.sweeps_for(n_draws)]),
        **{name: np.array(trace[choose, :n_draws]) for name, trace in store.traces.items()},
        n_observed=model.data.n_observed,
        row_names=model.data.row_names,
        column_names=model.data.column_names,
        prior_W=model.priors[0],
        row_ids=row_ids(source, None if model.units is NO_UNITS else model.units.scale),
        lower_bound=_lower_bound(source),
        offset=model.units.offset,
        scale=None if model.units is NO_UNITS else model.units.scale,
    )


def _lower_bound(source: ObservedMatrix) -> float:
    return 0.0 if source.nonnegative else -math.inf


def _warn_interrupted(n_chains: int, n_draws: int, schedule: Schedule, checkpoint: Any) -> None:
    """Warn after Ctrl-C what was kept and how to continue; without any draw, re-raise the interruption."""
    if checkpoint is not None:
        hint = f"call fit again with checkpoint={str(checkpoint)!r} to continue"
    else:
        hint = "with checkpoint=DIRECTORY an interrupted fit can be continued"
    if n_draws == 0:
        raise KeyboardInterrupt(f"interrupted before the first draw; {hint}")
    warnings.warn(
        f"interrupted: {n_draws} draws of {n_chains} of {schedule.n_chains} chains are kept; {hint}", stacklevel=4
    )


def _warn_if_large(model: Model, schedule: Schedule, dtype: Any, keep_draws: bool, checkpoint: Any) -> None:
    if not keep_draws:
        warn_if_large(
            schedule.n_chains * 2 * 8 * model.data.shape[0] * model.data.shape[1],
            "keeping mean and variance of every entry",
            "use fewer chains, or keep some draws on disk with checkpoint=DIRECTORY",
        )
    elif checkpoint is None:
        warn_if_large(
            draw_bytes(model, schedule, dtype),
            "keeping all draws in memory",
            "take fewer draws or a larger thinning, draws_dtype='float32', keep them on disk with "
            "checkpoint=DIRECTORY, or keep only means and variances with keep_draws=False",
        )
