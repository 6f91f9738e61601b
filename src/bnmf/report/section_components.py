"""The section on the components: a card for each, and a table of all of them."""

from __future__ import annotations

import numpy as np

from bnmf.posterior.components import MIN_SHARE, Components, TopEntries
from bnmf.report.charts import intervals
from bnmf.report.markup import Column, html_table, number, percent
from bnmf.report.overview import Overview
from bnmf.utils.typing import Floats

# Rows and columns on the card of a component, and in the table.
N_ON_CARD = 6
N_IN_TABLE = 15


def section(overview: Overview, components: Components, heat_maps: str) -> str:
    """Return the section."""
    present = [int(k) for k in components.order if components.sizes[k] >= MIN_SHARE]
    vanished = len(components.order) - len(present)
    tops = {k: (components.top_rows(k, N_IN_TABLE), components.top_columns(k, N_IN_TABLE)) for k in present}
    left_out = (
        f"<p>{vanished} of {len(components.order)} components have vanished (less than {percent(MIN_SHARE)} of all "
        "predictions each) and are not shown.</p>"
        if vanished
        else ""
    )
    signs = {
        (False, False): "both are nonnegative",
        (False, True): "weights are nonnegative, profiles have both signs",
        (True, False): "weights have both signs, profiles are nonnegative",
        (True, True): "both have positive and negative entries",
    }[overview.posterior.signed]
    typical = "root mean square" if overview.posterior.signed[0] else "mean"
    return f"""
<p>Every prediction is a sum of components. A component is a profile over the columns times a weight for each row;
{signs}. Components are sorted by their share of all predictions, and have the numbers that they have in
<code>model.components_</code>. <strong>Weights</strong> of rows have a {typical} of 1. The <strong>value</strong> of a
column is what the component adds to it in a row of weight 1, in the units of the data; listed are the columns where it
is largest compared with the size of the column. Bars are 90% intervals.</p>
{left_out}
{heat_maps}
<h3>Largest rows and columns</h3>
<div class="cards">{"".join(_card(overview, components, k, *tops[k]) for k in present)}</div>
{_table(overview, tops)}"""


def _card(overview: Overview, components: Components, k: int, rows: TopEntries, columns: TopEntries) -> str:
    n_chains, found = overview.posterior.n_chains, int(components.n_chains_with[k])
    kind = "good" if found == n_chains else "usable"
    badge = f'<span class="badge {kind}">found by {found} of {n_chains} chains</span>' if n_chains > 1 else ""
    unit, scale = "value", np.ones(len(columns.positions))
    if overview.units_differ:
        unit, scale = "value over sd", overview.spread(columns.positions)
    row_names = overview.row_labels(rows.positions[:N_ON_CARD])
    column_names = overview.column_labels(columns.positions[:N_ON_CARD])
    charts = [
        _chart(f"Component {k}: rows", "Rows, by weight", row_names, rows, np.ones(len(rows.mean))),
        _chart(f"Component {k}: columns", f"Columns, by {unit}", column_names, columns, scale),
    ]
    return (
        f'<article class="card" id="component-{k}"><h4>Component {k} '
        f'<span class="size">{percent(float(components.sizes[k]))} of all predictions</span>{badge}</h4>'
        f'<div class="halves">{"".join(charts)}</div></article>'
    )


def _chart(title: str, heading: str, names: list[str], top: TopEntries, scale: Floats) -> str:
    mean, low, high = ((values / scale)[: len(names)] for values in (top.mean, top.low, top.high))
    order = np.argsort(-mean, kind="stable")
    picture = intervals([names[i] for i in order], mean[order], low[order], high[order], title)
    return f"<div><h5>{heading}</h5>{picture}</div>"


def _table(overview: Overview, tops: dict[int, tuple[TopEntries, TopEntries]]) -> str:
    rows = []
    for k, pair in tops.items():
        for kind, top in zip(("row", "column"), pair, strict=True):
            names = (overview.row_labels if kind == "row" else overview.column_labels)(top.positions)
            entries = zip(names, top.mean, top.low, top.high, top.share, strict=True)
            rows += [
                [label, kind, (k, str(k)), mean, (low, number(low)), (high, number(high)), (share, percent(share))]
                for label, mean, low, high, share in entries
            ]
    columns = [
        Column("name"),
        Column("kind"),
        Column("component", True),
        Column("weight or value", True, "weight of a row, or what is added to a column in a row of weight 1"),
        Column("from", True, "lower end of the 90% interval"),
        Column("to", True, "upper end of the 90% interval"),
        Column("share", True, "share of the component in the predictions of that row or column"),
    ]
    return html_table(f"The {N_IN_TABLE} largest rows and columns of each component", columns, rows)
