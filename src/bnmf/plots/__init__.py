"""Figures of a fit. Every function takes the axes to draw on, and returns them.

Examples
--------
>>> from matplotlib.figure import Figure
>>> from bnmf import BayesianNMF, plots
>>> model = BayesianNMF(1, n_chains=2, random_state=0).fit([[1.0, 2.0], [2.0, float("nan")], [3.0, 6.0]])
>>> left, right = Figure().subplots(1, 2)
>>> ax = plots.plot_convergence(model, left)
>>> ax = plots.plot_predictions(model, rows=[1], columns=[1], values=[4.0], ax=right)
>>> observed, completed, uncertainty = plots.plot_completed(model)
"""

from bnmf.plots.figures import (
    plot_calibration,
    plot_completed,
    plot_component,
    plot_convergence,
    plot_factor,
    plot_noise,
    plot_predictions,
    plot_rank,
    plot_weights,
)

__all__ = [
    "plot_calibration",
    "plot_completed",
    "plot_component",
    "plot_convergence",
    "plot_factor",
    "plot_noise",
    "plot_predictions",
    "plot_rank",
    "plot_weights",
]
