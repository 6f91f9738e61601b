"""A table that ends with a verdict."""

from __future__ import annotations

import pandas as pd


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
        return f"{self.to_html(float_format='{:.4g}'.format, na_rep='')}<p>{self._sentence}</p>"

    @property
    def _sentence(self) -> str:
        return getattr(self, "verdict", "")
