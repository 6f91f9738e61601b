"""Draws against distributions: what every statistical test asserts, and how sure it has to be (CONTRIBUTING.md)."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import integrate, stats

from bnmf.model import contaminated

P_VALUE = 1e-7


def assert_uniform(u: Any) -> None:
    """Assert that numbers are uniform on [0, 1]."""
    assert_follows(u, lambda x: x)


def assert_follows(draws: Any, cdf: Callable) -> None:
    """Assert that independent draws come from a continuous distribution (Kolmogorov and Smirnov)."""
    assert np.isfinite(draws).all()
    result = stats.kstest(np.ravel(draws), cdf)
    assert result.pvalue > P_VALUE, f"p = {result.pvalue:.1e}, largest distance {result.statistic:.3f}"


def assert_same(draws: Any, others: Any) -> None:
    """Assert that two sets of independent draws come from one distribution."""
    pvalue = same(draws, others)
    assert pvalue > P_VALUE, f"p = {pvalue:.1e}, means {np.mean(draws):.4g} and {np.mean(others):.4g}"


def same(draws: Any, others: Any) -> float:
    """Return the p-value of two sets of independent draws being of one distribution."""
    assert np.isfinite(draws).all()
    return float(stats.ks_2samp(draws, others, method="asymp").pvalue)


def assert_counts(counts: Any, probabilities: Any) -> None:
    """Assert that counts of independent draws have these probabilities (Pearson's chi-square)."""
    expected = np.sum(counts) * np.asarray(probabilities)
    pvalue = stats.chisquare(counts, expected).pvalue
    assert pvalue > P_VALUE, f"p = {pvalue:.1e}"


def support(b: float, p: float, low: float, high: float, drop: float = 45.0) -> tuple[float, float]:
    """Return the part of [low, high] in which exp(b w - p w²/2) is above exp(-drop) of its largest value."""
    mode = np.clip(b / p if p > 0 else np.inf * np.sign(b) if b else low, low, high)
    gradient = abs(b - p * mode) if mode in (low, high) else 0.0
    reach = 2.0 * drop / (gradient + np.sqrt(gradient**2 + 2.0 * drop * p)) if gradient or p else high - low
    return max(low, mode - reach), min(high, mode + reach)


def grid_cdf(log_density: Callable, points: Any) -> Callable:
    """Return the distribution function of exp(log_density) on a fine grid of sorted points."""
    logs = np.asarray(log_density(points))
    mass = integrate.cumulative_trapezoid(np.exp(logs - logs.max()), x=points, initial=0.0)
    return lambda x: np.interp(x, points, mass / mass[-1])


class Contaminated:
    """The law of contaminated noise of scale 1, with a share of gross errors."""

    def __init__(self, share: Any) -> None:
        self.share, self.wide = share, stats.norm(0.0, np.sqrt(contaminated.FACTOR))

    def logpdf(self, x: Any) -> Any:
        return np.logaddexp(np.log1p(-self.share) + stats.norm.logpdf(x), np.log(self.share) + self.wide.logpdf(x))

    def cdf(self, x: Any) -> Any:
        return (1.0 - self.share) * stats.norm.cdf(x) + self.share * self.wide.cdf(x)

    def sf(self, x: Any) -> Any:
        return (1.0 - self.share) * stats.norm.sf(x) + self.share * self.wide.sf(x)


def two_piece_cdf(b: float, p: float, kink: float, max_rate: float) -> Callable:
    """Return the distribution function of exp(b w - p w²/2 - max_rate max(w, kink)) on w >= 0, from a grid."""
    pieces = [support(b - max_rate, p, kink, np.inf)]
    if kink > 0:
        pieces.insert(0, support(b, p, 0.0, kink))
    points = np.unique(np.concatenate([np.linspace(*piece, 20_001) for piece in pieces]))
    top = max(pieces, key=lambda piece: piece[1] - piece[0])[0]

    def log_density(w: Any) -> Any:
        move = w - top  # differences from one point, which do not cancel where b w is large
        return (b - 0.5 * p * (w + top)) * move - max_rate * (np.maximum(w, kink) - np.maximum(top, kink))

    return grid_cdf(log_density, points)
