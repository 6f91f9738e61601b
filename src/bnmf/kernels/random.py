"""Random streams, one for each row of each half-sweep, and ziggurat samplers for normals and exponentials.

A stream is the state of a xoshiro256++ generator (Blackman and Vigna): a tuple of four 64-bit words. Functions take a
stream and return a value and the advanced stream. A tuple stays in registers; an array would be reference-counted and
written to memory at every draw.
"""

import math

import numpy as np

from bnmf.kernels.compile import inlined, kernel, linked

U64 = np.uint64
# Increment of SplitMix64: 2**64 divided by the golden ratio, rounded to an odd number.
GOLDEN_GAMMA = U64(0x9E3779B97F4A7C15)
# Scales 53 random bits to [0, 1).
TO_UNIT = 2.0**-53
# Proposals of a rejection sampler, of which each is accepted with a probability of at least a quarter. Only numbers
# beyond the range of floating point use them up, and the draw is NaN then: Ctrl-C cannot end a compiled loop.
MAX_PROPOSALS = 1000


@linked
def mix(x):
    """Apply the finaliser of SplitMix64: a bijection of 64-bit words in which each bit affects all others."""
    x = (x ^ (x >> U64(30))) * U64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> U64(27))) * U64(0x94D049BB133111EB)
    return x ^ (x >> U64(31))


@linked
def stream_of(key_high, key_low, row):
    """Return the stream of a row, given the 128-bit key of the half-sweep."""
    high = key_high + U64(row) * GOLDEN_GAMMA
    low = key_low ^ mix(high)
    # The all-zero state is the only invalid one, and the lowest bit of the last word excludes it.
    return (
        mix(high + GOLDEN_GAMMA),
        mix(low + GOLDEN_GAMMA),
        mix(high + GOLDEN_GAMMA + GOLDEN_GAMMA),
        mix(low + GOLDEN_GAMMA + GOLDEN_GAMMA) | U64(1),
    )


@inlined
def next_word(stream):
    """Return 64 random bits and the advanced stream."""
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
    """Return the high 53 bits of a word as a number in [0, 1)."""
    return float(np.int64(word >> U64(11))) * TO_UNIT


@inlined
def uniform(stream):
    """Return a standard uniform in [0, 1)."""
    word, stream = next_word(stream)
    return to_unit(word), stream


# --- Ziggurats (Marsaglia and Tsang): a density that decreases from its mode at 0 is covered by N_STRIPS horizontal
# strips of equal area. One word selects a strip (low 8 bits), a sign (bit 8) and a fraction of the strip's width
# (high 53 bits). That point is almost always under the density; the density is computed only near the strip's end.

N_STRIPS = 256


def _strip_edges(density, inverse, area_beyond):
    """Return the right edges x[0..N_STRIPS] of the strips and the density there; x[0] is the width of the base strip.

    The only unknown is where the tail starts. Bisection finds the start for which the top strip ends at the mode.
    """

    def edges(tail):
        """Return the edges for a tail that starts at `tail`, and whether the strips stay below the mode."""
        area = tail * density(tail) + area_beyond(tail)
        x = np.zeros(N_STRIPS + 1)
        x[0], x[1] = area / density(tail), tail
        for i in range(2, N_STRIPS):
            height = density(x[i - 1]) + area / x[i - 1]
            if height >= 1.0:
                return x, False
            x[i] = inverse(height)
        return x, density(x[N_STRIPS - 1]) + area / x[N_STRIPS - 1] <= 1.0

    too_low, high_enough = 1.0, 20.0  # if the tail starts too low, the strips overshoot the mode
    for _ in range(60):
        middle = 0.5 * (too_low + high_enough)
        if edges(middle)[1]:
            high_enough = middle
        else:
            too_low = middle
    x, _ = edges(high_enough)
    y = np.array([density(v) for v in x])
    return x, y


