"""The table with a verdict."""

import numpy as np
import pandas as pd
import pytest

from bnmf.posterior.summary import SummaryTable


@pytest.fixture
def table():
    table = SummaryTable({"mean": [1.23456789, 1e-7], "sd": [np.nan, 2.0]}, index=["noise variance", "predictions"])
    table.verdict = "No sign of trouble."
    return table


def test_shown_with_its_verdict(table):
    lines = repr(table).splitlines()
    assert lines[0].split() == ["mean", "sd"]
    assert lines[1].split() == ["noise", "variance", "1.235"]  # four digits, and nothing for NaN
    assert lines[2].split() == ["predictions", "1e-07", "2"]
    assert lines[3:] == ["No sign of trouble."]
    assert str(table) == repr(table)


def test_shown_in_a_notebook(table):
    html = table._repr_html_()
    assert html.endswith("<p>No sign of trouble.</p>")
    assert html.startswith("<table")
    assert "<td>1.235</td>" in html
    assert "NaN" not in html
    assert "nan" not in html


def test_parts_keep_the_verdict(table):
    for part in (table.head(1), table.loc[["predictions"]], table.copy(), table[["mean"]], table.round(2)):
        assert isinstance(part, SummaryTable)
        assert part.verdict == "No sign of trouble."
        assert repr(part).endswith("\nNo sign of trouble.")


def test_without_a_verdict():
    table = SummaryTable({"a": [1.0]})
    assert repr(table) == "   a\n0  1\n"
    assert table._repr_html_().endswith("<p></p>")


def test_is_a_data_frame(table):
    pd.testing.assert_frame_equal(
        pd.DataFrame(table),
        pd.DataFrame({"mean": [1.23456789, 1e-7], "sd": [np.nan, 2.0]}, index=["noise variance", "predictions"]),
    )
    assert isinstance(table["mean"], pd.Series)
    assert "verdict" not in table.columns
