"""What tests of commands share: a runner, a small table, and a stand-in for the report."""

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from bnmf import cli, report
from bnmf.cli.screen import Screen


class Program:
    """Runs `bnmf` in this process."""

    runner = CliRunner()

    def __call__(self, *arguments, code=0, **options):
        """Run a command, which must end with an exit code."""
        result = self.runner.invoke(cli.app, [str(argument) for argument in arguments], prog_name="bnmf", **options)
        assert result.exit_code == code, result.output
        return result

    def fails(self, message, *arguments, code=2):
        """Run a command that must end with one line about an error."""
        result = self(*arguments, code=code)
        assert message in result.stderr
        assert "Traceback" not in result.output
        assert len([line for line in result.stderr.splitlines() if line.startswith("Error")]) == 1
        return result


@pytest.fixture
def program():
    return Program()


@pytest.fixture
def reports(monkeypatch):
    """Replace the report by a file of one line, and return what it was called with."""
    calls = []

    def write(posterior, path, data, *, title, settings, verdict=None):
        calls.append((path, posterior, data, title, settings))
        path.write_text("report")

    monkeypatch.setattr(report, "write_report", write)
    return calls


@pytest.fixture
def short(monkeypatch):
    """Shorten the fits of `bnmf impute` to a few draws, and return the settings."""
    settings = {"n_chains": 2, "burn_in": 30, "n_draws": 40, "max_time": None, "calibrate": False}
    fitted = Screen.fitted
    monkeypatch.setattr(Screen, "fitted", lambda self, fit, model: fitted(self, fit, model.set_params(**settings)))
    return settings


@pytest.fixture
def small():
    """A table of 12 rows and 5 columns with missing entries."""
    rng = np.random.default_rng(0)
    X = rng.exponential(size=(12, 2)) @ rng.exponential(size=(2, 5)) + 0.1 * rng.random((12, 5))
    X[rng.random(X.shape) < 0.2] = np.nan
    X[3, 2] = np.nan
    return X.round(3)


@pytest.fixture
def table(small, tmp_path):
    """The same as a CSV file with names."""
    path = tmp_path / "plants.csv"
    frame = pd.DataFrame(small, [f"p{number}" for number in range(12)], list("abcde"))
    frame.to_csv(path, float_format="%.3f", na_rep="NA", index_label="plant")
    return path
