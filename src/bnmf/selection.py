"""Choosing K: hide entries, fit, and see how well they are predicted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from joblib import effective_n_jobs
from numpy.typing import NDArray

from bnmf.fitting import sample_posterior
from bnmf.gibbs import Model
from bnmf.observed import ObservedMatrix
from bnmf.posterior import Posterior
from bnmf.store import Schedule


@dataclass(frozen=True)
class RankChoice:
    """Which K predicts hidden entries best.

    Attributes
    ----------
    best_k : int
        The smallest K that is within one standard error of the best.
    table : DataFrame
        For each K the mean log predictive density of hidden entries and their root mean squared error, and how far
        the density lies below that of the best K, with the standard error of that difference over the folds.
    """

    best_k: int
    table: pd.DataFrame

    def __str__(self) -> str:
        return f"{self.table.to_string(float_format='{:.4g}'.format)}\nbest_k = {self.best_k}"


def select_rank(
    X: Any,
    ks: Sequence[int],
    *,
    observed: Any = None,
    prior: Any = "gl22",
    n_folds: int = 5,
    n_chains: int = 2,
    burn_in: int = 200,
    n_draws: int = 100,
    unstored: str = "zero",
    n_jobs: int | None = None,
    random_state: int = 0,
) -> RankChoice:
    """Choose the number of components by cross-validation over entries.

    The observed entries are dealt into folds; each fold is hidden in turn, the others are fitted, and the hidden
    entries are scored by their log predictive density. All K see the same folds.

    Parameters
    ----------
    X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
        Nonnegative data; NaN is missing. Sparse data whose unstored entries are zeros are not taken.
    ks : sequence of int
        Numbers of components to try.
    observed : array-like of bool, optional
        True where X was observed.
    prior : str, Prior or pair of them, default="gl22"
        Prior of the factors.
    n_folds : int, default=5
        Number of folds.
    n_chains, burn_in, n_draws : int
        Length of each fit.
    unstored : {"zero", "missing"}, default="zero"
        What an entry is that a sparse X does not store.
    n_jobs : int, optional
        Threads.
    random_state : int, default=0
        Seed of folds and fits.

    Returns
    -------
    RankChoice
        The choice, and the table it was made from.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.exponential(size=(40, 2)) @ rng.exponential(size=(2, 15)) + 0.1 * rng.random((40, 15))
    >>> select_rank(X, ks=[1, 2, 4], n_folds=3).best_k
    2
    """
    ks = sorted(set(ks))
    if not ks:
        raise ValueError("ks must name at least one number of components")
    if n_folds < 2:
        raise ValueError(f"n_folds must be at least 2, got {n_folds}")
    data = ObservedMatrix.from_data(X, observed, unstored=unstored)
    if data.n_observed < n_folds:
        raise ValueError(f"n_folds={n_folds} needs as many observed entries, got {data.n_observed}")
    entries = data.observed_entries()
    fold = np.random.default_rng(random_state).permutation(data.n_observed) % n_folds
    schedule = Schedule(n_chains, burn_in, n_draws)
    threads = effective_n_jobs(n_jobs)
    densities, squares = np.empty((len(ks), n_folds)), np.empty((len(ks), n_folds))
    for turn in range(n_folds):
        hidden = fold == turn
        train = _part(entries, ~hidden, data.shape)
        for i, k in enumerate(ks):
            posterior = sample_posterior(Model(train, k, prior), schedule, random_state, n_jobs=threads)
            assert isinstance(posterior, Posterior)
            rows, columns, values = (array[hidden] for array in entries)
            densities[i, turn] = posterior.log_predictive_density(rows, columns, values).mean()
            squares[i, turn] = np.mean((values - posterior.mean(rows, columns)) ** 2)
    return _choose(ks, densities, squares)


def _part(entries: tuple[Any, Any, Any], kept: NDArray[np.bool_], shape: tuple[int, int]) -> ObservedMatrix:
    rows, columns, values = (array[kept] for array in entries)
    return ObservedMatrix.from_data(sp.csr_array((values, (rows, columns)), shape=shape), unstored="missing")


def _choose(ks: list[int], densities: NDArray[np.float64], squares: NDArray[np.float64]) -> RankChoice:
    """Take the smallest K within one standard error of the best; folds are compared pairwise."""
    best = int(np.argmax(densities.mean(axis=1)))
    below = densities[best] - densities
    error = below.std(axis=1, ddof=1) / np.sqrt(densities.shape[1])
    table = pd.DataFrame(
        {
            "log_density": densities.mean(axis=1),
            "below_best": below.mean(axis=1),
            "standard_error": error,
            "rmse": np.sqrt(squares.mean(axis=1)),
        },
        index=pd.Index(ks, name="k"),
    )
    good = [k for k, gap, spread in zip(ks, below.mean(axis=1), error, strict=True) if gap <= spread]
    return RankChoice(good[0], table)
