"""The data as the half-sweep of one factor reads them: by rows for W, and by columns for Z."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from bnmf.data.containers import check_values, has_nan
from bnmf.data.patterns import Others, Sharing, min_sharing, number_patterns, pointers, split_rows
from bnmf.kernels.compiled import ROWS_PER_TILE, Data, Rows, Split, listed_residuals, squared_residuals
from bnmf.utils.typing import Array, Bools, Floats, Indices, Ints, Positions, Words

# Below this fraction of its sum of squares, the squared error of a row from the quadratic form has lost its digits to
# cancellation and is recomputed from the residuals.
MIN_TRUSTED_ERROR = 1e-8
# Listed entries that are handled at a time in sums over all of them.
ENTRIES_PER_BLOCK = 2**17


@dataclass(frozen=True)
class View:
    """Rows of the data, or of its transpose.

    Attributes
    ----------
    matrix : ndarray, csr_array or None
        The data with zeros in place of missing entries; None if every row lists its observed entries.
    indptr, indices, values : ndarray
        Row i lists the positions `indices[indptr[i]:indptr[i + 1]]` and the data there (0 where missing). Values may be
        in single precision, if that is exact.
    lists_missing : ndarray of bool
        Whether a row lists its missing positions rather than its observed ones: whichever are fewer.
    squares : ndarray
        Σ a² over the observed entries of each row; only set if there is a matrix.
    """

    matrix: Floats | sp.csr_array | None
    indptr: Ints
    indices: Positions
    values: Floats
    lists_missing: Bools
    squares: Floats

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

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields alone: what is computed of them is computed again where they are sent to."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def kernel_arrays(self) -> dict[str, Any]:
        """Return the rows in the form that the kernels read: the arguments of `Data`."""
        matrix = self.matrix
        stored: tuple[Any, Any, Any] = None, None, None
        if isinstance(matrix, sp.csr_array):
            stored = matrix.indptr.astype(np.int64), unsigned(matrix.indices), matrix.data
        return {
            "indptr": self.indptr,
            "indices": self.indices,
            "values": self.values,
            "lists_missing": self.lists_missing.view(np.uint8),
            "dense": matrix if isinstance(matrix, np.ndarray) else None,
            "stored_indptr": stored[0],
            "stored_indices": stored[1],
            "stored_values": stored[2],
            "n_columns": 0 if matrix is None else matrix.shape[1],
        }

    @cached_property
    def kernel_data(self) -> Data:
        """The rows in the form that the kernels read."""
        return Data(**self.kernel_arrays())

    @cached_property
    def _splits(self) -> dict[int, Split]:
        return {}

    def split(self, min_sharing: int) -> tuple[Sharing | None, Others | None]:
        """Return the rows that share their missing entries with `min_sharing` rows of their tile, and the others."""
        return split_rows(self._patterns, ROWS_PER_TILE, min_sharing)

    def kernel_split(self, min_sharing: int) -> Split:
        """Return the rows of `split` in the form that the kernels read."""
        if min_sharing not in self._splits:
            sharing, others = self.split(min_sharing)
            self._splits[min_sharing] = Split(
                data=self.kernel_data,
                sharing_indptr=None if sharing is None else sharing.indptr,
                sharing_rows=None if sharing is None else sharing.rows,
                repeats=None if sharing is None else sharing.repeats,
                other_indptr=None if others is None else others.indptr,
                other_rows=None if others is None else others.rows,
            )
        return self._splits[min_sharing]

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
        )

    def scaled(self, entry_scale: Floats | None = None, row_scale: Floats | None = None) -> ScaledView:
        """Return a view whose data are multiplied by factors of columns and rows, as they are read."""
        return ScaledView(self, entry_scale, row_scale)

    def product(self, start: int, stop: int, Z: Floats) -> Floats:
        """Return rows `start` to `stop` of the matrix times Z."""
        if self.matrix is None:
            return np.empty((0, Z.shape[1]))
        return np.ascontiguousarray(self.matrix[start:stop] @ Z)

    # --- numbers of each row, over its observed entries

    @cached_property
    def n_observed(self) -> Ints:
        """Number of observed entries."""
        n_listed: Ints = np.diff(self.indptr)
        if self.matrix is None:
            return n_listed
        return np.where(self.lists_missing, self.matrix.shape[1] - n_listed, n_listed)

    @cached_property
    def sums_of_squares(self) -> Floats:
        """Σ a²."""
        return self.squares if self.matrix is not None else self.row_sums(lambda values, positions: values**2)

    def weighted_squares(self, weights: Floats) -> Floats:
        """Return Σ_j weights_j a_ij²; zeros if every row lists its observed entries, whose squares the kernel sums."""
        if self.matrix is None:
            return self.squares
        if isinstance(self.matrix, sp.csr_array):
            return self.matrix.multiply(self.matrix) @ weights
        return np.einsum("ij,ij,j->i", self.matrix, self.matrix, weights)

    def resolutions(self) -> Floats:
        """Return the step in which the entries of a row are recorded: NaN if they are all equal, 0 if there is none.

        It is the smallest difference between two distinct entries, if at least half of the entries repeat another one.
        """
        steps = np.zeros(self.n_rows)
        for row in range(self.n_rows):
            distinct = np.unique(self.observed_values(row))
            if len(distinct) <= 1:
                steps[row] = np.nan
            elif 2 * len(distinct) <= self.n_observed[row]:
                steps[row] = np.diff(distinct).min()
        return steps

    def observed_values(self, row: int) -> Floats:
        """Return the observed entries of a row; of implicit zeros one, as they are all equal."""
        listed = slice(self.indptr[row], self.indptr[row + 1])
        if not self.lists_missing[row]:
            return self.values[listed].astype(np.float64, copy=False)
        if isinstance(self.matrix, np.ndarray):
            return np.delete(self.matrix[row], self.indices[listed])
        assert self.matrix is not None
        stored = slice(self.matrix.indptr[row], self.matrix.indptr[row + 1])
        kept = ~np.isin(self.matrix.indices[stored], self.indices[listed])
        values = self.matrix.data[stored][kept]
        return values if len(values) == self.n_observed[row] else np.append(values, 0.0)

    def root_mean_squares(self) -> Floats:
        """Return the root of the mean of a², 0 for a row without observed entries; nothing overflows."""
        largest = self.largest_magnitudes()
        if self.matrix is None:
            divisor = np.where(largest > 0, largest, 1.0)
            total = np.zeros(self.n_rows)
            for rows, row_of, values, _ in self._blocks():
                total[rows] = np.bincount(row_of, (values / divisor[rows][row_of]) ** 2, minlength=len(total[rows]))
        else:
            relative: Any = abs(self.matrix)  # sparse arrays stay sparse; dense ones are copied once
            relative *= (1.0 / np.where(largest > 0, largest, 1.0))[:, None]
            relative **= 2
            total = np.asarray(relative.sum(axis=1)).ravel()
        return np.asarray(largest * np.sqrt(total / np.maximum(self.n_observed, 1)), dtype=np.float64)

    def row_sums(self, function: Callable[[Floats, Positions], Floats]) -> Floats:
        """Return the sum over the list of each row of a function of its values and positions."""
        sums = np.zeros(self.n_rows)
        for rows, row_of, values, positions in self._blocks():
            sums[rows] = np.bincount(row_of, weights=function(values, positions), minlength=len(sums[rows]))
        return sums

    def sums(self) -> Floats:
        """Return the sum of the observed entries of each row."""
        if self.matrix is None:
            return self.row_sums(lambda values, _: values)
        return np.asarray(self.matrix.sum(axis=1), dtype=np.float64).ravel()

    def largest_magnitudes(self) -> Floats:
        """Return the largest magnitude of the observed entries of each row, 0 if it has none."""
        if self.matrix is not None:
            magnitude: Any = abs(self.matrix)
            peak = magnitude.max(axis=1)
            return np.asarray(peak.toarray() if hasattr(peak, "toarray") else peak, dtype=np.float64).ravel()
        maxima = np.zeros(self.n_rows)
        for rows, row_of, values, _ in self._blocks():
            np.maximum.at(maxima[rows], row_of, np.abs(values))
        return maxima

    def _blocks(self) -> Iterator[tuple[slice, Indices, Floats, Positions]]:
        """Yield ranges of rows, and the row within the range, value and position of each of their listed entries.

        A range has a limited number of entries, so that what is computed of them takes little memory.
        """
        start = 0
        while start < self.n_rows:
            end = np.searchsorted(self.indptr, self.indptr[start] + ENTRIES_PER_BLOCK, side="right") - 1
            stop = min(max(int(end), start + 1), self.n_rows)
            listed = slice(self.indptr[start], self.indptr[stop])
            row_of = np.repeat(np.arange(stop - start), np.diff(self.indptr[start : stop + 1]))
            values = self.values[listed].astype(np.float64, copy=False)
            yield slice(start, stop), row_of, values, self.indices[listed]
            start = stop

    def mask(self, start: int, stop: int, n_columns: int) -> Bools:
        """Return a dense mask of the observed entries of rows `start` to `stop`."""
        mask = np.repeat(self.lists_missing[start:stop, None], n_columns, axis=1)
        rows = np.repeat(np.arange(stop - start), np.diff(self.indptr[start : stop + 1]))
        listed = self.indices[self.indptr[start] : self.indptr[stop]]
        mask[rows, listed] = ~mask[rows, listed]
        return mask


class ScaledView:
    """A view whose data are multiplied by a factor for each column and one for each row, as they are read.

    Parameters
    ----------
    view : View
        The data.
    entry_scale : ndarray of shape (columns,), optional
        Factors of the columns; 1 by default.
    row_scale : ndarray of shape (1 or rows,), optional
        Factors of the rows; 1 by default.
    """

    def __init__(self, view: View, entry_scale: Floats | None = None, row_scale: Floats | None = None) -> None:
        self.view = view
        self.entry_scale = entry_scale
        self.row_scale = np.ones(1) if row_scale is None else row_scale
        self.has_row_scale = row_scale is not None
        self._kernel_rows: dict[int, Rows] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Return everything but what the kernels read, which points to memory of this process."""
        return self.__dict__ | {"_kernel_rows": {}}

    def kernel_rows(self, n_components: int) -> Rows:
        """Return what the half-sweeps of K components read of the data, in the form that the kernels read."""
        if n_components not in self._kernel_rows:
            self._kernel_rows[n_components] = Rows(
                data=self.view.kernel_data,
                split=self.view.kernel_split(min_sharing(n_components)),
                entry_scale=self.entry_scale,
                row_scale=self.row_scale,
                squares=self.squares,
                ids=self.view.ids,
            )
        return self._kernel_rows[n_components]

    def times(self, factor: Floats) -> ScaledView:
        """Return the view with its columns multiplied by further factors."""
        entry_scale = factor if self.entry_scale is None else factor * self.entry_scale
        return ScaledView(self.view, entry_scale, self.row_scale if self.has_row_scale else None)

    @cached_property
    def squares(self) -> Floats:
        """Σ a² of each row, in the form that the kernel reads."""
        squares = self.view.squares
        if self.entry_scale is not None:
            squares = self.view.weighted_squares(self.entry_scale**2)
        return squares * self.row_scale**2 if self.has_row_scale else squares

    @cached_property
    def sums_of_squares(self) -> Floats:
        """Σ a² of each row."""
        if self.entry_scale is not None and self.view.matrix is None:
            entry_scale = self.entry_scale
            sums = self.view.row_sums(lambda values, positions: (values * entry_scale[positions]) ** 2)
            return sums * self.row_scale**2
        return self.squares if self.view.matrix is not None else self.view.sums_of_squares * self.row_scale**2

    @cached_property
    def trusted_errors(self) -> Floats:
        """The squared error of each row above which that from the quadratic form has digits left."""
        return MIN_TRUSTED_ERROR * self.sums_of_squares

    def product(self, start: int, stop: int, Z: Floats) -> Floats:
        """Return rows `start` to `stop` of the data times Z, which has the factors of the columns in it already."""
        product = self.view.product(start, stop, Z)
        if self.has_row_scale and len(product):
            product *= self.row_scale if self.row_scale.size == 1 else self.row_scale[start:stop, None]
        return product

    def listed_residuals(self, W: Floats, Z: Floats, start: int, stop: int, out: Floats) -> None:
        """Write a - w z at the listed positions of rows `start` to `stop`, which list what was observed."""
        listed_residuals(W, Z, self.view.kernel_data, self.entry_scale, self.row_scale, start, stop, out)

    def squared_errors(self, W: Floats, Z: Floats, start: int, stop: int, out: Floats) -> None:
        """Write Σ (a - w z)² over the observed entries of rows `start` to `stop`, from the residuals."""
        squared_residuals(W, Z, self.view.kernel_data, self.entry_scale, self.row_scale, start, stop, out)


