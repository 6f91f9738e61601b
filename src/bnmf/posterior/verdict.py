"""The verdict on a fit: what it can be used for, and what to do otherwise. Everything else only shows it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.stats import binom, norm

from bnmf.posterior.calibration import PROB, Calibration
from bnmf.posterior.summary import MIN_DRAWS
from bnmf.utils.text import counted
from bnmf.utils.typing import Floats

if TYPE_CHECKING:
    from bnmf.posterior.base import BasePosterior

GOOD, USABLE, POOR, UNKNOWN = "good", "usable", "poor", "unknown"
# Monte Carlo error of a prediction, in units of its predictive standard deviation, up to which it is good, and up to
# which it is usable. They add 0.5% and 3% to the root mean squared error of a prediction that is otherwise right.
PREDICTION_ERRORS = (0.1, 0.25)
# The same for R-hat of a single quantity. The worst of several is larger than a typical one.
RHAT_LIMITS = (1.05, 1.1)
# Difference of the measured coverage from that of the intervals, beyond its standard error, up to which they are good,
# and up to which they are usable.
COVERAGE_ERRORS = (0.05, 0.1)
# Coverage below which a column is named, unless chance can explain it with this probability.
MIN_COLUMN_COVERAGE, CHANCE = 0.7, 1e-3
# Absolute error over that of another method from which predictions are worse than its, of all columns and of one,
# unless chance can explain it with this probability. Hidden entries, in all and of a column, that it takes to tell.
WORSE_THAN_MEAN, WORSE_COLUMN, CHANCE_OF_ERRORS, MIN_TO_COMPARE, MIN_HIDDEN = 1.05, 1.2, 0.01, 40, 20
# Columns that are named.
N_NAMED = 3
BETTER_ERRORS, BETTER_WITH_OFFSET = (
    'try offset="learned", NMFImputer or fewer components',
    "try fewer components or more draws",
)
# Purposes whose problems are worth a warning. Chains in nearly equivalent factorisations agree in their predictions
# long before they agree in their noise and components.
WARNED = ("fit", "predictions", "intervals")
# What is said of the predictions as a whole.
HEADLINES = {
    POOR: "Do not rely on the predictions and their intervals{where}.",
    UNKNOWN: "It is not known whether the predictions can be used.",
    USABLE: "The predictions can be used with care.",
    GOOD: "The predictions and their intervals can be used.",
}
UNMEASURED = "The predictions can be used. The coverage of their intervals was not measured."
# Median width of the intervals of imputed values over that of the column mean, and what it says.
SHARPNESS = (
    (0.3, "Most imputed values are far better than the column mean."),
    (0.6, "Most imputed values are clearly better than the column mean."),
    (0.85, "Most imputed values are somewhat better than the column mean."),
    (math.inf, "Most imputed values are only a little better than the column mean."),
)


@dataclass(frozen=True)
class Finding:
    """A finding about one purpose of a fit."""

    purpose: str  # fit, predictions, intervals, noise or components
    level: str  # good, usable, poor or unknown
    sentence: str  # what was measured, without a capital and a full stop
    advice: str = ""  # what to do, in the same form
    number: float | None = None  # what the level was derived from
    where: str = ""  # the columns that it is about, if it is not about all

    @property
    def is_usable(self) -> bool:
        """Whether the level is good or usable."""
        return self.level in (GOOD, USABLE)

    @property
    def text(self) -> str:
        """The sentence and the advice, with capitals and full stops."""
        return " ".join(f"{part[0].upper()}{part[1:]}." for part in (self.sentence, self.advice) if part)

    def __str__(self) -> str:
        return self.text if self.purpose == "fit" else f"{self.purpose.capitalize()}: {self.level}. {self.text}"


@dataclass(frozen=True)
class Verdict:
    """All findings about a fit, in the order in which they are shown."""

    findings: tuple[Finding, ...]

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __getitem__(self, purpose: str) -> Finding:
        return next(finding for finding in self.findings if finding.purpose == purpose)

    def __contains__(self, purpose: str) -> bool:
        return any(finding.purpose == purpose for finding in self.findings)

    def __repr__(self) -> str:
        return " ".join(map(str, self.findings))

    @property
    def level(self) -> str:
        """The worst level of the findings that are worth a warning."""
        judged = {finding.level for finding in self if finding.purpose in WARNED}
        return next(level for level in HEADLINES if level in judged)

    def headline(self, uncertainty: float) -> tuple[str, str]:
        """Return a sentence on the predictions as a whole, and one on imputed values, given their uncertainty."""
        words = UNMEASURED if self.level == GOOD and "intervals" not in self else HEADLINES[self.level]
        where = {finding.where: None for finding in self if finding.level == POOR and finding.purpose in WARNED}
        words = words.format(where="" if "" in where or not where else f" in {' and '.join(where)}")
        sharpness = next((text for limit, text in SHARPNESS if uncertainty <= limit), "")
        return words, sharpness if self.level in (GOOD, USABLE) else ""

    def of_quantity(self, quantity: str, r_hat: float) -> str:
        """Return the level of a row of the table of diagnostics: of the finding that judges it, or of its R-hat."""
        if quantity == "predictions":
            return self["predictions"].level
        return self["components"].level if quantity.startswith("aligned") else level_of(r_hat, RHAT_LIMITS)

    def problems(self) -> list[str]:
        """Return a sentence with advice for each finding that is worth a warning."""
        poor = (finding for finding in self if finding.level == POOR and finding.purpose in WARNED)
        return ["; ".join(part for part in (finding.sentence, finding.advice) if part) for finding in poor]


def level_of(value: float, limits: tuple[float, float]) -> str:
    """Return the level of a value: up to the first limit good, up to the second usable, above it poor."""
    if math.isnan(value):
        return UNKNOWN
    return GOOD if value <= limits[0] else USABLE if value <= limits[1] else POOR


def level_of_component(n_found: int, n_chains: int, *, is_active: bool) -> str:
    """Return the level of a component that so many of the chains have found."""
    return GOOD if is_active and n_found == n_chains else USABLE


def of_posterior(posterior: BasePosterior) -> Verdict:
    """Return the verdict on a fit."""
    return Verdict((*on_use(posterior), _on_noise(posterior), _on_components(posterior)))


def on_use(posterior: BasePosterior) -> Verdict:
    """Return the findings that may be worth a warning, which take so little time that every fit asks for them."""
    has_offset = posterior.offset is not None or any(posterior.n_fixed)
    intervals = on_intervals(posterior.calibration, posterior.column_names, has_offset=has_offset)
    return Verdict((*posterior.notes, _on_predictions(posterior), *intervals))


def _on_predictions(posterior: BasePosterior) -> Finding:
    """Compare the chains' predictions with each other."""
    error = posterior.prediction_error()
    level = level_of(error, PREDICTION_ERRORS)
    if level == UNKNOWN and posterior.n_draws < MIN_DRAWS:
        sentence = f"{counted(posterior.n_draws, 'draw')} of each chain cannot tell whether the chains agree"
        return Finding("predictions", UNKNOWN, sentence, "take at least 100")
    if level == UNKNOWN:
        return Finding("predictions", UNKNOWN, "one chain without its draws cannot be compared", "use several chains")
    how, advice = {
        GOOD: ("agree", ""),
        USABLE: ("nearly agree", "more draws make them more exact"),
        POOR: ("disagree", 'continue with `sample_more`, or fit with n_draws="auto"'),
    }[level]
    whose = "the chains' predictions" if posterior.n_chains > 1 else "the predictions of the chain's two halves"
    sentence = f"{whose} {how} (Monte Carlo error {error:.0%} of the predictive standard deviation)"
    return Finding("predictions", level, sentence, advice, error)


