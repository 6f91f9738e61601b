"""The page of promises names tests that exist, and the last long run had no bad attempt."""

import re
from pathlib import Path

import pytest

from tests.hostile.__main__ import BEGIN, END, GROUPS

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", PAGE)))


@pytest.mark.parametrize(("file", "function"), NAMED)
def test_named_tests_exist(file, function):
    assert f"def {function}" in (ROOT / file).read_text(encoding="utf-8")


def test_every_row_of_a_promise_names_a_test():
    assert len(NAMED) > 30
    tables = [line for line in PAGE.split("## What is checked")[0].splitlines() if re.match(r"\| [a-z]", line)]
    assert [line for line in tables if "held by" not in line and "`tests/" not in line] == []


def test_the_last_long_run_had_no_bad_attempt():
    table = PAGE.split(BEGIN)[1].split(END)[0]
    rows = {
        cells[1].strip(): [cell.strip() for cell in cells]
        for cells in (line.split("|") for line in table.splitlines())
        if len(cells) > 5
    }
    assert set(GROUPS) < set(rows)
    for name in (*GROUPS, "all"):
        assert int(rows[name][2].replace(",", "")) > 0
        assert rows[name][5] == "0"
