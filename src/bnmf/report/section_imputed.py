"""The section on the imputed entries, sorted by their uncertainty, with heat maps of the completed matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm

from bnmf.plots.figures import column_ranges, evenly
from bnmf.plots.look import COLOUR_MAP, DOUBT_COLOURS
from bnmf.posterior.components import Components
from bnmf.report.charts import ends_of, heat_map, histogram
from bnmf.report.markup import HIGH, LOW, Column, html_table, json_script, number, of_all, percent, rounded
from bnmf.report.overview import Overview
from bnmf.utils.typing import Floats, Indices

# Missing entries whose intervals are computed; of more, a sample.
MAX_COMPUTED = 10_000
# Entries in each of the two tables.
N_LISTED = 200
# Rows and columns of a heat map; of more, some that are evenly spaced in their order are shown.
MAX_ROWS, MAX_COLUMNS = 220, 160
PROBABILITY = 0.9


def imputed_entries(overview: Overview) -> pd.DataFrame:
    """Return the missing entries, or a sample of them, the most certain first, with their intervals."""
    rows, columns = overview.missing(MAX_COMPUTED, np.random.default_rng(0))
    mean, (low, high) = overview.posterior.mean(rows, columns), overview.posterior.interval(PROBABILITY, rows, columns)
    uncertainty = _uncertainty(overview, columns, low, high)
    found = {"row": rows, "column": columns, "mean": mean, "low": low, "high": high, "uncertainty": uncertainty}
    return pd.DataFrame(found).sort_values("uncertainty", kind="stable", ignore_index=True)


def _uncertainty(overview: Overview, columns: Indices, low: Floats, high: Floats) -> Floats:
    """Return the widths of intervals over those of a normal distribution with the deviation of the column."""
    return np.asarray((high - low) / (2.0 * norm.ppf(0.5 + 0.5 * PROBABILITY) * overview.spread(columns)))


def section(overview: Overview, imputed: pd.DataFrame, components: Components) -> str:
    """Return the section."""
    computed, n_known = len(imputed), int(overview.column_missing[overview.is_known].sum())
    empty = "" if n_known == overview.n_missing else " Columns without any observed entry are left out here."
    if not computed:
        why = "Only columns without any observed entry have missing entries." if empty else "No entry was missing."
        return f"<p>{why}</p>{_heat_maps(overview, components)}"
    sample = f" Shown: {computed:,} of the {n_known:,} missing entries, chosen at random."
    n_listed = min(N_LISTED, -(-computed // 2))
    n_least = min(n_listed, computed - n_listed)
    left_out = computed - n_listed - n_least
    uncertainty = imputed["uncertainty"].to_numpy()
    low, middle, high = np.quantile(uncertainty, [0.1, 0.5, 0.9])
    label = "width of the interval, % of that for the column mean"
    picture = histogram(100 * uncertainty, label, "entries", "Histogram of the uncertainty")
    tables = _table(overview, imputed[:n_listed], f"The most certain imputed values ({n_listed:,})")
    if n_least:
        least = imputed[computed - n_least :][::-1]
        tables += _table(overview, least, f"The least certain imputed values ({n_least:,})")
    between = f"The {left_out:,} entries between the two tables are not listed. " if left_out else ""
    return f"""
<p>A missing entry is imputed by its posterior mean. Its 90% interval contains a new measurement, noise included, with
90% probability. <strong>Uncertainty</strong> is the width of this interval over that of the column mean ± 1.64
standard deviations: near 0% the value is as good as known, at 100% it is no better than the column mean, and above
that the column mean is better.{"" if computed == n_known else sample}{empty}</p>
<div class="pair">
<figure>{picture}<figcaption>Uncertainty of the imputed values.</figcaption></figure>
<div><dl class="facts"><div><dt>{middle:.0%}</dt><dd>median uncertainty of an imputed value</dd></div>
<div><dt>{low:.0%} – {high:.0%}</dt><dd>range of the middle 80%</dd></div>
<div><dt>{percent(float(np.mean(uncertainty >= 0.95)))}</dt><dd>of the imputed values are hardly better than the column
mean (uncertainty of 95% or more)</dd></div></dl></div>
</div>
{_heat_maps(overview, components)}
{tables}
<p class="note">{between}<code>model.interval(0.9)</code>, or <code>bnmf impute --fit DIR --interval 0.9</code>, gives
the interval of every entry.</p>"""


def _table(overview: Overview, shown: pd.DataFrame, caption: str) -> str:
    names = (overview.names(kind, shown[kind].to_numpy()) for kind in ("row", "column"))
    numbers = (shown[name] for name in ("mean", "low", "high"))
    shares = [(share, f"{share:.0%}") for share in shown["uncertainty"]]
    columns = [
        Column("row"),
        Column("column"),
        Column("imputed", True, "posterior mean"),
        LOW,
        HIGH,
        Column("uncertainty", True, "width of the interval over that of the column mean ± 1.64 standard deviations"),
    ]
    return html_table(caption, columns, [*zip(*names, *numbers, shares, strict=True)])


def _heat_maps(overview: Overview, components: Components) -> str:
    """Return heat maps of the observed matrix, of the completed one, and of the uncertainty."""
    n_rows, n_columns = overview.data.shape
    rows, columns = evenly(components.row_order(), MAX_ROWS), evenly(components.column_order(), MAX_COLUMNS)
    observed = overview.data.dense_rows(rows)[:, columns]
    chosen = overview.posterior.subset(rows, columns)
    mean, (low, high) = chosen.mean(), chosen.interval(PROBABILITY)
    completed, doubt = np.where(np.isnan(observed), mean, observed), _uncertainty(overview, columns, low, high)
    if overview.units_differ:
        bottom, span = column_ranges(observed, completed)
        shown, limits, ends = (completed - bottom) / span, (0.0, 1.0), ("lowest of the column", "highest")
    else:
        shown, limits = completed, _limits(completed)
        ends = ends_of(shown, limits, number)
    top = max(1.0, float(np.quantile(doubt, 0.99)))
    panels = {
        "Observed": (np.where(np.isnan(observed), np.nan, shown), (limits, ends), COLOUR_MAP),
        "Completed": (shown, (limits, ends), COLOUR_MAP),
        "Uncertainty": (doubt, ((0.0, top), ends_of(doubt, (0.0, top), percent)), DOUBT_COLOURS),
    }
    names = overview.names("row", rows), overview.names("column", columns)
    figures = "".join(
        f"<figure><h3>{heading}</h3>{heat_map(values, *scale, *names, f'{heading} values', colours, 'matrix')}</figure>"
        for heading, (values, scale, colours) in panels.items()
    )
    numbers: dict[str, Any] = {"observed": observed, "mean": mean, "low": low, "high": high}
    data = {"kind": "matrix", "rows": names[0], "columns": names[1]}
    data |= {name: rounded(values) for name, values in numbers.items()}
    counted = f"{of_all(len(rows), n_rows, 'row')} and {of_all(len(columns), n_columns, 'column')}"
    blank = "Blank cells on the left were missing. " if overview.n_missing else ""
    return (
        f'<div class="trio">{figures}</div><p class="figure-note">{counted[0].upper() + counted[1:]}, grouped by '
        f"component. {blank}Point at a cell, or move through them with the arrow keys, "
        f"for its names and values.</p>{json_script('matrix', data)}"
    )


def _limits(values: Floats) -> tuple[float, float]:
    low, high = (float(end) for end in np.quantile(values, [0.01, 0.99]))
    return (low, high) if high > low else (low - 0.5, high + 0.5)
