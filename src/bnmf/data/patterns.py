"""Patterns of missing entries: rows with the same missing entries are drawn together.

Real data are often missing in blocks: a batch of cell lines on which some drugs were not tested misses all of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bnmf.utils.typing import Array, Bools, Indices, Ints


class Sharing(NamedTuple):
    """Rows that share their missing entries with others of the same tile.

    Attributes
    ----------
    indptr, rows : ndarray of int64
        Tile t has the rows `rows[indptr[t]:indptr[t + 1]]`.
    repeats : ndarray of uint8
        Whether a row has the missing entries of the row before it: 1 or 0.
    """

    indptr: Ints
    rows: Ints
    repeats: Array


class Others(NamedTuple):
    """All other rows, by tile as in `Sharing`."""

    indptr: Ints
    rows: Ints


def min_sharing(n_components: int) -> int:
    """Return the number of rows with the same missing entries from which a shared system pays.

    Measured by ``python -m benchmarks.sharing``: the time to set up a system grows with K², and to draw a row that
    carries its residuals with K.
    """
    return 3 + n_components // 25


def number_patterns(indptr: Ints, indices: Array, rows: Indices) -> Ints:
    """Return a number for the list of each of the given rows, equal for equal lists, and -1 for all other rows."""
    numbers: dict[bytes, int] = {}
    patterns = np.full(len(indptr) - 1, -1)
    for row in rows:
        listed = indices[indptr[row] : indptr[row + 1]].tobytes()
        patterns[row] = numbers.setdefault(listed, len(numbers))
    return patterns


def pointers(lengths: Array) -> Ints:
    """Return where each of several consecutive lists starts, given their lengths, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


def split_rows(patterns: Ints, rows_per_tile: int, min_sharing: int) -> tuple[Sharing | None, Others | None]:
    """Return the rows that are drawn together, because they have the same missing entries, and the others."""
    tiles = np.arange(len(patterns)) // rows_per_tile
    _, place, sizes = np.unique(np.stack([tiles, patterns]), axis=1, return_inverse=True, return_counts=True)
    n_alike = np.where(patterns >= 0, sizes[place], 0)
    shares = n_alike >= max(min_sharing, 1)

    def by_tile(which: Bools) -> Ints:
        return pointers(np.bincount(tiles[which], minlength=tiles[-1] + 1 if len(tiles) else 0))

    sharing, others = None, None
    if shares.any():
        order = np.lexsort((patterns, -n_alike, tiles))
        rows = order[shares[order]].astype(np.int64)
        repeats = np.zeros(len(rows), np.uint8)
        repeats[1:] = (patterns[rows[1:]] == patterns[rows[:-1]]) & (tiles[rows[1:]] == tiles[rows[:-1]])
        sharing = Sharing(by_tile(shares), rows, repeats)
    if not shares.all():
        others = Others(by_tile(~shares), np.flatnonzero(~shares).astype(np.int64))
    return sharing, others
