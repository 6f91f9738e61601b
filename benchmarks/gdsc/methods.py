"""The methods that are compared: one entry each, so that a further one is a line here.

A method has a label and a `forecast` of hidden entries, given the matrix without them.

A response is a number that was cut to a range and truncated. More than half of them are 0 or the cap, and a density may
be as high as it likes at a value that many entries share. A probability may not: that of v is the one of all numbers
from v to v + 1, that of 0 of all below 1, and that of the cap of all from there on.
"""

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy import stats
from scipy.special import logsumexp

from bnmf import BayesianNMF, select_rank
from bnmf.data.folds import folds
from bnmf.data.observed import ObservedMatrix
from bnmf.imputer import ANY_TABLE
from bnmf.model.noise import Law
from bnmf.noise import StudentT
from bnmf.paper import baselines
from bnmf.posterior.posterior import Posterior
from bnmf.posterior.predictions import tiles
from bnmf.priors import L1, L1Squared, L2Squared, LInf
from bnmf.utils.typing import Floats, Indices

PROBABILITY = 0.9
"""Probability of the intervals."""
KS = (5, 10, 20)
"""Numbers of components to choose from."""
# Fits for that choice are short, but of several chains: the mean of one chain errs more, and the more the larger K is.
INNER_FOLDS = 3
CHOOSING = {"n_chains": 3, "burn_in": 150, "n_draws": 50}
# The variance of a baseline's errors in a column counts as many entries with the variance of all columns as well, so
# that a column without any error has no variance of 0.
ENTRIES_OF_ALL_COLUMNS = 2.0


class Forecast(NamedTuple):
    """What a method says of hidden entries, each an array, with the choice it made and the seconds of its last fit."""

    mean: Floats
    log_density: Floats
    log_probability: Floats
    low: Floats
    high: Floats
    choice: str
    seconds: float


class Hidden(NamedTuple):
    """Positions and values of hidden entries."""

    rows: Indices
    columns: Indices
    values: Floats


def bounds(values: Floats, top: float) -> tuple[Floats, Floats]:
    """Return the range of numbers that each value stands for."""
    low = np.floor(values)
    return np.where(low <= 0.0, -np.inf, low), np.where(low >= np.floor(top), np.inf, low + 1.0)


def log_probability(posterior: Posterior, rows: Indices, columns: Indices, low: Floats, high: Floats) -> Floats:
    """Return the log posterior predictive probability of a range for each entry."""
    terms = posterior.log_likelihood(rows, columns, np.zeros(len(rows)), lower=low, upper=high)
    return logsumexp(terms, axis=(0, 1)) - np.log(terms.shape[0] * terms.shape[1])


def recorded_mean(posterior: Posterior, rows: Indices, columns: Indices, top: float) -> Floats:
    """Return the mean of the whole number that would be recorded of each entry."""
    out = np.empty(len(rows))
    for part in tiles(len(rows), 64 * posterior.n_chains * posterior.n_draws):
        draws = posterior.draws_of(rows[part], columns[part], noise=True)
        out[part] = np.floor(np.clip(draws, 0.0, top)).mean(axis=(0, 1))
    return out


@dataclass(frozen=True)
class Model:
    """A BayesianNMF, whose K is the one of `ks` with the smallest error in cross-validation of what is not hidden.

    With a cap, the distances of the data below it are factorised in their place: both are nonnegative. With limits, an
    entry is the range of numbers that it stands for, and a prediction is one of the number that would be recorded.
    """

    label: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    ks: tuple[int, ...] = ()  # empty: that of the settings
    below: float | None = None
    has_limits: bool = False

    def forecast(self, A: Floats, hidden: Hidden, seed: int) -> Forecast:
        """Choose K, fit, and predict."""
        settings: dict[str, Any] = {"n_jobs": 1, "random_state": seed, "offset": None, **self.settings}
        rows, columns, values = hidden
        at_least, below = bounds(values, np.nanmax(A))
        if self.below is not None:
            A, values, at_least, below = self.below - A, self.below - values, self.below - below, self.below - at_least
        with warnings.catch_warnings(action="ignore"):
            if self.ks:
                cheap = BayesianNMF(**(settings | CHOOSING))
                tried = select_rank(A, self.ks, estimator=cheap, n_folds=INNER_FOLDS, random_state=seed).table
                settings["n_components"] = self.ks[int(tried["rmse"].to_numpy().argmin())]
            began = time.process_time()
            limits = dict(zip(("lower", "upper"), bounds(A, np.nanmax(A)), strict=True)) if self.has_limits else {}
            posterior = BayesianNMF(**settings).fit(A, **limits).posterior_
            seconds = time.process_time() - began
        mean, (low, high) = posterior.mean(rows, columns), posterior.interval(PROBABILITY, rows, columns)
        density = posterior.log_predictive_density(rows, columns, values)
        probability = log_probability(posterior, rows, columns, at_least, below)
        if self.has_limits:
            top = np.nanmax(A)
            mean = recorded_mean(posterior, rows, columns, top)
            low, high = (np.floor(np.clip(end, 0.0, top)) for end in (low, high))
        if self.below is not None:  # no less than 0, as all the other intervals
            mean, low, high = self.below - mean, np.maximum(self.below - high, 0.0), self.below - low
        return Forecast(mean, density, probability, low, high, f"K = {posterior.n_components}", seconds)


