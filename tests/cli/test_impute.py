"""``bnmf impute``: the numbers of NMFImputer, observed cells as they were, new rows, intervals and draws."""

import gzip
import re
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest

from bnmf import BayesianNMF, NMFImputer, Posterior
from bnmf.cli.screen import Screen
from bnmf.imputer import ANY_TABLE
from bnmf.posterior import predictions
from bnmf.tables import read_table


def imputed(small, short):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return NMFImputer(BayesianNMF(**ANY_TABLE, **short, random_state=0)).fit_transform(small)


def test_everything_that_is_written_of_a_table(program, short, table, small, tmp_path, monkeypatch):
    monkeypatch.setattr(predictions, "TILE_BYTES", 64 * 240)  # parts of three entries
    out, cells, missing = tmp_path / "filled.csv", tmp_path / "cells.csv", np.isnan(small)
    result = program("impute", table, "-o", out, "--interval", "0.5", "--cells", cells, "--imputations", "3")
    filled = read_table(out).values
    np.testing.assert_allclose(filled, imputed(small, short), rtol=1e-5)
    assert re.fullmatch(re.escape(table.read_text()).replace("NA", r"-?\d+(\.\d+)?"), out.read_text())
    assert f"Filled {missing.sum()} entries: {out}" in result.stdout

    lower, upper = (read_table(tmp_path / f"filled.{end}.csv").values for end in ("lower", "upper"))
    assert np.all(lower[missing] < upper[missing])
    assert np.mean((lower[missing] <= filled[missing]) & (filled[missing] <= upper[missing])) > 0.9
    np.testing.assert_array_equal(lower[~missing], small[~missing])

    listed = pd.read_csv(cells)
    assert listed.columns.tolist() == ["row", "column", "value", "lower", "upper"]
    assert (listed["row"] + listed["column"]).tolist() == [f"p{i}{'abcde'[j]}" for i, j in np.argwhere(missing)]
    expected = np.column_stack([filled[missing], lower[missing], upper[missing]])
    np.testing.assert_array_equal(listed[["value", "lower", "upper"]], expected)

    drawn = np.array([read_table(tmp_path / f"filled.{number}.csv").values for number in (1, 2, 3)])
    np.testing.assert_array_equal(drawn[:, ~missing], np.broadcast_to(small[~missing], (3, (~missing).sum())))
    imputations = drawn[:, missing]
    assert np.all((np.ptp(imputations, axis=0) > 0) | (imputations == 0).all(axis=0))  # values below zero are zero
    assert np.mean(np.ptp(imputations, axis=0) > 0) > 0.5

    program("impute", table, "-o", tmp_path / "w.csv.gz", "--interval", "0.9", "--cells", tmp_path / "c.parquet")
    assert gzip.decompress((tmp_path / "w.csv.gz").read_bytes()) == out.read_bytes()
    ends = [read_table(tmp_path / f"w.{end}.csv.gz").values[missing] for end in ("lower", "upper")]
    assert np.all(ends[1] - ends[0] > upper[missing] - lower[missing])
    assert pd.read_parquet(tmp_path / "c.parquet").shape == listed.shape


def test_new_rows_are_filled_by_a_fit(program, reports, table, small, tmp_path):
    fit = tmp_path / "fit"
    program("fit", table, "--out", fit, "--draws", "30", "--burn-in", "20", "--chains", "2", "-k", "2", "--jobs", "1")
    new, out = tmp_path / "new.csv", tmp_path / "f.csv"
    new.write_text("plant,d,b,a\nx,0.5,2,\ny,,1,1\np1,,0.068,\n")
    result = program("impute", new, "--fit", fit, "-o", out, "--cells", tmp_path / "c.csv")
    assert "2 of the 5 columns of the fit are not there" in result.stdout
    assert "chain" not in result.output
    X = np.full((3, 5), np.nan)
    X[0, [3, 1]], X[1, [1, 0]], X[2, 1] = (0.5, 2), (1, 1), 0.068
    mean = Posterior.load(fit / "posterior.npz").posterior_of(X, random_state=0).mean([0, 1, 2, 2], [0, 3, 3, 0])
    found = read_table(out)
    assert (found.corner, found.row_names) == ("plant", ["x", "y", "p1"])
    np.testing.assert_allclose(found.values[[0, 1, 2, 2], [2, 0, 0, 2]], mean, rtol=1e-5)
    assert pd.read_csv(tmp_path / "c.csv")["column"].tolist() == ["a", "d", "d", "a"]
    program.fails("is an input, which would be replaced", "impute", new, "--fit", fit, "-o", fit / "W.csv")


