"""The verdict: levels follow what was measured, and only what matters to predictions is worth a warning."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from bnmf import BayesianNMF
from bnmf.posterior import base, verdict
from bnmf.posterior.calibration import Calibration
from bnmf.posterior.verdict import Finding, Verdict, of_posterior, on_intervals, on_methods


def fit(error=0.05, agrees=((1, 1), (1, 1)), active=(1, 1), notes=(), calibration=None, n_draws=100, r_hat=1.0):
    """A posterior of which only what the verdict asks for is known."""
    agrees, active = np.array(agrees, bool), np.array(active, bool)
    return SimpleNamespace(
        prediction_error=lambda: error,
        n_draws=n_draws,
        notes=notes,
        n_chains=len(agrees),
        component_matches=lambda: (active, agrees.all(axis=0)),
        diagnostics=pd.DataFrame({"r_hat": [1.0, r_hat]}, index=["noise variance", "log likelihood"]),
        calibration=calibration,
        column_names=None,
        offset=None,
        n_fixed=(0, 0),
    )


def hidden(inside, columns=None, error=0.5):
    inside = np.array(inside, bool)
    columns = np.zeros(len(inside), int) if columns is None else np.asarray(columns)
    errors = np.full(len(inside), error)
    return Calibration(columns, inside, errors, np.ones(len(inside)))


def covered(share, n=1000, **options):
    return hidden(np.arange(n) < share * n, **options)


@pytest.mark.parametrize(
    ("error", "level", "words", "advice"),
    [
        (0.05, "good", "the chains' predictions agree (Monte Carlo error 5% of the predictive standard deviation)", ""),
        (0.2, "usable", "the chains' predictions nearly agree (Monte Carlo error 20%", "more draws make them more"),
        (0.4, "poor", "the chains' predictions disagree (Monte Carlo error 40%", "continue with `sample_more`"),
        (math.nan, "unknown", "3 draws of each chain cannot tell whether", "take at least 100"),
    ],
)
def test_predictions(error, level, words, advice):
    found = of_posterior(fit(error, n_draws=3))
    finding = found["predictions"]
    assert finding.level == level
    assert finding.sentence.startswith(words)
    assert finding.advice.startswith(advice)
    assert bool(found.problems()) == (level == "poor")


@pytest.mark.parametrize(
    ("agrees", "active", "level", "sentence"),
    [
        ([[1, 1, 1], [1, 0, 1]], (1, 1, 1), "usable", "both chains find 2 of 3 components"),
        ([[1, 1], [1, 1], [1, 1]], (1, 1), "good", "all 3 chains find 2 components"),
        ([[1, 1, 1], [1, 1, 0]], (1, 1, 0), "good", "2 of 3 components stand out from the noise; both chains find"),
        ([[1, 1, 1], [1, 0, 0]], (1, 1, 0), "usable", "2 of 3 components stand out from the noise; both chains find 1"),
        ([[1, 1], [0, 0]], (1, 1), "poor", "both chains find 0 of 2 components"),
        ([[1, 1], [1, 1]], (0, 0), "poor", "no component stands out from the noise"),
        ([[1, 1], [1, 0]], (1, 0), "good", "1 of 2 components stands out from the noise; both chains find it"),
        ([[1, 1], [0, 1]], (1, 0), "poor", "1 of 2 components stands out from the noise; both chains find 0 of these"),
        ([[1], [1]], (1,), "good", "both chains find 1 component"),
        ([[1, 1]], (1, 1), "unknown", "one chain cannot tell"),
    ],
)  # fmt: skip
def test_components(agrees, active, level, sentence):
    finding = of_posterior(fit(agrees=agrees, active=active))["components"]
    assert finding.level == level
    assert finding.sentence.startswith(sentence)


@pytest.mark.parametrize(
    ("r_hat", "level", "words"),
    [
        (1.02, "good", "the chains agree on the noise and the fit (R-hat 1.02)"),
        (1.07, "usable", "the chains nearly agree"),
        (1.4, "poor", "the chains are in different modes"),
        (math.nan, "unknown", "there are too few draws"),
    ],
)
def test_noise(r_hat, level, words):
    found = of_posterior(fit(r_hat=r_hat))
    finding = found["noise"]
    assert finding.level == level
    assert finding.sentence.startswith(words)
    assert found.problems() == []


# --- intervals


@pytest.mark.parametrize(
    ("share", "n", "level"),
    [
        (0.9, 1000, "good"),
        (0.83, 1000, "good"),  # within 0.05 and four standard errors
        (0.80, 1000, "usable"),
        (0.75, 1000, "poor"),
        (1.0, 10_000, "usable"),  # too wide
        (0.75, 40, "good"),  # too few to tell
    ],
)
def test_coverage(share, n, level):
    (finding,) = on_intervals(covered(share, n), None)
    assert finding.level == level
    assert finding.sentence == f"of {n:,} entries hidden for this purpose {share:.0%} are inside their 90% intervals"
    assert finding.number == share


def test_a_column_whose_intervals_fail_is_named():
    inside = np.ones(400, bool)
    inside[:25] = False
    columns = np.repeat(np.arange(10), 40)
    (finding,) = on_intervals(hidden(inside, columns), pd.Index([f"c{i}" for i in range(10)]))
    assert finding.level == "poor"
    assert finding.sentence.endswith("94% are inside their 90% intervals, but far fewer in column 'c0'")
    assert Verdict((finding,)).headline(0.5)[0] == (
        "Do not rely on the predictions and their intervals in column 'c0'."
    )
    inside[:25] = True
    inside[::13] = False  # the same number, spread evenly
    assert on_intervals(hidden(inside, columns), None)[0].level == "good"


def test_predictions_that_are_worse_than_the_mean_of_a_column():
    (finding,) = on_intervals(covered(0.9, error=1.5, columns=np.arange(1000) % 100), None)  # ten of each
    assert finding.level == "poor"
    assert finding.sentence.endswith(", and predictions are worse than the means of the columns")
    assert finding.where == ""
    assert "NMFImputer" in finding.advice
    (finding,) = on_intervals(covered(0.9, error=1.5, columns=np.arange(1000) % 100), None, has_offset=True)
    assert finding.advice == "try fewer components or more draws"  # NMFImputer has an offset
    one = hidden(np.arange(200) % 10 > 0, np.repeat(np.arange(5), 40))
    (finding,) = on_intervals(replace(one, errors=np.where(one.columns == 3, 1.5, 0.1)), None)
    assert finding.level == "poor"
    assert finding.sentence.endswith(", and predictions are worse than the mean in column 3")
    both = Verdict((replace(finding, where="column 1"), finding, replace(finding, level="good", where="")))
    assert both.headline(0.5) == ("Do not rely on the predictions and their intervals in column 1 and column 3.", "")
    # A median can hide it, where half of the errors are small.
    (finding,) = on_intervals(replace(one, errors=np.where((one.columns == 3) & (np.arange(200) % 2), 6.0, 0.1)), None)
    assert finding.level == "poor"
    # A single prediction that is far off is not a column.
    (finding,) = on_intervals(replace(one, errors=np.where(np.arange(200) == 130, 100.0, 0.1)), None)
    assert finding.level == "good"


def test_nothing_is_said_where_nothing_was_hidden():
    assert on_intervals(None, None) == []
    assert "intervals" not in of_posterior(fit())
    assert verdict.named(pd.Index([0, 4, 7, 9, 11]), None) == "columns 0, 4, 7 and 2 others"  # of many columns


# --- other methods


def errors(**sizes):
    """Return absolute errors of 400 entries with the same randomness for each method."""
    noise = np.abs(np.random.default_rng(0).normal(size=400))
    names = {"own": "bnmf", "mean": "column mean", "knn": "KNNImputer", "iterative": "IterativeImputer"}
    return {names[key]: size * noise for key, size in sizes.items()}


@pytest.mark.parametrize(
    ("sizes", "level", "begin", "end"),
    [
        ({"own": 0.5, "mean": 1, "knn": 0.7, "iterative": 0.8}, "good", "best by bnmf, with 50%", "of the column mean"),
        ({"own": 0.5, "mean": 1}, "good", "best by bnmf, with 50%", ""),
        ({"own": 0.6, "mean": 1, "knn": 0.6}, "good", "about equally well by bnmf and KNNImputer, with 60% and", ""),
        ({"own": 0.6, "mean": 1, "knn": 0.7, "iterative": 0.5}, "usable", "best by Iter", "if you need no intervals"),
        ({"own": 1, "mean": 1, "knn": 1.1}, "usable", "no better by bnmf than by the column mean, and no", "will do"),
        ({"own": 1.2, "mean": 1, "knn": 1.1}, "poor", "worse by bnmf than by the column mean. As far", "will do"),
        ({"own": 1.2, "mean": 1, "knn": 0.8}, "poor", "worse", "with 80% of its absolute error. Use KNNImputer here"),
        ({"own": 0.97, "mean": 1}, "usable", "no better", "will do"),
        ({"own": 0, "mean": 0, "knn": 0}, "usable", "no better", "will do"),
    ],
)  # fmt: skip
def test_which_method_is_best(sizes, level, begin, end):
    (finding,) = on_methods(errors(**sizes))
    assert finding.level == level
    assert finding.text.startswith(f"Hidden entries are predicted {begin}")
    assert f"{end}." in finding.text


def test_a_difference_within_chance_does_not_count():
    rng = np.random.default_rng(0)
    found = {"bnmf": rng.exponential(size=30), "column mean": 1.1 * rng.exponential(size=30)}
    for each, few in ((found, "30 entries were"), ({name: some[:1] for name, some in found.items()}, "1 entry was")):
        hint, finding = on_methods(each)
        assert (hint.level, hint.sentence) == ("unknown", f"only {few} hidden, so this is no more than a hint")
        assert "no better" in finding.sentence


def test_worse_than_the_mean_is_one_test():
    """The comparison of a table and the verdict on a fit call the same errors worse, also where a few are large."""
    rng = np.random.default_rng(0)
    for own in (np.where(np.arange(400) == 7, 100.0, 0.9), rng.exponential(1.3, size=400)):
        found = Calibration(np.arange(400) % 100, np.arange(400) % 10 > 0, own, np.ones(400))
        (intervals,), (compared,) = on_intervals(found, None), on_methods({"bnmf": own, "column mean": np.ones(400)})
        assert ("worse" in intervals.sentence) == (compared.level == "poor") == (own[7] < 100.0)


# --- all of it


def test_text_and_warnings():
    notes = Finding("fit", "poor", "the fit explains nothing", "try more"), Finding("fit", "usable", "it is cut")
    found = of_posterior(fit(0.5, notes=notes, calibration=covered(0.5), r_hat=2.0))
    text = repr(found)
    assert text.startswith(
        "The fit explains nothing. Try more. It is cut. Predictions: poor. The chains' predictions disagree ("
    )
    assert 'Continue with `sample_more`, or fit with n_draws="auto". Intervals: poor. Of 1,000 entries' in text
    note, predictions, intervals = found.problems()
    assert note == "the fit explains nothing; try more"
    assert predictions.endswith('; continue with `sample_more`, or fit with n_draws="auto"')
    assert intervals.startswith("of 1,000 entries hidden for this purpose 50% are inside")
    assert [finding.purpose for finding in found] == ["fit", "fit", "predictions", "intervals", "noise", "components"]


def test_a_fit_computes_no_diagnostics_that_nobody_has_asked_for(monkeypatch):
    """R-hat of all monitored quantities takes longer than a small fit, and no warning depends on it."""
    monkeypatch.setattr(base, "diagnostics", None)
    X = np.random.default_rng(0).exponential(size=(12, 6))
    model = BayesianNMF(2, n_chains=2, burn_in=5, n_draws=5, random_state=0).fit(X)
    with pytest.raises(TypeError, match="not callable"):
        model.posterior_.summary()
