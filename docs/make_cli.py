"""Run the commands of docs/cli.md in an empty directory and replace what the page shows by what they print.

python -m docs.make_cli
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_wine

PAGE = Path(__file__).parent / "cli.md"
BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)


def write_tables(directory: Path) -> None:
    """Write the tables of the page: wine with gaps, new bottles, and ratings."""
    rng = np.random.default_rng(0)
    wine = load_wine(as_frame=True).data.iloc[:, :6].round(2)
    wine.insert(0, "bottle", [f"b{number}" for number in range(1, len(wine) + 1)])
    wine.iloc[:3, [0, 2, 1, 3]].to_csv(directory / "new.csv", index=False)
    gaps = wine.iloc[3:].copy()
    gaps.iloc[:, 1:] = gaps.iloc[:, 1:].mask(rng.random((len(gaps), 6)) < 0.2)
    gaps.to_csv(directory / "wine.csv", index=False)
    taste, style = rng.gamma(2.0, size=(80, 2)), rng.gamma(2.0, size=(2, 30))
    stars = np.clip(np.round(1 + 0.35 * taste @ style), 1, 5).astype(int)
    lines = [f"u{i},film {j},{stars[i, j]}" for i in range(80) for j in range(30) if rng.random() < 0.3]
    (directory / "ratings.csv").write_text("\n".join(["user,film,stars", *lines, "u1,film 2,"]) + "\n")


def output_of(command: str, directory: Path) -> str:
    """Return what a command prints, without progress."""
    programs = f"{os.environ['PATH']}{os.pathsep}{Path(sys.executable).parent}"
    environment = {**os.environ, "PATH": programs, "COLUMNS": "100"}
    done = subprocess.run(
        command, shell=True, cwd=directory, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    progress = re.compile(r"^((chain|calibration) \d+: \d+/\d+|\d+/\d+ fits).*\n", re.MULTILINE)
    return progress.sub("", done.stdout)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        write_tables(directory)

        def run(block: re.Match[str]) -> str:
            commands = re.findall(r"^\$ (.*)$", block[1], re.MULTILINE)
            return "```console\n" + "".join(f"$ {line}\n{output_of(line, directory)}" for line in commands) + "```"

        PAGE.write_text(BLOCK.sub(run, PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
