"""Match components between draws and chains.

Components have no order, and scale can move between W and Z. Two components are similar if their contributions w zᵀ to
the prediction are: the similarity is cos(w, w') cos(z, z'), which is 1 for equal components whatever their scale.
Every draw is matched with a reference by the assignment with the largest sum of similarities, and scaled so that each
column of W has mean 1: a weight of 1 is that of an average row. A column of weights that may be negative is scaled to a
mean square of 1, and if Z may be negative too, both get the sign that they have in the reference.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from bnmf.utils.typing import Array, Bools, Floats, Indices

# Minimum similarity of two components that count as the same.
MIN_SIMILARITY = 0.8


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

    def reordered(self, order: Indices) -> Alignment:
        """Return this alignment with its components in another order."""
        return Alignment(self.order[:, :, order], self.scale[:, :, order], self.similarity[:, order], self.reference)

    def among(self, n_components: int, free: slice) -> Alignment:
        """Return this alignment for components of which only those of a slice were aligned; the others stay."""
        shape = self.order.shape[:2]
        order = np.tile(np.arange(n_components), (*shape, 1))
        scale, similarity = np.ones((*shape, n_components)), np.ones((shape[0], n_components))
        order[:, :, free] = self.order + free.start
        scale[:, :, free], similarity[:, free] = self.scale, self.similarity
        return Alignment(order, scale, similarity, self.reference)

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


def align(
    W: Array, Z: Array, reference: int = 0, scale: Floats | float = 1.0, signed: tuple[bool, bool] = (False, False)
) -> Alignment:
    """Match the components of all draws: W (chain, draw, rows, K) and Z (chain, draw, K, columns)."""
    n_chains, n_draws, _, n_components = W.shape
    order = np.empty((n_chains, n_draws, n_components), np.intp)
    signs = np.ones((n_chains, n_draws, n_components))
    means = []
    for chain in range(n_chains):
        # Match with the last draw, then with the mean of the matched draws: a single draw is not a stable reference.
        target = _directions(W[chain, -1], Z[chain, -1] / scale)
        for _ in range(2):
            for draw in range(n_draws):
                directions = _directions(W[chain, draw], Z[chain, draw] / scale)
                order[chain, draw] = _match(target, directions)
                if all(signed):
                    signs[chain, draw] = _signs(target, directions, order[chain, draw])
            target = _mean_direction(W[chain], Z[chain], order[chain], signs[chain], scale)
        means.append(target)

    similarity = np.ones((n_chains, n_components))
    for chain in range(n_chains):
        between = _match(means[reference], means[chain])
        order[chain] = order[chain][:, between]
        if all(signed):
            signs[chain] = signs[chain][:, between] * _signs(means[reference], means[chain], between)
        similarity[chain] = np.diag(_similarity(means[reference], [part[:, between] for part in means[chain]]))

    similarity[reference] = 1.0  # also where draws of both signs cancel in the mean
    sizes = np.take_along_axis(column_sizes(W, signed[0]), order, axis=2)
    return Alignment(order, signs * sizes, similarity, reference)


def column_sizes(W: Array, signed: bool) -> Floats:
    """Return divisors of the columns of W (..., rows, K): their means, or root mean squares if they have signs."""
    sizes = np.sqrt(np.einsum("...ik,...ik->...k", W, W) / W.shape[-2]) if signed else W.mean(axis=-2)
    return np.where(sizes == 0.0, 1.0, np.asarray(sizes, dtype=np.float64))


def _directions(W: Array, Z: Array) -> list[Array]:
    """Return W (rows, K) and Zᵀ (columns, K) with columns of length 1 (0 for a component that is zero)."""
    directions = []
    for factor in (W, Z.T):
        length = np.linalg.norm(factor, axis=0)
        directions.append(factor / np.where(length > 0, length, 1.0))
    return directions


def _similarity(a: list[Array], b: list[Array]) -> Array:
    return (a[0].T @ b[0]) * (a[1].T @ b[1])


def _match(target: list[Array], directions: list[Array]) -> Indices:
    """Return for each component of the target the one that it is matched with."""
    return linear_sum_assignment(_similarity(target, directions), maximize=True)[1]


def _signs(target: list[Array], directions: list[Array], order: Indices) -> Array:
    """Return -1 for the components that point away from those of the target that they are matched with, else 1."""
    (W, Zt), (other_W, other_Zt) = target, directions
    cosines = (W * other_W[:, order]).sum(axis=0) + (Zt * other_Zt[:, order]).sum(axis=0)
    return np.where(cosines < 0.0, -1.0, 1.0)


def _mean_direction(W: Array, Z: Array, order: Indices, signs: Floats, scale: Floats | float) -> list[Array]:
    total = [np.zeros(W.shape[1:]), np.zeros(Z.shape[1:][::-1])]
    for draw in range(len(W)):
        for mean, direction in zip(total, _directions(W[draw], Z[draw] / scale), strict=True):
            mean += direction[:, order[draw]] * signs[draw]
    return _directions(total[0], total[1].T)
