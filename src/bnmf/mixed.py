"""Tables: the columns of a DataFrame as latent columns of numbers with limits, and filled again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, count
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from bnmf.columns import (
    KINDS,
    Categorical,
    Draws,
    Number,
    Ordered,
    bytes_of_draws,
    codes_of,
    kind_of,
    learn,
    values_of_entries,
)
from bnmf.data.limits import is_named, with_limits
from bnmf.posterior.posterior import Posterior
from bnmf.posterior.predictions import tiles
from bnmf.utils.typing import Array, Bools, Floats, Indices

# Categories of a column that are still filled: at most so many, and that many entries of each, on average, if there are
# more than a few of them.
MAX_CATEGORIES, MIN_ENTRIES, FEW = 100, 2, 10
# Up to which numbers all whole ones are different floating-point numbers.
LARGEST_WHOLE = 2**53
# Why text that looks like numbers is not filled.
NUMBERS_AS_TEXT = "numbers as text"
# Kinds of columns that are numbers to the model.
NUMBERS = ("number", "nonnegative", "whole", "pair")


@dataclass(frozen=True, eq=False)
class GivenTable:
    """A DataFrame, where it is missing, and the limits of its entries: NaN without any, equal where they are exact."""

    frame: pd.DataFrame
    missing: Bools
    lower: Floats
    upper: Floats
    is_limited: Bools  # of columns

    @classmethod
    def of(cls, X: pd.DataFrame, missing_values: float | None, lower: Any, upper: Any) -> GivenTable:
        """Return a table in which a number may stand for a missing entry, and the limits that a user gives."""
        missing, values = X.isna().to_numpy(copy=True), np.full(X.shape, np.nan)
        for at, dtype in enumerate(X.dtypes):
            if types.is_any_real_numeric_dtype(dtype):
                values[:, at] = X.iloc[:, at].to_numpy(np.float64, na_value=np.nan)
        if missing_values is not None:
            missing |= values == missing_values
        low, high = np.full(X.shape, np.nan), np.full(X.shape, np.nan)
        if lower is None and upper is None:
            return cls(X, missing, low, high, np.zeros(X.shape[1], bool))
        values[missing] = np.nan
        stated, _, found = with_limits(values, ~missing, None, lower, upper, X.columns, negative=True)
        is_exact = ~np.isnan(stated) & (stated != values)
        low[is_exact] = high[is_exact] = stated[is_exact]
        if found is not None:
            low[found.rows, found.columns], high[found.rows, found.columns] = found.lower, found.upper
        named = [name for given in (lower, upper) if is_named(given) for name in dict(given)]
        return cls(X, missing, low, high, X.columns.isin(named) | ~np.isnan(low).all(axis=0))

    @property
    def to_fill(self) -> Bools:
        """Which entries are missing, or have limits."""
        return self.missing | ~np.isnan(self.lower)

    @property
    def gaps(self) -> Floats:
        """NaN where the table is missing, as scikit-learn's indicator takes it."""
        return np.where(self.missing, np.nan, 0.0)


