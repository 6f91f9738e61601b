"""Reproduce the paper: plan the fits, run those that are not finished, write the page."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from bnmf.paper import added_noise, convergence, prediction, starts
from bnmf.paper.experiments import Settings
from bnmf.paper.finished import FinishedFits, data_fingerprint
from bnmf.paper.fits import Fit
from bnmf.paper.inputs import Dataset
from bnmf.paper.run import run_fits
from bnmf.utils.text import duration

EXPERIMENTS = ("convergence", "factors", "prediction", "noise")
"""The experiments, in the order of the page."""
FITS_DIRECTORY = "fits"
"""Directory of the finished fits, relative to the directory of the page."""


def needed_datasets(experiments: Sequence[str], settings: Settings) -> list[str]:
    """Return the names of the data sets that experiments need."""
    needed = list(settings.datasets) if set(experiments) - {"noise"} else []
    return list(dict.fromkeys([*needed, *([settings.noise_dataset] if "noise" in experiments else [])]))


def plan(experiments: Sequence[str], settings: Settings, datasets: Mapping[str, Dataset]) -> list[Fit]:
    """Return every fit of some experiments, without duplicates.

    Parameters
    ----------
    experiments : sequence of str
        Names from `EXPERIMENTS`.
    settings : Settings
        Settings of the run.
    datasets : mapping of str to Dataset
        The data by name.

    Returns
    -------
    list of Fit
        The fits to run.
    """
    fits: list[Fit] = []
    if {"convergence", "factors"} & set(experiments):
        fits += convergence.plan(settings)
    if "prediction" in experiments:
        fits += prediction.plan(settings) + starts.plan(settings)
    if "noise" in experiments:
        fits += added_noise.plan(settings, added_noise.observed_fraction(datasets[settings.noise_dataset].data))
    return list(dict.fromkeys(fits))


def reproduce(
    experiments: Sequence[str],
    datasets: Mapping[str, Dataset],
    settings: Settings,
    out: Path,
    *,
    n_jobs: int | None = None,
    progress: bool = False,
) -> Path:
    """Run experiments and write the page with their results.

    Parameters
    ----------
    experiments : sequence of str
        Names from `EXPERIMENTS`.
    datasets : mapping of str to Dataset
        The data by name.
    settings : Settings
        Settings of the run.
    out : pathlib.Path
        Directory of the page. It also keeps the finished fits, which are not run again.
    n_jobs : int, optional
        Number of processes, as in joblib.
    progress : bool, default=False
        Show progress on stderr.

    Returns
    -------
    pathlib.Path
        The page.
    """
    began = time.monotonic()
    matrices = {name: dataset.data for name, dataset in datasets.items()}
    finished = FinishedFits(out / FITS_DIRECTORY, {name: data_fingerprint(X) for name, X in matrices.items()})
    fits = plan(experiments, settings, datasets)
    found = sum(finished.path(fit).exists() for fit in fits)
    results = run_fits(fits, matrices, finished=finished, n_jobs=n_jobs, progress=progress)
    from bnmf.paper.write_up import WriteUp  # imports matplotlib, which is not needed before

    seconds = sum(float(result["seconds"]) for result in results.values())
    about = {
        "fits": f"{len(fits)}, {len(fits) - found} of them in this run, the others finished before",
        "duration": f"{duration(time.monotonic() - began)}; all fits together took {duration(seconds)} of one core",
    }
    WriteUp(out, datasets, settings, results).write(experiments, about)
    return out / "index.html"
