"""Predictions against held-out values, and the coverage of their intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import binom

from bnmf.plots.look import ACCENT, COLOUR_MAP, INK, SOFT, current_axes, legend, tidy
from bnmf.posterior import Posterior
from bnmf.posterior.predictions import tiles
from bnmf.utils.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Entries with an interval each, and entries with a point each; of more, the density is drawn.
MAX_INTERVALS = 150
MAX_POINTS = 3000
# Probabilities of the intervals whose coverage is drawn.
PROBABILITIES = np.linspace(0.05, 0.95, 19)


def plot_predictions(posterior: Posterior, rows: Any, columns: Any, values: Any, ax: Axes | None = None) -> Axes:
    """Draw predictions against values that the fit has not seen.

    Few entries are drawn with their 90% predictive intervals, thousands as points, and more as a density.

    Parameters
    ----------
    posterior : Posterior
        The fit.
    rows, columns : array-like of int
        Paired positions of the held-out entries.
    values : array-like
        Their values.
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
    >>> X = np.outer(np.arange(1.0, 21.0), np.arange(1.0, 11.0))
    >>> rows, columns = np.array([3, 7, 12]), np.array([2, 9, 4])
    >>> hidden = X.copy()
    >>> hidden[rows, columns] = np.nan
    >>> model = BayesianNMF(1, n_chains=2, random_state=0).fit(hidden)
    >>> ax = plot_predictions(model.posterior_, rows, columns, X[rows, columns], Figure().add_subplot())
    >>> ax.get_xlabel()
    'held-out value'
    """
    values = _checked(rows, columns, values)
    ax = current_axes(ax)
    predicted = posterior.mean(rows, columns)
    ends = [min(values.min(), predicted.min()), max(values.max(), predicted.max())]
    margin = 0.04 * (ends[1] - ends[0] or 1.0)
    limits = (ends[0] - margin, ends[1] + margin)
    ax.set(xlim=limits, ylim=limits, xlabel="held-out value", ylabel="prediction")
    tidy(ax)
    if len(values) > MAX_POINTS:
        extent = (*limits, *limits)
        image = ax.hexbin(values, predicted, gridsize=45, bins="log", cmap=f"{COLOUR_MAP}_r", extent=extent, mincnt=1)
        ax.figure.colorbar(image, ax=ax, label="entries", fraction=0.05, pad=0.03)
    else:
        if len(values) <= MAX_INTERVALS:
            low, high = posterior.interval(0.9, rows, columns)
            ax.vlines(values, low, high, color=SOFT, linewidth=1.0)
            ax.set_ylim(min(limits[0], low.min()), max(limits[1], high.max()))
        size = 16 if len(values) <= MAX_INTERVALS else 6
        ax.scatter(values, predicted, s=size, color=INK, alpha=1.0 if size > 6 else 0.45, linewidths=0, zorder=3)
    ax.plot(limits, limits, color=ACCENT, linestyle="--", linewidth=1.0, zorder=4)
    error = np.sqrt(np.mean((values - predicted) ** 2))
    ax.set_title(f"{len(values):,} entries, root mean squared error {error:.3g}", fontsize=10)
    return ax


def plot_calibration(posterior: Posterior, rows: Any, columns: Any, values: Any, ax: Axes | None = None) -> Axes:
    """Draw how often predictive intervals contain held-out values, against how often they should.

    The band is where 95% of the points of a calibrated model would lie if its errors were independent.

    Parameters
    ----------
    posterior : Posterior
        The fit.
    rows, columns : array-like of int
        Paired positions of the held-out entries.
    values : array-like
        Their values.
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
    >>> model = BayesianNMF(1, n_chains=2, random_state=0).fit(X)
    >>> rows, columns = np.arange(20), np.arange(20) % 10
    >>> ax = plot_calibration(model.posterior_, rows, columns, X[rows, columns], Figure().add_subplot())
    >>> ax.get_xlabel()
    'probability of the interval'
    """
    values = _checked(rows, columns, values)
    ax = current_axes(ax)
    covered = coverage(posterior, np.asarray(rows), np.asarray(columns), values)
    low, high = (binom.ppf(q, len(values), PROBABILITIES) / len(values) for q in (0.025, 0.975))
    ax.fill_between(PROBABILITIES, low, high, color="#dcdcdc", linewidth=0, label="95% if calibrated")
    ax.plot([0, 1], [0, 1], color=ACCENT, linestyle="--", linewidth=1.0)
    ax.plot(PROBABILITIES, covered, "o-", color=INK, markersize=4, linewidth=1.2, label="coverage")
    ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="probability of the interval", ylabel="held-out values inside it")
    ax.set_aspect("equal")
    tidy(ax)
    legend(ax, loc="upper left")
    return ax


def coverage(posterior: Posterior, rows: Any, columns: Any, values: Floats) -> Floats:
    """Return the fraction of values inside the central predictive interval of each of `PROBABILITIES`."""
    tails = 0.5 * (1.0 - PROBABILITIES)
    inside = np.zeros(len(PROBABILITIES))
    for part in tiles(len(values), 32 * posterior.n_chains * posterior.n_draws):
        ends = posterior.quantile(np.concatenate([tails, 1.0 - tails]), rows[part], columns[part], noise=True)
        low, high = np.split(ends, 2)
        inside += ((low <= values[part]) & (values[part] <= high)).sum(axis=1)
    return inside / len(values)


def _checked(rows: Any, columns: Any, values: Any) -> Floats:
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 1 or len(values) == 0 or values.shape != np.shape(rows) or values.shape != np.shape(columns):
        raise ValueError(
            "rows, columns and values must be lists of the same length, at least 1, got shapes "
            f"{np.shape(rows)}, {np.shape(columns)} and {values.shape}"
        )
    if not np.isfinite(values).all():
        raise ValueError("values must be finite: leave out the entries whose values are not known")
    return values
