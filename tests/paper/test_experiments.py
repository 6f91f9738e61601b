"""The experiments on small data: the fits that they need, and the page with the tables and figures of their results."""

import re

import numpy as np
import pandas as pd
import pytest

from bnmf.paper import experiments, figures, tables
from bnmf.paper.experiments import EXPERIMENTS, Settings, quick
from bnmf.paper.fits import STARTS, FinishedFits, data_fingerprint, run_fits
from bnmf.paper.methods import EXACT_MODELS, printed_factors
from bnmf.paper.reproduce import Dataset, reproduce

SMALL_RUN = Settings(
    repeats=1,
    seed=3,
    n_sweeps=25,
    burn_in=10,
    full_k=(10, 20),  # for some of these K and fractions the paper prints numbers
    prediction_k=(20, 30),
    fractions={"gdsc": (0.5, 0.6), "methylation": (0.5,)},
    noise_k=2,
    noise_levels=(0.0, 1.0),
    start_scenarios=((0.6, 20),),
)


@pytest.fixture(scope="module")
def made():
    rng = np.random.default_rng(0)
    large = 10 * rng.exponential(2.0, (36, 3)) @ rng.exponential(1.0, (3, 30))
    large[rng.random(large.shape) < 0.2] = np.nan
    small = rng.uniform(0, 1, (30, 2)) @ rng.uniform(0, 5, (2, 31))
    return {"gdsc": Dataset(large, "made <A>", source="drawn & made"), "methylation": Dataset(small, "made B")}


@pytest.fixture(scope="module")
def out(made, tmp_path_factory):
    """The directory of a small run, whose figures are drawn and not saved."""

    def drawn(figure, path):
        figure.draw_without_rendering()
        path.with_suffix(".png").touch()

    out = tmp_path_factory.mktemp("reproduction")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figures, "save", drawn)
        assert reproduce(EXPERIMENTS, made, SMALL_RUN, out, n_jobs=1) == out / "index.html"
    return out


@pytest.fixture(scope="module")
def results(made, out):
    data = {name: dataset.data for name, dataset in made.items()}
    finished = FinishedFits(out / "fits", {name: data_fingerprint(X) for name, X in data.items()})
    return run_fits(experiments.plan(EXPERIMENTS[:3], SMALL_RUN, 0.8), data, finished=finished)


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
    small, full = (set(experiments.plan(EXPERIMENTS, s, 0.8)) for s in (quick(Settings()), Settings()))
    assert small < full
    assert quick(Settings(repeats=1)).repeats == 1


def test_page_has_every_section_in_both_formats(out):
    page, markdown = ((out / name).read_text(encoding="utf-8") for name in ("index.html", "README.md"))
    headings = re.findall("<h2 .*?>(.*?)</h2>", page)
    assert headings == re.findall("^## (.*)$", markdown, flags=re.MULTILINE)
    assert headings == [
        "Agreement", "Data", "Convergence", "Factors", "Scale of W", "Prediction", "Starting points of GL₁²", "Noise",
        "Settings",
    ]  # fmt: skip
    shown = {path.stem for path in (out / "figures").iterdir()}
    assert shown == {"data", "noise", *(f"{x}-{name}" for x in EXPERIMENTS[:3] for name in ("gdsc", "methylation"))}
    assert set(re.findall(r"!\[.*?\]\(figures/(.*?)\.png\)", markdown)) == shown
    assert page.count("data:image/png;base64,") == len(shown)
    assert "made &lt;A&gt;: mean of W" in page
    assert "drawn &amp; made" in page
    assert "<A>" not in page + markdown
    assert str(out) not in page + markdown


def test_tables_of_the_page_compare_with_the_printed_numbers(out):
    markdown = (out / "README.md").read_text(encoding="utf-8")
    for found in (
        "made &lt;A&gt;: training MSE after the burn-in",
        "(printed 80.4, ",
        "| 10 | printed | 0.10 (80.4%) | 0.70 (11.4%) |",
        "(printed 787.60, ",
        "made &lt;A&gt;: MSE of the baselines on the same entries",
        "| 50% | 30 |",
        "made &lt;A&gt;: GL₁², 60% unobserved, K = 20, printed 880.36",
        "| last state of a GEE chain |",
        "made &lt;A&gt;: against the noisy entries",
        "| seed | 3 |",
    ):
        assert found in markdown
    assert not set("✓✗?") & set(re.sub("(?s).*?## Factors", "", markdown))  # one repeat is not graded


