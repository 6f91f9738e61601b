"""Whether the fit can be trusted: verdicts in plain words, and the pictures behind them."""

from __future__ import annotations

from html import escape

import numpy as np

from bnmf.posterior import Posterior
from bnmf.posterior.calibration import PROB, Calibration
from bnmf.posterior.components import Components
from bnmf.posterior.verdict import Finding, Verdict
from bnmf.report.charts import N_LINE_STYLES, Chart, agreement
from bnmf.report.markup import Column, html_table, number, percent
from bnmf.report.overview import Overview

# Observed entries that are compared with what was fitted to them, and points that are drawn.
N_CHECKED = 4000
N_POINTS = 1500
# Sweeps at the start of a run that may lie beyond the axis.
N_FAR_OFF = 5
# Typical uncertainty of filled-in values, as a share of the spread of their column, and what is said about it.
SHARPNESS = (
    (0.3, "Most are sharp: far better than the average of their column."),
    (0.6, "Most are clearly better than the average of their column."),
    (0.85, "Most are somewhat better than the average of their column."),
    (np.inf, "Most are only a little better than the average of their column."),
)

# What a level is called on a card, and its mark.
LEVELS = {"good": ("Good", "✓"), "usable": ("With care", "!"), "poor": ("Do not rely on it", "✕")}
LEVELS["unknown"] = ("Cannot tell", "?")
PURPOSES = {
    "predictions": "Predictions",
    "intervals": "Intervals",
    "noise": "Noise levels and fit",
    "components": "Components",
}


def cards(verdict: Verdict) -> str:
    """Return a card for each finding but those on the fit as such, which stand above them."""
    return "".join(_card(finding) for finding in verdict if finding.purpose in PURPOSES)


def _card(finding: Finding) -> str:
    word, mark = LEVELS[finding.level]
    return (
        f'<div class="verdict {finding.level}"><p class="purpose">{PURPOSES[finding.purpose]}</p>'
        f'<p class="level"><span class="mark" aria-hidden="true">{mark}</span>{word}</p>'
        f"<p>{escape(finding.text)}</p></div>"
    )


def sharpness(uncertainty: float) -> str:
    """Return a sentence on the typical uncertainty of filled-in values; nothing if there are none."""
    return next((text for limit, text in SHARPNESS if uncertainty <= limit), "")


def trust(overview: Overview, components: Components) -> str:
    """Return the section: pictures and numbers behind the verdicts."""
    posterior = overview.posterior
    order = components.order
    n_chains = posterior.n_chains
    return f"""
<p>The method was run {n_chains} time{"s" if n_chains > 1 else ""} from different random starts (“runs”, or chains).
Each run first searches (burn-in, {posterior.burn_in:,} sweeps) and then collects {posterior.n_draws:,} plausible
descriptions of the data (draws). Where runs that started apart end up saying the same, the answer comes from the data
and not from chance.</p>
<div class="pair">
<figure>{_convergence(posterior)}<figcaption>Error on the observed entries during each run{_unit(posterior)}. The lines
should be flat and overlap after the shaded search. A run that stays above the others is stuck in a worse
description.</figcaption></figure>
<figure>{agreement(posterior.alignment.agrees[:, order], "Which runs have found which patterns")}<figcaption>Which run
found which pattern (a full dot), from the largest to the smallest. A pattern can be interpreted if its column is full.
Run {posterior.alignment.reference + 1} fits best, and the others are compared with it.</figcaption></figure>
</div>
{_check(overview)}
{_numbers(posterior)}
<p class="verbatim">In the words of <code>posterior.summary()</code>: {escape(posterior.summary().verdict)}</p>"""


def _unit(posterior: Posterior) -> str:
    own = posterior.scale is not None and len(posterior.scale) > 1
    return ", in units of the scale of each column" if own else ""


def _convergence(posterior: Posterior) -> str:
    errors = np.sqrt(posterior.train_mse)
    n_sweeps = errors.shape[1]
    seen = errors[np.isfinite(errors) & (errors > 0)]
    low, high = (float(seen.min()), float(seen.max())) if seen.size else (0.5, 1.0)
    # The first sweeps are far off, and would leave no room for the others.
    high = min(high, float(np.nanmax(errors[:, min(N_FAR_OFF, n_sweeps - 1) :])) * 1.02)
    low, high = (low * 0.98, high) if high > low else (low * 0.9, low * 1.1)
    title = "Root mean squared error on the observed entries by sweep, one line per run"
    chart = Chart((0, n_sweeps), (low, high), "sweep", "error (root mean square)", title, log_y=True)
    if posterior.burn_in:
        chart.shade(0, posterior.burn_in, "search (burn-in)")
    for chain, line in enumerate(errors):
        shown = np.where((line > 0) & (line <= high), line, np.nan)
        chart.line(np.arange(1.0, n_sweeps + 1), shown, chain)
    keys = "".join(
        f'<span class="key"><svg viewBox="0 0 26 8" aria-hidden="true"><path class="line c{chain % N_LINE_STYLES}" '
        f'd="M1 4H25"/></svg>run {chain + 1}</span>'
        for chain in range(min(len(errors), N_LINE_STYLES))
    )
    return f'{chart.svg()}<p class="keys">{keys}</p>'


