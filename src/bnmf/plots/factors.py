"""Heat maps: factors, and the completed matrix beside the observed one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from bnmf.data.observed import ObservedMatrix
from bnmf.plots.look import COLOUR_MAP, current_axes, name_ticks, side_by_side
from bnmf.posterior import Posterior
from bnmf.posterior.components import Components
from bnmf.posterior.subset import subset
from bnmf.utils.text import labels
from bnmf.utils.typing import Floats, Indices

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Rows and columns of a picture of the matrix; of more, some are drawn.
MAX_ROWS = 400
MAX_COLUMNS = 400


def plot_factor(posterior: Posterior, factor: str = "W", ax: Axes | None = None) -> Axes:
    """Draw a factor as a heat map: which components each row or each column is made of.

    The colour is the share of the predictions of a row, or of a column, that a component makes. Components have the
    numbers that they have in ``BayesianNMF.components_`` and are sorted by their size. Rows, or columns, are grouped by
    the component that makes most of them; of more than 400, 400 are drawn, evenly spaced in that order.

    Parameters
    ----------
    posterior : Posterior
        The fit.
    factor : {"W", "Z"}, default="W"
        Rows of the data by component, or columns of the data by component.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default the current axes.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from bnmf import BayesianNMF
    >>> X = np.random.default_rng(0).exponential(size=(20, 10))
    >>> model = BayesianNMF(2, n_chains=2, random_state=0).fit(X)
    >>> ax = plot_factor(model.posterior_, "Z", Figure().add_subplot())
    >>> ax.images[0].get_array().shape
    (10, 2)
    """
    if factor not in ("W", "Z"):
        raise ValueError(f"factor must be 'W' or 'Z', got {factor!r}")
    ax = current_axes(ax)
    components = Components.of(posterior)
    if factor == "W":
        shares, order = components.row_shares, components.row_order()
        names, kind = posterior.row_names, "row"
    else:
        shares, order = components.column_shares.T, components.column_order()
        names, kind = posterior.column_names, "column"
    drawn = evenly(order, MAX_ROWS)
    shown = shares[drawn][:, components.order]
    image = ax.imshow(shown, aspect="auto", cmap=COLOUR_MAP, vmin=0.0, interpolation="nearest")
    name_ticks(ax.yaxis, labels(names, drawn, kind))
    name_ticks(ax.xaxis, [str(k) for k in components.order])
    ax.set(xlabel="component", ylabel=_count(drawn, len(order), f"{kind}s"))
    _colour_bar(ax, image, f"share of the {kind}'s predictions")
    return ax


def plot_completed(posterior: Posterior, data: ObservedMatrix, axes: Sequence[Axes] | None = None) -> list[Axes]:
    """Draw the observed matrix, the completed one, and how uncertain each prediction is.

    Rows and columns are grouped by the component that makes most of them. Where columns have scales of their own, each
    is drawn over its range. Of more than 400 rows or columns, 400 are drawn, evenly spaced in that order.

    Parameters
    ----------
    posterior : Posterior
        The fit.
    data : ObservedMatrix
        What was fitted.
    axes : sequence of three matplotlib.axes.Axes, optional
        Where to draw; by default those of a new figure.

    Returns
    -------
    list of matplotlib.axes.Axes
        The axes: observed, completed, uncertainty.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from bnmf import BayesianNMF
    >>> X = np.random.default_rng(0).exponential(size=(20, 10))
    >>> X[::3, ::4] = np.nan
    >>> model = BayesianNMF(1, n_chains=2, random_state=0).fit(X)
    >>> axes = plot_completed(model.posterior_, ObservedMatrix.from_data(X))
    >>> bool(np.ma.getmaskarray(axes[0].images[0].get_array()).any())
    True
    """
    if data.shape != posterior.shape:
        raise ValueError(f"data must have the shape of the fitted data, {posterior.shape}, got {data.shape}")
    panels = side_by_side(axes, 3, height=5.4)
    components = Components.of(posterior)
    rows = evenly(components.row_order(), MAX_ROWS)
    columns = evenly(components.column_order(), MAX_COLUMNS)
    observed = data.dense_rows(rows)[:, columns]
    chosen = subset(posterior, rows, columns)
    mean, sd = chosen.mean(), chosen.std(noise=True)
    completed = np.where(np.isnan(observed), mean, observed)
    shown, unit = completed, "value"
    if posterior.scale is not None and len(posterior.scale) > 1:
        low, spread = column_ranges(observed, completed)
        shown, unit = (completed - low) / spread, "value, over the range of its column"
        sd = sd / spread
    limits = float(np.quantile(shown, 0.01)), float(np.quantile(shown, 0.99))
    _matrix(panels[0], np.where(np.isnan(observed), np.nan, shown), "observed", unit, limits)
    _matrix(panels[1], shown, "completed", unit, limits)
    _matrix(panels[2], sd, "uncertainty", f"predictive sd{unit[5:]}", (0.0, float(np.quantile(sd, 0.99))))
    row_names = data.row_names if data.row_names is not None else posterior.row_names
    column_names = data.column_names if data.column_names is not None else posterior.column_names
    name_ticks(panels[0].yaxis, labels(row_names, rows, "row"))
    for panel in panels[1:]:
        panel.set_yticks([])
    for panel in panels:
        name_ticks(panel.xaxis, labels(column_names, columns, "column"))
        panel.tick_params(axis="x", rotation=90)
    panels[0].set_ylabel(_count(rows, data.shape[0], "rows"))
    panels[1].set_xlabel(_count(columns, data.shape[1], "columns"))
    return panels


def evenly(order: Indices, limit: int) -> Indices:
    """Return at most `limit` items of an order, evenly spaced."""
    if len(order) <= limit:
        return order
    return order[np.linspace(0, len(order) - 1, limit).round().astype(np.intp)]


def column_ranges(observed: Floats, completed: Floats) -> tuple[Floats, Floats]:
    """Return the smallest value of each column and its range, of what was observed if that is a range at all."""
    low, high = completed.min(axis=0), completed.max(axis=0)
    seen = ~np.isnan(observed)
    lowest = np.where(seen, observed, np.inf).min(axis=0)
    highest = np.where(seen, observed, -np.inf).max(axis=0)
    enough = highest > lowest
    low, high = np.where(enough, lowest, low), np.where(enough, highest, high)
    return low, np.where(high > low, high - low, 1.0)


def _matrix(ax: Axes, values: Floats, title: str, unit: str, limits: tuple[float, float]) -> None:
    import matplotlib as mpl

    # Missing entries are white, which neither colour map contains.
    colours = mpl.colormaps["magma_r" if title == "uncertainty" else COLOUR_MAP].with_extremes(bad="white")
    image = ax.imshow(np.ma.masked_invalid(values), aspect="auto", cmap=colours, interpolation="nearest")
    image.set_clim(*limits)
    ax.set_title(title, fontsize=10)
    _colour_bar(ax, image, unit, orientation="horizontal")


def _colour_bar(ax: Axes, image: Any, label: str, orientation: Literal["vertical", "horizontal"] = "vertical") -> None:
    figure = ax.get_figure()
    assert figure is not None
    bar = figure.colorbar(image, ax=ax, orientation=orientation, fraction=0.05, pad=0.03)
    bar.set_label(label, fontsize=8)
    bar.ax.tick_params(labelsize=7)
    bar.outline.set_visible(False)


def _count(chosen: Indices, total: int, kind: str) -> str:
    return f"{total:,} {kind}" if len(chosen) == total else f"{len(chosen):,} of {total:,} {kind}"
