"""Patterns of missing entries: sums over entries that are missing together are computed once.

Real data are often missing in blocks: a drug that was not tested on a batch of cell lines is missing in all of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bnmf.utils.typing import Array, Bools, Floats, Indices, Ints, Positions

# Minimum number of columns with identical missing rows that form a block.
MIN_BLOCK_COLUMNS = 3
# Maximum number of blocks; those that save most are kept.
MAX_BLOCKS = 256


class Lists(NamedTuple):
    """The lists of a view in the form that the half-sweep reads.

    Attributes
    ----------
    indptr, indices, values : ndarray
        Positions that each row lists individually, and the data there.
    block_indptr, block_indices : ndarray
        Blocks of missing positions that each row lists in addition.
    member_indptr, members : ndarray
        Positions in each block.
    """

    indptr: Ints
    indices: Positions
    values: Floats
    block_indptr: Ints
    block_indices: Positions
    member_indptr: Ints
    members: Positions


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


def lists_without_blocks(indptr: Ints, indices: Positions, values: Floats) -> Lists:
    """Return lists without blocks."""
    none = np.zeros(0, np.uint32)
    return Lists(indptr, indices, values, np.zeros_like(indptr), none, np.zeros(1, np.int64), none)


def lists_with_blocks(indptr: Ints, indices: Positions, values: Floats, lists_missing: Bools) -> Lists:
    """Return lists in which columns that are missing in the same rows are replaced by blocks.

    Parameters
    ----------
    indptr, indices, values : ndarray
        Positions that each row lists, and the data there.
    lists_missing : ndarray of bool
        Whether a row lists its missing positions; other rows keep their lists.

    Returns
    -------
    Lists
        Shorter lists of the same positions.
    """
    lengths = np.where(lists_missing, np.diff(indptr), 0)
    if not lengths.any():
        return lists_without_blocks(indptr, indices, values)
    is_missing = np.repeat(lists_missing, np.diff(indptr))
    columns = indices[is_missing]
    rows = np.repeat(np.arange(len(lengths), dtype=np.uint32), lengths)
    block_of, members = _blocks(columns, rows)
    if not members:  # no copy
        return lists_without_blocks(indptr, indices, values)

    blocks = block_of[columns]
    inside = blocks >= 0
    is_first = np.zeros(len(block_of), bool)
    is_first[[block[0] for block in members]] = True  # a row that lists the first column of a block lists all of them
    listed = is_first[columns]
    individual = np.ones(len(indices), bool)
    individual[is_missing] = ~inside
    return Lists(
        pointers(np.diff(indptr) - np.bincount(rows[inside], minlength=len(lengths))),
        indices[individual],
        values[individual],
        pointers(np.bincount(rows[listed], minlength=len(lengths))),
        blocks[listed].astype(np.uint32),
        pointers(np.array([len(block) for block in members], dtype=np.int64)),
        np.concatenate([np.zeros(0, np.uint32), *members]).astype(np.uint32),
    )


def _blocks(columns: Positions, rows: Positions) -> tuple[Ints, list[Indices]]:
    """Return the block of each column (-1 for none) and the columns of each block, given all missing positions."""
    n_missing = np.bincount(columns)
    patterns = number_patterns(pointers(n_missing), rows[np.argsort(columns, kind="stable")], np.flatnonzero(n_missing))
    common = np.flatnonzero(np.bincount(patterns + 1)[1:] >= MIN_BLOCK_COLUMNS)
    candidates = [np.flatnonzero(patterns == number) for number in common]
    candidates.sort(key=lambda block: -(len(block) - 1) * n_missing[block[0]])
    members = candidates[:MAX_BLOCKS]
    block_of = np.full(len(patterns), -1)
    for number, block in enumerate(members):
        block_of[block] = number
    return block_of, members
