"""Component summaries: size, top rows, top columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bnmf.posterior.predictions import NoiseDraws
from bnmf.utils.typing import Array, Bools, Floats, Indices, Ints

if TYPE_CHECKING:
    from bnmf.posterior.posterior import Posterior

# Share of all predictions below which a component is not drawn; which components are active does not depend on it.
MIN_SHARE = 1e-3
# Strength of a component, in units of the largest one that pure noise is expected to have, from which it is active.
MIN_STRENGTH = 2.0


def active(W: Array, Z: Array, noise: NoiseDraws) -> Bools:
    """Return which components (S, K) stand out from the noise in each draw."""
    (n_draws, n_rows, n_components), n_columns = W.shape, Z.shape[2]
    # The norm of w_k z_k, in columns divided by the deviations of their noise, is compared with the largest singular
    # value of a matrix of pure noise.
    largest = np.sqrt(n_rows) + np.sqrt(n_columns)
    found = np.empty((n_draws, n_components), bool)
    for draw in range(n_draws):
        weights = np.linalg.norm(W[draw], axis=0)
        profiles = np.linalg.norm(Z[draw] / np.sqrt(noise.column[draw]), axis=1)
        found[draw] = weights * profiles > MIN_STRENGTH * largest
    return found


def sizes(W: Floats, Z: Floats, scale: Floats | float) -> Floats:
    """Return the sums (K,) of the predictions of components W (rows, K), Z (K, columns) in the units of the fit."""
    return np.abs(W).sum(axis=0) * np.abs(Z / scale).sum(axis=1)


class TopEntries(NamedTuple):
    """The largest entries (n,) of a component."""

    positions: Indices  # rows or columns of the data, the largest entry first
    mean: Floats  # posterior mean of the entry, over the chains that agree on the component
    low: Floats  # its central interval of 90%
    high: Floats
    share: Floats  # share of the predictions of that row or column that the component makes


@dataclass(frozen=True)
class Components:
    """Means of the aligned factors, and the shares of predictions that each component makes."""

    # Columns are compared in the units of the fit, and shares are of predictions above the offset. Where entries may be
    # negative, columns of W have a mean square of 1, and shares and orders are those of magnitudes.
    W: Floats  # (rows, K): columns have mean 1, so a weight of 2 is twice that of an average row
    Z: Floats  # (K, columns): entry (k, j) is added to column j in an average row, in the units of the data
    sizes: Floats  # (K,): share of all predictions
    row_shares: Floats  # (rows, K): shares of the predictions of each row
    column_shares: Floats  # (K, columns): shares of the predictions of each column
    n_chains_with: Ints  # (K,): how many chains have found each component
    posterior: Posterior

    @classmethod
    def of(cls, posterior: Posterior) -> Components:
        """Return the component summaries of a posterior."""
        W, Z = posterior.factor_means()
        scale = 1.0 if posterior.scale is None else posterior.scale
        scaled = np.abs(Z / scale)
        by_row, by_column = np.abs(W) * scaled.sum(axis=1), np.abs(W).sum(axis=0)[:, None] * scaled
        return cls(
            W,
            Z,
            _shares(sizes(W, Z, scale), axis=0),
            _shares(by_row, axis=1),
            _shares(by_column, axis=0),
            posterior.alignment.agrees.sum(axis=0),
            posterior,
        )

    def row_order(self) -> Indices:
        """Return the rows, grouped by the component that makes most of each."""
        return _grouped(self.row_shares)

    def column_order(self) -> Indices:
        """Return the columns, grouped by the component that makes most of each."""
        return _grouped(self.column_shares.T)

    def top_rows(self, component: int, n: int) -> TopEntries:
        """Return the rows with the largest weights."""
        positions = np.argsort(-np.abs(self.W[:, component]), kind="stable")[:n]
        draws = self.posterior.W[:, :, positions].swapaxes(2, 3)
        found = self.W[positions, component], self.row_shares[positions, component]
        return self._top(component, positions, *found, draws, -1)

    def top_columns(self, component: int, n: int) -> TopEntries:
        """Return the columns with the largest entries, in the units of the fit."""
        unit = 1.0 if self.posterior.scale is None else self.posterior.scale
        positions = np.argsort(-np.abs(self.Z[component]) / unit, kind="stable")[:n]
        found = self.Z[component, positions], self.column_shares[component, positions]
        return self._top(component, positions, *found, self.posterior.Z[..., positions], 1)

    def _top(
        self, component: int, positions: Indices, mean: Floats, share: Floats, draws: Array, power: int
    ) -> TopEntries:
        """Add intervals of entries, given draws (chain, draw, K, n) and the power of the scale in them."""
        alignment, found = self.posterior.alignment, []
        for chain in np.flatnonzero(alignment.agrees[:, component]):
            order, scale = alignment.order[chain, :, component], alignment.scale[chain, :, component]
            chosen = np.take_along_axis(draws[chain], order[:, None, None], axis=1)[:, 0]
            found.append(chosen * scale[:, None] ** power)
        low, high = np.quantile(np.concatenate(found), [0.05, 0.95], axis=0)
        return TopEntries(positions, mean, low, high, share)


def _shares(parts: Floats, axis: int) -> Floats:
    """Return parts over their sum along an axis; zeros where the sum is zero."""
    total = parts.sum(axis=axis, keepdims=True)
    return np.asarray(parts / np.where(total > 0, total, 1.0))


def _grouped(shares: Floats) -> Indices:
    """Return the rows of shares (n, K) by their largest component, and in a group the purest first."""
    return np.lexsort((-shares.max(axis=1), shares.argmax(axis=1)))
