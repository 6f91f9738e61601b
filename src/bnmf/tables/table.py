"""Table: numbers, limits and words with names, and how to write it back to the kind of file that it came from."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp

from bnmf.data.containers import as_dense
from bnmf.data.limits import Limits
from bnmf.data.observed import ObservedMatrix
from bnmf.utils import memory
from bnmf.utils.text import counted
from bnmf.utils.typing import Bools, Floats, Indices

if TYPE_CHECKING:
    from bnmf.estimator import BayesianNMF

# Names of columns that an error lists.
N_LISTED_COLUMNS = 5
NO_LIMITS = Limits((0, 0), *(np.empty(0, np.intp),) * 2, *(np.empty(0),) * 2)


class TableError(ValueError):
    """A file does not hold a table of numbers; the message says where and why."""


class OptionError(TableError):
    """A file is not one that an option is for, or has no column of the name that the option gives."""


class Fills(NamedTuple):
    """Values (n,) for some of the missing entries, numbers or words, with their positions."""

    rows: Indices
    columns: Indices
    values: Any

    def entries(self) -> Iterator[tuple[int, int, Any]]:
        """Yield row, column and value of each."""
        return zip(*(part.tolist() for part in self), strict=True)


@dataclass(frozen=True)
class Layout:
    """How a table was stored: the kind of file in a few words, and how names of such files end."""

    description: str
    endings: tuple[str, ...]

    def render(self, fills: Fills) -> bytes:
        """Return the content of such a file with values in place of some missing entries and all else as it was."""
        raise NotImplementedError


@dataclass(frozen=True)
class Table:
    """A matrix with names.

    Attributes
    ----------
    values : ndarray or csr_array of shape (rows, columns)
        The numbers; NaN is missing, a limit or a word.
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
    limits : Limits
        Entries that are only known to lie between limits, if there are some. Sparse values store them.
    words : dict of int to Series
        Columns that hold words, dates or anything else than numbers, by their positions.
    corner : str, optional
        Name of the column of row names.
    """

    values: Any
    layout: Layout
    row_names: list[str] | None = None
    column_names: list[str] | None = None
    unstored: str = "zero"
    asked: tuple[Indices, Indices] | None = None
    notes: list[str] = field(default_factory=list)
    limits: Limits = NO_LIMITS
    words: dict[int, pd.Series] = field(default_factory=dict)
    corner: str | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.values.shape

    @property
    def is_sparse(self) -> bool:
        """Whether the values are a sparse matrix."""
        return isinstance(self.values, sp.csr_array)

    @property
    def has_implicit_zeros(self) -> bool:
        """Whether values are sparse, and the entries that they do not store are zeros."""
        return self.is_sparse and self.unstored == "zero"

    def observed(self) -> ObservedMatrix:
        """Return the data in the form of the sampler, with names."""
        options: dict[str, Any] = {"unstored": self.unstored, "negative": True, "empty": True}
        data = ObservedMatrix.from_data(self.values, lower=self.lower, upper=self.upper, **options)
        return replace(data, row_names=self.row_index, column_names=self.column_index)

    def fit(self, model: BayesianNMF) -> BayesianNMF:
        """Fit a model to the table, with its names and limits."""
        from bnmf.inputs import Named

        X = Named(self.values, self.row_index, self.column_index)
        return model.set_params(unstored=self.unstored).fit(X, lower=self.lower, upper=self.upper)

    @property
    def lower(self) -> Any:
        """Lower limits as `fit` takes them: an array with NaN for other entries, or a sparse matrix; None without."""
        return self._side(self.limits.lower)

    @property
    def upper(self) -> Any:
        """Upper limits as `fit` takes them."""
        return self._side(self.limits.upper)

    def _side(self, values: Floats) -> Any:
        at = self.limits.rows, self.limits.columns
        if not len(values):
            return None
        if self.is_sparse:
            return sp.coo_array((values, at), shape=self.shape).tocsr()
        side = np.full(self.shape, np.nan)
        side[at] = values
        return side

    def limited(
        self,
        lower: Mapping[str, float],
        upper: Mapping[str, float],
        capped: Mapping[str, float],
        floored: Mapping[str, float],
    ) -> Table:
        """Return the table with more limits of columns, by their names, or numbers from 1 on; "" is all columns.

        `lower` and `upper` say where missing entries lie; entries from `capped` on, or up to `floored`, were cut there.
        """
        if not (lower or upper or capped or floored):
            return self
        if self.is_sparse and (lower or upper):
            raise OptionError("--lower and --upper are for dense tables, and this one is sparse")
        coo = self.values.tocoo() if self.is_sparse else None
        rows, columns = np.indices(self.shape).reshape(2, -1) if coo is None else (coo.row, coo.col)
        stored = self.values.ravel() if coo is None else coo.data
        low, high = self.limits.at(rows, columns)
        notes = list(self.notes)
        for given, side in ((lower, low), (upper, high)):
            for name, value in given.items():
                side[self._in_column(name, columns) & np.isnan(stored) & ~np.isfinite(side)] = value
        sides = (
            (capped, low, 1.0, "--capped", "large", "above", "more"),
            (floored, high, -1.0, "--floored", "small", "below", "less"),
        )
        for given, side, sign, option, size, beyond, further in sides:
            for name, value in given.items():
                cut = self._in_column(name, columns) & (sign * stored >= sign * value)
                where = f" of column {name!r}" if name else ""
                if not cut.any():
                    raise OptionError(f"{option} {value:g}: no entry{where} is that {size}")
                side[cut] = value
                n_beyond = int((stored[cut] != value).sum())
                if n_beyond:
                    entries = counted(n_beyond, "entry")
                    notes.append(f"{entries}{where} {beyond} {value:g}, taken as {value:g} or {further}")
        return replace(self, notes=notes).with_limits(rows, columns, low, high)

    def with_limits(self, rows: Indices, columns: Indices, low: Floats, high: Floats) -> Table:
        """Return the table with limits at positions; NaN and infinity stand for no limit."""
        some = np.isfinite(low) | np.isfinite(high)
        order = np.lexsort((columns[some], rows[some]))
        low, high = np.where(np.isnan(low), -np.inf, low)[some], np.where(np.isnan(high), np.inf, high)[some]
        rows, columns = rows[some][order], columns[some][order]
        return replace(self, limits=Limits(self.shape, rows, columns, low[order], high[order]))

    def _in_column(self, name: str, columns: Indices) -> Bools:
        """Return which positions are in a column of numbers, or in any for ""."""
        found = self.places([name]) if name else range(self.shape[1])
        if name and all(place in self.words for place in found):
            raise OptionError(f"limits are for columns of numbers, and {name!r} holds words")
        return np.isin(columns, [place for place in found if place not in self.words])

    # --- parts

    def places(self, names: Sequence[str]) -> list[int]:
        """Return the positions of columns by their names, or by numbers from 1 on."""
        labels = self.column_labels
        unknown = [name for name in names if name not in labels and name != self.corner]
        if unknown:
            raise OptionError(f"there is no column {unknown[0]!r}")
        return [place for place, label in enumerate(labels) if label in names]

    def without(self, names: Sequence[str]) -> Table:
        """Return the table without some columns, which :meth:`render` writes back as they are."""
        left = self.places(names)
        if not left:
            return self
        kept = np.setdiff1d(np.arange(self.shape[1]), left)
        if not len(kept):
            raise OptionError("no column is left")
        place = np.full(self.shape[1], -1)
        place[kept] = np.arange(len(kept))
        part = replace(
            self,
            values=self.values[:, kept],
            layout=Part(self.layout.description, self.layout.endings, self, kept),
            column_names=self.column_names and [self.column_names[at] for at in kept],
            words={int(place[at]): column for at, column in self.words.items() if place[at] >= 0},
        )
        if self.asked is not None:
            rows, columns = (side[place[self.asked[1]] >= 0] for side in self.asked)
            part = replace(part, asked=(rows, place[columns]))
        of, here = self.limits, place[self.limits.columns] >= 0
        return part.with_limits(of.rows[here], place[of.columns[here]], of.lower[here], of.upper[here])

    def refuse_words(self) -> None:
        """Raise an error that names the columns of words, if there are some."""
        if not self.words:
            return
        names = [self.column_labels[at] for at in self.words]
        shown, more = names[:N_LISTED_COLUMNS], ", ..." * (len(names) > N_LISTED_COLUMNS)
        columns, them = f"column {names[0]!r} holds", "it"
        if len(names) > 1:
            columns, them = f"columns {str(shown)[1:-1]}{more} hold", "them"
        example = next(iter(next(iter(self.words.values())).dropna().astype(str)), "")
        ignored = " ".join(f"--ignore {shlex.quote(name)}" for name in shown)
        raise TableError(
            f"{columns} text, such as {example!r}: leave {them} out with {ignored}. Only bnmf impute without --fit "
            "takes text, as categories"
        )

    def dense(self) -> Table:
        """Return the table with dense values, if these fit into memory."""
        if not self.is_sparse:
            return self
        n_rows, n_columns = self.shape
        memory.require(8 * n_rows * n_columns, f"a dense table of {n_rows:,} x {n_columns:,}", "take a part of it")
        return replace(self, values=as_dense(self.values, self.unstored))

    def frame(self) -> pd.DataFrame:
        """Return a dense table as pandas has it."""
        columns = {at: self.words.get(at, pd.Series(self.values[:, at])) for at in range(self.shape[1])}
        frame = pd.DataFrame({at: column.array for at, column in columns.items()}, self.row_index)
        return frame.set_axis(pd.Index(self.column_labels), axis=1)

    # --- what it holds

    @property
    def column_labels(self) -> list[str]:
        """Names of the columns, or their numbers from 1 on."""
        return self.column_names or [str(number) for number in range(1, self.shape[1] + 1)]

    @property
    def row_labels(self) -> list[str]:
        """Names of the rows, or their numbers from 1 on."""
        return self.row_names or [str(number) for number in range(1, self.shape[0] + 1)]

    @property
    def row_index(self) -> pd.Index:
        """Names of the rows as pandas has them, or their numbers from 1 on."""
        return pd.RangeIndex(1, self.shape[0] + 1) if self.row_names is None else pd.Index(self.row_names)

    @property
    def column_index(self) -> pd.Index:
        """Names of the columns as pandas has them, or their numbers from 1 on."""
        return pd.RangeIndex(1, self.shape[1] + 1) if self.column_names is None else pd.Index(self.column_names)

    def _seen(self) -> Bools:
        """Return which entries of a dense table are numbers or words."""
        seen = ~np.isnan(self.values)
        for at, column in self.words.items():
            seen[:, at] = column.notna()
        return seen

    def counts(self) -> tuple[Indices, Indices]:
        """Return the number of observed entries of each row and of each column, limits among them."""
        if self.is_sparse:
            data = self.observed()
            return data.rows.n_observed, data.columns.n_observed
        seen = self._seen()
        seen[self.limits.rows, self.limits.columns] = True
        return seen.sum(axis=1), seen.sum(axis=0)

    @property
    def n_observed(self) -> int:
        """Number of observed entries, limits among them."""
        return int(self.counts()[0].sum())

    def to_fill(self) -> tuple[Indices, Indices]:
        """Return rows and columns of the entries that imputation fills."""
        if self.asked is not None:
            return self.asked
        if self.is_sparse:
            return self.observed().missing_entries()
        rows, columns = np.nonzero(~self._seen())
        return rows, columns

    def numbers(self) -> Floats:
        """Return the numbers that the file holds, without NaN."""
        stored = self.values.data if self.is_sparse else self.values
        return stored[~np.isnan(stored)]

    def render(self, fills: Fills) -> bytes:
        """Return the content of a file of the same kind with values in place of some missing entries."""
        return self.layout.render(fills)


@dataclass(frozen=True)
class Part(Layout):
    """Some columns of a table, whose other columns are written back as they are."""

    whole: Table
    columns: Indices

    def render(self, fills: Fills) -> bytes:
        return self.whole.render(fills._replace(columns=self.columns[fills.columns]))


def repeated(names: Sequence[str] | None) -> list[str]:
    """Return the names that occur more than once."""
    return [name for name, count in Counter(names or []).items() if count > 1]
