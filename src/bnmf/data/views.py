"""The data as the half-sweep of one factor reads them: by rows for W, and by columns for Z."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from bnmf.data.containers import check_values
from bnmf.data.patterns import Lists, lists_with_blocks, lists_without_blocks, number_patterns, pointers
from bnmf.kernels.sweep import squared_residuals
from bnmf.utils.typing import Array, Bools, Floats, Indices, Ints, Positions, Words

# Rows in one unit of work. It does not depend on the number of threads, so neither does the rounding of BLAS.
ROWS_PER_TILE = 256
_NO_MATRIX = np.zeros((0, 0))


@dataclass(frozen=True)
class View:
    """Rows of the data, or of its transpose.

    Attributes
    ----------
    matrix : ndarray, csr_array or None
        The data with zeros in place of missing entries; None if every row lists its observed entries.
    indptr, indices, values : ndarray
        Row i lists the positions `indices[indptr[i]:indptr[i + 1]]` and the data there (0 where missing).
    lists_missing : ndarray of bool
        Whether a row lists its missing positions rather than its observed ones: whichever are fewer.
    squares : ndarray
        Σ a² over the observed entries of each row; only set if there is a matrix.
    is_selection : bool
        Whether these rows were selected from another view. Each is then drawn as it would be alone, so they share no
        blocks of missing entries.
    """

    matrix: Floats | sp.csr_array | None
    indptr: Ints
    indices: Positions
    values: Floats
    lists_missing: Bools
    squares: Floats
    is_selection: bool = False

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.lists_missing)

    @cached_property
    def ids(self) -> Words:
        """Numbers that key the random stream of each row: 0, 1, 2 and so on."""
        return np.arange(self.n_rows, dtype=np.uint64)

    @cached_property
    def _patterns(self) -> Ints:
        """Pattern of missing entries of each row that lists them, as a number; -1 for other rows."""
        return number_patterns(self.indptr, self.indices, np.flatnonzero(self.lists_missing))

    @cached_property
    def lists(self) -> Lists:
        """The lists as the half-sweep reads them, with blocks of entries that are missing together."""
        if self.is_selection:
            return lists_without_blocks(self.indptr, self.indices, self.values)
        return lists_with_blocks(self.indptr, self.indices, self.values, self.lists_missing)

    @cached_property
    def order(self) -> Ints:
        """Order in which the rows are drawn: within each tile by pattern, the commonest pattern first."""
        tiles = np.arange(self.n_rows) // ROWS_PER_TILE
        _, place, sizes = np.unique(np.stack([tiles, self._patterns]), axis=1, return_inverse=True, return_counts=True)
        n_sharing = np.where(self._patterns >= 0, sizes[place], 1)
        return np.lexsort((self._patterns, -n_sharing, tiles)).astype(np.int64)

    @cached_property
    def repeats(self) -> Bools:
        """Whether a row has the same missing entries as the row drawn before it in the same tile."""
        patterns = self._patterns[self.order]
        repeats = np.zeros(self.n_rows, bool)
        repeats[1:] = (patterns[1:] == patterns[:-1]) & (patterns[1:] >= 0)
        repeats[::ROWS_PER_TILE] = False
        return repeats

    @property
    def dense(self) -> Floats:
        """The matrix if it is a dense array, and an empty one otherwise."""
        return self.matrix if isinstance(self.matrix, np.ndarray) else _NO_MATRIX

    def select(self, rows: Indices) -> View:
        """Return a view of some of the rows."""
        lengths = np.diff(self.indptr)[rows]
        inside = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        listed = np.repeat(self.indptr[rows], lengths) + inside
        matrix = None if self.matrix is None else self.matrix[rows]
        return View(
            matrix,
            pointers(lengths),
            self.indices[listed],
            self.values[listed],
            self.lists_missing[rows],
            self.squares[rows],
            is_selection=True,
        )

    def product(self, start: int, stop: int, Z: Floats) -> Floats:
        """Return rows `start` to `stop` of the matrix times Z."""
        if self.matrix is None:
            return np.empty((0, Z.shape[1]))
        return np.ascontiguousarray(self.matrix[start:stop] @ Z)

    def squared_error(self, W: Floats, Z: Floats, start: int, stop: int) -> float:
        """Return Σ (a - w z)² over the observed entries of rows `start` to `stop`, from the residuals."""
        if isinstance(self.matrix, sp.csr_array):
            residuals = self.matrix[start:stop].toarray() - W[start:stop] @ Z.T
            residuals[~self.mask(start, stop, len(Z))] = 0.0
            return float(np.vdot(residuals, residuals))
        return squared_residuals(
            W, Z, self.dense, self.indptr, self.indices, self.values, self.lists_missing, start, stop
        )

    def mask(self, start: int, stop: int, n_columns: int) -> Bools:
        """Return a dense mask of the observed entries of rows `start` to `stop`."""
        mask = np.repeat(self.lists_missing[start:stop, None], n_columns, axis=1)
        rows = np.repeat(np.arange(stop - start), np.diff(self.indptr[start : stop + 1]))
        listed = self.indices[self.indptr[start] : self.indptr[stop]]
        mask[rows, listed] = ~mask[rows, listed]
        return mask


def dense_views(array: Floats, mask: Bools) -> tuple[View, View, int]:
    """Return both views and the number of observed entries of a dense array, which stays dense."""
    filled = np.where(mask, array, 0.0)

    def view(filled: Floats, mask: Bools) -> View:
        filled = np.ascontiguousarray(filled)
        lists_missing = 2 * mask.sum(axis=1) > mask.shape[1]
        indptr, rows, columns = _positions(mask != lists_missing[:, None])
        squares = np.einsum("ij,ij->i", filled, filled)
        return View(filled, indptr, columns.astype(np.uint32), filled[rows, columns], lists_missing, squares)

    return view(filled, mask), view(filled.T, mask.T), int(mask.sum())


def views_of_few(array: Floats, mask: Bools) -> tuple[View, View, int]:
    """Return both views and the number of observed entries of a dense array that is mostly missing."""
    indptr, rows, columns = _positions(mask)
    matrix = sp.csr_array((array[rows, columns], columns.astype(np.int32), indptr), shape=array.shape)
    return listed_views(matrix, negative=True)


def listed_views(matrix: sp.csr_array, *, negative: bool) -> tuple[View, View, int]:
    """Return both views and the number of observed entries of a sparse matrix whose unstored entries are missing."""
    missing = np.isnan(matrix.data)
    if missing.any():
        lengths = np.diff(pointers(~missing)[matrix.indptr])
        matrix = sp.csr_array((matrix.data[~missing], matrix.indices[~missing], pointers(lengths)), shape=matrix.shape)
    check_values(matrix.data, negative=negative)

    def view(compressed: Any, n_rows: int) -> View:
        return View(
            None,
            compressed.indptr.astype(np.int64),
            unsigned(compressed.indices),
            np.require(compressed.data, requirements="W"),
            np.zeros(n_rows, bool),
            np.zeros(n_rows),
        )

    return view(matrix, matrix.shape[0]), view(matrix.tocsc(), matrix.shape[1]), matrix.nnz


def sparse_views(matrix: sp.csr_array, *, negative: bool) -> tuple[View, View, int]:
    """Return both views and the number of observed entries of a sparse matrix whose unstored entries are zeros.

    Missing entries are those stored as NaN, and they are listed. A row that is mostly missing lists its observed
    entries instead, zeros included, as a dense one would: the sums over it would cancel in the other form. That takes
    less memory than its missing entries do.
    """
    missing = np.isnan(matrix.data)
    check_values(matrix.data[~missing], negative=negative)

    def view(matrix: sp.csr_array) -> View:
        missing = np.isnan(matrix.data)
        filled = sp.csr_array((np.where(missing, 0.0, matrix.data), matrix.indices, matrix.indptr), shape=matrix.shape)
        n_rows, n_columns = matrix.shape
        lists_missing = 2 * np.diff(pointers(missing)[matrix.indptr]) < n_columns
        row_of = np.repeat(np.arange(n_rows), np.diff(matrix.indptr))
        listed_missing = missing & lists_missing[row_of]
        mostly_missing = matrix[~lists_missing].toarray()
        rows, columns = np.nonzero(~np.isnan(mostly_missing))
        values = np.concatenate([np.zeros(int(listed_missing.sum())), mostly_missing[rows, columns]])
        rows = np.concatenate([row_of[listed_missing], np.flatnonzero(~lists_missing)[rows]])
        columns = np.concatenate([matrix.indices[listed_missing], columns])
        order = np.argsort(rows, kind="stable")
        return View(
            filled,
            pointers(np.bincount(rows, minlength=n_rows)),
            columns[order].astype(np.uint32),
            values[order],
            lists_missing,
            np.asarray(filled.multiply(filled).sum(axis=1)),
        )

    n_observed = matrix.shape[0] * matrix.shape[1] - int(missing.sum())
    return view(matrix), view(matrix.T.tocsr()), n_observed


def _positions(mask: Bools) -> tuple[Ints, Indices, Indices]:
    """Return row pointers, rows and columns of the True entries."""
    rows, columns = np.nonzero(mask)
    return pointers(mask.sum(axis=1)), rows, columns


def unsigned(indices: Array) -> Positions:
    """Return column numbers as the kernels take them, without a copy if they have 32 bits and are writable.

    Kernels have one compiled variant, for writable arrays, so read-only arrays are copied here.
    """
    indices = np.require(indices, requirements="W")
    return indices.view(np.uint32) if indices.itemsize == 4 else indices.astype(np.uint32)
