"""The posterior of a model, sampled without an estimator, and whether two posteriors are the same."""

import warnings
from dataclasses import fields

import numpy as np

from bnmf.model.build import Built
from bnmf.posterior.fitting import from_run
from bnmf.sampler.run import Ending, Run


def sample_posterior(model, schedule, seed, *, data=None, n_jobs=1, progress=False, **options):
    """Return the posterior; `data` are those of the user if they are not those of the model."""
    run = Run(model, seed, **options).sampled(schedule, n_jobs=n_jobs, progress=progress)
    if run.ending == Ending.INTERRUPTED:
        warnings.warn(run.message(run.ending), stacklevel=2)
    return from_run(run, Built(model, model.data if data is None else data, None))


def assert_same_draws(posterior, expected):
    """Assert that two posteriors hold the same arrays, bit for bit."""
    for item in fields(expected):
        found, wanted = getattr(posterior, item.name), getattr(expected, item.name)
        assert isinstance(found, np.ndarray) == isinstance(wanted, np.ndarray), item.name
        if isinstance(wanted, np.ndarray):
            np.testing.assert_array_equal(found, wanted, err_msg=item.name)
    assert (posterior.n_observed, posterior.lower_bound) == (expected.n_observed, expected.lower_bound)
