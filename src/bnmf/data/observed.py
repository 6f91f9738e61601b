"""The data: a matrix of which some entries were observed, in one form for every container it may come in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from bnmf.holes import Lists, groups_of, in_blocks, one_by_one, pointers
from bnmf.kernels.sweep import squared_residuals
from bnmf.workers import TILE

Floats = NDArray[np.float64]

# From this part observed on, a dense array is smaller than lists of positions, and BLAS does most of the work.
DENSE_FROM = 0.5
NO_MATRIX = np.zeros((0, 0))


@dataclass(frozen=True)
class View:
    """The data as rows: what the half-sweep of one factor reads.

    Attributes
    ----------
    matrix : ndarray, csr_array or None
        The data with zeros in the holes; None if every row lists what it observes.
    indptr, indices, values : ndarray
        Row i lists the positions `indices[indptr[i]:indptr[i + 1]]` and the data there (0 where missing).
    lists_missing : ndarray of bool
        Whether a row lists its missing positions rather than its observed ones: the fewer of the two.
    squares : ndarray
        Σ a² over the observed entries of each row; kept only where there is a matrix.
    is_part : bool
        Whether these are rows selected from a view. They are drawn as each would be alone, so they share no blocks.
    """

    matrix: Floats | sp.csr_array | None
    indptr: NDArray[np.int64]
    indices: NDArray[np.uint32]
    values: Floats
    lists_missing: NDArray[np.bool_]
    squares: Floats
    is_part: bool = False

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.lists_missing)

    @cached_property
    def ids(self) -> NDArray[np.uint64]:
        """What keys the random stream of each row: its number."""
        return np.arange(self.n_rows, dtype=np.uint64)

    @cached_property
    def _groups(self) -> NDArray[np.int64]:
        """A number for each row that lists holes, the same for the same holes, and -1 for other rows."""
        return groups_of(self.indptr, self.indices, np.flatnonzero(self.lists_missing))

    @cached_property
    def lists(self) -> Lists:
        """The lists as the half-sweep reads them, with blocks of holes that go together."""
        if self.is_part:
            return one_by_one(self.indptr, self.indices, self.values)
        return in_blocks(self.indptr, self.indices, self.values, self.lists_missing)

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """Rows in the order in which they are drawn: in each tile those with the same holes together, most first."""
        tiles = np.arange(self.n_rows) // TILE
        _, place, sizes = np.unique(np.stack([tiles, self._groups]), axis=1, return_inverse=True, return_counts=True)
        alike = np.where(self._groups >= 0, sizes[place], 1)
        return np.lexsort((self._groups, -alike, tiles)).astype(np.int64)

    @cached_property
    def repeats(self) -> NDArray[np.bool_]:
        """Whether a row has the same holes as the one that is drawn before it in the same tile."""
        groups = self._groups[self.order]
        repeats = np.zeros(self.n_rows, bool)
        repeats[1:] = (groups[1:] == groups[:-1]) & (groups[1:] >= 0)
        repeats[::TILE] = False
        return repeats

    @property
    def dense(self) -> Floats:
        """The matrix if it is a dense array, and an empty one otherwise."""
        return self.matrix if isinstance(self.matrix, np.ndarray) else NO_MATRIX

    def select(self, rows: NDArray[np.intp]) -> View:
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
            is_part=True,
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
            rows = np.repeat(np.arange(stop - start), np.diff(self.indptr[start : stop + 1]))
            listed = np.zeros(residuals.shape, bool)
            listed[rows, self.indices[self.indptr[start] : self.indptr[stop]]] = True
            residuals[listed == self.lists_missing[start:stop, None]] = 0.0
            return float(np.vdot(residuals, residuals))
        return squared_residuals(
            W, Z, self.dense, self.indptr, self.indices, self.values, self.lists_missing, start, stop
        )


@dataclass(frozen=True)
class ObservedMatrix:
    """A nonnegative matrix of which some entries were observed.

    Made by :meth:`from_data`. What is observed decides how it is stored, never the container it came in, so the
    same data gives the same draws as an array with NaN, as an array with a mask and as a sparse matrix.

    Attributes
    ----------
    shape : tuple of int
        Rows and columns.
    n_observed : int
        Number of observed entries.
    rows, columns : View
        The data and its transpose.
    row_names, column_names : pandas.Index or None
        The names of a DataFrame.

    Examples
    --------
    >>> import numpy as np
    >>> data = ObservedMatrix.from_data(np.array([[1.0, np.nan, 0.0], [2.0, 3.0, 4.0]]))
    >>> data.shape, data.n_observed
    ((2, 3), 5)
    """

    shape: tuple[int, int]
    n_observed: int
    rows: View
    columns: View
    row_names: pd.Index | None = None
    column_names: pd.Index | None = None

    @classmethod
    def from_data(
        cls, X: Any, observed: Any = None, *, unstored: str = "zero", negative: bool = False, empty: bool = False
    ) -> ObservedMatrix:
        """Take a matrix as it comes.

        Parameters
        ----------
        X : array-like, DataFrame or scipy.sparse matrix of shape (rows, columns)
            The data. NaN is missing; zero is not.
        observed : array-like of bool of shape (rows, columns), optional
            True where an entry was observed. What X holds elsewhere is not looked at.
        unstored : {"zero", "missing"}, default="zero"
            What an entry is that a sparse X does not store.
        negative : bool, default=False
            Allow negative entries: the Gaussian noise of the model can make them.
        empty : bool, default=False
            Allow a matrix with no observed entry at all.

        Returns
        -------
        ObservedMatrix
            The data, checked.
        """
        if unstored not in ("zero", "missing"):
            raise ValueError(f"unstored must be 'zero' or 'missing', got {unstored!r}")
        names = (X.index, X.columns) if isinstance(X, pd.DataFrame) else (None, None)
        if sp.issparse(X):
            if observed is not None:
                raise ValueError(
                    "observed is for a dense X: the missing entries of a sparse X are those that it stores as NaN, "
                    "and those that it does not store with unstored='missing'"
                )
            matrix = _canonical(X)
            if _is_dense(matrix, unstored):
                array, mask = _densified(matrix, unstored)
                _check_values(array[mask], negative)
                views = _dense_views(array, mask)
            else:
                views = _listed_views(matrix, negative) if unstored == "missing" else _sparse_views(matrix, negative)
        else:
            array = _numeric(X)
            mask = ~np.isnan(array)
            if observed is not None:
                mask &= _mask(observed, array.shape)
            _check_values(array[mask] if not mask.all() else array, negative)
            views = _dense_views(array, mask) if mask.mean() >= DENSE_FROM else _views_of_few(array, mask)
        rows, columns, n_observed = views
        if n_observed == 0 and not empty:
            raise ValueError("X has no observed entry at all: there is nothing to learn from")
        return cls((rows.n_rows, columns.n_rows), n_observed, rows, columns, *names)

    def named(self, rows: pd.Index | None, columns: pd.Index | None) -> ObservedMatrix:
        """Return the same data with names for its rows and columns."""
        return replace(self, row_names=rows, column_names=columns)

    @cached_property
    def sum_of_squares(self) -> float:
        """Σ a² over the observed entries."""
        if self.rows.matrix is None:
            return float(np.vdot(self.rows.values, self.rows.values))
        return float(self.rows.squares.sum())

    def observed_entries(self) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
        """Return rows, columns and values of the observed entries, row by row (not for sparse data with zeros)."""
        if isinstance(self.rows.matrix, sp.csr_array):
            raise ValueError("the observed entries of sparse data whose unstored entries are zeros are not listed")
        if self.rows.matrix is None:
            lengths = np.diff(self.rows.indptr)
            rows = np.repeat(np.arange(self.shape[0]), lengths)
            return rows, self.rows.indices.astype(np.int64), self.rows.values
        rows, columns = np.nonzero(self.mask())
        return rows, columns, self.rows.matrix[rows, columns]

    def mask(self, start: int = 0, stop: int | None = None) -> NDArray[np.bool_]:
        """Return the dense mask of the observed entries, of all rows or of those from `start` to `stop`."""
        stop = self.shape[0] if stop is None else stop
        view = self.rows
        mask = np.repeat(view.lists_missing[start:stop, None], self.shape[1], axis=1)
        rows = np.repeat(np.arange(stop - start), np.diff(view.indptr[start : stop + 1]))
        listed = view.indices[view.indptr[start] : view.indptr[stop]]
        mask[rows, listed] = ~mask[rows, listed]
        return mask


def _numeric(X: Any) -> Floats:
    """Return a float array of two dimensions, or say what is wrong with X."""
    if isinstance(X, pd.DataFrame):
        types = pd.api.types
        wrong = [
            str(name)
            for name, kind in X.dtypes.items()
            if not types.is_numeric_dtype(kind) or types.is_complex_dtype(kind)
        ]
        if wrong:
            raise TypeError(f"X must be numeric, but these columns are not: {', '.join(wrong[:5])}")
        array = X.to_numpy(dtype=np.float64, na_value=np.nan)
    elif isinstance(X, np.ma.MaskedArray) and X.dtype.kind in "fiub":
        array = np.ma.filled(X.astype(np.float64), np.nan)
    else:
        array = np.asarray(X)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"X must hold real numbers, got an array of dtype {array.dtype}")
    if array.ndim != 2:
        raise ValueError(f"X must be a matrix of two dimensions, got {array.ndim} (shape {array.shape})")
    if array.size == 0:
        raise ValueError(f"X must not be empty, got shape {array.shape}")
    return array.astype(np.float64, copy=False)


def _mask(observed: Any, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    mask = np.asarray(observed)
    if mask.shape != shape:
        raise ValueError(f"observed must have the shape of X, {shape}, got {mask.shape}")
    if mask.dtype != bool:
        if mask.dtype.kind not in "iuf" or not np.isin(mask, (0, 1)).all():
            raise ValueError("observed must hold booleans (or zeros and ones), True where an entry was observed")
        mask = mask.astype(bool)
    return mask


def _check_values(values: Floats, negative: bool) -> None:
    """Refuse infinite and, unless allowed, negative observed values."""
    if values.size == 0:
        return
    if not np.isfinite(values).all():
        raise ValueError(f"X must be finite where it is observed, got {np.isinf(values).sum()} infinite entries")
    lowest = values.min()
    if lowest < 0 and not negative:
        raise ValueError(
            f"X must be nonnegative, got {(values < 0).sum()} negative entries, the lowest {lowest:g} (noise around "
            "nonnegative values can be negative: ObservedMatrix.from_data(X, negative=True) allows it)"
        )


def _canonical(X: Any) -> sp.csr_array:
    """Return X as float CSR with sorted indices and no duplicates, without a copy where it is that already."""
    if X.ndim != 2:
        raise ValueError(f"X must be a matrix of two dimensions, got {X.ndim}")
    if 0 in X.shape:
        raise ValueError(f"X must not be empty, got shape {X.shape}")
    if X.dtype.kind not in "fiub":
        raise TypeError(f"X must hold real numbers, got a sparse matrix of dtype {X.dtype}")
    matrix = sp.csr_array(X, dtype=np.float64)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix


def _is_dense(matrix: sp.csr_array, unstored: str) -> bool:
    stored = matrix.nnz
    if unstored == "missing":
        stored -= int(np.isnan(matrix.data).sum())
    return stored >= DENSE_FROM * matrix.shape[0] * matrix.shape[1]


def _densified(matrix: sp.csr_array, unstored: str) -> tuple[Floats, NDArray[np.bool_]]:
    array = np.full(matrix.shape, 0.0 if unstored == "zero" else np.nan)
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    array[rows, matrix.indices] = matrix.data
    return array, ~np.isnan(array)


def _positions(mask: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.intp], NDArray[np.intp]]:
    """Return row pointers, rows and columns of the True entries."""
    rows, columns = np.nonzero(mask)
    return pointers(mask.sum(axis=1)), rows, columns


def _dense_views(array: Floats, mask: NDArray[np.bool_]) -> tuple[View, View, int]:
    """Keep the matrix dense, and of each row the positions of which there are fewer."""
    filled = np.where(mask, array, 0.0)

    def view(filled: Floats, mask: NDArray[np.bool_]) -> View:
        filled = np.ascontiguousarray(filled)
        lists_missing = 2 * mask.sum(axis=1) > mask.shape[1]
        indptr, rows, columns = _positions(mask != lists_missing[:, None])
        squares = np.einsum("ij,ij->i", filled, filled)
        return View(filled, indptr, columns.astype(np.uint32), filled[rows, columns], lists_missing, squares)

    return view(filled, mask), view(filled.T, mask.T), int(mask.sum())


def _views_of_few(array: Floats, mask: NDArray[np.bool_]) -> tuple[View, View, int]:
    """List the few observed entries of a dense array."""
    indptr, rows, columns = _positions(mask)
    matrix = sp.csr_array((array[rows, columns], columns.astype(np.int32), indptr), shape=array.shape)
    return _listed_views(matrix, negative=True)


def _listed_views(matrix: sp.csr_array, negative: bool) -> tuple[View, View, int]:
    """List the stored entries of a sparse matrix; all others are missing."""
    holes = np.isnan(matrix.data)
    if holes.any():
        lengths = np.diff(pointers(~holes)[matrix.indptr])
        matrix = sp.csr_array((matrix.data[~holes], matrix.indices[~holes], pointers(lengths)), shape=matrix.shape)
    _check_values(matrix.data, negative)

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


def _sparse_views(matrix: sp.csr_array, negative: bool) -> tuple[View, View, int]:
    """Keep a sparse matrix whose unstored entries are zeros, and list the holes that are stored as NaN.

    A row that is mostly holes lists what it observes instead, zeros included, as a dense one would: the sums over it
    would cancel in the other form. That takes less memory than its holes do.
    """
    holes = np.isnan(matrix.data)
    _check_values(matrix.data[~holes], negative)

    def view(matrix: sp.csr_array) -> View:
        holes = np.isnan(matrix.data)
        filled = sp.csr_array((np.where(holes, 0.0, matrix.data), matrix.indices, matrix.indptr), shape=matrix.shape)
        n_rows, n_columns = matrix.shape
        lists_missing = 2 * np.diff(pointers(holes)[matrix.indptr]) < n_columns
        row_of = np.repeat(np.arange(n_rows), np.diff(matrix.indptr))
        missing = holes & lists_missing[row_of]
        of_holes = matrix[~lists_missing].toarray()
        rows, columns = np.nonzero(~np.isnan(of_holes))
        values = np.concatenate([np.zeros(int(missing.sum())), of_holes[rows, columns]])
        rows = np.concatenate([row_of[missing], np.flatnonzero(~lists_missing)[rows]])
        columns = np.concatenate([matrix.indices[missing], columns])
        order = np.argsort(rows, kind="stable")
        return View(
            filled,
            pointers(np.bincount(rows, minlength=n_rows)),
            columns[order].astype(np.uint32),
            values[order],
            lists_missing,
            np.asarray(filled.multiply(filled).sum(axis=1)),
        )

    n_observed = matrix.shape[0] * matrix.shape[1] - int(holes.sum())
    return view(matrix), view(matrix.T.tocsr()), n_observed


def unsigned(indices: NDArray[Any]) -> NDArray[np.uint32]:
    """Return positions as the kernels take them, without a copy if they have 32 bits.

    What is read-only is copied, here and for the values: a kernel would be compiled once more for it.
    """
    indices = np.require(indices, requirements="W")
    return indices.view(np.uint32) if indices.itemsize == 4 else indices.astype(np.uint32)
