"""The common look of the figures: readable in print, in greyscale and for the colour-blind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bnmf.data.observed import ObservedMatrix
from bnmf.posterior.base import BasePosterior
from bnmf.utils.text import short_names
from bnmf.utils.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

COLOUR_MAP, DOUBT_COLOURS = "cividis", "magma_r"
INK = "#1f3a5f"
ACCENT = "#b3560f"
SOFT = "#8a8f98"
# Characters of a name that are shown, and inches along an axis that a name takes.
NAME_WIDTH = 22
NAME_INCHES = 0.125
# Part of its axes that an axis still has when labels and titles have taken their room.
ROOM = 0.8

_LINES: Sequence[Any] = ("-", (0, (5, 1.5)), (0, (1, 1.2)), (0, (5, 1.5, 1, 1.5)))
_MARKERS = "os^DvPX*"


def posterior_of(fit: Any) -> Any:
    """Return the posterior of a fitted model or imputer, or the given one."""
    model = getattr(fit, "estimator_", fit)
    posterior = getattr(model, "posterior_", model)
    if not isinstance(posterior, BasePosterior):
        raise TypeError(f"fit must be a fitted BayesianNMF or NMFImputer, or a Posterior, got {type(fit).__name__}")
    return posterior


def data_of(fit: Any, X: Any, posterior: Any) -> ObservedMatrix:
    """Return the fitted data: X, or those that the model keeps."""
    data = getattr(getattr(fit, "estimator_", fit), "data_", None) if X is None else X
    if X is not None and not isinstance(X, ObservedMatrix):
        data = ObservedMatrix.from_data(X, negative=True)
    if not isinstance(data, ObservedMatrix):
        raise TypeError(f"X must be given: the fitted data are not kept by {type(fit).__name__}")
    if data.shape != posterior.shape:
        raise ValueError(f"X must have the shape of the fitted data, {posterior.shape}, got {data.shape}")
    return data


def column_scale(posterior: Any) -> Floats | None:
    """Return the scale of each column, None if they have a common one."""
    return posterior.scale if posterior.scale is not None and len(posterior.scale) > 1 else None


def current_axes(ax: Axes | None) -> Axes:
    """Return the given axes, or the current ones of pyplot, in a figure that makes room for long names if it is new."""
    if ax is None:
        from matplotlib import pyplot

        if not pyplot.get_fignums():
            pyplot.figure(layout="constrained")
        return pyplot.gca()
    return ax


def side_by_side(axes: Sequence[Axes] | None, count: int, height: float = 3.8) -> list[Axes]:
    """Return the given axes after a check of their number, or those of a new figure."""
    if axes is None:
        from matplotlib import pyplot

        return list(pyplot.subplots(1, count, figsize=(4.2 * count, height), layout="constrained")[1])
    found = list(np.ravel(np.asarray(axes, dtype=object)))
    if len(found) != count:
        raise ValueError(f"axes must be {count} axes, got {len(found)}")
    return found


def tidy(ax: Axes, *, grid: str = "both") -> None:
    """Remove the upper and right spines, and draw a light grid."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_axisbelow(True)
    ax.grid(True, axis=grid, color="#e3e3e3", linewidth=0.6)  # type: ignore[arg-type]


def legend(ax: Axes, **options: Any) -> None:
    """Add a small legend on a white ground, which stays readable over lines."""
    ax.legend(fontsize=8, frameon=True, edgecolor="none", framealpha=0.8, **options)


def chain_line(chain: int, n_chains: int, n_points: int) -> dict[str, Any]:
    """Return the arguments of `Axes.plot` for one of several chains: colour, marker and line style all differ."""
    import matplotlib as mpl

    # From dark to not quite yellow, which would vanish on white paper.
    shade = 0.0 if n_chains == 1 else 0.82 * chain / (n_chains - 1)
    every = max(1, n_points // 8)
    return {
        "color": mpl.colormaps["viridis"](shade),
        "linestyle": _LINES[chain % len(_LINES)],
        "linewidth": 1.2,
        "marker": _MARKERS[chain % len(_MARKERS)],
        "markersize": 4,
        "markevery": (every * chain // n_chains, every),
        "label": f"chain {chain}",
    }


def name_ticks(axis: Axis, names: Sequence[str]) -> None:
    """Label positions 0, 1, 2 and so on with names: every second or tenth where they are many, and long ones cut."""
    box = axis.axes.get_window_extent()
    length = (box.width if axis is axis.axes.xaxis else box.height) / axis.axes.figure.dpi
    step = -(-len(names) // max(2, int(ROOM * length / NAME_INCHES)))
    shown = [name.replace("$", r"\$") for name in short_names(names[::step], NAME_WIDTH)]  # no formulas
    axis.set_ticks(list(range(0, len(names), step)), shown)
    axis.set_tick_params(length=0 if step == 1 else 2, labelsize=8 if len(shown) <= 25 else 6.5)


def intervals(ax: Axes, names: Sequence[str], middle: Floats, low: Floats, high: Floats) -> None:
    """Draw a point with an interval for each name, from the top down, on an axis with zero."""
    places, few = np.arange(len(names)), len(names) <= 60
    ax.hlines(places, low, high, color=SOFT, linewidth=2.0 if few else 0.8)
    ax.plot(middle, places, "o", color=INK, markersize=5 if few else 2)
    name_ticks(ax.yaxis, names)
    ax.set_ylim(len(names) - 0.4, -0.6)
    if low.min() < 0:
        ax.axvline(0.0, color=SOFT, linewidth=0.8)
    else:
        ax.set_xlim(0, None)
    tidy(ax, grid="x")
