"""Convergence: R-hat, effective sample sizes, and sentences about them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from bnmf.utils.typing import Array

# R-hat up to which a single quantity counts as converged, and above which it is worth a warning. The worst of several
# quantities is larger than a typical one, so it is compared with the second and the third.
RHAT_LIMITS = (1.05, 1.1, 1.2)
# Effective sample size from which means and intervals are usable.
MIN_ESS = 100
# Draws of each chain below which nothing is said about convergence.
MIN_DRAWS = 4


@dataclass(frozen=True)
class Quantity:
    """Draws of one quantity (chain, draw) or of several (chain, draw, n), with the name used in sentences."""

    name: str
    draws: Array
    identified: bool = True

    @property
    def limits(self) -> tuple[float, float]:
        """R-hat up to which the quantity has converged, and above which it is worth a warning."""
        return RHAT_LIMITS[:2] if self.draws.ndim == 2 else RHAT_LIMITS[1:]


def table(quantities: list[Quantity]) -> pd.DataFrame:
    """Return mean, spread, R-hat and effective sample size of each quantity; the worst if it is several.

    Parameters
    ----------
    quantities : list of Quantity
        The quantities.

    Returns
    -------
    DataFrame
        One row for each quantity.
    """
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


def sentences(notes: tuple[str, ...]) -> list[str]:
    """Return notes as sentences of a verdict."""
    return [f"{note[0].upper()}{note[1:]}." for note in notes]


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


def word(value: float, limits: tuple[float, float]) -> str:
    """Return how good a value is: up to the first limit good, up to the second usable, above it not yet."""
    return "good" if value <= limits[0] else "usable" if value <= limits[1] else "not yet"


def problems(quantities: list[Quantity], values: pd.DataFrame) -> list[str]:
    """Return a sentence for each identified quantity that has not converged, with what to do about it."""
    found = []
    n_draws = quantities[0].draws.shape[1]
    for quantity in quantities:
        r_hat = float(values["r_hat"][quantity.name])
        if quantity.identified and r_hat > quantity.limits[1]:
            found.append(
                f"R-hat of the {quantity.name} is {r_hat:.2f} after {n_draws} draws: double `burn_in`, or the rank may "
                "be too high"
            )
    return found


def verdict(quantities: list[Quantity], values: pd.DataFrame) -> str:
    """Return one plain sentence on whether the chains have converged."""
    limits = {quantity.name: quantity.limits[0] for quantity in quantities if quantity.identified}
    names = list(limits)
    n_chains, n_draws = quantities[0].draws.shape[:2]
    r_hat, ess = ({name: float(values[column][name]) for name in names} for column in ("r_hat", "ess"))
    if np.isnan(list(r_hat.values())).any():
        return (
            f"{n_draws} draws are too few to tell whether the chains have converged: take at least {MIN_DRAWS}, better "
            "100."
        )
    worst, fewest = max(names, key=lambda name: r_hat[name] - limits[name]), min(names, key=ess.__getitem__)
    if r_hat[worst] > limits[worst]:
        return (
            f"Not converged: R-hat of the {worst} is {r_hat[worst]:.2f} (it should be below {limits[worst]}); double "
            "`burn_in`, or the rank may be too high."
        )
    if ess[fewest] < MIN_ESS:
        return (
            f"Converged, but with {ess[fewest]:.0f} effective draws of the {fewest}: for smaller Monte Carlo errors "
            "take more draws or a larger `thinning`."
        )
    alone = " One chain cannot tell whether another would find the same: use several." if n_chains == 1 else ""
    return (
        f"No sign of trouble: R-hat is at most {max(r_hat.values()):.2f}, and there are at least {ess[fewest]:.0f} "
        f"effective draws of the noise, the fit and the predictions.{alone}"
    )
