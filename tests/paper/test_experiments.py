"""The experiments on small data: the fits that they need, the tables of their results, and their figures."""

import numpy as np
import pandas as pd
import pytest

from bnmf.paper import experiments, figures, tables
from bnmf.paper.experiments import Settings, quick
from bnmf.paper.fits import START_KINDS, run_fits
from bnmf.paper.methods import EXACT_MODELS, printed_factors

SMALL_RUN = Settings(
    repeats=2,
    n_sweeps=25,
    burn_in=10,
    full_k=(2, 3),
    divergent_repeats=1,
    prediction_k=(2, 3),
    fractions={"gdsc": (0.5, 0.6), "methylation": (0.5,)},
    noise_k=2,
    noise_levels=(0.0, 1.0),
    start_scenarios=((0.5, 3),),
)


@pytest.fixture(scope="module")
def results():
    rng = np.random.default_rng(0)
    large = 10 * rng.exponential(2.0, (20, 3)) @ rng.exponential(1.0, (3, 12))
    large[rng.random(large.shape) < 0.2] = np.nan
    data = {"gdsc": large, "methylation": rng.uniform(0, 1, (15, 2)) @ rng.uniform(0, 5, (2, 18))}
    return run_fits(experiments.plan(experiments.EXPERIMENTS, SMALL_RUN, np.mean(~np.isnan(large))), data)


def of(table, dataset):
    return table[table["dataset"] == dataset]


def text(*shown):
    return "\n\n".join(table.markdown() for table in shown)


def test_full_run_has_the_settings_of_the_paper():
    fits = experiments.plan_chains(Settings())
    assert {fit.k for fit in fits} == {10, 20, 30, 40, 50}
    assert {(fit.n_sweeps, fit.burn_in, fit.rate, fit.start) for fit in fits} == {(500, 300, 0.1, "prior")}
    assert sum(fit.model == "gee" for fit in fits) == 2 * 5 * 10
    assert sum(fit.model == "glinf-published" for fit in fits) == 2 * 5 * 3
    printed = {(f.unobserved, f.k, f.model) for f in experiments.plan_prediction(Settings()) if f.dataset == "gdsc"}
    assert {(u, k, m) for u in (0.6, 0.7, 0.8) for k in (20, 30, 40, 50) for m in EXACT_MODELS} <= printed
    assert {fit.noise for fit in experiments.plan_noise(Settings(), 0.8)} == {0.0, 0.1, 0.2, 0.5, 1.0}


def test_quick_is_part_of_the_full_run():
    small, full = (set(experiments.plan(experiments.EXPERIMENTS, s, 0.8)) for s in (quick(Settings()), Settings()))
    assert small < full
    assert quick(Settings(repeats=1)).repeats == 1


def test_convergence(results):
    table = experiments.convergence(results)
    assert len(table) == 2 * 2 * (6 * 2 + 1) * 25
    assert "made: training MSE after the burn-in" in text(tables.convergence(of(table, "gdsc"), "made", 10))
    figure = figures.convergence(of(table, "gdsc"), "made")
    assert [axis.get_title() for axis in figure.axes] == ["K = 2", "K = 3"]


def test_summary_of_convergence_by_hand():
    errors = {0: [100.0, 11.4, 10.0, 8.0], 1: [90.0, 11.0, 14.0, 10.0]}
    rows = [("made", 2, "gee", r, s + 1, mse) for r, curve in errors.items() for s, mse in enumerate(curve)]
    table = pd.DataFrame(rows, columns=["dataset", "k", "model", "repeat", "sweep", "train_mse"])
    (row,) = experiments.convergence_summary(table, 2).to_dict("records")
    # After two sweeps the means of the repeats are 9 and 12. The mean curve is 95, 11.2, 12, 9.
    assert row["final_mse"] == pytest.approx(10.5)
    assert row["sweeps"] == 2


def test_divergent_chains_do_not_break_tables_and_figures(results):
    nothing = {"train_mse": np.full(25, np.nan), "w_mean": np.array(np.nan), "w_sparsity": np.array(np.nan)}
    diverged = {fit: found | nothing if fit.model == "glinf-published" else found for fit, found in results.items()}
    for given in (results, diverged):
        errors, W = of(experiments.convergence(given), "gdsc"), of(experiments.factors(given), "gdsc")
        shown = text(tables.convergence(errors, "made", 10)), text(*tables.factors(W, "made"))
        assert ["–" in table for table in shown] == [given is diverged] * 2
    figures.convergence(errors, "made").draw_without_rendering()


