"""Folds of entries: hide a part of what was observed, to see how well it is predicted from the rest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from bnmf.data.limits import nearest
from bnmf.data.observed import ObservedMatrix
from bnmf.utils.typing import Array, Floats, Indices


class Fold(NamedTuple):
    """The data without some entries, and positions and values of these."""

    rest: ObservedMatrix
    rows: Indices
    columns: Indices
    values: Floats
    weights: Floats  # how many observed entries each hidden one stands for: 1, but for sampled zeros of sparse data
    lower: Floats | None = None  # NaN where a hidden entry is exact, None if the data have no limits
    upper: Floats | None = None

    def nearest(self, predicted: Floats) -> Floats:
        """Return the hidden values; of limited entries what their intervals have nearest to a prediction."""
        return nearest(self.values, self.lower, self.upper, predicted)


def folds(data: ObservedMatrix, n_folds: int, rng: np.random.Generator, *, balanced: bool = False) -> Iterator[Fold]:
    """Hide the observed entries in turns, each in one fold; `balanced` ones leave something of every row and column."""
    # Of sparse data with implicit zeros every nonzero entry is hidden once, with as many zeros chosen at random, which
    # stand for all of them by their weight. The data never become dense. In balanced folds the entries of a row are
    # spread evenly, and an entry that is alone in its row or column is never hidden, nor is one of those of a column
    # that would lose all in the same turn.
    rows, columns, values, weights = entries_to_score(data, rng)
    if balanced:
        turn = _balanced_turns(rows, columns, data.shape, n_folds, rng, has_zeros=data.has_implicit_zeros)
    else:
        turn = rng.permutation(len(rows)) % n_folds
    for number in range(n_folds):
        hidden = turn == number
        if hidden.any():
            at = rows[hidden], columns[hidden]
            yield Fold(data.without(*at), *at, values[hidden], weights[hidden], *data.limits_at(*at))
        elif balanced:
            raise ValueError(
                f"n_folds={n_folds} is too many: with so few observed entries a fold would hide all of a row or column"
            )


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
    if not data.has_implicit_zeros:
        rows, columns, values = data.observed_entries()
        return rows, columns, values, np.ones(len(rows))
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
