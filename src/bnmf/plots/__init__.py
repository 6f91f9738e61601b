"""Figures of a fit. Every function takes the axes to draw on, and returns them."""

from bnmf.plots.distributions import plot_noise, plot_weights
from bnmf.plots.heat_maps import plot_completed, plot_factor
from bnmf.plots.held_out import plot_calibration, plot_predictions
from bnmf.plots.loadings import plot_component
from bnmf.plots.rank_curve import plot_rank
from bnmf.plots.traces import plot_convergence

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
