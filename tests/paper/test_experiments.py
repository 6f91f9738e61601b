"""The four experiments and the starting points on small data: plans, tables, figures, Markdown."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from bnmf.paper import added_noise, convergence, factors, figures, prediction, starts
from bnmf.paper.experiments import Settings, quick
from bnmf.paper.methods import EXACT_MODELS
from bnmf.paper.run import run_fits

DATASET_NAMES = {"gdsc": "made A", "methylation": "made B"}
SMALL_RUN = Settings(
    repeats=2,
    n_sweeps=30,
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
def data():
    rng = np.random.default_rng(0)
    large = 10 * rng.exponential(2.0, (20, 3)) @ rng.exponential(1.0, (3, 12))
    large[rng.random(large.shape) < 0.2] = np.nan
    return {"gdsc": large, "methylation": rng.uniform(0, 1, (15, 2)) @ rng.uniform(0, 5, (2, 18))}


@pytest.fixture(scope="module")
def results(data):
    observed = added_noise.observed_fraction(data["gdsc"])
    plans = [module.plan(SMALL_RUN) for module in (convergence, prediction, starts)]
    return run_fits([fit for fits in (*plans, added_noise.plan(SMALL_RUN, observed)) for fit in fits], data)


def test_full_run_has_the_settings_of_the_paper():
    fits = convergence.plan(Settings())
    assert {fit.k for fit in fits} == {10, 20, 30, 40, 50}
    assert {(fit.n_sweeps, fit.burn_in, fit.rate, fit.start) for fit in fits} == {(500, 300, 0.1, "prior")}
    assert sum(fit.model == "gee" for fit in fits) == 2 * 5 * 10
    assert sum(fit.model == "glinf-published" for fit in fits) == 2 * 5 * 3
    printed = {(f.unobserved, f.k, f.model) for f in prediction.plan(Settings()) if f.dataset == "gdsc"}
    assert {(u, k, m) for u in (0.6, 0.7, 0.8) for k in (20, 30, 40, 50) for m in EXACT_MODELS} <= printed
    levels = {fit.noise for fit in added_noise.plan(Settings(), 0.8)}
    assert levels == {0.0, 0.1, 0.2, 0.5, 1.0}


def test_quick_is_part_of_the_full_run():
    assert set(convergence.plan(quick(Settings()))) < set(convergence.plan(Settings()))
    assert set(prediction.plan(quick(Settings()))) < set(prediction.plan(Settings()))
    assert quick(Settings(repeats=1)).repeats == 1


def test_convergence(results):
    table = convergence.table(results)
    assert len(table) == 2 * 2 * (6 * 2 + 1) * 30
    assert list(table.columns) == ["dataset", "k", "model", "repeat", "sweep", "train_mse"]
    ends = convergence.summary(table, 10)
    assert len(ends) == 2 * 2 * 7
    assert ends["sweeps"].between(1, 30).all()
    shown = convergence.markdown(table, DATASET_NAMES, 10)
    assert "made B: training MSE after the burn-in" in shown
    figure = convergence.figure(table[table["dataset"] == "gdsc"], "made A")
    assert [axis.get_title() for axis in figure.axes] == ["K = 2", "K = 3"]


def test_summary_of_convergence_by_hand():
    errors = {0: [100.0, 11.4, 10.0, 8.0], 1: [90.0, 11.0, 14.0, 10.0]}
    rows = [("gdsc", 2, "gee", r, s + 1, value) for r, curve in errors.items() for s, value in enumerate(curve)]
    table = pd.DataFrame(rows, columns=["dataset", "k", "model", "repeat", "sweep", "train_mse"])
    (row,) = convergence.summary(table, 2).to_dict("records")
    # After two sweeps the means of the repeats are 9 and 12. The mean curve is 95, 11.2, 12, 9.
    assert row["final_mse"] == pytest.approx(10.5)
    assert row["spread"] == pytest.approx(3 / np.sqrt(2))
    assert row["sweeps"] == 2


def test_divergent_chains_do_not_break_tables_and_figures(results):
    assert "–" not in convergence.markdown(convergence.table(results), DATASET_NAMES, 10)
    assert "–" not in factors.markdown(factors.table(results), DATASET_NAMES)
    diverged = {
        fit: {**result, "train_mse": np.full(30, np.nan), "w_mean": np.array(np.nan), "w_sparsity": np.array(np.nan)}
        if fit.model == "glinf-published"
        else result
        for fit, result in results.items()
    }
    table = convergence.table(diverged)
    assert convergence.summary(table, 10).query("model == 'glinf-published'")["final_mse"].isna().all()
    assert "–" in convergence.markdown(table, DATASET_NAMES, 10)
    convergence.figure(table[table["dataset"] == "gdsc"], "made A").canvas.draw()
    assert "–" in factors.markdown(factors.table(diverged), DATASET_NAMES)


def test_factors(results):
    table = factors.table(results)
    assert len(table) == 2 * 2 * 13
    density = factors.histogram(results)
    width = density["log10_w"].diff().iloc[1]
    np.testing.assert_allclose(density.groupby(["dataset", "k", "model"])["density"].sum() * width, 1.0)
    figure = factors.figure(density[density["dataset"] == "methylation"], "made B")
    assert figure.get_suptitle() == "made B"
    shown = factors.markdown(table, DATASET_NAMES)
    assert "made B: percentage of W below 0.1" in shown


def test_factors_with_the_printed_numbers(results):
    table = factors.table(results)
    shown = factors.markdown(table.assign(k=table["k"].map({2: 10, 3: 20})), DATASET_NAMES)
    assert "(printed 8.1, " in shown
    assert "✗" in shown


def test_prediction(results, data):
    table = prediction.table(results)
    assert set(table["k"]) == {0, 2, 3}
    assert len(table.query("dataset == 'gdsc' and unobserved == 0.5")) == 2 * (5 * 2 + 3 + 2 * 2)
    assert set(table.query("model == 'gl22inf-published'")["unobserved"]) == {0.6}
    means = prediction.averages(table)
    assert set(means["k"]) == {2, 3}
    assert {"column_mean", "knn", "nmf"} < set(means["model"])
    shown = prediction.markdown(table, DATASET_NAMES)
    assert "made B: MSE of the baselines on the same entries" in shown
    prediction.figure(table[table["dataset"] == "gdsc"], "made A").canvas.draw()


def test_prediction_with_the_printed_numbers(results):
    table = prediction.table(results)
    shown = prediction.markdown(table.assign(k=table["k"].map({0: 0, 2: 20, 3: 30})), DATASET_NAMES)
    assert "(printed 787.60, " in shown


def test_measure_is_a_function_of_data_and_settings(data):
    small = replace(
        SMALL_RUN, datasets=("gdsc",), full_k=(2,), full_models=("gl22",), prediction_k=(2,), baselines=False
    )
    small = replace(small, prediction_models=("gl22",), fractions={"gdsc": (0.5,)}, printed_rule_from=1.0)
    for module in (convergence, factors, prediction, added_noise, starts):
        first, again = module.measure(data, small), module.measure(data, small)
        assert len(first) > 0
        assert first.equals(again)


def test_noise(results):
    table = added_noise.table(results)
    assert len(table) == 2 * 5 * 2
    clean = table[table["noise"] == 0]
    np.testing.assert_allclose(clean["mse"], clean["mse_clean"])
    assert (table[table["noise"] == 1]["mse"] > table[table["noise"] == 1]["mse_clean"]).all()
    assert "made A: against the noisy entries" in added_noise.markdown(table, DATASET_NAMES)
    assert len(added_noise.figure(table, "made A").axes) == 2


def test_starts(results):
    table = starts.table(results, SMALL_RUN)
    assert set(table["start"]) == {"prior", "exponential", "small", "gee"}
    assert len(table) == 4 * 2
    shown = starts.markdown(table, DATASET_NAMES)
    assert "last state of a GEE chain" in shown
    paragraphs = starts.explanation(table.assign(active=1))
    assert len(paragraphs) == 2
    assert "50% unobserved, K = 3" in paragraphs[1]
    assert "In 8 of the 8 chains no component became active" in starts.explanation(table.assign(active=0))[2]
    assert starts.explanation(table.iloc[:0]) == []
    assert starts.plan(replace(SMALL_RUN, datasets=("methylation",))) == []


def test_figures_are_written_as_png_and_pdf(results, tmp_path):
    figures.save(added_noise.figure(added_noise.table(results), "made A"), tmp_path / "noise")
    assert (tmp_path / "noise.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "noise.pdf").read_bytes().startswith(b"%PDF")
