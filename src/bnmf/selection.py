"""Choosing the number of components K by how well hidden entries are predicted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from bnmf.data.folds import Fold, folds
from bnmf.data.observed import ObservedMatrix
from bnmf.estimator import BayesianNMF
from bnmf.utils.arguments import whole_number
from bnmf.utils.seeds import as_seed
from bnmf.utils.typing import Floats


@dataclass(frozen=True)
class RankChoice:
    """The K that predicts hidden entries best.

    Attributes
    ----------
    best_k : int
        The smallest K whose log predictive density is within one standard error of the best.
    table : DataFrame
        For each K the mean log predictive density of hidden entries, how far it lies below that of the best K, the
        standard error of that difference over the folds, and the root mean squared error.
    """

    best_k: int
    table: pd.DataFrame

    def __str__(self) -> str:
        return f"{self.table.to_string(float_format='{:.4g}'.format)}\nbest_k = {self.best_k}"


def select_rank(
    X: Any,
    ks: Sequence[int],
    *,
    estimator: BayesianNMF | None = None,
    observed: Any = None,
    n_folds: int = 5,
    random_state: Any = 0,
) -> RankChoice:
    """Choose the number of components by cross-validation over entries.

    The observed entries are divided into folds. Each fold is hidden in turn, the rest is fitted, and the hidden
    entries are scored by their log predictive density. All K see the same folds. Of sparse data with implicit zeros,
    each fold holds a sample of the zeros, weighted to stand for all of them.

    Parameters
    ----------
    X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
        Nonnegative data; NaN is missing.
    ks : sequence of int
        Numbers of components to try.
    estimator : BayesianNMF, optional
        The model, whose `n_components` is replaced by each K; by default a BayesianNMF with 2 chains of 200 sweeps of
        burn-in and 100 draws.
    observed : array-like of bool, optional
        True where X was observed.
    n_folds : int, default=5
        Number of folds.
    random_state : int, RandomState, Generator or None, default=0
        Seed of folds and fits.

    Returns
    -------
    RankChoice
        The choice, and the table it is based on.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.exponential(size=(40, 2)) @ rng.exponential(size=(2, 15)) + 0.1 * rng.random((40, 15))
    >>> select_rank(X, ks=[1, 2, 4], n_folds=3).best_k
    2
    """
    if not isinstance(ks, Iterable):
        raise TypeError(f"ks must be a list of numbers of components, got {ks!r}")
    ks = sorted({whole_number(k, "a number of ks", 1) for k in ks})
    if not ks:
        raise ValueError("ks must name at least one number of components")
    if n_folds < 2:
        raise ValueError(f"n_folds must be at least 2, got {n_folds}")
    estimator = BayesianNMF(n_chains=2, burn_in=200, n_draws=100) if estimator is None else estimator
    seed = as_seed(random_state)
    data = ObservedMatrix.from_data(X, observed, unstored=estimator.unstored)
    if data.n_observed < n_folds:
        raise ValueError(f"n_folds={n_folds} needs as many observed entries, got {data.n_observed}")
    needed = {"keep_draws": True, "checkpoint": None}  # predictive densities need draws, and fits differ
    scores = [
        [_score(clone(estimator).set_params(n_components=k, **needed), fold, seed) for k in ks]
        for fold in folds(data, n_folds, np.random.default_rng(seed))
    ]
    densities, squares = np.array(scores).transpose(2, 1, 0)
    return _choose(ks, densities, squares)


def _score(model: BayesianNMF, fold: Fold, seed: int) -> tuple[float, float]:
    """Return mean log predictive density and mean squared error of the hidden entries."""
    posterior = model._fit_observed(fold.rest, seed).posterior_
    density = posterior.log_predictive_density(fold.rows, fold.columns, fold.values)
    squares = (fold.values - posterior.mean(fold.rows, fold.columns)) ** 2
    return np.average(density, weights=fold.weights), np.average(squares, weights=fold.weights)


def _choose(ks: list[int], densities: Floats, squares: Floats) -> RankChoice:
    """Take the smallest K within one standard error of the best, comparing the same folds."""
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
