"""Entries that are only known to lie between two limits: capped, below a detection limit, rounded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from bnmf.data.containers import as_csr, as_floats
from bnmf.data.views import flat, flat_of, places_in, within_ranges
from bnmf.kernels.compiled import log_mass
from bnmf.utils.arguments import is_pandas, numbers
from bnmf.utils.typing import Array, Bools, Floats, Indices, Ints, Shape


class LimitArrays(NamedTuple):
    """Limits of every entry of a table, for :meth:`bnmf.BayesianNMF.fit`."""

    lower: Any  # of the shape of the table, as `upper`: the value lies between them, NaN where it is missing
    upper: Any


def limits(
    X: Any, *, capped: Any = None, floored: Any = None, step: Any = None, rounded: str = "nearest"
) -> LimitArrays:
    """Return the limits of the entries of a table that was capped, cut below or rounded.

    Parameters
    ----------
    X : array-like or DataFrame of shape (n_samples, n_features)
        The table as it was recorded; NaN is missing.
    capped : float, array-like of shape (n_features,) or mapping by column name, optional
        An entry of this size or above was capped there: its value is that or larger.
    floored : float, array-like of shape (n_features,) or mapping by column name, optional
        An entry of this size or below was cut there, for instance a detection limit: its value is that or smaller.
    step : float, array-like of shape (n_features,) or mapping by column name, optional
        Entries were rounded to multiples of it: 1 for whole numbers.
    rounded : {"nearest", "down"}, default="nearest"
        Whether 3 stands for values from 2.5 to 3.5, or from 3 to 4, if `step` is 1.

    Returns
    -------
    LimitArrays
        ``lower`` and ``upper``, which are equal where an entry is exact.

    Examples
    --------
    >>> import numpy as np
    >>> lower, upper = limits(np.array([[0.0, 57.0, 100.0]]), capped=100, floored=0)
    >>> lower, upper
    (array([[-inf,  57., 100.]]), array([[ 0., 57., inf]]))
    >>> limits(np.array([[0.0, 57.0, 100.0]]), capped=100, floored=0, step=1, rounded="down").upper
    array([[ 1., 58., inf]])
    """
    if rounded not in ("nearest", "down"):
        raise ValueError(f"rounded must be 'nearest' or 'down', got {rounded!r}")
    array, names = as_floats(X), X.columns if is_pandas(X, "DataFrame") else None
    given = {"capped": capped, "floored": floored, "step": step}
    cap, floor, steps = (by_column(value, name, array.shape[1], names) for name, value in given.items())
    if (steps <= 0.0).any():
        raise ValueError(f"step must be positive, got {float(steps[steps <= 0.0][0])!r}")
    if (floor > cap).any():
        raise ValueError("floored must not be above capped")
    with np.errstate(invalid="ignore"):
        at_cap, at_floor = array >= cap, array <= floor
    value = np.where(at_cap, cap, np.where(at_floor, floor, array))
    steps = np.where(np.isnan(steps), 0.0, steps)
    below, above = (0.5, 0.5) if rounded == "nearest" else (0.0, 1.0)
    lower = np.where(at_floor, -np.inf, value - below * steps)
    upper = np.where(at_cap, np.inf, value + above * steps)
    if names is None:
        return LimitArrays(lower, upper)
    return LimitArrays(*(type(X)(side, index=X.index, columns=names) for side in (lower, upper)))


@dataclass(frozen=True, eq=False)
class Limits:
    """The entries of a matrix that are only known to lie between limits, of which one may be infinite, row by row."""

    shape: Shape
    rows: Indices
    columns: Indices
    lower: Floats
    upper: Floats

    def __len__(self) -> int:
        """Return the number of these entries."""
        return len(self.rows)

    @property
    def flat(self) -> Ints:
        """Positions as single numbers, counted row by row."""
        return flat(self.rows, self.columns, self.shape)

    def shifted(self, offset: Floats) -> Limits:
        """Return the limits of data from whose columns numbers were subtracted."""
        shift = offset[self.columns]
        return replace(self, lower=self.lower - shift, upper=self.upper - shift)

    def where(self, kept: Bools) -> Limits | None:
        """Return some of the limits, None if there are none."""
        parts = {name: getattr(self, name)[kept] for name in ("rows", "columns", "lower", "upper")}
        return replace(self, **parts) if kept.any() else None

    def of_rows(self, rows: Indices) -> Limits | None:
        """Return the limits of some rows, numbered from 0; `rows` must ascend."""
        first, last = (np.searchsorted(self.rows, rows, side) for side in ("left", "right"))
        found = within_ranges(first, last - first)
        parts = {name: getattr(self, name)[found] for name in ("columns", "lower", "upper")}
        numbers = np.repeat(np.arange(len(rows)), last - first)
        return Limits((len(rows), self.shape[1]), numbers, **parts) if len(found) else None

    def at(self, rows: Array, columns: Array) -> tuple[Floats, Floats]:
        """Return lower and upper limits at paired positions, NaN where an entry is exact."""
        place = places_in(self.flat, flat(rows, columns, self.shape))
        return np.append(self.lower, np.nan)[place], np.append(self.upper, np.nan)[place]  # the last is of place -1


def representatives(lower: Floats, upper: Floats) -> Floats:
    """Return the middle of each interval, or its finite end: what stands for it in units, offsets and starts."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isinf(lower), upper, np.where(np.isinf(upper), lower, 0.5 * (lower + upper)))