def _check(overview: Overview) -> str:
    rng = np.random.default_rng(0)
    rows, columns, values = overview.sample()
    if not len(values):
        return ""
    chosen = np.sort(rng.choice(len(values), min(N_CHECKED, len(values)), replace=False))
    rows, columns, values = rows[chosen], columns[chosen], values[chosen]
    fitted = overview.posterior.mean(rows, columns)
    spread, centre = overview.spread(columns), overview.column_mean[columns]
    total = float(np.sum(((values - centre) / spread) ** 2))
    explained = 1.0 - float(np.sum(((values - fitted) / spread) ** 2)) / total if total > 0 else float("nan")
    unit = "value"
    if overview.units_differ:
        values, fitted, unit = (values - centre) / spread, (fitted - centre) / spread, "value, columns scaled"
    both = np.concatenate([values, fitted])
    ends = (float(np.quantile(both, 0.001)), float(np.quantile(both, 0.999)))
    ends = ends if ends[1] > ends[0] else (ends[0] - 0.5, ends[1] + 0.5)
    margin = 0.03 * (ends[1] - ends[0])
    ends = (ends[0] - margin, ends[1] + margin)
    chart = Chart(ends, ends, f"observed {unit}", "fitted", "Fitted against observed values")
    chart.diagonal()
    part = slice(0, N_POINTS)
    order = rng.permutation(len(values))[part]
    chart.points(np.clip(values[order], *ends), np.clip(fitted[order], *ends))
    return f"""<div class="pair">
<figure>{chart.svg()}<figcaption>Fitted against observed values ({len(order):,} entries chosen at random). Entries on
the dashed line are described exactly.</figcaption></figure>
<div><h3>Does it describe the data?</h3>
<dl class="facts"><div><dt>{percent(explained)}</dt><dd>of the variation within columns is explained by the patterns,
in {len(values):,} entries that the fit has seen</dd></div>{_hidden(overview.posterior.calibration)}</dl></div>
</div>"""


def _hidden(calibration: Calibration | None) -> str:
    """Return what was measured on hidden entries, or how to measure it."""
    if calibration is None:
        return (
            "<div><dt>?</dt><dd>of the hidden values lie inside their intervals: no entries were hidden in this fit. "
            "<code>bnmf check</code> and <code>check_table</code> measure it</dd></div>"
        )
    return (
        f"<div><dt>{percent(calibration.coverage)}</dt><dd>of {calibration.n_entries:,} values that were hidden for "
        f"this purpose lie inside their {percent(PROB)} intervals</dd></div>"
        f"<div><dt>{calibration.error:.2f}</dt><dd>is the error of their predictions, in standard deviations of their "
        f"columns; that of the column mean is {calibration.error_of_mean:.2f}</dd></div>"
    )


def _numbers(posterior: Posterior) -> str:
    table = posterior.summary()
    meaning = {
        "noise variance": "size of what the patterns do not explain",
        "log likelihood": "how well the observed entries fit",
        "predictions": "100 entries chosen at random, the worst of them",
        "aligned W": "weights of some rows, the worst of them",
        "aligned Z": "profiles of some columns, the worst of them",
    }
    rows = [
        [
            quantity,
            meaning.get(quantity, ""),
            (row["r_hat"], f"{row['r_hat']:.2f}" if np.isfinite(row["r_hat"]) else "–"),
            (row["ess"], number(round(row["ess"]) if np.isfinite(row["ess"]) else row["ess"])),
        ]
        for quantity, row in zip(map(str, table.index), table.to_dict("records"), strict=True)
    ]
    columns = [
        Column("quantity"),
        Column("what it is"),
        Column("R-hat", True, "spread between runs over spread within a run; 1.00 is perfect, up to 1.05 is good"),
        Column("effective draws", True, "independent draws that the draws of all runs are worth; 100 are enough"),
    ]
    intro = (
        "<p><strong>R-hat</strong> compares how much runs differ with how much each of them varies: 1.00 is perfect, "
        "and up to 1.05 is good. <strong>Effective draws</strong> are how many independent draws all runs together are "
        "worth: 100 are enough for means and intervals.</p>"
    )
    return intro + html_table("Agreement of the runs in numbers", columns, rows, search=False)