def dense_views(array: Floats, mask: Bools) -> tuple[View, View, int]:
    """Return both views and the number of observed entries of a dense array, which stays dense."""
    filled = np.where(mask, array, 0.0)
    return dense_view(filled, mask), dense_view(filled.T, mask.T), int(mask.sum())


def dense_view(filled: Floats, mask: Bools) -> View:
    """Return the rows of a dense array with zeros in place of missing entries."""
    filled = np.ascontiguousarray(filled)
    lists_missing = 2 * mask.sum(axis=1) > mask.shape[1]
    indptr, rows, columns = _positions(mask != lists_missing[:, None])
    squares = np.einsum("ij,ij->i", filled, filled)
    return View(filled, indptr, columns.astype(np.uint32), filled[rows, columns], lists_missing, squares)


def views_of_few(array: Floats, mask: Bools) -> tuple[View, View, int]:
    """Return both views and the number of observed entries of a dense array that is mostly missing."""
    return listed_views(observed_csr(array, mask), negative=True)


def observed_csr(array: Floats, mask: Bools) -> sp.csr_array:
    """Return a sparse matrix that stores the observed entries of a dense array, zeros included."""
    indptr, rows, columns = _positions(mask)
    return sp.csr_array((array[rows, columns], columns.astype(np.int32), indptr), shape=array.shape)


