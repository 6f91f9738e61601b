"""Heat maps: a small picture inside SVG with names around it, and the numbers behind it for the script."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from bnmf.plots.factors import column_ranges, evenly
from bnmf.posterior.components import Components
from bnmf.report.charts import svg
from bnmf.report.markup import json_script, number, percent, rounded
from bnmf.report.overview import Overview
from bnmf.utils.text import shortened
from bnmf.utils.typing import Floats

# Rows and columns of a picture; of more, some that are evenly spaced in their order are shown.
MAX_ROWS = 220
MAX_COLUMNS = 160
VALUE_COLOURS, DOUBT_COLOURS = "cividis", "magma_r"
LABEL_WIDTH = 16


@dataclass(frozen=True)
class HeatMap:
    """A picture of a matrix."""

    values: Floats
    limits: tuple[float, float]
    rows: Sequence[str]
    columns: Sequence[str]
    title: str
    colours: str
    data: str
    width: float = 330.0
    height: float = 420.0

    def svg(self) -> str:
        """Return the picture with its labels."""
        left = 112.0 if self.rows else 4.0
        top = 6.0
        bottom = 0.0 if not self.columns else 12.0 + 6.4 * min(max(map(len, self.columns)), LABEL_WIDTH)
        short_columns = bool(self.columns) and max(map(len, self.columns)) <= 3
        bottom = 18.0 if short_columns else bottom
        parts = [
            f'<rect class="missing" x="{left}" y="{top}" width="{self.width}" height="{self.height}"/>'
            f'<image x="{left}" y="{top}" width="{self.width}" height="{self.height}" preserveAspectRatio="none" '
            f'href="data:image/png;base64,{_png(self.values, self.limits, self.colours)}"/>'
            '<rect class="cursor" width="0" height="0"/>'
        ]
        parts += _row_labels(self.rows, left, top, self.height)
        parts += _column_labels(self.columns, left, top + self.height, self.width, upright=short_columns)
        n_rows, n_columns = self.values.shape
        attributes = (
            f'data-heat="{self.data}" data-box="{left} {top} {self.width} {self.height}" '
            f'data-shape="{n_rows} {n_columns}" tabindex="0"'
        )
        return svg(left + self.width + 6, top + self.height + bottom + 4, "".join(parts), self.title, attributes)

    def scale(self, low: str, high: str) -> str:
        """Return a bar with the colours and the texts at its ends."""
        import matplotlib as mpl
        from matplotlib.colors import to_hex

        stops = ",".join(to_hex(mpl.colormaps[self.colours](x)) for x in np.linspace(0, 1, 9))
        return (
            f'<p class="scale"><span>{escape(low)}</span><span class="ramp" '
            f'style="background:linear-gradient(90deg,{stops})"></span><span>{escape(high)}</span></p>'
        )


def _png(values: Floats, limits: tuple[float, float], colours: str) -> str:
    """Return a picture with one pixel for each entry, transparent where it is NaN, in base 64."""
    import matplotlib as mpl
    from matplotlib.image import imsave

    span = limits[1] - limits[0]
    shown = np.clip((values - limits[0]) / (span if span > 0 else 1.0), 0.0, 1.0)
    pixels = mpl.colormaps[colours](np.nan_to_num(shown))
    pixels[np.isnan(values), 3] = 0.0
    file = io.BytesIO()
    imsave(file, (255 * pixels).round().astype(np.uint8), format="png", metadata={"Software": "bnmf"})
    return base64.b64encode(file.getvalue()).decode("ascii")


def _row_labels(names: Sequence[str], left: float, top: float, height: float) -> list[str]:
    step = -(-len(names) // 34) if names else 1
    return [
        f'<text class="name end" x="{left - 6}" y="{top + height * (i + 0.5) / len(names) + 4:.1f}">'
        f"{escape(shortened(names[i], LABEL_WIDTH))}</text>"
        for i in range(0, len(names), step)
    ]


def _column_labels(names: Sequence[str], left: float, top: float, width: float, *, upright: bool) -> list[str]:
    parts = []
    for i in range(0, len(names), -(-len(names) // 26) if names else 1):
        x, text = left + width * (i + 0.5) / len(names), escape(shortened(names[i], LABEL_WIDTH))
        if upright:
            parts.append(f'<text class="name mid" x="{x:.1f}" y="{top + 14}">{text}</text>')
        else:
            parts.append(
                f'<text class="name end" transform="translate({x + 4:.1f} {top + 8}) rotate(-90)">{text}</text>'
            )
    return parts


def share_maps(overview: Overview, components: Components) -> str:
    """Return heat maps of the shares that components have in rows and in columns."""
    order = components.order
    numbers = [str(k) for k in order]
    figures = []
    for kind, shares, positions, names in (
        ("row", components.row_shares, components.row_order(), overview.row_labels),
        ("column", components.column_shares.T, components.column_order(), overview.column_labels),
    ):
        shown = evenly(positions, MAX_ROWS)
        values, labels = shares[shown][:, order], names(shown)
        top = float(np.quantile(values, 0.995)) or 1.0
        title = f"Share of each component in the predictions of each {kind}"
        picture = HeatMap(values, (0.0, top), labels, numbers, title, VALUE_COLOURS, f"shares-{kind}")
        data = {"kind": "share", "of": kind, "rows": labels, "columns": numbers, "values": rounded(values)}
        figures.append(
            f"<figure>{picture.svg()}{picture.scale('0%', percent(top))}<figcaption>Share of each component (across) "
            f"in the predictions of each {kind} (down): {_of(len(shown), len(positions), kind)}, grouped by their "
            f"largest component.</figcaption>{json_script(f'shares-{kind}', data)}</figure>"
        )
    return f'<div class="pair">{"".join(figures)}</div>'


def matrix_maps(overview: Overview, components: Components) -> str:
    """Return heat maps of the observed matrix, of the completed one, and of the uncertainty."""
    rows = evenly(components.row_order(), MAX_ROWS)
    columns = evenly(components.column_order(), MAX_COLUMNS)
    observed = overview.data.dense_rows(rows)[:, columns]
    chosen = overview.posterior.subset(rows, columns)
    mean, sd = chosen.mean(), chosen.std(noise=True)
    completed = np.where(np.isnan(observed), mean, observed)
    low, spread = column_ranges(observed, completed) if overview.units_differ else (np.zeros(1), np.ones(1))
    shown, doubt = (completed - low) / spread, sd / overview.spread(columns)
    limits = (0.0, 1.0) if overview.units_differ else _ends(shown)
    texts = ("lowest of the column", "highest") if overview.units_differ else (number(limits[0]), number(limits[1]))
    row_names, column_names = overview.row_labels(rows), overview.column_labels(columns)
    numbers: dict[str, Any] = {
        "kind": "matrix",
        "rows": row_names,
        "columns": column_names,
        "observed": rounded(observed),
        "mean": rounded(mean),
        "sd": rounded(sd),
    }
    top = max(1.0, float(np.quantile(doubt, 0.99)))
    blank = np.where(np.isnan(observed), np.nan, shown)
    panels = {
        "Observed": (blank, limits, VALUE_COLOURS, texts),
        "Completed": (shown, limits, VALUE_COLOURS, texts),
        "Uncertainty": (doubt, (0.0, top), DOUBT_COLOURS, ("0%", f"{top:.0%} of the column’s sd")),
    }
    figures = ""
    for heading, (values, ends, colours, at_ends) in panels.items():
        picture = HeatMap(values, ends, row_names, column_names, f"{heading} values", colours, "matrix")
        figures += f"<figure><h3>{heading}</h3>{picture.svg()}{picture.scale(*at_ends)}</figure>"
    counted = (
        f"{_of(len(rows), overview.data.shape[0], 'row')} and {_of(len(columns), overview.data.shape[1], 'column')}"
    )
    return (
        f'<div class="trio">{figures}</div><p class="figure-note">{counted[0].upper() + counted[1:]}, grouped by '
        "component. Blank cells on the left were missing. Point at a cell, or move through them with the arrow keys, "
        f"for its names and values.</p>{json_script('matrix', numbers)}"
    )


def _ends(values: Floats) -> tuple[float, float]:
    low, high = (float(end) for end in np.quantile(values, [0.01, 0.99]))
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _of(shown: int, total: int, kind: str) -> str:
    return f"all {total:,} {kind}s" if shown == total else f"{shown:,} of {total:,} {kind}s, evenly spaced"
