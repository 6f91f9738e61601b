"""Wrong calls and wrong data: one line that says what is wrong, an exit code, and nothing is written."""

import io
import os
import re
import shlex
import sys

import numpy as np
import pytest

from bnmf import BayesianNMF, cli
from bnmf.cli.outcome import one_line

FILES = {
    "bad.csv": "a,b\n1,2\n3,oops\n4,5\n",
    "escape.csv": "b,a\x1b[2J\n1,2\n2,oops\n3,4\n4,5\n",
    "negative.csv": "a,b\n1,2\n3,-1\n",
    "gaps.csv": "a,b\nNA,\n,NA\n",
    "words.csv": "sex,age,size\nm,31,S\nf,45,M\nm,,L\nf,52,S\n",
    "W.csv": "of somebody else",
}
ERRORS = {
    "fit nothing.csv --out o": (2, "Error: there is no file nothing.csv"),
    "fit . --out o": (2, "Error: . is a directory, not a table"),
    "fit bad.csv --out bad.csv": (2, "Error: --out is a directory, and bad.csv is a file"),
    "fit plants.csv --out plants.csv/o": (1, "Error: plants.csv/o: Not a directory"),
    "fit plants.csv --out .": (2, "has a file W.csv, which the fit would replace"),
    "fit --out o": (2, "Error: name the table to fit"),
    "fit --resume --out o": (2, "Error: o holds no fit: there is no settings.json"),
    "fit x.csv --out o -k 0": (2, "neither 'auto' nor a whole number of at least 1"),
    "fit x.csv --out o --draws many": (2, "'many' is neither 'auto' nor"),
    "fit x.csv --out o --prior flat": (2, "'flat' is not one of 'ard', 'exponential', "),
    "fit x.csv --out o --noise known": (2, "'known' is not one of "),
    "fit bad.csv --out o": (1, "Error: bad.csv: line 3, column 'b': 'oops' is not a number"),
    "fit escape.csv --out o": (1, r"column 'a\x1b[2J': 'oops' is not a number"),
    "fit negative.csv --out o": (1, "negative.csv: the lowest entry is -1"),
    "fit gaps.csv --out o": (1, "gaps.csv: all entries are missing"),
    "fit bad.csv --out o --offset mean": (1, "leaves entries below zero, which factors that are not negative"),
    "fit words.csv --out o": (
        1,
        "column 'size' holds text, such as 'S': leave it out with --ignore size",
    ),
    "fit bad.csv --out o --scheduler tcp://127.0.0.1:1": (2, "--scheduler takes a directory of Parquet parts"),
    "fit . --out o --scheduler a:1 --capped 3": (2, "--capped is for a table in a file, and cannot be combined with"),
    "impute plants.csv -o plants.csv": (2, "plants.csv is an input, which would be replaced"),
    "impute plants.csv -o .": (2, "Error: . is a directory, not a file: choose another name"),
    "impute plants.csv -o taken.csv --interval 0.9": (2, "Error: taken.lower.csv is a directory, not a file"),
    "impute plants.csv -o taken.csv --imputations 2": (2, "Error: taken.2.csv is a directory, not a file"),
    "impute plants.csv -o f.csv --cells taken.2.csv": (2, "Error: taken.2.csv is a directory, not a file"),
    "impute plants.csv -o f.json": (2, "f.json: this table is written as .csv, "),
    "impute plants.csv -o f.csv --cells c.npy": (2, "--cells is a file of one of the kinds .csv, .tsv, "),
    "impute plants.csv -o f.csv --cells f.csv": (2, "f.csv would be written twice"),
    "impute plants.csv -o nowhere/f.csv": (2, "there is no directory nowhere"),
    "impute plants.csv -o f.csv --interval 90": (2, "--interval is a probability between 0 and 1"),
    "impute plants.csv -o - --interval 0.9": (2, "-o must name a file"),
    "impute plants.csv -o f.csv --delimiter ab": (2, "--delimiter is one sign, or one of tab"),
    "impute plants.csv -o f.csv --fit nowhere": (2, "nowhere holds no fit"),
    "impute plants.csv -o f.csv --capped a=big": (2, "--capped is VALUE or COLUMN=VALUE"),
    "impute plants.csv -o f.csv --ignore zinc": (2, "Error: plants.csv: there is no column 'zinc'"),
    "impute plants.csv -o f.csv --layer holes": (2, "--layer is for AnnData files"),
    "impute plants.csv -o f.csv --upper zinc=1": (2, "there is no column 'zinc'"),
    "impute plants.csv -o f.csv --capped b=1000": (2, "--capped 1000: no entry of column 'b' is that large"),
    "impute words.csv -o f.csv --kind wrong=whole": (2, "there is no column 'wrong'"),
    "impute words.csv -o f.csv --kind age": (2, "--kind is COLUMN=KIND"),
    "impute words.csv -o f.csv --kind age=0..x": (
        2,
        "bounds such as 0..100, or categories such as low<mid<high, got 'age=0..x'",
    ),
    "impute words.csv -o f.csv --kind age=yes": (
        2,
        "--kind is COLUMN=KIND, and KIND is number, nonnegative, whole, ord",
    ),
    "impute words.csv -o f.csv --kind age=100..0": (
        2,
        "bounds such as 0..100, or categories such as low<mid<high, got ",
    ),
    "impute words.csv -o f.csv --kind size=S<M": (1, "X has the value 'L' in column 'size', which its kind does not"),
    "impute words.csv -o f.csv --kind age=50..100": (
        1,
        "X must be between 50 and 100 in column 'age', got 31 in row 1",
    ),
    "impute words.csv -o f.csv --kind size=ordered": (2, "column 'size' holds words: it is categorical, binary, or"),
    "impute words.csv -o f.csv --kind age=whole --triples": (2, "--kind does not go with --triples"),
    "impute words.csv -o f.csv --kind age=whole --fit nowhere": (2, "--kind does not go with --fit"),
    "check few.npy": (1, "Error: X is too small to be checked: it has 6 observed entries"),
    "rank plants.csv --ks 2,x": (2, "Error: --ks takes whole numbers from 1 on, such as 2,5,10, got '2,x'"),
    "rank negative.csv --ks 1": (1, "use --offset min"),
    "rank plants.csv --folds 1": (2, "Invalid value for '--folds': "),
    "rank plants.csv --folds two": (2, "Invalid value for '--folds': "),
    "rank plants.csv --offset foo": (2, "Invalid value for '--offset': 'foo' is not one of 'auto', 'learned', "),
    "reproduce foo": (2, "'foo' is not one of 'convergence', "),
    "report .": (2, "holds no fit"),
    "transform . plants.csv": (2, "holds no fit"),
    "transform . plants.csv -o taken.2.csv": (2, "Error: taken.2.csv is a directory, not a file"),
}


