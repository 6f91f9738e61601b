"""Has it converged? R-hat and effective sample sizes, and what to do about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Array = NDArray[Any]

# Above the first R-hat the chains have not forgotten where they started, above the second it is worth a warning. The
# worst of many quantities is larger than a typical one, so it is measured against the second and the third.
RHAT_LIMITS = (1.05, 1.1, 1.2)
# So many effective draws make a usable mean and interval.
ESS_GOOD = 100


class ConvergenceWarning(UserWarning):
    """The chains do not agree yet."""


@dataclass(frozen=True)
class Quantity:
    """Draws of something, (chain, draw) or (chain, draw, many), and what it is called in a sentence."""

    name: str
    draws: Array
    identified: bool = True

    @property
    def limits(self) -> tuple[float, float]:
        """R-hat up to which all is well, and above which it is worth a warning."""
        return RHAT_LIMITS[:2] if self.draws.ndim == 2 else RHAT_LIMITS[1:]


def table(quantities: list[Quantity]) -> pd.DataFrame:
    """Return mean, spread, R-hat and effective sample size of each quantity; of many, the worst.

    Parameters
    ----------
    quantities : list of Quantity
        What to look at.

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
            "sd": draws.std() if single else np.nan,
            "5%": np.quantile(draws, 0.05) if single else np.nan,
            "95%": np.quantile(draws, 0.95) if single else np.nan,
            "r_hat": np.max(r_hat, initial=-np.inf) if np.isfinite(r_hat).all() else np.nan,
            "ess": np.min(ess, initial=np.inf) if np.isfinite(ess).all() else np.nan,
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def rhat_and_ess(draws: Array) -> tuple[Array, Array]:
    """Return rank-normalised split R-hat and bulk effective sample size of (chain, draw, many) draws.

    Quantities that never move (a constant column, say) have converged by nature: R-hat 1, and every draw counts.
    """
    from arviz_stats.base import array_stats

    n_chains, n_draws, many = draws.shape
    if n_draws < 4:
        return np.full(many, np.nan), np.full(many, np.nan)
    if n_chains == 1:  # its two halves, as two chains
        draws = draws[0, : n_draws // 2 * 2].reshape(2, n_draws // 2, many)
    still = np.ptp(draws, axis=(0, 1)) == 0
    r_hat, ess = np.ones(many), np.full(many, float(n_chains * n_draws))
    if not still.all():
        moving = draws[:, :, ~still]
        r_hat[~still] = array_stats.rhat(moving, chain_axis=0, draw_axis=1)
        ess[~still] = array_stats.ess(moving, chain_axis=0, draw_axis=1)
    return r_hat, ess


def problems(quantities: list[Quantity], facts: pd.DataFrame) -> list[str]:
    """Return a sentence for each identified quantity that has not converged, with what to do about it."""
    found = []
    n_draws = quantities[0].draws.shape[1]
    for quantity in quantities:
        r_hat = float(facts["r_hat"][quantity.name])
        if quantity.identified and r_hat > quantity.limits[1]:
            found.append(
                f"R-hat of the {quantity.name} is {r_hat:.2f} after {n_draws} draws: double `burn_in`, or the rank may "
                "be too high"
            )
    return found


def verdict(quantities: list[Quantity], facts: pd.DataFrame) -> str:
    """Return one plain sentence on whether the chains have converged."""
    limits = {quantity.name: quantity.limits[0] for quantity in quantities if quantity.identified}
    names = list(limits)
    n_chains, n_draws = quantities[0].draws.shape[:2]
    r_hat, ess = ({name: float(facts[column][name]) for name in names} for column in ("r_hat", "ess"))
    if np.isnan(list(r_hat.values())).any():
        return f"{n_draws} draws are too few to tell whether the chains have converged: take at least 4, better 100."
    worst, fewest = max(names, key=lambda name: r_hat[name] - limits[name]), min(names, key=ess.__getitem__)
    if r_hat[worst] > limits[worst]:
        return (
            f"Not converged: R-hat of the {worst} is {r_hat[worst]:.2f} (it should be below {limits[worst]}); double "
            "`burn_in`, or the rank may be too high."
        )
    if ess[fewest] < ESS_GOOD:
        return (
            f"Converged, but with {ess[fewest]:.0f} effective draws of the {fewest}: for narrower error bars take more "
            "draws or a larger `thinning`."
        )
    alone = " One chain cannot tell whether another would find the same: use several." if n_chains == 1 else ""
    return (
        f"No sign of trouble: R-hat is at most {max(r_hat.values()):.2f}, and there are at least {ess[fewest]:.0f} "
        f"effective draws of the noise, the fit and the predictions.{alone}"
    )
