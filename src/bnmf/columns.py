"""Kinds of columns: how values become latent numbers with limits, and predictions of these become values again.

A number is a latent number itself, or a latent number cut at its bounds. A category is the interval between two cut
points that a latent number lies in: cut points are the normal scores of the cumulative shares. Categories without an
order are decided one after the other, the most frequent first: "is it this one?" is asked only if it was none of those
before, so a table has a missing entry where there is no question, and the likelihood is exact.
"""

from __future__ import annotations

import contextlib
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
from pandas.api import types
from scipy.special import ndtri

from bnmf.posterior.posterior import Posterior
from bnmf.posterior.predictions import Entries, quantiles_of, tiles
from bnmf.utils.typing import Array, Bools, Floats, Indices, Ints

KINDS = ("number", "nonnegative", "whole", "ordered", "binary", "categorical")
# Entries of a whole number, on average, from which its values are ordered categories.
ENTRIES_EACH = 10
# Values that are not observed, for one that is, up to which such a column may take all in between.
MAX_UNSEEN = 10


class Latent(NamedTuple):
    """Latent numbers (n, m) of a column and their limits; NaN where there is none."""

    values: Floats
    lower: Floats
    upper: Floats


@dataclass
class Draws:
    """Draws of the latent numbers of some entries, with the law of the noise around them."""

    posterior: Posterior
    rows: Indices
    first: Indices  # first latent column of each entry
    chosen: Any = ...  # all draws
    limits: tuple[Floats, Floats] | None = None  # between which the numbers lie; one of a pair may be infinite

    @property
    def shape(self) -> tuple[int, int]:
        """Number of draws, and of rows."""
        n_draws = self.posterior.n_chains * self.posterior.n_draws
        return len(np.arange(n_draws)[self.chosen]), len(self.rows)

    def mean(self) -> Floats:
        """Return the mean (n,) of the first latent column."""
        return self.at().mean() if self.limits is None else self.at().mean_between(*self.limits)

    def interval(self, prob: float) -> tuple[Floats, Floats]:
        """Return the central interval (n,) of the first latent column, noise included."""
        tail = 0.5 * (1.0 - prob)
        low, high = quantiles_of(self.drawn(np.random.default_rng(0)), np.array([tail, 1.0 - tail]))
        return low, high

    def at(self, latent: int = 0) -> Entries:
        """Return the draws of a latent column."""
        return self.posterior.entries(self.rows, self.first + latent, self.posterior.noise).choose(self.chosen)

    def below(self, cuts: Floats, latent: int = 0) -> Iterator[Floats]:
        """Yield the probability (S, n) that a latent number is below each cut point."""
        entries = self.at(latent)
        for cut in cuts:
            yield np.exp(entries.log_probability(-np.inf, cut))

    def drawn(self, rng: np.random.Generator, latent: int = 0) -> Floats:
        """Draw latent numbers (S, n) with their noise, between the limits if there are any."""
        return self.at(latent).draw(rng, *(self.limits or ()))


def bytes_of_draws(posterior: Posterior) -> int:
    """Return how much memory the draws of an entry take, with what is computed from them."""
    return 64 * posterior.n_chains * posterior.n_draws


def values_of_entries(
    posterior: Posterior,
    rows: Indices,
    first: Indices,
    limits: tuple[Floats, Floats],
    values_of: Callable[[Draws], Any],
    n_copies: int = 1,
    chosen: Any = slice(None),
) -> Array:
    """Return the values (n_copies, n) that a function gives for draws of entries, of some entries at a time."""
    low, high = limits  # NaN for entries without them, equal where they say what an entry is
    found = np.empty((n_copies, len(rows)), object)
    found[:, low == high] = low[low == high]
    for is_limited, where in ((False, np.isnan(low)), (True, low < high)):
        places = np.flatnonzero(where)
        for part in tiles(len(places), bytes_of_draws(posterior)):
            at = places[part]
            between = (low[at], high[at]) if is_limited else None
            found[:, at] = values_of(Draws(posterior, rows[at], first[at], chosen, between))
    return found


