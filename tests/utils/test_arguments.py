"""Checks of arguments: right values pass unchanged, and an error names the argument and what it got."""

import os
from pathlib import Path

import numpy as np
import pytest

from bnmf.utils import arguments


class PureBytes(os.PathLike):
    """A path of bytes."""

    def __fspath__(self):
        return b"a"


@pytest.mark.parametrize("value", [3, np.int8(3), np.uint64(3)])
def test_whole_numbers(value):
    found = arguments.whole_number(value, "n", 3)
    assert found == 3
    assert type(found) is int


@pytest.mark.parametrize("value", [True, np.True_, 3.0, "3", None, [3], np.array([3])])
def test_what_is_no_whole_number(value):
    with pytest.raises(TypeError, match="n_draws must be a whole number, got"):
        arguments.whole_number(value, "n_draws", 0)


def test_too_small():
    with pytest.raises(ValueError, match="n_draws must be at least 3, got 2"):
        arguments.whole_number(2, "n_draws", 3)


@pytest.mark.parametrize("value", [0.5, np.float32(0.5)])
def test_probability(value):
    found = arguments.probability(value, "prob")
    assert found == 0.5
    assert type(found) is float


@pytest.mark.parametrize("value", [0, 1, -0.1, 1.1, float("nan"), float("inf"), True, "0.5", None, [0.5], 0.5j])
def test_no_probability(value):
    with pytest.raises(ValueError, match="prob must be a number between 0 and 1, got"):
        arguments.probability(value, "prob")


@pytest.mark.parametrize(
    ("value", "found"), [(0.5, [0.5]), ([0, 1], [0.0, 1.0]), ((0.1,), [0.1]), (np.float32(0.25), [0.25])]
)
def test_probabilities(value, found):
    assert arguments.probabilities(value, "q").tolist() == found


@pytest.mark.parametrize(
    "value", [[], [[0.5]], 1.5, [0.5, -0.1], [0.5, np.nan], "a", None, [0.5, "x"], {}, object(), 1j]
)
def test_no_probabilities(value):
    with pytest.raises(ValueError, match="q must be a number between 0 and 1, or a list of them, got"):
        arguments.probabilities(value, "q")


@pytest.mark.parametrize("value", [True, False, np.True_])
def test_flags(value):
    assert arguments.flag(value, "noise") is bool(value)


@pytest.mark.parametrize("value", [1, 0, None, "yes", np.array(True)])
def test_no_flags(value):
    with pytest.raises(TypeError, match="noise must be True or False, got"):
        arguments.flag(value, "noise")


def test_floats():
    np.testing.assert_array_equal(arguments.floats([1, 2], "values"), [1.0, 2.0])
    given = np.ones(3)
    assert arguments.floats(given, "values") is given


@pytest.mark.parametrize("value", ["a", None, [[1], [2, 3]], 1j, {}, [None], np.array(["a"])])
def test_no_floats(value):
    with pytest.raises(TypeError, match="values must hold real numbers, got"):
        arguments.floats(value, "values")


@pytest.mark.parametrize("value", ["a.npz", Path("a.npz")])
def test_paths(value):
    assert arguments.path(value, "path") == Path("a.npz")


@pytest.mark.parametrize("value", ["", "a\0b", None, 3, b"a", ["a"], PureBytes()])
def test_no_paths(value):
    with pytest.raises((TypeError, ValueError), match="path must be the name of a file, got"):
        arguments.path(value, "path")


@pytest.mark.parametrize(
    ("rows", "columns", "error", "words"),
    [
        ([0], None, ValueError, "give both or neither"),
        ([0], [0, 1], ValueError, r"paired lists, got shapes \(1,\) and \(2,\)"),
        ([[0]], [[0]], ValueError, "paired lists"),
        ([2], [0], IndexError, "rows must be whole numbers below 2"),
        ([0], [-4], IndexError, "columns must be whole numbers below 3"),
        ([0.0], [0], IndexError, "rows must be whole numbers"),
        ([True], [0], IndexError, "rows must be whole numbers"),
        ([0], [[1], [2, 3]], IndexError, "columns must be whole numbers"),
        (slice(None), [0], IndexError, "rows must be whole numbers"),
    ],
)
def test_positions(rows, columns, error, words):
    with pytest.raises(error, match=words):
        arguments.positions(rows, columns, (2, 3))
