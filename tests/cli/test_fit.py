"""``bnmf fit``: results with names, what the screen says, going on, and directories that are in use."""

import json
import os
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from bnmf import BayesianNMF, Posterior
from bnmf.tables import read_table
from bnmf.utils.text import labels

pytestmark = pytest.mark.usefixtures("reports")
SHORT = ("--draws", "12", "--burn-in", "8", "--chains", "2", "-k", "2", "--jobs", "1")


def posterior_in(directory):
    return Posterior.load(directory / "posterior.npz")


def test_results_are_those_of_the_estimator_with_names(program, reports, table, small, tmp_path):
    out = tmp_path / "out"
    result = program("fit", table, "--out", out, *SHORT, "--prior", "gl22", "--seed", "3")
    posterior = posterior_in(out)
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


def test_sparse_files_say_what_unstored_entries_are(program, tmp_path):
    path, out = tmp_path / "sparse.npz", tmp_path / "missing"
    sp.save_npz(path, sp.random_array((30, 20), density=0.2, rng=0, format="csr"))
    stored = "120 entries are stored; the others are zeros. If they mean missing, use --unstored missing."
    assert stored in program("fit", path, "--out", tmp_path / "zeros", *SHORT).stdout
    result = program("fit", path, "--out", out, *SHORT, "--unstored", "missing")
    assert "120 entries observed, 480 missing" in result.stdout
    for more in ((), ("--draws", "15")):
        program("fit", "--resume", "--out", out, *more)
        assert posterior_in(out).n_observed == 120
    shifted = ("fit", path, "--out", tmp_path / "shifted", *SHORT, "--offset", "min")
    program.fails("--offset min would store every zero", *shifted, code=1)


def test_triples_without_names_and_automatic_draws(program, tmp_path):
    rng = np.random.default_rng(0)
    lines = [f"{i}\t{j}\t{rng.integers(1, 6)}" for i in range(12) for j in range(6) if rng.random() < 0.6]
    (tmp_path / "u.data").write_text("\n".join(lines))
    options = ("--triples", "--burn-in", "20", "--noise", "common")
    result = program("fit", tmp_path / "u.data", "--out", tmp_path / "out", *options)
    assert f"{len(lines)} entries observed, {72 - len(lines)} missing" in result.stdout
    assert "where you did not give others: --scale matrix --offset both\n" in result.stdout
    posterior = posterior_in(tmp_path / "out")
    assert posterior.n_draws >= 100
    assert posterior.n_fixed == (1, 1)  # effects of rows and columns
    assert posterior.scale.size == 1


def test_columns_without_names_have_the_numbers_that_options_take(program, tmp_path):
    X = np.random.default_rng(0).exponential(size=(40, 4))
    X[:, 2] = np.minimum(X[:, 2], 1.0)
    np.savetxt(tmp_path / "x.csv", X, delimiter=",")
    files = (tmp_path / "x.csv", "--no-header", "--out", tmp_path / "out")
    result = program("fit", *files, "--chains", "2", "--burn-in", "20", "--draws", "20")
    assert "of the entries of column 3 are exactly 1, its largest value" in " ".join(result.stdout.split())
    names = posterior_in(tmp_path / "out").column_names
    assert isinstance(names, pd.RangeIndex)
    assert labels(names, [2], "column") == ["column 3"]
    program("fit", *files[:2], "--out", tmp_path / "capped", "--capped", "3=1", "--draws", "20", "--burn-in", "20")


def test_resume_takes_more_draws_and_gives_those_of_one_longer_run(program, table, tmp_path):
    program("fit", table, "--out", tmp_path / "a", *SHORT)
    assert "Resuming the fit" in program("fit", "--resume", "--out", tmp_path / "a", "--draws", "20").stdout
    program("fit", table, "--out", tmp_path / "b", *SHORT, "--draws", "20")
    a, b = posterior_in(tmp_path / "a"), posterior_in(tmp_path / "b")
    assert a.n_draws == 20
    np.testing.assert_array_equal(a.W, b.W)
    assert json.loads((tmp_path / "a" / "settings.json").read_text())["draws"] == 20
    program("fit", table, "--resume", "--out", tmp_path / "a", "--draws", "21")  # the same data
    fewer = program("fit", "--resume", "--out", tmp_path / "a", "--draws", "5")
    assert "These are the first 5 of 21 draws: --draws 21 takes all." in fewer.stdout
    assert posterior_in(tmp_path / "a").n_draws == 5
    again = program("fit", "--resume", "--out", tmp_path / "a", "--draws", "21")
    assert "These are" not in again.stdout
    assert posterior_in(tmp_path / "a").n_draws == 21


def test_a_fit_is_not_replaced_and_not_resumed_with_other_settings_or_data(program, table, tmp_path):
    out, other = tmp_path / "out", tmp_path / "other.csv"
    program("fit", table, "--out", out, *SHORT)
    other.write_text(table.read_text().replace("NA", "1.5", 1))
    before = {path: path.stat().st_mtime_ns for path in out.iterdir()}
    in_use = f"Error: {out} holds a fit: continue it with --resume, or choose another directory with --out\n"
    program.fails(in_use, "fit", table, "--out", out, *SHORT)
    setting = f"--burn-in is 8 in {out}: another value needs another --out"
    program.fails(setting, "fit", "--resume", "--out", out, "--burn-in", "9")
    program.fails("holds the fit of other data than", "fit", other, "--resume", "--out", out)
    assert before == {path: path.stat().st_mtime_ns for path in out.iterdir()}


# --- real processes

PROGRAM = """
import sys
from bnmf import report
from bnmf.cli import app
report.write_report = lambda fit, path, *rest, **more: path.write_text("report")
app(sys.argv[1:], prog_name="bnmf")
"""
LONG = ("--burn-in", "20000", "--chains", "2", "-k", "2", "--jobs", "1", "--draws", "60")


def begun(out, *arguments):
    """Start a fit in a process of its own."""
    command = [sys.executable, "-c", PROGRAM, "fit", *map(str, arguments), "--out", str(out)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, text=True)


@pytest.mark.skipif(os.name != "posix", reason="sends signals")
@pytest.mark.skipif("BNMF_TEST_SALT" in os.environ, reason="other processes have no salt")
def test_a_fit_that_is_cut_off_is_resumed_with_the_same_draws(program, table, tmp_path):
    """By Ctrl-C or a kill, when the first chain is done and the second one is being drawn."""
    processes = {how: begun(tmp_path / str(how), table, *LONG) for how in (signal.SIGINT, signal.SIGKILL)}
    for how, process in processes.items():
        out, deadline = tmp_path / str(how), time.monotonic() + 90
        while not (out / "checkpoint" / "chain-0.npz").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        os.killpg(process.pid, how)
    program("fit", table, "--out", tmp_path / "whole", *LONG)
    whole = posterior_in(tmp_path / "whole")
    for how, process in processes.items():
        out = tmp_path / str(how)
        stdout, stderr = process.communicate(timeout=60)
        assert not (out / "posterior.npz").exists()
        if how == signal.SIGINT:
            assert process.returncode == 130, stderr
            assert f"resume with: bnmf fit --resume --out {out}\n" in stderr
            assert "Traceback" not in stderr
            assert "p0, p1" in stdout
        program("fit", "--resume", "--out", out)
        resumed = posterior_in(out)
        assert resumed.n_draws == 60
        np.testing.assert_array_equal(resumed.W, whole.W)
        np.testing.assert_array_equal(resumed.Z, whole.Z)
        assert not list(out.rglob("*.tmp"))
