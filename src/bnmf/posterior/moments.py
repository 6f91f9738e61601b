"""Means and standard deviations in place of draws."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from bnmf.store import MomentStore
from bnmf.summary import Diagnosed

Floats = NDArray[np.float64]


class Moments(Diagnosed):
    """Means and standard deviations in place of draws: what a fit with ``keep_draws=False`` leaves.

    Parameters
    ----------
    store : MomentStore
        Running moments of all chains.
    chains : list of int
        The chains to use.
    n_draws : int
        Draws that went into the moments of each.
    n_observed : int
        Number of observed entries.
    """

    def __init__(self, store: MomentStore, chains: list[int], n_draws: int, n_observed: int) -> None:
        self.noise_variance = store.noise_variance[chains, :n_draws]
        self.train_mse = store.train_mse[chains]
        self.n_observed = n_observed
        self._means = {name: mean[chains] for name, mean in store.mean.items()}
        self._squares = {name: squares[chains] for name, squares in store.squares.items()}
        self.n_draws = n_draws
        # Chains are not aligned here, so the factors are those of the chain that fits best.
        self._best = int(np.argmin([np.nanmean(mse[-n_draws:]) for mse in self.train_mse]))

    @property
    def mean_W(self) -> Floats:
        """Mean of W in the chain that fits best, (rows, K)."""
        return self._means["W"][self._best]

    @property
    def mean_Z(self) -> Floats:
        """Mean of Z in the chain that fits best, (K, columns)."""
        return self._means["Z"][self._best]

    def mean(self) -> Floats:
        """Return the posterior mean of W Z, (rows, columns)."""
        return self._means["prediction"].mean(axis=0)

    def std(self, *, noise: bool = False) -> Floats:
        """Return the posterior standard deviation of W Z, or with noise of new data at each entry."""
        means = self._means["prediction"]
        within = self._squares["prediction"].sum(axis=0) / (self.n_draws * len(means))
        added = self.noise_variance.mean() if noise else 0.0
        return np.sqrt(within + means.var(axis=0) + added)

    def interval(self, prob: float = 0.9, *, noise: bool = True) -> tuple[Floats, Floats]:
        """Return the central interval of each entry, as if it were normal: only two moments are known."""
        if not 0 < prob < 1:
            raise ValueError(f"prob must be between 0 and 1, got {prob!r}")
        half = norm.ppf(0.5 * (1.0 + prob)) * self.std(noise=noise)
        return self.mean() - half, self.mean() + half
