"""A table of what converged, with a sentence to end it."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bnmf import diagnostics
from bnmf.diagnostics import Quantity

Floats = NDArray[np.float64]


class SummaryTable(pd.DataFrame):
    """A table that ends with a sentence when it is shown."""

    _metadata = ["verdict"]  # noqa: RUF012 (the name and type that pandas asks for)
    verdict: str

    @property
    def _constructor(self) -> type[SummaryTable]:
        return SummaryTable

    def __repr__(self) -> str:
        return f"{self.to_string(float_format='{:.4g}'.format, na_rep='')}\n{self._sentence}"

    def _repr_html_(self) -> str:
        return f"{self.to_html(float_format='{:.4g}'.format, na_rep='')}<p>{self._sentence}</p>"

    @property
    def _sentence(self) -> str:
        return getattr(self, "verdict", "")


class Diagnosed:
    """What posteriors with and without draws have in common."""

    noise_variance: Floats
    train_mse: Floats
    n_observed: int

    def _quantities(self) -> list[Quantity]:
        n_draws = self.noise_variance.shape[1]
        found = [Quantity("noise variance", self.noise_variance)]
        mse = self.train_mse[:, -n_draws:]
        if np.isfinite(mse).all() and mse.shape == self.noise_variance.shape:
            fit = -0.5 * self.n_observed * (np.log(2 * np.pi * self.noise_variance) + mse / self.noise_variance)
            found.append(Quantity("log likelihood", fit))
        return found

    @cached_property
    def _facts(self) -> tuple[list[Quantity], pd.DataFrame]:
        quantities = self._quantities()
        return quantities, diagnostics.table(quantities)

    def problems(self) -> list[str]:
        """Return sentences on what has not converged, with what to do about it; empty if all is well."""
        return diagnostics.problems(*self._facts)

    def summary(self) -> SummaryTable:
        """Return a table of the noise, the fit, predictions and factors with R-hat and effective sample sizes.

        Of many quantities (predictions, entries of the factors after alignment) the worst R-hat and the smallest
        effective sample size are shown. The table ends with one sentence on convergence, also in its `verdict`.

        Returns
        -------
        SummaryTable
            A pandas DataFrame.
        """
        quantities, facts = self._facts
        table = SummaryTable(facts)
        sentences = [diagnostics.verdict(quantities, facts), self._remark()]
        table.verdict = " ".join(sentence for sentence in sentences if sentence)
        return table

    def _remark(self) -> str:
        return ""
