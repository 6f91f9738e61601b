"""Vectorised draws equal the scalar draws, so the statistical tests of the scalar draws cover them as well."""

import numpy as np
import pytest

from bnmf.kernels.compiled import LEVEL, testing
from tests.kernels.draws import WIDTH, lane_draws, padded_length, scalar_draws, streams_of

KEY = 9, 27


def assert_same(kind, b, *rest, n_active=WIDTH):
    """Assert that both ways give the same numbers, and leave streams at the same place unless the draw is NaN."""
    n = len(b)
    side_by_side, alone = streams_of(KEY, padded_length(n)), streams_of(KEY, padded_length(n))
    given = [np.resize(x, padded_length(n)) for x in (b, *rest)]  # what fills the last vector is drawn, too
    expected = scalar_draws(kind, alone, *given)
    active = np.arange(len(given[0])) % WIDTH < n_active
    drawn = lane_draws(kind, side_by_side, *given, n_active=n_active)
    np.testing.assert_allclose(drawn[active], expected[active], rtol=1e-12, atol=1e-14)
    drew = active & ~np.isnan(expected)
    np.testing.assert_array_equal(side_by_side[drew], alone[drew])
    np.testing.assert_array_equal(side_by_side[~active], streams_of(KEY, len(alone))[~active])
    return drawn


# Covers lanes that accept at once next to lanes that reject, normals next to exponentials, and edges of strips.
def test_vector_draws_equal_scalar_draws():
    for spread in [0.0, 0.1, 1.0, 4.0, 100.0]:
        rng = np.random.default_rng(0)
        assert_same("positive", spread * rng.normal(size=20_000), rng.exponential(size=20_000) + 1e-3)
    assert_same("positive", np.full(5000, -2.0), 0.0)  # nothing was observed


def test_a_lane_beyond_the_range_of_floating_point_is_no_number_and_leaves_the_others_alone():
    rng = np.random.default_rng(5)
    b, p = rng.normal(size=64), rng.exponential(size=64) + 0.1
    b[3::8], p[3::8] = -1e-300, 1e-310
    b[6::8] = np.nan
    drawn = assert_same("positive", b, p)
    np.testing.assert_array_equal(np.isnan(drawn), np.isin(np.arange(64) % 8, (3, 6)))


def test_exponential_function():
    x = np.linspace(-10.0, 0.0, 8000)
    found = x.copy()
    testing.exp_of_negative(found)
    np.testing.assert_allclose(found, np.exp(x), rtol=2e-13)


def test_tile_fits_the_registers():
    """Its sums, the numbers of one line and one broadcast number."""
    number, lanes = {"v2": (16, 2), "v3": (16, 4), "v4": (32, 8), "generic": (32, 2)}[LEVEL]
    rows, *columns = testing.TILE
    for width in columns:
        assert (rows + 1) * -(-width // lanes) + 1 <= number


def regime(b, p, kink, rate):
    """Return which of the three ways to draw beside a kink a lane takes."""
    beyond = (rate * kink <= 1.0) | (b - rate >= p * kink)
    below = (b <= p * kink) & (p * kink**2 >= 1.0)
    return np.where(beyond, "beyond", np.where(below, "below", "by mass"))


# Of each regime alone, and of all of them in the lanes of one vector. Rates from a weak one to one that forbids the
# upper piece; kinks from zero to far beyond the mode.
@pytest.mark.parametrize("rate", [0.7, 3.0, 50.0])
def test_draws_with_a_kink_equal_scalar_draws(rate):
    rng = np.random.default_rng(1)
    b, p = 3.0 * rng.normal(size=400_000), rng.exponential(size=400_000) + 1e-3
    kink = rng.exponential(size=400_000) * rng.choice([0.0, 0.1, 1.0, 10.0, 4.0 / rate], size=400_000)
    found = regime(b, p, kink, rate)
    for which in ["beyond", "below", "by mass", "mixed"]:
        chosen = np.flatnonzero((found == which) | (which == "mixed"))[:8000]
        assert len(chosen) == 8000
        assert_same("two_piece", b[chosen], p[chosen], kink[chosen], rate)
    assert_same("two_piece", np.full(800, -2.0), 0.0, np.tile([0.0, 0.1, 1.0, 7.0], 200), 1.5)  # nothing was observed


@pytest.mark.parametrize("n", range(1, WIDTH))
def test_lanes_that_are_not_active_read_nothing(n):
    rng = np.random.default_rng(n)
    b, p, kink = rng.normal(size=80), rng.exponential(size=80) + 0.1, 2.0 * rng.exponential(size=80)
    for i in np.flatnonzero(np.arange(80) % WIDTH >= n):  # what is left there from other rows may be anything
        b[i], p[i], kink[i] = rng.choice([np.nan, np.inf, -1e300, 0.0], size=3)
    assert_same("positive", b, p, n_active=n)
    assert_same("two_piece", b, p, kink, 2.0, n_active=n)


def test_real_draws_equal_scalar_draws():
    rng = np.random.default_rng(2)
    b, p = 3.0 * rng.normal(size=8000), rng.exponential(size=8000) + 1e-2
    for rate in (0.0, 0.5, rng.choice([0.0, 0.3, 4.0], size=8000)):
        assert_same("real", b, p, 0.0, rate)
