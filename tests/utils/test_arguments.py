"""Checks of arguments: right values pass unchanged, and an error names the argument and what it got."""

import numpy as np
import pytest

from bnmf.utils import arguments


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
