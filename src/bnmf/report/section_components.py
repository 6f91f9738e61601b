"""The section on the components: heat maps of their shares, a card for each, and a table of all of them."""

from __future__ import annotations

import numpy as np

from bnmf.plots.figures import evenly, over, shares_of
from bnmf.plots.look import COLOUR_MAP
from bnmf.posterior.components import MIN_SHARE, Components, TopEntries
from bnmf.posterior.verdict import level_of_component
from bnmf.report.charts import heat_map, intervals
from bnmf.report.markup import HIGH, LOW, Column, html_table, json_script, of_all, percent, rounded
from bnmf.report.overview import Overview

# Rows and columns of a heat map, on the card of a component, and in the table.
MAX_ROWS = 220
N_ON_CARD = 6
N_IN_TABLE = 15
# Signs of weights and of profiles.
SIGNS = {
    (False, False): "both are nonnegative",
    (False, True): "weights are nonnegative, profiles have both signs",
    (True, False): "weights have both signs, profiles are nonnegative",
    (True, True): "both have positive and negative entries",
}


def section(overview: Overview, components: Components) -> str:
    """Return the section."""
    present = [int(k) for k in np.flatnonzero(components.sizes >= MIN_SHARE)]
    total = len(components.sizes)
    tops = {k: (components.top_rows(k, N_IN_TABLE), components.top_columns(k, N_IN_TABLE)) for k in present}
    left_out = (
        f"<p>{total - len(present)} of {total} components have vanished (less than {percent(MIN_SHARE)} of all "
        "predictions each) and are not shown.</p>"
        if len(present) < total
        else ""
    )
    signs, of_weights = overview.posterior.signed, overview.posterior.signed[0]
    return f"""
<p>Every prediction is a sum of components. A component is a profile over the columns times a weight for each row;
{SIGNS[signs]}. Components are sorted by their share of all predictions, and have the numbers that they have in
<code>model.components_</code>. <strong>Weights</strong> of rows have a {"root mean square" if of_weights else "mean"}
of 1. The <strong>value</strong> of a column is what the component adds to it in a row of weight 1, in the units of the
data; listed are the columns where it is largest compared with the size of the column. Bars are 90% intervals.</p>
{left_out}
<div class="pair">{_shares(overview, components, "row")}{_shares(overview, components, "column")}</div>
<h3>Largest rows and columns</h3>
<div class="cards">{"".join(_card(overview, components, k, *tops[k]) for k in present)}</div>
{_table(overview, tops)}"""


def _shares(overview: Overview, components: Components, kind: str) -> str:
    """Return the heat map of the shares of components in rows, or in columns."""
    shares, order = shares_of(components, kind)
    shown = evenly(order, MAX_ROWS)
    values, names, numbers = shares[shown], overview.names(kind, shown), [str(k) for k in range(shares.shape[1])]
    top = float(np.quantile(values, 0.995)) or 1.0
    title = f"Share of each component in the predictions of each {kind}"
    ends = ("0%", percent(top))
    picture = heat_map(values, (0.0, top), ends, names, numbers, title, COLOUR_MAP, f"shares-{kind}")
    data = {"kind": "share", "of": kind, "rows": names, "columns": numbers, "values": rounded(values)}
    return (
        f"<figure>{picture}<figcaption>Share of each component (across) in the predictions of each {kind} (down): "
        f"{of_all(len(shown), len(order), kind)}, grouped by their largest component.</figcaption>"
        f"{json_script(f'shares-{kind}', data)}</figure>"
    )


def _card(overview: Overview, components: Components, k: int, rows: TopEntries, columns: TopEntries) -> str:
    n_chains, found = overview.posterior.n_chains, int(components.n_chains_with[k])
    is_active = bool(overview.posterior.active_components[k])
    words = f"found by {found} of {n_chains} chains{'' if is_active else ', as weak as noise'}"
    level = level_of_component(found, n_chains, is_active=is_active)
    badge = f'<span class="badge {level}">{words}</span>' if n_chains > 1 else ""
    unit = "value"
    if overview.units_differ:
        unit, columns = "value over sd", over(columns, overview.spread(columns.positions))
    charts = [
        _chart(f"Component {k}: rows", "Rows, by weight", overview.names("row", rows.positions), rows),
        _chart(f"Component {k}: columns", f"Columns, by {unit}", overview.names("column", columns.positions), columns),
    ]
    return (
        f'<article class="card" id="component-{k}"><h4>Component {k} '
        f'<span class="size">{percent(float(components.sizes[k]))} of all predictions</span>{badge}</h4>'
        f'<div class="halves">{"".join(charts)}</div></article>'
    )


def _chart(title: str, heading: str, names: list[str], top: TopEntries) -> str:
    order = np.argsort(-top.mean[:N_ON_CARD], kind="stable")
    picture = intervals([names[i] for i in order], top.mean[order], top.low[order], top.high[order], title)
    return f"<div><h5>{heading}</h5>{picture}</div>"


def _table(overview: Overview, tops: dict[int, tuple[TopEntries, TopEntries]]) -> str:
    rows = []
    for k, pair in tops.items():
        for kind, top in zip(("row", "column"), pair, strict=True):
            entries = zip(overview.names(kind, top.positions), top.mean, top.low, top.high, top.share, strict=True)
            rows += [
                [name, kind, (k, str(k)), mean, low, high, (share, percent(share))]
                for name, mean, low, high, share in entries
            ]
    columns = [
        Column("name"),
        Column("kind"),
        Column("component", True),
        Column("weight or value", True, "weight of a row, or what is added to a column in a row of weight 1"),
        LOW,
        HIGH,
        Column("share", True, "share of the component in the predictions of that row or column"),
    ]
    return html_table(f"The {N_IN_TABLE} largest rows and columns of each component", columns, rows)
