"""The sections on what went into the fit: the data and their columns, and the settings with the versions."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import numpy as np

from bnmf.plots.look import column_scale
from bnmf.posterior import Posterior
from bnmf.report.charts import histogram
from bnmf.report.markup import Column, html_table, percent
from bnmf.report.overview import Overview
from bnmf.utils.text import listed

# Columns that are listed, those with the most missing entries first.
MAX_LISTED_COLUMNS = 300
LIBRARIES = ("bnmf", "numpy", "scipy", "pandas", "scikit-learn", "arviz-stats")


def data_section(overview: Overview) -> str:
    """Return the section on the data."""
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
    counted, of_missing = f"All of its {n_rows * n_columns:,} entries were observed.", ""
    if overview.n_missing:
        counted = f"""Of its {n_rows * n_columns:,} entries, {data.n_observed:,} were observed and
<strong>{overview.n_missing:,} ({percent(overview.n_missing / (n_rows * n_columns))}) were missing</strong>."""
        of_missing = f"<figure>{_missing(overview)}</figure>"
    return f"""
<p>The table has <strong>{n_rows:,} rows</strong> and <strong>{n_columns:,} columns</strong>.
{counted}
{" ".join(notes)}</p>
<div class="pair"><figure>{_values(overview)}</figure>{of_missing}</div>
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
    low, middle, high = (percent(float(np.quantile(share, q))) for q in (0, 0.5, 1))
    return f"{picture}<figcaption>Missing share of each column: {low} to {high}, median {middle}.</figcaption>"


def _columns(overview: Overview) -> str:
    (n_rows, n_columns), posterior = overview.data.shape, overview.posterior
    missing, (mean, sd) = overview.column_missing, overview.moments
    sd = np.where(overview.data.columns.n_observed > 1, sd, np.nan)  # one entry has no spread
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
    caption = "Columns, those with the most missing entries first" if overview.n_missing else "Columns"
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


def settings_section(posterior: Posterior, settings: Mapping[str, Any] | None) -> str:
    """Return the section on settings and versions."""
    effects, offset = posterior.effects.values(), (settings or {}).get("offset")
    subtracted = {"min": "minimum ", "mean": "mean "}.get(str(offset), "" if any(posterior.signed) else "minimum ")
    fit = {
        "components": posterior.n_components - len(effects),
        "chains": posterior.n_chains,
        "sweeps of burn-in": f"{posterior.burn_in:,}",
        "draws of each chain": f"{posterior.n_draws:,}",
        "thinning": posterior.thinning,
        "noise": _noise(posterior),
        "scale": "common" if column_scale(posterior) is None else "of each column",
        "offset": f"{subtracted}subtracted" if posterior.offset is not None else "none",
    }
    if effects:
        fit["offset"] = f"learned: {listed([*effects])}"
    versions = {"Python": platform.python_version()} | {name: version(name) for name in LIBRARIES}
    return f"""
<p>With the same data, parameters, seed and versions a fit gives the same draws.</p>
<div class="pair"><div>{_listed("Fit", fit)}{_listed("Versions", versions)}</div>
{_listed("Parameters", settings) if settings else ""}</div>"""


def _listed(caption: str, values: Mapping[str, Any]) -> str:
    rows = [[str(name), str(value)] for name, value in values.items()]
    return html_table(caption, [Column("name"), Column("value")], rows, search=False)


def _noise(posterior: Posterior) -> str:
    by_column = posterior.noise_variance.ndim == 3
    words = "of each column" if by_column else "common"
    if posterior.row_noise is not None:
        words = "of each row and column" if by_column else "of each row"
    if posterior.noise_factor is not None:
        # Known noise is not learned: its variance is one in every draw, times the squares of what is known.
        is_known = bool((posterior.noise_variance == 1.0).all())
        words = "known of each entry" if is_known else f"{words}, times the known noise of each entry"
    return posterior.law.describe(words)
