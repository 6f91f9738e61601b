"""Exact, independent draws from every prior that coefficients can describe.

Three steps, each reduced to the next:

1. *Pairwise term.* ½ c (Σw)² is bounded by its tangent: exp(-½ c s²) = exp(½ c t² - c t s) exp(-½ c (s - t)²). So draw
   with c t added to `linear` and accept with probability exp(-½ c (s - t)²). Near t = E s about two in three proposals
   are accepted, whatever the number of components.
2. *Max term.* exp(-max_rate max w) = ∫ max_rate exp(-max_rate u) 1[all w < u] du. So draw u from its marginal, which
   is log-concave, and then the entries within [0, u].
3. The remaining entries are independent truncated normals.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit

from bnmf.kernels.compiled import draw_exponential, draw_within, log_mass
from bnmf.utils.typing import Bools, Floats, Indices, Shape

if TYPE_CHECKING:
    from bnmf.priors.base import Coefficients

# Rounds of proposals for rows that are still pending, about two in three of which are accepted in each. Only numbers
# beyond the range of floating point need more; what is pending then is NaN.
MAX_ROUNDS = 200
# Doublings of an interval: from the smallest positive number to the largest.
MAX_DOUBLINGS = 2100


def draw(prior: Coefficients, shape: Shape, rng: np.random.Generator) -> Floats:
    """Draw a (rows, K) factor, given the coefficients of its prior."""
    linear, quadratic, pairwise, max_rate = prior.linear, prior.quadratic, prior.pairwise, prior.max_rate
    if prior.absolute is not None:
        return _draw_real(shape, linear, quadratic, prior.absolute, rng)
    if pairwise == 0.0:
        return _with_max_term(shape[0], linear, quadratic, max_rate, rng)
    rest = quadratic - pairwise  # the square of the sum includes the squares of the entries
    shift = _tangent_point(linear, rest, pairwise, max_rate, rng)
    rows = max(len(linear), len(quadratic), len(shift))
    linear = np.broadcast_to(linear + pairwise * shift, (rows, shape[1]))
    rest = np.broadcast_to(rest, (rows, shape[1]))

    def propose(pending: Indices) -> tuple[Floats, Bools]:
        which = pending if rows > 1 else slice(None)
        w = _with_max_term(pending.size, linear[which], rest[which], max_rate, rng)
        distance = w.sum(axis=1) - (shift[which, 0] if len(shift) > 1 else shift[0, 0])
        return w, ~(rng.exponential(size=pending.size) < 0.5 * pairwise * distance**2)  # NaN is accepted

    return _accepted(np.full(shape, np.nan), propose)


def _accepted(out: Floats, propose: Callable[[Indices], tuple[Floats, Bools]]) -> Floats:
    """Fill rows with proposals, given for rows that are still pending with whether each is accepted."""
    pending = np.arange(len(out))
    for _ in range(MAX_ROUNDS):
        if not pending.size:
            break
        proposed, is_accepted = propose(pending)
        out[pending[is_accepted]] = proposed[is_accepted]
        pending = pending[~is_accepted]
    return out


def _draw_real(shape: Shape, linear: Floats, quadratic: Floats, absolute: Floats, rng: np.random.Generator) -> Floats:
    """Draw a (rows, K) factor of real numbers: signs by the masses of both half-lines, then sizes."""
    slope, precision, rate = (np.broadcast_to(x, shape).flatten() for x in (-linear, quadratic, absolute))
    unbounded = np.full(slope.size, np.inf)
    above = log_mass(slope - rate, precision, unbounded)
    below = log_mass(-slope - rate, precision, unbounded)
    is_positive = rng.uniform(size=slope.size) < expit(above - below)
    key = rng.integers(2**64, size=2, dtype=np.uint64)
    size = draw_within(np.where(is_positive, slope, -slope) - rate, precision, unbounded, key)
    return np.where(is_positive, size, -size).reshape(shape)


def _tangent_point(linear: Floats, rest: Floats, pairwise: float, max_rate: float, rng: np.random.Generator) -> Floats:
    """Return t near the mean row sum under the tilted prior."""
    # Any t is valid; a nearer one is accepted more often.
    repeats = 64
    shift = np.full((max(len(linear), len(rest)), 1), np.sqrt(linear.shape[1] / pairwise))
    for _ in range(8):
        tilted = np.repeat(linear + pairwise * shift, repeats, axis=0)
        quadratic = np.repeat(np.broadcast_to(rest, (len(shift), rest.shape[1])), repeats, axis=0)
        sums = _with_max_term(len(tilted), tilted, quadratic, max_rate, rng).sum(axis=1)
        shift = np.sqrt(shift * sums.reshape(-1, repeats).mean(axis=1, keepdims=True))
    return shift


def _with_max_term(rows: int, linear: Floats, quadratic: Floats, max_rate: float, rng: np.random.Generator) -> Floats:
    """Draw `rows` rows whose entries are independent except for the max term."""
    shape = (rows, linear.shape[1])
    bound = np.full((rows, 1), np.inf)
    if max_rate > 0.0:
        bound = _bound(rows, linear, quadratic, max_rate, rng)
    key = rng.integers(2**64, size=2, dtype=np.uint64)
    if max_rate == 0.0 and not quadratic.any():
        return draw_exponential(np.broadcast_to(linear, shape).flatten(), key).reshape(shape)
    b, p, width = (np.broadcast_to(x, shape).flatten() for x in (-linear, quadratic, bound))
    return draw_within(b, p, width, key).reshape(shape)


def _bound(rows: int, linear: Floats, quadratic: Floats, max_rate: float, rng: np.random.Generator) -> Floats:
    """Draw u from exp(-max_rate u) Π_k ∫_0^u exp(-linear w - ½ quadratic w²) dw, which is log-concave in u."""
    # The envelope is flat between the two points around the mode where the density has fallen by a factor e, and
    # exponential beyond them, along the chords from the mode. About two in three proposals are accepted.
    n_distinct = max(len(linear), len(quadratic))
    linear, quadratic = (np.broadcast_to(x, (n_distinct, linear.shape[1])) for x in (linear, quadratic))

    def log_density(u: Floats, which: Indices) -> Floats:
        b, p = -linear[which].ravel(), np.ascontiguousarray(quadratic[which]).ravel()
        masses = log_mass(b, p, np.repeat(u, linear.shape[1]))
        return masses.reshape(-1, linear.shape[1]).sum(axis=1) - max_rate * u

    every = np.arange(n_distinct)
    right = np.full(n_distinct, linear.shape[1] / max_rate)  # the mode without linear and quadratic terms
    right = _doubled(right, 0.0, lambda u: log_density(2.0 * u, every) > log_density(u, every))
    mode = _argmax(lambda u: log_density(u, every), 2.0 * right)
    top = log_density(mode, every)
    low = _crossing(lambda u: log_density(u, every) - (top - 1.0), np.zeros(n_distinct), mode)
    high = _doubled(mode + 1.0 / max_rate, mode, lambda u: log_density(u, every) > top - 1.0)
    high = _crossing(lambda u: log_density(u, every) - (top - 1.0), high, mode)

    def propose(pending: Indices) -> tuple[Floats, Bools]:
        which = pending if n_distinct > 1 else np.zeros(pending.size, np.intp)
        centre, left, right = mode[which], low[which], high[which]
        # The three parts have areas (right - left), and 1/e times each of the two sides.
        place = rng.uniform(size=pending.size) * (right - left) * (1.0 + np.exp(-1.0))
        tail = rng.exponential(size=pending.size)
        inside = place < right - left
        above = ~inside & (place < right - left + np.exp(-1.0) * (right - centre))
        u = np.where(inside, left + place, left - tail * (centre - left))
        u = np.where(above, right + tail * (right - centre), u)
        envelope = np.where(inside, 0.0, -1.0 - tail)
        height = log_density(np.maximum(u, 0.0), which) - top[which]
        return u, (u > 0.0) & (-rng.exponential(size=pending.size) < height - envelope)

    return _accepted(np.full(rows, np.nan), propose)[:, None]


def _doubled(x: Floats, centre: Any, is_short: Callable[[Floats], Bools]) -> Floats:
    """Return numbers whose distances from a centre are doubled until they are no longer too short."""
    for _ in range(MAX_DOUBLINGS):
        short = is_short(x)
        if not short.any():
            break
        x = np.where(short, centre + 2.0 * (x - centre), x)
    return x


def _argmax(f: Callable[[Floats], Floats], right: Floats) -> Floats:
    """Return the maximisers of concave functions on [0, right] by golden-section search, vectorised."""
    ratio = (np.sqrt(5.0) - 1.0) / 2.0
    a, b = np.zeros_like(right), right.copy()
    for _ in range(80):
        c, d = b - ratio * (b - a), a + ratio * (b - a)
        left = f(c) > f(d)
        a, b = np.where(left, a, c), np.where(left, d, b)
    return 0.5 * (a + b)


def _crossing(f: Callable[[Floats], Floats], outside: Floats, inside: Floats) -> Floats:
    """Return by bisection where f changes sign between `inside` (f > 0) and `outside`, on the outer side."""
    for _ in range(60):
        middle = 0.5 * (outside + inside)
        positive = f(middle) > 0
        outside, inside = np.where(positive, outside, middle), np.where(positive, middle, inside)
    return outside
