"""Traces: quantities by sweep, one line per chain."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bnmf.plots.look import chain_line, current_axes, legend, tidy
from bnmf.posterior.interface import BasePosterior

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_convergence(posterior: BasePosterior, ax: Axes | None = None) -> Axes:
    """Draw the training error of each chain by sweep, with the burn-in shaded.

    Parameters
    ----------
    posterior : Posterior or Moments
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
    >>> model = BayesianNMF(1, n_chains=2, random_state=0).fit(X)
    >>> ax = plot_convergence(model.posterior_, Figure().add_subplot())
    >>> len(ax.lines)
    2
    """
    ax = current_axes(ax)
    n_chains, n_sweeps = posterior.train_mse.shape
    if posterior.burn_in > 0:
        ax.axvspan(0, posterior.burn_in + 0.5, color="#ececec", linewidth=0, zorder=0)
        ax.annotate(
            "burn-in",
            (0.5 * posterior.burn_in, 0.98),
            xycoords=("data", "axes fraction"),
            ha="center",
            va="top",
            fontsize=8,
            color="#555555",
        )
    for chain, mse in enumerate(posterior.train_mse):
        ax.plot(np.arange(1, n_sweeps + 1), mse, **chain_line(chain, n_chains, n_sweeps))
    ax.set(xlabel="sweep", ylabel="mean squared error, observed entries", yscale="log", xlim=(0, n_sweeps + 1))
    tidy(ax)
    legend(ax, ncols=2 if n_chains > 3 else 1)
    return ax
