"""``bnmf fit``: results with names, what the screen says, going on, and directories that are in use."""

import json
import os
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from bnmf import BayesianNMF, Posterior
from bnmf.tables import read_table

SHORT = ("--draws", "12", "--burn-in", "8", "--chains", "2", "-k", "2", "--jobs", "1")


def test_means_are_subtracted_only_for_factors_of_both_signs(program, table, tmp_path):
    result = program("fit", table, "--out", tmp_path / "fit", "--offset", "mean")
    assert result.exit_code == 1
    assert "--offset mean leaves entries below zero: it needs --prior normal or laplace" in result.output
    assert not (tmp_path / "fit").exists()


def test_results_are_those_of_the_estimator_with_names(program, reports, table, small, tmp_path):
    out = tmp_path / "out"
    result = program("fit", table, "--out", out, *SHORT, "--prior", "gl22", "--seed", "3")
    assert result.exit_code == 0, result.output
    posterior = Posterior.load(out / "posterior.npz")
    model = BayesianNMF(2, prior="gl22", n_draws=12, burn_in=8, n_chains=2, random_state=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(small)
    np.testing.assert_array_equal(posterior.W, model.posterior_.W)
    assert posterior.row_names.tolist() == [f"p{i}" for i in range(12)]
    assert posterior.column_names.tolist() == list("abcde")
    W, Z = read_table(out / "W.csv"), read_table(out / "Z.csv")
    np.testing.assert_allclose(W.values, model.posterior_.factor_means()[0], rtol=1e-5)
    np.testing.assert_allclose(Z.values, model.components_, rtol=1e-5)
    assert (W.row_names[2], W.column_names, Z.column_names) == ("p2", ["component 0", "component 1"], list("abcde"))
    assert json.loads((out / "settings.json").read_text())["prior"] == "gl22"
    ((path, reported, data, title, settings),) = reports
    assert (path, title, settings["seed"]) == (out / "report.html", "Fit of plants.csv", 3)
    np.testing.assert_array_equal(reported.W, posterior.W)
    np.testing.assert_array_equal(np.vstack([block for _, block in data.blocks()]), small)
    assert data.row_names.tolist() == posterior.row_names.tolist()
    n_missing = int(np.isnan(small).sum())
    for words in (
        "plants.csv: text with commas, a header, row names",
        "12 rows (p0, p1, p2, ...) x 5 columns (a, b, c, ...)",
        f"{60 - n_missing} entries observed, {n_missing} missing",
        f"from {np.nanmin(small):g} to {np.nanmax(small):g}",
        "2 chains of 12 draws, K = 2",
        "Predictions: ",
        f"Report to open: {out / 'report.html'}",
    ):
        assert words in result.stdout
    assert "--missing 0" not in result.stdout
    assert "\x1b" not in result.output


def test_names_are_shown_as_they_are(program, reports, tmp_path):
    path = tmp_path / "odd.csv"
    path.write_text("n,[red]a,:cat:,é\n[bold]x,1,2,3\n:smile:,3,4,5\n")
    result = program("fit", path, "--out", tmp_path / "out", *SHORT)
    assert result.exit_code == 0, result.output
    assert "2 rows ([bold]x, :smile:) x 3 columns ([red]a, :cat:, é)" in result.stdout


@pytest.mark.parametrize("text", ["a,b,c\n1,2,3\n", "a\n1\n2\n3\n", "n,a,b\nx,1,\ny,2,\nz,,\n"])
def test_tables_of_one_row_one_column_or_empty_parts(program, reports, tmp_path, text):
    (tmp_path / "x.csv").write_text(text)
    result = program("fit", tmp_path / "x.csv", "--out", tmp_path / "out", *SHORT, "-k", "auto")
    assert result.exit_code == 0, result.output


def test_many_zeros_are_asked_about(program, reports, tmp_path):
    path = tmp_path / "counts.csv"
    path.write_text("a,b\n" + "0,3\n2,0\n1,1\n" * 4)
    result = program("fit", path, "--out", tmp_path / "zeros", *SHORT)
    assert "33% of them are zero. Zeros are data: if they mean missing, use --missing 0." in result.stdout
    result = program("fit", path, "--out", tmp_path / "missing", *SHORT, "--missing", "0")
    assert "16 entries observed, 8 missing" in result.stdout
    assert "Zeros are data" not in result.stdout


def test_sparse_files_say_what_unstored_entries_are(program, reports, tmp_path):
    path = tmp_path / "sparse.npz"
    sp.save_npz(path, sp.random_array((30, 20), density=0.2, rng=0, format="csr"))
    result = program("fit", path, "--out", tmp_path / "zeros", *SHORT)
    assert (
        "120 entries are stored; the others are zeros. If they mean missing, use --unstored missing." in result.stdout
    )
    result = program("fit", path, "--out", tmp_path / "missing", *SHORT, "--unstored", "missing")
    assert "120 entries observed, 480 missing" in result.stdout
    assert Posterior.load(tmp_path / "missing" / "posterior.npz").n_observed == 120
    result = program("fit", "--resume", "--out", tmp_path / "missing", "--draws", "15")
    assert result.exit_code == 0, result.output
    assert Posterior.load(tmp_path / "missing" / "posterior.npz").n_observed == 120
    result = program("fit", path, "--out", tmp_path / "shifted", *SHORT, "--offset", "min")
    assert result.exit_code == 1
    assert "--offset min would store every zero" in result.stderr


def test_triples_without_names_and_automatic_draws(program, reports, tmp_path):
    rng = np.random.default_rng(0)
    lines = [f"{i}\t{j}\t{rng.integers(1, 6)}" for i in range(12) for j in range(6) if rng.random() < 0.6]
    (tmp_path / "u.data").write_text("\n".join(lines))
    options = ("--triples", "--burn-in", "20", "--noise", "common")
    result = program("fit", tmp_path / "u.data", "--out", tmp_path / "out", *options)
    assert result.exit_code == 0, result.output
    assert f"{len(lines)} entries observed, {72 - len(lines)} missing" in result.stdout
    assert "where you did not give others: --scale matrix --offset both\n" in result.stdout
    posterior = Posterior.load(tmp_path / "out" / "posterior.npz")
    assert posterior.n_draws >= 100
    assert posterior.n_fixed == (1, 1)  # effects of rows and columns
    assert posterior.scale.size == 1


def test_files_of_others_are_not_replaced(program, reports, table, tmp_path):
    (tmp_path / "W.csv").write_text("mine")
    result = program("fit", table, "--out", tmp_path, *SHORT)
    assert result.exit_code == 2
    assert "has a file W.csv" in result.stderr
    assert (tmp_path / "W.csv").read_text() == "mine"


def test_resume_takes_more_draws_and_gives_those_of_one_longer_run(program, reports, table, tmp_path):
    assert program("fit", table, "--out", tmp_path / "a", *SHORT).exit_code == 0
    result = program("fit", "--resume", "--out", tmp_path / "a", "--draws", "20")
    assert result.exit_code == 0, result.output
    assert "Resuming the fit" in result.stdout
    assert program("fit", table, "--out", tmp_path / "b", *SHORT, "--draws", "20").exit_code == 0
    a, b = (Posterior.load(tmp_path / name / "posterior.npz") for name in "ab")
    assert a.n_draws == 20
    np.testing.assert_array_equal(a.W, b.W)
    assert json.loads((tmp_path / "a" / "settings.json").read_text())["draws"] == 20
    assert program("fit", table, "--resume", "--out", tmp_path / "a", "--draws", "21").exit_code == 0  # the same data


def test_a_fit_is_not_replaced_and_not_resumed_with_other_settings_or_data(program, reports, table, tmp_path):
    out = tmp_path / "out"
    result = program("fit", "--resume", "--out", out)
    assert (result.exit_code, result.stderr) == (2, f"Error: {out} holds no fit: there is no settings.json\n")
    assert program("fit", table, "--out", out, *SHORT).exit_code == 0
    before = {path: path.stat().st_mtime_ns for path in out.iterdir()}
    result = program("fit", table, "--out", out, *SHORT)
    assert result.exit_code == 2
    assert result.stderr == (
        f"Error: {out} holds a fit: continue it with --resume, or choose another directory with --out\n"
    )
    result = program("fit", "--resume", "--out", out, "--burn-in", "9")
    assert result.exit_code == 2
    assert f"--burn-in is 8 in {out}: another value needs another --out" in result.stderr
    other = tmp_path / "other.csv"
    other.write_text(table.read_text().replace("NA", "1.5", 1))
    result = program("fit", other, "--resume", "--out", out)
    assert result.exit_code == 2
    assert "holds the fit of other data than" in result.stderr
    assert before == {path: path.stat().st_mtime_ns for path in out.iterdir()}


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["nothing.csv", "--out", "o"], 2, "Error: there is no file nothing.csv"),
        ([".", "--out", "o"], 2, "Error: . is a directory, not a table"),
        (["bad.csv", "--out", "bad.csv"], 2, "Error: --out is a directory, and bad.csv is a file"),
        (["--out", "o"], 2, "Error: name the table to fit"),
        (["x.csv"], 2, "Missing option '--out'"),
        (["x.csv", "--out", "o", "-k", "0"], 2, "neither 'auto' nor a whole number of at least 1"),
        (["x.csv", "--out", "o", "--draws", "many"], 2, "'many' is neither 'auto' nor"),
        (["x.csv", "--out", "o", "--prior", "flat"], 2, "'flat' is not one of"),
        (["bad.csv", "--out", "o"], 1, "Error: bad.csv: line 3, column 'b': 'oops' is not a number"),
        (["negative.csv", "--out", "o"], 1, "negative.csv: the lowest entry is -1"),
        (["gaps.csv", "--out", "o"], 1, "gaps.csv: all entries are missing"),
    ],
)
def test_errors_are_one_line_and_leave_no_directory(program, monkeypatch, tmp_path, arguments, code, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.csv").write_text("a,b\n1,2\n3,oops\n4,5\n")
    (tmp_path / "negative.csv").write_text("a,b\n1,2\n3,-1\n")
    (tmp_path / "gaps.csv").write_text("a,b\nNA,\n,NA\n")
    result = program("fit", *arguments)
    assert result.exit_code == code
    assert message in result.stderr
    assert len([line for line in result.stderr.splitlines() if line.startswith("Error")]) == 1
    assert "Traceback" not in result.output
    assert not (tmp_path / "o").exists()


def test_debug_shows_where_an_error_came_from(program, tmp_path):
    path = tmp_path / "bad.csv"
    path.write_text("a,b\n1,2\n3,oops\n4,5\n")
    result = program("fit", path, "--out", tmp_path / "o", "--debug")
    assert isinstance(result.exception, ValueError)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_directory_is_one_line(program, reports, table, tmp_path):
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    result = program("fit", table, "--out", locked / "out", *SHORT)
    assert result.exit_code == 1
    assert result.stderr == f"Error: {locked / 'out'}: Permission denied\n"


def test_a_file_in_the_way_is_one_line(program, reports, table):
    result = program("fit", table, "--out", table / "out", *SHORT)
    assert result.exit_code == 1
    assert result.stderr == f"Error: {table / 'out'}: Not a directory\n"


# --- real processes

PROGRAM = """
import sys
from bnmf import report
from bnmf.cli import app
report.write_report = lambda fit, path, *rest, **more: path.write_text("report")
app(sys.argv[1:], prog_name="bnmf")
"""
LONG = ("--burn-in", "2500", "--chains", "2", "-k", "2", "--jobs", "1", "--draws")


def begun(out, *arguments):
    """Start a fit in a process of its own."""
    command = [sys.executable, "-c", PROGRAM, "fit", *map(str, arguments), "--out", str(out)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, text=True)


@pytest.mark.skipif(os.name != "posix", reason="sends signals")
@pytest.mark.skipif("BNMF_TEST_SALT" in os.environ, reason="other processes have no salt")
def test_a_fit_that_is_cut_off_is_resumed_with_the_same_draws(reports, program, table, tmp_path):
    """By Ctrl-C or a kill, when the first chain is done and the second one is being drawn."""
    processes = {how: begun(tmp_path / str(how), table, *LONG, 60) for how in (signal.SIGINT, signal.SIGKILL)}
    for how, process in processes.items():
        out, deadline = tmp_path / str(how), time.monotonic() + 90
        while not (out / "checkpoint" / "chain-0.npz").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        os.killpg(process.pid, how)
    assert program("fit", table, "--out", tmp_path / "whole", *LONG, 60).exit_code == 0
    whole = Posterior.load(tmp_path / "whole" / "posterior.npz")
    for how, process in processes.items():
        out = tmp_path / str(how)
        stdout, stderr = process.communicate(timeout=60)
        assert not (out / "posterior.npz").exists()
        if how == signal.SIGINT:
            assert process.returncode == 130, stderr
            assert f"resume with: bnmf fit --resume --out {out}\n" in stderr
            assert "Traceback" not in stderr
            assert "p0, p1" in stdout
        again = program("fit", "--resume", "--out", out)
        assert again.exit_code == 0, again.output
        resumed = Posterior.load(out / "posterior.npz")
        assert resumed.n_draws == 60
        np.testing.assert_array_equal(resumed.W, whole.W)
        np.testing.assert_array_equal(resumed.Z, whole.Z)
        assert not list(out.rglob("*.tmp"))


def test_data_from_a_pipe(program, reports, table, tmp_path):
    result = program("fit", "-", "--out", tmp_path / "out", *SHORT, input=table.read_bytes())
    assert result.exit_code == 0, result.output
    assert "standard input: text with commas" in result.stdout
    assert Posterior.load(tmp_path / "out" / "posterior.npz").row_names[0] == "p0"
