"""The README: its examples run, its tables are current, and its links to files lead somewhere."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_examples_run():
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    names = {}
    for block in blocks:
        exec(block, names)
    assert len(blocks) == 4
    assert names["model"].posterior_.summary().verdict.startswith("Predictions: good")


@pytest.mark.parametrize(("page", "n_blocks"), [("tables", 1), ("noise", 6)])
def test_examples_of_the_docs_run(page, n_blocks):
    """The blocks of a page one after the other, without a warning."""
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) == n_blocks
    names = {}
    for block in blocks:
        exec(block, names)


def test_tables_are_current():
    for mark in ("results", "benchmarks"):  # without its marks a table would not be checked
        assert re.search(rf"<!-- {mark} -->\n\n.*?\| .*?\n<!-- /{mark} -->", README, re.DOTALL)
    command = [sys.executable, ROOT / "docs" / "update_readme.py", "--check"]
    assert subprocess.run(command, check=False).returncode == 0


def test_links_lead_to_files_and_headings():
    links = re.findall(r"\]\(([^)#]*)(?:#([^)]+))?\)", README)
    assert len(links) >= 8
    for file, anchor in links:
        page = ROOT / (file or "README.md")
        assert page.exists()
        if anchor:
            headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]
