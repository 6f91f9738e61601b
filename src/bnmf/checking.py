"""How well entries of a user's own table are predicted, compared with simpler imputers."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.experimental import enable_iterative_imputer  # noqa: F401 (makes the import below possible)
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from bnmf.data.folds import Fold, folds
from bnmf.data.observed import ObservedMatrix
from bnmf.distributed import refuse_cluster
from bnmf.estimator import BayesianNMF
from bnmf.imputer import ANY_TABLE
from bnmf.posterior.calibration import PROB, Calibration
from bnmf.posterior.summary import table_html
from bnmf.posterior.verdict import POOR, Verdict, on_intervals, on_methods, on_use
from bnmf.sampler.chains import LongRunWarning
from bnmf.selection import complete_fit, model_of_many_fits
from bnmf.utils import arguments
from bnmf.utils.progress import counted
from bnmf.utils.typing import Floats

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
        (`error`, the mean over the repeats, with the `lowest` and the `highest`), the mean of their absolute errors in
        these units, by which the verdict compares methods (`absolute_error`), the part of the hidden entries within the
        90% interval (`coverage`, for bnmf only), and the `seconds` of a repeat (the median).
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


Predict = Callable[[Fold], dict[str, Any]]
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

    The entries are divided at random into parts, so that no part has all entries of a row or column. Each repeat hides
    another part, which is predicted from the rest by the model of :class:`NMFImputer`, by the mean of its column, and
    by scikit-learn's KNNImputer and IterativeImputer after scaling. This tells whether bnmf is the right tool for a
    table, as far as its missing entries are like the observed ones.

    Parameters
    ----------
    X : array-like or DataFrame of shape (n_samples, n_features)
        A dense table; NaN is missing. Entries of constant columns are not compared.
    estimator : BayesianNMF, optional
        The model; by default that of :class:`NMFImputer`.
    lower, upper : array-like, DataFrame, mapping or float, optional
        Limits of entries, as in :meth:`BayesianNMF.fit`. Limited entries are not compared, and the other imputers get
        the limit in their place, or the middle of both.
    n_repeats : int, default=3
        How often a part is hidden.
    fraction : float, default=0.1
        The share of each part in the observed entries, at most 0.5, to which it is as near as equal parts can be. No
        entry is hidden twice, so `n_repeats` times `fraction` is at most 1.
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
    if arguments.probability(fraction, "fraction") > min(0.5, (1.0 + 1e-9) / n_repeats):
        raise ValueError(
            "fraction must be at most 0.5, and n_repeats times fraction at most 1, because no entry is hidden twice, "
            f"got {n_repeats} times {fraction:g}"
        )
    arguments.flag(progress, "progress")
    model = model_of_many_fits(BayesianNMF(**ANY_TABLE) if estimator is None else estimator, random_state)
    refuse_cluster(X)
    if sp.issparse(X):
        raise TypeError(
            "check_table is for dense tables with NaN for missing entries, because the imputers that it compares with "
            f"are: got a sparse matrix ({type(X).__name__})"
        )
    data = ObservedMatrix.from_data(X, lower=lower, upper=upper, negative=model.takes_negative)
    exact = data.dense_rows(np.arange(data.shape[0]))
    if data.limits is not None:
        exact[data.limits.rows, data.limits.columns] = np.nan
    columns = pd.DataFrame(exact)
    scale = columns.std(ddof=0).where(columns.nunique() > 1).to_numpy()
    parts = _parts(data, scale, n_repeats, fraction, np.random.default_rng(model.random_state))
    others, notes = _others(data.shape)
    methods: dict[str, Predict] = {BNMF: partial(_predict, model, progress), **others}
    entries, seconds = _run(methods, parts, scale, progress)
    n_failed = int(entries.groupby("repeat")["disagree"].first().sum())
    if n_failed:
        notes.append(
            f"the chains' predictions disagree in {n_failed} of {n_repeats} repeats; more draws may lower the error of "
            "bnmf"
        )
    errors = {method: np.sqrt(entries[method].to_numpy()) for method in methods}
    at = entries["column"].to_numpy()
    hidden = Calibration(at, entries["inside"].to_numpy(), errors[BNMF], errors[COLUMN_MEAN])
    # NMFImputer has an offset.
    verdict = Verdict((*on_methods(errors), *on_intervals(hidden, data.column_names, has_offset=True)))
    by_column = hidden.by_column().reindex(range(data.shape[1]))
    by_column = by_column.assign(hidden=by_column["n"].fillna(0).astype(int))[["hidden", "error", "coverage"]]
    by_column.index = pd.RangeIndex(data.shape[1]) if data.column_names is None else data.column_names
    return TableCheck(_table(entries, seconds), by_column, verdict, tuple(notes))


def _parts(
    data: ObservedMatrix, scale: Floats, n_repeats: int, fraction: float, rng: np.random.Generator
) -> list[Fold]:
    """Return parts of the entries to hide in turn, with those of them to compare: exact, in columns with a scale."""
    found = []
    with suppress(ValueError):  # of too many folds
        for part in islice(folds(data, round(1.0 / fraction), rng, balanced=True), n_repeats):
            is_exact = True if part.lower is None else np.isnan(part.lower)
            at = np.flatnonzero(is_exact & ~np.isnan(scale[part.columns]))
            found.append(Fold(part.rest, part.rows[at], part.columns[at], part.values[at], part.weights[at]))
    if fraction * data.n_observed < 1.0 or not found or not all(len(part.rows) for part in found):
        raise ValueError(
            f"X is too small to be checked: it has {data.n_observed:,} observed entries, and a part of {fraction:g} of "
            "them has none to compare, in a column that is not constant and not alone in its row or column"
        )
    return found


# --- methods


def _predict(model: BayesianNMF, hides_length: bool, fold: Fold) -> dict[str, Any]:
    """Return the values of bnmf, and whether its intervals contain the hidden entries."""
    with warnings.catch_warnings():
        if hides_length:
            warnings.simplefilter("ignore", LongRunWarning)
        posterior = complete_fit(model, fold.rest)
    low, high = posterior.interval(PROB, fold.rows, fold.columns)
    return {
        "values": posterior.mean(fold.rows, fold.columns),
        "inside": (low <= fold.values) & (fold.values <= high),
        "disagree": on_use(posterior)["predictions"].level == POOR,
    }


def _impute(imputer: Any, fold: Fold) -> dict[str, Any]:
    """Return the values of another imputer after scaling."""
    scaler, rest = StandardScaler(), fold.rest.dense_rows(np.arange(fold.rest.shape[0]))
    known = fold.rest.columns.n_observed > 0  # the imputers drop the other columns
    # Their regressions are so small that threads cost more than they save.
    with warnings.catch_warnings(action="ignore"), threadpool_limits(1):
        rest[:, known] = scaler.inverse_transform(clone(imputer).fit_transform(scaler.fit_transform(rest[:, known])))
    return {"values": rest[fold.rows, fold.columns]}


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
    methods: dict[str, Predict], parts: list[Fold], scale: Floats, progress: bool
) -> tuple[pd.DataFrame, dict[str, float]]:
    """Return the hidden entries with squared errors of each method, and the median seconds of each."""
    tables = []
    seconds: dict[str, list[float]] = {method: [] for method in methods}
    with counted(len(methods) * len(parts), "fits", progress) as show:
        for number, part in enumerate(parts):
            table = pd.DataFrame({"repeat": number, "column": part.columns})
            for method, predict in methods.items():
                began = time.perf_counter()
                found = predict(part)
                seconds[method].append(time.perf_counter() - began)
                table[method] = ((found.pop("values") - part.values) / scale[part.columns]) ** 2
                table = table.assign(**found)
                show(sum(map(len, seconds.values())))
            tables.append(table)
    # The first fit may include what is loaded once, so not the mean.
    medians = {method: float(np.median(times)) for method, times in seconds.items()}
    return pd.concat(tables, ignore_index=True), medians


# --- what came out


def _table(entries: pd.DataFrame, seconds: dict[str, float]) -> pd.DataFrame:
    """Return errors over the repeats, coverage and seconds of each method."""
    errors = np.sqrt(entries.groupby("repeat")[list(seconds)].mean())
    table = pd.DataFrame({"error": errors.mean(), "lowest": errors.min(), "highest": errors.max()})
    table["absolute_error"] = np.sqrt(entries[list(seconds)]).mean()
    table["coverage"] = pd.Series({BNMF: entries["inside"].mean()})
    table["seconds"] = pd.Series(seconds)
    return table.rename_axis("method")
