"""The fitted data with the numbers that several sections need."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bnmf.data.observed import ObservedMatrix
from bnmf.posterior import Posterior
from bnmf.utils.text import labels
from bnmf.utils.typing import Bools, Floats, Indices, Ints

# Entries of the rows that histograms and checks are made of; of larger data, rows are sampled.
MAX_SAMPLED_ENTRIES = 2_000_000
# Columns whose spreads differ by more than this factor are standardised before their values are drawn together.
MAX_SPREAD_RATIO = 20.0


@dataclass(frozen=True)
class Overview:
    """The data of a report with means and standard deviations (NaN if empty) of its columns.

    Of large data only `sampled_rows` are looked at.
    """

    data: ObservedMatrix
    posterior: Posterior
    column_mean: Floats
    column_sd: Floats
    sampled_rows: Indices

    @classmethod
    def of(cls, data: ObservedMatrix, posterior: Posterior) -> Overview:
        """Return the overview of a fit."""
        view = data.columns
        count = np.where(view.n_observed > 0, view.n_observed, np.nan)
        mean = view.sums() / count
        sd = np.sqrt(np.maximum(view.root_mean_squares() ** 2 - mean**2, 0.0))
        sd[sd < 1e-7 * np.abs(mean)] = 0.0  # rounding errors of a column of equal numbers
        rows = np.arange(data.shape[0])
        limit = max(1, MAX_SAMPLED_ENTRIES // data.shape[1])
        if len(rows) > limit:
            rows = np.sort(np.random.default_rng(0).choice(rows, limit, replace=False))
        return cls(data, posterior, mean, sd, rows)

    @property
    def column_missing(self) -> Ints:
        """Number of missing entries of each column."""
        return self.data.shape[0] - self.data.columns.n_observed

    @property
    def n_entries(self) -> int:
        """Number of entries, observed or not."""
        return self.data.shape[0] * self.data.shape[1]

    @property
    def n_missing(self) -> int:
        """Number of missing entries."""
        return self.n_entries - self.data.n_observed

    @property
    def is_known(self) -> Bools:
        """Which columns have an observed entry; others are imputed from the prior alone."""
        return np.asarray(self.data.columns.n_observed > 0)

    @property
    def units_differ(self) -> bool:
        """Whether columns have so different spreads that their values do not fit on one axis."""
        spreads = self.column_sd[np.nan_to_num(self.column_sd) > 0]
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
        known = np.nan_to_num(self.column_sd) > 0
        typical = float(np.median(self.column_sd[known])) if known.any() else 1.0
        return np.asarray(np.where(known, self.column_sd, typical)[columns])

    def names(self, kind: str, positions: Indices) -> list[str]:
        """Return the names of some rows, or of some columns."""
        of_data, of_posterior = (getattr(source, f"{kind}_names") for source in (self.data, self.posterior))
        return labels(of_data if of_data is not None else of_posterior, positions, kind)