def on_intervals(calibration: Calibration | None, names: pd.Index | None, *, has_offset: bool = False) -> list[Finding]:
    """Judge the coverage and the errors of the entries that were hidden; nothing if there were none."""
    if calibration is None:
        return []
    n, coverage, table = calibration.n_entries, calibration.coverage, calibration.by_column()
    sentence = f"of {n:,} entries hidden for this purpose {coverage:.0%} are inside their {PROB:.0%} intervals"
    # Entries of a row or column are not independent: twice the binomial standard error, and twice that.
    chance = 4.0 * math.sqrt(PROB * (1.0 - PROB) / n)
    level, advice = level_of(abs(coverage - PROB) - chance, COVERAGE_ERRORS), ""
    if level != GOOD and coverage > PROB:  # wider than necessary, but no value is missed
        level, advice = USABLE, "the intervals are too wide"
    elif level != GOOD:
        advice = 'the intervals are too narrow: try noise="student-t" or fewer components'
    large = table[table["n"] >= MIN_HIDDEN]
    p_values = binom.cdf((large["coverage"] * large["n"]).round(), large["n"], PROB) * len(large)
    narrow = large.index[(large["coverage"] < MIN_COLUMN_COVERAGE) & (p_values < CHANCE)].tolist()
    worse, all_are_worse = _worse_than_mean(calibration, table.index[table["n_compared"] >= MIN_HIDDEN])
    where = "" if level == POOR or all_are_worse else named(sorted({*narrow, *worse}), names)
    if narrow:
        level, advice = POOR, advice or 'for these columns try noise="student-t" or fewer components'
        sentence += f", but far fewer in {named(narrow, names)}"
    if worse or all_are_worse:
        level, advice = POOR, BETTER_WITH_OFFSET if has_offset else BETTER_ERRORS
        means = "the means of the columns" if all_are_worse else f"the mean in {named(worse, names)}"
        sentence += f", and predictions are worse than {means}"
    return [Finding("intervals", level, sentence, advice, coverage, where)]


