"""The command line: quick to answer, and a whole small run from data to page."""

import os
import signal
import subprocess
import sys
import time
from importlib.metadata import version

import numpy as np
import pytest
from typer.testing import CliRunner

from bnmf import cli
from bnmf.datasets import DatasetError
from bnmf.experiments import data, run, settings, style
from bnmf.experiments.data import Dataset
from bnmf.experiments.settings import Settings

runner = CliRunner()


@pytest.fixture
def small_run(monkeypatch):
    """Make the data and the settings small; everything else is as a user has it."""
    rng = np.random.default_rng(0)
    large = np.floor(10 * rng.exponential(2.0, (20, 3)) @ rng.exponential(1.0, (3, 12)))
    large[rng.random(large.shape) < 0.2] = np.nan
    made = {
        "gdsc": Dataset(large, "made <A>", source="drawn & made"),
        "methylation": Dataset(np.floor(rng.uniform(0, 20, (15, 18))), "made B", stand_in=True),
    }
    monkeypatch.setattr(data, "load_datasets", lambda names, data_dir: {name: made[name] for name in names})

    def tiny(full: Settings) -> Settings:
        return Settings(
            repeats=2,
            seed=full.seed,
            n_sweeps=25,
            burn_in=5,
            full_k=(2, 3),
            runaway_repeats=1,
            prediction_k=(2, 3),
            fractions={"gdsc": (0.5, 0.6), "methylation": (0.5,)},
            noise_k=2,
            noise_levels=(0.0, 1.0),
            start_scenarios=((0.5, 3),),
        )

    monkeypatch.setattr(settings, "quick", tiny)


def command(out, *more):
    return runner.invoke(cli.app, ["reproduce", *more, "--out", str(out), "--quick", "--jobs", "1"])


def test_whole_run_writes_page_figures_and_tables(small_run, tmp_path):
    result = command(tmp_path, "all", "--seed", "3")
    assert result.exit_code == 0, result.output
    assert "made B: the data directory has a stand-in only" in result.output
    assert "all done" in result.output
    page, text = ((tmp_path / name).read_text(encoding="utf-8") for name in ("index.html", "README.md"))
    figures = {path.name for path in (tmp_path / "figures").iterdir()}
    for name in ("data", "convergence-gdsc", "factors-methylation", "prediction-gdsc", "noise"):
        assert {f"{name}.png", f"{name}.pdf"} <= figures
        assert f'src="figures/{name}.png"' in page
        assert f"](figures/{name}.png)" in text
    for heading in (
        "Agreement",
        "Data",
        "Convergence",
        "Factors",
        "Prediction",
        "Where GL₁² starts",
        "Noise",
        "Settings",
    ):
        assert f"<h2>{heading}</h2>" in page or heading == "Agreement"
        assert f"## {heading}" in text or heading == "Agreement"
    assert "made &lt;A&gt;: mean of W" in page
    assert "<A>" not in page
    assert "drawn &amp; made" in page
    captions = [line for line in text.splitlines() if "made B" in line]
    assert captions
    assert all("made B (stand-in)" in line for line in captions)
    assert str(tmp_path) not in page + text
    tables = {path.name: path.read_text() for path in (tmp_path / "tables").iterdir()}
    assert set(tables) == {f"{name}.csv" for name in ("convergence", "factors", "prediction", "starts", "noise")}
    assert "made B (stand-in)" in tables["prediction.csv"]
    assert "| seed | 3 |" in text


def test_one_experiment_alone(small_run, tmp_path):
    result = command(tmp_path, "noise")
    assert result.exit_code == 0, result.output
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "<h2>Noise</h2>" in page
    assert "<h2>Prediction</h2>" not in page
    assert "made B" not in page


def test_an_interrupted_run_goes_on(small_run, tmp_path, monkeypatch):
    original, ran = run.run_fit, []

    def interrupted(fit, X):
        if len(ran) == 7:
            raise KeyboardInterrupt
        ran.append(fit)
        return original(fit, X)

    monkeypatch.setattr(style, "save", lambda figure, path: None)  # drawing is tested above, and takes seconds
    monkeypatch.setattr(run, "run_fit", interrupted)
    result = command(tmp_path, "convergence")
    assert result.exit_code == 130
    assert "7 of 52 fits are done" in result.output
    assert "The same command goes on from there" in result.output

    again = []
    monkeypatch.setattr(run, "run_fit", lambda fit, X: again.append(fit) or original(fit, X))
    result = command(tmp_path, "convergence")
    assert result.exit_code == 0, result.output
    assert len(again) == 45
    assert not set(again) & set(ran)

    again.clear()
    assert command(tmp_path, "factors").exit_code == 0
    assert again == []


def test_data_that_cannot_be_had_is_an_error_for_people(monkeypatch, tmp_path):
    def missing(names, data_dir):
        raise DatasetError("gdsc/ic50.txt is not there; save it as ...")

    monkeypatch.setattr(data, "load_datasets", missing)
    result = command(tmp_path, "noise")
    assert result.exit_code == 1
    assert "gdsc/ic50.txt is not there" in result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize("wrong", [["everything"], ["all", "--repeats", "0"], ["all", "--data-dir", "not-there"]])
def test_wrong_arguments_are_refused(wrong):
    assert runner.invoke(cli.app, ["reproduce", *wrong]).exit_code == 2


def test_version():
    result = runner.invoke(cli.app, ["--version"])
    assert result.output.strip() == f"bnmf {version('bnmf')}"


def test_help_is_quick_and_loads_nothing_heavy():
    heavy = ("numpy", "numba", "pandas", "sklearn", "matplotlib", "rich.progress")
    code = (
        "import sys; from bnmf.cli import app\n"
        "try: app(['--help'])\n"
        f"finally: print([name for name in {heavy!r} if name in sys.modules])"
    )
    seconds = []
    for _ in range(3):
        before = os.times()
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        after = os.times()
        seconds.append(after.children_user + after.children_system - before.children_user - before.children_system)
    assert "reproduce" in done.stdout
    assert done.stdout.strip().endswith("[]")
    # Half a second is the aim; this is the processor's time, which a busy machine makes longer by up to a half.
    assert min(seconds) < 0.8


def test_bar_for_a_terminal(monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    with cli._display() as bar:
        bar.update(run.Progress(0, 4, 0, 0.0, float("nan")))
        bar.update(run.Progress(2, 4, 0, 10.0, 10.0))
    assert isinstance(bar, cli._Bar)
    assert (bar.done, bar.total) == (2, 4)


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
def test_ctrl_c_between_processes_leaves_no_traceback(tmp_path):
    code = f"""
import numpy as np
from bnmf import cli
from bnmf.experiments import data
from bnmf.experiments.data import Dataset
X = np.random.default_rng(0).exponential(5.0, (60, 55))
data.load_datasets = lambda names, data_dir: {{name: Dataset(X, name) for name in names}}
cli.app(["reproduce", "convergence", "--out", {str(tmp_path)!r}, "--jobs", "2"])
"""
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        deadline = time.monotonic() + 60
        while len(list((tmp_path / "fits").glob("[!.]*.npz"))) < 4 and time.monotonic() < deadline:
            time.sleep(0.1)
        os.killpg(process.pid, signal.SIGINT)
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 130, output
    assert "fits are done and kept" in output
    assert "The same command goes on" in output
