"""From the draws of a run to their posterior, and how well two more chains predict what is hidden from them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from bnmf.data.folds import balanced_folds
from bnmf.data.identity import row_ids
from bnmf.data.observed import ObservedMatrix
from bnmf.model.build import Built, build
from bnmf.model.units import NO_UNITS
from bnmf.posterior import notes as notes_of
from bnmf.posterior.base import Moments
from bnmf.posterior.calibration import Calibration, measure
from bnmf.posterior.posterior import Posterior
from bnmf.posterior.verdict import Finding
from bnmf.sampler.run import Ending, Run
from bnmf.sampler.stores import Schedule
from bnmf.sampler.until_converged import N_FIRST_DRAWS

# Calibration: one of so many folds of the entries is hidden, at most so many entries.
N_FOLDS, MAX_HIDDEN = 10, 20_000
# Part of the seed of the chains that entries are hidden from.
CALIBRATION_KEY = 0xCA11B


def from_run(
    run: Run, built: Built, notes: tuple[Finding, ...] | None = None, calibration: Calibration | None = None
) -> Posterior | Moments:
    """Return the posterior of a run of a model, which shares its draws; notes are found in the data by default."""
    drawn, model, data = run.drawn, run.model, built.data
    lower_bound = 0.0 if data.nonnegative else -math.inf
    scale = None if model.units is NO_UNITS else model.units.scale
    posterior: Posterior | Moments
    if drawn.prediction is not None:
        posterior = Moments(
            drawn,
            run.schedule.thinning,
            n_observed=data.n_observed,
            column_names=model.data.column_names,
            offset=model.units.offset,
            lower_bound=lower_bound,
            noise_factor=built.noise_factor,
        )
    else:
        posterior = Posterior(
            drawn.W,
            drawn.Z,
            train_mse=drawn.train_mse,
            **drawn.traces,
            n_observed=model.data.n_observed,
            row_names=model.data.row_names,
            column_names=model.data.column_names,
            prior_W=model.priors[0],
            row_ids=row_ids(data, scale),
            lower_bound=lower_bound,
            offset=model.units.offset,
            scale=scale,
            thinning=run.schedule.thinning,
            noise_factor=built.noise_factor,
            n_fixed=model.fixed.counts,
            signed=(model.priors[0].is_real, model.priors[1].is_real),
        )
    posterior.notes = notes_of.of_fit(posterior, data, model) if notes is None else notes
    posterior.calibration = calibration
    return posterior


def calibrate(
    data: ObservedMatrix, parameters: dict[str, Any], schedule: Schedule, seed: int, **options: Any
) -> Calibration | None:
    """Return how two more chains predict entries that they do not see; None if there are too few, or no time."""
    seed = int(np.random.SeedSequence([seed, CALIBRATION_KEY]).generate_state(1, np.uint64)[0])
    n_folds = max(N_FOLDS, data.n_observed // MAX_HIDDEN)
    # Two chains, because one lacks the spread between modes; short ones, because coverage needs no exact quantiles.
    burn_in, n_draws = 2 * schedule.burn_in // 3, min(schedule.n_draws, N_FIRST_DRAWS)
    try:
        fold = next(iter(balanced_folds(data, n_folds, np.random.default_rng(seed))))
        built = build(fold.rest, **parameters)
        run = Run(built.model, seed).sampled(replace(schedule, n_chains=2, burn_in=burn_in, n_draws=n_draws), **options)
    except (KeyboardInterrupt, ValueError, TimeoutError):
        return None
    if run.ending == Ending.TIME:
        return None
    posterior = from_run(run, built, notes=())
    assert isinstance(posterior, Posterior)
    return measure(posterior, fold)
