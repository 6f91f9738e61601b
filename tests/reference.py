"""Algorithm 1 of the paper, as literally as NumPy allows: oracle of the tests and baseline of the benchmarks.

Nothing here is shared with the compiled sampler. An update takes one component of one factor, for all rows at once:
given the other components the rows are independent. It costs O(MNK), so a sweep costs O(MNK²) as the paper says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy import special, stats

from bnmf.utils.typing import Bools, Floats

# What an entry is drawn from: exp(b w - p w²/2 - max_rate max(w, kink)), one for each row.
Draw = Callable[[Floats, Floats, Floats, float], Floats]


def reference_sample(
    A: Floats,
    observed: Bools,
    W: Floats,
    Z: Floats,
    model: str,
    rate: float = 0.1,
    *,
    noise_shape: float = 1.0,
    noise_scale: float = 1.0,
    order: str = "interleaved",
    rng: np.random.Generator,
) -> Iterator[tuple[Floats, Floats, float]]:
    """Yield (W, Z, σ²) after each sweep of the paper's Algorithm 1, endlessly.

    `order` is "interleaved", component by component, w_:k and then z_k:, as the paper has it; or "blocks", all of W and
    then all of Z. σ² has an inverse-gamma prior with `noise_shape` and `noise_scale`.
    """
    A, W, Z = np.where(observed, A, 0.0), W.copy(), Z.copy()
    K = W.shape[1]
    sigma2 = _draw_noise(A, observed, W, Z, noise_shape, noise_scale, rng)
    halves = [("W", k) for k in range(K)] + [("Z", k) for k in range(K)]
    if order == "interleaved":
        halves = [(factor, k) for k in range(K) for factor in "WZ"]

    def draw(b: Floats, p: Floats, kink: Floats, max_rate: float) -> Floats:
        return draw_two_piece(b, p, kink, max_rate, rng)

    while True:
        for factor, k in halves:
            if factor == "W":
                draw_component(A, observed, W, Z, sigma2, model, rate, k, draw)
            else:
                draw_component(A.T, observed.T, Z.T, W.T, sigma2, model, rate, k, draw)
        sigma2 = _draw_noise(A, observed, W, Z, noise_shape, noise_scale, rng)
        yield W.copy(), Z.copy(), sigma2


def draw_component(
    A: Floats, observed: Bools, W: Floats, Z: Floats, sigma2: float, model: str, rate: float, k: int, draw: Draw
) -> None:
    """Draw column k of W in place from its conditional (the paper's table, with the exact rule for L∞)."""
    z = Z[k]
    residual = observed * (A - W @ Z + np.outer(W[:, k], z))
    p = observed @ z**2 / sigma2
    b = residual @ z / sigma2
    others = np.delete(W, k, axis=1)
    kink = others.max(axis=1, initial=0.0)
    max_rate = 0.0
    if model == "gee":
        b = b - rate
    elif model == "gl12":
        b, p = b - rate * others.sum(axis=1), p + rate
    elif model == "gl22":
        p = p + rate
    elif model == "glinf":
        max_rate = rate
    elif model == "gl22inf":
        p, max_rate = p + rate, rate
    else:
        raise ValueError(f"model must be one of gee, gl12, gl22, glinf, gl22inf, got {model!r}")
    W[:, k] = draw(b, p, kink, max_rate)


def draw_two_piece(b: Floats, p: Floats, kink: Floats, max_rate: float, rng: np.random.Generator) -> Floats:
    """Draw from exp(b w - p w²/2 - max_rate max(w, kink)) on w >= 0, with SciPy's truncated normal."""
    if max_rate == 0.0:
        return _truncated_normal(b / p, 1.0 / np.sqrt(p), np.zeros_like(b), np.full_like(b, np.inf), rng)
    sd = 1.0 / np.sqrt(p)
    below, above = b / p, (b - max_rate) / p
    with np.errstate(divide="ignore"):
        log_below = 0.5 * b * below + np.log(_interval(-below / sd, (kink - below) / sd))
        log_above = 0.5 * (b - max_rate) * above + max_rate * kink + special.log_ndtr((above - kink) / sd)
    takes_below = rng.uniform(size=b.shape) < special.expit(log_below - log_above)
    mean = np.where(takes_below, below, above)
    low, high = np.where(takes_below, 0.0, kink), np.where(takes_below, kink, np.inf)
    return _truncated_normal(mean, sd, low, high, rng)


def _interval(low: Floats, high: Floats) -> Floats:
    """Return Φ(high) - Φ(low) from the side where it does not cancel."""
    flip = low > 0
    return special.ndtr(np.where(flip, -low, high)) - special.ndtr(np.where(flip, -high, low))


def _truncated_normal(mean: Floats, sd: Floats, low: Floats, high: Floats, rng: np.random.Generator) -> Floats:
    a, b = (low - mean) / sd, (high - mean) / sd
    return np.clip(stats.truncnorm.rvs(a, b, loc=mean, scale=sd, random_state=rng), low, high)


def _draw_noise(
    A: Floats, observed: Bools, W: Floats, Z: Floats, shape: float, scale: float, rng: np.random.Generator
) -> float:
    squared_error = np.sum((observed * (A - W @ Z)) ** 2)
    return float(1.0 / rng.gamma(shape + 0.5 * observed.sum(), 1.0 / (scale + 0.5 * squared_error)))
