"""As many draws as good predictions need: longer chains or more of them, until they agree or time is up."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from bnmf.sampler.run import Ending, Run
from bnmf.sampler.stores import Schedule
from bnmf.utils import memory
from bnmf.utils.typing import Floats

N_FIRST_DRAWS = 100
"""Draws of each chain before the first look at the predictions."""
MAX_TIME = 60.0
"""Seconds after which no more draws are taken, unless the user says otherwise."""
MIN_GROWTH = 1 / 8
"""Smallest growth of the chains that is worthwhile, if there is no time to double them."""
N_BATCHES = 4
"""Parts of a chain whose means tell how exact the mean of the chain is."""


def sample_until_converged(
    run: Run,
    schedule: Schedule,
    predictions: Callable[[Run], Floats],
    max_error: float,
    *,
    deadline: float,
    reserve: float = 0.0,
    always_first: bool = False,
    n_jobs: int = 1,
    progress: bool = False,
) -> tuple[Run, Ending]:
    """Sample until the Monte Carlo error of predictions is small, time is up, or memory is full."""
    # `predictions` returns draws (chain, draw, n) of some predictions of a run in units of their predictive standard
    # deviation. The last `reserve` seconds before the deadline are for the first draws only, which are taken in any
    # case with `always_first`.
    began = time.monotonic()
    run = run.sampled(schedule, n_jobs=n_jobs, progress=progress, deadline=None if always_first else deadline)
    speed = schedule.total_sweeps / _seconds_since(began)
    deadline -= reserve
    while run.is_complete and monte_carlo_error(draws := predictions(run)) > max_error:
        now, before = time.monotonic(), run.schedule
        longer = _longer(before, draws, speed * (deadline - now))
        if longer == before:
            return run, Ending.TIME
        free = math.inf if run.checkpoint is not None else memory.available() or math.inf
        if run.peak_bytes(longer, n_jobs) > memory.WARNING_FRACTION * free:
            return run, Ending.MEMORY
        run = run.sampled(longer, n_jobs=n_jobs, progress=progress, deadline=deadline)
        speed = (longer.total_sweeps - before.total_sweeps) / _seconds_since(now)
    return run, run.ending


def monte_carlo_error(draws: Floats) -> float:
    """Return the standard error of means over draws (chain, draw, n), from the chains or the halves of one chain."""
    if len(draws) == 1:
        half = draws.shape[1] // 2
        draws = draws[0, : 2 * half].reshape(2, half, -1)
    return standard_error(draws.mean(axis=1))


def standard_error(means: Floats) -> float:
    """Return the standard error of the mean over independent chains (chain, n), root mean square over n quantities."""
    between = means.std(axis=0, ddof=1) / np.sqrt(len(means))
    return float(np.sqrt(np.mean(between**2)))


def _seconds_since(moment: float) -> float:
    return max(time.monotonic() - moment, 1e-9)  # clocks may stand still for a moment


def _longer(schedule: Schedule, draws: Floats, n_affordable: float) -> Schedule:
    """Return a schedule with up to twice the chains or draws, as far as there is time for it; else the same."""
    n_affordable = min(max(n_affordable, 0.0), schedule.total_sweeps)  # a number, also if the time has no limit
    if more_chains_help(draws, schedule):
        n_chains = min(schedule.n_chains, int(n_affordable / schedule.n_sweeps))
        return replace(schedule, n_chains=schedule.n_chains + n_chains)
    n_draws = min(schedule.n_draws, int(n_affordable / (schedule.n_chains * schedule.thinning)))
    n_draws = n_draws if n_draws >= MIN_GROWTH * schedule.n_draws else 0
    return replace(schedule, n_draws=schedule.n_draws + n_draws)


def more_chains_help(draws: Floats, schedule: Schedule) -> bool:
    """Return whether more chains lower the Monte Carlo error of predictions by more, per sweep, than longer ones."""
    # The variance of the chains' means has a part that falls with their length, estimated by the means of parts of each
    # chain, and one that does not if they are in different modes. Twice the chains halve both, at the cost of their
    # burn-in; twice the draws halve only the first.
    if len(draws) == 1:
        return False
    length = draws.shape[1] // N_BATCHES
    batches = draws[:, : N_BATCHES * length].reshape(len(draws), N_BATCHES, length, -1).mean(axis=2)
    within = batches.var(axis=1, ddof=1).mean() / N_BATCHES
    between = draws.mean(axis=1).var(axis=0, ddof=1).mean()
    return bool(between / schedule.n_sweeps > within / (schedule.n_draws * schedule.thinning))
