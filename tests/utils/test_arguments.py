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


@pytest.mark.parametrize("value", [3, np.int8(3), np.uint64(3)])
def test_whole_numbers(value):
    found = arguments.whole_number(value, "n", 3)
    assert found == 3
    assert type(found) is int


@pytest.mark.parametrize("value", [0.5, np.float32(0.5)])
def test_probability(value):
    found = arguments.probability(value, "prob")
    assert found == 0.5
    assert type(found) is float


@pytest.mark.parametrize(
    ("value", "found"), [(0.5, [0.5]), ([0, 1], [0.0, 1.0]), ((0.1,), [0.1]), (np.float32(0.25), [0.25])]
)
def test_probabilities(value, found):
    assert arguments.probabilities(value, "q").tolist() == found


@pytest.mark.parametrize("value", [True, False, np.True_])
def test_flags(value):
    assert arguments.flag(value, "noise") is bool(value)


def test_floats():
    np.testing.assert_array_equal(arguments.floats([1, 2], "values"), [1.0, 2.0])
    given = np.ones(3)
    assert arguments.floats(given, "values") is given


@pytest.mark.parametrize("value", ["a.npz", Path("a.npz")])
def test_paths(value):
    assert arguments.path(value, "path") == Path("a.npz")


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


@pytest.fixture
def global_generator():
    """Restore NumPy's global generator after the test."""
    state = np.random.get_state()  # noqa: NPY002 (the global generator is under test)
    yield
    np.random.set_state(state)  # noqa: NPY002


@pytest.mark.parametrize("number", [0, 7, LIMIT, 2**80, np.int64(7), np.uint8(200), np.int32(0)])
def test_a_whole_number_is_the_seed(number):
    seed = as_seed(number)
    assert seed == int(number)
    assert type(seed) is int


def test_random_state_and_generator_are_sources():
    assert as_seed(np.random.RandomState(3)) == np.random.RandomState(3).randint(LIMIT)
    assert as_seed(np.random.default_rng(3)) == np.random.default_rng(3).integers(LIMIT)
    for source in (np.random.RandomState(3), np.random.default_rng(3)):
        first, second = as_seed(source), as_seed(source)
        assert first != second  # the source advances
        assert type(first) is int
        assert 0 <= first < LIMIT


@pytest.mark.usefixtures("global_generator")
def test_none_takes_the_global_generator():
    np.random.seed(5)  # noqa: NPY002
    found = [as_seed(None), as_seed(None)]
    np.random.seed(5)  # noqa: NPY002
    expected = [np.random.randint(LIMIT), np.random.randint(LIMIT)]  # noqa: NPY002
    assert found == expected
    assert found[0] != found[1]


def test_generators():
    rng = np.random.default_rng(3)
    assert as_generator(rng) is rng
    assert as_generator(11).random() == np.random.default_rng(11).random()
    seed = np.random.RandomState(3).randint(LIMIT)
    assert as_generator(np.random.RandomState(3)).random() == np.random.default_rng(seed).random()


class Derived(pd.DataFrame):
    pass


class DataFrame:
    pass


@pytest.mark.parametrize(
    ("X", "expected"),
    [(pd.DataFrame([[1.0]]), True), (Derived([[1.0]]), True), (DataFrame(), False), (pd.Series([1.0]), False)],
)
def test_data_frames(X, expected):
    assert is_pandas(X, "DataFrame") == expected