def test_factors(results):
    table = experiments.factors(results)
    assert len(table[table["start"] == "prior"]) == 2 * 2 * 13
    assert len(table[table["start"] != "prior"]) == 2 * 4 * 4 * 2
    density = experiments.histogram(results)
    width = density["log10_w"].diff().iloc[1]
    np.testing.assert_allclose(density.groupby(["dataset", "k", "model"])["density"].sum() * width, 1.0)
    figures.factors(of(density, "methylation"), "made").draw_without_rendering()

    table = of(table, "methylation").assign(k=table["k"].map({2: 10, 3: 20}))  # for which there are printed numbers
    assert "(printed 80.4, " in text(*tables.factors(table, "made"))
    _, _, by_start = tables.factors_by_start(table, "made")
    assert [row[1] for row in by_start.rows] == 2 * [*tables.START_NAMES.values(), "printed"]
    assert "| 10 | printed | 0.10 (80.4%) | 0.70 (11.4%) |" in by_start.markdown()


def test_the_start_nearest_to_the_paper():
    ours = printed_factors().query("dataset == 'methylation'")
    parts = [
        ours.assign(start=start, mean=ours["mean"] + i, sparsity=ours["sparsity"] + 1 + i, train_mse=1 + i / 100)
        for i, start in enumerate(reversed(START_KINDS))
    ]
    found, table, _ = tables.factors_by_start(pd.concat(parts), "made")
    assert found.startswith("Over all 20 printed cells the nearest start is: draw from the prior, Z updated before W.")
    assert found.endswith("differ by at most 4%.")
    assert "| draw from the prior of the model | 5.0 (4.00) | 5.0 (4.00) |" in table.markdown()


def test_prediction(results):
    table = experiments.prediction(results)
    assert len(table.query("dataset == 'gdsc' and unobserved == 0.5")) == 2 * (5 * 2 + 3 + 2 * 2)
    assert set(table.query("model == 'gl22inf-published'")["unobserved"]) == {0.6}
    assert (set(table["k"]), set(experiments.with_every_k(table)["k"])) == ({0, 2, 3}, {2, 3})
    models, baselines = tables.prediction(of(table, "gdsc"), "made")
    assert [row[:2] for row in models.rows] == [["50%", "2"], ["50%", "3"], ["60%", "2"], ["60%", "3"]]
    assert "made: MSE of the baselines on the same entries" in baselines.markdown()
    renamed = of(table, "gdsc").assign(k=table["k"].map({0: 0, 2: 20, 3: 30}))
    assert "(printed 787.60, " in text(*tables.prediction(renamed, "made"))
    figures.prediction(of(table, "gdsc"), "made").draw_without_rendering()


def test_noise(results):
    table = experiments.noise(results)
    clean = table[table["noise"] == 0]
    np.testing.assert_allclose(clean["mse"], clean["mse_clean"])
    assert (table[table["noise"] == 1]["mse"] > table[table["noise"] == 1]["mse_clean"]).all()
    assert "made: against the noisy entries" in text(*tables.noise(table, "made"))
    axes = figures.noise(table, "made").axes
    assert [len(axis.get_lines()) for axis in axes] == [5, 5]


def test_starts(results):
    table = experiments.starts(results, SMALL_RUN)
    assert list(table["start"].unique()) == ["prior", "exponential", "small", "gee"]
    assert len(table) == 4 * 2
    shown = text(*tables.starts(table.assign(unobserved=0.6, k=20, active=1), "made")[1:])
    assert "made: GL₁², 60% unobserved, K = 20, printed 880.36" in shown
    assert "last state of a GEE chain" in shown
    assert "In 8 of the 8 chains no component became active" in tables.starts(table.assign(active=0), "made")[1]
    sizes = np.array([14135, 3299, 218, 198, 196, 151])
    some = {fit: result | {"contributions": sizes} for fit, result in results.items()}
    assert set(experiments.starts(some, SMALL_RUN)["active"]) == {2}
