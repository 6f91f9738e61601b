"""Eight rows at once: the same draws as one by one, so that what is proved of the scalar draw holds for the lanes."""

import numpy as np
import pytest

from bnmf.kernels.lanes import fill_lanes
from bnmf.kernels.random import stream_of
from bnmf.kernels.truncated_normal import draw_positive

KEY = np.uint64(9), np.uint64(27)


def one_by_one(b, p):
    """Draw from the same streams with the scalar draw."""
    streams = [tuple(map(np.uint64, stream_of(*KEY, np.uint64(i)))) for i in range(len(b))]
    return np.array([draw_positive(b[i], p[i], stream)[0] for i, stream in enumerate(streams)])


def lanes(b, p):
    out = np.empty(len(b))
    fill_lanes(b, p, *KEY, out)
    return out


# Lanes that accept at once beside lanes that wait, normals beside exponentials, and every edge of a strip.
@pytest.mark.parametrize("spread", [0.0, 0.1, 1.0, 4.0, 100.0])
def test_lanes_draw_what_rows_draw_alone(spread):
    rng = np.random.default_rng(0)
    b, p = spread * rng.normal(size=20_000), rng.exponential(size=20_000) + 1e-3
    np.testing.assert_allclose(lanes(b, p), one_by_one(b, p), rtol=1e-12)


def test_exponential_where_nothing_was_observed():
    b, p = np.full(5000, -2.0), np.zeros(5000)
    np.testing.assert_allclose(lanes(b, p), one_by_one(b, p), rtol=1e-12)


@pytest.mark.parametrize("n", range(1, 18))
def test_lanes_that_are_not_full(n):
    rng = np.random.default_rng(n)
    b, p = rng.normal(size=n), rng.exponential(size=n) + 0.1
    np.testing.assert_allclose(lanes(b, p), one_by_one(b, p), rtol=1e-12)


def test_a_lane_does_not_depend_on_its_neighbours():
    rng = np.random.default_rng(3)
    b, p = rng.normal(size=64), np.ones(64)
    expected = lanes(b, p)
    b[::2] = rng.normal(scale=5.0, size=32)
    np.testing.assert_array_equal(lanes(b, p)[1::2], expected[1::2])
