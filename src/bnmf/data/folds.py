"""Folds of entries: hide a part of what was observed, to see how well it is predicted from the rest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

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
    """

    rest: ObservedMatrix
    rows: Indices
    columns: Indices
    values: Floats
    weights: Floats


def folds(data: ObservedMatrix, n_folds: int, rng: np.random.Generator) -> Iterator[Fold]:
    """Hide the observed entries in turns, each in one fold.

    Of sparse data with implicit zeros every nonzero entry is hidden once, with as many zeros chosen at random, which
    stand for all of them by their weight. The data never become dense.

    Parameters
    ----------
    data : ObservedMatrix
        The data.
    n_folds : int
        Number of turns.
    rng : numpy.random.Generator
        Source of randomness.

    Yields
    ------
    Fold
        Hidden entries and the rest; folds without an entry are left out.
    """
    rows, columns, values, weights = _sparse_candidates(data, rng) if data.has_implicit_zeros else _candidates(data)
    turn = rng.permutation(len(rows)) % n_folds
    for number in range(n_folds):
        hidden = turn == number
        if hidden.any():
            rest = data.without(rows[hidden], columns[hidden])
            yield Fold(rest, rows[hidden], columns[hidden], values[hidden], weights[hidden])


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
