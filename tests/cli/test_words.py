"""Words that a user gives to commands, names of files, and errors in one line."""

from pathlib import Path

import pytest

from bnmf.cli.impute import beside, kinds_of
from bnmf.cli.outcome import one_line
from bnmf.cli.rank import numbers_to_try


def test_kinds():
    found = kinds_of(["age=whole", "share=0..100", "size=S<M<L"])
    assert found == {"age": "whole", "share": (0.0, 100.0), "size": ["S", "M", "L"]}


def test_names_of_files():
    assert beside(Path("a.csv.gz"), "lower").name == "a.lower.csv.gz"
    assert beside(Path("v1.2/b.tsv"), "1").name == "b.1.tsv"


@pytest.mark.parametrize(
    ("text", "shape", "ks"),
    [(None, (500, 8), [1, 2, 3, 4, 7]), (None, (500, 80), [2, 5, 10, 20]), ("3,4", (500, 8), [3, 4])],
)
def test_numbers_to_try(text, shape, ks):
    assert numbers_to_try(text, shape) == ks


def test_errors_in_one_line():
    unwritten = PermissionError(13, "Permission denied", "out/.W.csv.41-7.tmp")
    assert one_line(unwritten) == "out/W.csv: Permission denied"
    assert one_line(KeyError("x")) == "KeyError: 'x' (--debug shows where)"
