"""Figures show what the posterior holds, for small and large data, with and without names."""

from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from tests.report.fits import fake, table_of, with_effects

from bnmf import BayesianNMF, plots
from bnmf.plots import figures
from bnmf.plots.look import NAME_WIDTH
from bnmf.selection import RankChoice


def fit(n_rows, n_columns, *, names=False, by_column=True):
    """Return a posterior of three components around known factors, and data that it fits."""
    noise = 0.01 * np.arange(1.0, n_columns + 1) * np.ones((2, 30, 1)) if by_column else np.full((2, 30), 0.04)
    options = {"scale": np.arange(1.0, n_columns + 1)} if by_column else {}
    if names:
        options["row_names"] = pd.Index([f"a long name of the row $number$ {i}" for i in range(n_rows)])
        options["column_names"] = pd.Index([f"<column> {j}" for j in range(n_columns)])
    noise *= np.linspace(0.8, 1.2, 30).reshape(-1, *[1] * (noise.ndim - 2))
    posterior = fake(n_rows, n_columns, noise_variance=noise, **options)
    X = table_of(posterior, 0.0, names=False)
    X[0, 0] = np.nan
    return posterior, X


def axes():
    return Figure().add_subplot()


@pytest.mark.parametrize(("n_rows", "n_columns", "names"), [(3, 2, False), (450, 30, True)])
def test_every_figure_is_drawn_at_any_size(n_rows, n_columns, names):
    posterior, X = fit(n_rows, n_columns, names=names)
    figure = Figure(figsize=(16, 14))
    axes = figure.subplots(3, 4)
    plots.plot_convergence(posterior, axes[0, 0])
    plots.plot_noise(posterior, axes[0, 1])
    plots.plot_weights(posterior, axes[0, 2])
    plots.plot_factor(posterior, "W", axes[0, 3])
    plots.plot_factor(posterior, "Z", axes[1, 0])
    plots.plot_component(posterior, 1, axes[1, 1:3])
    rows, columns = np.nonzero(~np.isnan(X))
    entries = rows, columns, X[rows, columns]
    plots.plot_predictions(posterior, *entries, axes[1, 3])
    panels = plots.plot_completed(posterior, X, axes[2, :3])
    plots.plot_calibration(posterior, *(part[:300] for part in entries), axes[2, 3])
    figure.draw_without_rendering()
    for ax in axes.flat:
        texts = [label.get_text() for label in (*ax.get_xticklabels(), *ax.get_yticklabels())]
        assert len(texts) < 80
        assert all(len(text.replace(r"\$", "$")) <= NAME_WIDTH for text in texts if "mathdefault" not in text)
    if names:
        assert panels[0].images[0].get_array().shape == (figures.MAX_DRAWN, 30)
        assert panels[0].get_ylabel() == "400 of 450 rows"
        shown = [label.get_text() for label in panels[0].get_yticklabels()]
        assert len(set(shown)) == len(shown)  # without the words that they share


def test_models_and_current_axes_will_do():
    _, X = fit(12, 5)
    model = BayesianNMF(1, n_chains=2, burn_in=5, n_draws=10, random_state=0, calibrate=False).fit(X)
    mpl.use("Agg")
    from matplotlib import pyplot

    ax = pyplot.subplots()[1]
    assert plots.plot_convergence(model) is ax
    assert [line.get_label() for line in ax.lines] == ["chain 0", "chain 1"]
    np.testing.assert_array_equal(ax.lines[1].get_ydata(), model.posterior_.train_mse[1])
    (band,) = ax.patches
    assert band.get_extents().transformed(ax.transData.inverted()).x1 == pytest.approx(5.5)  # burn-in
    pyplot.close("all")
    assert plots.plot_noise(model).figure.get_layout_engine() is not None  # room for the names of columns
    pyplot.close("all")
    assert plots.plot_completed(model, axes=Figure().subplots(1, 3))[0].images[0].get_array().mask.sum() == 1
    with pytest.raises(TypeError, match="fit must be a fitted BayesianNMF or NMFImputer, or a Posterior, got ndarray"):
        plots.plot_noise(X, ax)


def test_factor_shows_shares_in_groups():
    posterior, _ = fit(50, 8)
    shares = np.asarray(plots.plot_factor(posterior, "W", axes()).images[0].get_array())
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert (np.diff(shares.argmax(axis=1)) >= 0).all()


def test_component_has_the_largest_entries_with_intervals():
    posterior, _ = fit(30, 8, names=True)
    rows, columns = plots.plot_component(posterior, 2, Figure().subplots(1, 2), n=5)
    W, Z = posterior.factor_means()
    np.testing.assert_allclose(rows.lines[0].get_xdata(), np.sort(W[:, 2])[::-1][:5])
    np.testing.assert_allclose(columns.lines[0].get_xdata(), np.sort(Z[2] / posterior.scale)[::-1][:5])
    for ax in (rows, columns):
        ends = np.array([segment[:, 0] for segment in ax.collections[0].get_segments()])
        assert (ends[:, 0] < ax.lines[0].get_xdata()).all()
        assert (ends[:, 1] > ax.lines[0].get_xdata()).all()


