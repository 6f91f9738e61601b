"""Vectorised draws equal the scalar draws, so the statistical tests of the scalar draws cover them as well."""

import numpy as np
import pytest

from bnmf.kernels.lanes import fill_lanes
from bnmf.kernels.random import stream_of
from bnmf.kernels.truncated_normal import draw_positive

KEY = np.uint64(9), np.uint64(27)


def scalar_draws(b, p):
    """Draw from the same streams with the scalar kernel."""
    streams = [tuple(map(np.uint64, stream_of(*KEY, np.uint64(i)))) for i in range(len(b))]
    return np.array([draw_positive(b[i], p[i], stream)[0] for i, stream in enumerate(streams)])


def vector_draws(b, p):
    out = np.empty(len(b))
    fill_lanes(b, p, *KEY, out)
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


@pytest.mark.parametrize("n", range(1, 18))
def test_partly_used_vectors(n):
    rng = np.random.default_rng(n)
    b, p = rng.normal(size=n), rng.exponential(size=n) + 0.1
    np.testing.assert_allclose(vector_draws(b, p), scalar_draws(b, p), rtol=1e-12)


def test_lane_does_not_depend_on_other_lanes():
    rng = np.random.default_rng(3)
    b, p = rng.normal(size=64), np.ones(64)
    expected = vector_draws(b, p)
    b[::2] = rng.normal(scale=5.0, size=32)
    np.testing.assert_array_equal(vector_draws(b, p)[1::2], expected[1::2])
