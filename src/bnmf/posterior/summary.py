"""A fit in numbers: R-hat and effective sample sizes, the table that ends with the verdict, and what notebooks show."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from bnmf.utils.text import counted, prose
from bnmf.utils.typing import Array

if TYPE_CHECKING:
    from bnmf.posterior.posterior import Posterior

# Draws of each chain below which nothing is said about convergence.
MIN_DRAWS = 4


def diagnostics(quantities: dict[str, Array]) -> pd.DataFrame:
    """Return mean, spread, R-hat and effective sample size of draws (chain, draw, ...), the worst if it is several."""
    rows = {}
    for name, drawn in quantities.items():
        draws = drawn.reshape(*drawn.shape[:2], -1)
        single = draws.shape[2] == 1
        r_hat, ess = rhat_and_ess(draws)
        rows[name] = {
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
    """Return rank-normalised split R-hat and bulk effective sample size of draws (chain, draw, n)."""
    from arviz_stats.base import array_stats

    n_chains, n_draws, n_quantities = draws.shape
    if n_draws < MIN_DRAWS:
        return np.full(n_quantities, np.nan), np.full(n_quantities, np.nan)
    if n_chains == 1:  # compare its two halves
        draws = draws[0, : n_draws // 2 * 2].reshape(2, n_draws // 2, n_quantities)
    constant = np.ptp(draws, axis=(0, 1)) == 0  # its R-hat is 1, and every draw counts
    r_hat, ess = np.ones(n_quantities), np.full(n_quantities, float(n_chains * n_draws))
    if not constant.all():
        moving = draws[:, :, ~constant]
        r_hat[~constant] = array_stats.rhat(moving, chain_axis=0, draw_axis=1)
        ess[~constant] = array_stats.ess(moving, chain_axis=0, draw_axis=1)
    return r_hat, ess


class SummaryTable(pd.DataFrame):
    """A DataFrame that is shown with a sentence below it."""

    _metadata = ["verdict"]  # noqa: RUF012 (the name and type that pandas requires)
    verdict: str

    @property
    def _constructor(self) -> type[SummaryTable]:
        return SummaryTable

    def __repr__(self) -> str:
        return f"{self.to_string(float_format='{:.4g}'.format, na_rep='')}\n{self._sentence}"

    def _repr_html_(self) -> str:
        # Names of the axes would be further rows.
        return table_html(pd.DataFrame(self).rename_axis(index=None, columns=None), self._sentence)

    @property
    def _sentence(self) -> str:
        return getattr(self, "verdict", "")


def table_html(table: pd.DataFrame, *sentences: str) -> str:
    """Return a table and sentences below it as HTML."""
    with pd.option_context("display.max_colwidth", None):
        shown = table.to_html(float_format="{:.4g}".format, na_rep="")
    return shown + "".join(f"<p>{prose(sentence)}</p>" for sentence in sentences)


def posterior_html(posterior: Posterior) -> str:
    """Return a table of the data and the draws, and the verdict, as HTML."""
    n_rows, n_columns = posterior.shape
    error = np.sqrt(np.nanmean(posterior.train_mse[:, posterior.burn_in :]))
    share = posterior.n_observed / (n_rows * n_columns)
    chains = counted(posterior.n_chains, "chain")
    items = {
        "data": f"{n_rows:,} x {n_columns:,}, {share:.1%} observed",
        "components": f"{posterior.n_components}",
        "draws": f"{chains} of {posterior.n_draws:,}, after {posterior.burn_in:,} sweeps of burn-in",
        "training error": f"root mean squared error {error:.4g}, in the units of the fit",
    }
    return table_html(pd.DataFrame({"Posterior": items}), *map(str, posterior.verdict))
