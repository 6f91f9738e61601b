"""Exact, independent draws from every prior that four coefficients can make.

Three steps, each undone by the one before it:

1. *Coupling.* ½ c (Σw)² is bounded by its tangent: exp(-½ c s²) = exp(½ c t² - c t s) exp(-½ c (s - t)²). So draw with
   c t added to `linear` and accept with probability exp(-½ c (s - t)²). Near t = E s about two in three are accepted,
   whatever the number of components.
2. *Slope.* exp(-slope max w) = ∫ slope exp(-slope u) 1[all w < u] du. So draw u from its marginal, which is
   log-concave, and then the entries within [0, u].
3. What is left are independent truncated normals.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from bnmf.kernels.truncated_normal import fill_log_mass, fill_within

Floats = NDArray[np.float64]


def draw(
    shape: tuple[int, int],
    linear: Floats,
    quadratic: Floats,
    coupling: float,
    slope: float,
    rng: np.random.Generator,
) -> Floats:
    """Draw a (rows, K) factor; `linear` and `quadratic` have shape (1 or rows, K).

    Parameters
    ----------
    shape : tuple of int
        Rows and components.
    linear, quadratic : ndarray
        Coefficients by component or by entry.
    coupling, slope : float
        The other two coefficients.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray of shape `shape`
        The draw.
    """
    if coupling == 0.0:
        return _with_slope(shape[0], linear, quadratic, slope, rng)
    rest = quadratic - coupling  # the square of the sum holds the squares of the entries
    shift = _tangent_point(linear, rest, coupling, slope, rng)
    rows = max(len(linear), len(quadratic), len(shift))
    linear = np.broadcast_to(linear + coupling * shift, (rows, shape[1]))
    rest = np.broadcast_to(rest, (rows, shape[1]))
    out = np.empty(shape)
    waiting = np.arange(shape[0])
    while waiting.size:
        which = waiting if rows > 1 else slice(None)
        w = _with_slope(waiting.size, linear[which], rest[which], slope, rng)
        distance = w.sum(axis=1) - (shift[which, 0] if len(shift) > 1 else shift[0, 0])
        accepted = rng.exponential(size=waiting.size) >= 0.5 * coupling * distance**2
        out[waiting[accepted]] = w[accepted]
        waiting = waiting[~accepted]
    return out


def _tangent_point(linear: Floats, rest: Floats, coupling: float, slope: float, rng: np.random.Generator) -> Floats:
    """Return t near the mean of the row sum under the tilted prior. Any t is valid; a near one is accepted often."""
    repeats = 64
    shift = np.full((max(len(linear), len(rest)), 1), np.sqrt(linear.shape[1] / coupling))
    for _ in range(8):
        tilted = np.repeat(linear + coupling * shift, repeats, axis=0)
        quadratic = np.repeat(np.broadcast_to(rest, (len(shift), rest.shape[1])), repeats, axis=0)
        sums = _with_slope(len(tilted), tilted, quadratic, slope, rng).sum(axis=1)
        shift = np.sqrt(shift * sums.reshape(-1, repeats).mean(axis=1, keepdims=True))
    return shift


def _with_slope(rows: int, linear: Floats, quadratic: Floats, slope: float, rng: np.random.Generator) -> Floats:
    """Draw `rows` rows with independent entries but for the slope."""
    shape = (rows, linear.shape[1])
    bound = np.full((rows, 1), np.inf)
    if slope > 0.0:
        bound = _bound(rows, linear, quadratic, slope, rng)
    out = np.empty(shape[0] * shape[1])
    # Copies, because a read-only view would have the kernel compiled once more.
    spread = [np.broadcast_to(x, shape).flatten() for x in (-linear, quadratic, bound)]
    fill_within(*spread, *rng.integers(2**64, size=2, dtype=np.uint64), out)
    return out.reshape(shape)


def _bound(rows: int, linear: Floats, quadratic: Floats, slope: float, rng: np.random.Generator) -> Floats:
    """Draw u from exp(-slope u) Π_k ∫_0^u exp(-linear w - ½ quadratic w²) dw, which is log-concave in u.

    The envelope is flat between two points around the mode where the density is down by a factor e, and beyond
    them exponential, along the chords from the mode. About two in three are accepted.
    """
    n_different = max(len(linear), len(quadratic))
    linear, quadratic = (np.broadcast_to(x, (n_different, linear.shape[1])) for x in (linear, quadratic))

    def log_density(u: Floats, which: NDArray[np.intp]) -> Floats:
        b, p = -linear[which].ravel(), np.ascontiguousarray(quadratic[which]).ravel()
        masses = np.empty(b.size)
        fill_log_mass(b, p, np.repeat(u, linear.shape[1]), masses)
        return masses.reshape(-1, linear.shape[1]).sum(axis=1) - slope * u

    every = np.arange(n_different)
    right = np.full(n_different, linear.shape[1] / slope)  # the mode without linear and quadratic terms
    while np.any(rising := log_density(2.0 * right, every) > log_density(right, every)):
        right = np.where(rising, 2.0 * right, right)
    mode = _argmax(lambda u: log_density(u, every), 2.0 * right)
    top = log_density(mode, every)
    low = _crossing(lambda u: log_density(u, every) - (top - 1.0), np.zeros(n_different), mode)
    high = mode + 1.0 / slope
    while np.any(short := log_density(high, every) > top - 1.0):
        high = np.where(short, mode + 2.0 * (high - mode), high)
    high = _crossing(lambda u: log_density(u, every) - (top - 1.0), high, mode)

    out = np.empty(rows)
    waiting = np.arange(rows)
    while waiting.size:
        which = waiting if n_different > 1 else np.zeros(waiting.size, np.intp)
        centre, left, right = mode[which], low[which], high[which]
        # The three parts have areas (right - left), and 1/e times each of the two sides.
        place = rng.uniform(size=waiting.size) * (right - left) * (1.0 + np.exp(-1.0))
        tail = rng.exponential(size=waiting.size)
        inside = place < right - left
        above = ~inside & (place < right - left + np.exp(-1.0) * (right - centre))
        u = np.where(inside, left + place, left - tail * (centre - left))
        u = np.where(above, right + tail * (right - centre), u)
        envelope = np.where(inside, 0.0, -1.0 - tail)
        height = log_density(np.maximum(u, 0.0), which) - top[which]
        accepted = (u > 0.0) & (-rng.exponential(size=waiting.size) < height - envelope)
        out[waiting[accepted]] = u[accepted]
        waiting = waiting[~accepted]
    return out[:, None]


def _argmax(f: Callable[[Floats], Floats], right: Floats) -> Floats:
    """Return where concave functions on [0, right] are largest, by golden section, all at once."""
    ratio = (np.sqrt(5.0) - 1.0) / 2.0
    a, b = np.zeros_like(right), right.copy()
    for _ in range(80):
        c, d = b - ratio * (b - a), a + ratio * (b - a)
        left = f(c) > f(d)
        a, b = np.where(left, a, c), np.where(left, d, b)
    return 0.5 * (a + b)


def _crossing(f: Callable[[Floats], Floats], outside: Floats, inside: Floats) -> Floats:
    """Return the point between where f > 0 turns into f <= 0, on the outer side."""
    for _ in range(60):
        middle = 0.5 * (outside + inside)
        positive = f(middle) > 0
        outside, inside = np.where(positive, outside, middle), np.where(positive, middle, inside)
    return outside
