"""Log probabilities of whole numbers between 0 and a cap, many of which are at the ends.

A response is a number that was cut to that range and truncated. More than half of them are 0 or the cap, and a density
may be as high as it likes at a value that many entries share. A probability may not: that of v is the one of all
numbers from v to v + 1, that of 0 of all below 1, and that of the cap of all from there on.
"""

import numpy as np
from scipy.special import logsumexp

from bnmf.posterior.posterior import Posterior
from bnmf.posterior.predictions import tiles
from bnmf.utils.typing import Floats, Indices


def bounds(values: Floats, top: float) -> tuple[Floats, Floats]:
    """Return the range of numbers that each value stands for."""
    low = np.floor(values)
    return np.where(low <= 0.0, -np.inf, low), np.where(low >= np.floor(top), np.inf, low + 1.0)


def log_probability(posterior: Posterior, rows: Indices, columns: Indices, low: Floats, high: Floats) -> Floats:
    """Return the log posterior predictive probability of a range for each entry."""
    terms = posterior.log_likelihood(rows, columns, np.zeros(len(rows)), lower=low, upper=high)
    return logsumexp(terms, axis=(0, 1)) - np.log(terms.shape[0] * terms.shape[1])


def recorded_mean(posterior: Posterior, rows: Indices, columns: Indices, top: float) -> Floats:
    """Return the mean of the whole number that would be recorded of each entry."""
    out = np.empty(len(rows))
    for part in tiles(len(rows), 64 * posterior.n_chains * posterior.n_draws):
        draws = posterior.draws_of(rows[part], columns[part], noise=True)
        out[part] = np.floor(np.clip(draws, 0.0, top)).mean(axis=(0, 1))
    return out
