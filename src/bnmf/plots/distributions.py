"""Distributions over the draws: the noise, and the weights of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bnmf.plots.look import ACCENT, INK, SOFT, chain_line, current_axes, legend, name_ticks, tidy
from bnmf.posterior import Posterior
from bnmf.utils.text import labels
from bnmf.utils.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# As the paper draws the entries of W: those of the last sweeps, and a line below which an entry counts as small.
LAST_DRAWS = 20
SMALL_WEIGHT = 0.1


def plot_noise(posterior: Posterior, ax: Axes | None = None) -> Axes:
    """Draw the posterior of the standard deviation of the noise.

    Noise that is common to all columns is drawn as one density per chain. Noise of each column is drawn as a point with
    its 90% interval, over the scale of the column where columns have scales of their own, the smallest first.

    Parameters
    ----------
    posterior : Posterior
        The fit.
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
    >>> ax = plot_noise(BayesianNMF(1, n_chains=2, random_state=0).fit(X).posterior_, Figure().add_subplot())
    >>> len(ax.get_yticklabels())
    10
    """
    ax = current_axes(ax)
    variance = posterior.noise_variance
    if posterior.noise_factor is not None:  # of a column as a whole
        variance = variance.reshape(*variance.shape[:2], -1) * np.mean(posterior.noise_factor**2, axis=0)
    sd = np.sqrt(variance)
    kind = "sd" if posterior.df is None else "scale of Student's t"
    label = "noise, standard deviation" if posterior.df is None else f"noise, {kind}"
    if posterior.scale is not None and len(posterior.scale) > 1:
        sd, label = sd.reshape(*sd.shape[:2], -1) / posterior.scale, f"noise over the scale of the column, {kind}"
    if sd.ndim == 2 or np.allclose(sd, sd[:, :, :1]):  # common noise differs between columns by their scales only
        _densities(sd if sd.ndim == 2 else sd[:, :, 0], ax)
    else:
        _by_column(posterior, sd, ax)
    ax.set_xlabel(label)
    return ax


def _densities(sd: Floats, ax: Axes) -> None:
    """Draw one density per chain, over the bins of all of them."""
    edges = np.histogram_bin_edges(sd, bins=min(30, max(5, sd.shape[1] // 5)))
    centres = 0.5 * (edges[:-1] + edges[1:])
    for chain, draws in enumerate(sd):
        density = np.histogram(draws, edges, density=True)[0]
        ax.plot(centres, density, drawstyle="steps-mid", **chain_line(chain, len(sd), len(centres)))
    ax.set(ylabel="posterior density", ylim=(0, None))
    tidy(ax)
    legend(ax)


def _by_column(posterior: Posterior, sd: Floats, ax: Axes) -> None:
    """Draw a point and an interval for each column."""
    low, middle, high = np.quantile(sd.reshape(-1, sd.shape[2]), [0.05, 0.5, 0.95], axis=0)
    order = np.argsort(middle, kind="stable")
    places = np.arange(len(order))
    ax.hlines(places, low[order], high[order], color=SOFT, linewidth=1.6 if len(order) <= 60 else 0.8)
    ax.plot(middle[order], places, "o", color=INK, markersize=4 if len(order) <= 60 else 2)
    name_ticks(ax.yaxis, labels(posterior.column_names, order, "column"))
    ax.set(xlim=(0, None), ylim=(len(order) - 0.5, -0.5))
    tidy(ax, grid="x")


def plot_weights(posterior: Posterior, ax: Axes | None = None) -> Axes:
    """Draw the distribution of the entries of W in the last 20 draws, as the paper does.

    The axis is logarithmic, and the densities are over log10 w. The legend gives the percentage of entries below 0.1,
    the paper's measure of sparsity. Scale can move between W and Z, so these are entries in the scale of the draws.

    Parameters
    ----------
    posterior : Posterior
        The fit.
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
    >>> ax = plot_weights(BayesianNMF(2, n_chains=2, random_state=0).fit(X).posterior_, Figure().add_subplot())
    >>> ax.get_xlabel()
    'entry of W'
    """
    ax = current_axes(ax)
    last = posterior.W[:, -LAST_DRAWS:]
    logs = [np.log10(np.maximum(draws, np.finfo(np.float32).tiny)).ravel() for draws in last]
    # A few entries that are nearly zero would stretch the axis over many decades.
    start, stop = np.quantile(np.concatenate([np.quantile(part, [0.01, 1.0]) for part in logs]), [0.0, 1.0])
    edges = np.linspace(start, max(stop, start + 0.1), 41)
    for chain, (draws, part) in enumerate(zip(last, logs, strict=True)):
        density = np.histogram(part, edges)[0] / part.size / np.diff(edges)
        style = chain_line(chain, len(last), len(density))
        style["label"] += f" ({100 * np.mean(draws < SMALL_WEIGHT):.0f}% below {SMALL_WEIGHT:g})"
        ax.plot(10 ** (0.5 * (edges[:-1] + edges[1:])), density, **style)
    ax.axvline(SMALL_WEIGHT, color=ACCENT, linewidth=1.0, linestyle=":")
    ax.set(xlabel="entry of W", ylabel="density over log10 w", xscale="log", ylim=(0, None))
    tidy(ax)
    legend(ax)
    return ax