def nearest(values: Floats, lower: Floats | None, upper: Floats | None, predicted: Floats) -> Floats:
    """Return values, or of entries whose limits are not NaN the number between them that is nearest to a prediction."""
    if lower is None or upper is None:
        return values
    return np.where(np.isnan(lower), values, np.clip(predicted, lower, upper))


def log_normal_mass(low: Floats, high: Floats) -> Floats:
    """Return the log probability that a standard normal lies between limits, one of which may be infinite."""
    swapped = low + high > 0.0  # the tail that is not far out keeps its digits
    low, high = np.where(swapped, -high, low), np.where(swapped, -low, high)
    start, width = np.ascontiguousarray(high).ravel(), np.ascontiguousarray(high - low).ravel()
    mass = log_mass(start, np.ones(high.size), width)
    return (mass - 0.5 * (start**2 + np.log(2.0 * np.pi))).reshape(high.shape)


# --- what a user gives


def with_limits(
    array: Floats, seen: Bools, hidden: Bools | None, lower: Any, upper: Any, names: Any, *, negative: bool
) -> tuple[Floats, Bools, Limits | None]:
    """Return a table in which limited entries count as observed, which entries those are, and their limits."""
    # Limits of the shape of the table say where each entry lies, whatever number it has. Other limits are for whole
    # columns or rows, and say something of entries without a number only. `hidden` entries are missing in any case.
    given = (full(given, name, array.shape, names) for given, name in ((lower, "lower"), (upper, "upper")))
    return between(array, seen, hidden, *given, negative=negative)


def between(
    array: Floats,
    seen: Bools,
    hidden: Bools | None,
    lower: tuple[Floats, bool],
    upper: tuple[Floats, bool],
    *,
    negative: bool,
    start: Shape = (0, 0),
) -> tuple[Floats, Bools, Limits | None]:
    """Return the same of a part of a table, which starts somewhere, given limits as `full` returns them."""
    (low, states_low), (high, states_high) = lower, upper
    low = np.broadcast_to(np.where(np.isnan(low), -np.inf, low), array.shape)
    high = np.broadcast_to(np.where(np.isnan(high), np.inf, high), array.shape)
    for side, name, states in ((low, "lower", states_low), (high, "upper", states_high)):
        if not states and (at_limit := seen & (array == side)).any():
            first = tuple(np.argwhere(at_limit)[0])
            row, column = np.add(first, start)
            raise ValueError(
                f"{name} of a whole column says where its missing entries lie, but {at_limit.sum():,} entries of X "
                f"are exactly at it, the first in row {row}, column {column}. If they were cut there, pass "
                f"bnmf.limits(X, {'capped' if name == 'upper' else 'floored'}={array[first]:g}); if they are "
                f"exact, pass {name} as an array of the shape of X, NaN where it does not apply"
            )
    limited = (states_low & np.isfinite(low)) | (states_high & np.isfinite(high))
    limited |= ~seen & (np.isfinite(low) | np.isfinite(high))
    if hidden is not None:
        limited &= ~hidden
    rows, columns = np.nonzero(limited)
    array = array.copy()
    array[limited], found = _checked(array.shape, rows, columns, low[limited], high[limited], negative, start)
    return array, seen | limited, found


