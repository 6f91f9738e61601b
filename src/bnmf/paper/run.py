"""Run many fits in parallel, skipping those that are finished."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import joblib
import numpy as np
import pandas as pd

from bnmf.paper.experiments import Settings
from bnmf.paper.finished import FinishedFits
from bnmf.paper.fits import Fit, Result, as_matrix, run_fit
from bnmf.utils.progress import Display, Rate, Silent
from bnmf.utils.typing import Floats

PROGRESS_TASK = "fits"
"""Name of the task in the progress display."""


class Interrupted(KeyboardInterrupt):
    """A run was interrupted with Ctrl-C.

    Parameters
    ----------
    done, total : int
        Number of finished fits, including those of earlier runs, and number of all fits.
    """

    def __init__(self, done: int, total: int) -> None:
        super().__init__(f"{done} of {total} fits are done")
        self.done = done
        self.total = total


def run_fits(
    fits: Iterable[Fit],
    datasets: Mapping[str, Any],
    *,
    finished: FinishedFits | None = None,
    n_jobs: int | None = 1,
    progress: bool = False,
) -> dict[Fit, Result]:
    """Run every fit that is not finished, and return the results of all.

    Parameters
    ----------
    fits : iterable of Fit
        The fits; duplicates are run once.
    datasets : mapping of str to DataFrame or array-like
        The data by name.
    finished : FinishedFits, optional
        Results of earlier runs. Every new result is added as soon as its fit ends.
    n_jobs : int, optional
        Number of processes, as in joblib. Inside ``joblib.parallel_config(backend="dask")`` the fits run on the
        cluster.
    progress : bool, default=False
        Show progress on stderr.

    Returns
    -------
    dict of Fit to dict of str to ndarray
        The results, in the order of `fits`.

    Raises
    ------
    Interrupted
        On Ctrl-C. The results up to then are in `finished`.
    """
    wanted = list(dict.fromkeys(fits))
    results = {fit: found for fit in wanted if finished is not None and (found := finished.load(fit)) is not None}
    missing = _shuffled([fit for fit in wanted if fit not in results])
    matrices = {name: as_matrix(X) for name, X in datasets.items()}
    costs = {fit: fit.cost(matrices[fit.dataset].size) for fit in missing}
    try:
        with _display(len(wanted), len(results), progress) as display, _quiet_shutdown():
            rate, cost_done = Rate(sum(costs.values()), 0), 0
            for fit, result in _as_completed(missing, matrices, n_jobs):
                if finished is not None:
                    finished.save(fit, result)
                results[fit] = result
                cost_done += costs[fit]
                left = "all done" if len(results) == len(wanted) else rate.left(cost_done)
                display.update(PROGRESS_TASK, len(results), left.__str__)
    except KeyboardInterrupt:
        raise Interrupted(len(results), len(wanted)) from None
    return {fit: results[fit] for fit in wanted}


def experiment(
    plan: Callable[[Settings], list[Fit]], table: Callable[[Mapping[Fit, Result]], pd.DataFrame]
) -> Callable[..., pd.DataFrame]:
    """Return a function that runs an experiment: from data and settings to its table.

    Parameters
    ----------
    plan : callable
        Maps settings to the fits to run.
    table : callable
        Maps fits and their results to a tidy table.

    Returns
    -------
    callable
        Takes the data by name, the settings, and the keyword arguments of `run_fits`.
    """

    def measure(datasets: Mapping[str, Any], settings: Settings, **options: Any) -> pd.DataFrame:
        return table(run_fits(plan(settings), datasets, **options))

    return measure


def _display(total: int, found: int, progress: bool) -> Silent:
    if not progress:
        return Silent()
    print(f"{total} fits, {found} of them already finished", file=sys.stderr, flush=True)
    return Display({PROGRESS_TASK: total}, {PROGRESS_TASK: found}, unit="fits")


@contextmanager
def _quiet_shutdown() -> Iterator[None]:
    """Hide a KeyError in the manager thread of loky, which a fit that ends during a shutdown by Ctrl-C can cause."""
    show = threading.excepthook

    def show_others(error: threading.ExceptHookArgs) -> None:
        if error.exc_type is not KeyError or getattr(error.thread, "name", "") != "ExecutorManagerThread":
            show(error)

    threading.excepthook = show_others
    try:
        yield
    finally:
        threading.excepthook = show


def _as_completed(fits: list[Fit], matrices: dict[str, Floats], n_jobs: int | None) -> Iterator[tuple[Fit, Result]]:
    """Yield fits and their results in the order in which they end."""
    if not fits:
        return
    parallel = joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1, pre_dispatch="3*n_jobs")
    yield from parallel(joblib.delayed(_run)(fit, matrices[fit.dataset], os.getpid()) for fit in fits)


def _run(fit: Fit, X: Floats, caller: int) -> tuple[Fit, Result]:
    if os.getpid() != caller and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process; the caller ends this one
    return fit, run_fit(fit, X)


def _shuffled(fits: list[Fit]) -> list[Fit]:
    """Return the fits repeat by repeat, in a fixed random order within each repeat.

    Mixing short and long fits makes the estimate of the time left reliable. An interrupted run has complete repeats.
    """
    order = np.random.default_rng(0).permutation(len(fits))
    return sorted((fits[i] for i in order), key=lambda fit: fit.repeat)