@dataclass(frozen=True)
class Number:
    """A column of numbers, between two bounds at which or beyond which a latent number is cut."""

    name: Any
    low: float = -np.inf
    high: float = np.inf
    is_whole: bool = False
    constant: float | None = None  # of enough equal entries

    @property
    def latent_names(self) -> list[str]:
        """Names of the latent columns."""
        return [str(self.name)]

    def encode(self, column: pd.Series, known: Bools) -> Latent:
        """Return the latent number of each entry."""
        values = _numbers(column, known, self.name)
        half = 0.5 if self.is_whole else 0.0
        if self.is_whole:
            _refuse(np.mod(values, 1.0) > 0.0, values, column, self.name, "a whole number")
        is_outside = (values < self.low) | (values > self.high)
        _refuse(is_outside, values, column, self.name, f"between {self.low:g} and {self.high:g}")
        lower = np.where(values == self.high, self.high - half, np.nan)
        upper = np.where(values == self.low, self.low + half, np.nan)
        return Latent(values[:, None], lower[:, None], upper[:, None])

    def predict(self, draws: Draws) -> Floats:
        """Return the mean of the values."""
        if draws.limits is None and self.constant is not None:
            return np.full(len(draws.rows), self.constant)
        if draws.limits is not None or (self.low == -np.inf and self.high == np.inf):
            return self.valid(draws.mean())
        entries = draws.at()
        means, deviations, law = entries.means, entries.deviations, entries.law
        low, high = (np.broadcast_to((end - means) / deviations, means.shape) for end in (self.low, self.high))
        infinite, mean, inside = np.full_like(means, np.inf), np.zeros_like(means), np.ones_like(means)
        for bound, ends in ((self.low, (-infinite, low)), (self.high, (high, infinite))):
            if np.isfinite(bound):
                mass = np.exp(law.log_probability(*ends))
                mean, inside = mean + mass * bound, inside - mass
        with np.errstate(all="ignore"):  # where nothing is between the bounds, which then does not count
            between = np.clip(means + deviations * law.mean_between(low, high), self.low, self.high)
        mean += np.where(inside > 0.0, inside * np.nan_to_num(between, posinf=0.0, neginf=0.0), 0.0)
        return self.valid(mean.mean(axis=0))

    def ends(self, draws: Draws, prob: float) -> tuple[Floats, Floats]:
        """Return the ends of the central interval."""
        low, high = draws.interval(prob)
        return self.valid(low), self.valid(high)

    def draw(self, draws: Draws, rng: np.random.Generator) -> Floats:
        """Draw values (S, n)."""
        return self.valid(draws.drawn(rng))

    def valid(self, values: Floats) -> Floats:
        """Return the values that latent numbers stand for."""
        values = np.clip(values, self.low, self.high)
        return np.rint(values) if self.is_whole else values


@dataclass(frozen=True)
class Ordered:
    """A column of ordered categories, or of whole numbers of which each is observed often (`is_whole`)."""

    name: Any
    categories: Array
    cuts: Floats
    is_whole: bool = False

    @classmethod
    def learn(cls, name: Any, categories: Array, column: pd.Series, known: Bools, is_whole: bool = False) -> Ordered:
        """Return the column with cut points from the shares of its categories."""
        codes = codes_of(column, known, categories, name, unseen="error")
        counts = np.bincount(codes[codes >= 0], minlength=len(categories)).astype(float)
        # As many entries are shared among all categories as there are categories with one entry (Good and Turing).
        counts += max(1.0, np.sum(counts == 1.0)) / len(categories)
        return cls(name, categories, ndtri(np.cumsum(counts)[:-1] / counts.sum()), is_whole)

    @property
    def latent_names(self) -> list[str]:
        """Names of the latent columns: none if there is only one category."""
        return [str(self.name)] if len(self.cuts) else []

    def encode(self, column: pd.Series, known: Bools) -> Latent:
        """Return between which cut points the latent number of each entry lies."""
        if self.is_whole:  # beyond the fitted ones is the last one
            values = np.clip(_numbers(column, known, self.name), self.categories[0], self.categories[-1])
            codes = np.where(known, np.searchsorted(self.categories, values), -1)
        else:
            codes = codes_of(column, known, self.categories, self.name, unseen="warn")
        return _between(codes, np.concatenate([[-np.inf], self.cuts, [np.inf]])) if len(self.cuts) else _nothing(column)

    def probabilities(self, draws: Draws) -> Floats:
        """Return the probability (n, C) of each category."""
        below = [p.mean(axis=0) for p in draws.below(self.cuts)] if len(self.cuts) else []
        ends = np.zeros(len(draws.rows)), np.ones(len(draws.rows))
        return np.maximum(np.diff([ends[0], *below, ends[1]], axis=0), 0.0).T

    def predict(self, draws: Draws) -> Array:
        """Return the most probable category; of numbers, the mean as a whole number."""
        found = self.probabilities(draws)
        return np.rint(found @ self.categories) if self.is_whole else self.categories[found.argmax(axis=1)]

    def ends(self, draws: Draws, prob: float) -> tuple[Array, Array]:
        """Return the first and the last category of the central interval."""
        below = np.cumsum(self.probabilities(draws), axis=1)[:, :-1]
        tail = 0.5 * (1.0 - prob)
        low, high = (below <= tail).sum(axis=1), (below < 1.0 - tail).sum(axis=1)
        return self.categories[low], self.categories[high]

    def draw(self, draws: Draws, rng: np.random.Generator) -> Array:
        """Draw categories (S, n)."""
        if not len(self.cuts):
            return np.broadcast_to(self.categories, draws.shape)
        return self.categories[np.searchsorted(self.cuts, draws.drawn(rng))]


