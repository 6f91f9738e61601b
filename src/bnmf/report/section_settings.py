"""The section on settings and versions."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from html import escape
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from bnmf.posterior import Posterior
from bnmf.report.markup import Column, html_table

LIBRARIES = ("bnmf", "numpy", "scipy", "pandas", "scikit-learn", "arviz-stats")


def section(posterior: Posterior, settings: Mapping[str, Any] | None) -> str:
    """Return the section."""
    fit = [
        ["components", str(posterior.n_components)],
        ["chains", str(posterior.n_chains)],
        ["sweeps of burn-in", f"{posterior.burn_in:,}"],
        ["draws of each chain", f"{posterior.n_draws:,}"],
        ["thinning", str(posterior.thinning)],
        ["noise", _noise(posterior)],
        ["scale", "of each column" if posterior.scale is not None and len(posterior.scale) > 1 else "common"],
        ["offset", "none" if posterior.offset is None else "subtracted"],
    ]
    if posterior.prior_W is not None:
        fit.append(["prior of W", str(posterior.prior_W)])
    versions = [["Python", platform.python_version()], *([name, _version(name)] for name in LIBRARIES)]
    columns = [Column("setting"), Column("value")]
    parameters = ""
    if settings:
        named = {str(key): value for key, value in settings.items()}
        text = json.dumps(named, indent=2, default=str, ensure_ascii=False)
        parameters = (
            html_table("Parameters", columns, [[key, str(value)] for key, value in named.items()], search=False)
            + f"<details><summary>The same as JSON</summary><pre>{escape(text)}</pre></details>"
        )
    return f"""
<p>With the same data, parameters, seed and versions a fit gives the same draws.</p>
<div class="pair"><div>{html_table("Fit", columns, fit, search=False)}{parameters}</div>
<div>{html_table("Versions", columns, versions, search=False)}</div></div>"""


def _noise(posterior: Posterior) -> str:
    by_column = posterior.noise_variance.ndim == 3
    words = "of each column" if by_column else "common"
    if posterior.row_noise is not None:
        words = "of each row and column" if by_column else "of each row"
    if posterior.noise_factor is not None:
        # Known noise is not learned: its variance is one in every draw, times the squares of what is known.
        is_known = bool((posterior.noise_variance == 1.0).all())
        words = "known of each entry" if is_known else f"{words}, times the known noise of each entry"
    return words if posterior.df is None else f"Student's t, scale {words}"


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return "not installed"
