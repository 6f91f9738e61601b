"""Diagnostics: traces, noise, predictions of held-out entries, and the choice of K."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import binom

from bnmf.plots import look
from bnmf.posterior import Posterior
from bnmf.selection import RankChoice
from bnmf.utils.text import labels
from bnmf.utils.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Entries with an interval each, and entries with a point each; of more, the density is drawn.
MAX_INTERVALS = 150
MAX_POINTS = 3000
# Probabilities of the intervals whose coverage is drawn.
PROBABILITIES = np.linspace(0.05, 0.95, 19)


def plot_convergence(fit: Any, ax: Axes | None = None) -> Axes:
    """Draw the training error of each chain by sweep, with the burn-in shaded.

    Parameters
    ----------
    fit : BayesianNMF, NMFImputer or Posterior
        The fit.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default the current axes.
    """
    ax, posterior = look.current_axes(ax), look.posterior_of(fit)
    n_chains, n_sweeps = posterior.train_mse.shape
    if posterior.burn_in > 0:
        ax.axvspan(0, posterior.burn_in + 0.5, color="#ececec", linewidth=0, zorder=0)
        place = (0.5 * posterior.burn_in, 0.98)
        ax.text(*place, "burn-in", transform=ax.get_xaxis_transform(), ha="center", va="top", size=8, color="#555555")
    for chain, mse in enumerate(posterior.train_mse):
        ax.plot(np.arange(1, n_sweeps + 1), mse, **look.chain_line(chain, n_chains, n_sweeps))
    ax.set(xlabel="sweep", ylabel="mean squared error, observed entries", yscale="log", xlim=(0, n_sweeps + 1))
    look.tidy(ax)
    look.legend(ax, ncols=2 if n_chains > 3 else 1)
    return ax


def plot_noise(fit: Any, ax: Axes | None = None) -> Axes:
    """Draw the posterior of the standard deviation of the noise.

    Noise that is common to all columns is drawn as one density per chain. Noise of each column is drawn as a point with
    its 90% interval, over the scale of the column if columns have different scales, the smallest first.

    Parameters
    ----------
    fit : BayesianNMF, NMFImputer or Posterior
        The fit.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default the current axes.
    """
    ax, posterior = look.current_axes(ax), look.posterior_of(fit)
    variance = posterior.noise_variance
    if posterior.noise_factor is not None:  # of a column as a whole
        variance = variance.reshape(*variance.shape[:2], -1) * np.mean(posterior.noise_factor**2, axis=0)
    sd, label = np.sqrt(variance), "noise "
    if (scale := look.column_scale(posterior)) is not None:
        sd, label = sd.reshape(*sd.shape[:2], -1) / scale, "noise over the scale of the column\n"
    if sd.ndim == 2 or np.allclose(sd, sd[:, :, :1]):  # common noise differs between columns by their scales only
        _densities(sd if sd.ndim == 2 else sd[:, :, 0], ax)
    else:
        low, middle, high = np.quantile(sd.reshape(-1, sd.shape[2]), [0.05, 0.5, 0.95], axis=0)
        order = np.argsort(middle, kind="stable")
        look.intervals(ax, labels(posterior.column_names, order, "column"), middle[order], low[order], high[order])
    ax.set_xlabel(f"{label}({posterior.law.spread})")
    return ax


def _densities(sd: Floats, ax: Axes) -> None:
    """Draw one density per chain, over the bins of all of them."""
    edges = np.histogram_bin_edges(sd, bins=min(30, max(5, sd.shape[1] // 5)))
    centres = 0.5 * (edges[:-1] + edges[1:])
    for chain, draws in enumerate(sd):
        density = np.histogram(draws, edges, density=True)[0]
        ax.plot(centres, density, drawstyle="steps-mid", **look.chain_line(chain, len(sd), len(centres)))
    ax.set(ylabel="posterior density", ylim=(0, None))
    ax.locator_params(axis="x", nbins=6)  # so that numbers of many digits do not overlap
    look.tidy(ax)
    look.legend(ax)


def plot_predictions(fit: Any, rows: Any, columns: Any, values: Any, ax: Axes | None = None) -> Axes:
    """Draw predictions against values that the fit has not seen.

    Few entries are drawn with their 90% predictive intervals, thousands as points, and more as a density.

    Parameters
    ----------
    fit : BayesianNMF, NMFImputer or Posterior
        The fit.
    rows, columns : array-like of int
        Paired positions of the held-out entries.
    values : array-like
        Their values.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default the current axes.
    """
    values = _checked(rows, columns, values)
    ax, posterior = look.current_axes(ax), look.posterior_of(fit)
    predicted = posterior.mean(rows, columns)
    ends = [min(values.min(), predicted.min()), max(values.max(), predicted.max())]
    margin = 0.04 * (ends[1] - ends[0] or 1.0)
    limits = (ends[0] - margin, ends[1] + margin)
    ax.set(xlim=limits, ylim=limits, xlabel="held-out value", ylabel="prediction")
    look.tidy(ax)
    if len(values) > MAX_POINTS:
        shown: Any = {"gridsize": 45, "cmap": f"{look.COLOUR_MAP}_r", "extent": (*limits, *limits), "mincnt": 1}
        image = ax.hexbin(values, predicted, bins="log", **shown)
        ax.figure.colorbar(image, ax=ax, label="entries", fraction=0.05, pad=0.03)
    elif len(values) > MAX_INTERVALS:
        ax.scatter(values, predicted, s=6, color=look.INK, alpha=0.45, linewidths=0, zorder=3)
    else:
        low, high = posterior.interval(0.9, rows, columns)
        ax.vlines(values, low, high, color=look.SOFT, linewidth=1.0)
        ax.scatter(values, predicted, s=16, color=look.INK, linewidths=0, zorder=3)
        ax.set_ylim(min(limits[0], low.min()), max(limits[1], high.max()))
    ax.plot(limits, limits, color=look.ACCENT, linestyle="--", linewidth=1.0, zorder=4)
    error = np.sqrt(np.mean((values - predicted) ** 2))
    ax.set_title(f"{len(values):,} entries, root mean squared error {error:.3g}", fontsize=10)
    return ax


def plot_calibration(fit: Any, rows: Any, columns: Any, values: Any, ax: Axes | None = None) -> Axes:
    """Draw how often predictive intervals contain held-out values, against how often they should.

    The band is where 95% of the points of a calibrated model would lie if its errors were independent.

    Parameters
    ----------
    fit : BayesianNMF, NMFImputer or Posterior
        The fit.
    rows, columns : array-like of int
        Paired positions of the held-out entries.
    values : array-like
        Their values.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default the current axes.
    """
    values = _checked(rows, columns, values)
    ax, posterior = look.current_axes(ax), look.posterior_of(fit)
    covered = coverage(posterior, rows, columns, values)
    low, high = (binom.ppf(q, len(values), PROBABILITIES) / len(values) for q in (0.025, 0.975))
    ax.fill_between(PROBABILITIES, low, high, color="#dcdcdc", linewidth=0, label="95% if calibrated")
    ax.plot([0, 1], [0, 1], color=look.ACCENT, linestyle="--", linewidth=1.0)
    ax.plot(PROBABILITIES, covered, "o-", color=look.INK, markersize=4, linewidth=1.2, label="coverage")
    ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="probability of the interval", ylabel="held-out values inside it")
    ax.set_aspect("equal")
    look.tidy(ax)
    look.legend(ax, loc="upper left")
    return ax


def coverage(posterior: Posterior, rows: Any, columns: Any, values: Floats) -> Floats:
    """Return the fraction of values inside the central predictive interval of each of `PROBABILITIES`."""
    tails = 0.5 * (1.0 - PROBABILITIES)
    low, high = np.split(posterior.quantile(np.concatenate([tails, 1.0 - tails]), rows, columns), 2)
    return np.asarray(np.mean((low <= values) & (values <= high), axis=1))


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


def plot_rank(choice: RankChoice, ax: Axes | None = None) -> Axes:
    """Draw the log predictive density of hidden entries by number of components, with the chosen one marked.

    Error bars are standard errors of the difference to the best one, so the best has none.

    Parameters
    ----------
    choice : RankChoice
        The result of :func:`bnmf.select_rank`.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default the current axes.
    """
    ax, table, best_k = look.current_axes(ax), choice.table, choice.best_k
    density, error = table["log_density"], table["below_best_se"]
    ax.errorbar(table.index, density, error, color=look.INK, marker="o", markersize=5, linewidth=1.3, capsize=3)
    chosen = f"chosen: K = {best_k}"
    ax.plot([best_k], density.loc[[best_k]], "D", color=look.ACCENT, markersize=9, zorder=3, label=chosen)
    ax.set(xlabel="number of components K", ylabel="log predictive density of hidden entries")
    if len(table) <= 12:
        ax.set_xticks(list(table.index))
    look.tidy(ax)
    look.legend(ax)
    return ax
