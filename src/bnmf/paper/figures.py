"""The common style of the figures, which are drawn without a display."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from bnmf.paper.methods import METHODS
from bnmf.utils.atomic import replacing

TICK_COLOUR = "#444444"


def panels(count: int, title: str, y_label: str, columns: int = 3) -> tuple[Figure, list[Axes]]:
    """Return a figure and its panels, arranged in rows.

    Parameters
    ----------
    count : int
        Number of panels.
    title : str
        Title of the figure.
    y_label : str
        Label of the first panel of every row.
    columns : int, default=3
        Maximum number of panels in a row.

    Returns
    -------
    tuple of (Figure, list of Axes)
        The figure and its panels.
    """
    columns = min(columns, count)
    rows = math.ceil(count / columns)
    figure = Figure(figsize=(max(3.3 * columns, 5.5), 2.75 * rows + 1.1), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title, fontsize=12, fontweight="bold", color="#222222")
    axes = [figure.add_subplot(rows, columns, i + 1) for i in range(count)]
    for i, axis in enumerate(axes):
        axis.grid(True, which="major", color="#e4e4e4", linewidth=0.7)
        axis.set_axisbelow(True)
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(labelsize=8, colors=TICK_COLOUR)
        axis.xaxis.label.set_fontsize(9)
        axis.yaxis.label.set_fontsize(9)
        if i % columns == 0:
            axis.set_ylabel(y_label)
    return figure, axes


def line(method: str, *, marker: bool = True) -> dict[str, Any]:
    """Return the arguments of `Axes.plot` for a model or baseline."""
    look = METHODS[method]
    thin = not look.marker
    return {
        "label": look.label,
        "color": look.colour,
        "linestyle": look.line,
        "linewidth": 1.1 if thin else 1.6,
        "marker": look.marker if marker else "",
        "markersize": 4,
        "alpha": 0.8 if thin else 1.0,
    }


def band(method: str) -> dict[str, Any]:
    """Return the arguments of `Axes.fill_between` for the range over the repeats."""
    return {"color": METHODS[method].colour, "alpha": 0.13, "linewidth": 0}


def plain_numbers(axis: Axis, steps: Sequence[float] = (1.0, 2.0, 5.0)) -> None:
    """Label a logarithmic axis with plain numbers, at the given multiples of every power of ten."""
    axis.set_major_locator(LogLocator(subs=steps, numticks=12))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}" if value < 1e5 else f"{value:.0e}"))
    axis.set_minor_formatter(NullFormatter())


def legend(figure: Figure, axes: Sequence[Axes]) -> None:
    """Add a common legend below the panels, and set the size of their titles."""
    for axis in axes:
        axis.title.set_fontsize(10)
    entries = {text: handle for axis in axes for handle, text in zip(*axis.get_legend_handles_labels(), strict=True)}
    order = [look.label for look in METHODS.values() if look.label in entries]
    order += [text for text in entries if text not in order]
    if not order:
        return
    figure.legend(
        [entries[text] for text in order],
        order,
        loc="outside lower center",
        ncols=min(len(order), 5 if len(order) == 5 else 4),
        fontsize=8.5,
        frameon=False,
        handlelength=2.8,
    )


def save(figure: Figure, path: Path) -> None:
    """Write a figure as PNG and as PDF.

    Parameters
    ----------
    figure : Figure
        The figure.
    path : pathlib.Path
        Path without suffix.
    """
    with replacing(path.with_suffix(".png")) as temporary:
        figure.savefig(temporary, format="png", dpi=130)
    with replacing(path.with_suffix(".pdf")) as temporary:
        # Without the date, the same figure gives the same file.
        figure.savefig(temporary, format="pdf", metadata={"CreationDate": None})