@pytest.mark.parametrize("call", ERRORS)
def test_errors_are_one_line(program, monkeypatch, table, call):
    monkeypatch.chdir(table.parent)
    np.save("few.npy", np.arange(6.0).reshape(3, 2))
    for name, text in FILES.items():
        (table.parent / name).write_text(text)
    for name in ("taken.lower.csv", "taken.2.csv"):
        os.mkdir(name)
    before = {name: os.stat(name).st_mtime_ns for name in os.listdir()}
    code, message = ERRORS[call]
    result = program.fails(message, *shlex.split(call), code=code)
    assert "\x1b" not in result.output
    assert not re.search("Value error|Input should be", result.output)  # of pydantic
    assert {name: os.stat(name).st_mtime_ns for name in os.listdir()} == before


@pytest.mark.parametrize("call", ["rank plants.csv --prior flat", "fit words.csv --out o"])
def test_errors_break_no_words_in_a_terminal(monkeypatch, table, call):
    monkeypatch.chdir(table.parent)
    (table.parent / "words.csv").write_text(FILES["words.csv"])
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        cli.app(call.split(), prog_name="bnmf")
    _, begin, error = terminal.getvalue().partition("Error: ")
    lines = f"{begin}{error}".splitlines()
    assert len(lines) > 1
    assert max(map(len, lines)) <= 80
    assert set(lines[0].split()) | set(lines[1].split()) >= {
        "Error:",
        "--ignore" if "fit" in call else "'half-normal',",
    }


def test_other_errors_are_one_line():
    unwritten = PermissionError(13, "Permission denied", "out/.W.csv.41-7.tmp")
    assert one_line(unwritten) == "out/W.csv: Permission denied"
    assert one_line(KeyError("x")) == "KeyError: 'x' (--debug shows where)"


def test_debug_shows_where_an_error_came_from(program, table, tmp_path):
    table.write_text("a,b\n1,2\n3,oops\n4,5\n")
    assert isinstance(program("fit", table, "--out", tmp_path / "o", "--debug", code=1).exception, ValueError)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_directory_is_one_line(program, reports, table, tmp_path):
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    result = program("fit", table, "--out", locked / "out", "-k", "2", "--draws", "12", code=1)
    assert result.stderr == f"Error: {locked / 'out'}: Permission denied\n"


def test_a_directory_that_cannot_be_written_is_found_before_the_fit(program, table, tmp_path, monkeypatch):
    monkeypatch.setattr("os.access", lambda path, mode, **options: mode != os.W_OK)
    monkeypatch.setattr(BayesianNMF, "fit", None)
    result = program("impute", table, "-o", tmp_path / "f.csv", code=1)
    assert result.stderr == f"Error: {tmp_path / 'f.csv'}: Permission denied\n"


def test_ctrl_c_writes_nothing(program, table, tmp_path, monkeypatch):
    def interrupted(self, X, **limits):
        raise KeyboardInterrupt

    monkeypatch.setattr(BayesianNMF, "fit", interrupted)
    assert "Interrupted" in program("impute", table, "-o", tmp_path / "f.csv", code=130).stderr
    assert not (tmp_path / "f.csv").exists()


@pytest.mark.parametrize("link", [None, os.symlink, os.link])
def test_no_output_replaces_the_input(program, table, tmp_path, link):
    """Neither by the names of the intervals, nor through a link."""
    source, out = tmp_path / "t.lower.csv", tmp_path / "t.csv"
    table.rename(source)
    before = source.read_bytes()
    if link:
        link(source, out)
    program.fails("is an input, which would be replaced", "impute", source, "-o", out, "--interval", "0.9")
    assert source.read_bytes() == before
