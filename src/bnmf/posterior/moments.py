"""Means and standard deviations in place of draws."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import norm

from bnmf.data.observed import ObservedMatrix
from bnmf.model.noise import Law
from bnmf.posterior import predictions
from bnmf.posterior.interface import BasePosterior
from bnmf.sampler.run import Drawn
from bnmf.utils import arguments
from bnmf.utils.typing import Floats


class Moments(BasePosterior):
    """Means and standard deviations: what a fit with ``keep_draws=False`` leaves.

    Parameters
    ----------
    drawn : Drawn
        Running moments of the factors and of W Z, and draws of the noise.
    thinning : int
        Sweeps from one draw to the next.
    n_observed : int
        Number of observed entries.
    offset : ndarray of shape (columns,), optional
        What is added to W Z.
    lower_bound : float, default=0.0
        The smallest value that an entry of the data can take.
    noise_factor : ndarray of shape (1 or rows, columns), optional
        Known relative standard deviation of the noise of each entry.
    """

    def __init__(
        self,
        drawn: Drawn,
        thinning: int,
        *,
        n_observed: int,
        offset: Floats | None = None,
        lower_bound: float = 0.0,
        noise_factor: Floats | None = None,
    ) -> None:
        prediction, W, Z, traces = drawn.prediction, drawn.W, drawn.Z, drawn.traces
        assert prediction is not None
        self.noise_variance = traces["noise_variance"]
        self.log_density = traces["log_density"]
        self._row_noise, self._law = traces.get("row_noise"), Law.of(traces)
        self._noise_factor = noise_factor
        self._offset = 0.0 if offset is None else offset
        self.train_mse, self.thinning = drawn.train_mse, thinning
        self.n_observed, self.lower_bound = n_observed, lower_bound
        self.notes: tuple[str, ...] = ()
        self.calibration = None
        self._prediction, self._squares, self._counts = prediction.mean, prediction.squares, prediction.counts
        # Components are not matched between chains, so the factors are those of the chain that fits best.
        best = int(np.argmax(self.log_density.mean(axis=1)))
        self._factors = W.mean[best], Z.mean[best]

    def factor_means(self) -> tuple[Floats, Floats]:
        """Return the means of W (rows, K) and Z (K, columns) in the chain that fits best."""
        return self._factors

    def mean(self, rows: Any = None, columns: Any = None) -> Floats:
        """Return the posterior mean of W Z, or 0 where it is negative and the data are not."""
        mean = predictions.cut(self._prediction.mean(axis=0) + self._offset, self.lower_bound)
        return mean if rows is None and columns is None else mean[arguments.positions(rows, columns, mean.shape)]

    def mean_of_rows(self, rows: slice) -> Floats:
        """Return the posterior mean of W Z for a range of rows."""
        return predictions.cut(self._prediction[:, rows].mean(axis=0) + self._offset, self.lower_bound)

    def mean_between(self, rows: Any, columns: Any, lower: Any, upper: Any) -> Floats:
        """Return the posterior mean of W Z, cut at the limits: the mean of a value between them needs the draws."""
        return np.clip(self.mean(rows, columns), lower, upper)

    def std(self, rows: Any = None, columns: Any = None, *, noise: bool = False) -> Floats:
        """Return the posterior standard deviation of W Z."""
        # Each chain by its own count: after Ctrl-C some have more draws than the others.
        within = np.mean([squares / count for squares, count in zip(self._squares, self._counts, strict=True)], axis=0)
        variance = within + self._prediction.var(axis=0)
        if arguments.flag(noise, "noise"):
            by_column = self.noise_variance.reshape(self.noise_variance.shape[0] * self.n_draws, -1)
            by_row = np.ones((len(by_column), 1))
            if self._row_noise is not None:
                by_row = self._row_noise.reshape(len(by_column), -1)
            of_noise = by_row.T @ (by_column * self._law.variance) / len(by_column)
            variance = variance + (of_noise if self._noise_factor is None else of_noise * self._noise_factor**2)
        std = np.sqrt(variance)
        return std if rows is None and columns is None else std[arguments.positions(rows, columns, std.shape)]

    def interval(self, prob: float = 0.9, *, noise: bool = True) -> tuple[Floats, Floats]:
        """Return the central interval of each entry in the normal approximation: only two moments are known."""
        half = norm.ppf(0.5 * (1.0 + arguments.probability(prob, "prob"))) * self.std(noise=noise)
        mean = self._prediction.mean(axis=0) + self._offset
        low, high = mean - half, mean + half
        return np.maximum(low, self.lower_bound), np.maximum(high, self.lower_bound)

    def for_data(self, data: ObservedMatrix, seed: int) -> BasePosterior:
        """Raise an error: new rows are drawn given draws of Z, and there are none."""
        raise ValueError("new rows need the draws of Z, which a fit with keep_draws=False does not keep")
