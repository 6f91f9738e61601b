"""Random streams: the published generator, independent streams, and ziggurats that are exact in the tails as well."""

import itertools

import numpy as np
import pytest
from scipy import stats

from bnmf.kernels.compiled import key_of, testing
from tests.kernels.draws import streams_of
from tests.statistical.checks import assert_counts, assert_follows

KEY = 11, 7
GOLDEN_GAMMA = 0x9E3779B97F4A7C15
NORMAL_TAIL, EXPONENTIAL_TAIL = testing.TAIL_STARTS
N = 2_000_000
DISTRIBUTIONS = {
    "uniform": ("uniform", stats.uniform),
    "normal": ("normal", stats.norm),
    "exponential": ("exponential", stats.expon),
}
each_distribution = pytest.mark.parametrize(("draw", "distribution"), DISTRIBUTIONS.values(), ids=DISTRIBUTIONS)


def drawn(name, key, rows, draws):
    """Return the first draws of the streams of rows, (rows, draws)."""
    out = np.empty((rows, draws))
    testing.fill_standard(name, *key, out)
    return out


def test_next_word_is_xoshiro256_plus_plus():
    stream = np.array([[1, 2, 3, 4]], np.uint64)
    words = [testing.next_word(stream) for _ in range(5)]
    assert words == [41943041, 58720359, 3588806011781223, 3591011842654386, 9228616714210784205]


def test_mix_is_the_splitmix64_finaliser():
    assert testing.mix(GOLDEN_GAMMA) == 0xE220A8397B1DCDAF


def test_every_field_of_the_key_changes_the_stream():
    keys = list(itertools.product((0, 1), (0, 1), (0, 1, 2), (0, 1, 2), (0, 1, 2), (0, 1, 2, 255, 256)))
    streams = {tuple(streams_of(key_of(*key), 257)[row]) for *key, row in keys}
    assert len(streams) == len(keys)


@each_distribution
def test_one_stream_follows_the_distribution(draw, distribution):
    draws = drawn(draw, KEY, 1, N)[0]
    edges = distribution.ppf(np.linspace(0, 1, 1001))
    assert_counts(np.histogram(draws, edges)[0], np.full(1000, 1e-3))


@each_distribution
def test_neighbouring_rows_follow_the_distribution_and_are_independent(draw, distribution):
    u = distribution.cdf(drawn(draw, KEY, 200_000, 4))
    for i in range(4):
        assert_follows(u[:, i], lambda x: x)
    for i, j in itertools.product(range(4), range(4)):
        counts, _, _ = np.histogram2d(u[:-1, i], u[1:, j], 16, [[0, 1], [0, 1]])
        assert_counts(counts.ravel(), np.full(256, 1 / 256))


@pytest.mark.parametrize("field", range(5), ids=["seed_high", "seed_low", "chain", "sweep", "part"])
def test_neighbouring_keys_are_independent(field):
    u = np.empty((20_000, 2))
    for i in range(len(u)):
        fields = [5, 6, 0, 0, 0]
        fields[field] = i
        u[i] = drawn("uniform", key_of(*fields), 1, 2)
    assert_follows(u[:, 0], lambda x: x)
    for first, second in ((u[:, 0], u[:, 1]), (u[:-1, 0], u[1:, 0])):
        assert_counts(np.histogram2d(first, second, 8, [[0, 1], [0, 1]])[0].ravel(), np.full(64, 1 / 64))


@pytest.mark.parametrize(
    ("draw", "distribution", "start"),
    [("normal", stats.norm, NORMAL_TAIL), ("exponential", stats.expon, EXPONENTIAL_TAIL)],
    ids=["normal", "exponential"],
)
def test_tail_beyond_the_base_strip(draw, distribution, start):
    draws = drawn(draw, (4, 4), 1, N)[0]
    sides = [1.0] if distribution is stats.expon else [1.0, -1.0]
    tails = [side * draws[side * draws > start] for side in sides]
    expected = distribution.sf(start)
    assert_counts([*map(len, tails), N - sum(map(len, tails))], [expected] * len(sides) + [1 - len(sides) * expected])
    for tail in tails:
        assert_follows(tail, lambda x: 1.0 - distribution.sf(x) / expected)


def test_normal_tail():
    draws = drawn("normal_tail", KEY, 1, 200_000)[0]
    assert_follows(draws, lambda x: 1.0 - stats.norm.sf(x) / stats.norm.sf(NORMAL_TAIL))
