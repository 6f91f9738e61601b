"""What commands say, in plain lines with colour only in a terminal: about a table, a fit and its verdict."""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bnmf.utils.text import counted, duration, listed, printable, shortened

if TYPE_CHECKING:
    from bnmf.estimator import BayesianNMF
    from bnmf.posterior import Posterior
    from bnmf.posterior.verdict import Verdict
    from bnmf.tables import Table

N_SHOWN_NAMES = 3
NAME_WIDTH = 24
# Fraction of zeros among the observed entries from which it is worth to ask what they mean.
MANY_ZEROS = 0.2
# Columns of text in wide terminals, and where there is none.
MAX_WIDTH = 100
# What advice for Python names, where the command line has another word than --name.
NAMES = {"n_components": "--components", "n_draws": "--draws", "sample_more": "--resume", "NMFImputer": "bnmf impute"}
# What is learned besides the components, in short.
EFFECTS = {"effect of the rows": "row effects", "offset of the columns": "an offset"}


class Screen:
    """Lines and tables for the reader."""

    def __init__(self, to_stderr: bool = False) -> None:
        from rich.console import Console

        self.console = Console(stderr=to_stderr, highlight=False, markup=False, emoji=False)
        if not self.console.is_terminal:
            self.console.width = MAX_WIDTH

    def say(self, text: str, style: str | None = None) -> None:
        """Show a line as it is, so that paths in it can be copied."""
        self.console.print(printable(text), style=style, soft_wrap=True)

    def explain(self, text: str, style: str | None = None, indent: str = "") -> None:
        """Show sentences, in lines that can be read."""
        self.say(wrapped(text, min(self.console.width, MAX_WIDTH), indent), style)

    def show(self, headings: list[str], rows: list[list[str]]) -> None:
        """Show a small table, all columns but the first to the right."""
        from rich.box import SIMPLE_HEAD
        from rich.table import Table as Lines

        lines = Lines(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
        lines.add_column(headings[0])
        for heading in headings[1:]:
            lines.add_column(heading, justify="right")
        for row in rows:
            lines.add_row(*map(printable, row))
        self.console.print("", lines, "", sep="\n")

    def judge(self, verdict: Verdict, more: str = "", purposes: Collection[str] | None = None) -> None:
        """Show what a verdict finds, of some purposes or all, and how to take more draws if predictions need them."""
        from bnmf.estimator import CALIBRATED
        from bnmf.sampler.until_converged import N_FIRST_DRAWS

        for finding in in_options(verdict):
            if purposes is None or finding.purpose in purposes:
                shown = replace(finding, advice="") if finding.purpose == "predictions" else finding
                self.explain(str(shown), style="bold" if finding.level == "poor" else None)
            if finding.purpose == "predictions" and "intervals" not in verdict:
                least, most = CALIBRATED
                self.explain(
                    f"Intervals: unknown. No entries were hidden to measure their coverage, which takes {least:,} to "
                    f"{most:,} observed entries, two chains and {N_FIRST_DRAWS} draws: see bnmf check."
                )
        if more and not verdict["predictions"].is_usable:
            self.say(more)

    def judge_predictions(self, verdict: Verdict, max_time: float | None) -> None:
        """Show what a verdict says about predictions."""
        from bnmf.posterior.verdict import WARNED

        self.judge(verdict, f"Give it more time with: {longer(max_time)}", WARNED)

    def fitted(self, fit: Callable[[BayesianNMF], BayesianNMF], model: BayesianNMF) -> Posterior:
        """Return the posterior of a model that a function fits, and say how long it took."""
        from sklearn.exceptions import ConvergenceWarning

        from bnmf.sampler.run import Ending, InterruptedRunWarning

        begin = time.monotonic()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # the commands show the verdict
                warnings.simplefilter("ignore", InterruptedRunWarning)
                model = fit(model.set_params(progress=True))
        except TimeoutError:
            raise TimeoutError("--max-time was over before the first draw: allow more") from None
        if model.ending_ == Ending.INTERRUPTED:
            raise KeyboardInterrupt
        posterior = model.posterior_
        endings = {"max_time": "; the time was up", "memory": "; more would not fit into memory"}
        drawn = f"{counted(posterior.n_chains, 'chain')} of {counted(posterior.n_draws, 'draw')}"
        self.say(
            f"Sampled in {duration(time.monotonic() - begin)}: {drawn}, "
            f"{components_of(posterior)}{endings.get(model.ending_, '')}."
        )
        run = model._fit_.run
        n_stored = min(map(run.schedule.draws_after, run.store.sweeps))
        if n_stored > posterior.n_draws:  # of a fit that is resumed with fewer draws
            self.say(f"These are the first {posterior.n_draws} of {n_stored} draws: --draws {n_stored} takes all.")
        return posterior

    def describe(self, table: Table, source: Path | str) -> None:
        """Say what a table holds before it is used: shape, names, observed, missing, range."""
        name = "standard input" if str(source) == "-" else str(source)
        self.say(f"{name}: {table.layout.description}", style="bold")
        width = min(self.console.width, MAX_WIDTH) if self.console.is_terminal else 10_000
        for line in [*facts_of(table), *(f"Note: {note}." for note in table.notes)]:
            self.say(wrapped(f"  {line}", width, "    "))


def wrapped(text: str, width: int, indent: str = "") -> str:
    """Return a text in lines of so many cells of a terminal, broken at blanks only, all but the first indented."""
    from rich.cells import cell_len  # wide signs take two cells

    lines: list[str] = []
    for word in text.split(" "):
        if lines and cell_len(f"{lines[-1]} {word}") <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(f"{indent}{word}" if lines else word)
    return "\n".join(lines)


def components_of(posterior: Posterior) -> str:
    """Return the number of components, with what is learned besides."""
    effects = [EFFECTS[effect] for effect in posterior.effects.values()]
    return listed([f"K = {posterior.n_components - len(effects)}", *effects])


def longer(max_time: float | None) -> str:
    """Return the option that allows ten times as long."""
    return f"--max-time {10 * (max_time or 60.0):g}"


def check_values(table: Table, source: Path | str, *, negative: bool) -> None:
    """Raise an error if a table has nothing to learn from, or negative numbers that the model does not take."""
    numbers = table.numbers()
    if table.n_observed == 0:
        raise ValueError(f"{source}: all entries are missing, so there is nothing to learn from")
    if not negative and (numbers < 0).any():
        raise ValueError(
            f"{source}: the lowest entry is {numbers.min():g}, and the model takes nonnegative numbers: use --offset "
            "min, which subtracts the minimum of each column first, or --prior normal"
        )


def in_options(verdict: Verdict) -> Verdict:
    """Return a verdict whose advice names options of the command line."""
    return replace(verdict, findings=tuple(replace(each, advice=as_options(each.advice)) for each in verdict))


def as_options(text: str) -> str:
    """Return advice with parameters and names of Python as the options of the command line."""
    text = re.sub(r"bnmf\.limits\(X, (\w+=[^)]+)\)", r"\1", text)
    return re.sub(r"\b[a-z]\w*=(?:\"[^\"]*\"|[\w.+-]*\w)|`\w+`|\bNMFImputer\b", _as_option, text)


def _as_option(found: re.Match[str]) -> str:
    name, _, value = found[0].replace("`", "").replace('"', "").partition("=")
    option = NAMES.get(name, f"--{name.replace('_', '-')}")
    return f"{option} {value}" if value else option


def facts_of(table: Table) -> list[str]:
    """Return the contents of a table in a few lines."""
    import numpy as np

    from bnmf.tables.table import repeated
    from bnmf.tables.text import number

    n_rows, n_columns = table.shape
    of_rows, of_columns = table.counts()
    numbers, n_limited = table.numbers(), len(table.limits)
    n_observed = int(of_rows.sum()) - n_limited
    n_missing = n_rows * n_columns - n_observed - n_limited
    lines = [f"{_count(n_rows, 'row', table.row_names)} x {_count(n_columns, 'column', table.column_names)}"]
    shown = f"{counted(n_observed, 'entry')} observed, {n_missing:,} missing ({n_missing / (n_rows * n_columns):.1%})"
    shown += f", {counted(n_limited, 'limit')} such as <0.01 or >100" if n_limited else ""
    lines.append(f"{shown}, from {numbers.min():g} to {numbers.max():g}" if numbers.size else shown)
    if table.words:
        of_words = [table.column_labels[at] for at in table.words]
        lines.append(f"{counted(len(of_words), 'column')} of words: {_listed(of_words)}")
        for name, column in zip(of_words, table.words.values(), strict=True):
            cells = column.dropna().astype(str)
            if len(cells) and all(number(re.sub(r"[%$€£¥,' ]", "", cell)) is not None for cell in cells):
                lines.append(
                    f"Note: column {name!r} is taken as words, such as {cells.iloc[0]!r}: numbers have no signs of "
                    "units or thousands."
                )
    zeros = float(np.mean(numbers == 0)) if numbers.size else 0.0
    if table.has_implicit_zeros:
        lines.append(
            f"{numbers.size:,} entries are stored; the others are zeros. If they mean missing, use --unstored missing."
        )
    elif zeros >= MANY_ZEROS:
        lines.append(f"{zeros:.0%} of them are zero. Zeros are data: if they mean missing, use --missing 0.")
    if table.asked is not None:
        n_asked = int(np.isnan(table.limits.at(*table.asked)[0]).sum())
        if n_asked:
            lines.append(f"{counted(n_asked, 'line')} without a value, which bnmf impute fills")
    sides = (
        ("row", of_rows, table.row_labels, "a typical row is predicted"),
        ("column", of_columns, table.column_labels, "impute leaves it empty"),
    )
    for what, counts, labels, consequence in sides:
        empty = [labels[at] for at in np.flatnonzero(counts == 0)]
        if empty and counts.any():
            lines.append(f"No observed entry in {counted(len(empty), what)} ({_listed(empty)}): {consequence}.")
    for what, names in (("row name", table.row_names), ("column name", table.column_names)):
        twice = repeated(names)
        if twice:
            lines.append(f"Note: {what}s that occur more than once: {_listed(twice)}.")
        formulas = [name for name in names or () if name[:1] in ("=", "+", "-", "@") and number(name) is None]
        if formulas:
            count = counted(len(formulas), what)
            lines.append(f"Note: {count}, such as {formulas[0]!r}, may be run as a formula by a spreadsheet.")
    return lines


def _count(number: int, noun: str, names: list[str] | None) -> str:
    count = counted(number, noun)
    return f"{count} without names" if names is None else f"{count} ({_listed(names)})"


def _listed(names: list[str]) -> str:
    shown = [shortened(name, NAME_WIDTH) for name in names[:N_SHOWN_NAMES]]
    return ", ".join([*shown, "..."] if len(names) > N_SHOWN_NAMES else shown)
