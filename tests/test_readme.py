"""The README: its example runs, and the tables that it and the docs show are current."""

import re
import subprocess
import sys

from tests.pages import ROOT, blocks

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_example_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (example,) = blocks(README, "python")
    names = {}
    exec(example, names)
    assert (tmp_path / "report.html").exists()
    assert names["model"].posterior_.summary().verdict.startswith("Predictions: good")
    assert not names["imputer"].transform(names["table"]).isna().to_numpy().any()


def test_tables_are_current():
    marked = {"comparison": "README.md", "benchmarks": "docs/benchmarks.md", "results": "docs/paper.md"}
    for mark, page in marked.items():  # without its marks a table would not be checked
        text = (ROOT / page).read_text(encoding="utf-8")
        assert re.search(rf"<!-- {mark} -->\n\n.*?\| .*?\n\n<!-- /{mark} -->", text, re.DOTALL)
    command = [sys.executable, ROOT / "docs" / "update_readme.py", "--check"]
    assert subprocess.run(command, check=False).returncode == 0
