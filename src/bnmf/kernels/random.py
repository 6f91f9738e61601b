"""Random streams, one for each row of each half of each sweep, and the two ziggurats that read them.

A stream is xoshiro256++ (Blackman and Vigna), a tuple of four 64-bit words: stream in, value and stream out.
Tuples stay in registers, where an array would be counted, checked and stored at every draw.
"""

import math

import numpy as np

from bnmf.kernels.compile import inlined, kernel

U64 = np.uint64
GOLDEN = U64(0x9E3779B97F4A7C15)
TO_UNIT = 2.0**-53


@kernel
def mix(x):
    """SplitMix64's finaliser: a bijection of 64-bit words in which every bit depends on every other."""
    x = (x ^ (x >> U64(30))) * U64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> U64(27))) * U64(0x94D049BB133111EB)
    return x ^ (x >> U64(31))


@kernel
def stream_of(key_high, key_low, row):
    """Return the stream of `row` under the 128-bit key of its half-sweep."""
    high = key_high + U64(row) * GOLDEN
    low = key_low ^ mix(high)
    # The all-zero state is the only bad one, and the last bit rules it out.
    return (
        mix(high + GOLDEN),
        mix(low + GOLDEN),
        mix(high + GOLDEN + GOLDEN),
        mix(low + GOLDEN + GOLDEN) | U64(1),
    )


@inlined
def next_word(stream):
    """Return 64 random bits and the stream after them."""
    s0, s1, s2, s3 = stream
    total = s0 + s3
    word = ((total << U64(23)) | (total >> U64(41))) + s0
    shifted = s1 << U64(17)
    s2 ^= s0
    s3 ^= s1
    s1 ^= s2
    s0 ^= s3
    s2 ^= shifted
    s3 = (s3 << U64(45)) | (s3 >> U64(19))
    return word, (s0, s1, s2, s3)


@inlined
def to_unit(word):
    """Return the high 53 bits as a number in [0, 1)."""
    return float(np.int64(word >> U64(11))) * TO_UNIT


@inlined
def uniform(stream):
    """Return a number in [0, 1)."""
    word, stream = next_word(stream)
    return to_unit(word), stream


# --- Ziggurats (Marsaglia and Tsang): a density that falls from its top at 0 is covered by LAYERS strips of equal
# area. One word picks a strip (low 8 bits), a sign (bit 8) and a place in the strip (high 53 bits); the place is
# almost always inside the density, and only at the edge of a strip is the density itself computed.

LAYERS = 256


def _strips(density, inverse, area_beyond):
    """Return right edges x[0..LAYERS] of the strips and the density there, x[0] being the width of the base strip.

    The start of the tail is the one unknown: it is found by bisection so that the last strip ends at the top.
    """

    def edges(tail):
        area = tail * density(tail) + area_beyond(tail)
        x = np.zeros(LAYERS + 1)
        x[0], x[1] = area / density(tail), tail
        for i in range(2, LAYERS):
            height = density(x[i - 1]) + area / x[i - 1]
            if height >= 1.0:
                return x, False
            x[i] = inverse(height)
        return x, density(x[LAYERS - 1]) + area / x[LAYERS - 1] <= 1.0

    short, long = 1.0, 20.0  # too short a tail overshoots the top
    for _ in range(60):
        middle = 0.5 * (short + long)
        if edges(middle)[1]:
            long = middle
        else:
            short = middle
    x, _ = edges(long)
    y = np.array([density(v) for v in x])
    return x, y


NORMAL_X, NORMAL_Y = _strips(
    density=lambda x: math.exp(-0.5 * x * x),
    inverse=lambda y: math.sqrt(-2.0 * math.log(y)),
    area_beyond=lambda x: math.sqrt(math.pi / 2) * math.erfc(x / math.sqrt(2)),
)
EXPONENTIAL_X, EXPONENTIAL_Y = _strips(
    density=lambda x: math.exp(-x), inverse=lambda y: -math.log(y), area_beyond=lambda x: math.exp(-x)
)
# What the fast paths read: the part of each strip that is under the density for sure, and the (signed) widths.
NORMAL_INSIDE = NORMAL_X[1:] / NORMAL_X[:-1]
NORMAL_WIDTH = np.concatenate([NORMAL_X[:-1], -NORMAL_X[:-1]])
EXPONENTIAL_INSIDE = EXPONENTIAL_X[1:] / EXPONENTIAL_X[:-1]


@inlined
def normal(stream):
    """Return a standard normal."""
    word, stream = next_word(stream)
    place = to_unit(word)
    if place < NORMAL_INSIDE[word & U64(0xFF)]:
        return place * NORMAL_WIDTH[word & U64(0x1FF)], stream
    return normal_edge(word, stream)


@kernel
def normal_edge(word, stream):
    """Finish a normal whose `word` fell on the edge of a strip: about one in a hundred."""
    while True:
        strip = word & U64(0xFF)
        place = to_unit(word)
        sign = 1.0 - 2.0 * float((word >> U64(8)) & U64(1))
        x = place * NORMAL_X[strip]
        if place < NORMAL_INSIDE[strip]:
            return sign * x, stream
        if strip == U64(0):
            x, stream = normal_tail(stream)
            return sign * x, stream
        low, high = NORMAL_Y[strip], NORMAL_Y[strip + U64(1)]
        height, stream = uniform(stream)
        if low + height * (high - low) < math.exp(-0.5 * x * x):
            return sign * x, stream
        word, stream = next_word(stream)


@kernel
def normal_tail(stream):
    """Return a normal beyond the last strip (Marsaglia 1964)."""
    start = NORMAL_X[1]
    while True:
        x, stream = exponential(stream)
        height, stream = exponential(stream)
        x /= start
        if 2.0 * height >= x * x:
            return start + x, stream


@inlined
def exponential(stream):
    """Return a standard exponential."""
    word, stream = next_word(stream)
    place = to_unit(word)
    strip = word & U64(0xFF)
    if place < EXPONENTIAL_INSIDE[strip]:
        return place * EXPONENTIAL_X[strip], stream
    return exponential_edge(word, stream)


@kernel
def exponential_edge(word, stream):
    """Finish an exponential whose `word` fell on the edge of a strip."""
    offset = 0.0
    while True:
        strip = word & U64(0xFF)
        place = to_unit(word)
        x = place * EXPONENTIAL_X[strip]
        if place < EXPONENTIAL_INSIDE[strip]:
            return offset + x, stream
        if strip == U64(0):
            offset += EXPONENTIAL_X[1]  # beyond the last strip the exponential forgets where it is
        else:
            low, high = EXPONENTIAL_Y[strip], EXPONENTIAL_Y[strip + U64(1)]
            height, stream = uniform(stream)
            if low + height * (high - low) < math.exp(-x):
                return offset + x, stream
        word, stream = next_word(stream)


@kernel
def key_of(seed_high, seed_low, chain, sweep, part):
    """Return the 128-bit key of one part (a half, the noise, ...) of one sweep of one chain."""
    high = mix(seed_high + U64(chain) * GOLDEN)
    high = mix(high + U64(sweep) * GOLDEN)
    high = mix(high + U64(part) * GOLDEN)
    low = mix(seed_low ^ mix(high + GOLDEN))
    return high, low


@kernel
def set_keys(seed_high, seed_low, chain, sweep, keys):
    """Write the keys of all parts of one sweep of one chain at once: a call costs more than they do."""
    for part in range(keys.shape[0]):
        keys[part, 0], keys[part, 1] = key_of(seed_high, seed_low, chain, sweep, part)