NORMAL_X, NORMAL_Y = _strip_edges(
    density=lambda x: math.exp(-0.5 * x * x),
    inverse=lambda y: math.sqrt(-2.0 * math.log(y)),
    area_beyond=lambda x: math.sqrt(math.pi / 2) * math.erfc(x / math.sqrt(2)),
)
EXPONENTIAL_X, EXPONENTIAL_Y = _strip_edges(
    density=lambda x: math.exp(-x), inverse=lambda y: -math.log(y), area_beyond=lambda x: math.exp(-x)
)
# Read by the fast paths: the fraction of each strip that is certainly under the density, and the signed widths.
NORMAL_INSIDE = NORMAL_X[1:] / NORMAL_X[:-1]
NORMAL_WIDTH = np.concatenate([NORMAL_X[:-1], -NORMAL_X[:-1]])
EXPONENTIAL_INSIDE = EXPONENTIAL_X[1:] / EXPONENTIAL_X[:-1]


@inlined
def normal(stream):
    """Return a standard normal."""
    word, stream = next_word(stream)
    fraction = to_unit(word)
    if fraction < NORMAL_INSIDE[word & U64(0xFF)]:
        return fraction * NORMAL_WIDTH[word & U64(0x1FF)], stream
    return normal_edge(word, stream)


@linked
def normal_edge(word, stream):
    """Finish a normal whose `word` fell near the end of a strip, which about one in a hundred does."""
    for _ in range(MAX_PROPOSALS):
        strip = word & U64(0xFF)
        fraction = to_unit(word)
        sign = 1.0 - 2.0 * float((word >> U64(8)) & U64(1))
        x = fraction * NORMAL_X[strip]
        if fraction < NORMAL_INSIDE[strip]:
            return sign * x, stream
        if strip == U64(0):
            x, stream = normal_tail(stream)
            return sign * x, stream
        low, high = NORMAL_Y[strip], NORMAL_Y[strip + U64(1)]
        height, stream = uniform(stream)
        if low + height * (high - low) < math.exp(-0.5 * x * x):
            return sign * x, stream
        word, stream = next_word(stream)
    return math.nan, stream


@linked
def normal_tail(stream):
    """Return a normal in the right tail, beyond the base strip (Marsaglia 1964)."""
    start = NORMAL_X[1]
    for _ in range(MAX_PROPOSALS):
        x, stream = exponential(stream)
        height, stream = exponential(stream)
        x /= start
        if 2.0 * height >= x * x:
            return start + x, stream
    return math.nan, stream


@inlined
def exponential(stream):
    """Return a standard exponential."""
    word, stream = next_word(stream)
    fraction = to_unit(word)
    strip = word & U64(0xFF)
    if fraction < EXPONENTIAL_INSIDE[strip]:
        return fraction * EXPONENTIAL_X[strip], stream
    return exponential_edge(word, stream)


@linked
def exponential_edge(word, stream):
    """Finish an exponential whose `word` fell near the end of a strip."""
    offset = 0.0
    for _ in range(MAX_PROPOSALS):
        strip = word & U64(0xFF)
        fraction = to_unit(word)
        x = fraction * EXPONENTIAL_X[strip]
        if fraction < EXPONENTIAL_INSIDE[strip]:
            return offset + x, stream
        if strip == U64(0):
            offset += EXPONENTIAL_X[1]  # the exponential is memoryless: draw the excess
        else:
            low, high = EXPONENTIAL_Y[strip], EXPONENTIAL_Y[strip + U64(1)]
            height, stream = uniform(stream)
            if low + height * (high - low) < math.exp(-x):
                return offset + x, stream
        word, stream = next_word(stream)
    return math.nan, stream


@kernel
def key_of(seed_high, seed_low, chain, sweep, part):
    """Return the 128-bit key of one part (a half-sweep, the noise, ...) of one sweep of one chain."""
    high = mix(seed_high + U64(chain) * GOLDEN_GAMMA)
    high = mix(high + U64(sweep) * GOLDEN_GAMMA)
    high = mix(high + U64(part) * GOLDEN_GAMMA)
    low = mix(seed_low ^ mix(high + GOLDEN_GAMMA))
    return high, low


@kernel
def set_keys(seed_high, seed_low, chain, sweep, keys):
    """Write the keys of all parts of one sweep of one chain; one call is cheaper than a call per part."""
    for part in range(keys.shape[0]):
        keys[part, 0], keys[part, 1] = key_of(seed_high, seed_low, chain, sweep, part)
