"""The section on the data: sizes, missing entries, the distribution of the values, the columns."""

from __future__ import annotations

import numpy as np

from bnmf.report.charts import histogram
from bnmf.report.markup import Column, html_table, percent
from bnmf.report.overview import Overview

# Columns that are listed, those with the most missing entries first.
MAX_LISTED_COLUMNS = 300


def section(overview: Overview) -> str:
    """Return the section."""
    data = overview.data
    n_rows, n_columns = data.shape
    notes = []
    if data.has_implicit_zeros:
        notes.append("The table is sparse: entries that it does not store count as observed zeros.")
    if data.limits is not None:
        notes.append(
            f"Of {len(data.limits):,} observed entries only limits are known; means and figures show the middle "
            "between the limits, or the one that is finite."
        )
    counts = {kind: int((view.n_observed == 0).sum()) for kind, view in (("row", data.rows), ("column", data.columns))}
    empty = [f"{n:,} {kind}{'s' if n > 1 else ''}" for kind, n in counts.items() if n]
    if empty:
        notes.append(f"{' and '.join(empty)} without any observed entry: imputed from the prior alone.")
    return f"""
<p>The table has <strong>{n_rows:,} rows</strong> and <strong>{n_columns:,} columns</strong>.
Of its {n_rows * n_columns:,} entries, {data.n_observed:,} were observed and
<strong>{overview.n_missing:,} ({percent(overview.n_missing / (n_rows * n_columns))}) were missing</strong>.
{" ".join(notes)}</p>
<div class="pair"><figure>{_values(overview)}</figure><figure>{_missing(overview)}</figure></div>
{_columns(overview)}"""


def _values(overview: Overview) -> str:
    _, columns, values = overview.observed()
    if not len(values):
        return ""
    label, about = "observed value", "The observed values."
    if overview.units_differ:
        values = overview.standardised(values, columns)
        label = "(value − mean of its column) / sd of its column"
        about = "The observed values, standardised by column because the columns have different units."
    if len(overview.sampled_rows) < overview.data.shape[0]:
        about += f" From {len(overview.sampled_rows):,} rows chosen at random."
    return f"{histogram(values, label, 'entries', 'Histogram of the observed values')}<figcaption>{about}</figcaption>"


def _missing(overview: Overview) -> str:
    share = overview.column_missing / overview.data.shape[0]
    picture = histogram(100 * share, "missing entries of a column, %", "columns", "Histogram of missing shares")
    return (
        f"{picture}<figcaption>Missing share of each column: {percent(float(share.min()))} to "
        f"{percent(float(share.max()))}, median {percent(float(np.median(share)))}.</figcaption>"
    )


def _columns(overview: Overview) -> str:
    (n_rows, n_columns), posterior = overview.data.shape, overview.posterior
    missing, (mean, sd) = overview.column_missing, overview.moments
    order = np.argsort(-missing, kind="stable")[:MAX_LISTED_COLUMNS]
    variance = posterior.noise_variance.mean(axis=(0, 1))
    if posterior.row_noise is not None:
        variance = variance * posterior.row_noise.mean()
    if posterior.noise_factor is not None:
        variance = variance * np.mean(posterior.noise_factor**2, axis=0)
    noise = np.sqrt(np.broadcast_to(variance, n_columns))
    rows = [
        [label, (n, f"{n:,}"), (n / n_rows, percent(n / n_rows)), mean[j], sd[j], noise[j]]
        for j, n, label in zip(order, missing[order], overview.names("column", order), strict=True)
    ]
    caption = "Columns, those with the most missing entries first"
    if len(order) < n_columns:
        caption += f" ({len(order):,} of {n_columns:,} are listed)"
    columns = [
        Column("column"),
        Column("missing", True, "number of missing entries"),
        Column("missing, %", True, "share of the rows in which it is missing"),
        Column("mean", True, "mean of the observed values"),
        Column("sd", True, "standard deviation of the observed values"),
        Column("noise sd", True, f"estimated noise, {posterior.law.spread}"),
    ]
    return html_table(caption, columns, rows)
