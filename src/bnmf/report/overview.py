"""The fitted data with the numbers that several sections need."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bnmf.data.observed import ObservedMatrix
from bnmf.posterior import Posterior
from bnmf.posterior.calibration import column_moments
from bnmf.utils.text import labels
from bnmf.utils.typing import Bools, Floats, Indices, Ints

# Entries of the rows that histograms and checks are made of; of larger data, rows are sampled.
MAX_SAMPLED_ENTRIES = 2_000_000
# Columns whose spreads differ by more than this factor are standardised before their values are drawn together.
MAX_SPREAD_RATIO = 20.0


@dataclass(frozen=True)
class Overview:
    """The data of a report; of large data only `sampled_rows` are looked at."""

    data: ObservedMatrix
    posterior: Posterior

    @cached_property
    def moments(self) -> tuple[Floats, Floats]:
        """Mean and standard deviation of the observed entries of each column, NaN where there are none."""
        mean, sd = column_moments(self.data)
        rounding = 1e-7 if self.data.has_implicit_zeros else 1e-12  # of a column of equal numbers
        sd[sd < rounding * np.abs(mean)] = 0.0
        return np.where(self.is_known, mean, np.nan), np.where(self.is_known, sd, np.nan)

    @cached_property
    def sampled_rows(self) -> Indices:
        """The rows of histograms and checks."""
        n_rows, n_columns = self.data.shape
        limit = max(1, MAX_SAMPLED_ENTRIES // n_columns)
        if n_rows <= limit:
            return np.arange(n_rows)
        return np.sort(np.random.default_rng(0).choice(np.arange(n_rows), limit, replace=False))

    @property
    def column_missing(self) -> Ints:
        """Number of missing entries of each column."""
        return self.data.shape[0] - self.data.columns.n_observed

    @property
    def n_missing(self) -> int:
        """Number of missing entries."""
        return int(self.column_missing.sum())

    @property
    def is_known(self) -> Bools:
        """Which columns have an observed entry; others are imputed from the prior alone."""
        return np.asarray(self.data.columns.n_observed > 0)

    @property
    def units_differ(self) -> bool:
        """Whether columns have so different spreads that their values do not fit on one axis."""
        sd = self.moments[1]
        spreads = sd[sd > 0]
        if len(spreads) < 2:
            return False
        low, middle, high = np.quantile(spreads, [0.25, 0.5, 0.75])
        return bool(high > MAX_SPREAD_RATIO * low or spreads.max() > MAX_SPREAD_RATIO * middle)

    @cached_property
    def _sampled(self) -> Floats:
        return self.data.dense_rows(self.sampled_rows)

    def observed(self) -> tuple[Indices, Indices, Floats]:
        """Return rows, columns and values of the observed entries of the sampled rows."""
        at, columns = np.nonzero(~np.isnan(self._sampled))
        return self.sampled_rows[at], columns, self._sampled[at, columns]

    def missing(self, limit: int, rng: np.random.Generator) -> tuple[Indices, Indices]:
        """Return positions of missing entries in known columns of the sampled rows, at most `limit` of them."""
        at, columns = np.nonzero(np.isnan(self._sampled) & self.is_known)
        if len(at) > limit:
            kept = np.sort(rng.choice(len(at), limit, replace=False))
            at, columns = at[kept], columns[kept]
        return self.sampled_rows[at], columns

    def spread(self, columns: Indices) -> Floats:
        """Return the standard deviations of some columns, a typical one where a column has none."""
        sd = self.moments[1]
        typical = float(np.median(sd[sd > 0])) if (sd > 0).any() else 1.0
        return np.asarray(np.where(sd > 0, sd, typical)[columns])

    def standardised(self, values: Floats, columns: Indices) -> Floats:
        """Return values of some columns, without their means and over their standard deviations."""
        return np.asarray((values - self.moments[0][columns]) / self.spread(columns))

    def names(self, kind: str, positions: Indices) -> list[str]:
        """Return the names of some rows, or of some columns."""
        of_data, of_posterior = (getattr(source, f"{kind}_names") for source in (self.data, self.posterior))
        return labels(of_data if of_data is not None else of_posterior, positions, kind)
