"""How well entries of a user's own table are predicted, compared with simpler imputers."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401 (makes the import below possible)
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from bnmf.data.containers import as_floats, check_values
from bnmf.data.limits import with_limits
from bnmf.distributed import refuse_cluster
from bnmf.estimator import BayesianNMF
from bnmf.imputer import ANY_TABLE, NMFImputer
from bnmf.posterior.calibration import PROB, Calibration
from bnmf.posterior.summary import table_html
from bnmf.posterior.verdict import POOR, Verdict, on_intervals, on_methods, on_use
from bnmf.sampler.chains import LongRunWarning
from bnmf.sampler.run import Ending, InterruptedRunWarning
from bnmf.selection import model_of_many_fits
from bnmf.utils import arguments
from bnmf.utils.progress import counted
from bnmf.utils.typing import Bools, Floats, Indices

BNMF, COLUMN_MEAN, KNN, ITERATIVE = "bnmf", "column mean", "KNNImputer", "IterativeImputer"

# IterativeImputer fits a regression for each column in each of ten rounds. With more columns than the first number each
# is predicted from some others, with more than the second it is left out.
MAX_COLUMNS_OF_ITERATIVE = (60, 500)
N_NEAREST_FEATURES = 20
# KNNImputer computes the distances of all pairs of rows.
MAX_ROWS_OF_KNN = 10_000


@dataclass(frozen=True, repr=False)
class TableCheck:
    """How well hidden entries of a table are predicted, by bnmf and by simpler imputers.

    Attributes
    ----------
    table : DataFrame
        For each method: the root mean squared error of hidden entries in units of their column's standard deviation
        (`error`, the mean over the repeats, with the `lowest` and the `highest`), the part of the hidden entries
        within the 90% interval (`coverage`, for bnmf only), and the `seconds` of a repeat (the median).
    by_column : DataFrame
        For each column of X: the number of entries that were `hidden`, and `error` and `coverage` of bnmf there. NaN
        where nothing was hidden.
    verdict : Verdict
        What the numbers mean: findings on the errors, compared with those of the others, and on the intervals.
    notes : tuple of str
        What was left out, and what is wrong with the fits.
    """

    table: pd.DataFrame
    by_column: pd.DataFrame
    verdict: Verdict
    notes: tuple[str, ...] = ()

    @property
    def conclusion(self) -> str:
        """The verdict in a few sentences."""
        return " ".join(finding.text for finding in self.verdict)

    @property
    def n_hidden(self) -> int:
        """Number of entries that were hidden, over all repeats."""
        return int(self.by_column["hidden"].sum())

    def __repr__(self) -> str:
        shown = self.table.to_string(float_format="{:.3f}".format, na_rep="")
        return "\n".join([shown, self.conclusion, *(f"Note: {note}" for note in self.notes)])

    def _repr_html_(self) -> str:
        return table_html(self.table, self.conclusion, *(f"Note: {note}" for note in self.notes))


class _Repeat(NamedTuple):
    """A table with some entries hidden: the rest with NaN in their place, their positions and values."""

    rest: Floats
    rows: Indices
    columns: Indices
    values: Floats


Predict = Callable[[_Repeat], dict[str, Any]]
"""A method: `values` of hidden entries; of bnmf also which are `inside` intervals, and whether chains `disagree`."""


def check_table(
    X: Any,
    *,
    estimator: BayesianNMF | None = None,
    lower: Any = None,
    upper: Any = None,
    n_repeats: int = 3,
    fraction: float = 0.1,
    random_state: Any = None,
    progress: bool = False,
) -> TableCheck:
    """Hide a part of a table a few times, and see how well it is predicted.

    Each repeat hides other entries, at random, so that every row and column keeps at least one. They are predicted from
    the rest by :class:`NMFImputer`, by the mean of their column, and by scikit-learn's KNNImputer and IterativeImputer
    after scaling. This tells whether bnmf is the right tool for a table, as far as its missing entries are like
    the observed ones.

    Parameters
    ----------
    X : array-like or DataFrame of shape (n_samples, n_features)
        A dense table; NaN is missing. Columns that are constant are not hidden, and those without an observed entry
        are left out.
    estimator : BayesianNMF, optional
        The model; by default that of :class:`NMFImputer`.
    lower, upper : array-like, DataFrame, mapping or float, optional
        Limits of entries, as in :meth:`BayesianNMF.fit`. Limited entries are not hidden, and the other imputers get the
        limit in their place, or the middle of both.
    n_repeats : int, default=3
        How often a part is hidden.
    fraction : float, default=0.1
        Part of the observed entries that each repeat hides. No entry is hidden twice, so `n_repeats` times `fraction`
        is at most 1.
    random_state : int, RandomState, Generator or None, default=None
        An integer makes the choice of hidden entries and the fits reproducible. None takes that of the estimator.
    progress : bool, default=False
        Show how many fits are done on standard error.

    Returns
    -------
    TableCheck
        Errors, coverage and seconds, and a conclusion.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.exponential(size=(40, 2)) @ rng.exponential(size=(2, 8)) + 0.1 * rng.random((40, 8))
    >>> check = check_table(X, n_repeats=1, random_state=0)
    >>> list(check.table.index)
    ['bnmf', 'column mean', 'KNNImputer', 'IterativeImputer']
    >>> bool(check.table.loc["bnmf", "error"] < 0.5 * check.table.loc["column mean", "error"])
    True
    """
    arguments.whole_number(n_repeats, "n_repeats", 1)
    if n_repeats * arguments.probability(fraction, "fraction") > 1.0 + 1e-9:
        raise ValueError(
            f"n_repeats times fraction must be at most 1, because no entry is hidden twice, got {n_repeats} times "
            f"{fraction:g}"
        )
    arguments.flag(progress, "progress")
    model = model_of_many_fits(BayesianNMF(**ANY_TABLE) if estimator is None else estimator, random_state)
    names = X.columns if isinstance(X, pd.DataFrame) else None
    array = _dense(X)
    array, _, limited = with_limits(array, ~np.isnan(array), None, lower, upper, names, negative=True)
    limits, is_exact = {}, ~np.isnan(array)
    if limited is not None:  # whose entries have a number that stands for them
        at = limited.rows, limited.columns
        is_exact[at] = False
        for name in ("lower", "upper"):
            limits[name] = np.full(array.shape, np.nan)
            limits[name][at] = getattr(limited, name)
    known = np.flatnonzero(is_exact.any(axis=0))
    used, is_exact = array[:, known], is_exact[:, known]
    limits = {name: side[:, known] for name, side in limits.items()}
    exact = np.where(is_exact, used, np.nan)
    is_constant = np.nanmin(exact, axis=0) == np.nanmax(exact, axis=0)
    scale = np.where(is_constant, 0.0, np.nanstd(exact, axis=0))
    rng = np.random.default_rng(model.random_state)
    repeats = _hidden_parts(used, is_exact & ~is_constant, n_repeats, fraction, rng)
    others, notes = _others(used.shape)
    methods: dict[str, Predict] = {BNMF: partial(_predict, model, progress, limits), **others}
    entries, seconds = _run(methods, repeats, scale, progress)
    n_failed = int(entries.groupby("repeat")["disagree"].first().sum())
    if n_failed:
        notes.append(
            f"the chains' predictions disagree in {n_failed} of {n_repeats} repeats; more draws may lower the error of "
            "bnmf"
        )
    errors = {method: np.sqrt(entries[method].to_numpy()) for method in methods}
    hidden = Calibration(known[entries["column"]], entries["inside"].to_numpy(), errors[BNMF], errors[COLUMN_MEAN])
    # NMFImputer has an offset.
    verdict = Verdict((*on_methods(errors), *on_intervals(hidden, names, has_offset=True)))
    by_column = hidden.by_column().reindex(range(array.shape[1]))
    by_column = by_column.assign(hidden=by_column["n"].fillna(0).astype(int))[["hidden", "error", "coverage"]]
    by_column.index = pd.RangeIndex(array.shape[1]) if names is None else names
    return TableCheck(_table(entries, seconds), by_column, verdict, tuple(notes))


def _dense(X: Any) -> Floats:
    """Return X as an array with NaN for missing entries, or raise an error."""
    refuse_cluster(X)
    if sp.issparse(X):
        raise TypeError(
            "check_table is for dense tables with NaN for missing entries, because the imputers that it compares with "
            f"are: got a sparse matrix ({type(X).__name__})"
        )
    array = as_floats(X)
    if np.isnan(array).all():
        raise ValueError("X has no observed entry at all: there is nothing to hide")
    check_values(array[~np.isnan(array)], negative=True)
    return array


def _hidden_parts(
    array: Floats, may_hide: Bools, n_repeats: int, fraction: float, rng: np.random.Generator
) -> list[_Repeat]:
    """Return disjoint parts of the entries that may be hidden, which leave something of each row and column."""
    if not may_hide.any():
        raise ValueError("X has no column whose observed entries differ: there is nothing to predict")
    seen = ~np.isnan(array)
    is_alone = (seen.sum(axis=1, keepdims=True) == 1) | (seen.sum(axis=0) == 1)
    rows, columns = np.nonzero(seen & may_hide & ~is_alone)
    order = rng.permutation(len(rows))
    n_hidden = int(fraction * len(rows) + 1e-9)
    if n_hidden == 0:
        raise ValueError(
            f"X is too small to be checked: it has {len(rows)} observed entries that can be hidden (in columns that "
            f"are not constant, and not alone in a row or column), and fraction={fraction:g} of them is less than one"
        )
    repeats = []
    for number in range(n_repeats):
        chosen = order[number * n_hidden : (number + 1) * n_hidden]
        hidden = np.zeros(array.shape, bool)
        hidden[rows[chosen], columns[chosen]] = True
        lost = np.flatnonzero((hidden == seen).all(axis=1) & seen.any(axis=1))
        hidden[lost, hidden[lost].argmax(axis=1)] = False
        lost = np.flatnonzero((hidden == seen).all(axis=0))
        hidden[hidden[:, lost].argmax(axis=0), lost] = False
        at_rows, at_columns = np.nonzero(hidden)
        repeats.append(_Repeat(np.where(hidden, np.nan, array), at_rows, at_columns, array[hidden]))
    return repeats


# --- methods


def _predict(model: BayesianNMF, hides_length: bool, limits: dict[str, Floats], repeat: _Repeat) -> dict[str, Any]:
    """Return the values of `bnmf impute`, and whether its intervals contain the hidden entries."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it becomes a note
        warnings.simplefilter("ignore", InterruptedRunWarning)
        if hides_length:
            warnings.simplefilter("ignore", LongRunWarning)
        fitted = NMFImputer(model).fit(repeat.rest, **limits).estimator_
    if fitted.ending_ == Ending.INTERRUPTED:  # a fit keeps what it has, but a comparison needs all
        raise KeyboardInterrupt
    posterior, at = fitted.posterior_, (repeat.rows, repeat.columns)
    low, high = posterior.interval(PROB, *at)
    return {
        "values": posterior.mean(*at),
        "inside": (low <= repeat.values) & (repeat.values <= high),
        "disagree": on_use(posterior)["predictions"].level == POOR,
    }


