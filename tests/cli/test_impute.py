"""``bnmf impute``: the numbers of NMFImputer, observed cells as they were, the same kind of file."""

import gzip
import os
import subprocess
import sys
import warnings

import numpy as np
import pytest

from bnmf import BayesianNMF, NMFImputer
from bnmf.imputer import ANY_TABLE
from bnmf.tables import read_table


def imputed(small):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = BayesianNMF(**ANY_TABLE, n_draws="auto", random_state=0)
        return NMFImputer(model).fit_transform(small)


def test_filled_by_the_imputer_and_observed_cells_unchanged(program, table, small, tmp_path):
    out = tmp_path / "filled.csv"
    result = program("impute", table, "-o", out)
    assert result.exit_code == 0, result.output
    np.testing.assert_allclose(read_table(out).values, imputed(small), rtol=1e-5)
    before, after = (path.read_text().splitlines() for path in (table, out))
    assert before[0] == after[0]
    n_filled = 0
    for old, new in zip(before, after, strict=True):
        for a, b in zip(old.split(","), new.split(","), strict=True):
            n_filled += a == "NA"
            assert a in (b, "NA")
            assert b != "NA"
    assert n_filled == np.isnan(small).sum()
    assert f"Filled {n_filled} entries: {out}" in result.stdout


def test_intervals_contain_the_prediction_and_widen_with_their_probability(program, table, small, tmp_path):
    out, missing = tmp_path / "filled.csv.gz", np.isnan(small)
    ends = {}
    for prob in ("0.5", "0.9"):
        assert program("impute", table, "-o", out, "--interval", prob).exit_code == 0
        lower, upper = (read_table(tmp_path / f"filled.{end}.csv.gz").values for end in ("lower", "upper"))
        middle = read_table(out).values
        assert np.all((lower[missing] <= middle[missing]) & (middle[missing] < upper[missing]))
        np.testing.assert_array_equal(lower[~missing], small[~missing])
        ends[prob] = upper[missing] - lower[missing]
    assert np.all(ends["0.9"] > ends["0.5"])
    assert gzip.decompress(out.read_bytes()).startswith(b"plant,a")


def test_intervals_of_many_entries_come_in_parts(program, table, small, tmp_path, monkeypatch):
    monkeypatch.setattr("bnmf.cli.impute.N_ENTRIES_AT_ONCE", 3)
    assert program("impute", table, "-o", tmp_path / "f.csv", "--interval", "0.9").exit_code == 0
    lower, upper = (read_table(tmp_path / f"f.{end}.csv").values for end in ("lower", "upper"))
    assert np.all((upper - lower)[np.isnan(small)] > 0)


def test_negative_numbers_and_other_units(program, small, tmp_path):
    shifted = small * [1, 1000, 1e-3, 1, 1] - [5, 0, 0, 1e3, 0]
    np.save(tmp_path / "x.npy", shifted)
    assert program("impute", tmp_path / "x.npy", "-o", tmp_path / "y.npy").exit_code == 0
    filled, seen = np.load(tmp_path / "y.npy"), ~np.isnan(small)
    np.testing.assert_array_equal(filled[seen], shifted[seen])
    assert np.isfinite(filled).all()
    expected = imputed(small)[~seen]
    np.testing.assert_allclose(
        (filled * [1, 1e-3, 1000, 1, 1] + [5, 0, 0, 1e3, 0])[~seen], expected, rtol=0.1, atol=0.2
    )


def test_triples_fill_the_pairs_that_are_asked_for(program, tmp_path):
    rng = np.random.default_rng(0)
    lines = [f"u{i},f{j},{rng.integers(1, 6)}" for i in range(10) for j in range(6) if (i, j) != (0, 0)]
    path, out = tmp_path / "r.csv", tmp_path / "filled.csv"
    path.write_text("\n".join(["user,film,stars", *lines, "u0,f0,"]) + "\n")
    result = program("impute", path, "--triples", "-o", out)
    assert result.exit_code == 0, result.output
    assert "1 line without a value" in result.stdout
    after = out.read_text().splitlines()
    assert after[1:-1] == lines
    assert 1 <= float(after[-1].removeprefix("u0,f0,")) <= 5


