"""A fit: chains of a model, their posterior, and how well two more chains predict what is hidden from them."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bnmf.data.folds import folds
from bnmf.data.identity import row_ids
from bnmf.data.observed import ObservedMatrix
from bnmf.model.build import Built, build
from bnmf.posterior import notes as notes_of
from bnmf.posterior.base import Moments
from bnmf.posterior.calibration import Calibration, measure
from bnmf.posterior.posterior import Posterior
from bnmf.posterior.verdict import PREDICTION_ERRORS, Finding
from bnmf.sampler.run import Ending, Run
from bnmf.sampler.stores import Schedule
from bnmf.sampler.until_converged import MAX_TIME, N_FIRST_DRAWS, sample_until_converged

# Calibration: one of so many folds of the entries is hidden, at most so many entries, in this share of the time.
N_FOLDS, MAX_HIDDEN, CALIBRATION_TIME = 10, 20_000, 0.25
# Part of the seed of the chains that entries are hidden from.
CALIBRATION_KEY = 0xCA11B


@dataclass
class Fit:
    """A model, the run of its chains, their posterior, and why sampling ended."""

    built: Built
    run: Run
    posterior: Any
    ending: Ending

    def extended(self, n_draws: int, **options: Any) -> Fit:
        """Return the fit with more draws of every chain."""
        run = self.run.extended(n_draws, **options)
        posterior = from_run(run, self.built, calibration=self.posterior.calibration)
        return Fit(self.built, run, posterior, run.ending)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the posterior, because the run holds its draws."""
        return vars(self) | {"posterior": (self.posterior.notes, self.posterior.calibration)}

    def __setstate__(self, content: dict[str, Any]) -> None:
        vars(self).update(content)
        self.posterior = from_run(self.run, self.built, *content["posterior"])


def fit(
    data: ObservedMatrix,
    parameters: dict[str, Any],
    schedule: Schedule,
    seed: int,
    *,
    until_converged: bool = False,
    calibrates: bool = False,
    max_time: float | None = None,
    n_jobs: int = 1,
    progress: bool = False,
    **settings: Any,
) -> Fit:
    """Sample the model that parameters give to data; `settings` are those of the run."""
    limit = MAX_TIME if until_converged and max_time is None else max_time
    options: dict[str, Any] = {"n_jobs": n_jobs, "progress": progress}
    options["deadline"] = None if limit is None else time.monotonic() + limit
    built = build(data, **parameters)
    run, calibration = Run(built.model, seed, **settings), None
    if limit is not None and until_converged:
        reserve = CALIBRATION_TIME * limit if calibrates and math.isfinite(limit) else 0.0
        run, ending = sample_until_converged(
            run,
            schedule,
            lambda run: from_run(run, built, notes=()).monitored_predictions(),
            PREDICTION_ERRORS[0],
            reserve=reserve,
            always_first=max_time is None,
            **options,
        )
    else:
        run = run.sampled(schedule, **options)
        ending = run.ending
    if calibrates and ending != Ending.INTERRUPTED:
        calibration = calibrate(data, parameters, schedule, seed, **options)
    return Fit(built, run, from_run(run, built, calibration=calibration), ending)


def from_run(
    run: Run, built: Built, notes: tuple[Finding, ...] | None = None, calibration: Calibration | None = None
) -> Any:
    """Return the posterior of a run of a model, which shares its draws; notes are found in the data by default."""
    drawn, model, data = run.drawn, run.model, built.data
    common: dict[str, Any] = {
        "train_mse": drawn.train_mse,
        **drawn.traces,
        "n_observed": data.n_observed,
        "column_names": model.data.column_names,
        "offset": model.units.offset,
        "lower_bound": 0.0 if data.nonnegative else -math.inf,
        "noise_factor": built.noise_factor,
        "scale": model.units.scale,
        "n_fixed": model.fixed.counts,
        "signed": (model.priors[0].is_real, model.priors[1].is_real),
        "thinning": run.schedule.thinning,
        "calibration": calibration,
    }
    posterior: Any
    if drawn.prediction is not None:
        posterior = Moments(drawn.W, drawn.Z, drawn.prediction, **common)
    else:
        ids = row_ids(data, model.units.scale)
        common |= {"row_names": model.data.row_names, "prior_W": model.priors[0], "row_ids": ids}
        posterior = Posterior(drawn.W, drawn.Z, **common)
    posterior.notes = notes_of.of_fit(posterior, data, model) if notes is None else notes
    return posterior


def calibrate(
    data: ObservedMatrix, parameters: dict[str, Any], schedule: Schedule, seed: int, **options: Any
) -> Calibration | None:
    """Return how two more chains predict entries that they do not see; None if there are too few, or no time."""
    seed = int(np.random.SeedSequence([seed, CALIBRATION_KEY]).generate_state(1, np.uint64)[0])
    n_folds = max(N_FOLDS, data.n_observed // MAX_HIDDEN)
    # Two chains, because one lacks the spread between modes; short ones, because coverage needs no exact quantiles.
    burn_in, n_draws = 2 * schedule.burn_in // 3, min(schedule.n_draws, N_FIRST_DRAWS)
    options["progress"] = options["progress"] and "calibration"
    try:
        fold = next(iter(folds(data, n_folds, np.random.default_rng(seed), balanced=True)))
        built = build(fold.rest, **parameters)
        run = Run(built.model, seed).sampled(replace(schedule, n_chains=2, burn_in=burn_in, n_draws=n_draws), **options)
    except (KeyboardInterrupt, ValueError, TimeoutError):
        return None
    if run.ending == Ending.TIME:
        return None
    return measure(from_run(run, built, notes=()), fold, data)
