"""Numbers in a report, and the ticks of its charts."""

import numpy as np
import pytest

from bnmf.report.charts import ticks
from bnmf.report.markup import number, of_all, percent


@pytest.mark.parametrize(
    ("value", "text"), [(-1.234567e6, "−1,234,567"), (0.0123, "0.0123"), (3.0, "3"), (np.nan, "–"), (1.5e9, "1.5e9")]
)
def test_number(value, text):
    assert number(value) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.2041, "20%"), (0.012, "1.2%"), (0.0, "0%"), (0.0001, "<0.1%"), (0.9999, ">99.9%"), (-2.486, "−249%")],
)
def test_percent(share, text):
    assert percent(share) == text


def test_parts_that_are_shown():
    assert of_all(3, 3, "row") == "all 3 rows"
    assert of_all(200, 3000, "column") == "200 of 3,000 columns (evenly spaced)"


def test_ticks_are_round():
    assert ticks(0.0, 9.7) == [0.0, 2.0, 4.0, 6.0, 8.0]
    assert ticks(-0.12, 0.31) == [-0.1, 0.0, 0.1, 0.2, 0.3]
