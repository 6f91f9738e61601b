"""The whole of it: plan, run what is missing, write the page."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from bnmf.experiments import convergence, noise, prediction, starts
from bnmf.experiments.data import Dataset
from bnmf.experiments.fits import Fit
from bnmf.experiments.run import Report, run_fits
from bnmf.experiments.settings import Settings
from bnmf.experiments.store import Store, data_fingerprint
from bnmf.progress import duration

EXPERIMENTS = ("convergence", "factors", "prediction", "noise")
"""The experiments, in the order of the page."""
FITS = "fits"
"""Where the finished fits are, below the directory of the page."""


def needed_datasets(experiments: Sequence[str], settings: Settings) -> list[str]:
    """Return the names of the data that some experiments need."""
    needed = list(settings.datasets) if set(experiments) - {"noise"} else []
    return list(dict.fromkeys([*needed, *([settings.noise_dataset] if "noise" in experiments else [])]))


def plan(experiments: Sequence[str], settings: Settings, datasets: Mapping[str, Dataset]) -> list[Fit]:
    """Return every fit of some experiments, each once.

    Parameters
    ----------
    experiments : sequence of str
        Of `EXPERIMENTS`.
    settings : Settings
        Size of the run.
    datasets : mapping of str to Dataset
        The data by name.

    Returns
    -------
    list of Fit
        What to run.
    """
    fits: list[Fit] = []
    if {"convergence", "factors"} & set(experiments):
        fits += convergence.plan(settings)
    if "prediction" in experiments:
        fits += prediction.plan(settings) + starts.plan(settings)
    if "noise" in experiments:
        fits += noise.plan(settings, noise.observed_fraction(datasets[settings.noise_dataset].data))
    return list(dict.fromkeys(fits))


def reproduce(
    experiments: Sequence[str],
    datasets: Mapping[str, Dataset],
    settings: Settings,
    out: Path,
    *,
    n_jobs: int | None = None,
    report: Report | None = None,
) -> Path:
    """Run experiments and write their page.

    Parameters
    ----------
    experiments : sequence of str
        Of `EXPERIMENTS`.
    datasets : mapping of str to Dataset
        The data by name.
    settings : Settings
        Size of the run.
    out : pathlib.Path
        Directory of the page. Finished fits are kept below it, and never run again.
    n_jobs : int, optional
        Processes, as joblib takes it.
    report : callable, optional
        Called with a `bnmf.experiments.run.Progress` at the start and after every fit.

    Returns
    -------
    pathlib.Path
        The page.
    """
    began = time.monotonic()
    matrices = {name: dataset.data for name, dataset in datasets.items()}
    store = Store(out / FITS, {name: data_fingerprint(X) for name, X in matrices.items()})
    fits = plan(experiments, settings, datasets)
    found = sum(store.path(fit).exists() for fit in fits)
    results = run_fits(fits, matrices, store=store, n_jobs=n_jobs, report=report)
    from bnmf.experiments.report import Report as Page  # matplotlib is loaded when there is something to draw

    seconds = sum(float(result["seconds"]) for result in results.values())
    about = {
        "fits": f"{len(fits)}, {len(fits) - found} of them in this run, the others found finished",
        "duration": f"{duration(time.monotonic() - began)}; all fits together took {duration(seconds)} of one core",
    }
    Page(out, datasets, settings, results).write(experiments, about)
    return out / "index.html"
