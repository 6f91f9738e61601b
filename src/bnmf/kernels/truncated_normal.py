"""Exact draws from exp(b w - p w²/2) on an interval, and the logarithm of its mass.

The natural parameters (b, p) are used throughout instead of the mean b/p. So p = 0 gives an exponential (b < 0) or a
uniform (b = 0) without a special case. An interval [low, high] is shifted to [0, high - low] by b -> b - p low. Draws
use rejection sampling, so they are exact however far the interval lies in the tail. A draw whose parameters exceed the
range of floating point is NaN.
"""

import math

import numpy as np

from bnmf.kernels.compile import inlined, kernel, linked
from bnmf.kernels.random import MAX_PROPOSALS, exponential, normal, stream_of, uniform

# Distance of zero above the mean, in standard deviations, from which an exponential proposal is accepted more often
# than a folded normal one.
TAIL_START = 0.65
# Gauss-Legendre quadrature on [-1, 1].
LEGENDRE_NODES, LEGENDRE_WEIGHTS = np.polynomial.legendre.leggauss(8)
SQRT_PI = math.sqrt(math.pi)


@linked
def draw_positive(b, p, stream):
    """Draw from exp(b w - p w²/2) on w >= 0."""
    inverse = 1.0 / p
    return draw_scaled(b, p, inverse, math.sqrt(inverse), stream)


@inlined
def draw_scaled(b, p, inverse, scale, stream):
    """Draw as `draw_positive` does, given inverse = 1 / p and scale = √inverse.

    Little is computed between b and the result, because in a sweep the next b depends on it.
    """
    start = -b * scale
    if start > TAIL_START:
        for _ in range(MAX_PROPOSALS):
            x, stream = exponential(stream)
            height, stream = exponential(stream)
            x /= -b
            if p * x * x <= 2.0 * height:
                return x, stream
        return math.nan, stream
    mean = b * inverse
    for _ in range(MAX_PROPOSALS):
        x, stream = normal(stream)
        if start > 0.0:
            x = abs(x)
        x = x * scale + mean
        if x >= 0.0:
            return x, stream
    return math.nan, stream


@linked
def draw_within(b, p, width, stream):
    """Draw from exp(b w - p w²/2) on 0 <= w <= width; the width may be infinite."""
    if b > p * width:  # increasing on the whole interval: mirror it
        x, stream = draw_decreasing(p * width - b, p, width, stream)
        return width - x, stream
    if b <= 0.0:
        return draw_decreasing(b, p, width, stream)
    scale = 1.0 / math.sqrt(p)
    start = -b * scale
    if width < 2.0 * scale:
        for _ in range(MAX_PROPOSALS):
            x, stream = uniform(stream)
            height, stream = exponential(stream)
            x *= width
            distance = x - b / p
            if p * distance * distance <= 2.0 * height:
                return x, stream
        return math.nan, stream
    for _ in range(MAX_PROPOSALS):
        x, stream = normal(stream)
        x = (x - start) * scale
        if 0.0 <= x <= width:
            return x, stream
    return math.nan, stream


@linked
def draw_decreasing(b, p, width, stream):
    """Draw within [0, width] if the density is decreasing there (b <= 0)."""
    if (0.5 * p * width - b) * width < 1.0:
        for _ in range(MAX_PROPOSALS):
            x, stream = uniform(stream)
            height, stream = exponential(stream)
            x *= width
            if (0.5 * p * x - b) * x <= height:
                return x, stream
        return math.nan, stream
    for _ in range(MAX_PROPOSALS):
        x, stream = draw_positive(b, p, stream)
        if not x > width:  # NaN ends the loop too
            return x, stream
    return math.nan, stream


@linked
def draw_two_piece(b, p, kink, max_rate, stream):
    """Draw from exp(b w - p w²/2 - max_rate max(w, kink)) on w >= 0: the conditional of an entry under L∞.

    If one of the two pieces, extended beyond the kink, is close to the whole density, it serves as the proposal of a
    rejection sampler that accepts more than a third of its draws. Otherwise a piece is selected by its mass first.
    """
    if max_rate * kink <= 1.0 or b - max_rate >= p * kink:
        for _ in range(MAX_PROPOSALS):
            x, stream = draw_positive(b - max_rate, p, stream)
            if not x < kink:  # NaN ends the loop too, here and below
                return x, stream
            height, stream = exponential(stream)
            if max_rate * (kink - x) <= height:
                return x, stream
        return math.nan, stream
    if b <= p * kink and p * kink * kink >= 1.0:
        for _ in range(MAX_PROPOSALS):
            x, stream = draw_positive(b, p, stream)
            if not x > kink:
                return x, stream
            height, stream = exponential(stream)
            if max_rate * (x - kink) <= height:
                return x, stream
        return math.nan, stream
    beyond = b - max_rate - p * kink
    log_below = log_mass(b, p, kink)
    log_above = (b - 0.5 * p * kink) * kink + log_mass(beyond, p, math.inf)
    u, stream = uniform(stream)
    if u * (1.0 + math.exp(log_above - log_below)) < 1.0:
        return draw_within(b, p, kink, stream)
    x, stream = draw_positive(beyond, p, stream)
    return kink + x, stream