@dataclass(frozen=True)
class Categorical:
    """A column of categories without an order, the most frequent first; each but the last has a latent column."""

    name: Any
    categories: Array
    cuts: Floats
    is_whole: ClassVar[bool] = False

    @classmethod
    def learn(cls, name: Any, column: pd.Series, known: Bools) -> Categorical:
        """Return the column with cut points from the shares of its categories among those that come after them."""
        try:
            found = Counter(column[known].astype(object)).most_common()
        except TypeError:
            raise TypeError(
                f"X has values in column {name!r} that cannot be categories: they are not hashable. Leave it as it is "
                f"with ignore=[{name!r}]"
            ) from None
        counts = np.array([count for _, count in found], float) + 1.0 / len(found)
        left = np.cumsum(counts[::-1])[::-1]
        return cls(name, _array([value for value, _ in found]), ndtri(1.0 - counts[:-1] / left[:-1]))

    @property
    def latent_names(self) -> list[str]:
        """Names of the latent columns."""
        return [f"{self.name} = {value}" for value in self.categories[:-1]]

    def encode(self, column: pd.Series, known: Bools) -> Latent:
        """Return whether each latent number is above its cut point; missing after the category of the entry."""
        codes = codes_of(column, known, self.categories, self.name, unseen="warn")
        parts = []
        for category, cut in enumerate(self.cuts):
            asked = np.where(codes >= category, codes == category, -1).astype(np.intp)
            parts.append(_between(asked, np.array([-np.inf, cut, np.inf])))
        return Latent(*map(np.hstack, zip(*parts, strict=True))) if parts else _nothing(column)

    def probabilities(self, draws: Draws) -> Floats:
        """Return the probability (n, C) of each category."""
        found, left = [], np.ones(())
        for latent, cut in enumerate(self.cuts):
            (no,) = draws.below(np.array([cut]), latent)
            found.append((left * (1.0 - no)).mean(axis=0))
            left = left * no
        return np.stack([*found, left.mean(axis=0) if found else np.ones(len(draws.rows))], axis=1)

    def predict(self, draws: Draws) -> Array:
        """Return the most probable category."""
        return self.categories[self.probabilities(draws).argmax(axis=1)]

    def ends(self, draws: Draws, prob: float) -> tuple[Array, Array]:
        """Return nothing: categories without an order have no interval."""
        nothing = np.full(len(draws.rows), None, object)
        return nothing, nothing

    def draw(self, draws: Draws, rng: np.random.Generator) -> Array:
        """Draw categories (S, n)."""
        codes = np.full(draws.shape, len(self.cuts))
        for latent, cut in reversed(list(enumerate(self.cuts))):
            codes = np.where(draws.drawn(rng, latent) > cut, latent, codes)
        return self.categories[codes]


# --- which kind a column has


def check_kind(name: Any, kind: Any) -> None:
    """Raise an error if what a user gives as the kind of a column is none."""
    if not isinstance(kind, (tuple, list)) and kind not in KINDS:
        words = ", ".join(map(repr, KINDS))
        raise ValueError(f"kinds[{name!r}] must be {words}, a pair of bounds or a list of {_ORDER}, got {kind!r}")
    is_pair = isinstance(kind, tuple) and len(kind) == 2 and all(isinstance(end, Real) for end in kind)
    if isinstance(kind, tuple) and not (is_pair and kind[0] < kind[1]):
        raise ValueError(
            f"kinds[{name!r}] must be a pair of numbers, the lower bound and a larger one, not NaN, got {kind!r}"
        )
    if isinstance(kind, list):
        twice = [category for place, category in enumerate(kind) if category in kind[:place]]
        if twice:
            raise ValueError(f"kinds[{name!r}] must name each category once, got {twice[0]!r} twice")