@dataclass(frozen=True)
class Baseline:
    """A function that fills a matrix, with normal errors of a variance by column.

    Options and variances come from a fifth of what is not hidden, which is hidden for that: errors on entries that
    were fitted would be too small.
    """

    label: str
    fill: Callable[..., Floats]
    options: tuple[Mapping[str, Any], ...] = ({},)

    def forecast(self, A: Floats, hidden: Hidden, seed: int) -> Forecast:
        """Choose the options, estimate the variances, fill, and predict."""
        inner = next(folds(ObservedMatrix.from_data(A), 5, np.random.default_rng(seed), balanced=True))
        B = A.copy()
        B[inner.rows, inner.columns] = np.nan
        with warnings.catch_warnings(action="ignore"):
            errors = [inner.values - self.fill(B, **tried)[inner.rows, inner.columns] for tried in self.options]
            best = int(np.argmin([np.mean(error**2) for error in errors]))
            began = time.process_time()
            filled = self.fill(A, **self.options[best])
            seconds = time.process_time() - began
        rows, columns, values = hidden
        mean, sd = filled[rows, columns], np.sqrt(_variances(errors[best], inner.columns, A.shape[1]))[columns]
        reach = stats.norm.ppf(0.5 + 0.5 * PROBABILITY) * sd
        return Forecast(
            mean,
            np.asarray(stats.norm.logpdf(values, mean, sd)),
            Law().log_probability(*((end - mean) / sd for end in bounds(values, np.nanmax(A)))),
            np.maximum(mean - reach, 0.0),  # as our intervals, and as the data
            np.maximum(mean + reach, 0.0),
            ", ".join(f"{name} = {value}" for name, value in self.options[best].items()),
            seconds,
        )


def _variances(errors: Floats, columns: Indices, n_columns: int) -> Floats:
    """Return the variance of the errors of each column, drawn a little towards that of all."""
    sums = np.bincount(columns, errors**2, minlength=n_columns)
    counts = np.bincount(columns, minlength=n_columns)
    return (sums + ENTRIES_OF_ALL_COLUMNS * np.mean(errors**2)) / (counts + ENTRIES_OF_ALL_COLUMNS)


def _column_mean(A: Floats) -> Floats:
    return baselines.column_mean(A)


def _iterative(A: Floats, nearest: int | None = None) -> Floats:
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401 (makes the import below possible)
    from sklearn.impute import IterativeImputer

    return IterativeImputer(n_nearest_features=nearest, min_value=0.0, random_state=0).fit_transform(A)


def _nmf(A: Floats, K: int) -> Floats:
    return baselines.nmf(A, "squared", n_components=K, random_state=0)


def _nmf_divergence(A: Floats, K: int) -> Floats:
    return baselines.nmf(A, "kullback-leibler", n_components=K, random_state=0)


def _neighbours(A: Floats, rows: int) -> Floats:
    return baselines.nearest_neighbours(A, n_neighbors=rows)


_FEW = tuple({"K": k} for k in (1, 2, 3, 4, 6, 8))
_PAPER = {"scale": None, "noise": "common"}
# With the default noise, by column.
_ANY_TABLE = {name: value for name, value in ANY_TABLE.items() if name != "noise"}
_RAW = {"scale": "matrix", "noise": "common"}
_AROUND_MEAN = {"offset": "mean", **_RAW}
_STUDENT = {"noise": StudentT(10.0, by="both")}
_HALF_NORMAL = L2Squared(by="component")
_BOTH = {"prior": _HALF_NORMAL, "noise": "both"}
_CAP = 100.0  # of the published data

