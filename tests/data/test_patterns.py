"""Patterns of missing entries: equal lists have equal numbers, and rows with one pattern are drawn together."""

import numpy as np
import pytest

from bnmf.data.containers import pointers
from bnmf.data.half_sweeps import number_patterns, split_rows


def by_tile(split):
    """Return the rows of each tile that share their missing entries, and the others."""
    ends = zip(split.indptr[:-1], split.indptr[:-1] + split.n_sharing, split.indptr[1:], strict=True)
    parts = [(split.rows[start:middle].tolist(), split.rows[middle:stop].tolist()) for start, middle, stop in ends]
    return [sharing for sharing, _ in parts], [others for _, others in parts]


# --- numbers of patterns


@pytest.mark.parametrize("dtype", [np.uint32, np.int64])
def test_equal_lists_have_equal_numbers(dtype):
    lists = [[0, 3], [], [0, 3], [1], [3], [], [0], [3, 0]]
    indptr, indices = pointers(np.array([len(x) for x in lists])), np.concatenate(lists).astype(dtype)
    np.testing.assert_array_equal(number_patterns(indptr, indices, np.arange(8)), [0, 1, 0, 2, 3, 1, 4, 5])


def test_only_given_rows_are_numbered():
    indptr, indices = pointers(np.ones(4, np.int64)), np.array([5, 5, 6, 5], np.uint32)
    np.testing.assert_array_equal(number_patterns(indptr, indices, np.array([1, 3])), [-1, 0, -1, 0])
    np.testing.assert_array_equal(number_patterns(indptr, indices, np.array([], np.intp)), [-1] * 4)


def test_pointers():
    np.testing.assert_array_equal(pointers(np.array([2, 0, 3])), [0, 2, 2, 5])
    np.testing.assert_array_equal(pointers(np.array([], np.int64)), [0])
    assert pointers(np.array([2**30] * 4, np.int32))[-1] == 2**32  # beyond 32 bits


# --- the rows that are drawn together


@pytest.mark.parametrize("least", [0, 1, 2, 3, 5])
def test_split_of_any_patterns(least):
    """Every row once, in its tile; patterns in one piece each; and the marks where they go on."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        n_rows, rows_per_tile = int(rng.integers(1, 200)) if seed else 0, int(rng.integers(1, 40))
        patterns = rng.integers(-1, rng.integers(1, 12), size=n_rows)
        split = split_rows(patterns, rows_per_tile, least)
        n_tiles = -(-n_rows // rows_per_tile)
        together, alone = by_tile(split)
        assert len(together) == len(alone) == n_tiles
        for tile in range(n_tiles):
            rows = np.arange(tile * rows_per_tile, min((tile + 1) * rows_per_tile, n_rows))
            assert sorted(together[tile] + alone[tile]) == rows.tolist()
            counts = {pattern: (patterns[rows] == pattern).sum() for pattern in set(patterns[rows].tolist())}
            assert alone[tile] == [row for row in rows if patterns[row] < 0 or counts[patterns[row]] < least]
            found = patterns[together[tile]]
            sizes = [counts[pattern] for pattern in found]
            assert sizes == sorted(sizes, reverse=True)
            goes_on = [i > 0 and found[i] == found[i - 1] for i in range(len(found))]
            assert sum(not x for x in goes_on) == len(set(found.tolist()))
            marks = split.repeats[split.indptr[tile] : split.indptr[tile + 1]]
            np.testing.assert_array_equal(marks, goes_on + [False] * len(alone[tile]))
        assert split.rows.dtype == split.indptr.dtype == split.n_sharing.dtype == np.int64  # as the kernels take them
        assert split.repeats.dtype == np.uint8
