"""The rows and columns that a component is made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bnmf.plots.look import INK, SOFT, name_ticks, side_by_side, tidy
from bnmf.posterior import Posterior
from bnmf.posterior.components import Components, TopEntries
from bnmf.utils.text import labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_component(
    posterior: Posterior, component: int, axes: Sequence[Axes] | None = None, *, n: int = 10
) -> list[Axes]:
    """Draw the largest rows and columns of a component with their 90% intervals.

    A weight of 1 is that of an average row. The value of a column is what the component adds to it in an average row,
    over the scale of the column where columns have scales of their own, and otherwise in the units of the data. Weights
    that may be negative have a root mean square of 1.

    Parameters
    ----------
    posterior : Posterior
        The fit.
    component : int
        Number of the component, as in ``BayesianNMF.components_``.
    axes : sequence of two matplotlib.axes.Axes, optional
        Where to draw; by default those of a new figure.
    n : int, default=10
        How many rows and how many columns.

    Returns
    -------
    list of matplotlib.axes.Axes
        The axes: rows, columns.

    Examples
    --------
    >>> import numpy as np
    >>> from bnmf import BayesianNMF
    >>> X = np.random.default_rng(0).exponential(size=(20, 10))
    >>> model = BayesianNMF(2, n_chains=2, random_state=0).fit(X)
    >>> rows, columns = plot_component(model.posterior_, 0, n=5)
    >>> len(rows.get_yticklabels())
    5
    """
    if not 0 <= component < posterior.n_components:
        raise ValueError(f"component must be at least 0 and below {posterior.n_components}, got {component}")
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    panels = side_by_side(axes, 2)
    components = Components.of(posterior)
    rows, columns = components.top_rows(component, n), components.top_columns(component, n)
    _intervals(panels[0], rows, labels(posterior.row_names, rows.positions, "row"))
    own_scale = False
    if posterior.scale is not None and len(posterior.scale) > 1:
        own_scale, scale = True, posterior.scale[columns.positions]
        columns = columns._replace(mean=columns.mean / scale, low=columns.low / scale, high=columns.high / scale)
    _intervals(panels[1], columns, labels(posterior.column_names, columns.positions, "column"))
    agreeing = components.n_chains_with[component]
    panels[0].set_title(f"component {component}, {components.sizes[component]:.0%} of all predictions", fontsize=10)
    panels[1].set_title(f"found by {agreeing} of {posterior.n_chains} chains", fontsize=10)
    typical = "root mean square" if posterior.signed[0] else "average row"
    panels[0].set_xlabel(f"weight of the row ({typical}: 1)")
    panels[1].set_xlabel("added at weight 1" + (" (column scale: 1)" if own_scale else ""))
    return panels


def _intervals(ax: Axes, top: TopEntries, names: list[str]) -> None:
    places = np.arange(len(names))
    ax.hlines(places, top.low, top.high, color=SOFT, linewidth=2.2)
    ax.plot(top.mean, places, "o", color=INK, markersize=5)
    name_ticks(ax.yaxis, names)
    ax.set_ylim(len(names) - 0.4, -0.6)
    if top.low.min() < 0:
        ax.axvline(0.0, color=SOFT, linewidth=0.8)
    else:
        ax.set_xlim(0, None)
    tidy(ax, grid="x")
