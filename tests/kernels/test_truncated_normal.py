"""Draws from exp(b w - p w²/2) on intervals, with and without the kinks of L∞ and |w|, against their densities."""

import numpy as np
import pytest
from scipy import integrate, special

from bnmf.kernels.compiled import log_mass
from tests.kernels.draws import scalar_draws, streams_of
from tests.statistical.checks import assert_follows, grid_cdf, support, two_piece_cdf

KEY = np.uint64(3), np.uint64(5)
N = 20_000
INF = np.inf

# (b, p): means from 40 standard deviations below zero to 1e4 above it, and zero precision.
HALF_LINES = [
    (-40.0, 1.0), (-4e3, 1e4), (-5.0, 1.0), (-0.66, 1.0), (-0.64, 1.0), (-0.3, 1.0), (0.0, 1.0), (0.7, 1.0), (3.0, 1.0),
    (1e4, 1.0), (1e-3, 1e-8), (-1e-6, 1e-14), (-1e6, 1e-3), (-2.0, 0.0), (-1e-9, 0.0), (1e8, 1e9), (-1e150, 1e300),
]  # fmt: skip
# (b, p, width): increasing, decreasing, with the mode inside; wide, narrow, and 1e-12 wide.
INTERVALS = [
    (0.0, 0.0, 2.0), (3.0, 0.0, 2.0), (-3.0, 0.0, 2.0), (1e5, 0.0, 2.0), (-1e5, 0.0, 2.0), (0.5, 0.0, 1.0),
    (1.0, 1.0, 1.5), (1.0, 1.0, 2.5), (1.0, 1.0, 1.0), (5.0, 1.0, 4.0), (5.0, 1.0, 8.0), (40.0, 1.0, 0.5),
    (-40.0, 1.0, 0.5), (-40.0, 1.0, 1e-12), (40.0, 1.0, 1e-12), (-1.0, 1.0, 0.5), (-0.2, 1.0, 0.9), (-0.2, 1.0, 3.0),
    (1e3, 1.0, 1e-12), (1e13, 1.0, 1e-12), (-1e13, 1e3, 1e-12), (0.1, 1e20, 1.0), (1e11, 1.0, 1.0), (1e4, 1e4, 50.0),
    (1e-300, 1e-300, 2.0), (0.9, 1.0, 1.9), (2.0, 1.0, 1.9),
]  # fmt: skip
# (b, p, kink, max_rate)
TWO_PIECES = [
    (1.0, 1.0, 1.0, 1.0), (1.0, 1.0, 0.0, 0.5), (3.0, 1.0, 2.0, 2.0), (-3.0, 1.0, 0.5, 1.0), (0.0, 0.0, 1.5, 2.0),
    (1.0, 0.0, 1.5, 2.0), (-1.0, 0.0, 1.5, 2.0), (0.4, 1.0, 1e-12, 1.0), (40.0, 1.0, 39.0, 30.0),
    (40.0, 1.0, 41.0, 5.0),
    (-40.0, 1.0, 0.02, 5.0), (1e3, 10.0, 100.0, 3.0), (1e3, 10.0, 100.1, 300.0), (2.0, 1e-8, 3.0, 2.0),
    (500.0, 0.0, 1.0, 500.5), (30.0, 1.0, 5.0, 30.0), (5.0, 1e4, 3e-4, 100.0), (1.0, 1.0, 50.0, 1.0),
]  # fmt: skip


def draws_of(kind, n, *arguments):
    return scalar_draws(kind, streams_of(KEY, n), *arguments)


def interval_cdf(b, p, width):
    """Return the distribution function from a grid; exponents are relative to the mode, so that nothing cancels."""
    low, high = support(b, p, 0.0, width)
    mode = low if b <= p * low else high if b >= p * high else b / p
    gradient = b - p * mode if mode in (low, high) else 0.0
    return grid_cdf(lambda w: (gradient - 0.5 * p * (w - mode)) * (w - mode), np.linspace(low, high, 20_001))


def test_draw_positive():
    for b, p in HALF_LINES:
        draws = draws_of("positive", N, b, p)
        assert draws.min() >= 0
        assert_follows(draws, interval_cdf(b, p, INF))


def test_draw_within():
    for b, p, width in INTERVALS + [(b, p, INF) for b, p in HALF_LINES]:
        draws = draws_of("within", N, b, p, width)
        assert draws.min() >= 0
        assert draws.max() <= width
        assert_follows(draws, interval_cdf(b, p, width))