def listed_views(matrix: sp.csr_array, *, negative: bool) -> tuple[View, View, int]:
    """Return both views and the number of observed entries of a sparse matrix whose unstored entries are missing."""
    matrix = without_nan(matrix)
    check_values(matrix.data, negative=negative)
    return listed_view(matrix), listed_view(in_single_precision(matrix).tocsc()), matrix.nnz


def in_single_precision(matrix: sp.csr_array) -> sp.csr_array:
    """Return a sparse matrix in single precision if that is exact, as for ratings: a smaller copy."""
    single = np.empty(len(matrix.data), np.float32)
    with np.errstate(over="ignore", under="ignore"):
        for start in range(0, len(single), ENTRIES_PER_BLOCK):
            block = slice(start, start + ENTRIES_PER_BLOCK)
            single[block] = matrix.data[block]
            if not np.array_equal(single[block], matrix.data[block]):
                return matrix
    return sp.csr_array((single, matrix.indices, matrix.indptr), shape=matrix.shape)


def without_nan(matrix: sp.csr_array) -> sp.csr_array:
    """Return a sparse matrix that does not store missing entries."""
    if not has_nan(matrix.data):
        return matrix
    missing = np.isnan(matrix.data)
    lengths = np.diff(pointers(~missing)[matrix.indptr])
    return sp.csr_array((matrix.data[~missing], matrix.indices[~missing], pointers(lengths)), shape=matrix.shape)


