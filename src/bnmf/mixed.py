"""Tables: the columns of a DataFrame as latent columns of numbers with limits, and filled again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
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
# Kinds of columns that are numbers to the model.
NUMBERS = ("number", "nonnegative", "whole", "pair")

# Limits of every entry of a table, NaN where nothing is said of it.
Sides = tuple[Floats, Floats]


def is_mixed(X: Any, kinds: Any, ignore: Any) -> bool:
    """Return whether a table has columns of other kinds than numbers."""
    if not isinstance(X, pd.DataFrame):
        for given, name in ((kinds, "kinds"), (ignore, "ignore")):
            if given is not None:
                raise TypeError(f"{name} needs a DataFrame, whose columns have names, got {type(X).__name__}")
        return False
    return bool(kinds or (ignore is not None and len(ignore)) or not all(map(types.is_float_dtype, X.dtypes)))


def _is_number(dtype: Any) -> bool:
    return types.is_numeric_dtype(dtype) and not types.is_bool_dtype(dtype)


class MixedTable:
    """The columns of a DataFrame, as they were learned from the fitted one, with the parameters of an NMFImputer."""

    def __init__(self, X: pd.DataFrame, imputer: Any, lower: Any, upper: Any) -> None:
        kinds, ignored = dict(imputer.kinds or {}), set([] if imputer.ignore is None else imputer.ignore)
        for given, name in ((kinds, "kinds"), (ignored, "ignore")):
            unknown = [column for column in given if column not in X.columns]
            if unknown:
                raise ValueError(f"{name} names a column that X does not have: {unknown[0]!r}")
        self.missing_values, self.dtypes = imputer.missing_values, list(X.dtypes)
        self.columns: list[Number | Ordered | Categorical | None] = []
        self.is_ignored = np.array([name in ignored for name in X.columns])
        known = ~self.missing(X)
        wrong = unfillable(X, known, kinds, ignored)
        if wrong:
            listed = ", ".join(f"{name!r} ({reason})" for name, reason in wrong.items())
            raise ValueError(
                f"X has columns that cannot be filled: {listed}. Leave them as they are with ignore={list(wrong)!r}"
            )
        is_limited = ~np.isnan(self.limits(X, lower, upper)[0])
        self.is_learned = (known | is_limited).any(axis=0) & ~self.is_ignored
        self.is_kept = self.is_learned | self.is_ignored | imputer.keep_empty_features
        if self.is_ignored.all():
            raise ValueError("ignore names all columns of X: there is nothing to learn from")
        if not self.is_learned.any():
            raise ValueError("X has no observed entry at all: there is nothing to learn from")
        for at, name in enumerate(X.columns):
            self.columns.append(
                learn(name, X.iloc[:, at], known[:, at], kinds.get(name), bool(is_limited[:, at].any()))
                if self.is_learned[at]
                else None
            )
        sizes = [0 if column is None else len(column.latent_names) for column in self.columns]
        self._first = np.cumsum([0, *sizes])
        if not self._first[-1]:
            raise ValueError("X has no column with two different values: there is nothing to learn from")

    def missing(self, X: pd.DataFrame) -> Bools:
        """Return where X is missing."""
        missing = X.isna().to_numpy(copy=True)
        if self.missing_values is not None and not np.isnan(self.missing_values):
            for at in (at for at, dtype in enumerate(X.dtypes) if _is_number(dtype)):
                missing[:, at] |= (X.iloc[:, at] == self.missing_values).fillna(False).to_numpy(bool)
        return missing

    def limits(self, X: pd.DataFrame, lower: Any, upper: Any) -> Sides:
        """Return the limits of every entry, both equal where they say what it is, and NaN where nothing is said."""
        low, high = np.full(X.shape, np.nan), np.full(X.shape, np.nan)
        if lower is None and upper is None:
            return low, high
        missing, values = self.missing(X), np.full(X.shape, np.nan)
        for at in (at for at, dtype in enumerate(X.dtypes) if _is_number(dtype)):
            values[:, at] = X.iloc[:, at].to_numpy(np.float64, na_value=np.nan)
        values[missing] = np.nan
        stated, _, found = with_limits(values, ~missing, None, lower, upper, X.columns, negative=True)
        is_exact = ~np.isnan(stated) & (stated != values)
        low[is_exact] = high[is_exact] = stated[is_exact]
        if found is not None:
            low[found.rows, found.columns], high[found.rows, found.columns] = found.lower, found.upper
        named = [name for given in (lower, upper) if is_named(given) for name in dict(given)]
        is_limited = X.columns.isin(named) | ~np.isnan(low).all(axis=0)
        for at, column in enumerate(self.columns):
            if is_limited[at] and not isinstance(column, Number):
                raise ValueError(f"lower and upper are for columns of numbers, and {X.columns[at]!r} is not one")
        return low, high

    def encode(self, X: pd.DataFrame, limits: Sides) -> tuple[pd.DataFrame, Floats | None, Floats | None]:
        """Return X as latent columns with names, and their limits; `limits` hold for columns of numbers."""
        known = ~self.missing(X)
        parts, names = [], []
        for at, column in enumerate(self.columns):
            if column is None:
                continue
            values, *bounds = column.encode(X.iloc[:, at], known[:, at])
            if isinstance(column, Number):
                given = [side[:, [at]] for side in limits]
                bounds = [np.where(np.isnan(side), bound, side) for side, bound in zip(given, bounds, strict=True)]
            parts.append((values, *bounds))
            names += column.latent_names
        values, lower, upper = (np.hstack(sides) for sides in zip(*parts, strict=True))
        frame = pd.DataFrame(values, columns=names)
        return (frame, None, None) if np.isnan([lower, upper]).all() else (frame, lower, upper)

    def probabilities(self, X: pd.DataFrame, posterior: Posterior) -> dict[Any, pd.DataFrame]:
        """Return the probabilities of the categories of each column that has some, 0 and 1 where it was observed."""
        missing, out = self.missing(X), {}
        for at, column in enumerate(self.columns):
            if column is None or isinstance(column, Number) or column.is_whole:
                continue
            codes = codes_of(X.iloc[:, at], ~missing[:, at], column.categories, column.name, unseen="ignore")
            table = np.where(codes < 0, np.nan, np.arange(len(column.categories))[:, None] == codes).T
            rows = np.flatnonzero(missing[:, at])
            for part in tiles(len(rows), bytes_of_draws(posterior)):
                table[rows[part]] = column.probabilities(Draws(posterior, rows[part], int(self._first[at])))
            out[column.name] = pd.DataFrame(table, index=X.index, columns=pd.Index(column.categories, dtype=object))
        return out

    def filled(
        self,
        X: pd.DataFrame,
        posterior: Any,
        limits: Sides,
        values_of: Callable[[Any, Draws], Sequence[Array]],
        n_copies: int = 1,
        chosen: Any = slice(None),
    ) -> list[pd.DataFrame]:
        """Return copies of X with missing and limited entries replaced by the values of a function of their column."""
        missing = self.missing(X)
        series: list[list[pd.Series]] = [[] for _ in range(n_copies)]
        for at in map(int, np.flatnonzero(self.is_kept)):
            column, original = self.columns[at], X.iloc[:, at]
            low, high = (side[:, at] for side in limits)
            rows = np.flatnonzero(missing[:, at] | ~np.isnan(low))
            if column is not None:
                values = values_of_entries(
                    posterior,
                    rows,
                    int(self._first[at]),
                    (low[rows], high[rows]),
                    partial(values_of, column),
                    n_copies,
                    chosen,
                )
            else:
                rows = rows if not self.is_ignored[at] and _is_number(original.dtype) else rows[:0]
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
                found[name] = f"{n_categories} categories in {len(values)} entries"
    return found
