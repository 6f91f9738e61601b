"""Blocks of missing entries: shorter lists of the same positions."""

import numpy as np
import pytest

from bnmf.data.patterns import MAX_BLOCKS, MIN_BLOCK_COLUMNS, lists_with_blocks, pointers


def lists_of(missing, lists_missing=None):
    """Return the lists of a mask of missing entries; other rows list their observed entries."""
    lists_missing = np.ones(len(missing), bool) if lists_missing is None else lists_missing
    rows, columns = np.nonzero(missing == lists_missing[:, None])
    values = np.where(lists_missing[rows], 0.0, rows + columns / 100)
    return pointers(np.bincount(rows, minlength=len(missing))), columns.astype(np.uint32), values, lists_missing


def expanded(lists, row):
    """Return the positions that a row lists, individually or in blocks."""
    individual = lists.indices[lists.indptr[row] : lists.indptr[row + 1]]
    blocks = lists.block_indices[lists.block_indptr[row] : lists.block_indptr[row + 1]]
    parts = [lists.members[lists.member_indptr[block] : lists.member_indptr[block + 1]] for block in blocks]
    return np.concatenate([individual, *parts])


def blocky(rng, n_batches=5, rows=40, columns=30):
    """Return missing entries in blocks, and some outside of blocks."""
    row_batch, column_batch = rng.integers(n_batches, size=rows), rng.integers(n_batches, size=columns)
    missing = (rng.uniform(size=(n_batches, n_batches)) < 0.4)[row_batch][:, column_batch]
    missing[rng.integers(rows), :4] ^= True
    return missing


@pytest.mark.parametrize("seed", range(5))
def test_lists_hold_the_same_positions(seed):
    rng = np.random.default_rng(seed)
    missing = blocky(rng)
    lists_missing = missing.mean(axis=1) < 0.5
    indptr, indices, values, _ = lists_of(missing, lists_missing)
    lists = lists_with_blocks(indptr, indices, values, lists_missing)
    assert len(lists.indices) < len(indices)
    for row in range(len(missing)):
        np.testing.assert_array_equal(np.sort(expanded(lists, row)), indices[indptr[row] : indptr[row + 1]])
        if not lists_missing[row]:  # observed entries keep their order and their data
            individual = slice(lists.indptr[row], lists.indptr[row + 1])
            np.testing.assert_array_equal(lists.values[individual], values[indptr[row] : indptr[row + 1]])


def test_no_block_of_fewer_columns():
    missing = np.zeros((6, 9), bool)
    missing[2:4, : MIN_BLOCK_COLUMNS - 1] = True
    missing[5, 4 : 4 + MIN_BLOCK_COLUMNS] = True
    lists = lists_with_blocks(*lists_of(missing))
    np.testing.assert_array_equal(lists.members, np.arange(4, 4 + MIN_BLOCK_COLUMNS))
    np.testing.assert_array_equal(np.diff(lists.block_indptr), [0, 0, 0, 0, 0, 1])


@pytest.mark.parametrize("missing", [np.zeros((4, 5), bool), np.eye(6, dtype=bool)])
def test_no_blocks(missing):
    indptr, indices, values, lists_missing = lists_of(missing)
    lists = lists_with_blocks(indptr, indices, values, lists_missing)
    np.testing.assert_array_equal(lists.indices, indices)
    np.testing.assert_array_equal(lists.indptr, indptr)
    assert not lists.members.size
    assert not lists.block_indices.size
    assert lists.block_indptr.shape == indptr.shape


def test_of_many_blocks_those_that_save_most_are_kept():
    n = MAX_BLOCKS + 10
    missing = np.kron(np.eye(n, dtype=bool), np.ones((1, MIN_BLOCK_COLUMNS), bool))
    missing[:, : MIN_BLOCK_COLUMNS * 2] = True  # two columns' worth that every row lists, now one block
    lists = lists_with_blocks(*lists_of(missing))
    assert len(lists.member_indptr) == MAX_BLOCKS + 1
    assert np.all(np.isin(np.arange(MIN_BLOCK_COLUMNS * 2), lists.members))
    for row in range(n):
        np.testing.assert_array_equal(np.sort(expanded(lists, row)), np.flatnonzero(missing[row]))