def with_sparse_limits(
    matrix: sp.csr_array, lower: Any, upper: Any, *, negative: bool, start: Shape = (0, 0)
) -> tuple[sp.csr_array, Limits | None]:
    """Return a sparse matrix with numbers that stand for limited entries, and the limits of those that it stores."""
    stored = flat_of(matrix)
    low, high = np.full(matrix.nnz, -np.inf), np.full(matrix.nnz, np.inf)
    for given, name, side in ((lower, "lower", low), (upper, "upper", high)):
        if given is None:
            continue
        if not sp.issparse(given) or as_csr(given).shape != matrix.shape:
            raise ValueError(
                f"{name} of a sparse X must be a sparse matrix of its shape, {matrix.shape}, with limits at entries "
                f"that X stores, got {type(given).__name__}"
            )
        limit = as_csr(given)
        place = places_in(stored, flat_of(limit))
        if (place < 0).any():
            raise ValueError(f"{name} has {(place < 0).sum():,} limits at entries that X does not store")
        side[place] = np.where(np.isnan(limit.data), side[place], limit.data)
    limited = np.flatnonzero(np.isfinite(low) | np.isfinite(high))
    rows, columns = np.divmod(stored[limited], matrix.shape[1])
    values = matrix.data.copy()
    values[limited], found = _checked(matrix.shape, rows, columns, low[limited], high[limited], negative, start)
    return sp.csr_array((values, matrix.indices, matrix.indptr), shape=matrix.shape), found


def _checked(
    shape: Shape, rows: Indices, columns: Indices, low: Floats, high: Floats, negative: bool, start: Shape
) -> tuple[Floats, Limits | None]:
    """Return the numbers that stand for limited entries, and the limits of those that are not exact."""
    wrong = np.flatnonzero(~(low <= high) | (low == np.inf) | (high == -np.inf))
    if len(wrong):
        first = wrong[0]
        raise ValueError(
            f"lower must not be above upper, got {low[first]:g} and {high[first]:g} in row {rows[first] + start[0]}, "
            f"column {columns[first] + start[1]}"
        )
    values = representatives(low, high)
    if not negative and (values < 0.0).any():
        raise ValueError(
            "lower and upper must be nonnegative, as X must be, unless offset='min' or factors may be negative too, "
            "as with prior='normal'"
        )
    some = low < high
    return values, Limits(shape, rows[some], columns[some], low[some], high[some]) if some.any() else None


def full(given: Any, name: str, shape: Shape, names: Any) -> tuple[Floats, bool]:
    """Return limits that broadcast to a shape, and whether they have it themselves: one for each entry."""
    if is_pandas(given, "DataFrame") and names is not None and list(given.columns) != list(names):
        raise ValueError(f"{name} must have the columns of X, in their order")
    array = given if given is None or is_named(given) else numbers(given, name)
    if isinstance(array, np.ndarray) and array.ndim == 2:
        if array.shape != shape and array.shape != (shape[0], 1):
            raise ValueError(
                f"{name} must have the shape of X, {shape}, one number for each column ({shape[1]},) or each row "
                f"({shape[0]}, 1), or be one number, got shape {array.shape}"
            )
        return array, array.shape == shape
    return by_column(array, name, shape[1], names), False


def is_named(given: Any) -> bool:
    """Return whether limits are given by column name."""
    return isinstance(given, Mapping) or is_pandas(given, "Series")


def by_column(given: Any, name: str, n_columns: int, names: Any) -> Floats:
    """Return one number for each column, NaN for those without any."""
    if given is None:
        return np.full(n_columns, np.nan)
    if is_pandas(given, "Series"):
        given = given.to_dict()
    if isinstance(given, Mapping):
        if names is None:
            raise ValueError(f"{name} by column name needs a DataFrame, whose columns have names")
        unknown = [key for key in given if key not in list(names)]
        if unknown:
            raise ValueError(f"{name} names a column that X does not have: {unknown[0]!r}")
        given = [given.get(column, np.nan) for column in names]
    array = numbers(given, name)
    if array.shape not in ((), (n_columns,)):
        raise ValueError(f"{name} must be one number or one for each of {n_columns} columns, got shape {array.shape}")
    return np.broadcast_to(array, n_columns).astype(np.float64)
