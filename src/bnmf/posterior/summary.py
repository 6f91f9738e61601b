"""A fit as it is shown in a notebook: a table that ends with a verdict, and a short description of a posterior."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from bnmf.utils.text import labels, shortened

if TYPE_CHECKING:
    from bnmf.posterior.posterior import Posterior

# Names, and characters of a name, that are shown.
N_NAMES = 4
NAME_WIDTH = 24


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
        shown = pd.DataFrame(self).rename_axis(index=None, columns=None)  # whose names would be rows of their own
        table = shown.to_html(float_format="{:.4g}".format, na_rep="")
        return f"{table}<p>{escape(self._sentence)}</p>"

    @property
    def _sentence(self) -> str:
        return getattr(self, "verdict", "")


def posterior_html(posterior: Posterior) -> str:
    """Return a table of the data and the draws, and the verdict, as HTML."""
    n_rows, n_columns = posterior.shape
    error = np.sqrt(np.nanmean(posterior.train_mse[:, posterior.burn_in :]))
    share = posterior.n_observed / (n_rows * n_columns)
    items = {
        "data": f"{n_rows:,} x {n_columns:,}, {share:.1%} observed",
        "rows": _names(posterior.row_names),
        "columns": _names(posterior.column_names),
        "components": f"{posterior.n_components}",
        "draws": f"{posterior.n_chains} chains of {posterior.n_draws:,}, after {posterior.burn_in:,} sweeps of burn-in",
        "training error": f"root mean squared error {error:.4g}, in the units of the fit",
    }
    rows = "".join(
        f'<tr><th scope="row" style="text-align:left">{key}</th><td style="text-align:left">{value}</td></tr>'
        for key, value in items.items()
        if value
    )
    findings = "".join(f"<p>{escape(str(finding))}</p>" for finding in posterior.verdict)
    return f"<table><caption>Posterior</caption><tbody>{rows}</tbody></table>{findings}"


def _names(names: pd.Index | None) -> str:
    if names is None:
        return ""
    shown = [shortened(name, NAME_WIDTH) for name in labels(names, np.arange(min(N_NAMES, len(names))), "")]
    return escape(", ".join(shown) + (", …" if len(names) > N_NAMES else ""))
