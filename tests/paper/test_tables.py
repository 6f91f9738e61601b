"""Comparison of measured and printed numbers."""

import numpy as np
import pandas as pd
import pytest

from bnmf.paper.tables import compare, compare_tables, versus


def test_verdicts():
    # s = 1 and n = 10: two standard errors of the difference of two means are 2 √(1/10 + 1/10) = 0.894.
    values = 100 + np.sqrt(0.9) * np.repeat([-1.0, 1.0], 5)
    assert np.std(values, ddof=1) == pytest.approx(1.0)
    assert compare(values, 100.89, 0.0).verdict == "within"
    assert compare(values, 100.90, 0.0).verdict == "close"
    assert compare(values, 103.2, 0.0).verdict == "off"
    assert compare(values, 80.0, 0.0).percent == pytest.approx(25.0)


def test_rounding_of_the_printed_number_counts():
    assert compare([0.04, 0.04], 0.0, 0.1).verdict == "within"
    assert compare([0.06, 0.06], 0.0, 0.1).verdict == "off"
    assert np.isnan(compare([0.04, 0.04], 0.0, 0.1).percent)


def test_one_repeat_and_no_printed_number():
    assert compare([5.0], 5.0, 0.1).verdict == "within"
    assert np.isnan(compare([5.0], 5.0, 0.1).spread)
    assert compare([5.0], None, 0.1).verdict == ""


def test_tables_are_joined_and_the_printed_rule_is_compared():
    printed = pd.DataFrame({"dataset": "gdsc", "k": 10, "model": ["gee", "gl22inf"], "mean": [8.0, 2.0]})
    measured = pd.DataFrame(
        {
            "dataset": "gdsc",
            "k": 10,
            "model": ["gl22inf", "gl22inf", "gl22inf-published"],
            "repeat": [0, 1, 0],
            "mean": [2.0, 3.0, 4.0],
        }
    )
    joined = compare_tables(measured, printed, "mean", 0.1)
    assert list(joined["model"]) == ["gl22inf", "gl22inf-published"]
    assert list(joined["measured"]) == [2.5, 4.0]
    assert list(joined["n"]) == [2, 1]
    assert versus(joined.iloc[0], 2, 1) == ("2.50", "printed 2.0, +25.0%", "within")