METHODS: dict[str, Model | Baseline] = {
    # Models of the paper that bnmf implements: λ = 0.1, the units of the data, one variance of the noise.
    "gee": Model("GEE, λ = 0.1", {"prior": "gee", **_PAPER}, KS),
    "gl12": Model("GL1², λ = 0.1", {"prior": "gl12", **_PAPER}, KS),
    "gl22": Model("GL2², λ = 0.1", {"prior": "gl22", **_PAPER}, KS),
    "glinf": Model("GL∞, λ = 0.1", {"prior": "glinf", **_PAPER}, KS),
    "gl22inf": Model("GL2²,∞, λ = 0.1", {"prior": "gl22inf", **_PAPER}, KS),
    # The same norms with learned rates, in the default units and with the default noise.
    "l1": Model("L1, rate learned", {"prior": L1()}, KS),
    "l12": Model("L1², rate learned", {"prior": L1Squared()}, KS),
    "l22": Model("L2², rate learned", {"prior": L2Squared()}, KS),
    "linf": Model("L∞, rate learned", {"prior": LInf()}, KS),
    "default": Model("default settings"),
    "default-common": Model("default, one variance and unit", _RAW),
    "default-student": Model("default, Student's t", {"noise": StudentT(None)}),
    "student-both": Model("default, Student's t by row and column", {"noise": StudentT(None, by="both")}),
    "half-normal": Model("half-normal by component", {"prior": _HALF_NORMAL}, KS),
    "half-normal-common": Model("half-normal by component, one variance and unit", {"prior": _HALF_NORMAL, **_RAW}, KS),
    "half-normal-both": Model("half-normal by component, noise by row and column", _BOTH, KS),
    "student10-both": Model("default, Student's t by row and column, 10 df", _STUDENT),
    "below-cap": Model("default prior on 100 - IC50, one variance and unit", _RAW, below=_CAP),
    "below-cap-30": Model(
        "default prior on 100 - IC50, one variance and unit, K = 30", {"n_components": 30, **_RAW}, below=_CAP
    ),
    "below-cap-student10": Model(
        "default prior on 100 - IC50, one unit, Student's t by row and column, 10 df",
        {"noise": StudentT(10.0, by="both"), "scale": "matrix"},
        below=_CAP,
    ),
    "below-cap-half-normal": Model(
        "half-normal by component on 100 - IC50, one variance and unit", {"prior": _HALF_NORMAL, **_RAW}, KS, _CAP
    ),
    # Factors of both signs.
    "normal-common": Model("normal by component, one variance and unit", {"prior": "normal", **_RAW}, KS),
    "laplace-common": Model("Laplace by component, one variance and unit", {"prior": "laplace", **_RAW}, KS),
    "semi-common": Model("exponential W, normal Z, one variance and unit", {"prior": ("ard", "normal"), **_RAW}, KS),
    "normal-mean": Model(
        "normal around the mean, one variance and unit", {"prior": "normal", "offset": "mean", **_RAW}
    ),
    "laplace-mean": Model(
        "Laplace around the mean, one variance and unit", {"prior": "laplace", "offset": "mean", **_RAW}
    ),
    "any-table": Model("settings of NMFImputer, noise by column", _ANY_TABLE),
    "any-table-common": Model("settings of NMFImputer, one variance and unit", {**_ANY_TABLE, **_RAW}),
    "any-table-student": Model(
        "settings of NMFImputer, Student's t by row and column, 10 df",
        {**_ANY_TABLE, "noise": StudentT(10.0, by="both")},
    ),
    # Entries as the ranges of numbers that they stand for: the cap and more, less than 1, or from v to v + 1.
    "limits": Model("limits, default settings", has_limits=True),
    "limits-common": Model("limits, one variance and unit", _RAW, has_limits=True),
    "limits-semi": Model(
        "limits, exponential W, normal Z, one variance and unit", {"prior": ("ard", "normal"), **_RAW}, has_limits=True
    ),
    "limits-any-table": Model("limits, settings of NMFImputer", _ANY_TABLE, has_limits=True),
    "limits-contaminated": Model(
        "limits, settings of NMFImputer, gross errors", {**_ANY_TABLE, "noise": "contaminated"}, has_limits=True
    ),
    "limits-any-table-common": Model(
        "limits, settings of NMFImputer, one variance and unit", {**_ANY_TABLE, **_RAW}, has_limits=True
    ),
    "column-mean": Baseline("column means", _column_mean),
    "additive": Baseline("row + column means", baselines.row_column_mean),
    "neighbours": Baseline("KNNImputer", _neighbours, tuple({"rows": n} for n in (10, 20, 40, 80))),
    "iterative": Baseline("IterativeImputer", _iterative),
    "iterative-nearest": Baseline(
        "IterativeImputer, some columns for each", _iterative, tuple({"nearest": n} for n in (10, 20, 40))
    ),
    "nmf": Baseline("NMF by least squares", _nmf, _FEW),
    "nmf-divergence": Baseline("NMF by divergence", _nmf_divergence, _FEW),
}
"""All methods by the name that the command line takes."""
