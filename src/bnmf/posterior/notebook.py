"""A fit as it is shown in a notebook."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from bnmf.posterior import diagnostics
from bnmf.utils.labels import labels, shortened
from bnmf.utils.svg import sparkline

if TYPE_CHECKING:
    from bnmf.posterior.posterior import Posterior

# Names, and characters of a name, that are shown.
N_NAMES = 4
NAME_WIDTH = 24


def posterior_html(posterior: Posterior, verdict: str) -> str:
    """Return a table of what was fitted and how, with a picture of the training error.

    Parameters
    ----------
    posterior : Posterior
        The fit.
    verdict : str
        A sentence on its convergence.

    Returns
    -------
    str
        HTML in which all names are escaped.
    """
    n_rows, n_columns = posterior.shape
    error = np.sqrt(np.nanmean(posterior.train_mse[:, posterior.burn_in :]))
    share = posterior.n_observed / (n_rows * n_columns)
    items = {
        "data": f"{n_rows:,} x {n_columns:,}, {share:.1%} observed",
        "rows": _names(posterior.row_names),
        "columns": _names(posterior.column_names),
        "components": f"{posterior.n_components}",
        "draws": f"{posterior.n_chains} chains of {posterior.n_draws:,}, after {posterior.burn_in:,} sweeps of burn-in",
        "training error": sparkline(posterior.train_mse, posterior.burn_in, "mean squared error by sweep and chain")
        + f"<br/>root mean squared error {error:.4g}, in the units of the fit",
    }
    rows = "".join(
        f'<tr><th scope="row" style="text-align:left">{key}</th><td style="text-align:left">{value}</td></tr>'
        for key, value in items.items()
        if value
    )
    return f"<table><caption>Posterior</caption><tbody>{rows}</tbody></table><p>{escape(verdict)}</p>"


def _names(names: pd.Index | None) -> str:
    if names is None:
        return ""
    shown = [shortened(name, NAME_WIDTH) for name in labels(names, np.arange(min(N_NAMES, len(names))), "")]
    return escape(", ".join(shown) + (", …" if len(names) > N_NAMES else ""))


def prediction_sentence(error: float, limits: tuple[float, float]) -> str:
    """Return how good predictions with this Monte Carlo error are.

    Parameters
    ----------
    error : float
        Monte Carlo error in units of the predictive standard deviation, NaN if it is not known.
    limits : tuple of float
        Up to the first predictions are good, up to the second usable.

    Returns
    -------
    str
        A sentence.
    """
    if np.isnan(error):
        return "There are too few draws to tell whether the chains have converged."
    return (
        f"Predictions: {diagnostics.word(error, limits)} (Monte Carlo error {error:.2g} of the predictive standard "
        "deviation). summary() says more."
    )
