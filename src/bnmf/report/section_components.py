"""The section on the components: heat maps of their shares, a card for each, and a table of all of them."""

from __future__ import annotations

import numpy as np

from bnmf.plots.figures import evenly, over, shares_of
from bnmf.plots.look import COLOUR_MAP
from bnmf.posterior.components import MIN_SHARE, Components, TopEntries
from bnmf.posterior.posterior import EFFECT, OFFSET
from bnmf.posterior.verdict import UNKNOWN, level_of_component
from bnmf.report.charts import ends_of, heat_map, intervals
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
# What is said of effects, and the side on which their entries are equal and not worth a list.
EFFECTS = {
    EFFECT: (
        "The first is an effect of the rows, which is the same in all columns, in units of their scale.",
        "column",
    ),
    OFFSET: ("The last is an offset of the columns, which is the same in all rows.", "row"),
}


def section(overview: Overview, components: Components) -> str:
    """Return the section."""
    present = [int(k) for k in np.flatnonzero(components.sizes >= MIN_SHARE)]
    effects, can_tell = overview.posterior.effects, overview.posterior.verdict["components"].level != UNKNOWN
    total = len(components.sizes) - len(effects)
    n_vanished = total - len(set(present) - set(effects))
    equal = {k: EFFECTS[name][1] for k, name in effects.items()}
    largest = {"row": components.top_rows, "column": components.top_columns}
    tops = {k: {kind: top(k, N_IN_TABLE) for kind, top in largest.items() if kind != equal.get(k)} for k in present}
    left_out = (
        f"<p>{n_vanished} of {total} components have vanished (less than {percent(MIN_SHARE)} of all "
        "predictions each) and are not shown.</p>"
        if n_vanished
        else ""
    )
    signs, of_weights = overview.posterior.signed, overview.posterior.signed[0]
    of_effects = "".join(f" {EFFECTS[name][0]}" for name in dict.fromkeys(effects.values()))
    return f"""
<p>Every prediction is a sum of components. A component is a profile over the columns times a weight for each row;
{SIGNS[signs]}. Components are sorted by their share of all predictions, and have the numbers that they have in
<code>model.components_</code> and in the file <code>Z.csv</code> of the command line.{of_effects}
<strong>Weights</strong> of rows have a {"root mean square" if of_weights else "mean"} of 1. The <strong>value</strong>
of a column is what the component adds to it in a row of weight 1, in the units of the data; listed are the columns
where it is largest compared with the size of the column. Bars are 90% intervals.</p>
{left_out}
<div class="pair">{_shares(overview, components, "row")}{_shares(overview, components, "column")}</div>
<h3>Largest rows and columns</h3>
<div class="cards">{"".join(_card(overview, components, k, tops[k], can_tell) for k in present)}</div>
{_table(overview, tops)}"""


def _shares(overview: Overview, components: Components, kind: str) -> str:
    """Return the heat map of the shares of components in rows, or in columns."""
    shares, order = shares_of(components, kind)
    shown = evenly(order, MAX_ROWS)
    values, names, numbers = shares[shown], overview.names(kind, shown), [str(k) for k in range(shares.shape[1])]
    top = float(np.quantile(values, 0.995)) or 1.0
    title = f"Share of each component in the predictions of each {kind}"
    ends = ends_of(values, (0.0, top), percent)
    picture = heat_map(values, (0.0, top), ends, names, numbers, title, COLOUR_MAP, f"shares-{kind}")
    data = {"kind": "share", "of": kind, "rows": names, "columns": numbers, "values": rounded(values)}
    return (
        f"<figure>{picture}<figcaption>Share of each component (across) in the predictions of each {kind} (down): "
        f"{of_all(len(shown), len(order), kind)}, grouped by their largest component.</figcaption>"
        f"{json_script(f'shares-{kind}', data)}</figure>"
    )


def _card(overview: Overview, components: Components, k: int, tops: dict[str, TopEntries], can_tell: bool) -> str:
    posterior, name = overview.posterior, f"component {k}"
    n_chains, found, size = posterior.n_chains, int(components.n_chains_with[k]), percent(float(components.sizes[k]))
    is_active, effect = bool(posterior.active_components[k]), posterior.effects.get(k)
    words = [f"found by {found} of {n_chains} chains"] * can_tell + ["as weak as noise"] * (not is_active)
    level = level_of_component(found, n_chains, is_active=is_active)
    badge = f'<span class="badge {level}">{", ".join(words)}</span>' if words and not effect else ""
    title, part = (effect, f"{name}, {size}") if effect else (name, size)
    charts = []
    for kind, top in tops.items():
        unit = "weight" if kind == "row" else "value"
        if kind == "column" and overview.units_differ:
            unit, top = "value over sd", over(top, overview.spread(top.positions))
        names = overview.names(kind, top.positions)
        charts.append(_chart(f"{title.capitalize()}: {kind}s", f"{kind.capitalize()}s, by {unit}", names, top))
    return (
        f'<article class="card" id="component-{k}"><h4>{title.capitalize()} '
        f'<span class="size">{part} of all predictions</span>{badge}</h4>'
        f'<div class="halves">{"".join(charts)}</div></article>'
    )


def _chart(title: str, heading: str, names: list[str], top: TopEntries) -> str:
    order = np.argsort(-top.mean[:N_ON_CARD], kind="stable")
    picture = intervals([names[i] for i in order], top.mean[order], top.low[order], top.high[order], title)
    return f"<div><h5>{heading}</h5>{picture}</div>"


def _table(overview: Overview, tops: dict[int, dict[str, TopEntries]]) -> str:
    rows = []
    for k, of_kind in tops.items():
        for kind, top in of_kind.items():
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
