"""Findings about a fit as such, whether or not its chains agree."""

from __future__ import annotations

from typing import Any

import numpy as np

from bnmf.data.limits import nearest, representatives
from bnmf.data.observed import ObservedMatrix
from bnmf.model.build import WIDEST_GAP
from bnmf.model.model import Model
from bnmf.posterior.verdict import POOR, USABLE, Finding, named
from bnmf.utils.typing import Floats, Indices

# Rows, and entries in all, at which a fit is compared with the means of the columns.
MAX_ROWS, ROWS_AT_A_TIME = 100, 10
MAX_ENTRIES = 2000
# Squared error over that of the means of the columns from which a fit counts as worse: of all columns, and of one with
# at least so many entries.
WORSE, WORSE_COLUMN, MIN_COMPARED = 1.05, 2.0, 20
# Error that a constant column may have, in its unit.
CONSTANT_ERROR = 0.05
# Share of the exact entries of a column at its smallest or largest value from which they may have been cut there, and
# entries and distinct values that it takes to tell: marks from 1 to 10 end there by nature.
SHARE_AT_END = 0.1
MIN_ENTRIES_OF_COLUMN, MIN_DISTINCT = 20, 11


def of_fit(posterior: Any, data: ObservedMatrix, model: Model) -> tuple[Finding, ...]:
    """Return a finding for each thing that is wrong, or worth a question."""
    found = _unexplained(posterior, data, model), _too_many_components(model), _outlier(model), _at_its_end(data)
    return tuple(finding for finding in found if finding)


def _unexplained(posterior: Any, data: ObservedMatrix, model: Model) -> Finding | None:
    """Compare the posterior mean at some observed entries with the means of their columns."""
    rows, columns, values = _sample_entries(data)
    centre = model.data.columns.sums() / np.maximum(model.data.columns.n_observed, 1)
    if model.units.offset is not None:
        centre += model.units.offset
    scale = np.broadcast_to(model.units.scale, data.shape[1])[columns]
    # Outliers, which Student's t leaves unexplained, pull the means: they count by their size, not by its square.
    power = 1 if model.noise_model.is_heavy_tailed else 2
    sides = data.limits_at(rows, columns)
    error, trivial = (
        np.abs((nearest(values, *sides, predicted) - predicted) / scale) ** power
        for predicted in (posterior.mean(rows, columns), centre[columns])
    )
    by_column = [np.bincount(columns, x, data.shape[1]) for x in (error, trivial)]
    # The means of limited entries are of what stands for them: of yes or no they are the cut point, and no prediction.
    is_exact = np.ones(len(rows), bool) if sides[0] is None else np.isnan(sides[0])
    counts = np.bincount(columns[is_exact], minlength=data.shape[1])
    # Rare values need not be among these entries, and of a constant column the mean has no error at all.
    variance = np.where(model.variances > 0.0, model.variances, CONSTANT_ERROR**2)
    least = np.bincount(columns, minlength=data.shape[1]) * variance ** (power / 2)
    is_worse = (by_column[0] > WORSE_COLUMN * np.maximum(by_column[1], least)) & (counts >= MIN_COMPARED)
    # Entries that count little may be explained badly.
    worse = np.flatnonzero(is_worse & (model.entry_precision is None))
    if error[is_exact].sum() > WORSE * trivial[is_exact].sum():
        advice = (
            "try another `n_components`, `prior` or `offset`, or see whether the data have a low-rank structure at all"
        )
        return Finding(
            "fit", POOR, "the fit explains the observed entries worse than the mean of each column does", advice
        )
    if len(worse):
        advice = "try fewer components or more draws"
        if model.units.offset is None and not any(model.fixed.counts):
            advice = 'columns that vary little far from zero need offset="learned" or NMFImputer'
        where = named(worse, data.column_names)
        return Finding("fit", POOR, f"the fit explains {where} worse than the mean does", advice, where=where)
    return None


