"""Vectorised draws equal the scalar draws, so the statistical tests of the scalar draws cover them as well."""

import numpy as np
import pytest

from bnmf.kernels.compiled import testing
from tests.kernels.draws import WIDTH, draws

KEY = 9, 27


def scalar_draws(b, p):
    """Draw from the same streams with the scalar kernel."""
    return draws(testing.draw_positive, KEY, b, p)


def streams_of_lanes(n):
    """Return the words of n streams in the order in which vectors load them."""
    streams = np.array([testing.stream_of(*KEY, i) for i in range(n)], np.uint64)
    return streams.reshape(-1, WIDTH, 4).transpose(0, 2, 1).ravel().copy()


def vector_draws(b, p):
    """Draw eight rows at a time; of the last vector, only the lanes that have a row."""
    out, zeros = np.empty(len(b)), np.zeros(WIDTH)
    words = streams_of_lanes(-(-len(b) // WIDTH) * WIDTH)
    for i in range(0, len(b), WIDTH):
        n, drawn = min(WIDTH, len(b) - i), np.empty(WIDTH)
        given = [np.pad(x[i : i + n], (0, WIDTH - n), constant_values=1.0) for x in (b, p)]
        testing.fill_lanes("positive", *given, zeros, zeros, n, words[4 * i : 4 * (i + WIDTH)], drawn)
        out[i : i + n] = drawn[:n]
    return out


# Covers lanes that accept at once next to lanes that reject, normals next to exponentials, and edges of strips.
@pytest.mark.parametrize("spread", [0.0, 0.1, 1.0, 4.0, 100.0])
def test_vector_draws_equal_scalar_draws(spread):
    rng = np.random.default_rng(0)
    b, p = spread * rng.normal(size=20_000), rng.exponential(size=20_000) + 1e-3
    np.testing.assert_allclose(vector_draws(b, p), scalar_draws(b, p), rtol=1e-12)


def test_exponential_without_observed_entries():
    b, p = np.full(5000, -2.0), np.zeros(5000)
    np.testing.assert_allclose(vector_draws(b, p), scalar_draws(b, p), rtol=1e-12)


def test_a_lane_beyond_the_range_of_floating_point_is_no_number_and_leaves_the_others_alone():
    rng = np.random.default_rng(5)
    b, p = rng.normal(size=64), rng.exponential(size=64) + 0.1
    b[3::8], p[3::8] = -1e-300, 1e-310
    b[6::8] = np.nan
    drawn = vector_draws(b, p)
    np.testing.assert_array_equal(np.isnan(drawn), np.isin(np.arange(64) % 8, (3, 6)))
    np.testing.assert_allclose(drawn, scalar_draws(b, p), rtol=1e-12)


def test_partly_used_vectors():
    for n in range(1, 18):
        rng = np.random.default_rng(n)
        b, p = rng.normal(size=n), rng.exponential(size=n) + 0.1
        np.testing.assert_allclose(vector_draws(b, p), scalar_draws(b, p), rtol=1e-12)


def test_lane_does_not_depend_on_other_lanes():
    rng = np.random.default_rng(3)
    b, p = rng.normal(size=64), np.ones(64)
    expected = vector_draws(b, p)
    b[::2] = rng.normal(scale=5.0, size=32)
    np.testing.assert_array_equal(vector_draws(b, p)[1::2], expected[1::2])


def test_exponential_function():
    x = np.linspace(-10.0, 0.0, 8000)
    found = x.copy()
    testing.exp_of_negative(found)
    np.testing.assert_allclose(found, np.exp(x), rtol=2e-13)


@pytest.mark.parametrize("n", range(WIDTH + 1))
def test_first_lanes(n):
    assert testing.first_lanes(n) == 2**n - 1


# --- with a kink


def two_piece_draws(b, p, kink, rate, n_active=WIDTH):
    out, words = np.empty(len(b)), streams_of_lanes(len(b))
    testing.fill_lanes("two_piece", b, p, kink, np.full(len(b), rate), n_active, words, out)
    return out, words


def scalar_two_piece_draws(b, p, kink, rate):
    return draws(testing.draw_two_piece, KEY, b, p, kink, rate)


def regime(b, p, kink, rate):
    """Return which of the three ways to draw a lane takes."""
    beyond = (rate * kink <= 1.0) | (b - rate >= p * kink)
    below = (b <= p * kink) & (p * kink**2 >= 1.0)
    return np.where(beyond, "beyond", np.where(below, "below", "by mass"))


# Of each regime alone, and of all of them in the lanes of one vector. Rates from a weak one to one that forbids the
# upper piece; kinks from zero to far beyond the mode.
@pytest.mark.parametrize("rate", [0.7, 3.0, 50.0])
@pytest.mark.parametrize("which", ["beyond", "below", "by mass", "mixed"])
def test_draws_with_a_kink_equal_scalar_draws(rate, which):
    rng = np.random.default_rng(1)
    b, p = 3.0 * rng.normal(size=400_000), rng.exponential(size=400_000) + 1e-3
    kink = rng.exponential(size=400_000) * rng.choice([0.0, 0.1, 1.0, 10.0, 4.0 / rate], size=400_000)
    found = regime(b, p, kink, rate)
    chosen = np.flatnonzero((found == which) | (which == "mixed"))[:8000]
    assert len(chosen) == 8000
    given = b[chosen], p[chosen], kink[chosen], rate
    np.testing.assert_allclose(two_piece_draws(*given)[0], scalar_two_piece_draws(*given), rtol=1e-12)


def test_draws_with_a_kink_without_observed_entries():
    b, p, kink = np.full(800, -2.0), np.zeros(800), np.tile([0.0, 0.1, 1.0, 7.0], 200)
    np.testing.assert_allclose(two_piece_draws(b, p, kink, 1.5)[0], scalar_two_piece_draws(b, p, kink, 1.5), rtol=1e-12)


@pytest.mark.parametrize("n", range(1, WIDTH + 1))
def test_lanes_that_are_not_active_read_nothing(n):
    rng = np.random.default_rng(n)
    b, p, kink = rng.normal(size=80), rng.exponential(size=80) + 0.1, 2.0 * rng.exponential(size=80)
    active = np.arange(80) % WIDTH < n
    for i in np.flatnonzero(~active):  # what is left there from other rows may be anything
        b[i], p[i], kink[i] = rng.choice([np.nan, np.inf, -1e300, 0.0], size=3)
    drawn, words = two_piece_draws(b, p, kink, 2.0, n)
    expected = scalar_two_piece_draws(*(np.where(active, x, 1.0) for x in (b, p, kink)), 2.0)
    np.testing.assert_allclose(drawn[active], expected[active], rtol=1e-12)
    changed = (words != streams_of_lanes(80)).reshape(-1, 4, WIDTH).any(axis=1).ravel()
    np.testing.assert_array_equal(changed, active)


# --- on the real line


@pytest.mark.parametrize("rate", [0.0, 0.5, "mixed"])
def test_real_draws_equal_scalar_draws(rate):
    rng = np.random.default_rng(2)
    b, p = 3.0 * rng.normal(size=8000), rng.exponential(size=8000) + 1e-2
    rates = rng.choice([0.0, 0.3, 4.0], size=8000) if rate == "mixed" else np.full(8000, rate)
    out, words = np.empty(8000), streams_of_lanes(8000)
    testing.fill_lanes("real", b, p, np.zeros(8000), rates, WIDTH, words, out)
    np.testing.assert_allclose(out, draws(testing.draw_real, KEY, b, p, rates), rtol=1e-12, atol=1e-14)
