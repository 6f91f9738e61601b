"""Components: matched between draws and chains, and with their sizes, top rows and top columns.

Components have no order, and scale can move between W and Z. Two components are similar if their contributions w zᵀ to
the prediction are: the similarity is cos(w, w') cos(z, z'), which is 1 for equal components whatever their scale.
Every draw is matched with a reference by the assignment with the largest sum of similarities, and scaled so that each
column of W has mean 1: a weight of 1 is that of an average row. A column of weights that may be negative is scaled to a
mean square of 1, and if Z may be negative too, both get the sign that they have in the reference.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from bnmf.posterior.predictions import NoiseDraws
from bnmf.utils.typing import Array, Bools, Floats, Indices, Ints

if TYPE_CHECKING:
    from bnmf.posterior.posterior import Posterior

# Minimum similarity of two components that count as the same.
MIN_SIMILARITY = 0.8
# Share of all predictions below which a component is not drawn; which components are active does not depend on it.
MIN_SHARE = 1e-3
# Strength of a component, in units of the largest one that pure noise is expected to have, from which it is active.
MIN_STRENGTH = 2.0


@dataclass(frozen=True)
class Alignment:
    """How to bring the components of every draw into one order and scale."""

    order: Indices  # (chain, draw, K): component order[c, d, k] of a draw is component k of the reference
    scale: Floats  # (chain, draw, K): what column k of W is divided by, and row k of Z multiplied, after ordering
    similarity: Floats  # (chain, K): of the mean component of each chain with that of the reference chain
    reference: int  # the chain that the others are matched with

    @property
    def agrees(self) -> Bools:
        """Whether a chain has found a component of the reference, (chain, K)."""
        return self.similarity >= MIN_SIMILARITY

    def apply_W(self, W: Array) -> Array:
        """Return draws of W (chain, draw, rows, K) in order and scale."""
        return np.take_along_axis(W, self.order[:, :, None, :], axis=3) / self.scale[:, :, None, :]

    def apply_Z(self, Z: Array) -> Array:
        """Return draws of Z (chain, draw, K, columns) in order and scale."""
        return np.take_along_axis(Z, self.order[:, :, :, None], axis=2) * self.scale[:, :, :, None]

    def means(self, W: Array, Z: Array) -> tuple[Array, Array]:
        """Return the means of W and Z over the chains that agree on each component, without a copy of all draws."""
        n_chains, n_draws, n_components = self.order.shape
        mean_W, mean_Z = np.zeros((W.shape[2], n_components)), np.zeros((n_components, Z.shape[3]))
        for chain in range(n_chains):
            for draw in range(n_draws):
                order, scale = self.order[chain, draw], self.scale[chain, draw]
                mean_W += self.agrees[chain] * W[chain, draw][:, order] / scale
                mean_Z += self.agrees[chain][:, None] * Z[chain, draw][order] * scale[:, None]
        count = n_draws * self.agrees.sum(axis=0)
        return mean_W / count, mean_Z / count[:, None]


def alignment_of(posterior: Posterior) -> Alignment:
    """Return the alignment of a posterior with the chain that fits best, the largest component first."""
    fit = [mse[np.isfinite(mse)][-posterior.n_draws :].mean() for mse in posterior.train_mse]
    # Components are compared in the units of the fit, so that no column dominates by its unit.
    scale = 1.0 if posterior.scale is None else posterior.scale
    free = slice(posterior.n_fixed[0], posterior.n_components - posterior.n_fixed[1])
    W, Z = posterior.W[..., free], posterior.Z[:, :, free]
    found = align(W, Z, int(np.argmin(fit)), scale, posterior.signed)
    by_size = np.argsort(-sizes(*found.means(W, Z), scale), kind="stable")
    shape = posterior.W.shape[:2]
    order = np.tile(np.arange(posterior.n_components), (*shape, 1))
    factor, similarity = np.ones(order.shape), np.ones((shape[0], posterior.n_components))
    order[:, :, free] = free.start + found.order[:, :, by_size]
    factor[:, :, free], similarity[:, free] = found.scale[:, :, by_size], found.similarity[:, by_size]
    return Alignment(order, factor, similarity, found.reference)


def align(
    W: Array, Z: Array, reference: int = 0, scale: Floats | float = 1.0, signed: tuple[bool, bool] = (False, False)
) -> Alignment:
    """Match the components of all draws: W (chain, draw, rows, K) and Z (chain, draw, K, columns)."""
    n_chains, n_draws, _, n_components = W.shape
    order = np.empty((n_chains, n_draws, n_components), np.intp)
    signs = np.ones((n_chains, n_draws, n_components))
    inverse = np.broadcast_to(1.0 / np.asarray(scale), Z.shape[-1:])
    targets = []
    for chain in range(n_chains):
        draws = Directions.of(W[chain], Z[chain], inverse)
        # Match with the last draw, then with the mean of the matched draws: a single draw is not a stable reference.
        target = draws.at(-1)
        for _ in range(2):
            cosines = draws.cosines(target)
            for draw, similarity in enumerate(cosines[0] * cosines[1]):
                order[chain, draw] = linear_sum_assignment(similarity, maximize=True)[1]
            if all(signed):
                signs[chain] = _signs(cosines, order[chain])
            target = draws.mean(order[chain], signs[chain])
        targets.append(target)

    means = Directions.of(
        np.stack([W for W, _ in targets]), np.stack([Zt.T for _, Zt in targets]), np.ones(Z.shape[-1])
    )
    cosines = means.cosines(targets[reference])
    similarity = np.ones((n_chains, n_components))
    for chain, similarities in enumerate(cosines[0] * cosines[1]):
        between = linear_sum_assignment(similarities, maximize=True)[1]
        order[chain] = order[chain][:, between]
        if all(signed):
            signs[chain] = signs[chain][:, between] * _signs(cosines[:, [chain]], between[None])
        similarity[chain] = similarities[np.arange(n_components), between]

    similarity[reference] = 1.0  # also where draws of both signs cancel in the mean
    sizes = np.take_along_axis(column_sizes(W, signed[0]), order, axis=2)
    return Alignment(order, signs * sizes, similarity, reference)


class Directions(NamedTuple):
    """Draws of W (draw, rows, K) and Z (draw, K, columns), compared as columns of length 1 without a copy of them."""

    W: Array
    Z: Array
    inverse: Floats  # (columns,): of the units in which columns are compared
    lengths: Floats  # (2, draw, K): of the columns of W, and of the rows of Z in these units

    @classmethod
    def of(cls, W: Array, Z: Array, inverse: Floats) -> Directions:
        """Return the directions of some draws."""
        squares = np.einsum("dik,dik->dk", W, W), np.einsum("dkj,dkj,j->dk", Z, Z, inverse**2)
        lengths = np.sqrt(np.array(squares, dtype=np.float64))
        return cls(W, Z, inverse, np.where(lengths > 0.0, lengths, 1.0))

    def at(self, draw: int) -> tuple[Floats, Floats]:
        """Return W (rows, K) and Zᵀ (columns, K) of a draw with columns of length 1, or 0."""
        of_W, of_Z = self.lengths[:, draw]
        return self.W[draw] / of_W, (self.Z[draw] * self.inverse).T / of_Z

    def cosines(self, target: tuple[Floats, Floats]) -> Floats:
        """Return the cosines of W and of Z (2, draw, K, K) between components of a target and of each draw."""
        W, Zt = target
        products = np.matmul(W.T, self.W), np.matmul((Zt * self.inverse[:, None]).T, self.Z.swapaxes(1, 2))
        return np.array(products, dtype=np.float64) / self.lengths[:, :, None, :]

    def mean(self, order: Indices, signs: Floats) -> tuple[Floats, Floats]:
        """Return the direction of the mean of the draws, given orders and signs (draw, K) of their components."""
        W, Zt = np.zeros(self.W.shape[1:]), np.zeros(self.Z.shape[:0:-1])
        of_W, of_Z = signs / np.take_along_axis(self.lengths, order[None], axis=2)
        for draw, places in enumerate(order):
            W += self.W[draw][:, places] * of_W[draw]
            Zt += self.Z[draw][places].T * of_Z[draw]
        return Directions.of(W[None], Zt.T[None], self.inverse).at(0)


def _signs(cosines: Floats, order: Indices) -> Floats:
    """Return -1 for components (draw, K) that point away from those of the target they are matched with, else 1."""
    matched = np.take_along_axis(cosines.sum(axis=0), order[:, :, None], axis=2)[:, :, 0]
    return np.where(matched < 0.0, -1.0, 1.0)


def column_sizes(W: Array, signed: bool) -> Floats:
    """Return divisors of the columns of W (..., rows, K): their means, or root mean squares if they have signs."""
    sizes = np.sqrt(np.einsum("...ik,...ik->...k", W, W) / W.shape[-2]) if signed else W.mean(axis=-2)
    return np.where(sizes == 0.0, 1.0, np.asarray(sizes, dtype=np.float64))


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
