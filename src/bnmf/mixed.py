"""Tables of unlike columns: a DataFrame as latent columns of numbers with limits, and filled again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pandas.api import types

from bnmf.columns import KINDS, Categorical, Draws, Number, Ordered, codes_of, kind_of, learn
from bnmf.posterior.posterior import Posterior
from bnmf.posterior.predictions import tiles
from bnmf.utils.typing import Array, Bools, Floats, Indices

# Categories of a column that are still filled: at most so many, and that many entries of each, on average, if there are
# more than a few of them.
MAX_CATEGORIES, MIN_ENTRIES, FEW = 100, 2, 10


class Encoded(NamedTuple):
    """A table as latent columns: numbers, with names for what is said about a fit, and limits of the same shape."""

    values: pd.DataFrame
    lower: Floats
    upper: Floats


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
    """The columns of a DataFrame, as they were learned from the fitted one.

    Parameters
    ----------
    X : DataFrame
        The table.
    kinds : mapping of str to str, pair or list, optional
        Kinds of columns by name.
    ignore : sequence, optional
        Names of columns that are not part of the model.
    missing_values : float or None
        Number that stands for a missing entry.
    """

    def __init__(
        self, X: pd.DataFrame, kinds: Mapping[Any, Any] | None, ignore: Sequence[Any] | None, missing_values: Any
    ) -> None:
        kinds, ignored = dict(kinds or {}), set([] if ignore is None else ignore)
        for given, name in ((kinds, "kinds"), (ignored, "ignore")):
            unknown = [column for column in given if column not in X.columns]
            if unknown:
                raise ValueError(f"{name} names a column that X does not have: {unknown[0]!r}")
        self.missing_values, self.names, self.dtypes = missing_values, X.columns, list(X.dtypes)
        self.columns: list[Number | Ordered | Categorical | None] = []
        self.is_ignored = np.array([name in ignored for name in X.columns])
        known = ~self.missing(X)
        wrong = unfillable(X, known, kinds, ignored)
        if wrong:
            listed = ", ".join(f"{name!r} ({reason})" for name, reason in wrong.items())
            raise ValueError(
                f"X has columns that cannot be filled: {listed}. Leave them as they are with ignore={list(wrong)!r}"
            )
        self.is_learned = known.any(axis=0) & ~self.is_ignored
        for at, name in enumerate(X.columns):
            self.columns.append(
                learn(name, X.iloc[:, at], known[:, at], kinds.get(name)) if self.is_learned[at] else None
            )
        sizes = [0 if column is None else len(column.latent_names) for column in self.columns]
        self._first = np.cumsum([0, *sizes])
        if not self._first[-1]:
            raise ValueError("X has no column with two different values: there is nothing to learn from")

    def missing(self, X: pd.DataFrame) -> Bools:
        """Return where X is missing."""
        missing = X.isna().to_numpy()
        if self.missing_values is not None and not np.isnan(self.missing_values):
            for at in (at for at, dtype in enumerate(X.dtypes) if _is_number(dtype)):
                missing[:, at] |= (X.iloc[:, at] == self.missing_values).fillna(False).to_numpy(bool)
        return missing

    def check_limits(self, without: Bools) -> None:
        """Raise an error if other columns than those of numbers have limits."""
        for at in map(int, np.flatnonzero(~without)):
            if not isinstance(self.columns[at], Number):
                raise ValueError(f"lower and upper are for columns of numbers, and {self.names[at]!r} is none")

    def encode(self, X: pd.DataFrame, limits: tuple[Floats, Floats] | None = None) -> Encoded:
        """Return X as latent columns; limits of the shape of X hold for numbers, NaN where there is none."""
        known = ~self.missing(X)
        parts, names = [], []
        for at, column in enumerate(self.columns):
            if column is None:
                continue
            part = column.encode(X.iloc[:, at], known[:, at])
            if limits is not None and not np.isnan([side[:, at] for side in limits]).all():
                given = [
                    np.where(np.isnan(side[:, at]), own[:, 0], side[:, at])
                    for side, own in zip(limits, part[1:], strict=True)
                ]
                part = part._replace(lower=given[0][:, None], upper=given[1][:, None])
            parts.append(part)
            names += column.latent_names
        values, lower, upper = (np.hstack(sides) for sides in zip(*parts, strict=True))
        return Encoded(pd.DataFrame(values, columns=names), lower, upper)

    def kept(self, keep_empty: bool) -> Bools:
        """Return which columns are in the output: not those without an observed entry, unless they are kept."""
        return self.is_learned | self.is_ignored | keep_empty

    # --- tables of the same dtypes

    def predict(
        self, X: pd.DataFrame, posterior: Posterior, keep_empty: bool, limits: tuple[Floats, Floats] | None
    ) -> pd.DataFrame:
        """Return X with each missing entry filled by what is expected, and limited ones by their mean."""
        (filled,) = self._filled(X, posterior, keep_empty, 1, lambda column, draws: [column.predict(draws)])
        if limits is None:
            return filled
        for at, column in enumerate(self.columns):
            low, high = (side[:, at] for side in limits)
            rows = np.flatnonzero((np.isfinite(low) | np.isfinite(high)) & (low != high))
            if len(rows) and isinstance(column, Number):  # others have none
                sides = (np.nan_to_num(low[rows], nan=-np.inf, neginf=-np.inf, posinf=np.inf),
                         np.nan_to_num(high[rows], nan=np.inf, neginf=-np.inf, posinf=np.inf))  # fmt: skip
                values = posterior.mean_between(rows, np.full(len(rows), self._first[at]), *sides)
                place = int(self.kept(keep_empty)[:at].sum())
                filled.isetitem(place, self._put(filled.iloc[:, place], at, rows, column.valid(values)).array)
        return filled

    def ends(self, X: pd.DataFrame, posterior: Posterior, keep_empty: bool, prob: float) -> list[pd.DataFrame]:
        """Return X with its missing entries replaced by the lower and by the upper ends of their intervals."""
        rng = np.random.default_rng(0)
        return self._filled(X, posterior, keep_empty, 2, lambda column, draws: column.ends(draws, prob, rng))

    def copies(
        self, X: pd.DataFrame, posterior: Posterior, keep_empty: bool, chosen: Indices, rng: np.random.Generator
    ) -> list[pd.DataFrame]:
        """Return X once for each of the chosen draws, with its missing entries drawn."""
        return self._filled(
            X, posterior, keep_empty, len(chosen), lambda column, draws: column.draw(draws, rng), chosen
        )

    def probabilities(self, X: pd.DataFrame, posterior: Posterior) -> dict[Any, pd.DataFrame]:
        """Return the probabilities of the categories of each column that has some, 0 and 1 where it was observed."""
        missing, out = self.missing(X), {}
        for at, column in enumerate(self.columns):
            if column is None or isinstance(column, Number) or column.is_whole:
                continue
            codes = codes_of(X.iloc[:, at], ~missing[:, at], column.categories, column.name, unseen="ignore")
            table = np.where(codes < 0, np.nan, np.arange(len(column.categories))[:, None] == codes).T
            for rows, draws in self._parts(posterior, at, np.flatnonzero(missing[:, at])):
                table[rows] = column.probabilities(draws)
            out[column.name] = pd.DataFrame(table, index=X.index, columns=pd.Index(column.categories, dtype=object))
        return out

    def _parts(
        self, posterior: Posterior, at: int, rows: Indices, chosen: Any = slice(None)
    ) -> Iterator[tuple[Indices, Draws]]:
        """Yield some of the rows at a time, with draws of the latent numbers of a column."""
        for part in tiles(len(rows), 64 * posterior.n_chains * posterior.n_draws):
            yield rows[part], Draws(posterior, rows[part], int(self._first[at]), chosen)

    def _filled(
        self,
        X: pd.DataFrame,
        posterior: Posterior,
        keep_empty: bool,
        n_copies: int,
        values_of: Callable[[Any, Draws], Sequence[Array]],
        chosen: Any = slice(None),
    ) -> list[pd.DataFrame]:
        """Return copies of X with missing entries filled by the values that a function returns for a column."""
        missing, kept = self.missing(X), self.kept(keep_empty)
        series: list[list[pd.Series]] = [[] for _ in range(n_copies)]
        for at in map(int, np.flatnonzero(kept)):
            column, original, rows = self.columns[at], X.iloc[:, at], np.flatnonzero(missing[:, at])
            if column is not None:
                parts = [values_of(column, draws) for _, draws in self._parts(posterior, at, rows, chosen)]
                filled = [self._put(original, at, rows, np.concatenate(part)) for part in zip(*parts, strict=True)]
            elif not self.is_ignored[at] and _is_number(original.dtype):
                filled = [self._put(original, at, rows, np.zeros(len(rows)))] * n_copies
            else:
                filled = []
            for copy, values in zip(
                series, filled or [self._put(original, at, rows[:0], rows[:0])] * n_copies, strict=True
            ):
                copy.append(values)
        return [pd.concat(copy, axis=1).set_axis(X.columns[kept], axis=1) for copy in series]

    def _put(self, column: pd.Series, at: int, rows: Indices, values: Array) -> pd.Series:
        """Return a column with some values replaced, of the same dtype."""
        dtype: Any = column.dtype
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
    """Return why columns cannot be filled, by name: they are no numbers, and have no few categories."""
    found = {}
    for at, name in enumerate(X.columns):
        values = X.iloc[:, at][known[:, at]]
        kind = kind_of(values)
        if name in ignored:
            continue
        if kind not in KINDS:
            found[name] = kind
        elif kinds.get(name, kind) == "categorical":
            n_categories = values.astype(object).map(repr).nunique()
            if n_categories > MAX_CATEGORIES or len(values) < MIN_ENTRIES * n_categories > FEW:
                found[name] = f"{n_categories} categories in {len(values)} entries"
    return found
