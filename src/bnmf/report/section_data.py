"""The section on what went in."""

from __future__ import annotations

import numpy as np

from bnmf.report.charts import histogram
from bnmf.report.markup import Column, html_table, percent
from bnmf.report.overview import Overview

# Columns that are listed, those with the most missing entries first.
MAX_LISTED_COLUMNS = 300


def went_in(overview: Overview) -> str:
    """Return the section: shape, missing entries, distribution of the values, columns."""
    n_rows, n_columns = overview.data.shape
    return f"""
<p>The table has <strong>{n_rows:,} rows</strong> and <strong>{n_columns:,} columns</strong>.
Of its {overview.n_entries:,} entries, {overview.data.n_observed:,} were observed and
<strong>{overview.n_missing:,} ({percent(overview.n_missing / overview.n_entries)}) were missing</strong>.
{_zeros(overview)}{_empty(overview)}</p>
<div class="pair">
<figure>{_values(overview)}</figure>
<figure>{_missing(overview)}</figure>
</div>
{_table(overview)}"""


def _zeros(overview: Overview) -> str:
    if not overview.data.has_implicit_zeros:
        return ""
    return "The table is sparse: entries that it does not store count as observed zeros. "


def _empty(overview: Overview) -> str:
    parts = []
    for kind, counts in (("row", overview.data.rows.n_observed), ("column", overview.column_observed)):
        n = int((counts == 0).sum())
        if n:
            verb = "has" if n == 1 else "have"
            parts.append(f"{n:,} {kind}{'s' if n > 1 else ''} {verb} no observed entry at all")
    if not parts:
        return ""
    return f"{' and '.join(parts)}: what is filled in there follows from the prior alone. "


def _values(overview: Overview) -> str:
    _, columns, values = overview.sample()
    if not len(values):
        return ""
    label, about = "observed value", "The observed values."
    if overview.units_differ:
        values = (values - overview.column_mean[columns]) / overview.spread(columns)
        label = "(value − mean of its column) / sd of its column"
        about = "The observed values. Columns have different units, so each was centred and scaled."
    if overview.is_sampled:
        about += f" From {len(overview.sampled_rows):,} rows chosen at random."
    picture = histogram(values, label, "entries", "Histogram of the observed values")
    return f"{picture}<figcaption>{about}</figcaption>"


def _missing(overview: Overview) -> str:
    share = 1.0 - overview.column_observed / overview.data.shape[0]
    picture = histogram(share, "missing in a column", "columns", "Histogram of missing shares", percents=True)
    return (
        f"{picture}<figcaption>How much of each column is missing: {percent(float(share.min()))} to "
        f"{percent(float(share.max()))}, half of the columns at most {percent(float(np.median(share)))}.</figcaption>"
    )


def _table(overview: Overview) -> str:
    missing = overview.data.shape[0] - overview.column_observed
    order = np.argsort(-missing, kind="stable")[:MAX_LISTED_COLUMNS]
    variance = overview.posterior.noise_variance.mean(axis=(0, 1))
    if overview.posterior.row_noise is not None:
        variance = variance * overview.posterior.row_noise.mean()
    if overview.posterior.noise_factor is not None:
        variance = variance * np.mean(overview.posterior.noise_factor**2, axis=0)
    noise = np.sqrt(np.broadcast_to(variance, overview.data.shape[1]))
    rows = [
        [
            label,
            (missing[j], f"{missing[j]:,}"),
            (share := missing[j] / overview.data.shape[0], percent(share)),
            overview.column_mean[j],
            overview.column_sd[j],
            noise[j],
        ]
        for j, label in zip(order, overview.column_labels(order), strict=True)
    ]
    hidden = overview.data.shape[1] - len(order)
    caption = "Columns, those with the most missing entries first"
    if hidden:
        caption += f" ({len(order):,} of {overview.data.shape[1]:,} are listed)"
    spread = "standard deviation" if overview.posterior.df is None else "scale (of Student's t)"
    columns = [
        Column("column"),
        Column("missing", True, "number of missing entries"),
        Column("missing, %", True, "share of the rows in which it is missing"),
        Column("mean", True, "mean of the observed values"),
        Column("sd", True, "standard deviation of the observed values"),
        Column("noise sd", True, f"{spread} of what the patterns leave unexplained, as the fit estimates it"),
    ]
    return html_table(caption, columns, rows)