def _worse_than_mean(calibration: Calibration, columns: pd.Index) -> tuple[list[int], bool]:
    """Return the columns whose means predict the hidden entries better, and whether those of the others do together."""
    own, of_mean = np.abs(calibration.errors), np.abs(calibration.errors_of_mean)
    chosen = {column: (calibration.columns == column) & ~np.isnan(own) for column in columns}
    worse = [at for at, some in chosen.items() if _is_worse(own[some], of_mean[some], WORSE_COLUMN, len(columns))]
    known = ~np.isnan(own) & ~np.isin(calibration.columns, worse)
    return worse, bool(known.sum() >= MIN_TO_COMPARE and _is_worse(own[known], of_mean[known]))


def on_methods(errors: Mapping[str, Floats]) -> list[Finding]:
    """Compare the absolute errors of methods at the same hidden entries: of bnmf, of the column mean, and of others."""
    own, mean, *others = errors
    size = {method: float(of_entries.mean()) for method, of_entries in errors.items()}
    rival, n = min(others, key=size.__getitem__, default=None), len(errors[own])

    def share(method: str) -> str:
        return f"{size[method] / size[mean]:.0%}" if size[mean] else "?"

    def is_worse(method: str, than: str) -> bool:
        return n > 1 and _is_worse(errors[method], errors[than])

    of_mean, advice = "of the absolute error of the column mean", ""
    if not is_worse(mean, own):
        level, how = (POOR, "worse") if is_worse(own, mean) else (USABLE, "no better")
        words = f"{how} by bnmf than by the column mean"
        if rival and is_worse(mean, rival):
            words += f", but better by {rival}, with {share(rival)} of its absolute error"
            advice = f"use {rival} here"
        else:
            words += ", and no better by the others" if rival and level == USABLE else ""
            advice = (
                f"as far as can be told from {n:,} of them, the columns of this table say little about each other, and "
                "the column mean will do"
            )
    elif rival is None or is_worse(rival, own):
        level, words = GOOD, f"best by bnmf, with {share(own)} {of_mean}"
    elif is_worse(own, rival):
        level, words = USABLE, f"best by {rival}, with {share(rival)} {of_mean}, and by bnmf with {share(own)}"
        advice = f"use {rival} if you need no intervals"
    else:
        level, words = GOOD, f"about equally well by bnmf and {rival}, with {share(own)} and {share(rival)} {of_mean}"
    found = [Finding("errors", level, f"hidden entries are predicted {words}", advice, size[own])]
    if n >= MIN_TO_COMPARE:
        return found
    few = f"only {counted(n, 'entry')} {'was' if n == 1 else 'were'} hidden, so this is no more than a hint"
    return [Finding("errors", UNKNOWN, few), *found]


