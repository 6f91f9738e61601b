"""ObservedMatrix: a matrix of which some entries were observed, in one form for every container."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp

from bnmf.data import views
from bnmf.data.containers import (
    as_csr,
    as_dense,
    as_floats,
    as_mask,
    check_values,
    refuse_padding,
    row_numbers,
)
from bnmf.data.latent import Filled
from bnmf.data.limits import Limits, with_limits, with_sparse_limits
from bnmf.data.views import Stored
from bnmf.kernels.compiled import ROWS_PER_TILE
from bnmf.utils.arguments import is_pandas
from bnmf.utils.typing import Array, Bools, Floats, Indices

if TYPE_CHECKING:
    import pandas as pd

# From this fraction of observed entries on, a dense array is smaller than lists of positions.
DENSE_FRACTION = 0.5


@dataclass(frozen=True)
class ObservedMatrix:
    """A matrix of which some entries were observed, created by :meth:`from_data`."""

    # How it is stored depends on what was observed, never on the container, so the same data give the same draws as an
    # array with NaN, as an array with a mask and as a sparse matrix. Where an entry with limits needs one number, the
    # middle of these or the finite one stands for it.

    shape: tuple[int, int]
    n_observed: int
    rows: Stored
    columns: Stored  # rows of the transposed data
    row_names: pd.Index | None = None
    column_names: pd.Index | None = None
    nonnegative: bool = True  # whether no observed entry is negative
    limits: Limits | None = None  # entries that are only known to lie between two limits

    in_memory: ClassVar[bool] = True
    """Whether all entries are in this process, so that they may be listed."""

    @classmethod
    def from_data(
        cls,
        X: Any,
        observed: Any = None,
        *,
        lower: Any = None,
        upper: Any = None,
        names: Any = None,
        unstored: str = "zero",
        negative: bool = False,
        empty: bool = False,
    ) -> ObservedMatrix:
        """Take a matrix in any container, with arguments as in :meth:`bnmf.BayesianNMF.fit`."""
        # Limits may be given by `names` of the columns, those of a DataFrame by default. With `negative` entries may be
        # negative, which the Gaussian noise of the model can produce, and with `empty` all may be missing.
        if not isinstance(unstored, str) or unstored not in ("zero", "missing"):
            raise ValueError(f"unstored must be 'zero' or 'missing', got {unstored!r}")
        row_names, column_names = (X.index, X.columns) if is_pandas(X, "DataFrame") else (None, None)
        if sp.issparse(X):
            if observed is not None:
                raise ValueError(
                    "observed is for a dense X: the missing entries of a sparse X are those that it stores as NaN, "
                    "and those that it does not store with unstored='missing'"
                )
            if unstored == "missing":
                refuse_padding(X)
            matrix, limits = as_csr(X), None
            if lower is not None or upper is not None:
                matrix, limits = with_sparse_limits(matrix, lower, upper, negative=negative)
            lowest = check_values(matrix.data, negative=negative)
            rows, columns = _views_of_sparse(matrix, unstored)
        else:
            array = as_floats(X)
            mask, hidden, limits = ~np.isnan(array), None, None
            if observed is not None:
                hidden = ~as_mask(observed, array.shape)
                mask &= ~hidden
            if lower is not None or upper is not None:
                names = column_names if names is None else names
                array, mask, limits = with_limits(array, mask, hidden, lower, upper, names, negative=negative)
            lowest = check_values(array if observed is None else array[mask], negative=negative)
            rows, columns = _views_of_dense(array, mask)
        n_observed = int(rows.n_observed.sum())
        if n_observed == 0 and not empty:
            raise ValueError("X has no observed entry at all: there is nothing to learn from")
        shape = rows.n_rows, columns.n_rows
        return cls(shape, n_observed, rows, columns, row_names, column_names, lowest >= 0.0, limits)

    # --- entries that differ in how much they count

    def listed(self) -> ObservedMatrix:
        """Return the data with lists of what was observed, the only form in which entries can differ in weight."""
        self.check_listable()
        if self.rows.form == "listed":
            return self
        rows, columns = views.listed_views(views.observed_csr(self._stored.dense(), self.mask()))
        return replace(self, rows=rows, columns=columns)

    def check_listable(self) -> None:
        """Raise an error if there is too much to list."""
        if self.has_implicit_zeros:
            raise ValueError(
                "noise that differs between entries needs a list of all that was observed, and implicit zeros of a "
                "sparse X are too many: pass a dense X, or unstored='missing'"
            )

    @cached_property
    def listed_rows(self) -> Indices:
        """Row of each observed entry, in the order in which rows list them."""
        return self._stored.listed_rows

    @cached_property
    def column_order(self) -> Indices:
        """Where each entry in the order in which columns list them is in the order of the rows."""
        return np.argsort(self.rows.indices, kind="stable")

    def filled(self, has_outliers: bool) -> Any:
        """Return a copy that can hold latent values of limited entries, and of all if they may have gross errors."""
        options = {"has_outliers": has_outliers, "is_dense": self.is_mostly_observed}
        return Filled(self.limits, self._stored, self.columns, **options)

    @property
    def is_mostly_observed(self) -> bool:
        """Whether more than half of the entries were observed."""
        return 2 * self.n_observed > self.shape[0] * self.shape[1]

    def of_rows(self, function: Callable[[Stored, Limits | None], Any]) -> Any:
        """Return the results of a function of stored rows and their limits, one for each row, where the rows are."""
        return function(self._stored, self.limits)

    def every(self, step: int) -> tuple[Indices, Floats, Floats, Floats]:
        """Return columns, values and limits of every so many-th observed entry, row by row; see `every_entry`."""
        return every_entry(self._stored, self.limits, 0, step)

    def limits_of(self, rows: slice) -> Limits | None:
        """Return the limits of a block of rows, numbered from its first row."""
        return None if self.limits is None else self.limits.of_rows(np.arange(rows.start, rows.stop))

    # --- columns in other units

    def shifted(self, offset: Floats) -> ObservedMatrix:
        """Return the data with a number subtracted from each column; new rows may then have negative entries."""
        if self.rows.form == "listed":
            matrix = self.rows.csr()
            matrix.data = self.rows.values - offset[self.rows.indices]
            rows, columns = views.listed_views(matrix)
        else:
            rows, columns = views.dense_views(self._stored.dense() - offset, self.mask())
        limits = None if self.limits is None else self.limits.shifted(offset)
        return replace(self, rows=rows, columns=columns, nonnegative=False, limits=limits)

    # --- which entries were observed

    @property
    def _stored(self) -> Stored:
        """The rows in this process, for what would bring the whole matrix to one place."""
        if not isinstance(self.rows, Stored):
            raise ValueError(
                "this needs all entries at once, and they may not fit into memory: go through blocks of rows "
                "(dense_rows), or ask posterior_.mean(rows, columns) for the entries that you need"
            )
        return self.rows

    @property
    def has_implicit_zeros(self) -> bool:
        """Whether this is a sparse matrix whose unstored entries are observed zeros."""
        return self.rows.form == "sparse"

    def observed_entries(self) -> tuple[Indices, Indices, Floats]:
        """Return rows, columns and values of the observed entries, row by row (not with implicit zeros)."""
        if self.has_implicit_zeros:
            raise ValueError("the observed entries of sparse data with implicit zeros are too many to list")
        return self._stored.entries()

    def stored_entries(self) -> tuple[Indices, Indices, Floats]:
        """Return rows, columns and values of what sparse data with implicit zeros store, NaN for missing entries."""
        view, stored = self._stored, self._stored.csr()
        rows = row_numbers(stored.indptr)
        is_listed = np.isin(self.flat(rows, stored.indices), self.flat(view.listed_rows, view.indices))
        values = np.where(is_listed == view.lists_missing[rows], np.nan, stored.data)
        return rows, stored.indices.astype(np.intp), values

    def missing_entries(self) -> tuple[Indices, Indices]:
        """Return rows and columns of the missing entries, row by row."""
        if self.has_implicit_zeros:
            rows, columns, values = self.stored_entries()
            missing = np.isnan(values)
            return rows[missing], columns[missing]
        rows, columns = np.nonzero(~self.mask())
        return rows, columns

    def mask(self) -> Bools:
        """Return the dense mask of the observed entries."""
        return self._stored.mask()

    def blocks(self) -> Iterator[tuple[slice, Floats]]:
        """Yield blocks of rows as dense arrays with NaN for missing entries, each with its slice."""
        for start, stop in self.tiles():
            yield slice(start, stop), self.dense_rows(np.arange(start, stop))

    def released(self) -> AbstractContextManager[None]:
        """Return a context at whose end everything is forgotten that is held elsewhere: here nothing."""
        return nullcontext()

    def dense_rows(self, rows: Indices) -> Floats:
        """Return some rows as a dense array with NaN for missing entries."""
        return self._stored.select(rows).dense_with_nan()

    def without(self, rows: Indices, columns: Indices) -> ObservedMatrix:
        """Return the data with some of the observed entries missing, given paired positions."""
        hidden, unstored = self.flat(rows, columns), "zero" if self.has_implicit_zeros else "missing"
        at, to, values = self.stored_entries() if self.has_implicit_zeros else self.observed_entries()
        kept = ~np.isin(self.flat(at, to), hidden)
        at, to, values = at[kept], to[kept], values[kept]
        if self.has_implicit_zeros:
            at, to = np.concatenate([at, rows]), np.concatenate([to, columns])
            values = np.concatenate([values, np.full(len(rows), np.nan)])
        rest = sp.coo_array((values, (at, to)), shape=self.shape).tocsr()
        found = ObservedMatrix.from_data(rest, unstored=unstored, negative=not self.nonnegative, empty=True)
        limits = None if self.limits is None else self.limits.where(~np.isin(self.limits.flat, hidden))
        return replace(found, row_names=self.row_names, column_names=self.column_names, limits=limits)

    def limits_at(self, rows: Array, columns: Array) -> tuple[Floats | None, Floats | None]:
        """Return limits at paired positions, NaN where an entry is exact; None if the data have no limits."""
        return (None, None) if self.limits is None else self.limits.at(rows, columns)

    def flat(self, rows: Any, columns: Any) -> Indices:
        """Return positions as single numbers, counted row by row."""
        return views.flat(rows, columns, self.shape)

    def tiles(self) -> list[tuple[int, int]]:
        """Return where each tile of rows starts and stops."""
        starts = range(0, self.shape[0], ROWS_PER_TILE)
        return [(start, min(start + ROWS_PER_TILE, self.shape[0])) for start in starts]


def every_entry(view: Stored, limits: Limits | None, first: int, step: int) -> tuple[Indices, Floats, Floats, Floats]:
    """Return columns, values and limits, NaN where there are none, of every so many-th entry from the first on."""
    rows, columns, values = (part[first::step] for part in view.entries())
    nothing = np.full(len(values), np.nan)
    return columns, values, *((nothing, nothing) if limits is None else limits.at(rows, columns))


def _views_of_dense(array: Floats, mask: Bools) -> tuple[Stored, Stored]:
    if mask.mean() >= DENSE_FRACTION:
        return views.dense_views(array, mask)
    return views.listed_views(views.observed_csr(array, mask))


def _views_of_sparse(matrix: sp.csr_array, unstored: str) -> tuple[Stored, Stored]:
    matrix = views.without_nan(matrix) if unstored == "missing" else matrix
    if matrix.nnz >= DENSE_FRACTION * matrix.shape[0] * matrix.shape[1]:
        array = as_dense(matrix, unstored)
        return views.dense_views(array, ~np.isnan(array))
    if unstored == "missing":
        return views.listed_views(matrix)
    return views.sparse_view(matrix), views.sparse_view(matrix.T.tocsr())
