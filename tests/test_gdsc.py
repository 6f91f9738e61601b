"""The comparison on GDSC, on a small matrix: it resumes after an interruption, and its page is made of its results."""

import json

import numpy as np
import pytest
from benchmarks import pages
from benchmarks.gdsc import __main__ as command
from benchmarks.gdsc import methods, page
from benchmarks.gdsc.methods import Baseline, Forecast, Hidden, Model
from benchmarks.gdsc.published import PUBLISHED

from bnmf import BayesianNMF
from bnmf.paper import baselines
from tests.pages import DOCS

SHORT = {"n_components": 2, "n_chains": 1, "burn_in": 20, "n_draws": 20}


def small_matrix():
    rng = np.random.default_rng(0)
    X = rng.exponential(size=(30, 2)) @ rng.exponential(size=(2, 8)) + 0.1 * rng.random((30, 8))
    X[rng.random(X.shape) < 0.2] = np.nan
    return X


def hidden_of(X):
    rows, columns = np.nonzero(~np.isnan(X))
    rows, columns = rows[::5], columns[::5]
    A = X.copy()
    A[rows, columns] = np.nan
    return A, Hidden(rows, columns, X[rows, columns])


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Return the command on a small matrix with two methods, and the list of fills of one of them."""
    fills = []

    def column_mean(A):
        fills.append(len(fills))
        if len(fills) == 3:  # in the second fold
            raise KeyboardInterrupt
        return baselines.column_mean(A)

    (tmp_path / "page.md").write_text("<!-- gdsc --><!-- /gdsc -->", encoding="utf-8")
    monkeypatch.setattr(command, "load", lambda data_dir: small_matrix())
    small = {"short": Model("a short fit", SHORT), "mean": Baseline("means", column_mean)}
    monkeypatch.setattr(methods, "METHODS", small)
    options = ["--folds", "2", "--jobs", "1", "--results", tmp_path / "results.json", "--write", tmp_path / "page.md"]
    return lambda: command.main([*map(str, options)]), fills


def test_an_interrupted_comparison_is_resumed(run, tmp_path):
    compare, fills = run
    with pytest.raises(KeyboardInterrupt):
        compare()
    before = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert len(before) == 3
    assert (tmp_path / "page.md").read_text(encoding="utf-8") == "<!-- gdsc --><!-- /gdsc -->"
    compare()
    after = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert len(after) == 4
    assert all(record in after for record in before)
    assert len(fills) == 5  # two in each fold, and the one that was interrupted
    text = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "| **a short fit** | bnmf | 2 |" in text
    assert "| means | baseline |" in text
    assert all(f"| {theirs.name}" in text for theirs in PUBLISHED)


def test_other_settings_are_other_results(run, monkeypatch):
    X = small_matrix()
    first, again = (command.tasks(X, {"a": Model(label, SHORT)}, 2) for label in ("old name", "new name"))
    assert [task.digest for task in first] == [task.digest for task in again]
    changed = command.tasks(X, {"a": Model("old name", SHORT, below=100.0)}, 2)
    other_data = command.tasks(2 * X, {"a": Model("old name", SHORT)}, 2)
    assert not {task.digest for task in first} & {task.digest for task in changed + other_data}


def test_scores_of_a_known_forecast():
    values = np.array([1.0, 3.0])
    low, high, logs = np.array([1.5, 2.0]), np.array([3.0, 4.0]), np.array([-1.0, -3.0])
    forecast = Forecast(np.array([2.0, 3.0]), logs, 2 * logs, low, high, "", 0.0)
    found = command.scores(forecast, values)
    assert found["mse"] == 0.5
    assert found["r2"] == 0.5
    assert found["log_density"] == -2.0
    assert found["log_probability"] == -4.0
    assert found["coverage"] == 0.5
    assert found["width"] == 1.75
    assert found["interval_score"] == 1.75 + 20 * 0.25  # half of the entries lie 0.5 below


def test_probabilities_of_all_whole_numbers_add_up_to_one():
    A, (rows, columns, _) = hidden_of(small_matrix())
    posterior = BayesianNMF(**SHORT, random_state=0, calibrate=False).fit(A).posterior_
    ranges = [methods.bounds(np.full(len(rows), value), 6.0) for value in np.arange(7.0)]
    logs = [methods.log_probability(posterior, rows, columns, *ends) for ends in ranges]
    np.testing.assert_allclose(np.exp(logs).sum(axis=0), 1.0)
    draws = posterior.draws_of(rows, columns, noise=True)
    np.testing.assert_allclose(np.exp(logs[2]), ((draws >= 2.0) & (draws < 3.0)).mean(axis=(0, 1)), atol=0.4)


def test_a_model_of_the_distance_below_a_cap_predicts_the_data_themselves():
    X = 20.0 - small_matrix()
    A, hidden = hidden_of(X)
    forecast = Model("", SHORT, below=20.0).forecast(A, hidden, 0)
    mirrored = Model("", SHORT).forecast(20.0 - A, hidden._replace(values=20.0 - hidden.values), 0)
    assert forecast.mean == pytest.approx(20.0 - mirrored.mean)
    assert forecast.log_density == pytest.approx(mirrored.log_density)
    assert forecast.low == pytest.approx(np.maximum(20.0 - mirrored.high, 0.0))
    assert np.all(forecast.log_probability < 0.0)
    assert np.mean((forecast.mean - hidden.values) ** 2) < 0.2 * hidden.values.var()


def test_a_baseline_takes_the_better_option_and_the_spread_of_entries_that_it_did_not_see():
    A, hidden = hidden_of(small_matrix())

    def fill(A, worse_by):
        return baselines.nmf(A, "squared", n_components=2, random_state=0) + worse_by

    forecast = Baseline("", fill, ({"worse_by": 9.0}, {"worse_by": 0.0})).forecast(A, hidden, 0)
    assert forecast.choice == "worse_by = 0.0"
    inside = (forecast.low <= hidden.values) & (hidden.values <= forecast.high)
    assert 0.75 < inside.mean() <= 1.0


def test_published_results_have_five_folds():
    assert all(len(theirs.mse) == len(theirs.r2) == 5 for theirs in PUBLISHED)
    # Variance of the data, which both measures imply.
    for theirs in PUBLISHED:
        assert np.array(theirs.mse) / (1.0 - np.array(theirs.r2)) == pytest.approx(1919.0, rel=0.02)


def test_the_page_shows_the_results_of_the_last_run():
    results = json.loads(command.RESULTS.read_text(encoding="utf-8"))
    written = (DOCS / "gdsc.md").read_text(encoding="utf-8")
    assert pages.replaced(written, "gdsc", page.tables(results, methods.METHODS, 5)) == written
