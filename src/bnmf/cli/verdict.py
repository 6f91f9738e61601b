"""What a fit is worth, in sentences for someone who does not know the diagnostics."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bnmf.posterior import Posterior


def predictions(posterior: Posterior) -> tuple[str, bool]:
    """Return a sentence on the predictions, and whether they can be used.

    Parameters
    ----------
    posterior : Posterior
        The fit.

    Returns
    -------
    tuple of (str, bool)
        The sentence; False if more draws are needed.
    """
    from bnmf.posterior.posterior import PREDICTION_ERRORS

    error = posterior.prediction_error()
    if math.isnan(error):
        return (
            f"{posterior.n_draws} draws are too few to tell whether the chains have converged: take at least 100.",
            False,
        )
    change = f"endless sampling would change a prediction by about {error:.2g} of its uncertainty"
    if error <= PREDICTION_ERRORS[0]:
        return f"Converged: {change}.", True
    if error <= PREDICTION_ERRORS[1]:
        return f"Usable, not exact: {change}; more draws bring it below {PREDICTION_ERRORS[0]:g}.", True
    return f"Not converged: {change}, so wait with conclusions and take more draws.", False


def components(posterior: Posterior) -> str:
    """Return a sentence on the components: how many are found by all chains.

    Parameters
    ----------
    posterior : Posterior
        The fit.

    Returns
    -------
    str
        The sentence.
    """
    k, n_chains = posterior.n_components, posterior.n_chains
    if n_chains == 1:
        return f"One chain cannot tell whether another would find the same {k} components: use several."
    agreed = int(posterior.alignment.agrees.all(axis=0).sum())
    if agreed == k:
        return f"All {k} components are found by all {n_chains} chains."
    return (
        f"{agreed} of {k} components are found by all {n_chains} chains; the others are different ways to write "
        "the same table, so do not interpret them."
    )
