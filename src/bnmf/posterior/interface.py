"""The interface of a fit, whether its draws were kept or only their moments."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import pandas as pd

from bnmf.data.observed import ObservedMatrix
from bnmf.posterior import diagnostics
from bnmf.posterior.calibration import Calibration
from bnmf.posterior.diagnostics import Quantity
from bnmf.posterior.summary import SummaryTable
from bnmf.posterior.verdict import Verdict, on_fit, on_intervals, on_noise
from bnmf.utils.typing import Floats

# Columns whose noise variance is checked for convergence, evenly spaced.
N_MONITORED_COLUMNS = 100


class BasePosterior(ABC):
    """What every posterior offers: predictions, means of the factors, convergence.

    Attributes
    ----------
    noise_variance : ndarray of shape (chain, draw) or (chain, draw, columns)
        Draws of the variance of the noise, common or of each column.
    log_density : ndarray of shape (chain, draw) or None
        Log density of the observed entries under each draw.
    train_mse : ndarray of shape (chain, sweep)
        Mean squared error on the observed entries after each sweep, burn-in included.
    n_observed : int
        Number of observed entries.
    notes : tuple of str
        What is wrong with the fit as such, however well it has converged.
    thinning : int
        Sweeps from one draw to the next. The last draw is that of the last sweep.
    calibration : Calibration or None
        How well entries that were hidden for this purpose are predicted.
    """

    noise_variance: Floats
    log_density: Floats | None
    train_mse: Floats
    n_observed: int
    notes: tuple[str, ...]
    thinning: int
    calibration: Calibration | None

    @abstractmethod
    def mean(self, rows: Any = None, columns: Any = None) -> Floats:
        """Return the posterior mean of W Z, of all entries or of those at paired positions."""

    @abstractmethod
    def mean_of_rows(self, rows: slice) -> Floats:
        """Return the posterior mean of W Z for a range of rows."""

    @abstractmethod
    def mean_between(self, rows: Any, columns: Any, lower: Any, upper: Any) -> Floats:
        """Return the mean of the values of some fitted entries that are known to lie between limits."""

    @abstractmethod
    def std(self, rows: Any = None, columns: Any = None, *, noise: bool = False) -> Floats:
        """Return the posterior standard deviation of W Z, or of new data with `noise`."""

    @abstractmethod
    def interval(self, prob: float = 0.9, *, noise: bool = True) -> tuple[Floats, Floats]:
        """Return the central interval of each entry."""

    @abstractmethod
    def factor_means(self) -> tuple[Floats, Floats]:
        """Return posterior means of W (rows, K) and Z (K, columns) with matched components."""

    @abstractmethod
    def for_data(self, data: ObservedMatrix, seed: int) -> BasePosterior:
        """Return the posterior of other rows, given the draws of Z."""

    @property
    def n_draws(self) -> int:
        """Number of draws of each chain."""
        return self.noise_variance.shape[1]

    @property
    def burn_in(self) -> int:
        """Number of sweeps before those of the draws."""
        return max(self.train_mse.shape[1] - self.n_draws * self.thinning, 0)

    # --- convergence

    def _quantities(self) -> list[Quantity]:
        """Return what is checked for convergence."""
        every = -(-self.noise_variance[0, 0].size // N_MONITORED_COLUMNS)
        found = [Quantity("noise variance", self.noise_variance[..., ::every] if every > 1 else self.noise_variance)]
        if self.log_density is not None:
            found.append(Quantity("log likelihood", self.log_density))
        return found

    @cached_property
    def _diagnosis(self) -> pd.DataFrame:
        return diagnostics.table(self._quantities())

    @property
    def verdict(self) -> Verdict:
        """What the fit can be used for, and what to do otherwise: a finding for each purpose."""
        findings = [*on_fit(self.notes), *on_intervals(self.calibration, None)]
        return Verdict((*findings, on_noise(self._diagnosis, len(self.noise_variance))))

    def problems(self) -> list[str]:
        """Return a sentence, with what to do, for each finding of the verdict that is worth a warning.

        Returns
        -------
        list of str
            Empty if there is no sign of a problem.
        """
        return self.verdict.problems()

    def summary(self) -> SummaryTable:
        """Return a table of noise, fit, predictions and factors with R-hat and effective sample sizes.

        For predictions and for entries of the aligned factors, the worst R-hat and the smallest effective sample size
        are shown. The table ends with the verdict on the fit, which is also its attribute `verdict`.

        Returns
        -------
        SummaryTable
            A pandas DataFrame.
        """
        table = SummaryTable(self._diagnosis)
        table.verdict = str(self.verdict)
        return table
