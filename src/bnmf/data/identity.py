"""Hashes of data: of a whole matrix, to know a run again, and of each row, to know a row again."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bnmf.observed import ObservedMatrix, unsigned
from bnmf.workers import TILE

Floats = NDArray[np.float64]


def fingerprint(data: ObservedMatrix) -> str:
    """Return a hash of the shape and of every observed entry."""
    view = data.rows
    arrays: list[NDArray[Any]] = [view.indptr, view.indices, view.values, view.lists_missing]
    if isinstance(view.matrix, sp.csr_array):
        arrays += [view.matrix.indptr.astype(np.int64), unsigned(view.matrix.indices), view.matrix.data]
    elif view.matrix is not None:
        arrays.append(view.matrix)
    digest = hashlib.sha256(repr(data.shape).encode())
    for array in arrays:
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def row_ids(data: ObservedMatrix) -> NDArray[np.uint64]:
    """Return a hash of what each row holds, the same whatever it is stored in and which rows are beside it.

    It is a sum over the observed positions and over the nonzero values, so it can be made from any listing.

    Parameters
    ----------
    data : ObservedMatrix
        The data.

    Returns
    -------
    ndarray of uint64 of shape (rows,)
        Equal for rows that hold the same.
    """
    places = _scramble(np.arange(1, data.shape[1] + 1, dtype=np.uint64))
    starts = range(0, data.shape[0], TILE)  # by tiles, because the hashes of all entries would take more than the data
    return np.concatenate([_tile_ids(data, places, start, min(start + TILE, data.shape[0])) for start in starts])


def _tile_ids(data: ObservedMatrix, places: NDArray[np.uint64], start: int, stop: int) -> NDArray[np.uint64]:
    view = data.rows
    indptr = view.indptr[start : stop + 1]
    listed = slice(indptr[0], indptr[-1])
    if view.matrix is None:
        at = places[view.indices[listed]]
        return _scramble(_row_sums(at + _hashed_values(at, view.values[listed]), indptr))
    seen = data.mask(start, stop)
    if isinstance(view.matrix, sp.csr_array):
        matrix = view.matrix[start:stop]
        hashes = _hashed_values(places[matrix.indices], matrix.data)
        return _scramble(np.sum(places * seen, axis=1) + _row_sums(hashes, matrix.indptr))
    return _scramble(np.sum((places + _hashed_values(places, view.matrix[start:stop])) * seen, axis=1))


def _scramble(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return 64-bit words in which every bit depends on every bit of x (SplitMix64's finaliser)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _hashed_values(places: NDArray[np.uint64], values: Floats) -> NDArray[np.uint64]:
    """Return a hash of each value and its place, 0 for a value of zero."""
    bits = np.ascontiguousarray(values).view(np.uint64)
    return np.where(values == 0.0, np.uint64(0), _scramble(bits ^ places))


def _row_sums(hashes: NDArray[np.uint64], indptr: NDArray[Any]) -> NDArray[np.uint64]:
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(hashes, dtype=np.uint64)])
    return np.diff(sums[indptr - indptr[0]])
