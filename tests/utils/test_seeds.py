"""Seeds and generators from every kind of random_state."""

import numpy as np
import pytest

from bnmf.utils.seeds import as_generator, as_seed

LIMIT = 2**31 - 1


@pytest.fixture
def global_generator():
    """Restore NumPy's global generator after the test."""
    state = np.random.get_state()  # noqa: NPY002 (the global generator is under test)
    yield
    np.random.set_state(state)  # noqa: NPY002


@pytest.mark.parametrize("number", [0, 7, LIMIT, 2**80, np.int64(7), np.uint8(200), np.int32(0)])
def test_whole_numbers_are_the_seed(number):
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


@pytest.mark.usefixtures("global_generator")
def test_nothing_else_advances_the_global_generator():
    np.random.seed(5)  # noqa: NPY002
    as_seed(3)
    as_seed(np.random.RandomState(3))
    as_seed(np.random.default_rng(3))
    as_generator(3)
    after = np.random.randint(LIMIT)  # noqa: NPY002
    np.random.seed(5)  # noqa: NPY002
    assert after == np.random.randint(LIMIT)  # noqa: NPY002


@pytest.mark.parametrize("wrong", ["7", 7.0, np.float64(1.0), [7], np.random, np.array([1, 2])])
def test_other_objects_are_refused(wrong):
    for function in (as_seed, as_generator):
        with pytest.raises(ValueError, match=r"random_state must be None, a whole number, .* got "):
            function(wrong)


@pytest.mark.parametrize("wrong", [-1, np.int64(-5)])
def test_negative_numbers_are_refused(wrong):
    for function in (as_seed, as_generator):
        with pytest.raises(ValueError, match=f"random_state must not be negative, got {wrong}"):
            function(wrong)


@pytest.mark.parametrize("wrong", [True, False, np.True_, np.False_])
def test_booleans_are_refused(wrong):
    with pytest.raises(ValueError, match="random_state must be None, a whole number"):
        as_seed(wrong)


def test_as_generator():
    rng = np.random.default_rng(3)
    assert as_generator(rng) is rng
    assert as_generator(11).random() == np.random.default_rng(11).random()
    seed = np.random.RandomState(3).randint(LIMIT)
    assert as_generator(np.random.RandomState(3)).random() == np.random.default_rng(seed).random()
