"""From a model to its posterior: one call that samples, survives, and hands over what was drawn."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from bnmf import chains
from bnmf.gibbs import Model
from bnmf.hashing import row_ids
from bnmf.memory import warn_if_large
from bnmf.moments import Moments
from bnmf.posterior import Posterior
from bnmf.store import DiskStore, MemoryStore, MomentStore, Schedule, draw_bytes


def sample_posterior(
    model: Model,
    schedule: Schedule,
    seed: int,
    *,
    init: Any = "random",
    dtype: Any = np.float64,
    keep_draws: bool = True,
    checkpoint: Any = None,
    n_jobs: int = 1,
    progress: bool = False,
) -> Posterior | Moments:
    """Sample a model.

    Parameters
    ----------
    model : Model
        Data, priors and rank.
    schedule : Schedule
        Chains, burn-in, draws, thinning.
    seed : int
        Seed of all chains.
    init : "random" or pair of arrays, default="random"
        Where chains start.
    dtype : dtype, default=float64
        Precision of the draws that are kept.
    keep_draws : bool, default=True
        If False, keep means and standard deviations only.
    checkpoint : path-like, optional
        Directory for draws and states; a run that was cut off goes on from there.
    n_jobs : int, default=1
        Threads.
    progress : bool, default=False
        Show progress on the error stream.

    Returns
    -------
    Posterior or Moments
        What was drawn: all of it, or after Ctrl-C with a warning the part that there is.

    Examples
    --------
    >>> import numpy as np
    >>> from bnmf.observed import ObservedMatrix
    >>> model = Model(ObservedMatrix.from_data(np.arange(12.0).reshape(4, 3)), n_components=1, prior="gee")
    >>> sample_posterior(model, Schedule(n_chains=2, burn_in=10, n_draws=5), seed=0)
    <Posterior of a 4 x 3 matrix, K = 1: 2 chains of 5 draws>
    """
    _warn_if_large(model, schedule, dtype, keep_draws, checkpoint)
    store = chains.make_store(
        model, schedule, seed, init=init, dtype=dtype, keep_draws=keep_draws, checkpoint=checkpoint
    )
    try:
        counts = chains.run(model, schedule, store, seed, init=init, n_jobs=n_jobs, progress=progress)
    finally:
        if isinstance(store, DiskStore):
            store.close()
    kept, n_draws = chains.largest_block(counts)
    if counts != [schedule.n_draws] * schedule.n_chains:
        _interrupted(len(kept), n_draws, schedule, checkpoint)
    if isinstance(store, MomentStore):
        return Moments(store, kept, n_draws, model.data.n_observed)
    return _posterior(model, schedule, store, kept, n_draws)


def _posterior(model: Model, schedule: Schedule, store: MemoryStore, kept: list[int], n_draws: int) -> Posterior:
    """Return the kept draws; all of them without a copy."""
    choose: Any = slice(None) if len(kept) == schedule.n_chains else kept
    n_sweeps = schedule.burn_in + n_draws * schedule.thinning
    return Posterior(
        store.W[choose, :n_draws],
        store.Z[choose, :n_draws],
        np.array(store.noise_variance[choose, :n_draws]),
        np.array(store.train_mse[choose, :n_sweeps]),
        n_observed=model.data.n_observed,
        row_names=model.data.row_names,
        column_names=model.data.column_names,
        prior_W=model.coefficients[0],
        row_ids=row_ids(model.data),
    )


def _interrupted(n_chains: int, n_draws: int, schedule: Schedule, checkpoint: Any) -> None:
    """Say after Ctrl-C what there is and how to go on; with nothing drawn, that is the end."""
    if checkpoint is not None:
        hint = f"call fit again with checkpoint={str(checkpoint)!r} to go on"
    else:
        hint = "with checkpoint=DIRECTORY the next one can go on where it stopped"
    if n_draws == 0:
        raise KeyboardInterrupt(f"interrupted before the first draw; {hint}")
    warnings.warn(
        f"interrupted: {n_draws} draws of {n_chains} of {schedule.n_chains} chains are kept; {hint}", stacklevel=4
    )


def _warn_if_large(model: Model, schedule: Schedule, dtype: Any, keep_draws: bool, checkpoint: Any) -> None:
    if not keep_draws:
        warn_if_large(
            schedule.n_chains * 2 * 8 * model.data.shape[0] * model.data.shape[1],
            "keeping mean and spread of every entry",
            "use fewer chains, or keep some draws on disk with checkpoint=DIRECTORY",
        )
    elif checkpoint is None:
        warn_if_large(
            draw_bytes(model, schedule, dtype),
            "keeping all draws in memory",
            "take fewer draws or a larger thinning, draws_dtype='float32', keep them on disk with "
            "checkpoint=DIRECTORY, or keep only their mean and spread with keep_draws=False",
        )
