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
        The sentence, after what is wrong with the fit as such; False if more draws are needed.
    """
    from bnmf.posterior.diagnostics import sentences
    from bnmf.posterior.posterior import PREDICTION_ERRORS

    error = posterior.prediction_error()
    if math.isnan(error):
        return (
            f"{posterior.n_draws} draws are too few to tell whether the chains have converged: take at least 100.",
            False,
        )
    notes = "".join(f"{note} " for note in sentences(posterior.notes))
    change = f"endless sampling would change one by about {error:.2g} of its uncertainty"
    if error <= PREDICTION_ERRORS[0]:
        return f"{notes}The predictions have converged: {change}.", True
    if error <= PREDICTION_ERRORS[1]:
        return f"{notes}The predictions are usable, but not exact: {change}. More draws make them better.", True
    return f"{notes}The predictions have not converged: {change}. Wait with conclusions, and take more draws.", False


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
    chains = "both chains" if n_chains == 2 else f"all {n_chains} chains"
    agreed = int(posterior.alignment.agrees.all(axis=0).sum())
    if agreed == k:
        return f"All {k} components are found by {chains}."
    return (
        f"{agreed} of {k} components are found by {chains}; the others are different ways to write "
        "the same table, so do not interpret them."
    )
