"""The verdict as cards, and the section with the figures and numbers behind it."""

from __future__ import annotations

import numpy as np

from bnmf.plots.look import column_scale
from bnmf.posterior import Posterior
from bnmf.posterior.base import N_MONITORED_PREDICTIONS
from bnmf.posterior.verdict import PREDICTION_ERRORS, RHAT_LIMITS, UNKNOWN, Verdict
from bnmf.report.charts import N_LINE_STYLES, Chart, agreement
from bnmf.report.markup import Column, Html, html_table, percent
from bnmf.report.overview import Overview
from bnmf.utils.text import prose

# Observed entries that are compared with what was fitted to them, and points that are drawn.
N_CHECKED = 4000
N_POINTS = 1500
# Sweeps at the start of a chain that may lie beyond the axis.
N_FAR_OFF = 5
# Name of a level on a card, and its mark.
LEVELS = {
    "poor": ("Do not rely on it", "✕"),
    "unknown": ("Unknown", "?"),
    "usable": ("With care", "!"),
    "good": ("Good", "✓"),
}
# What the numbers of each quantity are about, and what its verdict is by.
QUANTITIES = {
    "noise variance": ("", "R-hat"),
    "log likelihood": ("of the observed entries", "R-hat"),
    "predictions": (f"the worst of {N_MONITORED_PREDICTIONS} entries chosen at random", "Monte Carlo error"),
    "aligned W": ("the worst of some weights of rows", "chains that find each component"),
    "aligned Z": ("the worst of some entries of profiles", "chains that find each component"),
}


def banner(verdict: Verdict, uncertainty: float) -> str:
    """Return the notes on the fit as such, a sentence on the predictions, and a card for each other finding."""
    notes = "".join(
        f'<p class="banner {finding.level}">{prose(finding.text)}</p>'
        for finding in verdict
        if finding.purpose == "fit"
    )
    cards = "".join(
        f'<div class="verdict {finding.level}"><p class="purpose">{finding.purpose.capitalize()}</p>'
        f'<p class="level"><span class="mark" aria-hidden="true">{LEVELS[finding.level][1]}</span>'
        f"{LEVELS[finding.level][0]}</p><p>{prose(finding.text)}</p></div>"
        for finding in verdict
        if finding.purpose != "fit"
    )
    headline, sharpness = verdict.headline(uncertainty)
    return (
        f'<p class="banner {verdict.level}"><strong>{headline}</strong> {sharpness}</p>{notes}'
        f'<div class="verdicts">{cards}</div>'
    )


def section(overview: Overview) -> str:
    """Return the section."""
    posterior = overview.posterior
    kept = f"sweeps (burn-in) are discarded, and {posterior.n_draws:,} draws from the posterior are kept."
    if posterior.n_chains > 1:
        about = f"""{posterior.n_chains} chains were started at random. Of each, the first {posterior.burn_in:,} {kept}
If chains with different starts agree, the result does not depend on the start."""
        lines = "lines should be flat and overlap. A chain that stays above the others is stuck in a worse mode."
    else:
        about = f"One chain was started at random. Its first {posterior.burn_in:,} {kept}"
        lines = "line should be flat."
    unit = "" if column_scale(posterior) is None else ", in units of the scale of each column"
    return f"""
<p>{about}</p>
<div class="pair">
<figure>{_traces(posterior)}<figcaption>Error on the observed entries by sweep{unit}. After the burn-in the
{lines}</figcaption></figure>
{_dots(posterior)}
</div>
{_check(overview)}
{_numbers(posterior)}"""


def _dots(posterior: Posterior) -> str:
    """Return which chains found which components, if they can be compared."""
    if posterior.verdict["components"].level == UNKNOWN:
        return ""
    return f"""<figure>{agreement(posterior.alignment.agrees, "Which chains have found which components")}
<figcaption>Which chain found which component (a full dot). Interpret a component if all chains found it and it stands
out from the noise. Chain {posterior.alignment.reference} fits best, and the others are compared with it.</figcaption>
</figure>"""


def _traces(posterior: Posterior) -> str:
    errors = np.sqrt(posterior.train_mse)
    n_sweeps = errors.shape[1]
    seen = errors[np.isfinite(errors) & (errors > 0)]
    low, high = (float(seen.min()), float(seen.max())) if seen.size else (0.5, 1.0)
    if n_sweeps > 4 * N_FAR_OFF:  # the first sweeps are far off, and would leave no room for the others
        high = min(high, float(np.nanmax(errors[:, N_FAR_OFF:])) * 1.02)
    low, high = (low * 0.98, high) if high > low else (low * 0.9, low * 1.1)
    title = "Root mean squared error on the observed entries by sweep, one line per chain"
    chart = Chart((0, n_sweeps), (low, high), "sweep", "root mean squared error", title, log_y=True)
    if posterior.burn_in:
        chart.shade(0, posterior.burn_in, "burn-in")
    for chain, line in enumerate(errors):
        shown = np.where((line > 0) & (line <= high), line, np.nan)
        chart.line(np.arange(1.0, n_sweeps + 1), shown, chain)
    keys = "".join(
        f'<span class="key"><svg viewBox="0 0 26 8" aria-hidden="true"><path class="line c{chain}" '
        f'd="M1 4H25"/></svg>chain {chain}</span>'
        for chain in range(min(len(errors), N_LINE_STYLES))
    )
    return f'{chart.svg()}<p class="keys">{keys}</p>'


