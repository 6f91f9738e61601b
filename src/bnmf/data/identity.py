"""Identities of data: of a whole matrix, to recognise a run, and of each row, to recognise a fitted row."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch

import numpy as np
import scipy.sparse as sp

from bnmf.data.observed import ObservedMatrix
from bnmf.data.views import ROWS_PER_TILE, View, unsigned
from bnmf.utils import digests
from bnmf.utils.typing import Array, Floats, Words

# Entries that are hashed at a time, unless those of the fewest rows are more.
MAX_HASHES, MIN_ROWS = 2**18, 16


@singledispatch
def fingerprint(data: ObservedMatrix) -> str:
    """Return a digest of the shape and of every observed entry."""
    of_limits = []
    if data.limits is not None:
        of_limits = [digests.of_arrays(data.limits.flat, data.limits.lower, data.limits.upper)]
    return joined(data.shape, tile_digests(data.rows) + of_limits)


def joined(shape: tuple[int, int], digests_of_tiles: Sequence[str]) -> str:
    """Return the fingerprint of a matrix, given the digests of all its tiles of rows in order."""
    return digests.of_json([list(shape), list(digests_of_tiles)])


def tile_digests(view: View) -> list[str]:
    """Return a digest of each tile of rows, so that blocks of rows can be digested where they are."""
    return [_tile_digest(view, slice(start, start + ROWS_PER_TILE)) for start in range(0, view.n_rows, ROWS_PER_TILE)]


def _tile_digest(view: View, rows: slice) -> str:
    indptr = view.indptr[rows.start : rows.stop + 1]
    listed = slice(indptr[0], indptr[-1])
    arrays: list[Array] = [
        indptr - indptr[0], view.indices[listed], view.values[listed], view.lists_missing[rows]
    ]  # fmt: skip
    if isinstance(view.matrix, sp.csr_array):
        stored = view.matrix[rows]
        arrays += [stored.indptr.astype(np.int64), unsigned(stored.indices), stored.data]
    elif view.matrix is not None:
        arrays.append(view.matrix[rows])
    return digests.of_arrays(*arrays)


@singledispatch
def row_ids(data: ObservedMatrix, scale: Floats | None = None) -> Words:
    """Return a hash of the content of each row, which does not depend on the container or on other rows.

    It is a sum over the observed positions and the nonzero values, so it can be computed from any listing.
    """
    places = _scramble(np.arange(1, data.shape[1] + 1, dtype=np.uint64))
    unit = np.ones(data.shape[1]) if scale is None else np.broadcast_to(1.0 / scale, data.shape[1])
    # Some rows at a time, because the hashes of all entries would take more memory than the data.
    n_rows = ROWS_PER_TILE if data.rows.matrix is None else max(MIN_ROWS, min(ROWS_PER_TILE, MAX_HASHES // len(places)))
    starts = range(0, data.shape[0], n_rows)
    ids = np.concatenate([_ids(data, places, unit, start, min(start + n_rows, data.shape[0])) for start in starts])
    if data.limits is not None:
        at, limits = places[data.limits.columns], data.limits
        for number, side in enumerate((limits.lower, limits.upper), start=1):
            bits = np.ascontiguousarray(side * unit[limits.columns] + 0.0).view(np.uint64)
            np.add.at(ids, limits.rows, _scramble(bits ^ (at << np.uint64(number))))
    return ids


def _ids(data: ObservedMatrix, places: Words, unit: Floats, start: int, stop: int) -> Words:
    view = data.rows
    indptr = view.indptr[start : stop + 1]
    listed = slice(indptr[0], indptr[-1])
    if view.matrix is None:
        at = places[view.indices[listed]]
        return _scramble(_row_sums(at + _hashed_values(at, view.values[listed] * unit[view.indices[listed]]), indptr))
    seen = data.mask(start, stop)
    if isinstance(view.matrix, sp.csr_array):
        matrix = view.matrix[start:stop]
        hashes = _hashed_values(places[matrix.indices], matrix.data * unit[matrix.indices])
        return _scramble(np.sum(places * seen, axis=1) + _row_sums(hashes, matrix.indptr))
    return _scramble(np.sum((places + _hashed_values(places, view.matrix[start:stop] * unit)) * seen, axis=1))


def _scramble(x: Words) -> Words:
    """Return 64-bit words in which every bit depends on every bit of x (the finaliser of SplitMix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _hashed_values(places: Words, values: Floats) -> Words:
    """Return a hash of each value and its place; 0 if the value is zero."""
    bits = np.ascontiguousarray(values).view(np.uint64)
    return np.where(values == 0.0, np.uint64(0), _scramble(bits ^ places))


def _row_sums(hashes: Words, indptr: Array) -> Words:
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(hashes, dtype=np.uint64)])
    return np.diff(sums[indptr - indptr[0]])