RATINGS = "".join(f"u{i},f{j},{(i * j) % 5 + 1}\n" for i in range(10) for j in range(6) if (i, j) != (0, 0))
COMMENTS = "".join(f"x{i},{i},{'recheck' if i == 3 else ''},{i % 4}%\n" for i in range(12))
FORMS = {  # a table, with @ before what is filled, and what is said
    "nothing is missing": ("a;b\r\n1,50;2\r\n3;4\r\n", ["There is nothing to fill: the output is the input."]),
    "triples ask for pairs": (f"user,film,stars\n{RATINGS}u0,f0,@\n", ["1 line without a value", "Filled 1 entry"]),
    "a column without any entry": (
        "a,b,\n1,2,\n3,@,NA\n2,3,\n",
        ["No observed entry in 1 column (column 3): impute leaves it empty.", "Filled 1 entry"],
    ),
    "a limit is neither missing nor observed": (
        "id,a,b\nx,1,@<2\ny,2,3\nz,@,4\nw,2,5\n",
        [
            "6 entries observed, 1 missing (12.5%), 1 limit such as <0.01 or >100, from 1 to 5",
            "Filled 2 entries, 1 of them within limits",
        ],
    ),
    "escape sequences and formulas in names": (
        "a\x1b[31m,=1+2,-5,c\n1,2,3,4\n2,3,4,5\n3,4,@,6\n",
        [r"(a\x1b[31m, =1+2, -5, ...)", "1 column name, such as '=1+2', may be run as a formula by a spreadsheet."],
    ),
    "names that recur": (
        "id,a,a\nx,1,2\ny,@,3\nz,3,4\n",
        ["Note: column names that occur more than once: a."],
    ),
    "words that need a look": (
        f"id,a,comment,share\n{COMMENTS}y,@,,1%\n",
        [
            "Not filled, and written back as it is: column 'comment' ('recheck', or nothing)",
            "Note: column 'share' is taken as words, such as '0%': numbers have no signs of units",
        ],
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_tables_of_any_form(program, short, tmp_path, form):
    table, words = FORMS[form]
    (tmp_path / "x.csv").write_bytes(table.replace("@", "").encode())
    files = ("-o", tmp_path / "y.csv", "--interval", "0.9", "--imputations", "1", "--cells", tmp_path / "c.csv")
    result = program("impute", tmp_path / "x.csv", *files, *(["--triples"] if "triples" in form else []))
    assert "\x1b" not in result.output
    assert all(each in result.stdout for each in words)
    filled = re.sub("@(<2)?", r"-?\\d+(\\.\\d+)?", re.escape(table))
    for name in ("y.csv", "y.lower.csv", "y.upper.csv", "y.1.csv"):
        assert re.fullmatch(filled, (tmp_path / name).read_bytes().decode()), name
    cells = (tmp_path / "c.csv").read_text().splitlines()
    assert (cells[0], len(cells)) == ("row,column,value,lower,upper", 1 + table.count("@"))


def test_findings_name_columns(program, short, table, tmp_path, monkeypatch):
    seen = []
    fitted = Screen.fitted
    monkeypatch.setattr(Screen, "fitted", lambda *given: seen.append(fitted(*given)) or seen[-1])
    program("impute", table, "-o", tmp_path / "y.csv")
    assert seen[0].column_names.tolist() == ["a", "b", "c", "d", "e"]
    rows = [f"u{i},film {j},{min(1 + i * j % 17, 12)}" for i in range(30) for j in range(4)]
    (tmp_path / "x.csv").write_text("\n".join(["user,film,stars", *rows, "u30,film 1,"]) + "\n")
    program("impute", tmp_path / "x.csv", "--triples", "-o", tmp_path / "z.csv")
    assert "entries of column 'film 3' are exactly 12" in str(seen[1].verdict)


def test_a_pipe_carries_only_the_table():
    command = [sys.executable, "-m", "bnmf", "impute", "-", "-o", "-"]
    done = subprocess.run(command, input=b"n,a,b\nx,1,2\ny,2,4\n", capture_output=True, timeout=120, check=True)
    assert done.stdout == b"n,a,b\nx,1,2\ny,2,4\n"
    assert b"4 entries observed" in done.stderr
    assert b"\x1b" not in done.stderr
