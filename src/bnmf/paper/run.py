"""Running many fits: those that are not there yet, in parallel, with the time left."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np
import pandas as pd

from bnmf.experiments.fits import Fit, Result, as_matrix, run_fit
from bnmf.experiments.settings import Settings
from bnmf.experiments.store import Store


@dataclass(frozen=True)
class Progress:
    """How far a run is.

    Attributes
    ----------
    done, total : int
        Fits that are finished, those found in the store included, and fits in all.
    found : int
        Fits that were in the store at the start.
    elapsed : float
        Seconds since the run began.
    left : float
        Estimate of the seconds that are left; NaN before the first fit has ended.
    """

    done: int
    total: int
    found: int
    elapsed: float
    left: float


Report = Callable[[Progress], None]


def run_fits(
    fits: Iterable[Fit],
    datasets: Mapping[str, Any],
    *,
    store: Store | None = None,
    n_jobs: int | None = 1,
    report: Report | None = None,
) -> dict[Fit, Result]:
    """Run every fit that is not in the store, and return the results of all.

    Parameters
    ----------
    fits : iterable of Fit
        What to run; one that occurs twice is run once.
    datasets : mapping of str to DataFrame or array-like
        The data by name.
    store : Store, optional
        Where results are kept; each is written as soon as it is there.
    n_jobs : int, optional
        Processes, as joblib takes it. Inside ``joblib.parallel_config(backend="dask")`` the fits go to the cluster.
    report : callable, optional
        Called with a `Progress` at the start and after every fit.

    Returns
    -------
    dict of Fit to dict of str to ndarray
        The results, in the order of `fits`.
    """
    wanted = list(dict.fromkeys(fits))
    results = {fit: found for fit in wanted if store is not None and (found := store.load(fit)) is not None}
    missing = _mixed([fit for fit in wanted if fit not in results])
    matrices = {name: as_matrix(X) for name, X in datasets.items()}
    costs = {fit: fit.cost(matrices[fit.dataset].size) for fit in missing}
    clock = _Clock(len(wanted), len(results), sum(costs.values()), report)
    for fit, result in _finished(missing, matrices, n_jobs):
        if store is not None:
            store.save(fit, result)
        results[fit] = result
        clock.tick(costs[fit])
    return {fit: results[fit] for fit in wanted}


def experiment(
    plan: Callable[[Settings], list[Fit]], table: Callable[[Mapping[Fit, Result]], pd.DataFrame]
) -> Callable[..., pd.DataFrame]:
    """Return the function that runs an experiment: from data and settings to its table.

    Parameters
    ----------
    plan : callable
        From settings to the fits to run.
    table : callable
        From fits and their results to a tidy table.

    Returns
    -------
    callable
        It takes data by name, settings, and by name the `store`, `n_jobs` and `report` of `run_fits`.
    """

    def measure(datasets: Mapping[str, Any], settings: Settings, **how: Any) -> pd.DataFrame:
        return table(run_fits(plan(settings), datasets, **how))

    return measure


def _finished(fits: list[Fit], matrices: dict[str, Any], n_jobs: int | None) -> Iterator[tuple[Fit, Result]]:
    """Yield fits with their results in the order in which they end."""
    if not fits:
        return
    parallel = joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1, pre_dispatch="3*n_jobs")
    yield from parallel(joblib.delayed(_run)(fit, matrices[fit.dataset]) for fit in fits)


def _run(fit: Fit, X: Any) -> tuple[Fit, Result]:
    return fit, run_fit(fit, X)


def _mixed(fits: list[Fit]) -> list[Fit]:
    """Return the fits repeat by repeat, in a fixed random order within each.

    Short and long ones mixed make an honest estimate of the time, and a run that is cut off has whole repeats.
    """
    order = np.random.default_rng(0).permutation(len(fits))
    return sorted((fits[i] for i in order), key=lambda fit: fit.repeat)


class _Clock:
    """Counts finished fits and the work in them."""

    def __init__(self, total: int, found: int, cost: float, report: Report | None) -> None:
        self.total, self.found, self.done = total, found, found
        self.cost_left, self.cost_done = cost, 0.0
        self.report = report
        self.began = time.monotonic()
        self._tell()

    def tick(self, cost: float) -> None:
        """Count one more."""
        self.done += 1
        self.cost_done += cost
        self.cost_left -= cost
        self._tell()

    def _tell(self) -> None:
        if self.report is None:
            return
        elapsed = time.monotonic() - self.began
        left = 0.0 if self.done == self.total else np.nan
        if self.cost_done > 0 and self.done < self.total:
            left = elapsed * self.cost_left / self.cost_done
        self.report(Progress(self.done, self.total, self.found, elapsed, float(left)))
