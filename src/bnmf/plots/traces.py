"""Traces: quantities by sweep, one line per chain."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bnmf.posterior.interface import BasePosterior

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_convergence(posterior: BasePosterior, ax: Axes | None = None) -> Axes:
    """Draw the training error of each chain by sweep, burn-in included.

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
    >>> from bnmf import BayesianNMF
    >>> X = np.random.default_rng(0).exponential(size=(20, 10))
    >>> model = BayesianNMF(1, n_chains=2, random_state=0).fit(X)
    >>> ax = plot_convergence(model.posterior_)
    >>> len(ax.lines)
    2
    """
    if ax is None:
        from matplotlib import pyplot

        ax = pyplot.gca()
    for chain, mse in enumerate(posterior.train_mse):
        ax.plot(np.arange(1, len(mse) + 1), mse, linewidth=1.0, label=f"chain {chain}")
    ax.set(xlabel="sweep", ylabel="mean squared error on the observed entries", yscale="log")
    ax.legend(frameon=False)
    return ax
