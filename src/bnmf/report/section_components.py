"""The section on the patterns: a card for each, and a table of all of them."""

from __future__ import annotations

import numpy as np

from bnmf.posterior.components import MIN_SHARE, Components, TopEntries
from bnmf.report.charts import intervals
from bnmf.report.markup import Column, html_table, number, percent
from bnmf.report.overview import Overview
from bnmf.utils.typing import Floats

# Rows and columns on the card of a pattern, and in the table.
N_ON_CARD = 6
N_IN_TABLE = 15


def pattern_cards(overview: Overview, components: Components, heat_maps: str) -> str:
    """Return the section."""
    present = [int(k) for k in components.order if components.sizes[k] >= MIN_SHARE]
    vanished = len(components.order) - len(present)
    tops = {k: (components.top_rows(k, N_IN_TABLE), components.top_columns(k, N_IN_TABLE)) for k in present}
    cards = "".join(_card(overview, components, place, k, *tops[k]) for place, k in enumerate(present, 1))
    left_out = (
        f"<p>{vanished} of the {len(components.order)} components have vanished: together they make up less than "
        f"{percent(MIN_SHARE * vanished)} of all predictions, and are not shown. The data did not need them.</p>"
        if vanished
        else ""
    )
    signs = {
        (False, False): "none of them is negative",
        (False, True): "profiles have both signs, and weights are not negative",
        (True, False): "weights have both signs, and profiles are not negative",
        (True, True): "both have positive and negative entries",
    }[overview.posterior.signed]
    typical = "root mean square is 1" if overview.posterior.signed[0] else "mean over the rows is 1"
    return f"""
<p>Every prediction is a sum of patterns. A pattern is a profile over the columns, and a weight for each row that says
how much of the profile that row has; {signs}. Patterns are numbered by how much of all predictions they make.
<strong>Weights</strong> of rows are relative: their {typical}. A column’s <strong>value</strong> is what the pattern
adds to it in a row of weight 1, in the units of the data; the columns of a pattern are those where it is largest
compared with the size of the column. Bars are 90% intervals.</p>
{left_out}
{heat_maps}
<h3>Pattern by pattern</h3>
<div class="cards">{cards}</div>
{_table(overview, components, present, tops)}"""


def _card(
    overview: Overview, components: Components, place: int, component: int, rows: TopEntries, columns: TopEntries
) -> str:
    n_chains = overview.posterior.n_chains
    found = int(components.n_chains_with[component])
    kind = "good" if found == n_chains else "usable"
    badge = f'<span class="badge {kind}">found by {found} of {n_chains} runs</span>' if n_chains > 1 else ""
    scale = _column_scale(overview, columns)
    row_names = overview.row_labels(rows.positions[:N_ON_CARD])
    column_names = overview.column_labels(columns.positions[:N_ON_CARD])
    charts = [
        _chart(f"Pattern {place}: rows", "Rows, by weight", row_names, rows, np.ones(len(rows.mean))),
        _chart(f"Pattern {place}: columns", _column_heading(overview), column_names, columns, scale),
    ]
    return (
        f'<article class="card" id="pattern-{place}"><h4>Pattern {place} '
        f'<span class="size">{percent(float(components.sizes[component]))} of all predictions</span>{badge}</h4>'
        f'<div class="halves">{"".join(charts)}</div></article>'
    )


def _chart(title: str, heading: str, names: list[str], top: TopEntries, scale: Floats) -> str:
    mean, low, high = ((values / scale)[: len(names)] for values in (top.mean, top.low, top.high))
    order = np.argsort(-mean, kind="stable")
    picture = intervals([names[i] for i in order], mean[order], low[order], high[order], title)
    return f"<div><h5>{heading}</h5>{picture}</div>"


def _column_heading(overview: Overview) -> str:
    return "Columns, by value over sd" if overview.units_differ else "Columns, by value"


def _column_scale(overview: Overview, columns: TopEntries) -> Floats:
    """Return what values of columns are divided by to go onto one axis."""
    return overview.spread(columns.positions) if overview.units_differ else np.ones(len(columns.positions))


def _table(
    overview: Overview, components: Components, present: list[int], tops: dict[int, tuple[TopEntries, TopEntries]]
) -> str:
    rows = []
    for place, component in enumerate(present, 1):
        for kind, top in zip(("row", "column"), tops[component], strict=True):
            names = (overview.row_labels if kind == "row" else overview.column_labels)(top.positions)
            for label, mean, low, high, share in zip(names, top.mean, top.low, top.high, top.share, strict=True):
                rows.append(
                    [
                        label,
                        kind,
                        (place, str(place)),
                        mean,
                        (low, number(low)),
                        (high, number(high)),
                        (share, percent(share)),
                    ]
                )
    columns = [
        Column("name"),
        Column("kind"),
        Column("pattern", True),
        Column("weight or value", True, "weight of a row, or what is added to a column in a row of weight 1"),
        Column("from", True, "lower end of the 90% interval"),
        Column("to", True, "upper end of the 90% interval"),
        Column("share", True, "share of the predictions of that row or column that the pattern makes"),
    ]
    caption = f"The {N_IN_TABLE} largest rows and columns of each pattern"
    numbers = ", ".join(f"{place} is {component}" for place, component in enumerate(present, 1))
    return (
        html_table(caption, columns, rows)
        + f'<p class="note">Numbers in <code>model.components_</code>, which count from 0: pattern {numbers}.</p>'
    )
