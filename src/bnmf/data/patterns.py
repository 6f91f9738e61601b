"""Holes that rows, or columns, have in common: what is the same for all of them is summed once.

Real holes come in blocks: a drug that was not tried on a batch of cell lines is a hole of all of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Positions = NDArray[np.uint32]

# Columns with the same holes are a block from so many on; of the blocks, those that save most are kept.
BLOCK_FROM = 3
MOST_BLOCKS = 256


class Lists(NamedTuple):
    """The lists of a view in the form that the half-sweep reads.

    Attributes
    ----------
    indptr, indices, values : ndarray
        Positions that each row lists one by one, and the data there.
    block_indptr, block_indices : ndarray
        Blocks of missing positions that each row lists besides.
    member_indptr, members : ndarray
        Positions in each block.
    """

    indptr: Ints
    indices: Positions
    values: NDArray[np.float64]
    block_indptr: Ints
    block_indices: Positions
    member_indptr: Ints
    members: Positions


def groups_of(indptr: Ints, indices: NDArray[np.integer], rows: NDArray[np.intp]) -> Ints:
    """Return a number for each of some rows, the same for the same list, and -1 for the others."""
    numbers: dict[bytes, int] = {}
    groups = np.full(len(indptr) - 1, -1)
    for row in rows:
        listed = indices[indptr[row] : indptr[row + 1]].tobytes()
        groups[row] = numbers.setdefault(listed, len(numbers))
    return groups


def pointers(lengths: NDArray[np.integer]) -> Ints:
    """Return where each of some lists of these lengths starts when they follow each other, and where the last ends."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


def one_by_one(indptr: Ints, indices: Positions, values: NDArray[np.float64]) -> Lists:
    """Return lists without blocks."""
    none = np.zeros(0, np.uint32)
    return Lists(indptr, indices, values, np.zeros_like(indptr), none, np.zeros(1, np.int64), none)


def in_blocks(indptr: Ints, indices: Positions, values: NDArray[np.float64], lists_missing: NDArray[np.bool_]) -> Lists:
    """Return lists in which the missing positions that always go together are blocks.

    Parameters
    ----------
    indptr, indices, values : ndarray
        Positions that each row lists, and the data there.
    lists_missing : ndarray of bool
        Whether a row lists its missing positions; the others keep their lists.

    Returns
    -------
    Lists
        The same lists, shorter.
    """
    lengths = np.where(lists_missing, np.diff(indptr), 0)
    if not lengths.any():
        return one_by_one(indptr, indices, values)
    is_hole = np.repeat(lists_missing, np.diff(indptr))
    columns = indices[is_hole]
    rows = np.repeat(np.arange(len(lengths), dtype=np.uint32), lengths)
    block_of, members = _blocks(columns, rows)
    if not members:  # the lists as they are, and not a copy of them
        return one_by_one(indptr, indices, values)

    blocks = block_of[columns]
    inside = blocks >= 0
    is_first = np.zeros(len(block_of), bool)
    is_first[[block[0] for block in members]] = True  # a row that lists the first of a block lists them all
    listed = is_first[columns]
    alone = np.ones(len(indices), bool)
    alone[is_hole] = ~inside
    return Lists(
        pointers(np.diff(indptr) - np.bincount(rows[inside], minlength=len(lengths))),
        indices[alone],
        values[alone],
        pointers(np.bincount(rows[listed], minlength=len(lengths))),
        blocks[listed].astype(np.uint32),
        pointers(np.array([len(block) for block in members], dtype=np.int64)),
        np.concatenate([np.zeros(0, np.uint32), *members]).astype(np.uint32),
    )


def _blocks(columns: Positions, rows: Positions) -> tuple[Ints, list[NDArray[np.intp]]]:
    """Return the block of each column, -1 for none, and the columns in each block, given all holes."""
    holes = np.bincount(columns)
    groups = groups_of(pointers(holes), rows[np.argsort(columns, kind="stable")], np.flatnonzero(holes))
    candidates = [
        np.flatnonzero(groups == number) for number in np.flatnonzero(np.bincount(groups + 1)[1:] >= BLOCK_FROM)
    ]
    candidates.sort(key=lambda block: -(len(block) - 1) * holes[block[0]])
    members = candidates[:MOST_BLOCKS]
    block_of = np.full(len(groups), -1)
    for number, block in enumerate(members):
        block_of[block] = number
    return block_of, members