def _is_worse(own: Floats, others: Floats, ratio: float = WORSE_THAN_MEAN, n_tests: int = 1) -> bool:
    """Return whether absolute errors are larger than others of the same entries, in one of `n_tests` such tests."""
    # Squared errors would be those of a few entries, where columns are skewed.
    difference = own - others
    chance = norm.isf(CHANCE_OF_ERRORS / n_tests) * difference.std() / math.sqrt(len(difference))
    return bool(own.mean() > ratio * others.mean() and difference.mean() > chance)


def named(columns: Any, names: pd.Index | None) -> str:
    """Return a list of columns by name, cut to a few; nothing without columns."""
    if not len(columns):
        return ""
    shown = [repr(names[column]) if names is not None else str(column) for column in columns[:N_NAMED]]
    others = f" and {len(columns) - N_NAMED} others" if len(columns) > N_NAMED else ""
    return f"column{'s' if len(columns) > 1 else ''} {', '.join(shown)}{others}"


def _on_noise(posterior: BasePosterior) -> Finding:
    """Judge R-hat of the noise and of the log likelihood."""
    table = posterior.diagnostics
    judged = [name for name in ("noise variance", "log likelihood") if name in table.index]
    r_hat = float(table.loc[judged, "r_hat"].max(skipna=False))
    level = level_of(r_hat, RHAT_LIMITS)
    sentence = {
        GOOD: "the chains agree on the noise and the fit",
        USABLE: "the chains nearly agree on the noise and the fit",
        POOR: "the chains are in different modes, although their predictions may agree",
        UNKNOWN: "there are too few draws to compare noise and fit",
    }[level]
    if posterior.n_chains == 1 and level != UNKNOWN:
        sentence = "one chain is compared with itself"
    measured = "" if level == UNKNOWN else f" (R-hat {r_hat:.2f})"
    advice = "before you report noise levels, double `burn_in` or take fewer components" if level == POOR else ""
    return Finding("noise", level, sentence + measured, advice, r_hat)


def _on_components(posterior: BasePosterior) -> Finding:
    """Judge how many of the active components all chains have found."""
    found = posterior.component_matches()
    if found is None:
        sentence = "without draws, the components of the chains are not compared"
        return Finding("components", UNKNOWN, sentence, "fit with keep_draws=True")
    if posterior.n_draws < MIN_DRAWS:
        return Finding("components", UNKNOWN, "there are too few draws to compare components", "take at least 100")
    active, agrees = found
    n_active, total, shared = int(active.sum()), len(active), int(np.count_nonzero(agrees & active))
    stand = "stands" if n_active == 1 else "stand"
    of_these = "" if n_active == total else f"{n_active} of {total} components {stand} out from the noise; "
    if posterior.n_chains == 1:
        sentence = f"{of_these}one chain cannot tell whether another would find the same components"
        return Finding("components", UNKNOWN, sentence, "use several chains")
    if n_active == 0:
        return Finding("components", POOR, "no component stands out from the noise", "", 0.0)
    chains = "both chains" if posterior.n_chains == 2 else f"all {posterior.n_chains} chains"
    level = GOOD if shared == n_active else USABLE if shared else POOR
    if shared == n_active and of_these:
        found_by_all = "it" if n_active == 1 else "them"
    else:
        part = "" if shared == n_active else f"{shared} of "
        found_by_all = part + ("these" if of_these else counted(total, "component"))
    sentence = f"{of_these}{chains} find {found_by_all}"
    advice = "" if level == GOOD else "interpret only components that all chains find; fewer are often more stable"
    return Finding("components", level, sentence, advice, shared / n_active)
