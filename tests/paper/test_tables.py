"""Printed numbers, their comparison with measured ones, and the page."""

import re

import numpy as np
import pandas as pd
import pytest

from bnmf.paper import tables
from bnmf.paper.methods import PAPER_MODELS, printed_factors, printed_prediction
from bnmf.paper.page import Cell, Picture, Table, number, to_html, to_markdown
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
    found = verdicts([0.058, 0.042, 0.06], 0.0, 10, [0.1, 0.0, 0.0], 0.1)
    assert list(found) == ["unclear", "unclear", "off"]


def test_tables_are_joined_and_the_printed_rule_is_compared():
    theirs = pd.DataFrame({"dataset": "gdsc", "k": 10, "model": ["gee", "gl22inf"], "mean": [8.0, 0.0]})
    measured = pd.DataFrame(
        {"dataset": "gdsc", "k": 10, "model": ["gl22inf", "gl22inf", "gl22inf-published", "gee", "glinf"]}
    ).assign(mean=[2.0, 3.0, 4.0, 10.0, 1.0])
    joined = compare(measured, theirs, "mean", 1).set_index("model")
    assert joined["value"].to_dict() == {"gl22inf": 2.5, "gl22inf-published": 4.0, "gee": 10.0, "glinf": 1.0}
    assert joined["printed"].fillna(-1).to_dict() == {"gl22inf": 0, "gl22inf-published": 0, "gee": 8, "glinf": -1}
    assert joined.loc["gee", "percent"] == pytest.approx(25.0)
    assert joined["percent"].isna().sum() == 3
    assert set(joined["verdict"]) == {""}  # fewer than five repeats


def test_agreement_counts_close_numbers_and_does_not_grade_few_repeats():
    theirs = printed_prediction()
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
    theirs = printed_prediction()
    repeats = pd.concat([theirs.assign(repeat=r, mse=1.02 * theirs["mse"]) for r in range(5)])
    models, _ = tables.prediction(repeats, "made")
    assert "| 60% | 20 | 803.35 (printed 787.60, +2.0%) ✓ |" in models.markdown()


def test_sums_of_the_printed_columns():
    # The sum of each printed column detects any single wrong digit.
    factors = printed_factors().groupby(["dataset", "model"])[["mean", "sparsity"]].sum()
    expected = {
        "gdsc": [[41.7, 7.9], [3.9, 82.9], [11.3, 20.7], [11.2, 21.9]],
        "methylation": [[0.2, 443.6], [3.0, 89.4], [2.0, 177.2], [2.0, 177.6]],
    }
    for dataset, sums in expected.items():
        np.testing.assert_allclose(factors.loc[dataset].loc[list(PAPER_MODELS)], sums)
    prediction = printed_prediction().pivot_table("mse", "unobserved", "model", aggfunc="sum")
    sums = [
        [3196.10, 3555.89, 3133.17, 3133.28],
        [3361.72, 3724.87, 3303.06, 3307.80],
        [3686.91, 7230.63, 3630.64, 3638.93],
    ]
    np.testing.assert_allclose(prediction[list(PAPER_MODELS)], sums)


# ---------------------------------------------------------------- the page

MARKUP = '<script>alert("x")</script> & | *y*'
TABLE = Table(["K", MARKUP], [["10", Cell(MARKUP, MARKUP, "off")], ["20", Cell("1.0", "printed 1.0", "close")]], MARKUP)


def test_the_page_is_escaped_and_loads_nothing(tmp_path):
    (tmp_path / "a.png").write_bytes(b"picture")
    sections = {MARKUP: [MARKUP, TABLE, Picture("a", MARKUP, tmp_path)]}
    page = to_html(MARKUP, MARKUP, sections)
    assert "<script>alert" not in page
    assert 'alt="&lt;script&gt;alert(&quot;x' in page
    assert 'src="data:image/png;base64,cGljdHVyZQ=="' in page
    assert not re.findall(r'(?:src|href)="(?:https?:)?//|@import', page)
    assert '1.0<span class="note good-cell">printed 1.0 ✓</span>' in page
    assert "<script" not in to_markdown(MARKUP, MARKUP, sections)
    rows = [line for line in TABLE.markdown().splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {3}
    assert "1.0 (printed 1.0) ✓" in TABLE.markdown()


def test_numbers():
    assert (number(1.005e5), number(12.3456, 1), number(float("nan"))) == ("1.0e+05", "12.3", "–")
