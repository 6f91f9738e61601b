"""Leave-one-out densities of observed entries, without fitting again: importance sampling and WAIC."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from bnmf.posterior.posterior import Posterior
from bnmf.posterior.predictions import tiles
from bnmf.utils.typing import Bools, Floats, Indices

# Shape of the Pareto distribution of importance weights above which they are not reliable.
MAX_SHAPE = 0.7
# Log probability of an interval above which it counts as certain.
MIN_DOUBT = 1e-12
# Draws that the fit of a tail needs.
MIN_DRAWS = 50


class LeaveOneOut(NamedTuple):
    """Log densities (n,) of entries, each given all others."""

    loo: Floats  # by Pareto-smoothed importance sampling
    waic: Floats  # the log predictive density less the variance of the log likelihood over the draws
    is_unreliable: Bools  # whether the importance weights of an entry have too heavy a tail


def leave_one_out(
    posterior: Posterior,
    rows: Indices,
    columns: Indices,
    values: Floats,
    lower: Floats | None = None,
    upper: Floats | None = None,
) -> LeaveOneOut:
    """Return the leave-one-out densities of some of the observed entries; limits are NaN where an entry is exact."""
    from arviz_stats.base import array_stats

    n_draws = posterior.n_chains * posterior.n_draws
    if n_draws < MIN_DRAWS:
        raise ValueError(f"leave-one-out densities need at least {MIN_DRAWS} draws in all, got {n_draws}")
    loo, waic, shape = (np.empty(len(rows)) for _ in range(3))
    for part in tiles(len(rows), 64 * n_draws):
        sides = {name: None if x is None else x[part] for name, x in (("lower", lower), ("upper", upper))}
        terms = posterior.log_likelihood(rows[part], columns[part], values[part], **sides).reshape(n_draws, -1).T
        loo[part], shape[part] = terms.mean(axis=1), -np.inf
        # Most draws may agree that an interval is certain: there is no tail to fit then.
        varies = np.ptp(terms, axis=1) > 0.0
        if lower is not None:
            varies &= np.isnan(lower[part]) | (np.median(terms, axis=1) < -MIN_DOUBT)
        if varies.any():
            weights, shapes = array_stats.psislw(terms[varies], axis=-1)
            loo[part][varies], shape[part][varies] = logsumexp(weights + terms[varies], axis=1), shapes
        waic[part] = logsumexp(terms, axis=1) - np.log(n_draws) - terms.var(axis=1, ddof=1)
    return LeaveOneOut(loo, waic, shape > MAX_SHAPE)
