"""Rows of the data, or of its transpose, in the three forms in which they are stored, and numbers of each row.

Dense rows are those of an array, sparse ones those of a matrix whose unstored entries are zeros. In both, each row also
lists its missing entries or its observed ones, whichever are fewer. If most entries are missing, rows only list what
was observed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from bnmf.data.containers import SMALLEST, pointers, row_numbers
from bnmf.data.half_sweeps import ScaledView, Split, split_rows
from bnmf.kernels.compiled import ROWS_PER_TILE, Data
from bnmf.utils.typing import Array, Bools, Floats, Indices, Ints, Positions, Shape, Words

# Listed entries that are handled at a time in sums over all of them.
ENTRIES_PER_BLOCK = 2**17
# Entries of a row that it takes to tell whether some of them are outliers.
MIN_FOR_OUTLIERS = 5
Targets = list[tuple[Floats, Ints]]
"""Arrays that hold some entries, and the places of these in each of them, -1 where it does not."""


@dataclass(frozen=True, eq=False)
class Stored:
    """Rows in this process, each with a list of its missing positions or of its observed ones, whichever are fewer."""

    n_columns: int  # the length of a row
    indptr: Ints  # row i lists indices[indptr[i]:indptr[i + 1]]
    indices: Positions
    values: Floats  # at these positions, 0 where missing; in fewer bytes if these are exact
    lists_missing: Bools  # whether a row lists its missing positions
    # Whole rows with zeros in place of missing entries: an array, or a CSR matrix whose unstored entries are zeros.
    # None if all rows list what was observed, and nothing else.
    matrix: Any = None

    @property
    def form(self) -> str:
        """How rows are stored: "dense", "sparse" or "listed"."""
        if self.matrix is None:
            return "listed"
        return "sparse" if sp.issparse(self.matrix) else "dense"

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.indptr) - 1

    @cached_property
    def ids(self) -> Words:
        """Numbers that key the random stream of each row: 0, 1, 2 and so on."""
        return np.arange(self.n_rows, dtype=np.uint64)

    @cached_property
    def n_observed(self) -> Ints:
        """Number of observed entries of each row."""
        n_listed = np.diff(self.indptr)
        return np.where(self.lists_missing, self.n_columns - n_listed, n_listed)

    @property
    def listed_rows(self) -> Indices:
        """Row of each listed entry."""
        return row_numbers(self.indptr)

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields alone: what is computed of them is computed again where they are sent to."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def scaled(self, entry_scale: Floats | None = None, row_scale: Floats | None = None) -> ScaledView:
        """Return a view whose data are multiplied by factors of columns and rows, as they are read."""
        return ScaledView(self, entry_scale, row_scale)

    # --- rows and entries

    def select(self, rows: Indices) -> Stored:
        """Return a view of some of the rows."""
        lengths = np.diff(self.indptr)[rows]
        listed = within_ranges(self.indptr[rows], lengths)
        lists = pointers(lengths), self.indices[listed], self.values[listed], self.lists_missing[rows]
        return Stored(self.n_columns, *lists, None if self.matrix is None else self.matrix[rows])

    def own(self) -> Stored:
        """Return a view with a copy of the data, which may be changed."""
        matrix = None if self.matrix is None else self.matrix.copy()
        own = replace(self, values=self.values.astype(np.float64), matrix=matrix)
        own.__dict__["patterns"] = self.patterns  # which do not change
        return own

    def mask(self) -> Bools:
        """Return a dense mask of the observed entries."""
        mask = np.repeat(self.lists_missing[:, None], self.n_columns, axis=1)
        mask[self.listed_rows, self.indices] ^= True
        return mask

    def csr(self) -> sp.csr_array:
        """Return the rows as a sparse matrix, which stores all observed entries but zeros."""
        if self.form != "listed":
            return sp.csr_array(self.matrix)
        shape = self.n_rows, self.n_columns
        return sp.csr_array((self.values, self.indices.astype(np.int64), self.indptr), shape=shape)

    def dense(self) -> Floats:
        """Return the rows as a dense array, with zeros in place of missing entries."""
        return self.matrix if self.form == "dense" else self.csr().toarray()

    def dense_with_nan(self) -> Floats:
        """Return the rows as a dense array with NaN for missing entries."""
        return np.where(self.mask(), self.dense(), np.nan)

    def entries(self) -> tuple[Indices, Indices, Floats]:
        """Return rows, columns and values of the observed entries, row by row."""
        if self.form == "listed":
            return self.listed_rows, self.indices.astype(np.int64), self.values
        rows, columns = np.nonzero(self.mask())
        return rows, columns, self.dense()[rows, columns]

    def observed_values(self, row: int) -> Floats:
        """Return the observed entries of a row; of implicit zeros one, as they are all equal."""
        listed = slice(self.indptr[row], self.indptr[row + 1])
        if not self.lists_missing[row]:
            return self.values[listed].astype(np.float64, copy=False)
        missing = self.indices[listed]
        if self.form == "dense":
            return np.delete(self.matrix[row], missing)
        stored = slice(self.matrix.indptr[row], self.matrix.indptr[row + 1])
        values = self.matrix.data[stored][~np.isin(self.matrix.indices[stored], missing)]
        return values if len(values) == self.n_observed[row] else np.append(values, 0.0)

    def targets(self, rows: Indices, columns: Indices) -> Targets:
        """Return where the data hold some entries."""
        found, wanted = [], flat(rows, columns, (self.n_rows, self.n_columns))
        if self.form == "dense":
            found.append((self.matrix.reshape(-1), wanted))
        if self.form == "sparse":
            found.append((self.matrix.data, places_in(flat_of(self.matrix), wanted)))
        listed, is_listed = np.full(len(wanted), -1), ~self.lists_missing[rows]
        if is_listed.any():
            positions = flat(self.listed_rows, self.indices, (self.n_rows, self.n_columns))
            listed[is_listed] = places_in(positions, wanted[is_listed])
        if self.form == "listed" or (listed >= 0).any():
            found.append((self.values, listed))
        return found

    # --- what the kernels read

    def kernel_arrays(self) -> dict[str, Any]:
        """Return the arguments of `Data`."""
        lists = {"indptr": self.indptr, "indices": self.indices, "values": self.values, "n_columns": self.n_columns}
        arrays = {**lists, "lists_missing": self.lists_missing.view(np.uint8)}
        if self.form == "listed":
            return arrays
        if self.form == "dense":
            return arrays | {"dense": self.matrix}
        stored = {"stored_indices": unsigned(self.matrix.indices), "stored_values": self.matrix.data}
        return arrays | {"stored_indptr": self.matrix.indptr.astype(np.int64), **stored}

    @cached_property
    def kernel_data(self) -> Data:
        """The rows in the form that the kernels read."""
        return Data(**self.kernel_arrays())

    @cached_property
    def patterns(self) -> Ints:
        """Pattern of missing entries of each row that lists them, as a number; -1 for other rows."""
        numbers: dict[bytes, int] = {}
        patterns = np.full(self.n_rows, -1)
        for row in np.flatnonzero(self.lists_missing):
            listed = self.indices[self.indptr[row] : self.indptr[row + 1]].tobytes()
            patterns[row] = numbers.setdefault(listed, len(numbers))
        return patterns

    @cached_property
    def _splits(self) -> dict[int, Split]:
        return {}

    def split(self, min_sharing: int) -> Split:
        """Return the rows that share their missing entries with `min_sharing` rows of their tile, and the others."""
        if min_sharing not in self._splits:
            self._splits[min_sharing] = split_rows(self.patterns, ROWS_PER_TILE, min_sharing)
        return self._splits[min_sharing]

    # --- numbers of each row

    def sums(self) -> Floats:
        """Return the sum of the observed entries of each row."""
        if self.form == "listed":
            return self._sums_of_lists(lambda values, positions: values)
        return np.asarray(self.matrix.sum(axis=1), dtype=np.float64).ravel()

    def sums_of_squares(self, entry_scale: Floats | None = None) -> Floats:
        """Return Σ (a scale)² of each row."""
        if self.form == "listed":
            scale = np.ones(self.n_columns) if entry_scale is None else entry_scale
            return self._sums_of_lists(lambda values, positions: (values * scale[positions]) ** 2)
        if self.form == "sparse":
            squares = self.matrix.multiply(self.matrix)
            return np.asarray(squares.sum(axis=1)).ravel() if entry_scale is None else squares @ entry_scale**2
        if entry_scale is None:
            return np.einsum("ij,ij->i", self.matrix, self.matrix)
        return np.einsum("ij,ij,j->i", self.matrix, self.matrix, entry_scale**2)

    def root_mean_squares(self) -> Floats:
        """Return the root of the mean of a² of each row, 0 if it has no entries; nothing overflows."""
        largest, total = np.zeros(self.n_rows), np.zeros(self.n_rows)
        if self.form == "listed":
            for rows, row_of, values, _ in self._blocks():
                np.maximum.at(largest[rows], row_of, np.abs(values))
            unit = np.where(largest < SMALLEST, 1.0, largest)  # which is refused, if it is not zero
            for rows, row_of, values, _ in self._blocks():
                total[rows] = np.bincount(row_of, (values / unit[rows][row_of]) ** 2, minlength=len(total[rows]))
        else:
            relative = abs(self.matrix)  # sparse arrays stay sparse; dense ones are copied once
            largest = relative.max(axis=1)
            largest = largest.toarray().ravel() if self.form == "sparse" else largest
            unit = np.where(largest < SMALLEST, 1.0, largest)
            relative *= (1.0 / unit)[:, None]
            relative **= 2
            total = np.asarray(relative.sum(axis=1)).ravel()
        sizes = unit * np.sqrt(total / np.maximum(self.n_observed, 1))
        return np.where(largest < SMALLEST, largest, sizes)

    def minima(self) -> Floats:
        """Return the smallest observed entry of each row, 0 if it has none."""
        lowest = np.array([self.observed_values(row).min(initial=np.inf) for row in range(self.n_rows)])
        return np.where(np.isfinite(lowest), lowest, 0.0)

    def resolutions(self) -> Floats:
        """Return the step in which entries of each row are recorded: NaN if they are all equal, 0 if there is none."""
        steps, n_observed = np.zeros(self.n_rows), self.n_observed
        for row in range(self.n_rows):
            distinct = np.unique(self.observed_values(row))
            if len(distinct) <= 1:
                steps[row] = np.nan
            elif 2 * len(distinct) <= n_observed[row]:  # most entries repeat another one
                steps[row] = np.diff(distinct).min()
        return steps

    def deviations(self) -> Floats:
        """Return the standard deviation of the observed entries of each row, 0 if it has none."""
        if self.form == "sparse":
            mean = self.sums() / np.maximum(self.n_observed, 1)
            return np.sqrt(np.maximum(self.root_mean_squares() ** 2 - mean**2, 0.0))
        observed = map(self.observed_values, range(self.n_rows))
        return np.array([values.std() if values.size else 0.0 for values in observed])

    def gaps(self) -> Floats:
        """Return how many times further from its median the outliers of each row are than its other entries."""
        # Outliers are at most a tenth of the entries, those beyond the widest gap.
        gaps = np.zeros(self.n_rows)
        for row in np.flatnonzero(self.n_observed >= MIN_FOR_OUTLIERS).tolist():
            values = self.observed_values(row)
            distances = np.sort(np.abs(values - np.median(values)))[-2 - len(values) // 10 :]
            if distances[0] > 0.0:
                gaps[row] = (distances[1:] / distances[:-1]).max()
        return gaps

    def _sums_of_lists(self, function: Callable[[Floats, Positions], Floats]) -> Floats:
        """Return the sum over the list of each row of a function of its values and positions."""
        sums = np.zeros(self.n_rows)
        for rows, row_of, values, positions in self._blocks():
            sums[rows] = np.bincount(row_of, weights=function(values, positions), minlength=len(sums[rows]))
        return sums

    def _blocks(self) -> Iterator[tuple[slice, Indices, Floats, Positions]]:
        """Yield ranges of rows with few entries, and the row within the range, value and position of each entry."""
        start = 0
        while start < self.n_rows:
            end = np.searchsorted(self.indptr, self.indptr[start] + ENTRIES_PER_BLOCK, side="right") - 1
            stop = min(max(int(end), start + 1), self.n_rows)
            listed = slice(self.indptr[start], self.indptr[stop])
            row_of = row_numbers(self.indptr[start : stop + 1])
            values = self.values[listed].astype(np.float64, copy=False)
            yield slice(start, stop), row_of, values, self.indices[listed]
            start = stop


# --- from arrays to views


def dense_views(array: Floats, mask: Bools) -> tuple[Stored, Stored]:
    """Return rows and columns of a dense array, which stays dense."""
    filled = np.where(mask, array, 0.0)
    return dense_view(filled, mask), dense_view(filled.T, mask.T)


def dense_view(filled: Floats, mask: Bools) -> Stored:
    """Return the rows of a dense array with zeros in place of missing entries."""
    filled = np.ascontiguousarray(filled)
    lists_missing = 2 * mask.sum(axis=1) > mask.shape[1]
    rows, columns = np.nonzero(mask != lists_missing[:, None])
    lists = pointers(np.bincount(rows, minlength=len(filled))), columns.astype(np.uint32), filled[rows, columns]
    return Stored(filled.shape[1], *lists, lists_missing, filled)


def observed_csr(array: Floats, mask: Bools) -> sp.csr_array:
    """Return a sparse matrix that stores the observed entries of a dense array, zeros included."""
    rows, columns = np.nonzero(mask)
    return sp.csr_array((array[rows, columns], columns.astype(np.int32), pointers(mask.sum(axis=1))), shape=array.shape)


def listed_views(matrix: sp.csr_array) -> tuple[Stored, Stored]:
    """Return rows and columns of a sparse matrix whose unstored entries are missing."""
    return listed_view(matrix), listed_view(in_fewest_bytes(matrix).tocsc())


def in_fewest_bytes(matrix: sp.csr_array) -> sp.csr_array:
    """Return a sparse matrix in the smallest type that holds its values exactly, as for ratings: a smaller copy."""
    for dtype in (np.uint8, np.float32):
        values = np.empty(len(matrix.data), dtype)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            for start in range(0, len(values), ENTRIES_PER_BLOCK):
                block = slice(start, start + ENTRIES_PER_BLOCK)
                values[block] = matrix.data[block]
                if not np.array_equal(values[block], matrix.data[block]):
                    break
            else:
                return sp.csr_array((values, matrix.indices, matrix.indptr), shape=matrix.shape)
    return matrix


def without_nan(matrix: sp.csr_array) -> sp.csr_array:
    """Return a sparse matrix that does not store missing entries."""
    if not np.isnan(matrix.data.min(initial=0.0)):  # without a mask of all entries
        return matrix
    missing = np.isnan(matrix.data)
    lengths = np.diff(pointers(~missing)[matrix.indptr])
    return sp.csr_array((matrix.data[~missing], matrix.indices[~missing], pointers(lengths)), shape=matrix.shape)


def listed_view(compressed: sp.csr_array | sp.csc_array) -> Stored:
    """Return the rows of a CSR matrix, or the columns of a CSC one, whose unstored entries are missing."""
    n_rows, n_columns = compressed.shape if compressed.format == "csr" else compressed.shape[::-1]
    lists = compressed.indptr.astype(np.int64), unsigned(compressed.indices)
    return Stored(n_columns, *lists, np.require(compressed.data, requirements="W"), np.zeros(n_rows, bool))


def sparse_view(matrix: sp.csr_array) -> Stored:
    """Return the rows of a sparse matrix whose unstored entries are zeros, and missing ones those stored as NaN."""
    # A row that is mostly missing lists its observed entries, zeros included, as a dense one would: the sums over it
    # would cancel in the other form. That takes less memory than its missing entries do.
    missing = np.isnan(matrix.data)
    filled = sp.csr_array((np.where(missing, 0.0, matrix.data), matrix.indices, matrix.indptr), shape=matrix.shape)
    n_rows, n_columns = matrix.shape
    lists_missing = 2 * np.diff(pointers(missing)[matrix.indptr]) < n_columns
    row_of = row_numbers(matrix.indptr)
    listed_missing = missing & lists_missing[row_of]
    mostly_missing = matrix[~lists_missing].toarray()
    rows, columns = np.nonzero(~np.isnan(mostly_missing))
    values = np.concatenate([np.zeros(int(listed_missing.sum())), mostly_missing[rows, columns]])
    rows = np.concatenate([row_of[listed_missing], np.flatnonzero(~lists_missing)[rows]])
    columns = np.concatenate([matrix.indices[listed_missing], columns])
    order = np.argsort(rows, kind="stable")
    lists = pointers(np.bincount(rows, minlength=n_rows)), columns[order].astype(np.uint32), values[order]
    return Stored(n_columns, *lists, lists_missing, filled)


def unsigned(indices: Array) -> Positions:
    """Return column numbers as the kernels take them, without a copy if they have 32 bits."""
    return indices.view(np.uint32) if indices.itemsize == 4 else indices.astype(np.uint32)


def flat(rows: Any, columns: Any, shape: Shape) -> Ints:
    """Return positions as single numbers, counted row by row."""
    return np.asarray(rows, np.int64) * shape[1] + np.asarray(columns, np.int64)


def flat_of(matrix: sp.csr_array) -> Ints:
    """Return the positions that a sparse matrix stores as single numbers."""
    return flat(row_numbers(matrix.indptr), matrix.indices, matrix.shape)


def within_ranges(starts: Indices, lengths: Indices) -> Indices:
    """Return the numbers in several ranges, one after the other."""
    return np.repeat(starts - np.cumsum(lengths) + lengths, lengths) + np.arange(lengths.sum())


def places_in(numbers: Ints, wanted: Ints) -> Ints:
    """Return where each wanted number is among others, -1 if it is not."""
    if not len(numbers):
        return np.full(len(wanted), -1, np.int64)
    order = np.argsort(numbers, kind="stable")
    place = order[np.minimum(np.searchsorted(numbers[order], wanted), len(numbers) - 1)]
    return np.where(numbers[place] == wanted, place, -1).astype(np.int64)
