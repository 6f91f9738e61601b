"""The section on settings and versions."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from html import escape
from importlib.metadata import version
from typing import Any

from bnmf.plots.look import column_scale
from bnmf.posterior import Posterior
from bnmf.report.markup import Column, Html, html_table

LIBRARIES = ("bnmf", "numpy", "scipy", "pandas", "scikit-learn", "arviz-stats")


def section(posterior: Posterior, settings: Mapping[str, Any] | None) -> str:
    """Return the section."""
    fit = {
        "components": posterior.n_components,
        "chains": posterior.n_chains,
        "sweeps of burn-in": f"{posterior.burn_in:,}",
        "draws of each chain": f"{posterior.n_draws:,}",
        "thinning": posterior.thinning,
        "noise": _noise(posterior),
        "scale": "common" if column_scale(posterior) is None else "of each column",
        "offset": "subtracted" if posterior.offset is not None else "learned" if posterior.n_fixed[1] else "none",
    }
    if posterior.prior_W is not None:
        fit["prior of W"] = posterior.prior_W
    versions = {"Python": platform.python_version()} | {name: version(name) for name in LIBRARIES}
    return f"""
<p>With the same data, parameters, seed and versions a fit gives the same draws.</p>
<div class="pair"><div>{_table("Fit", fit)}{_table("Parameters", settings) if settings else ""}</div>
<div>{_table("Versions", versions)}</div></div>"""


def _table(caption: str, values: Mapping[str, Any]) -> str:
    rows = [[str(name), Html(escape(str(value)))] for name, value in values.items()]  # values are never cut
    return html_table(caption, [Column("name"), Column("value")], rows, search=False)


def _noise(posterior: Posterior) -> str:
    by_column = posterior.noise_variance.ndim == 3
    words = "of each column" if by_column else "common"
    if posterior.row_noise is not None:
        words = "of each row and column" if by_column else "of each row"
    if posterior.noise_factor is not None:
        # Known noise is not learned: its variance is one in every draw, times the squares of what is known.
        is_known = bool((posterior.noise_variance == 1.0).all())
        words = "known of each entry" if is_known else f"{words}, times the known noise of each entry"
    return posterior.law.describe(words)
