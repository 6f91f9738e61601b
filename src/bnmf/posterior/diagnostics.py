"""Convergence: R-hat and effective sample sizes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from bnmf.utils.typing import Array

# Draws of each chain below which nothing is said about convergence.
MIN_DRAWS = 4


@dataclass(frozen=True)
class Quantity:
    """Draws of one quantity (chain, draw) or of several (chain, draw, n), with the name used in sentences."""

    name: str
    draws: Array


def table(quantities: list[Quantity]) -> pd.DataFrame:
    """Return mean, spread, R-hat and effective sample size of each quantity; the worst if it is several."""
    rows = {}
    for quantity in quantities:
        draws = quantity.draws.reshape(*quantity.draws.shape[:2], -1)
        single = draws.shape[2] == 1
        r_hat, ess = rhat_and_ess(draws)
        rows[quantity.name] = {
            "mean": draws.mean(),
            "sd": _std(draws) if single else np.nan,
            "5%": np.quantile(draws, 0.05) if single else np.nan,
            "95%": np.quantile(draws, 0.95) if single else np.nan,
            "r_hat": np.max(r_hat, initial=-np.inf) if np.isfinite(r_hat).all() else np.nan,
            "ess": np.min(ess, initial=np.inf) if np.isfinite(ess).all() else np.nan,
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def _std(draws: Array) -> float:
    """Return the standard deviation, also of numbers whose squares overflow."""
    largest = np.abs(draws).max()
    return float(largest * (draws / largest).std()) if largest > 0 else 0.0


def rhat_and_ess(draws: Array) -> tuple[Array, Array]:
    """Return rank-normalised split R-hat and bulk effective sample size of draws (chain, draw, n).

    Constant quantities have converged: their R-hat is 1, and every draw counts.
    """
    from arviz_stats.base import array_stats

    n_chains, n_draws, n_quantities = draws.shape
    if n_draws < MIN_DRAWS:
        return np.full(n_quantities, np.nan), np.full(n_quantities, np.nan)
    if n_chains == 1:  # compare its two halves
        draws = draws[0, : n_draws // 2 * 2].reshape(2, n_draws // 2, n_quantities)
    constant = np.ptp(draws, axis=(0, 1)) == 0
    r_hat, ess = np.ones(n_quantities), np.full(n_quantities, float(n_chains * n_draws))
    if not constant.all():
        moving = draws[:, :, ~constant]
        r_hat[~constant] = array_stats.rhat(moving, chain_axis=0, draw_axis=1)
        ess[~constant] = array_stats.ess(moving, chain_axis=0, draw_axis=1)
    return r_hat, ess
