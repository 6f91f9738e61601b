"""``bnmf reproduce``: a complete small run from data to page, interruptions, and errors."""

import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from bnmf.datasets import DatasetError
from bnmf.paper import experiments, figures, fits
from bnmf.paper import reproduce as paper
from bnmf.paper.experiments import Settings
from bnmf.paper.reproduce import Dataset


@pytest.fixture
def small_run(monkeypatch):
    """Replace the data and the settings of --quick by small ones."""
    rng = np.random.default_rng(0)
    large = np.floor(10 * rng.exponential(2.0, (20, 3)) @ rng.exponential(1.0, (3, 12)))
    large[rng.random(large.shape) < 0.2] = np.nan
    made = {
        "gdsc": Dataset(large, "made <A>", source="drawn & made"),
        "methylation": Dataset(np.floor(rng.uniform(0, 20, (15, 18))), "made B"),
    }
    monkeypatch.setattr(paper, "load_datasets", lambda names, data_dir: {name: made[name] for name in names})

    def tiny(full: Settings) -> Settings:
        return Settings(
            repeats=1,
            seed=full.seed,
            n_sweeps=25,
            burn_in=5,
            full_k=(10,),  # the paper prints numbers for 10
            prediction_k=(2, 3),
            fractions={"gdsc": (0.5, 0.6), "methylation": (0.5,)},
            noise_k=2,
            noise_levels=(0.0, 1.0),
            start_scenarios=((0.5, 3),),
        )

    monkeypatch.setattr(experiments, "quick", tiny)


@pytest.fixture
def command(program):
    return lambda out, *more, **code: program("reproduce", *more, "--out", out, "--quick", "--jobs", "1", **code)


def test_one_experiment_alone(command, small_run, tmp_path):
    result = command(tmp_path, "noise", "--seed", "3")
    assert re.search(r"^\d+ fits, 0 of them already finished$", result.stderr, flags=re.MULTILINE)
    assert result.stdout == f"Results: {tmp_path / 'index.html'}\n"
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert re.findall("^## (.*)$", text, flags=re.MULTILINE) == ["Data", "Noise", "Settings"]
    assert "made B" not in text
    assert "| seed | 3 |" in text
    assert (tmp_path / "figures" / "noise.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "figures" / "noise.pdf").read_bytes().startswith(b"%PDF")


def test_an_interrupted_run_can_be_continued(command, small_run, tmp_path, monkeypatch):
    original, ran = fits.run_fit, []

    def interrupted(fit, X):
        if len(ran) == 7:
            raise KeyboardInterrupt
        ran.append(fit)
        return original(fit, X)

    monkeypatch.setattr(figures, "save", lambda figure, path: path.with_suffix(".png").touch())  # quick
    monkeypatch.setattr(fits, "run_fit", interrupted)
    result = command(tmp_path, "convergence", code=130)
    assert "14 fits, 0 of them already finished" in result.stderr
    assert f"Interrupted. 7 of 14 fits are done and kept in {tmp_path / 'fits'}." in result.stderr
    assert "Run the same command again to continue." in result.stderr
    assert result.stdout == ""
    again = []
    monkeypatch.setattr(fits, "run_fit", lambda fit, X: again.append(fit) or original(fit, X))
    result = command(tmp_path, "convergence")
    assert len(again) == 7
    assert not set(again) & set(ran)
    assert "14 fits, 7 of them already finished" in result.stderr
    assert "14/14 fits, " in result.stderr
    assert "0 s left" in result.stderr
    again.clear()  # another experiment shares them
    assert "30 fits, 14 of them already finished" in command(tmp_path, "factors").stderr
    assert len(again) == 16


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (KeyboardInterrupt(), 130, "\nInterrupted. Run the same command again to continue.\n"),
        (DatasetError("gdsc/ic50.txt is not available"), 1, "Error: gdsc/ic50.txt is not available\n"),
    ],
)
def test_before_the_first_fit(command, small_run, tmp_path, monkeypatch, error, code, message):
    def fails(*given):
        raise error

    monkeypatch.setattr("bnmf.paper.reproduce.data_fingerprint", fails)
    assert command(tmp_path, "noise", code=code).stderr == message


@pytest.mark.proof
@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
def test_ctrl_c_with_several_processes_shows_no_traceback(tmp_path):
    code = f"""
import numpy as np
from bnmf import cli
from bnmf.paper import reproduce
X = np.random.default_rng(0).exponential(5.0, (60, 55))
reproduce.load_datasets = lambda names, data_dir: {{name: reproduce.Dataset(X, name) for name in names}}
cli.app(["reproduce", "convergence", "--out", {str(tmp_path)!r}, "--jobs", "2"])
"""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "start_new_session": True}
    with subprocess.Popen([sys.executable, "-c", code], **pipes) as process:
        deadline, n_finished = time.monotonic() + 60, 0
        while n_finished < 4 and time.monotonic() < deadline:
            time.sleep(0.1)
            n_finished = len(list((tmp_path / "fits").glob("[!.]*.npz")))
        os.killpg(process.pid, signal.SIGINT)
        output, _ = process.communicate(timeout=180)
    assert process.returncode == 130, output
    assert n_finished >= 4, output
    assert re.search(r"Interrupted\. \d+ of \d+ fits are done and kept", output)
    assert "Run the same command again to continue." in output
    assert "Traceback" not in output
