"""The posterior of a model, sampled without an estimator."""

import warnings

from bnmf.model.build import Built
from bnmf.posterior.fitting import from_run
from bnmf.sampler.run import Ending, Run


def sample_posterior(model, schedule, seed, *, data=None, n_jobs=1, progress=False, **options):
    """Return the posterior; `data` are those of the user if they are not those of the model."""
    run = Run(model, seed, **options).sampled(schedule, n_jobs=n_jobs, progress=progress)
    if run.ending == Ending.INTERRUPTED:
        warnings.warn(run.message(run.ending), stacklevel=2)
    return from_run(run, Built(model, model.data if data is None else data, None))