def test_files_with_the_numbers(out):
    measured = {path.stem: pd.read_csv(path) for path in (out / "tables").iterdir()}
    assert set(measured) == {*EXPERIMENTS, "starts"}
    assert len(measured["convergence"]) == 2 * 2 * 7 * 20  # of 25 sweeps the first 20
    assert measured["factors"]["start"].eq("prior").sum() == 2 * 2 * 7
    assert measured["factors"]["start"].ne("prior").sum() == 2 * 4 * 4
    half = measured["prediction"].query("dataset == 'made <A>' and unobserved == 0.5")
    assert len(half) == 5 * 2 + 3 + 2 * 2
    assert set(half["k"]) == {0, 20, 30}
    assert set(measured["prediction"].query("model == 'gl22inf-published'")["unobserved"]) == {0.6}
    assert list(measured["starts"]["start"].unique()) == ["prior", "exponential", "small", "gee"]
    noisy = measured["noise"]["noise"] == 1
    np.testing.assert_allclose(*measured["noise"].loc[~noisy, ["mse", "mse_clean"]].to_numpy().T)
    assert (measured["noise"]["mse"] > measured["noise"]["mse_clean"])[noisy].all()


def test_summary_of_convergence_by_hand():
    errors = {0: [100.0, 11.4, 10.0, 8.0], 1: [90.0, 11.0, 14.0, 10.0]}
    rows = [("made", 2, "gee", r, s + 1, mse) for r, curve in errors.items() for s, mse in enumerate(curve)]
    table = pd.DataFrame(rows, columns=["dataset", "k", "model", "repeat", "sweep", "train_mse"])
    (row,) = experiments.convergence_summary(table, 2).to_dict("records")
    # After two sweeps the means of the repeats are 9 and 12. The mean curve is 95, 11.2, 12, 9.
    assert row["final_mse"] == pytest.approx(10.5)
    assert row["sweeps"] == 2


def test_densities_of_W_add_up_to_one(results):
    density = experiments.histogram(results)
    width = density["log10_w"].diff().iloc[1]
    np.testing.assert_allclose(density.groupby(["dataset", "k", "model"])["density"].sum() * width, 1.0)


def test_divergent_chains_do_not_break_tables_and_figures(results):
    nothing = {"train_mse": np.full(25, np.nan), "w_mean": np.array(np.nan), "w_sparsity": np.array(np.nan)}
    diverged = {fit: found | nothing if fit.model == "glinf-published" else found for fit, found in results.items()}
    for given in (results, diverged):
        errors, W = of(experiments.convergence(given), "gdsc"), of(experiments.factors(given), "gdsc")
        shown = text(tables.convergence(errors, "made", 10)), text(*tables.factors(W, "made"))
        assert ["–" in table for table in shown] == [given is diverged] * 2
    figures.convergence(errors, "made").draw_without_rendering()


def test_the_start_nearest_to_the_paper():
    ours = printed_factors().query("dataset == 'methylation'")
    parts = [
        ours.assign(start=start, mean=ours["mean"] + i, sparsity=ours["sparsity"] + 1 + i, train_mse=1 + i / 100)
        for i, start in enumerate(reversed(STARTS))
    ]
    found, table, by_start = tables.factors_by_start(pd.concat(parts), "made")
    assert found.startswith("Over all 20 printed cells the nearest start is: draw from the prior, Z updated before W.")
    assert found.endswith("differ by at most 4%.")
    assert "| draw from the prior of the model | 5.0 (4.00) | 5.0 (4.00) |" in table.markdown()
    assert [row[1] for row in by_start.rows] == 5 * [*STARTS.values(), "printed"]


def test_active_components(results):
    sizes = np.array([14135, 3299, 218, 198, 196, 151])
    some = {fit: result | {"contributions": sizes} for fit, result in results.items()}
    found = experiments.starts(some, SMALL_RUN)
    assert set(found["active"]) == {2}
    assert "In 4 of the 4 chains no component became active" in tables.starts(found.assign(active=0), "made")[1]
