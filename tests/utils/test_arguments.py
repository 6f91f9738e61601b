"""Checks of arguments: right values pass unchanged, and an error names the argument and what it got."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bnmf.utils import arguments
from bnmf.utils.arguments import as_generator, as_seed, is_pandas

LIMIT = 2**31 - 1


class PureBytes(os.PathLike):
    """A path of bytes."""

    def __fspath__(self):
        return b"a"


@pytest.mark.parametrize(
    ("check", "more", "values", "found"),
    [
        ("whole_number", (3,), [3, np.int8(3), np.uint64(3)], 3),
        ("probability", (), [0.5, np.float32(0.5)], 0.5),
        ("probabilities", (), [0.5, [0.5], (0.5,), np.float32(0.5)], np.array([0.5])),
        ("flag", (), [True, np.True_], True),
        ("flag", (), [False, np.False_], False),
        ("floats", (), [[1, 2], np.array([1.0, 2.0])], np.array([1.0, 2.0])),
        ("path", (), ["a.npz", Path("a.npz")], Path("a.npz")),
    ],
)
def test_right_values_pass(check, more, values, found):
    for value in values:
        passed = getattr(arguments, check)(value, "a", *more)
        assert type(passed) is type(found)
        np.testing.assert_array_equal(passed, found)
    assert check != "floats" or passed is value


NO_NUMBERS = ["a", None, [[1], [2, 3]], 1j, {}, [None], np.array(["a"])]
NO_SEEDS = ["7", 7.0, [7], np.random, np.array([1, 2]), True, np.False_]
REFUSED = {
    "whole_number": (0, [True, np.True_, 3.0, "3", None, [3], np.array([3])], TypeError, "a must be a whole number"),
    "whole_number, too small": (3, [2], ValueError, "a must be at least 3, got 2"),
    "probability": ((), [0, 1, -0.1, 1.1, np.nan, np.inf, True, "0.5", None, [0.5], 0.5j], ValueError,
                    "a must be a number between 0 and 1, got"),
    "probabilities": ((), [[], [[0.5]], 1.5, [0.5, -0.1], [0.5, np.nan], "a", None, [0.5, "x"], {}, object(), 1j],
                      ValueError, "a must be a number between 0 and 1, or a list of them, got"),
    "flag": ((), [1, 0, None, "yes", np.array(True)], TypeError, "a must be True or False, got"),
    "floats": ((), NO_NUMBERS, TypeError, "a must hold real numbers, got"),
    "path": ((), ["", "a\0b", None, 3, b"a", ["a"], PureBytes()], (TypeError, ValueError), "a must be the name of"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_wrong_values_are_refused(case):
    more, values, error, words = REFUSED[case]
    for value in values:
        with pytest.raises(error, match=words):
            getattr(arguments, case.split(",")[0])(value, "a", *np.atleast_1d(more).tolist())


@pytest.mark.parametrize(
    ("rows", "columns", "error", "words"),
    [
        ([0], None, ValueError, "give both or neither"),
        ([0], [0, 1], ValueError, r"paired lists, got shapes \(1,\) and \(2,\)"),
        ([[0]], [[0]], ValueError, "paired lists"),
        ([2], [0], IndexError, "rows must be whole numbers below 2"),
        ([0], [-4], IndexError, "columns must be whole numbers below 3"),
        ([True], [0.0], IndexError, "rows must be whole numbers"),
        ([0], [0.0], IndexError, "columns must be whole numbers"),
        ([0], [[1], [2, 3]], IndexError, "columns must be whole numbers"),
        (slice(None), [0], IndexError, "rows must be whole numbers"),
    ],
)
def test_wrong_positions_are_refused(rows, columns, error, words):
    with pytest.raises(error, match=words):
        arguments.positions(rows, columns, (2, 3))


@pytest.mark.parametrize("function", [as_seed, as_generator])
def test_wrong_seeds_are_refused(function):
    for wrong in NO_SEEDS:
        with pytest.raises(ValueError, match=r"random_state must be None, a whole number, .* got "):
            function(wrong)
    for wrong in (-1, np.int64(-5)):
        with pytest.raises(ValueError, match=f"random_state must not be negative, got {wrong}"):
            function(wrong)


def test_seeds_and_their_sources():
    for number in (0, 7, LIMIT, 2**80, np.int64(7), np.uint8(200), np.int32(0)):
        assert as_seed(number) == int(number)
        assert type(as_seed(number)) is int
    assert as_seed(np.random.RandomState(3)) == np.random.RandomState(3).randint(LIMIT)
    assert as_seed(np.random.default_rng(3)) == np.random.default_rng(3).integers(LIMIT)
    for source in (np.random.RandomState(3), np.random.default_rng(3)):
        assert as_seed(source) != as_seed(source)  # the source advances
    rng = np.random.default_rng(3)
    assert as_generator(rng) is rng
    assert as_generator(11).random() == np.random.default_rng(11).random()
    seed = np.random.RandomState(3).randint(LIMIT)
    assert as_generator(np.random.RandomState(3)).random() == np.random.default_rng(seed).random()


def test_none_takes_the_global_generator():
    state = np.random.get_state()  # noqa: NPY002 (the global generator is under test)
    try:
        np.random.seed(5)  # noqa: NPY002
        found = [as_seed(None), as_seed(None)]
        np.random.seed(5)  # noqa: NPY002
        assert found == [np.random.randint(LIMIT), np.random.randint(LIMIT)]  # noqa: NPY002
        assert found[0] != found[1]
    finally:
        np.random.set_state(state)  # noqa: NPY002


def test_data_frames():
    derived, other = type("Derived", (pd.DataFrame,), {}), type("DataFrame", (), {})
    assert [is_pandas(X, "DataFrame") for X in (derived(), pd.Series([1.0]), other())] == [True, False, False]
