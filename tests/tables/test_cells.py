"""Cells of text: numbers, limits, dates, names, and numbers written back."""

import math

import numpy as np
import pandas as pd
import pytest

from bnmf.tables import cells
from bnmf.tables.table import repeated
from bnmf.tables.text import is_numbering


@pytest.mark.parametrize(
    ("cell", "decimal", "value"),
    [("1.5e3", ".", 1500.0), ("1,5", ",", 1.5), ("1_000", ".", None), ("1.234,5", ",", None)],
)
def test_number(cell, decimal, value):
    assert cells.number(cell, decimal) == value


@pytest.mark.parametrize(
    ("cell", "decimal", "ends"),
    [
        ("<0.01", ".", (-math.inf, 0.01)),
        ("≥ 5", ".", (5.0, math.inf)),
        ("> 1,5", ",", (1.5, math.inf)),
        ("5", ".", None),
        ("<NA>", ".", None),
    ],
)
def test_limit(cell, decimal, ends):
    assert cells.limit(cell, decimal) == ends


def test_missing_words_and_numbers():
    options = cells.ReadOptions(["0", "?"])
    assert [options.is_missing(cell) for cell in (" ? ", "NA", "1")] == [True, True, False]
    np.testing.assert_array_equal(options.hide(np.array([0.0, 2.0])), [np.nan, 2.0])


@pytest.mark.parametrize(
    ("function", "column", "expected"),
    [
        (cells.holds_dates, ["2024-01-31", None], True),
        (cells.holds_dates, ["2024-01-31", "soon"], False),
        (cells.are_almost_numbers, ["12%", "$1,200.50"], True),
        (cells.are_almost_numbers, ["12%", "B7"], False),
    ],
)
def test_columns_of_words(function, column, expected):
    assert function(pd.Series(column)) == expected


@pytest.mark.parametrize(
    ("value", "decimal", "text"),
    [
        (2 / 3, ".", "0.666667"),
        (1234567.8, ".", "1234568"),
        (1.5, ",", "1,5"),
        (3e-9, ".", "3e-09"),
        ("red", ".", "red"),
    ],
)
def test_written(value, decimal, text):
    assert cells.written(value, decimal) == text


def test_names():
    assert repeated(["a", "b", "a"]) == ["a"]
    found = [is_numbering(names) for names in (["0", "1", "2"], ["1990", "1995"], ["3", "4", "5"])]
    assert found == [True, True, False]
