"""Figures of a fit. Every function takes the axes to draw on, and returns them."""

from bnmf.plots.diagnostics import plot_calibration, plot_convergence, plot_noise, plot_predictions, plot_rank
from bnmf.plots.factors import plot_completed, plot_component, plot_factor, plot_weights

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
