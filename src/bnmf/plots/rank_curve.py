"""How well hidden entries are predicted, by number of components."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bnmf.plots.look import ACCENT, INK, current_axes, legend, tidy
from bnmf.selection import RankChoice

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_rank(choice: RankChoice, ax: Axes | None = None) -> Axes:
    """Draw the log predictive density of hidden entries by number of components, with the chosen one marked.

    Error bars are standard errors of the difference to the best one, so the best has none.

    Parameters
    ----------
    choice : RankChoice
        What :func:`bnmf.select_rank` returned.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default the current axes.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Examples
    --------
    >>> import pandas as pd
    >>> from matplotlib.figure import Figure
    >>> table = pd.DataFrame({"log_density": [-2.0, -1.0, -1.1], "below_best_se": [0.2, 0.0, 0.1]}, index=[1, 2, 3])
    >>> ax = plot_rank(RankChoice(2, table), Figure().add_subplot())
    >>> ax.get_xlabel()
    'number of components K'
    """
    ax = current_axes(ax)
    table = choice.table
    density = table["log_density"]
    error = table["below_best_se"]
    ax.errorbar(table.index, density, error, color=INK, marker="o", markersize=5, linewidth=1.3, capsize=3)
    best = density.loc[choice.best_k]
    ax.plot([choice.best_k], [best], "D", color=ACCENT, markersize=9, zorder=3, label=f"chosen: K = {choice.best_k}")
    ax.set(xlabel="number of components K", ylabel="log predictive density of hidden entries")
    if len(table) <= 12:
        ax.set_xticks(list(table.index))
    tidy(ax)
    legend(ax)
    return ax
