"""``bnmf fit --scheduler``: a fit of Parquet parts on a Dask cluster."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bnmf.cli.outcome import Interrupted, WrongUse
from bnmf.cli.screen import Screen

if TYPE_CHECKING:
    from bnmf.cli.directory import FitDirectory


def fit_parts(
    settings: dict[str, Any], parameters: dict[str, Any], directory: FitDirectory, screen: Screen, again: str
) -> None:
    """Fit a directory of Parquet parts, and write the posterior and the factors."""
    from sklearn.exceptions import ConvergenceWarning

    from bnmf.distributed import ClusterLost, read_blocks, read_triples
    from bnmf.distributed.cluster import connected
    from bnmf.estimator import BayesianNMF
    from bnmf.sampler.run import Ending, InterruptedRunWarning

    parts = Path(settings["data"])
    if not parts.is_dir():
        raise WrongUse(f"--scheduler takes a directory of Parquet parts that all workers see, and {parts} is none")
    go_on = f"What was drawn is kept; go on with: {again} --scheduler {settings['scheduler']}"
    with connected(settings["scheduler"]) as n_threads:
        screen.say(f"Connected to {settings['scheduler']}: {n_threads} threads.")
        X = read_triples(parts) if settings["triples"] else read_blocks(parts)
        unstored = "missing" if settings["triples"] else "zero"
        model = BayesianNMF(unstored=unstored, progress=True, **parameters)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                warnings.simplefilter("ignore", InterruptedRunWarning)
                model.fit(X)
        except KeyboardInterrupt:
            raise Interrupted(f"Interrupted. {go_on}") from None
        except ClusterLost as error:
            raise ValueError(f"{error}. {go_on}") from None
    if model.ending_ == Ending.INTERRUPTED:
        raise Interrupted(f"Interrupted. {go_on}")
    posterior = model.posterior_
    screen.judge(posterior.verdict)
    directory.finish(posterior)
    screen.say(f"In {directory.path}: W.csv, Z.csv, posterior.npz, settings.json", style="bold")
