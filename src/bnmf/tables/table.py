"""Table: a matrix with names, and how to write it back to the kind of file that it came from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
import pandas as pd
import scipy.sparse as sp

from bnmf.data.observed import ObservedMatrix
from bnmf.utils.typing import Bools, Floats, Indices


class TableError(ValueError):
    """A file does not hold a table of numbers; the message says where and why."""


class Fills(NamedTuple):
    """Numbers for some of the missing entries.

    Attributes
    ----------
    rows, columns : ndarray of int of shape (n,)
        Positions in the matrix.
    values : ndarray of shape (n,)
        The numbers.
    """

    rows: Indices
    columns: Indices
    values: Floats


class Layout(Protocol):
    """How a table was stored."""

    @property
    def description(self) -> str:
        """The kind of file in a few words."""

    @property
    def endings(self) -> tuple[str, ...]:
        """How names of such files end."""

    def render(self, table: Table, fills: Fills) -> bytes:
        """Return the content of such a file with numbers in place of some missing entries and all else as it was."""


@dataclass(frozen=True)
class Table:
    """A matrix with names.

    Attributes
    ----------
    values : ndarray or csr_array of shape (rows, columns)
        The numbers; NaN is missing.
    layout : Layout
        The kind of file that it came from.
    row_names, column_names : list of str, optional
        Names, if the file has them.
    unstored : {"zero", "missing"}
        Meaning of the entries that sparse values do not store.
    asked : tuple of ndarray, optional
        Positions of the entries to fill, if these are not all missing ones.
    notes : list of str
        What a user may want to know about how the file was read.
    lower, upper : ndarray of shape (rows, columns), optional
        Limits of entries that are only known to lie between them, NaN for others; of a dense table only.
    """

    values: Any
    layout: Layout
    row_names: list[str] | None = None
    column_names: list[str] | None = None
    unstored: str = "zero"
    asked: tuple[Indices, Indices] | None = None
    notes: list[str] = field(default_factory=list)
    lower: Floats | None = None
    upper: Floats | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.values.shape

    def observed(self) -> ObservedMatrix:
        """Return the data in the form of the sampler, with names."""
        options: dict[str, Any] = {"unstored": self.unstored, "negative": True, "empty": True}
        data = ObservedMatrix.from_data(self.values, **self.limits, **options)
        return data.named(self.row_index, self.column_index)

    @property
    def limits(self) -> dict[str, Any]:
        """The limits, as `fit` takes them."""
        return {"lower": self.lower, "upper": self.upper}

    @property
    def is_limited(self) -> Bools:
        """Which entries have a limit."""
        if self.lower is None or self.upper is None:
            return np.zeros(self.shape, bool)
        return np.isfinite(self.lower) | np.isfinite(self.upper)

    def limited(
        self,
        lower: Mapping[str, float],
        upper: Mapping[str, float],
        capped: Mapping[str, float],
        floored: Mapping[str, float],
    ) -> Table:
        """Return the table with limits of columns, by their names, or numbers from 1 on; "" stands for all columns.

        Parameters
        ----------
        lower, upper : mapping of str to float
            Where missing entries lie.
        capped, floored : mapping of str to float
            Values from which on, or up to which, an entry was cut.

        Returns
        -------
        Table
            With limits in addition to those of its cells.
        """
        if not (lower or upper or capped or floored):
            return self
        if isinstance(self.values, sp.csr_array):
            raise TableError("limits of columns are for dense tables, and this one is sparse")
        low, high = (np.full(self.shape, np.nan) if x is None else x.copy() for x in (self.lower, self.upper))
        missing = np.isnan(self.values)
        for given, side in ((lower, low), (upper, high)):
            for name, value in given.items():
                at = self._columns(name)
                side[:, at] = np.where(missing[:, at] & ~np.isfinite(side[:, at]), value, side[:, at])
        for given, side, sign in ((capped, low, 1.0), (floored, high, -1.0)):
            for name, value in given.items():
                at = self._columns(name)
                cut = sign * self.values[:, at] >= sign * value
                if not cut.any():
                    kind = "capped" if side is low else "floored"
                    raise TableError(f"no entry is at {kind} {value:g}{f' in column {name!r}' if name else ''}")
                side[:, at] = np.where(cut, value, side[:, at])
        return replace(self, lower=low, upper=high)

    def _columns(self, name: str) -> slice | list[int]:
        """Return the columns of a name, or number if there are no names."""
        if not name:
            return slice(None)
        names = self.column_names or [str(number) for number in range(1, self.shape[1] + 1)]
        found = [place for place, other in enumerate(names) if other == name]
        if not found:
            raise TableError(f"there is no column {name!r}")
        return found

    @property
    def row_index(self) -> pd.Index | None:
        """Names of the rows as pandas has them."""
        return None if self.row_names is None else pd.Index(self.row_names)

    @property
    def column_index(self) -> pd.Index | None:
        """Names of the columns as pandas has them."""
        return None if self.column_names is None else pd.Index(self.column_names)

    @property
    def has_implicit_zeros(self) -> bool:
        """Whether values are sparse, and the entries that they do not store are zeros."""
        return isinstance(self.values, sp.csr_array) and self.unstored == "zero"

    def counts(self) -> tuple[Indices, Indices]:
        """Return the number of observed entries of each row and of each column."""
        if not isinstance(self.values, sp.csr_array):
            seen = ~np.isnan(self.values)
            return seen.sum(axis=1), seen.sum(axis=0)
        coo = self.values.tocoo()
        is_missing = np.isnan(coo.data)
        listed = is_missing if self.has_implicit_zeros else ~is_missing
        counts = [np.bincount(at[listed], minlength=n) for at, n in zip((coo.row, coo.col), self.shape, strict=True)]
        if self.has_implicit_zeros:
            return self.shape[1] - counts[0], self.shape[0] - counts[1]
        return counts[0], counts[1]

    @property
    def n_observed(self) -> int:
        """Number of observed entries."""
        return int(self.counts()[0].sum())

    def to_fill(self) -> tuple[Indices, Indices]:
        """Return rows and columns of the entries that imputation fills."""
        if self.asked is not None:
            return self.asked
        if isinstance(self.values, sp.csr_array):
            return self.observed().missing_entries()
        rows, columns = np.nonzero(np.isnan(self.values))
        return rows, columns

    def numbers(self) -> Floats:
        """Return the numbers that the file holds, without NaN."""
        stored = self.values.data if isinstance(self.values, sp.csr_array) else self.values
        return stored[~np.isnan(stored)]

    def render(self, fills: Fills) -> bytes:
        """Return the content of a file of the same kind with numbers in place of some missing entries.

        Parameters
        ----------
        fills : Fills
            Positions and numbers.

        Returns
        -------
        bytes
            The file. What was observed is unchanged.
        """
        return self.layout.render(self, fills)


def check_numbers(values: Any) -> None:
    """Raise an error that names the position of the first infinite number of a dense or sparse matrix."""
    stored = values.data if isinstance(values, sp.csr_array) else values
    if np.isinf(stored).any():
        matrix = values.tocoo() if isinstance(values, sp.csr_array) else None
        where = np.argwhere(np.isinf(stored))[0]
        row, column = where if matrix is None else (matrix.row[where[0]], matrix.col[where[0]])
        raise TableError(f"the entry in row {row + 1}, column {column + 1} is infinite")


def repeated(names: Sequence[str] | None) -> list[str]:
    """Return the names that occur more than once.

    Examples
    --------
    >>> repeated(["a", "b", "a"])
    ['a']
    """
    return [name for name, count in Counter(names or []).items() if count > 1]