def test_draw_two_piece():
    for b, p, kink, max_rate in TWO_PIECES:
        draws = draws_of("two_piece", N, b, p, kink, max_rate)
        assert draws.min() >= 0
        assert_follows(draws, two_piece_cdf(b, p, kink, max_rate))


@pytest.mark.parametrize("b", [1e12, -1e12, 1e160, -1e160])
def test_draws_with_a_kink_and_extreme_b(b):
    draws = draws_of("two_piece", 100, b, 1.0, 1.0, 1.0)
    np.testing.assert_allclose(draws, b if b > 0 else 0.0, rtol=1e-6, atol=20 / abs(b))
    np.testing.assert_allclose(draws_of("real", 100, b, 1.0, 0.0, 1.0), b, rtol=1e-6)


# The mode at zero and far from it, either side alone, a narrow peak at zero, no precision and no kink.
@pytest.mark.parametrize(
    ("b", "p", "rate"),
    [
        (0.0, 1.0, 1.0), (0.5, 1.0, 1.0), (-0.5, 2.0, 0.1), (5.0, 1.0, 3.0), (-9.0, 1.0, 8.0), (30.0, 1.0, 1.0),
        (0.4, 0.01, 3.0), (100.0, 1e4, 50.0), (0.0, 0.0, 2.0), (1.0, 0.0, 1.5), (-2.0, 3.0, 0.0),
    ],
)  # fmt: skip
def test_draw_real(b, p, rate):
    draws = draws_of("real", N, b, p, 0.0, rate)
    below, above = support(-b - rate, p, 0.0, INF), support(b - rate, p, 0.0, INF)
    points = np.concatenate([-np.linspace(*below, 20_001)[:0:-1], np.linspace(*above, 20_001)])
    assert_follows(draws, grid_cdf(lambda w: (b - 0.5 * p * w) * w - rate * np.abs(w), points))


# Parameters for which no proposal is ever accepted: 1 / p overflows, or b is no number. One for each rejection loop.
@pytest.mark.parametrize(("b", "p"), [(-1e-300, 1e-310), (np.nan, 1.0)])
def test_draws_beyond_the_range_of_floating_point_are_no_numbers(b, p):
    assert np.isnan(draws_of("positive", 10, b, p)).all()
    for width in (0.5, 5.0, INF):
        assert np.isnan(draws_of("within", 10, b, p, width)).all() or (b < 0 and width < INF)
    for kink, max_rate in ((1.0, 1e-320), (1e160, 1.0)):
        assert np.isnan(draws_of("two_piece", 10, b, p, kink, max_rate)).all()


def test_log_mass_against_quadrature():
    for b, p, width in INTERVALS + [(b, p, INF) for b, p in HALF_LINES]:
        mass = log_mass(np.array([b]), np.array([p]), np.array([width]))
        low, high = support(b, p, 0.0, width)
        mode = low if b <= p * low else high if b >= p * high else b / p
        gradient = b - p * mode if mode in (low, high) else 0.0
        # Relative to the mode and in units of the support, so that the quadrature has no scales such as 1e-12 or 1e150.
        scale = high - low
        pieces = [((low - mode) / scale, 0.0), (0.0, (high - mode) / scale)]
        options = {"epsabs": 1e-14, "epsrel": 1e-12, "limit": 200}
        total = sum(
            integrate.quad(lambda t: np.exp((gradient - 0.5 * p * t * scale) * t * scale), *piece, **options)[0]
            for piece in pieces
        )
        expected = (b - 0.5 * p * mode) * mode + np.log(scale) + np.log(total)
        np.testing.assert_allclose(mass[0], expected, rtol=1e-11, atol=1e-9)


@pytest.mark.parametrize(("b", "p"), [(b, p) for b, p in HALF_LINES if 0 < p < 1e100])
def test_log_mass_of_a_half_line_against_the_normal_distribution(b, p):
    mass = log_mass(np.array([b]), np.array([p]), np.array([INF]))
    expected = 0.5 * b * b / p + special.log_ndtr(b / np.sqrt(p)) + 0.5 * np.log(2 * np.pi / p)
    np.testing.assert_allclose(mass[0], expected, rtol=1e-9, atol=1e-9 * max(1.0, b * b / p))


def test_log_mass_of_an_empty_interval():
    assert log_mass(np.ones(1), np.ones(1), np.zeros(1)) == -INF
