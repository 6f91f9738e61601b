"""Exact draws from exp(b w - p w²/2) on an interval, and the logarithm of its mass.

The natural parameters (b, p) are used throughout, never the mean b/p: p = 0 is then an exponential (b < 0) or a
uniform (b = 0) and no special case. An interval [low, high] is moved to [0, high - low] by b -> b - p low. Draws
are by rejection, so they are exact however far out in the tail the interval lies.
"""

import math

import numpy as np

from bnmf.kernels.compile import inlined, kernel
from bnmf.kernels.random import exponential, normal, stream_of, uniform

# Below -TAIL standard deviations an exponential proposal is accepted more often than a folded normal.
TAIL = 0.65
NODES, WEIGHTS = np.polynomial.legendre.leggauss(8)
SQRT_PI = math.sqrt(math.pi)


@kernel
def draw_positive(b, p, stream):
    """Draw from exp(b w - p w²/2) on w >= 0."""
    inverse = 1.0 / p
    return draw_scaled(b, p, inverse, math.sqrt(inverse), stream)


@inlined
def draw_scaled(b, p, inverse, scale, stream):
    """Draw as `draw_positive` does, given 1 / p and its root.

    Few steps lead from b to the value, because in a sweep the next b waits for it.
    """
    start = -b * scale
    if start > TAIL:
        while True:
            x, stream = exponential(stream)
            height, stream = exponential(stream)
            x /= -b
            if p * x * x <= 2.0 * height:
                return x, stream
    mean = b * inverse
    while True:
        x, stream = normal(stream)
        if start > 0.0:
            x = abs(x)
        x = x * scale + mean
        if x >= 0.0:
            return x, stream


@kernel
def draw_within(b, p, width, stream):
    """Draw from exp(b w - p w²/2) on 0 <= w <= width; the width may be infinite."""
    if b > p * width:  # rising up to the end: mirror it
        x, stream = draw_falling(p * width - b, p, width, stream)
        return width - x, stream
    if b <= 0.0:
        return draw_falling(b, p, width, stream)
    scale = 1.0 / math.sqrt(p)
    start = -b * scale
    if width < 2.0 * scale:
        while True:
            x, stream = uniform(stream)
            height, stream = exponential(stream)
            x *= width
            distance = x - b / p
            if p * distance * distance <= 2.0 * height:
                return x, stream
    while True:
        x, stream = normal(stream)
        x = (x - start) * scale
        if 0.0 <= x <= width:
            return x, stream


@kernel
def draw_falling(b, p, width, stream):
    """Draw within [0, width] where the density falls from 0 on (b <= 0)."""
    if (0.5 * p * width - b) * width < 1.0:
        while True:
            x, stream = uniform(stream)
            height, stream = exponential(stream)
            x *= width
            if (0.5 * p * x - b) * x <= height:
                return x, stream
    while True:
        x, stream = draw_positive(b, p, stream)
        if x <= width:
            return x, stream


@kernel
def draw_two_piece(b, p, corner, slope, stream):
    """Draw from exp(b w - p w²/2 - slope max(w, corner)) on w >= 0: the conditional of an entry under L∞.

    Where one of the two pieces, gone on beyond the corner, is nearly the whole density, a draw from it is accepted by
    what it has too much, more than a third of the time. Else the piece is drawn first, by its mass.
    """
    if slope * corner <= 1.0 or b - slope >= p * corner:
        while True:
            x, stream = draw_positive(b - slope, p, stream)
            if x >= corner:
                return x, stream
            height, stream = exponential(stream)
            if slope * (corner - x) <= height:
                return x, stream
    if b <= p * corner and p * corner * corner >= 1.0:
        while True:
            x, stream = draw_positive(b, p, stream)
            if x <= corner:
                return x, stream
            height, stream = exponential(stream)
            if slope * (x - corner) <= height:
                return x, stream
    beyond = b - slope - p * corner
    log_below = log_mass(b, p, corner)
    log_above = (b - 0.5 * p * corner) * corner + log_mass(beyond, p, math.inf)
    u, stream = uniform(stream)
    if u * (1.0 + math.exp(log_above - log_below)) < 1.0:
        return draw_within(b, p, corner, stream)
    x, stream = draw_positive(beyond, p, stream)
    return corner + x, stream


@kernel
def scaled_erfc(x):
    """Return exp(x²) erfc(x) for x >= 0."""
    if x < 25.0:
        return math.exp(x * x) * math.erfc(x)
    q = 0.5 / (x * x)
    return (1.0 - q * (1.0 - 3.0 * q * (1.0 - 5.0 * q * (1.0 - 7.0 * q)))) / (x * SQRT_PI)


@kernel
def log_mass(b, p, width):
    """Return the log of the integral of exp(b w - p w²/2) over 0 <= w <= width; the width may be infinite."""
    if width <= 0.0:
        return -math.inf
    if (abs(b) + 0.5 * p * width) * width < 1.0:  # nearly flat: differences of Φ would cancel here
        total = 0.0
        for node, weight in zip(NODES, WEIGHTS):  # noqa: B905 (not known to Numba)
            w = 0.5 * width * (1.0 + node)
            total += weight * math.exp((b - 0.5 * p * w) * w)
        return math.log(0.5 * width * total)
    if b > p * width:
        return (b - 0.5 * p * width) * width + log_mass_falling(p * width - b, p, width)
    if b <= 0.0:
        return log_mass_falling(b, p, width)
    root = math.sqrt(0.5 * p)
    mode = b / p
    area = math.erf(mode * root) + math.erf((width - mode) * root)
    return 0.5 * b * mode + math.log(0.5 * SQRT_PI * area / root)


@kernel
def log_mass_falling(b, p, width):
    """Return the log mass where the density falls by a factor e or more over [0, width]."""
    if p == 0.0:
        return math.log(-math.expm1(b * width) / -b)
    root = math.sqrt(0.5 * p)
    start = 0.5 * -b / root
    mass = scaled_erfc(start)
    if width < math.inf:
        mass -= math.exp((b - 0.5 * p * width) * width) * scaled_erfc(start + width * root)
    return math.log(0.5 * SQRT_PI * mass / root)


# --- the same for arrays: for exact prior draws, and so that the tests see just what the sampler uses


@kernel
def fill_within(b, p, width, key_high, key_low, out):
    """Fill `out` with draws from exp(b w - p w²/2) on [0, width], entry i from the stream of row i."""
    for i in range(out.size):
        stream = stream_of(key_high, key_low, i)
        out[i], _ = draw_within(b[i], p[i], width[i], stream)


@kernel
def fill_two_piece(b, p, corner, slope, key_high, key_low, out):
    """Fill `out` with two-piece draws, entry i from the stream of row i."""
    for i in range(out.size):
        stream = stream_of(key_high, key_low, i)
        out[i], _ = draw_two_piece(b[i], p[i], corner[i], slope[i], stream)


@kernel
def fill_log_mass(b, p, width, out):
    """Fill `out` with log masses."""
    for i in range(out.size):
        out[i] = log_mass(b[i], p[i], width[i])
