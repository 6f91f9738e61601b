"""The command line: help, version, and its entry points."""

import subprocess
import sys
from importlib.metadata import version

import pytest
from typer.testing import CliRunner

from bnmf import cli

runner = CliRunner()


def test_version():
    result = runner.invoke(cli.app, ["--version"])
    assert result.exit_code == 0
    assert result.output == f"bnmf {version('bnmf')}\n"


def test_no_arguments_show_the_help():
    shown, expected = (runner.invoke(cli.app, arguments).output.strip() for arguments in ([], ["--help"]))
    assert shown == expected != ""


def test_help_loads_nothing_heavy():
    heavy = ("numpy", "numba", "scipy", "pandas", "sklearn", "joblib", "matplotlib", "rich.progress")
    code = (
        "import sys; from bnmf.cli import app\n"
        "try: app(['--help'])\n"
        f"finally: print([name for name in {heavy!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "reproduce" in done.stdout
    assert done.stdout.strip().endswith("[]")


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["reproduce", "--help"]])
def test_python_m_runs_the_same_program(arguments):
    done = subprocess.run([sys.executable, "-m", "bnmf", *arguments], capture_output=True, text=True, check=True)
    expected = runner.invoke(cli.app, arguments, prog_name="python -m bnmf").stdout
    assert done.stdout.split() == expected.split()
