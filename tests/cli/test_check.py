"""``bnmf check``: the table and the conclusion of check_table, with the model of ``bnmf impute``."""

import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from bnmf import BayesianNMF, check_table, checking
from bnmf.imputer import ANY_TABLE


@pytest.fixture
def calls(monkeypatch):
    """Shorten the fits, and return the estimators that the command asked for and the results that it got."""
    found = []

    def shortened(X, *, estimator, **options):
        short = clone(estimator).set_params(n_chains=2, burn_in=20, n_draws=20, max_time=None)
        found.append((estimator, check_table(X, estimator=short, **options)))
        return found[-1][1]

    monkeypatch.setattr(checking, "check_table", shortened)
    return found


def words(text):
    return " ".join(text.split())


@pytest.mark.parametrize(
    "options", [(), ("-k", "2", "--max-time", "7", "--jobs", "1", "--seed", "3", "--repeats", "2")]
)
def test_numbers_and_conclusion_of_check_table(program, calls, table, options):
    result = program("check", table, *options)
    estimator, check = calls[0]
    asked = {"n_components": 2, "max_time": 7.0, "n_jobs": 1} if options else {"max_time": None, "n_jobs": -1}
    assert repr(estimator) == repr(BayesianNMF(**ANY_TABLE, n_draws="auto").set_params(**asked))
    for method, row in check.table.iterrows():
        shown = rf"{method} +{row.absolute_error:.3f} +{row.error:.3f} +{row.lowest:.3f} to {row.highest:.3f}"
        shown += rf" +{row.coverage:.1%}" if method == "bnmf" else ""
        assert re.search(rf"^{shown} +{row.seconds:.1f} *$", result.stdout, re.MULTILINE)
    assert check.conclusion in words(result.stdout)
    assert f"error of {check.n_hidden} hidden entries" in words(result.stdout)
    total = 8 if options else 12
    assert f"{total}/{total} fits" in result.stderr
    assert "fits" not in result.stdout


def test_worst_columns_are_shown_by_name_in_80_columns(program, calls, tmp_path):
    names = [f"a question of a survey that has many words, number {number}" for number in range(16)]
    frame = pd.DataFrame(np.random.default_rng(0).random((80, 16)).round(3), columns=names)
    frame.to_csv(tmp_path / "x.csv", index=False)
    result = program("check", tmp_path / "x.csv", "--repeats", "1", "--by-column")
    assert "range" not in result.stdout  # of one repeat
    shown = result.stdout.split("columns that bnmf predicts worst")[1]
    listed = re.findall(r"^a question.*….*, number (\d+)  +(\S+) +(\d+) of (\d+)$", shown, re.MULTILINE)
    worst = calls[0][1].by_column.reset_index(drop=True).nlargest(10, "error")
    assert listed == [
        (str(row.Index), f"{row.error:.3f}", f"{row.coverage * row.hidden:.0f}", f"{row.hidden}")
        for row in worst.itertuples()
    ]
    tables = [line for line in result.stdout.splitlines() if re.search(r"\d +\d|─| of \d+$", line)]
    assert max(map(len, tables)) <= 80


def test_every_column_of_a_narrow_table_and_notes_are_shown(program, calls, table, monkeypatch):
    monkeypatch.setattr(checking, "MAX_ROWS_OF_KNN", 11)
    result = program("check", table, "--by-column")
    assert "Note: KNNImputer is left out: with 12 rows it would take too long." in words(result.stdout)
    by_column = calls[0][1].by_column
    shown = result.stdout.split("bnmf by column")[1]
    listed = re.findall(r"^([a-e])  +\d", shown, re.MULTILINE)
    assert sorted(listed) == by_column.index[by_column["hidden"] > 0].tolist()
    assert f"Only {calls[0][1].n_hidden} entries were hidden" in words(result.stdout)


def test_triples_and_sparse_files(program, calls, small, tmp_path):
    listed = pd.DataFrame(small, columns=[f"c{j}" for j in range(5)]).stack().dropna().rename("value")
    listed.to_csv(tmp_path / "t.csv", index_label=["row", "column"])
    program("check", tmp_path / "t.csv", "--triples", "--repeats", "1")
    assert set(calls[0][1].by_column.index) == {f"c{j}" for j in range(5)}
    sp.save_npz(tmp_path / "s.npz", sp.csr_matrix(np.nan_to_num(small)))
    program.fails("bnmf check is for dense tables", "check", tmp_path / "s.npz")
    program("check", tmp_path / "s.npz", "--unstored", "missing", "--repeats", "1")
    assert len(calls) == 2


@pytest.mark.parametrize("triples", [False, True])
def test_limits_are_passed_on(program, calls, small, tmp_path, triples, monkeypatch):
    given, plain = [], checking.check_table
    monkeypatch.setattr(checking, "check_table", lambda X, **more: given.append(more["upper"]) or plain(X, **more))
    frame = pd.DataFrame(small).astype(object).mask(small < 0.2, "<0.2")
    frame = frame.stack().dropna().reset_index() if triples else frame
    frame.to_csv(tmp_path / "t.csv", index=False)
    program("check", tmp_path / "t.csv", "--repeats", "1", *["--triples"] * triples)
    assert given[0][np.isfinite(given[0])].tolist() == [0.2] * (small < 0.2).sum()