def _impute(imputer: Any, repeat: _Repeat) -> dict[str, Any]:
    """Return the values of another imputer after scaling."""
    scaler = StandardScaler()
    # Their regressions are so small that threads cost more than they save.
    with warnings.catch_warnings(action="ignore"), threadpool_limits(1):
        filled = scaler.inverse_transform(clone(imputer).fit_transform(scaler.fit_transform(repeat.rest)))
    return {"values": filled[repeat.rows, repeat.columns]}


def _others(shape: tuple[int, ...]) -> tuple[dict[str, Predict], list[str]]:
    """Return the methods to compare with, and which of them are limited because they would take too long."""
    n_rows, n_columns = shape
    imputers, notes = {COLUMN_MEAN: SimpleImputer()}, []
    if n_rows <= MAX_ROWS_OF_KNN:
        imputers[KNN] = KNNImputer()
    else:
        notes.append(f"{KNN} is left out: with {n_rows:,} rows it would take too long")
    with_all, with_some = MAX_COLUMNS_OF_ITERATIVE
    if n_columns <= with_some:
        n_nearest = None if n_columns <= with_all else N_NEAREST_FEATURES
        imputers[ITERATIVE] = IterativeImputer(n_nearest_features=n_nearest, random_state=0)
        if n_nearest is not None:
            notes.append(f"{ITERATIVE} predicts each of {n_columns} columns from {n_nearest} others, to save time")
    else:
        notes.append(f"{ITERATIVE} is left out: with {n_columns:,} columns it would take too long")
    return {method: partial(_impute, imputer) for method, imputer in imputers.items()}, notes


