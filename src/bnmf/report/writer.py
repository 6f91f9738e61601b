"""Write the report: one HTML file with its style, script and pictures inside."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import date
from typing import Any

from bnmf.plots.look import data_of, posterior_of
from bnmf.posterior import Posterior
from bnmf.posterior.components import Components
from bnmf.posterior.verdict import Verdict
from bnmf.report import section_components, section_convergence, section_data, section_imputed
from bnmf.report.markup import page, percent
from bnmf.report.overview import Overview
from bnmf.utils import arguments
from bnmf.utils.files import write_bytes
from bnmf.utils.text import counted, listed

FOOTER = "Written by bnmf: Bayesian nonnegative matrix factorisation by Gibbs sampling. The page is one file."


def write_report(
    fit: Any,
    path: str | os.PathLike[str],
    X: Any = None,
    *,
    title: str | None = None,
    settings: Mapping[str, Any] | None = None,
    verdict: Verdict | None = None,
) -> None:
    """Write a report of a fit for people who did not run it: one HTML file that opens without a network.

    It describes the data, the convergence of the chains, the components, the imputed entries with their uncertainty,
    and the settings. Large matrices are shown in part, and the report says which part.

    Parameters
    ----------
    fit : BayesianNMF, NMFImputer or Posterior
        The fit. An imputer must have been fitted to columns of numbers alone.
    path : path-like
        The file, usually ending in ``.html``. An existing file is replaced only when the new one is complete.
    X : array-like, DataFrame or sparse matrix, optional
        The fitted data, in the user's units. A model knows them; a `Posterior` does not.
    title : str, optional
        Title of the report.
    settings : mapping of str to object, optional
        Parameters to list; by default those of the model.
    verdict : Verdict, optional
        Findings to show in place of those of the posterior: the same in other words.

    Examples
    --------
    >>> import tempfile
    >>> from bnmf import BayesianNMF
    >>> model = BayesianNMF(1, n_chains=2, random_state=0).fit([[1.0, 2.0], [2.0, float("nan")], [3.0, 6.0]])
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     write_report(model, f"{directory}/report.html")
    """
    found = arguments.path(path, "path")
    if found.is_dir():
        raise IsADirectoryError(f"path must be the name of a file, and {found} is a directory")
    if not found.parent.is_dir():
        raise FileNotFoundError(f"path must be in a directory that exists, and {found.parent} is not a directory")
    posterior = posterior_of(fit)
    if not getattr(fit, "is_of_numbers", True):
        raise TypeError(
            "fit must have columns of numbers alone: a report would show the latent numbers of its categories. See "
            "interval and probabilities of the imputer"
        )
    if not isinstance(posterior, Posterior):
        raise TypeError(
            f"the posterior of fit must be a Posterior, got {type(posterior).__name__}: a report needs the draws, "
            "which a fit with keep_draws=False does not keep"
        )
    data = data_of(fit, X, posterior)
    overview, components = Overview(data, posterior), Components.of(posterior)
    if settings is None and hasattr(fit, "get_params"):
        settings = fit.get_params()
    with data.released():
        imputed = section_imputed.imputed_entries(overview)
        sections = {
            "Data": section_data.data_section(overview),
            "Convergence and fit": section_convergence.section(overview),
            "Components": section_components.section(overview, components),
            "Imputed values": section_imputed.section(overview, imputed, components),
            "Settings": section_data.settings_section(posterior, settings),
        }
    html = page(
        title or ("Components and missing entries" if overview.n_missing else "Components"),
        f"bnmf report · {f'{date.today():%d %B %Y}'.lstrip('0')}",
        _lead(overview),
        section_convergence.banner(verdict or posterior.verdict, imputed["uncertainty"].median()),
        sections,
        FOOTER,
    )
    write_bytes(found, html.encode("utf-8", errors="replace"))  # names may hold half characters


def _lead(overview: Overview) -> str:
    (n_rows, n_columns), (active, _) = overview.data.shape, overview.posterior.component_matches()
    table, n = f"A table of {n_rows:,} rows and {n_columns:,} columns", int(active.sum())
    effects = (f"an {effect}" for effect in overview.posterior.effects.values())
    model = listed([*effects, counted(len(active), "component")])
    if n < len(active):
        model += f", of which {n or 'none'} {'stand' if n > 1 else 'stands'} out from the noise"
    if overview.n_missing == 0:
        return f"{table}, without missing entries, modelled by {model}."
    share = percent(overview.n_missing / (n_rows * n_columns))
    missing = f"The {overview.n_missing:,} missing entries ({share}) were imputed, with intervals."
    return f"{table}, modelled by {model}. {missing}"