def _check(overview: Overview) -> str:
    rng = np.random.default_rng(0)
    rows, columns, values = overview.observed()
    if not len(values):
        return ""
    chosen = np.sort(rng.choice(len(values), min(N_CHECKED, len(values)), replace=False))
    rows, columns, values = rows[chosen], columns[chosen], values[chosen]
    fitted = overview.posterior.mean(rows, columns)
    standardised = overview.standardised(values, columns)
    total, residuals = float(np.sum(standardised**2)), (values - fitted) / overview.spread(columns)
    explained = 1.0 - float(np.sum(residuals**2)) / total if total > 0 else float("nan")
    unit = ""
    if overview.units_differ:
        values, fitted = standardised, overview.standardised(fitted, columns)
        unit = ", standardised by column"
    ends = np.quantile(np.concatenate([values, fitted]), [0.001, 0.999])
    margin = 0.03 * (ends[1] - ends[0]) or 0.5
    low, high = float(ends[0] - margin), float(ends[1] + margin)
    chart = Chart((low, high), (low, high), f"observed value{unit}", "fitted value", "Fitted against observed values")
    part = rng.permutation(len(values))[:N_POINTS]
    chart.points(np.clip(values[part], low, high), np.clip(fitted[part], low, high))
    n_all = overview.data.n_observed
    which = f"all {n_all:,} entries" if len(part) == n_all else f"{len(part):,} entries chosen at random"
    return f"""<div class="pair">
<figure>{chart.svg()}<figcaption>Fitted against observed values ({which}). On the dashed line both are
equal.</figcaption></figure>
<div><h3>Fit and calibration</h3>
<dl class="facts"><div><dt>{percent(explained)}</dt><dd>of the variance within columns is explained
({len(values):,} entries that the fit has seen)</dd></div>{_hidden(overview.posterior)}</dl></div>
</div>"""


def _hidden(posterior: Posterior) -> str:
    """Return coverage and error of hidden entries, or how to measure them."""
    calibration = posterior.calibration
    if calibration is None:
        return (
            "<div><dt>?</dt><dd>coverage of the intervals is not known: no entries were hidden in this fit. "
            "<code>bnmf check</code> and <code>check_table</code> measure it</dd></div>"
        )
    coverage = (
        f"<div><dt>{percent(calibration.coverage)}</dt><dd>is the coverage: "
        f"{prose(posterior.verdict['intervals'].sentence)}</dd></div>"
    )
    if np.isnan(calibration.error):  # all have a limit on one side only
        return coverage
    return (
        f"{coverage}<div><dt>{calibration.error:.2f}</dt><dd>is their root mean squared error, in standard deviations "
        f"of their columns; that of the column mean is {calibration.error_of_mean:.2f}</dd></div>"
    )


def _numbers(posterior: Posterior) -> str:
    """Return the table of R-hat and effective sample sizes, with the level of the finding that each row belongs to."""
    rows, verdict = [], posterior.verdict
    for quantity, row in posterior.summary().iterrows():
        r_hat, (note, measure) = row["r_hat"], QUANTITIES[str(quantity)]
        level, error = verdict.of_quantity(str(quantity), r_hat), verdict["predictions"].number
        if quantity == "predictions" and error is not None:
            measure += f" {percent(error)}"
        name = Html(f"{quantity}{note and _note(note)}")
        judged = Html(f'<strong class="{level}-cell">{LEVELS[level][0].lower()}</strong>{_note(f"by {measure}")}')
        rows.append([name, (r_hat, f"{r_hat:.2f}" if np.isfinite(r_hat) else "–"), np.round(row["ess"]), judged])
    columns = [
        Column("quantity"),
        Column("R-hat", True, f"spread between chains over spread within a chain; good up to {RHAT_LIMITS[0]}"),
        Column("effective draws", True, "independent draws that the draws of all chains are worth"),
        Column("verdict"),
    ]
    return f"""
<p><strong>R-hat</strong> compares the spread between chains with that within them: 1.00 is perfect, up to
{RHAT_LIMITS[0]:g} is good. <strong>Effective draws</strong> is the number of independent draws that all draws are
worth. R-hat of the worst of many entries is larger than that of a typical one, so predictions are judged by their Monte
Carlo error (good up to {PREDICTION_ERRORS[0]:.0%} of the predictive standard deviation), and components by the chains
that find them.</p>
{html_table("Agreement of the chains", columns, rows, search=False)}"""


def _note(text: str) -> str:
    return f' <span class="note">{text}</span>'
