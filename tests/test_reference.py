"""The reference: Algorithm 1 on its own, checked without the compiled sampler."""

import numpy as np
import pytest

from tests.reference import draw_component, draw_two_piece, reference_sample
from tests.statistical.checks import assert_follows, two_piece_cdf


@pytest.mark.parametrize(
    ("b", "p", "kink", "max_rate"),
    [(1.0, 1.0, 0.0, 0.0), (-5.0, 2.0, 0.0, 0.0), (1.0, 1.0, 1.0, 1.0), (3.0, 1.0, 2.0, 2.0), (-3.0, 1.0, 0.5, 1.0)],
)
def test_draw_two_piece(b, p, kink, max_rate):
    size = 20_000
    draws = draw_two_piece(np.full(size, b), np.full(size, p), np.full(size, kink), max_rate, np.random.default_rng(0))
    assert_follows(draws, two_piece_cdf(b, p, kink, max_rate))


@pytest.mark.parametrize(("order", "expected"), [("interleaved", "WZWZ"), ("blocks", "WWZZ")])
def test_order_of_the_updates(order, expected, monkeypatch):
    seen = []

    def record(A, observed, W, Z, sigma2, model, rate, k, draw):
        seen.append(("W" if A.shape == (4, 3) else "Z", k))

    monkeypatch.setattr("tests.reference.draw_component", record)
    rng = np.random.default_rng(0)
    A, W, Z = np.ones((4, 3)), np.ones((4, 2)), np.ones((2, 3))
    next(reference_sample(A, A > 0, W, Z, "gee", order=order, rng=rng))
    assert "".join(factor for factor, _ in seen) == expected
    assert sorted(seen) == [("W", 0), ("W", 1), ("Z", 0), ("Z", 1)]


def test_unknown_model():
    with pytest.raises(ValueError, match="model must be one of gee, gl12, gl22, glinf, gl22inf, got 'gl3'"):
        draw_component(np.ones((2, 2)), np.eye(2) > 0, np.ones((2, 1)), np.ones((1, 2)), 1.0, "gl3", 1.0, 0, None)