def _sample_entries(data: ObservedMatrix) -> tuple[Indices, Indices, Floats]:
    """Return rows, columns and values of some observed entries, from all parts of the data."""
    rng = np.random.default_rng(0)
    rows = np.sort(rng.choice(data.shape[0], min(MAX_ROWS, data.shape[0]), replace=False))
    each = -(-MAX_ENTRIES // len(rows))
    at, to, values = [], [], []
    for start in range(0, len(rows), ROWS_AT_A_TIME):
        some = rows[start : start + ROWS_AT_A_TIME]
        for row, entries in zip(some, data.dense_rows(some), strict=True):
            columns = rng.permutation(np.flatnonzero(~np.isnan(entries)))[:each]
            at.append(np.full(len(columns), row))
            to.append(columns)
            values.append(entries[columns])
    return np.concatenate(at), np.concatenate(to), np.concatenate(values)


def _too_many_components(model: Model) -> Finding | None:
    """Compare the number of parameters with that of observed entries, unless superfluous components vanish."""
    n_parameters = model.n_components * sum(model.data.shape)
    learns_size = any(learned.term.is_by_component for learned in model.learned_rates)
    if learns_size or n_parameters <= model.data.n_observed:
        return None
    sentence = (
        f"{model.n_components} components have {n_parameters:,} parameters for {model.data.n_observed:,} observed "
        "entries, so predictions rest on the prior"
    )
    return Finding("fit", POOR, sentence, 'take a smaller `n_components` or prior="ard"')


def _outlier(model: Model) -> Finding | None:
    """Find columns with entries that are far off, in their centre and unit unless the noise has room for them."""
    gaps = model.data.columns.gaps()
    found = np.flatnonzero(gaps > WIDEST_GAP)
    if not len(found):
        return None
    most = found[np.argmax(gaps[found])]
    others = f" (so have {len(found) - 1} more)" if len(found) > 1 else ""
    sentence = (
        f"{named([most], model.data.column_names)} has outliers {gaps[most]:,.0f} times as far from its median as all "
        f"others{others}"
    )
    if model.noise_model.is_heavy_tailed:
        return Finding("fit", USABLE, sentence, "make sure that they are right")
    advice = 'make sure that they are right, or use noise="student-t"'
    return Finding("fit", POOR, sentence, advice, where=named(found, model.data.column_names))


def _at_its_end(data: ObservedMatrix) -> Finding | None:
    """Find columns of which many exact entries are equal to the smallest or the largest one."""
    if not data.in_memory or data.has_implicit_zeros:
        return None
    found: list[tuple[float, int, float, str]] = []
    stand_ins = None if data.limits is None else representatives(data.limits.lower, data.limits.upper)
    for column in range(data.shape[1]):
        values = data.columns.observed_values(column)
        if data.limits is not None and stand_ins is not None:
            values = _without(values, stand_ins[data.limits.columns == column])
        if len(values) < MIN_ENTRIES_OF_COLUMN or len(np.unique(values)) < MIN_DISTINCT:
            continue
        for end, option in ((values.min(), "floored"), (values.max(), "capped")):
            share = float(np.mean(values == end))
            if share > SHARE_AT_END:
                found.append((share, column, float(end), option))
    if not found:
        return None
    share, column, end, option = max(found)
    name, n_columns = named([column], data.column_names), len({at for _, at, _, _ in found})
    others = f" (and {n_columns - 1} other columns are like it)" if n_columns > 1 else ""
    which = "smallest" if option == "floored" else "largest"
    sentence = f"{share:.0%} of the entries of {name} are exactly {end:g}, its {which} value{others}"
    # A question: values may pile up there for other reasons.
    return Finding("fit", USABLE, sentence, f"if they were cut there, say so with bnmf.limits(X, {option}={end:g})")


def _without(values: Floats, others: Floats) -> Floats:
    """Return values less as many of each as others have."""
    distinct, counts = np.unique(values, return_counts=True)
    at, n = np.unique(others, return_counts=True)
    counts[np.searchsorted(distinct, at)] -= n
    return np.repeat(distinct, counts)
