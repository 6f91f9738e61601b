"""The printed numbers: complete and copied correctly."""

import pytest

from bnmf.paper import printed
from bnmf.paper.methods import PAPER_MODELS


def test_factors_have_every_cell_once():
    table = printed.factors()
    assert list(table.columns) == ["dataset", "k", "model", "mean", "sparsity"]
    assert len(table) == 2 * 5 * 4
    assert not table.duplicated(["dataset", "k", "model"]).any()
    assert set(table["dataset"]) == {"gdsc", "methylation"}
    assert set(table["k"]) == {10, 20, 30, 40, 50}
    assert set(table["model"]) == set(PAPER_MODELS)
    assert table["sparsity"].between(0, 100).all()


def test_prediction_has_every_cell_once():
    table = printed.prediction()
    assert list(table.columns) == ["dataset", "unobserved", "k", "model", "mse"]
    assert len(table) == 3 * 4 * 4
    assert not table.duplicated(["unobserved", "k", "model"]).any()
    assert set(table["unobserved"]) == {0.6, 0.7, 0.8}
    assert set(table["k"]) == {20, 30, 40, 50}
    assert set(table["dataset"]) == {"gdsc"}


def test_sums_of_the_printed_columns():
    # The sum of each printed column detects any single wrong digit.
    factors = printed.factors().groupby(["dataset", "model"])[["mean", "sparsity"]].sum()
    assert factors.loc[("gdsc", "gee")].tolist() == pytest.approx([41.7, 7.9])
    assert factors.loc[("gdsc", "gl12")].tolist() == pytest.approx([3.9, 82.9])
    assert factors.loc[("gdsc", "gl22")].tolist() == pytest.approx([11.3, 20.7])
    assert factors.loc[("gdsc", "gl22inf")].tolist() == pytest.approx([11.2, 21.9])
    assert factors.loc[("methylation", "gee")].tolist() == pytest.approx([0.2, 443.6])
    assert factors.loc[("methylation", "gl12")].tolist() == pytest.approx([3.0, 89.4])
    assert factors.loc[("methylation", "gl22")].tolist() == pytest.approx([2.0, 177.2])
    assert factors.loc[("methylation", "gl22inf")].tolist() == pytest.approx([2.0, 177.6])

    prediction = printed.prediction().groupby(["unobserved", "model"])["mse"].sum()
    assert prediction[0.6].to_dict() == pytest.approx(
        {"gee": 3196.10, "gl12": 3555.89, "gl22": 3133.17, "gl22inf": 3133.28}
    )
    assert prediction[0.7].to_dict() == pytest.approx(
        {"gee": 3361.72, "gl12": 3724.87, "gl22": 3303.06, "gl22inf": 3307.80}
    )
    assert prediction[0.8].to_dict() == pytest.approx(
        {"gee": 3686.91, "gl12": 7230.63, "gl22": 3630.64, "gl22inf": 3638.93}
    )
