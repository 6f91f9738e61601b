"""Folds of entries: hide a part of what was observed, to see how well it is predicted from the rest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from bnmf.data.limits import nearest
from bnmf.data.observed import ObservedMatrix
from bnmf.utils.typing import Array, Floats, Indices


class Fold(NamedTuple):
    """Hidden entries and the data without them.

    Attributes
    ----------
    rest : ObservedMatrix
        The data with the hidden entries missing.
    rows, columns, values : ndarray of shape (n,)
        Positions and values of the hidden entries.
    weights : ndarray of shape (n,)
        How many observed entries each hidden one stands for: 1, but for sampled zeros of sparse data.
    lower, upper : ndarray of shape (n,), or None
        Limits of hidden entries, NaN where one is exact; None if the data have no limits.
    """

    rest: ObservedMatrix
    rows: Indices
    columns: Indices
    values: Floats
    weights: Floats
    lower: Floats | None = None
    upper: Floats | None = None

    def nearest(self, predicted: Floats) -> Floats:
        """Return the hidden values; of limited entries what their intervals have nearest to a prediction."""
        return nearest(self.values, self.lower, self.upper, predicted)


def folds(data: ObservedMatrix, n_folds: int, rng: np.random.Generator) -> Iterator[Fold]:
    """Hide the observed entries in turns, each in one fold.

    Of sparse data with implicit zeros every nonzero entry is hidden once, with as many zeros chosen at random, which
    stand for all of them by their weight. The data never become dense.
    """
    rows, columns, values, weights = entries_to_score(data, rng)
    turn = rng.permutation(len(rows)) % n_folds
    for number in range(n_folds):
        hidden = turn == number
        if hidden.any():
            yield _fold(data, rows[hidden], columns[hidden], values[hidden], weights[hidden])


def balanced_folds(data: ObservedMatrix, n_folds: int, rng: np.random.Generator) -> Iterator[Fold]:
    """Hide the observed entries in turns, so that every row and column keeps something in each of them.

    The entries of a row are spread evenly over the folds. An entry that is alone in its row or column is never hidden,
    nor is one of those of a column that would lose all in the same turn.
    """
    rows, columns, values, weights = entries_to_score(data, rng)
    turn = _balanced_turns(rows, columns, data.shape, n_folds, rng, has_zeros=data.has_implicit_zeros)
    for number in range(n_folds):
        hidden = turn == number
        if not hidden.any():
            raise ValueError(
                f"n_folds={n_folds} is too many: with so few observed entries a fold would hide all of a row or column"
            )
        yield _fold(data, rows[hidden], columns[hidden], values[hidden], weights[hidden])


def _fold(data: ObservedMatrix, rows: Indices, columns: Indices, values: Floats, weights: Floats) -> Fold:
    """Return the fold that hides some entries."""
    return Fold(data.without(rows, columns), rows, columns, values, weights, *data.limits_at(rows, columns))


def _balanced_turns(
    rows: Indices, columns: Indices, shape: tuple[int, int], n_folds: int, rng: np.random.Generator, *, has_zeros: bool
) -> Indices:
    """Return the fold of each entry, -1 for those that are never hidden."""
    order = rng.permutation(len(rows))
    order = order[np.argsort(rows[order], kind="stable")]  # by row, at random within it
    starts = np.searchsorted(rows[order], np.arange(shape[0]))
    place = np.arange(len(rows)) - starts[rows[order]]
    turn = np.empty(len(rows), np.intp)
    turn[order] = (place + rng.integers(n_folds, size=shape[0])[rows[order]]) % n_folds
    if has_zeros:  # most entries of rows and columns are zeros that are not stored, and few of them are hidden
        return turn
    for at in (rows, columns):
        turn[np.bincount(at)[at] == 1] = -1
    lowest, highest = np.full(shape[1], n_folds), np.full(shape[1], -1)
    np.minimum.at(lowest, columns, turn)
    np.maximum.at(highest, columns, turn)
    loses_all = np.flatnonzero((lowest == highest) & (highest >= 0))
    first = np.full(shape[1], -1)
    first[columns[::-1]] = np.arange(len(columns))[::-1]
    turn[first[loses_all]] = -1
    return turn


def entries_to_score(data: ObservedMatrix, rng: np.random.Generator) -> tuple[Array, Array, Floats, Floats]:
    """Return rows, columns, values and weights of all observed entries, or with implicit zeros of a sample of those."""
    return _sparse_candidates(data, rng) if data.has_implicit_zeros else _candidates(data)


def _candidates(data: ObservedMatrix) -> tuple[Array, Array, Floats, Floats]:
    rows, columns, values = data.observed_entries()
    return rows, columns, values, np.ones(len(rows))


def _sparse_candidates(data: ObservedMatrix, rng: np.random.Generator) -> tuple[Array, Array, Floats, Floats]:
    rows, columns, values = data.stored_entries()
    seen = ~np.isnan(values)
    stored = data.flat(rows, columns)
    n_unstored = data.shape[0] * data.shape[1] - len(stored)
    n_sampled = min(max(int(seen.sum()), 1), n_unstored)
    zeros = np.zeros(0, np.int64)
    while len(zeros) < n_sampled:  # more than half of the positions are unstored, so few rounds are needed
        more = rng.integers(data.shape[0] * data.shape[1], size=2 * n_sampled)
        zeros = np.unique(np.concatenate([zeros, more[~np.isin(more, stored)]]))
    zeros = rng.permutation(zeros)[:n_sampled]
    zero_rows, zero_columns = np.divmod(zeros, data.shape[1])
    return (
        np.concatenate([rows[seen], zero_rows]),
        np.concatenate([columns[seen], zero_columns]),
        np.concatenate([values[seen], np.zeros(n_sampled)]),
        np.concatenate([np.ones(int(seen.sum())), np.full(n_sampled, n_unstored / n_sampled)]),
    )
