"""The command line: help, version, and its entry points."""

import re
import subprocess
import sys
from importlib.metadata import version

import pytest
from typer.testing import CliRunner

from bnmf import cli
from bnmf.noise import Noise
from bnmf.priors.names import LEARNED, MODELS

runner = CliRunner()
COMMANDS = ["demo", "fit", "impute", "check", "transform", "report", "rank", "reproduce"]


def test_version_and_help():
    version_of, none, shown = (runner.invoke(cli.app, arguments) for arguments in (["--version"], [], ["--help"]))
    assert (version_of.exit_code, version_of.output) == (0, f"bnmf {version('bnmf')}\n")
    assert none.output.strip() == shown.output.strip()
    assert re.findall(r"^  ([a-z]+)  ", shown.stdout.split("Commands:")[1], re.MULTILINE) == COMMANDS


def test_help_loads_nothing_heavy():
    heavy = ("numpy", "scipy", "pandas", "sklearn", "joblib", "matplotlib", "rich.progress")
    code = (
        "import sys; from bnmf.cli import app\n"
        "try: app(['--help'])\n"
        f"finally: print([name for name in {heavy!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "reproduce" in done.stdout
    assert done.stdout.strip().endswith("[]")


@pytest.mark.parametrize("command", COMMANDS[:-1])
def test_help_of_each_command_has_an_example_that_parses(command):
    shown = runner.invoke(cli.app, [command, "--help"], prog_name="bnmf").stdout
    examples = re.findall(rf"^    (?:cat \S+ \| )?bnmf {command}(.*?)(?:#.*|[|>].*)?$", shown, re.MULTILINE)
    assert examples
    for example in examples:
        assert set(re.findall(r"--[a-z-]+", example)) <= set(re.findall(r"--[a-z-]+", shown))


def test_help_and_shell_completion_know_commands_and_choices():
    def completed(words):
        variables = {"_BNMF_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()))}
        return runner.invoke(cli.app, [], prog_name="bnmf", env=variables).stdout.split()

    priors, noises = [*LEARNED, *MODELS], [name for name in Noise.by_name if name != "known"]
    shown = runner.invoke(cli.app, ["fit", "--help"]).stdout
    assert all(re.search(rf"\b{name}\b", shown) for name in (*priors, *noises))
    assert completed("bnmf ") == COMMANDS
    assert completed("bnmf fit --prior ") == priors
    assert completed("bnmf fit --noise ") == noises
    assert completed("bnmf fit --offset ") == ["auto", "learned", "both", "min", "mean", "none"]