class LearnedTable:
    """The columns of a table, as they were learned from the fitted one."""

    def __init__(
        self, given: GivenTable, kinds: Mapping[Any, Any], ignored: Collection[Any], keeps_empty: bool
    ) -> None:
        X, known = given.frame, ~given.missing
        for name, names in (("kinds", kinds), ("ignore", ignored)):
            unknown = [column for column in names if column not in X.columns]
            if unknown:
                raise ValueError(f"{name} names a column that X does not have: {unknown[0]!r}")
        wrong = unfillable(X, known, kinds, ignored)
        if wrong:
            listed = ", ".join(f"{name!r} ({reason})" for name, reason in wrong.items())
            advice = "Leave them"
            if NUMBERS_AS_TEXT in wrong.values():
                advice = "Convert numbers with pd.to_numeric, or leave columns"
            raise ValueError(
                f"X has columns that cannot be filled: {listed}. {advice} as they are with ignore={list(wrong)!r}"
            )
        self.is_ignored = np.array([name in ignored for name in X.columns])
        has_limits = ~np.isnan(given.lower)
        is_learned = (known | has_limits).any(axis=0) & ~self.is_ignored
        self.is_kept = is_learned | self.is_ignored | keeps_empty
        if not is_learned.any():
            where = "outside of ignored columns" if self.is_ignored.any() else "at all"
            raise ValueError(f"X has no observed entry {where}: there is nothing to learn from")
        self.dtypes, self.column_names = list(X.dtypes), X.columns
        self.columns: list[Number | Ordered | Categorical | None] = []
        for at, name in enumerate(X.columns):
            column = X.iloc[:, at], known[:, at], kinds.get(name), bool(has_limits[:, at].any())
            self.columns.append(learn(name, *column) if is_learned[at] else None)
        latent = [[] if column is None else column.latent_names for column in self.columns]
        self._first = np.cumsum([0, *map(len, latent)])
        self._latent_names = _different(chain.from_iterable(latent))
        if not self._first[-1]:
            raise ValueError("X has no column with two different values: there is nothing to learn from")

    @property
    def is_of_numbers(self) -> bool:
        """Whether all columns that were learned are of numbers."""
        return all(column is None or isinstance(column, Number) for column in self.columns)

    def encode(self, given: GivenTable) -> tuple[pd.DataFrame, Floats | None, Floats | None]:
        """Return a table as latent columns with names, and their limits."""
        parts = []
        for at, column in enumerate(self.columns):
            if given.is_limited[at] and not isinstance(column, Number):
                raise ValueError(
                    f"lower and upper are for columns of numbers, and {given.frame.columns[at]!r} is not one"
                )
            if column is None:
                continue
            values, *bounds = column.encode(given.frame.iloc[:, at], ~given.missing[:, at])
            if isinstance(column, Number):
                stated = given.lower[:, [at]], given.upper[:, [at]]
                bounds = [np.where(np.isnan(side), bound, side) for side, bound in zip(stated, bounds, strict=True)]
            parts.append((values, *bounds))
        values, lower, upper = (np.hstack(sides) for sides in zip(*parts, strict=True))
        frame = pd.DataFrame(values, index=given.frame.index, columns=self._latent_names)
        return (frame, None, None) if np.isnan([lower, upper]).all() else (frame, lower, upper)

    def probabilities(self, given: GivenTable, posterior: Posterior) -> dict[Any, pd.DataFrame]:
        """Return the probabilities of the categories of each column that has some, 0 and 1 where it was observed."""
        X, out = given.frame, {}
        for at, column in enumerate(self.columns):
            if column is None or isinstance(column, Number) or column.is_whole:
                continue
            missing = given.missing[:, at]
            codes = codes_of(X.iloc[:, at], ~missing, column.categories, column.name, unseen="ignore")
            table = np.where(codes < 0, np.nan, np.arange(len(column.categories))[:, None] == codes).T
            rows = np.flatnonzero(missing)
            first = np.full(len(rows), self._first[at])
            for part in tiles(len(rows), bytes_of_draws(posterior)):
                table[rows[part]] = column.probabilities(Draws(posterior, rows[part], first[part]))
            out[column.name] = pd.DataFrame(table, index=X.index, columns=pd.Index(column.categories, dtype=object))
        return out

    def filled(
        self,
        given: GivenTable,
        posterior: Any,
        values_of: Callable[[Any, Draws], Sequence[Array]],
        n_copies: int = 1,
        chosen: Any = slice(None),
    ) -> list[pd.DataFrame]:
        """Return copies of X with missing and limited entries replaced by the values of a function of their column."""
        X, to_fill = given.frame, given.to_fill
        series: list[list[pd.Series]] = [[] for _ in range(n_copies)]
        for at in map(int, np.flatnonzero(self.is_kept)):
            column, original, rows = self.columns[at], X.iloc[:, at], np.flatnonzero(to_fill[:, at])
            if column is not None:
                limits, first = (given.lower[rows, at], given.upper[rows, at]), np.full(len(rows), self._first[at])
                of_column = partial(values_of, column)
                values = values_of_entries(posterior, rows, first, limits, of_column, n_copies, chosen)
            else:
                rows = rows if not self.is_ignored[at] and types.is_any_real_numeric_dtype(original.dtype) else rows[:0]
                values = np.zeros((n_copies, len(rows)))
            for copy, each in zip(series, values, strict=True):
                copy.append(self._put(original, at, rows, each))
        return [pd.concat(copy, axis=1).set_axis(X.columns[self.is_kept], axis=1) for copy in series]

    def _put(self, column: pd.Series, at: int, rows: Indices, values: Array) -> pd.Series:
        """Return a column with some values replaced, of the same dtype."""
        dtype: Any = column.dtype
        if isinstance(dtype, pd.SparseDtype):  # whose values cannot be replaced
            dense = self._put(column.astype(dtype.subtype), at, rows, values)
            return dense if dense.dtype == object else dense.astype(dtype)
        out, learned, fitted = column.copy(), self.columns[at], self.dtypes[at]
        if isinstance(dtype, pd.CategoricalDtype) and isinstance(fitted, pd.CategoricalDtype) and dtype != fitted:
            categories = fitted.categories.append(dtype.categories.difference(fitted.categories, sort=False))
            out = out.cat.set_categories(categories)
        if not len(rows):
            return out
        if types.is_integer_dtype(dtype) and learned is not None and learned.is_whole:
            range_of = np.iinfo(getattr(dtype, "numpy_dtype", dtype))
            values = np.clip(values, range_of.min, range_of.max)
        found: Any = [int(value) for value in values] if learned is not None and learned.is_whole else values.tolist()
        filled: Any = out.astype(object) if None in found and str(dtype)[0] in "iub" else out  # which have no NaN
        filled.iloc[rows] = pd.array(found, dtype=filled.dtype)
        return filled


def unfillable(X: pd.DataFrame, known: Bools, kinds: Mapping[Any, Any], ignored: Collection[Any]) -> dict[Any, str]:
    """Return why columns cannot be filled, by name: they hold neither numbers nor few categories."""
    found = {}
    for at, name in enumerate(X.columns):
        values = X.iloc[:, at][known[:, at]]
        kind = kind_of(values)
        given = "pair" if isinstance(kinds.get(name), tuple) else kinds.get(name, kind)
        if name in ignored:
            continue
        if kind not in KINDS:
            found[name] = kind
        elif (
            kind == "whole"
            and given in NUMBERS
            and len(values)
            and max(int(values.max()), -int(values.min())) > LARGEST_WHOLE
        ):
            found[name] = "whole numbers beyond 2**53, which are identifiers"
        elif given == "categorical":
            n_categories = values.astype(object).map(repr).nunique()
            if n_categories > MAX_CATEGORIES or len(values) < MIN_ENTRIES * n_categories > FEW:
                is_text = name not in kinds and types.infer_dtype(values) == "string"
                as_numbers = is_text and pd.to_numeric(values.astype(object), errors="coerce").notna().all()
                found[name] = NUMBERS_AS_TEXT if as_numbers else f"{n_categories} categories in {len(values)} entries"
    return found


def _different(names: Iterable[str]) -> list[str]:
    """Return names with a number after those that were there before."""
    found: dict[str, None] = {}
    for name in names:
        numbered = (f"{name} ({number})" for number in count(2))
        found[name if name not in found else next(each for each in numbered if each not in found)] = None
    return list(found)
