"""Identities of data: of a whole matrix, to recognise a run, and of each row, to recognise a fitted row."""

from __future__ import annotations

from functools import partial

import numpy as np

from bnmf.data.limits import Limits
from bnmf.data.observed import ObservedMatrix
from bnmf.data.views import Stored
from bnmf.kernels.compiled import ROWS_PER_TILE
from bnmf.utils import digests
from bnmf.utils.typing import Array, Floats, Words

# Entries that are hashed at a time, unless those of the fewest rows are more.
MAX_HASHES, MIN_ROWS = 2**18, 16


def fingerprint(data: ObservedMatrix) -> str:
    """Return a digest of the shape and of every observed entry."""
    return digests.of_json([list(data.shape), list(data.of_rows(_tile_digests))])


def _tile_digests(view: Stored, limits: Limits | None) -> list[str]:
    """Return a digest of each tile of rows, so that blocks of rows can be digested where they are."""
    found = []
    for start in range(0, view.n_rows, ROWS_PER_TILE):
        tile = np.arange(start, min(start + ROWS_PER_TILE, view.n_rows))
        arrays = view.select(tile).kernel_arrays()
        del arrays["n_columns"]
        content = [array for array in arrays.values() if array is not None]
        if limits is not None and (of_tile := limits.of_rows(tile)) is not None:
            content += [of_tile.flat, of_tile.lower, of_tile.upper]
        found.append(digests.of_arrays(*content))
    return found


def row_ids(data: ObservedMatrix, scale: Floats | None = None) -> Words:
    """Return a hash of the content of each row, which does not depend on the container or on other rows."""
    unit = np.ones(data.shape[1]) if scale is None else np.broadcast_to(1.0 / scale, data.shape[1])
    return data.of_rows(partial(_ids, unit=unit))


def _ids(view: Stored, limits: Limits | None, unit: Floats) -> Words:
    # A sum over the observed positions and the nonzero values, which can be computed from any listing.
    places, found = scramble(np.arange(1, view.n_columns + 1, dtype=np.uint64)), []
    # Some rows at a time, because the hashes of all entries would take more memory than the data.
    n_rows = max(MIN_ROWS, min(ROWS_PER_TILE, MAX_HASHES // len(places)))
    for start in range(0, view.n_rows, n_rows):
        some = view.select(np.arange(start, min(start + n_rows, view.n_rows)))
        listed, stored = _row_sums(places[some.indices], some.indptr), some.csr()
        observed = np.where(some.lists_missing, places.sum() - listed, listed)
        values = stored.data * unit[stored.indices]
        hashes = np.where(values == 0.0, np.uint64(0), scramble(values.view(np.uint64) ^ places[stored.indices]))
        found.append(scramble(observed + _row_sums(hashes, stored.indptr)))
    ids = np.concatenate(found)
    if limits is not None:
        at = places[limits.columns]
        for number, side in enumerate((limits.lower, limits.upper), start=1):
            bits = (side * unit[limits.columns] + 0.0).view(np.uint64)
            np.add.at(ids, limits.rows, scramble(bits ^ (at << np.uint64(number))))
    return ids


def scramble(x: Words) -> Words:
    """Return 64-bit words in which every bit depends on every bit of x (the finaliser of SplitMix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _row_sums(hashes: Words, indptr: Array) -> Words:
    return np.diff(np.concatenate([np.zeros(1, np.uint64), np.cumsum(hashes, dtype=np.uint64)])[indptr])