def test_completed_keeps_what_was_observed():
    posterior, X = fit(20, 6, by_column=False)
    panels = plots.plot_completed(posterior, X, Figure().subplots(1, 3))
    observed, completed, uncertainty = (panel.images[0].get_array() for panel in panels)
    ((row, column),) = np.argwhere(np.ma.getmaskarray(observed))
    assert completed[row, column] == pytest.approx(posterior.mean([0], [0])[0])
    np.testing.assert_array_equal(np.ma.compressed(observed), np.asarray(completed)[~np.ma.getmaskarray(observed)])
    assert np.asarray(uncertainty).mean() == pytest.approx(posterior.std(noise=True).mean())


def test_noise():
    """Common noise is one density per chain; known noise is in units of the column; of Student's t the scale."""
    posterior, _ = fit(10, 4, by_column=False)
    assert len(plots.plot_noise(posterior, axes()).lines) == 2
    assert (np.diff(plots.plot_noise(fit(10, 4)[0], axes()).lines[0].get_xdata()) >= 0).all()
    factor, unit = np.random.default_rng(0).uniform(0.5, 3.0, size=(10, 4)), np.array([1.0, 2.0, 5.0, 0.5])
    known = replace(posterior, noise_variance=np.ones((2, 30)), noise_factor=factor, scale=unit)
    ax = plots.plot_noise(known, axes())
    np.testing.assert_allclose(ax.lines[0].get_xdata(), np.sort(np.sqrt((factor**2).mean(axis=0)) / unit))
    assert ax.get_xlabel() == "noise over the scale of the column\n(sd)"
    ax = plots.plot_noise(replace(posterior, df=np.full((2, 30), 4.0)), axes())
    assert ax.get_xlabel() == "noise (scale of Student's t)"
    ax = plots.plot_noise(replace(posterior, outlier_share=np.full((2, 30, 4), 0.1)), axes())
    assert ax.get_xlabel() == "noise (sd without gross errors)"


def test_weights_and_rank():
    posterior, _ = fit(10, 4)
    small = 100 * np.mean(posterior.W[0, -20:] < 0.1)
    labels = plots.plot_weights(posterior, axes()).get_legend_handles_labels()[1]
    assert labels[0] == f"chain 0 ({small:.0f}% below 0.1)"
    known = with_effects(posterior)
    drawn = plots.plot_weights(replace(known, W=known.W[..., [0, 1]], Z=known.Z[:, :, [0, 1]], n_fixed=(1, 0)), axes())
    without = plots.plot_weights(known, axes())
    np.testing.assert_array_equal(without.lines[0].get_ydata(), drawn.lines[0].get_ydata())
    rows, columns = plots.plot_component(known, 2, Figure().subplots(1, 2))
    assert (rows.get_title()[:21], columns.get_title()) == ("offset of the columns", "")
    table = pd.DataFrame({"log_density": [-3.0, -1.0, -1.1], "below_best_se": [0.3, 0.0, 0.1]}, index=[1, 2, 5])
    marked = plots.plot_rank(RankChoice(2, table), axes()).lines[-1]
    assert (marked.get_xdata()[0], marked.get_ydata()[0]) == (2, -1.0)


def test_coverage_of_draws_from_the_model_is_right():
    posterior, _ = fit(60, 40, by_column=False)
    rows, columns = (part.ravel() for part in np.indices((60, 40)))
    draws = posterior.draws_of(rows, columns, noise=True, random_state=1).reshape(60, -1)
    values = draws[np.random.default_rng(2).integers(60, size=draws.shape[1]), np.arange(draws.shape[1])]
    probabilities = figures.PROBABILITIES
    np.testing.assert_allclose(figures.coverage(posterior, rows, columns, values), probabilities, atol=0.04)
    wide = figures.coverage(posterior, rows, columns, posterior.mean(rows, columns))
    assert (wide > probabilities + 0.04).all()


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda p, X: plots.plot_factor(p, "V"), "factor must be 'W' or 'Z', got 'V'"),
        (lambda p, X: plots.plot_component(p, 3), "component must be at least 0 and below 3, got 3"),
        (lambda p, X: plots.plot_component(p, 0, [axes()]), "axes must be 2 axes, got 1"),
        (lambda p, X: plots.plot_completed(p, X[:3]), "X must have the shape of the fitted data"),
        (lambda p, X: plots.plot_predictions(p, [0, 1], [0, 1], [1.0]), "lists of the same length"),
        (lambda p, X: plots.plot_calibration(p, [0], [1], [np.nan]), "values must be finite"),
    ],
)
def test_errors(draw, message):
    with pytest.raises(ValueError, match=message):
        draw(*fit(4, 3))
