"""Figures of a fit: traces, noise, hidden entries, factors, the completed matrix; and of the choice of K."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from scipy.stats import binom

from bnmf.plots import look
from bnmf.posterior import Posterior
from bnmf.posterior.components import Components, TopEntries
from bnmf.selection import RankChoice
from bnmf.utils.text import labels
from bnmf.utils.typing import Floats, Indices

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Entries with an interval each, and entries with a point each; of more, the density is drawn.
MAX_INTERVALS = 150
MAX_POINTS = 3000
# Probabilities of the intervals whose coverage is drawn.
PROBABILITIES = np.linspace(0.05, 0.95, 19)
# Rows and columns of a picture of the matrix; of more, some are drawn.
MAX_DRAWN = 400
# As the paper draws the entries of W: those of the last sweeps, and a line below which an entry counts as small.
LAST_DRAWS = 20
SMALL_WEIGHT = 0.1


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
    ax.set(xlim=limits, ylim=limits, xlabel="hidden value", ylabel="prediction")
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
        ax.set_ylim(min(limits[0], low.min() - margin), max(limits[1], high.max() + margin))
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
    rows, columns, values : array-like
        As for :func:`plot_predictions`.
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
    ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="probability of the interval", ylabel="hidden values inside it")
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
    look.legend(ax, loc="lower right", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.0)  # above, not among the points
    return ax


# --- factors and the completed matrix


def plot_factor(fit: Any, factor: str = "W", ax: Axes | None = None) -> Axes:
    """Draw a factor as a heat map: which components each row or each column is made of.

    The colour is the share of the predictions of a row, or of a column, that a component makes. Components have the
    numbers that they have in ``BayesianNMF.components_`` and are sorted by their size. Rows, or columns, are grouped by
    the component that makes most of them; of more than 400, 400 are drawn, evenly spaced in that order.

    Parameters
    ----------
    fit : BayesianNMF, NMFImputer or Posterior
        The fit.
    factor : {"W", "Z"}, default="W"
        Rows of the data by component, or columns of the data by component.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default the current axes.
    """
    if factor not in ("W", "Z"):
        raise ValueError(f"factor must be 'W' or 'Z', got {factor!r}")
    ax, posterior = look.current_axes(ax), look.posterior_of(fit)
    components = Components.of(posterior)
    kind, names = ("row", posterior.row_names) if factor == "W" else ("column", posterior.column_names)
    shares, order = shares_of(components, kind)
    drawn = evenly(order, MAX_DRAWN)
    image = ax.imshow(shares[drawn], aspect="auto", cmap=look.COLOUR_MAP, vmin=0.0, interpolation="nearest")
    look.name_ticks(ax.yaxis, labels(names, drawn, kind))
    look.name_ticks(ax.xaxis, [str(k) for k in range(shares.shape[1])])
    ax.set(xlabel="component", ylabel=_count(drawn, len(order), f"{kind}s"))
    _colour_bar(ax, image, f"share of the {kind}'s predictions")
    return ax


def plot_component(fit: Any, component: int, axes: Sequence[Axes] | None = None, *, n: int = 10) -> list[Axes]:
    """Draw the largest rows and columns of a component with their 90% intervals.

    A weight of 1 is that of an average row. The value of a column is what the component adds to it in an average row,
    over the scale of the column if columns have different scales, and otherwise in the units of the data. Weights
    that may be negative have a root mean square of 1.

    Parameters
    ----------
    fit : BayesianNMF, NMFImputer or Posterior
        The fit.
    component : int
        Number of the component, as in ``BayesianNMF.components_``.
    axes : sequence of two matplotlib.axes.Axes, optional
        Where to draw; by default those of a new figure.
    n : int, default=10
        How many rows and how many columns.

    Returns
    -------
    list of matplotlib.axes.Axes
        Of rows, and of columns.
    """
    posterior = look.posterior_of(fit)
    if not 0 <= component < posterior.n_components:
        raise ValueError(f"component must be at least 0 and below {posterior.n_components}, got {component}")
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    panels = look.side_by_side(axes, 2)
    components = Components.of(posterior)
    rows, columns = components.top_rows(component, n), components.top_columns(component, n)
    scale = look.column_scale(posterior)
    if scale is not None:
        columns = over(columns, scale[columns.positions])
    look.intervals(panels[0], labels(posterior.row_names, rows.positions, "row"), *rows[1:4])
    look.intervals(panels[1], labels(posterior.column_names, columns.positions, "column"), *columns[1:4])
    agreeing = components.n_chains_with[component]
    name = posterior.effects.get(component, f"component {component}")
    panels[0].set_title(f"{name}, {components.sizes[component]:.0%} of all predictions", fontsize=10)
    if component not in posterior.effects:
        panels[1].set_title(f"found by {agreeing} of {posterior.n_chains} chains", fontsize=10)
    typical = "root mean square" if posterior.signed[0] else "average row"
    panels[0].set_xlabel(f"weight of the row ({typical}: 1)")
    panels[1].set_xlabel("added at weight 1" + (" (column scale: 1)" if scale is not None else ""))
    return panels


def over(top: TopEntries, unit: Floats) -> TopEntries:
    """Return the largest entries of a component in other units."""
    return top._replace(mean=top.mean / unit, low=top.low / unit, high=top.high / unit)


def plot_weights(fit: Any, ax: Axes | None = None) -> Axes:
    """Draw the distribution of the entries of W in the last 20 draws, as the paper does.

    The axis is logarithmic, and the densities are over log10 w. The legend gives the percentage of entries below 0.1,
    the paper's measure of sparsity. Scale can move between W and Z, so these are entries in the scale of the draws.
    Those of a learned offset and of an effect of the rows are left out.

    Parameters
    ----------
    fit : BayesianNMF, NMFImputer or Posterior
        The fit.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default the current axes.
    """
    ax, posterior = look.current_axes(ax), look.posterior_of(fit)
    drawn = [k for k in range(posterior.n_components) if k not in posterior.effects]
    last = posterior.W[:, -LAST_DRAWS:, :, drawn or slice(None)]
    logs = [np.log10(np.maximum(draws, np.finfo(np.float32).tiny)).ravel() for draws in last]
    # A few entries that are nearly zero would stretch the axis over many decades.
    start, stop = np.quantile(np.concatenate([np.quantile(part, [0.01, 1.0]) for part in logs]), [0.0, 1.0])
    edges = np.linspace(start, max(stop, start + 0.1), 41)
    for chain, (draws, part) in enumerate(zip(last, logs, strict=True)):
        density = np.histogram(part, edges)[0] / part.size / np.diff(edges)
        style = look.chain_line(chain, len(last), len(density))
        style["label"] += f" ({100 * np.mean(draws < SMALL_WEIGHT):.0f}% below {SMALL_WEIGHT:g})"
        ax.plot(10 ** (0.5 * (edges[:-1] + edges[1:])), density, **style)
    ax.axvline(SMALL_WEIGHT, color=look.ACCENT, linewidth=1.0, linestyle=":")
    ax.set(xlabel="entry of W", ylabel="density over log10 w", xscale="log", ylim=(0, None))
    look.tidy(ax)
    look.legend(ax)
    return ax


def plot_completed(fit: Any, X: Any = None, axes: Sequence[Axes] | None = None) -> list[Axes]:
    """Draw the observed matrix, the completed one, and how uncertain each prediction is.

    Rows and columns are grouped by the component that makes most of them. If columns have different scales, each
    is drawn over its range. Of more than 400 rows or columns, 400 are drawn, evenly spaced in that order.

    Parameters
    ----------
    fit : BayesianNMF, NMFImputer or Posterior
        The fit.
    X : array-like, DataFrame or sparse matrix, optional
        The fitted data. A model knows them; a `Posterior` does not.
    axes : sequence of three matplotlib.axes.Axes, optional
        Where to draw; by default those of a new figure.

    Returns
    -------
    list of matplotlib.axes.Axes
        Of the observed and the completed matrix, and of the uncertainty.
    """
    posterior = look.posterior_of(fit)
    data = look.data_of(fit, X, posterior)
    panels = look.side_by_side(axes, 3, height=5.4)
    components = Components.of(posterior)
    rows, columns = evenly(components.row_order(), MAX_DRAWN), evenly(components.column_order(), MAX_DRAWN)
    observed, chosen = data.dense_rows(rows)[:, columns], posterior.subset(rows, columns)
    sd, completed = chosen.std(noise=True), np.where(np.isnan(observed), chosen.mean(), observed)
    shown, unit = completed, "value"
    if look.column_scale(posterior) is not None:
        low, spread = column_ranges(observed, completed)
        shown, unit = (completed - low) / spread, "value, over the range of its column"
        sd = sd / spread
    limits = float(np.quantile(shown, 0.01)), float(np.quantile(shown, 0.99))
    _matrix(panels[0], np.where(np.isnan(observed), np.nan, shown), "observed", unit, limits)
    _matrix(panels[1], shown, "completed", unit, limits)
    _matrix(panels[2], sd, "uncertainty", f"predictive sd{unit[5:]}", (0.0, float(np.quantile(sd, 0.99))))
    row_names = data.row_names if data.row_names is not None else posterior.row_names
    column_names = data.column_names if data.column_names is not None else posterior.column_names
    for panel in panels:
        look.name_ticks(panel.xaxis, labels(column_names, columns, "column"))
        panel.tick_params(axis="x", rotation=90)
        panel.set_yticks([])
    look.name_ticks(panels[0].yaxis, labels(row_names, rows, "row"))
    panels[0].set_ylabel(_count(rows, data.shape[0], "rows"))
    panels[1].set_xlabel(_count(columns, data.shape[1], "columns"))
    return panels


def shares_of(components: Components, kind: str) -> tuple[Floats, Indices]:
    """Return the shares (n, K) of components in each row or column, and these grouped by their largest component."""
    if kind == "row":
        return components.row_shares, components.row_order()
    return components.column_shares.T, components.column_order()


def evenly(order: Indices, limit: int) -> Indices:
    """Return at most `limit` items of an order, evenly spaced."""
    if len(order) <= limit:
        return order
    return order[np.linspace(0, len(order) - 1, limit).round().astype(np.intp)]


def column_ranges(observed: Floats, completed: Floats) -> tuple[Floats, Floats]:
    """Return the smallest value of each column and its range, of what was observed if that is a range at all."""
    seen, whole = pd.DataFrame(observed), pd.DataFrame(completed)
    is_range = seen.max() > seen.min()
    low, high = seen.min().where(is_range, whole.min()), seen.max().where(is_range, whole.max())
    return low.to_numpy(), (high - low).where(high > low, 1.0).to_numpy()


def _matrix(ax: Axes, values: Floats, title: str, unit: str, limits: tuple[float, float]) -> None:
    import matplotlib as mpl

    name = look.DOUBT_COLOURS if title == "uncertainty" else look.COLOUR_MAP
    colours = mpl.colormaps[name].with_extremes(bad="white")  # missing entries; neither colour map contains white
    image = ax.imshow(np.ma.masked_invalid(values), aspect="auto", cmap=colours, interpolation="nearest")
    image.set_clim(*limits)
    ax.set_title(title, fontsize=10)
    _colour_bar(ax, image, unit, orientation="horizontal")


def _colour_bar(ax: Axes, image: Any, label: str, orientation: Literal["vertical", "horizontal"] = "vertical") -> None:
    bar = ax.figure.colorbar(image, ax=ax, orientation=orientation, fraction=0.05, pad=0.03)
    bar.set_label(label, fontsize=8)
    bar.ax.tick_params(labelsize=7)
    bar.outline.set_visible(False)


def _count(chosen: Indices, total: int, kind: str) -> str:
    return f"{total:,} {kind}" if len(chosen) == total else f"{len(chosen):,} of {total:,} {kind}"