@linked
def draw_real(b, p, rate, stream):
    """Draw from exp(b w - p w²/2 - rate |w|) on the real line: the conditional of an entry that may be negative."""
    if rate == 0.0:
        x, stream = normal(stream)
        inverse = 1.0 / p
        return x * math.sqrt(inverse) + b * inverse, stream
    sign, stream = draw_sign(b, p, rate, stream)
    x, stream = draw_positive(sign * b - rate, p, stream)
    return sign * x, stream


@linked
def draw_sign(b, p, rate, stream):
    """Return 1.0 or -1.0 with the masses of exp(b w - p w²/2 - rate |w|) on w > 0 and on w < 0."""
    u, stream = uniform(stream)
    ratio = math.exp(log_mass(-b - rate, p, math.inf) - log_mass(b - rate, p, math.inf))
    return (1.0 if u * (1.0 + ratio) < 1.0 else -1.0), stream


@linked
def scaled_erfc(x):
    """Return exp(x²) erfc(x) for x >= 0."""
    if x < 25.0:
        return math.exp(x * x) * math.erfc(x)
    q = 0.5 / (x * x)
    return (1.0 - q * (1.0 - 3.0 * q * (1.0 - 5.0 * q * (1.0 - 7.0 * q)))) / (x * SQRT_PI)


@linked
def log_mass(b, p, width):
    """Return the log of the integral of exp(b w - p w²/2) over 0 <= w <= width; the width may be infinite."""
    if width <= 0.0:
        return -math.inf
    if (abs(b) + 0.5 * p * width) * width < 1.0:  # nearly flat: differences of Φ would cancel
        total = 0.0
        for node, weight in zip(LEGENDRE_NODES, LEGENDRE_WEIGHTS):  # noqa: B905 (Numba has no strict)
            w = 0.5 * width * (1.0 + node)
            total += weight * math.exp((b - 0.5 * p * w) * w)
        return math.log(0.5 * width * total)
    if b > p * width:
        return (b - 0.5 * p * width) * width + log_mass_decreasing(p * width - b, p, width)
    if b <= 0.0:
        return log_mass_decreasing(b, p, width)
    sqrt_half_p = math.sqrt(0.5 * p)
    mode = b / p
    area = math.erf(mode * sqrt_half_p) + math.erf((width - mode) * sqrt_half_p)
    return 0.5 * b * mode + math.log(0.5 * SQRT_PI * area / sqrt_half_p)


@linked
def log_mass_decreasing(b, p, width):
    """Return the log mass if the density is decreasing, by a factor of at least e over [0, width]."""
    if p == 0.0:
        return math.log(-math.expm1(b * width) / -b)
    sqrt_half_p = math.sqrt(0.5 * p)
    start = 0.5 * -b / sqrt_half_p
    mass = scaled_erfc(start)
    if width < math.inf:
        mass -= math.exp((b - 0.5 * p * width) * width) * scaled_erfc(start + width * sqrt_half_p)
    return math.log(0.5 * SQRT_PI * mass / sqrt_half_p)


# --- The same for arrays: for exact draws from the priors, and for the tests.


@kernel
def fill_exponential(rate, key_high, key_low, out):
    """Fill `out` with draws from exp(-rate w) on w >= 0, entry i from the stream of row i.

    They are the draws of `fill_within` with p = 0, which takes longer to compile.
    """
    for i in range(out.size):
        x, _ = exponential(stream_of(key_high, key_low, i))
        out[i] = x / rate[i]


@kernel
def fill_within(b, p, width, key_high, key_low, out):
    """Fill `out` with draws from exp(b w - p w²/2) on [0, width], entry i from the stream of row i."""
    for i in range(out.size):
        stream = stream_of(key_high, key_low, i)
        out[i], _ = draw_within(b[i], p[i], width[i], stream)


@kernel
def fill_two_piece(b, p, kink, max_rate, key_high, key_low, out):
    """Fill `out` with draws of `draw_two_piece`, entry i from the stream of row i."""
    for i in range(out.size):
        stream = stream_of(key_high, key_low, i)
        out[i], _ = draw_two_piece(b[i], p[i], kink[i], max_rate[i], stream)


@kernel
def fill_real(b, p, rate, key_high, key_low, out):
    """Fill `out` with draws of `draw_real`, entry i from the stream of row i."""
    for i in range(out.size):
        stream = stream_of(key_high, key_low, i)
        out[i], _ = draw_real(b[i], p[i], rate[i], stream)


@kernel
def fill_log_mass(b, p, width, out):
    """Fill `out` with values of `log_mass`."""
    for i in range(out.size):
        out[i] = log_mass(b[i], p[i], width[i])