def _run(
    methods: dict[str, Predict], repeats: list[_Repeat], scale: Floats, progress: bool
) -> tuple[pd.DataFrame, dict[str, float]]:
    """Return the hidden entries with squared errors of each method, and the median seconds of each."""
    parts = []
    seconds: dict[str, list[float]] = {method: [] for method in methods}
    with counted(len(methods) * len(repeats), "fits", progress) as show:
        for number, repeat in enumerate(repeats):
            part = pd.DataFrame({"repeat": number, "column": repeat.columns})
            for method, predict in methods.items():
                began = time.perf_counter()
                found = predict(repeat)
                seconds[method].append(time.perf_counter() - began)
                part[method] = ((found.pop("values") - repeat.values) / scale[repeat.columns]) ** 2
                part = part.assign(**found)
                show(sum(map(len, seconds.values())))
            parts.append(part)
    # The first fit may include what is loaded once, so not the mean.
    medians = {method: float(np.median(times)) for method, times in seconds.items()}
    return pd.concat(parts, ignore_index=True), medians


# --- what came out


def _table(entries: pd.DataFrame, seconds: dict[str, float]) -> pd.DataFrame:
    """Return errors over the repeats, coverage and seconds of each method."""
    errors = np.sqrt(entries.groupby("repeat")[list(seconds)].mean())
    table = pd.DataFrame({"error": errors.mean(), "lowest": errors.min(), "highest": errors.max()})
    table["coverage"] = pd.Series({BNMF: entries["inside"].mean()})
    table["seconds"] = pd.Series(seconds)
    return table.rename_axis("method")
