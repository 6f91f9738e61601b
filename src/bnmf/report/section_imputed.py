"""The section on the imputed entries: which are sure, and which are not."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bnmf.posterior import Posterior
from bnmf.posterior.predictions import tiles
from bnmf.report.charts import histogram
from bnmf.report.markup import Column, html_table, number, percent
from bnmf.report.overview import Overview
from bnmf.utils.typing import Floats, Indices

# Missing entries whose uncertainty is computed; of more, a sample.
MAX_COMPUTED = 40_000
# Entries in each of the two tables.
N_LISTED = 200
PROBABILITY = 0.9


class Imputed(NamedTuple):
    """Missing entries with their predictions, the surest first.

    Attributes
    ----------
    rows, columns : ndarray of int of shape (n,)
        Their positions.
    mean, sd : ndarray of shape (n,)
        Predictions and predictive standard deviations.
    relative : ndarray of shape (n,)
        The standard deviation over that of the observed values of the column.
    """

    rows: Indices
    columns: Indices
    mean: Floats
    sd: Floats
    relative: Floats


def central_intervals(posterior: Posterior, rows: Indices, columns: Indices) -> tuple[Floats, Floats]:
    """Return 90% predictive intervals of entries, without holding all draws of all of them."""
    low, high = np.empty(len(rows)), np.empty(len(rows))
    for part in tiles(len(rows), 32 * posterior.n_chains * posterior.n_draws):
        low[part], high[part] = posterior.interval(PROBABILITY, rows[part], columns[part])
    return low, high


def imputed_entries(overview: Overview) -> Imputed:
    """Return the missing entries, or a sample of them, sorted by how sure their predictions are."""
    rows, columns = overview.missing(MAX_COMPUTED, np.random.default_rng(0))
    mean = overview.posterior.mean(rows, columns)
    sd = overview.posterior.std(rows, columns, noise=True)
    relative = sd / overview.spread(columns)
    order = np.argsort(relative, kind="stable")
    return Imputed(rows[order], columns[order], mean[order], sd[order], relative[order])


def entries(overview: Overview, imputed: Imputed, heat_maps: str) -> str:
    """Return the section."""
    if not len(imputed.rows):
        return f"<p>No entry was missing, so nothing was filled in.</p>{heat_maps}"
    total, computed = overview.n_missing, len(imputed.rows)
    sampled = (
        ""
        if computed == total
        else (
            f" What follows is from {computed:,} of the {total:,} missing entries, chosen at random: all of them would "
            "take long, and nobody would read the list."
        )
    )
    n_listed = min(N_LISTED, -(-computed // 2))
    left_out = computed - min(2 * n_listed, computed)
    low, middle, high = np.quantile(imputed.relative, [0.1, 0.5, 0.9])
    picture = histogram(
        imputed.relative,
        "uncertainty, share of the column's spread",
        "entries",
        "Histogram of uncertainty",
        percents=True,
    )
    sure, unsure = slice(0, n_listed), slice(computed - 1, max(computed - n_listed, n_listed) - 1, -1)
    tables = _table(overview, imputed, sure, f"The surest filled-in values ({n_listed:,})")
    if computed > n_listed:
        tables += _table(
            overview, imputed, unsure, f"The least sure filled-in values ({computed - left_out - n_listed:,})"
        )
    return f"""
<p>Each missing entry was filled in with its posterior mean, and has an interval that should contain a new measurement
with 90% probability, noise included.
<strong>Uncertainty</strong> is the width of that guess (one standard deviation) over the spread of the observed values
of its column: near 0% the value is as good as known, at 100% it is no better than the average of its column, and above
that the average is the better guess.{sampled}</p>
<div class="pair">
<figure>{picture}<figcaption>Uncertainty of the filled-in values.</figcaption></figure>
<div><dl class="facts"><div><dt>{middle:.0%}</dt><dd>is the uncertainty of a typical filled-in
value</dd></div><div><dt>{low:.0%} – {high:.0%}</dt><dd>is the range of the middle
80%</dd></div><div><dt>{percent(float(np.mean(imputed.relative >= 0.95)))}</dt><dd>are hardly better than the average of
their column (95% or more)</dd></div></dl></div>
</div>
{heat_maps}
{tables}
<p class="note">{_left_out(left_out)}<code>model.interval(0.9)</code> gives the interval of every entry.</p>"""


def _left_out(count: int) -> str:
    return f"The {count:,} entries between the surest and the least sure are not listed here. " if count else ""


def _table(overview: Overview, imputed: Imputed, part: slice, caption: str) -> str:
    at, to = imputed.rows[part], imputed.columns[part]
    low, high = central_intervals(overview.posterior, at, to)
    names = zip(overview.row_labels(at), overview.column_labels(to), strict=True)
    rows = [
        [row, column, mean, (bottom, number(bottom)), (top, number(top)), (share, f"{share:.0%}")]
        for (row, column), mean, bottom, top, share in zip(
            names, imputed.mean[part], low, high, imputed.relative[part], strict=True
        )
    ]
    columns = [
        Column("row"),
        Column("column"),
        Column("filled in", True, "posterior mean"),
        Column("from", True, "lower end of the 90% interval"),
        Column("to", True, "upper end of the 90% interval"),
        Column("uncertainty", True, "predictive standard deviation over the spread of the column"),
    ]
    return html_table(caption, columns, rows)
