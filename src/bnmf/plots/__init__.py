"""Figures of a fit. Every function takes the axes to draw on, and returns them."""

from bnmf.plots.traces import plot_convergence

__all__ = ["plot_convergence"]
