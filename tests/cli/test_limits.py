"""Cells such as <0.01 and options of columns as limits, in every command that fits."""

import numpy as np
import pandas as pd
import pytest

from bnmf.tables import read_table

SHORT = ("--chains", "2", "--burn-in", "20", "--draws", "10", "-k", "2")


@pytest.fixture
def water(small, tmp_path):
    """A table in which small entries of the first column are below 0.5, and large ones of the last above 1."""
    frame = pd.DataFrame(small, columns=["lead", "b", "c", "d", "iron"]).astype(object)
    frame.loc[small[:, 0] < 0.5, "lead"] = "<0.5"
    frame.loc[small[:, 4] > 1.0, "iron"] = "≥ 1"
    path = tmp_path / "water.csv"
    frame.to_csv(path, na_rep="NA", index_label="site")
    return path


def test_impute_fills_limits_within_them(program, short, water, small, tmp_path):
    out = tmp_path / "filled.csv"
    result = program("impute", water, "-o", out, "--interval", "0.9", "--lower", "lead=0", "--imputations", "3")
    below, above = small[:, 0] < 0.5, small[:, 4] > 1.0
    n_limited = below.sum() + above.sum() + np.isnan(small[:, 0]).sum()
    assert f"{n_limited} limits such as" in result.stdout
    names = [out, tmp_path / "filled.lower.csv", tmp_path / "filled.upper.csv"]
    middle, low, high = (read_table(name).values for name in names)
    assert below.any()
    assert above.any()
    assert (low[below, 0] >= 0.0).all()
    assert (low <= middle).all()
    assert (middle <= high).all()
    assert (high[below, 0] <= 0.5).all()
    assert (low[above, 4] >= 1.0).all()
    drawn = np.array([read_table(tmp_path / f"filled.{number}.csv").values for number in (1, 2, 3)])
    assert (np.ptp(drawn[:, below, 0], axis=0) > 0).all()
    assert ((drawn[:, below, 0] >= 0.0) & (drawn[:, below, 0] <= 0.5)).all()
    assert (drawn[:, above, 4] >= 1.0).all()


def test_triples_with_limits(program, short, tmp_path):
    rng = np.random.default_rng(0)
    lines = [f"s{i},m{j},{'<1' if (i, j) == (2, 3) else rng.integers(1, 6)}" for i in range(8) for j in range(5)]
    (tmp_path / "t.csv").write_text("site,metal,value\n" + "\n".join(lines) + "\n")
    result = program("impute", tmp_path / "t.csv", "--triples", "-o", tmp_path / "f.csv", "--capped", "m0=5")
    (filled,) = set((tmp_path / "f.csv").read_text().splitlines()) - set((tmp_path / "t.csv").read_text().splitlines())
    assert float(filled.removeprefix("s2,m3,")) <= 1.0
    assert "limits such as <0.01 or >100" in result.stdout
    assert "Filled 1 entry, 1 of them within limits" in result.stdout
    assert "without a value" not in result.stdout
    assert "taken as" not in result.stdout  # nothing is above 5


def test_fit_keeps_limits_and_resumes_with_them(program, water, reports, small, tmp_path):
    out = tmp_path / "fit"
    result = program("fit", water, "--out", out, *SHORT, "--floored", "b=0.4")
    table = read_table(out / "data.npz")
    given = read_table(water).limited({}, {}, {}, {"b": 0.4})
    np.testing.assert_array_equal(table.lower, given.lower)
    np.testing.assert_array_equal(table.upper, given.upper)
    n_exact = np.isfinite(table.values).sum() - np.isfinite(table.values[table.limits.rows, table.limits.columns]).sum()
    n_missing = table.values.size - n_exact - len(table.limits)
    assert f"{n_exact} entries observed, {n_missing} missing" in result.stdout  # each entry counts once
    assert f"Note: {(small[:, 1] < 0.4).sum()} entries of column 'b' below 0.4, taken as 0.4 or less." in result.stdout
    program("fit", water, "--out", out, "--resume", "--draws", "12", "--floored", "b=0.4")
    program.fails("other data", "fit", water, "--out", out, "--resume", "--draws", "14")
    program("transform", out, water, "-o", tmp_path / "w.csv")
