"""The section on the imputed entries, sorted by their uncertainty."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bnmf.posterior.predictions import tiles
from bnmf.report.charts import histogram, percent_tick
from bnmf.report.markup import Column, html_table, number, percent
from bnmf.report.overview import Overview
from bnmf.utils.typing import Floats, Indices

# Missing entries whose uncertainty is computed; of more, a sample.
MAX_COMPUTED = 40_000
# Entries in each of the two tables.
N_LISTED = 200
PROBABILITY = 0.9


class Imputed(NamedTuple):
    """Missing entries (n,), the most certain first: predictions, predictive sd, and sd over that of the column."""

    rows: Indices
    columns: Indices
    mean: Floats
    sd: Floats
    relative: Floats


def imputed_entries(overview: Overview) -> Imputed:
    """Return the missing entries, or a sample of them, sorted by their uncertainty."""
    rows, columns = overview.missing(MAX_COMPUTED, np.random.default_rng(0))
    mean = overview.posterior.mean(rows, columns)
    sd = overview.posterior.std(rows, columns, noise=True)
    relative = sd / overview.spread(columns)
    order = np.argsort(relative, kind="stable")
    return Imputed(rows[order], columns[order], mean[order], sd[order], relative[order])


def section(overview: Overview, imputed: Imputed, heat_maps: str) -> str:
    """Return the section."""
    computed = len(imputed.rows)
    if not computed:
        return f"<p>No entry was missing, so nothing was imputed.</p>{heat_maps}"
    sample = f" Shown: {computed:,} of the {overview.n_missing:,} missing entries, chosen at random."
    n_listed = min(N_LISTED, -(-computed // 2))
    left_out = computed - min(2 * n_listed, computed)
    low, middle, high = np.quantile(imputed.relative, [0.1, 0.5, 0.9])
    label, title = "predictive sd / sd of the column", "Histogram of the uncertainty"
    picture = histogram(imputed.relative, label, "entries", title, percent_tick)
    tables = _table(overview, imputed, slice(0, n_listed), f"The most certain imputed values ({n_listed:,})")
    if computed > n_listed:
        part = slice(computed - 1, max(computed - n_listed, n_listed) - 1, -1)
        count = computed - left_out - n_listed
        tables += _table(overview, imputed, part, f"The least certain imputed values ({count:,})")
    between = f"The {left_out:,} entries between the two tables are not listed. " if left_out else ""
    return f"""
<p>A missing entry is imputed by its posterior mean. Its 90% interval contains a new measurement, noise included, with
90% probability. <strong>Uncertainty</strong> is the predictive standard deviation over the standard deviation of the
column: near 0% the value is as good as known, at 100% it is no better than the column mean, and above that the column
mean is better.{"" if computed == overview.n_missing else sample}</p>
<div class="pair">
<figure>{picture}<figcaption>Uncertainty of the imputed values.</figcaption></figure>
<div><dl class="facts"><div><dt>{middle:.0%}</dt><dd>median uncertainty of an imputed value</dd></div>
<div><dt>{low:.0%} – {high:.0%}</dt><dd>range of the middle 80%</dd></div>
<div><dt>{percent(float(np.mean(imputed.relative >= 0.95)))}</dt><dd>hardly better than the column mean (95% or
more)</dd></div></dl></div>
</div>
{heat_maps}
{tables}
<p class="note">{between}<code>model.interval(0.9)</code> gives the interval of every entry.</p>"""


def _table(overview: Overview, imputed: Imputed, part: slice, caption: str) -> str:
    at, to = imputed.rows[part], imputed.columns[part]
    posterior = overview.posterior
    low, high = np.empty(len(at)), np.empty(len(at))
    for chosen in tiles(len(at), 32 * posterior.n_chains * posterior.n_draws):
        low[chosen], high[chosen] = posterior.interval(PROBABILITY, at[chosen], to[chosen])
    values = zip(imputed.mean[part], low, high, imputed.relative[part], strict=True)
    names = zip(overview.row_labels(at), overview.column_labels(to), strict=True)
    rows = [
        [row, column, mean, (bottom, number(bottom)), (top, number(top)), (share, f"{share:.0%}")]
        for (row, column), (mean, bottom, top, share) in zip(names, values, strict=True)
    ]
    columns = [
        Column("row"),
        Column("column"),
        Column("imputed", True, "posterior mean"),
        Column("from", True, "lower end of the 90% interval"),
        Column("to", True, "upper end of the 90% interval"),
        Column("uncertainty", True, "predictive standard deviation over the standard deviation of the column"),
    ]
    return html_table(caption, columns, rows)