def listed_view(compressed: sp.csr_array | sp.csc_array) -> View:
    """Return the rows of a CSR matrix, or the columns of a CSC one, whose unstored entries are missing."""
    n_rows = len(compressed.indptr) - 1
    return View(
        None,
        compressed.indptr.astype(np.int64),
        unsigned(compressed.indices),
        np.require(compressed.data, requirements="W"),
        np.zeros(n_rows, bool),
        np.zeros(n_rows),
    )


def sparse_views(matrix: sp.csr_array, *, negative: bool) -> tuple[View, View, int]:
    """Return both views and the number of observed entries of a sparse matrix whose unstored entries are zeros."""
    missing = np.isnan(matrix.data)
    check_values(matrix.data[~missing], negative=negative)
    n_observed = matrix.shape[0] * matrix.shape[1] - int(missing.sum())
    return sparse_view(matrix), sparse_view(matrix.T.tocsr()), n_observed


def sparse_view(matrix: sp.csr_array) -> View:
    """Return the rows of a sparse matrix whose unstored entries are zeros.

    Missing entries are those stored as NaN, and they are listed. A row that is mostly missing lists its observed
    entries instead, zeros included, as a dense one would: the sums over it would cancel in the other form. That takes
    less memory than its missing entries do.
    """
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


def _positions(mask: Bools) -> tuple[Ints, Indices, Indices]:
    """Return row pointers, rows and columns of the True entries."""
    rows, columns = np.nonzero(mask)
    return pointers(mask.sum(axis=1)), rows, columns


def unsigned(indices: Array) -> Positions:
    """Return column numbers as the kernels take them, without a copy if they have 32 bits."""
    return indices.view(np.uint32) if indices.itemsize == 4 else indices.astype(np.uint32)
