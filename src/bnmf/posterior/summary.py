"""A table that ends with a verdict."""

from __future__ import annotations

from html import escape

import numpy as np
import pandas as pd

from bnmf.posterior.verdict import RHAT_LIMITS
from bnmf.utils.svg import gauge


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
        if "r_hat" in shown:
            # Each row ends with its R-hat on a scale, after what pandas wrote (and escaped).
            head, *rows = table.split("</tr>")
            pictures = [_picture(r_hat) for r_hat in shown["r_hat"]]
            rows = [row + f"<td>{picture}</td>" for row, picture in zip(rows, pictures, strict=False)] + rows[-1:]
            table = "</tr>".join([head + "<th></th>", *rows])
        return f"{table}<p>{escape(self._sentence)}</p>"

    @property
    def _sentence(self) -> str:
        return getattr(self, "verdict", "")


def _picture(r_hat: float) -> str:
    if not np.isfinite(r_hat):
        return ""
    return gauge(r_hat, RHAT_LIMITS, 1.0, 1.3, f"R-hat {r_hat:.2f}, good up to {RHAT_LIMITS[0]}")
