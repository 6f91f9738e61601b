"""Several chains of one model: threads, progress, checkpoints, interruption."""

from __future__ import annotations

import threading
import time
import warnings
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Any

import numpy as np

from bnmf.data.containers import LARGEST_SQUARE
from bnmf.model.model import Model
from bnmf.sampler import gibbs
from bnmf.sampler.moves import MIXING, Moves
from bnmf.sampler.stores import Store, training_mse
from bnmf.sampler.streams import Stream
from bnmf.sampler.threads import single_threaded_blas
from bnmf.utils.progress import Display
from bnmf.utils.text import duration

SECONDS_BETWEEN_CHECKPOINTS = 5.0
# Fraction of the burn-in in which the variances of rows and columns are held nearly equal.
WARM_UP_FRACTION = 0.3
# A run without a display of its progress that will take longer than this is announced, when its speed is known.
LONG_RUN_SECONDS = 600.0
SECONDS_BEFORE_ESTIMATE = 5.0
# Seconds between looks at Ctrl-C, which does not interrupt an unlimited wait on every system.
SECONDS_BETWEEN_WAITS = 0.2


def run(
    store: Store,
    seed: int,
    *,
    init: Any = "random",
    moves: Moves = MIXING,
    n_jobs: int = 1,
    progress: bool | str = False,
    deadline: float | None = None,
) -> list[int]:
    """Sample all chains into a store, each from the state that the store has of it; `progress` may name the chains."""
    schedule = store.schedule
    n_threads, n_warm_up = max(1, n_jobs // schedule.n_chains), int(WARM_UP_FRACTION * schedule.burn_in)
    options = {"init": init, "moves": moves, "n_threads": n_threads, "n_warm_up": n_warm_up}
    job = _Job(store, seed, options, progress)
    with (
        job.display,
        single_threaded_blas(),  # once and from here: in every sweep of every chain it costs more than the sweep
        ThreadPoolExecutor(min(n_jobs, schedule.n_chains)) as pool,
    ):
        futures: list[Future[None]] = []
        try:
            for chain in range(schedule.n_chains):
                futures.append(pool.submit(job.run_chain, chain))  # noqa: PERF401 (Ctrl-C may come in between)
            while wait(futures, SECONDS_BETWEEN_WAITS, FIRST_EXCEPTION).not_done:
                if any(future.done() and future.exception() for future in futures):
                    break
                if deadline is not None and time.monotonic() >= deadline:
                    job.stop.set()
                if deadline is None and not progress:
                    job.warn_if_long(min(n_jobs, schedule.n_chains))
        except KeyboardInterrupt:
            job.stop.set()
            for ended in job.ended:  # the pool loses track of a thread if Ctrl-C comes while it is being started
                ended.wait()
        finally:
            job.stop.set()  # after an error the other chains stop too
        for future in futures:
            future.result()  # re-raises the error of a chain
    return [
        min(schedule.draws_after(sweep), schedule.n_draws) for sweep in store.sweeps
    ]  # a stored chain may be longer


class LongRunWarning(UserWarning):
    """A run will take long."""


class _Job:
    """The store and the progress that the chains of one run share."""

    def __init__(self, store: Store, seed: int, options: dict[str, Any], progress: bool | str) -> None:
        self.store, self.seed, self.options = store, seed, options
        self.model, self.schedule = store.model, store.schedule
        self.stop = threading.Event()
        self.ended: list[threading.Event] = []  # one for each chain that was started, set when it ends
        self._begin, self._at_begin, self._n_estimates = time.monotonic(), sum(store.sweeps), 0
        kind = progress if isinstance(progress, str) else "chain"
        self.names = [f"{kind} {chain}" for chain in range(self.schedule.n_chains)]
        self.display = Display(dict.fromkeys(self.names, self.schedule.n_sweeps), "sweeps", is_shown=bool(progress))

    def run_chain(self, chain: int) -> None:
        """Sweep until the schedule is done or the run is stopped; what was drawn is in the store."""
        ended = threading.Event()
        self.ended.append(ended)
        try:
            if not self.stop.is_set():
                self._sweep(chain)
        finally:
            ended.set()

    def _sweep(self, chain: int) -> None:
        recorded, saved = self.store.states.get(chain), time.monotonic()
        stream, left = Stream(self.seed, chain), self.schedule.n_sweeps - self.store.sweeps[chain]
        if left <= 0:
            self.display.update(self.names[chain], self.schedule.n_sweeps)
        try:
            for state in gibbs.sample(self.model, stream, state=recorded, n_sweeps=left, **self.options):
                gibbs.check_range(f"sweep {state.sweep}", state.W, state.Zt, state.squared_error)
                _check_variances(self.model, state)
                self.store.record(chain, state)
                recorded = state
                self.display.update(self.names[chain], state.sweep, partial(self._facts, state))
                if self.stop.is_set():
                    break
                if time.monotonic() - saved > SECONDS_BETWEEN_CHECKPOINTS:
                    self.store.checkpoint(chain, state)
                    saved = time.monotonic()
        finally:  # after an error, such as a cluster without workers, the run resumes from the last sweep
            if recorded is not None:
                self.store.checkpoint(chain, recorded)

    def warn_if_long(self, n_parallel: int) -> None:
        """Say once, when the speed of the sweeps is known, that a run will take long."""
        elapsed, made = time.monotonic() - self._begin, sum(self.store.sweeps) - self._at_begin
        if self._n_estimates == 2 or elapsed < SECONDS_BEFORE_ESTIMATE or made < 2 * n_parallel:
            return
        self._n_estimates += 1
        if self._n_estimates == 1:  # the first sweeps are slow: they load code and data, and wait for each other
            self._begin, self._at_begin = time.monotonic(), sum(self.store.sweeps)
            return
        left = elapsed / made * (self.schedule.total_sweeps - sum(self.store.sweeps))
        if left > LONG_RUN_SECONDS:
            warnings.warn(
                f"this run will take about {duration(left)} more: progress=True shows how far it is, and with "
                "checkpoint=DIRECTORY it can be stopped and continued",
                LongRunWarning,
                stacklevel=2,
            )

    def _facts(self, state: gibbs.State) -> str:
        return f"training MSE {training_mse(self.model, state):.4g}"


def _check_variances(model: Model, state: gibbs.State) -> None:
    """Raise an error if a variance in the user's units is not a positive finite number."""
    row, column, scale = state.noise.row, state.noise.column, model.units.scale
    with np.errstate(over="ignore", under="ignore"):
        of_columns = column * (scale * scale)
        smallest = np.minimum.reduce(of_columns) * np.minimum.reduce(row)
        largest = np.maximum.reduce(of_columns) * np.maximum.reduce(row)
    if not (smallest > 0.0 and largest < LARGEST_SQUARE):
        raise FloatingPointError(
            f"the chain left the range of floating-point numbers in sweep {state.sweep}. Data of extreme size need a "
            "prior of their scale; and LInf(rule='paper') is known to diverge"
        )
