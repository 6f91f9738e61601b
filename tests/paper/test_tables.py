"""Comparison of measured and printed numbers."""

import numpy as np
import pandas as pd
import pytest

from bnmf.paper import printed, tables
from bnmf.paper.tables import compare, verdicts


@pytest.mark.parametrize(
    ("mean", "spread", "repeats", "unit", "expected"),
    [
        (103.0, 0.0, 10, 0.01, "close"),  # at most 3%
        (103.1, 0.0, 10, 0.01, "off"),
        # Two standard errors of the difference of two means of ten repeats are 2 s √(1/10 + 1/10) = 0.894 s.
        (108.9, 10.0, 10, 0.0, "close"),
        (109.0, 10.0, 10, 0.0, "off"),
        (140.0, 50.0, 10, 0.0, "unclear"),  # within the Monte Carlo error, but far away
        (60.0, 50.0, 10, 0.0, "unclear"),
        (104.9, 0.0, 10, 10.0, "close"),  # half a unit of the last printed digit
        (100.0, 0.0, 4, 0.01, ""),  # too few repeats
        (np.nan, np.nan, 10, 0.01, ""),
    ],
)
def test_verdicts(mean, spread, repeats, unit, expected):
    assert verdicts(mean, spread, repeats, 100.0, unit) == expected


def test_coarse_printed_numbers_are_not_close():
    assert verdicts(0.058, 0.0, 10, 0.1, 0.1) == "unclear"
    assert verdicts(0.042, 0.0, 10, 0.0, 0.1) == "unclear"
    assert verdicts(0.06, 0.0, 10, 0.0, 0.1) == "off"


def test_tables_are_joined_and_the_printed_rule_is_compared():
    theirs = pd.DataFrame({"dataset": "gdsc", "k": 10, "model": ["gee", "gl22inf"], "mean": [8.0, 0.0]})
    measured = pd.DataFrame(
        {"dataset": "gdsc", "k": 10, "model": ["gl22inf", "gl22inf", "gl22inf-published", "gee", "glinf"]}
    ).assign(mean=[2.0, 3.0, 4.0, 10.0, 1.0])
    joined = compare(measured, theirs, "mean", 0.1).set_index("model")
    assert joined["measured"].to_dict() == {"gl22inf": 2.5, "gl22inf-published": 4.0, "gee": 10.0, "glinf": 1.0}
    assert joined["printed"].fillna(-1).to_dict() == {"gl22inf": 0, "gl22inf-published": 0, "gee": 8, "glinf": -1}
    assert joined.loc["gee", "percent"] == pytest.approx(25.0)
    assert joined["percent"].isna().sum() == 3
    assert set(joined["verdict"]) == {""}  # fewer than five repeats


def test_agreement_counts_close_numbers_and_does_not_grade_few_repeats():
    theirs = printed.prediction()
    repeats = pd.concat([theirs.assign(repeat=r) for r in range(5)])
    far = repeats["model"].eq("gee") & repeats["k"].eq(20)
    repeats["mse"] *= np.where(far, 1.4, 1.0)
    table = tables.agreement(None, repeats, {"gdsc": "made"})
    assert "| made | held-out MSE | 9 of 12 (+40.0%) | 12 of 12 (+0.0%) ✓ |" in table.markdown()
    few = tables.agreement(None, repeats[repeats["repeat"] < 4], {"gdsc": "made"}).markdown()
    assert "| not graded (+40.0%) | not graded (+0.0%) |" in few
    assert "✓" not in few
    assert tables.agreement(None, None, {}) is None


def test_a_cell_shows_the_printed_number_and_the_deviation():
    theirs = printed.prediction()
    repeats = pd.concat([theirs.assign(repeat=r, mse=1.02 * theirs["mse"]) for r in range(5)])
    models, _ = tables.prediction(repeats, "made")
    assert "| 60% | 20 | 803.35 (printed 787.60, +2.0%) ✓ |" in models.markdown()
