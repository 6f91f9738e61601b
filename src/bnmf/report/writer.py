"""Write the report: one HTML file with its style, script and pictures inside."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import date
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

import numpy as np

from bnmf.data.observed import ObservedMatrix
from bnmf.posterior import Posterior
from bnmf.posterior.components import Components
from bnmf.posterior.verdict import Verdict
from bnmf.report.heat_image import matrix_maps, share_maps
from bnmf.report.markup import percent
from bnmf.report.overview import Overview
from bnmf.report.section_components import pattern_cards
from bnmf.report.section_convergence import cards, sharpness, trust
from bnmf.report.section_data import went_in
from bnmf.report.section_imputed import entries, imputed_entries
from bnmf.report.section_settings import run_again
from bnmf.utils.files import write_bytes


def write_report(
    path: str | os.PathLike[str],
    posterior: Posterior,
    data: ObservedMatrix,
    *,
    title: str | None = None,
    settings: Mapping[str, Any] | None = None,
) -> None:
    """Write a report of a fit for people who did not run it: one HTML file that opens without a network.

    It says what went in, whether the fit can be trusted, which patterns were found, which of the imputed entries are
    sure, and how to run it again. Large matrices are shown in part, and the report says which part.

    Parameters
    ----------
    path : path-like
        The file, usually ending in ``.html``. An existing file is replaced only when the new one is complete.
    posterior : Posterior
        The fit.
    data : ObservedMatrix
        What was fitted, in the user's units, with the names of rows and columns.
    title : str, optional
        Title of the report.
    settings : mapping of str to object, optional
        What was asked for, to be listed.

    Examples
    --------
    >>> import numpy as np
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from bnmf import BayesianNMF
    >>> X = np.random.default_rng(0).exponential(size=(20, 10))
    >>> X[::3, ::4] = np.nan
    >>> model = BayesianNMF(2, n_chains=2, random_state=0).fit(X)
    >>> with TemporaryDirectory() as directory:
    ...     path = Path(directory, "report.html")
    ...     write_report(path, model.posterior_, ObservedMatrix.from_data(X), settings=model.get_params())
    ...     path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    True
    """
    if not isinstance(posterior, Posterior):
        raise TypeError(
            f"posterior must be a Posterior, got {type(posterior).__name__}: a report needs the draws, which a fit "
            "with keep_draws=False does not keep"
        )
    if not isinstance(data, ObservedMatrix):
        raise TypeError(f"data must be an ObservedMatrix, got {type(data).__name__}: see ObservedMatrix.from_data")
    if data.shape != posterior.shape:
        raise ValueError(f"data must have the shape of the fitted data, {posterior.shape}, got {data.shape}")
    page = _page(posterior, data, title or "Patterns and missing entries", settings)
    write_bytes(path, page.encode("utf-8", errors="replace"))  # names may hold half characters


def _page(posterior: Posterior, data: ObservedMatrix, title: str, settings: Mapping[str, Any] | None) -> str:
    overview, components = Overview.of(data, posterior), Components.of(posterior)
    imputed = imputed_entries(overview)
    uncertainty = float(np.median(imputed.relative)) if len(imputed.relative) else float("nan")
    sections = {
        "What went in": went_in(overview),
        "Can it be trusted?": trust(overview, components),
        "The patterns": pattern_cards(overview, components, share_maps(overview, components)),
        "The filled-in values": entries(overview, imputed, matrix_maps(overview, components)),
        "To run it again": run_again(posterior, settings),
    }
    anchors = {heading: f"section-{i}" for i, heading in enumerate(sections, 1)}
    here = files("bnmf.report")
    return Template(here.joinpath("report.html").read_text(encoding="utf-8")).substitute(
        title=escape(title),
        date=f"{date.today():%d %B %Y}".lstrip("0"),
        lead=_lead(overview, components),
        banner=_banner(posterior.verdict, sharpness(uncertainty)),
        verdicts=cards(posterior.verdict),
        links="".join(f'<a href="#{anchors[heading]}">{heading}</a>' for heading in sections),
        sections="\n".join(
            f'<section id="{anchors[heading]}" aria-labelledby="{anchors[heading]}-h"><h2 id="{anchors[heading]}-h">'
            f"{heading}</h2>{body}</section>"
            for heading, body in sections.items()
        ),
        style=here.joinpath("report.css").read_text(encoding="utf-8"),
        script=here.joinpath("report.js").read_text(encoding="utf-8"),
    )


def _lead(overview: Overview, components: Components) -> str:
    n_rows, n_columns = overview.data.shape
    n_patterns = components.n_present
    patterns = f"{n_patterns} pattern{'s' if n_patterns != 1 else ''}"
    table = f"A table of {n_rows:,} rows and {n_columns:,} columns"
    if overview.n_missing == 0:
        return f"{table}, without missing entries, was described by {patterns}."
    share = percent(overview.n_missing / overview.n_entries)
    return (
        f"{table} was described by {patterns}. The {overview.n_missing:,} entries that were missing ({share}) were "
        "filled in, each with an interval that says how sure it is."
    )


def _banner(verdict: Verdict, sharp: str) -> str:
    """Return the notes on the fit as such, and one sentence on whether its predictions can be used."""
    notes = "".join(
        f'<p class="banner usable">{escape(finding.text)}</p>' for finding in verdict if finding.purpose == "fit"
    )
    judged = [verdict[purpose].level for purpose in ("predictions", "intervals") if purpose in verdict]
    level = next(level for level in ("unknown", "poor", "usable", "good") if level in judged)
    headline = {
        "good": "The predictions and their intervals can be used.",
        "usable": "The predictions can be used with care.",
        "poor": "Do not rely on the predictions and their intervals yet: see below.",
        "unknown": "It cannot be told yet whether the predictions can be used.",
    }[level]
    typical = sharp if level in ("good", "usable") else ""
    return f'{notes}<p class="banner {level}"><strong>{headline}</strong> {typical}</p>'
