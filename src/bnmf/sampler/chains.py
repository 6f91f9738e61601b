"""Several chains of one model: threads, progress, checkpoints, interruption."""

from __future__ import annotations

import hashlib
import math
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import Any

import numpy as np

from bnmf import gibbs
from bnmf.gibbs import Model, State, Stream
from bnmf.hashing import fingerprint
from bnmf.priors import Coefficients
from bnmf.progress import Progress, Silent
from bnmf.store import DiskStore, MemoryStore, MomentStore, Schedule
from bnmf.workers import Workers, single_threaded_blas

# Seconds between checkpoints of a chain.
CHUNK_SECONDS = 5.0


def run(
    model: Model,
    schedule: Schedule,
    store: MemoryStore,
    seed: int,
    *,
    init: Any = "random",
    n_jobs: int = 1,
    progress: bool = False,
) -> list[int]:
    """Sample all chains into `store`.

    Parameters
    ----------
    model : Model
        What to sample from.
    schedule : Schedule
        How long.
    store : MemoryStore
        Where the draws go.
    seed : int
        Seed of all chains.
    init : "random" or pair of arrays, default="random"
        Where chains start.
    n_jobs : int, default=1
        Threads: one for each chain first, and what is left over for the rows of each.
    progress : bool, default=False
        Show progress on the error stream.

    Returns
    -------
    list of int
        Number of draws that each chain has: fewer than asked for only if the run was interrupted by Ctrl-C.
    """
    stop = threading.Event()
    starts = [store.resume(chain) for chain in range(schedule.n_chains)]
    done = [state.sweep if state is not None else 0 for state in starts]
    show = Progress(schedule.n_chains, schedule.n_sweeps, done) if progress else Silent()
    n_threads = max(1, n_jobs // schedule.n_chains)

    counts = [schedule.draws_after(sweep) for sweep in done]
    begun: list[threading.Event] = []

    def run_chain(chain: int) -> None:
        ended = threading.Event()
        begun.append(ended)
        try:
            if not stop.is_set():
                sweep_on(chain)
        finally:
            ended.set()

    def sweep_on(chain: int) -> None:
        stream = Stream(seed, chain)
        with Workers(n_threads) as workers:
            state = starts[chain] or gibbs.start(model, stream, init, workers)
            saved = time.monotonic()
            while state.sweep < schedule.n_sweeps and not stop.is_set():
                state = gibbs.step(model, state, stream, workers)
                _check_finite(state)
                store.record(chain, state)
                show.update(chain, state.sweep, state.squared_error / model.data.n_observed)
                if time.monotonic() - saved > CHUNK_SECONDS:
                    store.checkpoint(chain, state)
                    saved = time.monotonic()
            store.checkpoint(chain, state)
        counts[chain] = schedule.draws_after(state.sweep)

    # Held from this thread, once: set anew in every sweep of every chain it costs more than the sweep.
    with show, single_threaded_blas(), ThreadPoolExecutor(min(n_jobs, schedule.n_chains)) as pool:
        futures = []
        try:
            for chain in range(schedule.n_chains):
                futures.append(pool.submit(run_chain, chain))  # noqa: PERF401 (Ctrl-C may come in between)
            for future in futures:
                while not future.done():
                    # A wait without a limit would not be interrupted by Ctrl-C on every system.
                    _wait(future, 0.2)
        except KeyboardInterrupt:
            stop.set()
            for ended in begun:  # the pool forgets a thread that Ctrl-C came to while it was being started
                ended.wait()
        except BaseException:
            stop.set()
            raise
        for future in futures:
            future.result()  # raises what went wrong there
    return counts  # of all chains, also of one that Ctrl-C came to before it was known to have been started


def largest_block(counts: list[int]) -> tuple[list[int], int]:
    """Return chains, and a number of draws that all of them have, such that most draws are kept.

    Examples
    --------
    >>> largest_block([200, 150, 3, 0])
    ([0, 1], 150)
    """
    n_draws = max(counts, key=lambda n: n * sum(count >= n for count in counts))
    return [chain for chain, count in enumerate(counts) if count >= n_draws], n_draws


def _wait(future: Any, seconds: float) -> None:
    from concurrent.futures import TimeoutError

    try:
        future.result(seconds)
    except TimeoutError:
        if future.done():
            raise


def _check_finite(state: State) -> None:
    if not math.isfinite(state.squared_error):
        raise FloatingPointError(
            f"the chain left the range of floating-point numbers in sweep {state.sweep}. Data far from 1 in size ask "
            "for a prior of their scale; and LInf(rule='published') is known to run away"
        )


def make_store(
    model: Model,
    schedule: Schedule,
    seed: int,
    *,
    init: Any = "random",
    dtype: Any = np.float64,
    keep_draws: bool = True,
    checkpoint: Any = None,
) -> MemoryStore:
    """Return the store that the settings ask for."""
    if checkpoint is not None:
        if not keep_draws:
            raise ValueError("checkpoint keeps the draws on disk: it does not go together with keep_draws=False")
        return DiskStore(model, schedule, dtype, checkpoint, describe(model, seed, init))
    return MemoryStore(model, schedule, dtype) if keep_draws else MomentStore(model, schedule, dtype)


def describe(model: Model, seed: int, init: Any) -> dict[str, Any]:
    """Return everything but the schedule that decides the draws, in a form that JSON can hold."""
    start = init if isinstance(init, str) else _digest(*(np.asarray(factor) for factor in init))
    return {
        "data": fingerprint(model.data),
        "n_components": int(model.n_components),
        "prior_W": _describe_prior(model.coefficients[0]),
        "prior_Z": _describe_prior(model.coefficients[1]),
        "noise": {name: float(value) for name, value in asdict(model.noise).items()},
        "rescale": bool(model.rescale),
        "init": start,
        "seed": str(seed),
    }


def _describe_prior(prior: Coefficients) -> dict[str, Any]:
    return {
        "linear": _digest(prior.linear),
        "quadratic": _digest(prior.quadratic),
        "coupling": prior.coupling,
        "slope": prior.slope,
        "published": prior.published,
    }


def _digest(*arrays: np.ndarray) -> Any:
    """Return a constant array as its number, and others as a hash."""
    if len(arrays) == 1 and np.all(arrays[0] == arrays[0].flat[0]):
        return float(arrays[0].flat[0])
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(repr(array.shape).encode() + np.ascontiguousarray(array, dtype=np.float64).tobytes())
    return digest.hexdigest()