def learn(
    name: Any, column: pd.Series, known: Bools, kind: Any, is_limited: bool = False
) -> Number | Ordered | Categorical:
    """Return the column of a kind, which is None for the one that its dtype says; one with limits is of numbers."""
    if kind is None:
        kind = kind_of(column[known])
    if isinstance(kind, list):
        return Ordered.learn(name, _array(kind), column, known)
    if kind == "categorical":
        return Categorical.learn(name, column, known)
    if kind in ("ordered", "binary"):
        return Ordered.learn(name, _in_order(name, column, known, kind), column, known)
    low, high = kind if isinstance(kind, tuple) else (0.0 if kind == "nonnegative" else -np.inf, np.inf)
    whole = kind == "whole" or types.is_integer_dtype(column.dtype)
    values = _numbers(column, known, name)[known]
    if kind == "whole" and (values >= 0.0).all():
        low = 0.0
    number = Number(name, float(low), float(high), whole)
    number.encode(column, known)  # raises an error if a value does not fit
    distinct = np.unique(values)
    if is_limited or not len(values) or len(values) < ENTRIES_EACH * len(distinct):
        return number
    if not whole:
        is_inside = len(distinct) == 1 and low < distinct[0] < high  # a bound stands for what is beyond it
        return replace(number, constant=float(distinct[0])) if is_inside else number
    ends = (low, high) if isinstance(kind, tuple) and np.isfinite(low) and np.isfinite(high) else distinct[[0, -1]]
    support = (
        np.arange(np.ceil(ends[0]), ends[1] + 1.0) if ends[1] - ends[0] <= MAX_UNSEEN * len(distinct) else distinct
    )
    return Ordered.learn(name, support, column, known, is_whole=True)


_ORDER = "all categories in their order"


KIND_OF = {"boolean": "binary", "integer": "whole", "floating": "number", "mixed-integer-float": "number"}
KIND_OF |= {"decimal": "number", **dict.fromkeys(("string", "mixed-integer", "mixed", "empty"), "categorical")}
"""Kinds by what pandas infers from a column."""


def kind_of(values: pd.Series) -> str:
    """Return the kind that the dtype of a column says, or the values of a column of objects."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        return "ordered" if values.dtype.ordered else "categorical"
    found = types.infer_dtype(values, skipna=True)
    return KIND_OF.get(found, f"of dtype {found}")


def _in_order(name: Any, column: pd.Series, known: Bools, kind: str) -> Array:
    """Return the categories of a column in their order."""
    if isinstance(column.dtype, pd.CategoricalDtype) and (column.dtype.ordered or kind == "binary"):
        found = column.dtype.categories.tolist()
    elif types.is_bool_dtype(column.dtype):
        found = [False, True]
    else:
        found = list(dict.fromkeys(column[known].tolist()))
        with contextlib.suppress(TypeError):
            found = sorted(found)
        if kind == "ordered" and not all(isinstance(value, (int, float, np.number)) for value in found):
            raise ValueError(
                f"kinds[{name!r}] is 'ordered', but the order of words is not known: pass a list of {_ORDER}"
            )
    if kind == "binary" and len(found) > 2:
        raise ValueError(f"X must have at most two values in column {name!r}, whose kind is 'binary', got {len(found)}")
    return _array(found)


def _array(values: list[Any]) -> Array:
    """Return an array of any objects, one element each."""
    out = np.empty(len(values), object)
    out[:] = values
    return out


def _numbers(column: pd.Series, known: Bools, name: Any) -> Floats:
    """Return the numbers of a column, NaN where they are missing."""
    out = np.full(len(column), np.nan)
    try:
        is_text = types.is_string_dtype(column.dtype) and types.infer_dtype(column[known]) == "string"
        if is_text or column.dtype.kind in "mM":  # of which NumPy makes numbers
            raise TypeError
        out[known] = column[known].to_numpy(np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"X must have numbers in column {name!r}, whose kind is one of numbers, got {column.dtype}"
        ) from None
    _refuse(np.isinf(out), out, column, name, "finite")
    return out


def codes_of(column: pd.Series, known: Bools, categories: Array, name: Any, *, unseen: str) -> Ints:
    """Return the positions of values among categories, -1 where they are missing or not among them."""
    place = {value: code for code, value in enumerate(categories.tolist())}
    found = np.full(len(column), -1, np.intp)
    values = column[known].tolist()
    found[known] = [place.get(value, -1) for value in values]
    others = [value for value in values if value not in place] if unseen != "ignore" else []
    if others and unseen == "error":
        raise ValueError(f"X has the value {others[0]!r} in column {name!r}, which its kind does not list")
    if others:
        warnings.warn(
            f"column {name!r} has values that were not there in fit, such as {others[0]!r}: they stay as they are, and "
            "have no effect on other columns",
            UserWarning,
            stacklevel=2,
        )
    return found


def _between(codes: Ints, cuts: Floats) -> Latent:
    """Return limits from cut points, infinite ones included, and numbers that stand for the entries."""
    missing = codes < 0
    lower, upper = (np.where(missing, np.nan, cuts[np.maximum(codes, 0) + side])[:, None] for side in (0, 1))
    return Latent(np.full_like(lower, np.nan), lower, upper)


def _nothing(column: pd.Series) -> Latent:
    return Latent(*(np.empty((len(column), 0)),) * 3)


def _refuse(wrong: Bools, values: Floats, column: pd.Series, name: Any, wanted: str) -> None:
    """Raise an error that names the first value that is wrong, and its row."""
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        raise ValueError(f"X must be {wanted} in column {name!r}, got {values[at]:g} in row {column.index[at]}")