def test_nothing_missing_gives_the_same_file(program, tmp_path):
    path, out = tmp_path / "x.csv", tmp_path / "y.csv"
    path.write_bytes(b"a;b\r\n1,50;2\r\n3;4\r\n")
    result = program("impute", path, "-o", out)
    assert result.exit_code == 0
    assert "There is nothing to fill" in result.stdout
    assert out.read_bytes() == path.read_bytes()


def test_a_column_without_any_entry_is_left_as_it_is(program, tmp_path):
    path, out = tmp_path / "x.csv", tmp_path / "y.csv"
    path.write_text("a,b,\n1,2,\n3,,NA\n2,3,\n")
    result = program("impute", path, "-o", out, "--interval", "0.5")
    assert result.exit_code == 0, result.output
    assert "1 column has no observed entry: nothing tells what belongs there." in result.stdout
    assert "Not filled, because nothing in them is observed: columns 'column 3'" in result.stdout
    lines = out.read_text().splitlines()
    assert lines[:2] == ["a,b,", "1,2,"]
    assert lines[2].startswith("3,")
    assert lines[2].endswith(",NA")
    assert "Filled 1 entry" in result.stdout


def test_a_pipe_carries_only_the_table(table, small):
    command = [sys.executable, "-m", "bnmf", "impute", "-", "-o", "-", "--jobs", "1"]
    done = subprocess.run(command, input=table.read_bytes(), capture_output=True, timeout=120, check=True)
    lines = done.stdout.decode().splitlines()
    assert lines[0] == "plant,a,b,c,d,e"
    assert len(lines) == 13
    assert "NA" not in done.stdout.decode()
    assert b"entries observed" in done.stderr
    assert b"\x1b" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["plants.csv", "-o", "plants.csv"], "plants.csv is an input, which would be replaced"),
        (["plants.csv", "-o", "filled.parquet"], "the output is of the kind of the input: name it filled.csv"),
        (["plants.csv", "-o", "nowhere/filled.csv"], "there is no directory nowhere"),
        (["plants.csv", "-o", "f.csv", "--interval", "90"], "--interval is a probability between 0 and 1"),
        (["plants.csv", "-o", "-", "--interval", "0.9"], "-o must name a file"),
        (["nothing.csv", "-o", "f.csv"], "there is no file nothing.csv"),
    ],
)
def test_wrong_use(program, table, monkeypatch, arguments, message):
    monkeypatch.chdir(table.parent)
    result = program("impute", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_read_only_directory_is_found_before_the_fit(program, table, tmp_path, monkeypatch):
    monkeypatch.setattr("os.access", lambda path, mode, **options: mode != os.W_OK)
    monkeypatch.setattr(BayesianNMF, "fit", None)
    result = program("impute", table, "-o", tmp_path / "f.csv")
    assert (result.exit_code, result.stderr) == (1, f"Error: {tmp_path / 'f.csv'}: Permission denied\n")


def test_ctrl_c_writes_nothing(program, table, tmp_path, monkeypatch):
    def interrupted(self, X, **limits):
        raise KeyboardInterrupt

    monkeypatch.setattr(BayesianNMF, "fit", interrupted)
    result = program("impute", table, "-o", tmp_path / "f.csv")
    assert result.exit_code == 130
    assert "Interrupted" in result.stderr
    assert not (tmp_path / "f.csv").exists()


@pytest.mark.parametrize("link", [None, os.symlink, os.link])
def test_no_output_replaces_the_input(program, table, tmp_path, link):
    """Neither by the names of the intervals, nor through a link."""
    source = tmp_path / "t.lower.csv"
    table.rename(source)
    before = source.read_bytes()
    out = tmp_path / "t.csv"
    if link:
        link(source, out)
    result = program("impute", source, "-o", out, "--interval", "0.9")
    assert result.exit_code == 2
    assert "is an input, which would be replaced" in result.output
    assert source.read_bytes() == before
