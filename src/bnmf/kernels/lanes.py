"""Vectorised versions of `draw_scaled`, `draw_two_piece` and `draw_real`: eight rows at once, one per lane.

The rows of a half-sweep are independent given the other factor, so eight of them are drawn in parallel. Each lane reads
the words of its own row's stream, in the same order as the scalar draw, and gives the same values (tested).
"""

import math

import numpy as np

from bnmf.kernels.compile import inlined, kernel, linked
from bnmf.kernels.processor import WIDTH
from bnmf.kernels.random import (
    EXPONENTIAL_INSIDE,
    EXPONENTIAL_X,
    EXPONENTIAL_Y,
    MAX_PROPOSALS,
    NORMAL_INSIDE,
    NORMAL_WIDTH,
    NORMAL_Y,
    TO_UNIT,
    U64,
    exponential_edge,
    normal_edge,
    stream_of,
)
from bnmf.kernels.truncated_normal import TAIL_START, draw_sign, draw_two_piece
from bnmf.kernels.vectors import (
    absolute,
    add_product,
    bits_to_mask,
    broadcast,
    extract_lane,
    gather_pairs,
    insert_lane,
    load,
    mask_to_bits,
    select,
    to_floats,
)

# The strips of both ziggurats in one table, so that normal and exponential lanes read it in one gather. Columns: the
# fraction of a strip that is certainly under the density, and the signed width. Each normal strip is there twice, once
# with each sign, before the exponential strips.
STRIP_TABLE = np.column_stack(
    [
        np.concatenate([NORMAL_INSIDE, NORMAL_INSIDE, EXPONENTIAL_INSIDE]),
        np.concatenate([NORMAL_WIDTH, EXPONENTIAL_X[:-1]]),
    ]
)
# The density at the right end of each strip, and by how much it rises to the end of the strip above.
EDGE_TABLE = np.column_stack(
    [
        np.concatenate([NORMAL_Y[:-1], NORMAL_Y[:-1], EXPONENTIAL_Y[:-1]]),
        np.concatenate([np.diff(NORMAL_Y), np.diff(NORMAL_Y), np.diff(EXPONENTIAL_Y)]),
    ]
)
# Bits of a word that select a strip.
NORMAL_STRIP_BITS, EXPONENTIAL_STRIP_BITS = U64(0x1FF), U64(0xFF)
# Row of the table where the exponential strips start.
FIRST_EXPONENTIAL_STRIP = U64(0x200)
# Bits of an empty mask.
NO_LANES = U64(0)


@inlined
def load_streams(words):
    """Return the streams of all lanes from an array of 4 x WIDTH words."""
    return load(words, 0), load(words, WIDTH), load(words, 2 * WIDTH), load(words, 3 * WIDTH)


@inlined
def next_words(streams, where):
    """Return 64 random bits for every lane, and the streams, advanced only in the lanes of the mask `where`."""
    s0, s1, s2, s3 = streams
    total = s0 + s3
    word = ((total << broadcast(U64(23))) | (total >> broadcast(U64(41)))) + s0
    t2 = s2 ^ s0
    t3 = s3 ^ s1
    advanced = (
        select(where, s0 ^ t3, s0),
        select(where, s1 ^ t2, s1),
        select(where, t2 ^ (s1 << broadcast(U64(17))), s2),
        select(where, (t3 << broadcast(U64(45))) | (t3 >> broadcast(U64(19))), s3),
    )
    return word, advanced


@inlined
def draw_lanes(b, p, inverse, scale, pending, streams):
    """Draw from exp(b w - p w²/2) on w >= 0 in the lanes of the mask `pending`, as `draw_scaled` does.

    The loop ends when all lanes have accepted a proposal. A lane that has accepted reads no more of its stream. A draw
    whose parameters exceed the range of floating point is NaN.
    """
    zero = broadcast(0.0)
    distance = zero - b * scale
    in_tail = distance > broadcast(TAIL_START)
    folded = distance > zero
    mean = b * inverse
    exponential_bits, first_exponential = broadcast(EXPONENTIAL_STRIP_BITS), broadcast(FIRST_EXPONENTIAL_STRIP)
    strip_bits = select(in_tail, exponential_bits, broadcast(NORMAL_STRIP_BITS))
    first_strip = select(in_tail, first_exponential, broadcast(U64(0)))
    drawn = zero
    for _ in range(MAX_PROPOSALS):
        x, streams = propose(strip_bits, first_strip, pending, in_tail, streams)
        value = select(folded, absolute(x), x) * scale + mean
        rejected = value < zero
        pending_tail = pending & in_tail
        if mask_to_bits(pending_tail) != NO_LANES:
            height, streams = propose(exponential_bits, first_exponential, pending_tail, in_tail, streams)
            x = x / (zero - b)
            value = select(in_tail, x, value)
            rejected = select(in_tail, p * x * x > height + height, rejected)
        drawn = select(pending, value, drawn)
        pending = pending & rejected
        if mask_to_bits(pending) == NO_LANES:
            return drawn, streams
    return select(pending, broadcast(math.nan), drawn), streams


@inlined
def propose(strip_bits, first_strip, pending, in_tail, streams):
    """Return an exponential in the lanes of `in_tail` and a normal in the others, advancing only `pending` streams.

    `strip_bits` and `first_strip` select the part of the table that each lane reads.
    """
    word, streams = next_words(streams, pending)
    fraction = to_units(word)
    inside, width = gather_pairs(STRIP_TABLE, (word & strip_bits) | first_strip)
    x = fraction * width
    at_edge = pending & (fraction >= inside)
    if mask_to_bits(at_edge) != NO_LANES:
        x, streams = finish_edges(x, word, at_edge, strip_bits, first_strip, in_tail, streams)
    return x, streams


@linked
def finish_edges(x, word, at_edge, strip_bits, first_strip, in_tail, streams):
    """Finish the lanes whose word fell near the end of a strip, as `normal_edge` and `exponential_edge` do."""
    zero = broadcast(0.0)
    no_lane = zero > zero
    for _ in range(MAX_PROPOSALS):
        at_base = at_edge & (broadcast(1.0) > to_floats(word & broadcast(EXPONENTIAL_STRIP_BITS)))
        if mask_to_bits(at_base) != NO_LANES:
            x, streams = finish_bases(x, word, at_base, in_tail, streams)
            at_edge = select(at_base, no_lane, at_edge)
        height, streams = next_words(streams, at_edge)
        low, rise = gather_pairs(EDGE_TABLE, (word & strip_bits) | first_strip)
        density = exp_of_negative(select(in_tail, zero - x, broadcast(-0.5) * x * x))
        accepted = low + to_units(height) * rise < density
        at_edge = select(accepted, no_lane, at_edge)
        if mask_to_bits(at_edge) == NO_LANES:
            return x, streams
        word, streams = next_words(streams, at_edge)
        fraction = to_units(word)
        inside, width = gather_pairs(STRIP_TABLE, (word & strip_bits) | first_strip)
        x = select(at_edge, fraction * width, x)
        at_edge = at_edge & (fraction >= inside)
    return select(at_edge, broadcast(math.nan), x), streams


@inlined
def to_units(word):
    """Return the high 53 bits of the words as numbers in [0, 1)."""
    return to_floats(word >> broadcast(U64(11))) * broadcast(TO_UNIT)


@inlined
def exp_of_negative(x):
    """Return exp(x) to 13 digits for -10 < x <= 0: the Taylor series at x / 256, to the power of 256."""
    x = x * broadcast(1.0 / 256.0)
    total = broadcast(1.0 / 5040.0)
    for coefficient in (1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0):
        total = add_product(broadcast(coefficient), total, x)
    for _ in range(8):
        total = total * total
    return total


@linked
def finish_bases(x, word, at_base, in_tail, streams):
    """Finish the lanes whose word fell beyond the end of the base strip, one by one."""
    bases, tails = mask_to_bits(at_base), mask_to_bits(in_tail)
    s0, s1, s2, s3 = streams
    for lane in range(WIDTH):
        if (bases >> U64(lane)) & U64(1):
            stream = extract_lane(s0, lane), extract_lane(s1, lane), extract_lane(s2, lane), extract_lane(s3, lane)
            if (tails >> U64(lane)) & U64(1):
                number, stream = exponential_edge(extract_lane(word, lane), stream)
            else:
                number, stream = normal_edge(extract_lane(word, lane), stream)
            x = insert_lane(x, lane, number)
            s0, s1 = insert_lane(s0, lane, stream[0]), insert_lane(s1, lane, stream[1])
            s2, s3 = insert_lane(s2, lane, stream[2]), insert_lane(s3, lane, stream[3])
    return x, (s0, s1, s2, s3)


@inlined
def draw_two_piece_lanes(b, p, inverse, scale, kink, rate, active, streams):
    """Draw from exp(b w - p w²/2 - rate max(w, kink)) on w >= 0 in the lanes of a mask, as `draw_two_piece` does.

    A lane proposes as in `draw_lanes`, and compares what it accepts there with the kink at once, whatever the others
    do. The exponentials that may follow a proposal are drawn before it is known whether the lane reads them, so that
    the processor computes all of them at the same time; a lane goes on from the stream after those that it did read.
    """
    zero, rates = broadcast(0.0), broadcast(rate)
    no_lane = zero > zero
    beyond = (broadcast(1.0) >= rates * kink) | (b - rates >= p * kink)
    below = (p * kink >= b) & (p * kink * kink >= broadcast(1.0))
    pending = active & (beyond | below)
    drawn = zero
    by_mass = mask_to_bits(active) ^ mask_to_bits(pending)
    if by_mass != NO_LANES:
        drawn, streams = draw_pieces_by_mass(b, p, kink, rate, by_mass, streams)
    b = select(beyond, b - rates, b)
    distance = zero - b * scale
    in_tail, folded = distance > broadcast(TAIL_START), distance > zero
    mean = b * inverse
    exponential_bits, first_exponential = broadcast(EXPONENTIAL_STRIP_BITS), broadcast(FIRST_EXPONENTIAL_STRIP)
    strip_bits = select(in_tail, exponential_bits, broadcast(NORMAL_STRIP_BITS))
    first_strip = select(in_tail, first_exponential, broadcast(U64(0)))
    for _ in range(MAX_PROPOSALS):
        if mask_to_bits(pending) == NO_LANES:
            return drawn, streams
        x, streams = propose(strip_bits, first_strip, pending, in_tail, streams)
        height, after = propose(exponential_bits, first_exponential, pending, pending, streams)
        second, after_second = propose(exponential_bits, first_exponential, pending & in_tail, pending, after)
        value = select(folded, absolute(x), x) * scale + mean
        x = x / (zero - b)
        rejected = select(in_tail, p * x * x > height + height, value < zero)
        value = select(in_tail, x, value)
        excess = select(beyond, kink - value, value - kink)
        compared = select(rejected, no_lane, pending & (excess > zero))
        streams = select_streams(in_tail | compared, select_streams(compared & in_tail, after_second, after), streams)
        height = select(in_tail, second, height)
        drawn = select(pending, value, drawn)
        pending = pending & (rejected | (compared & (rates * excess > height)))
    return select(pending, broadcast(math.nan), drawn), streams


@inlined
def draw_real_lanes(b, p, inverse, scale, rate, active, streams):
    """Draw from exp(b w - p w²/2 - rate |w|) on the real line in the lanes of a mask, as `draw_real` does."""
    zero = broadcast(0.0)
    with_kink = active & (rate > zero)
    smooth = select(with_kink, zero > zero, active)
    drawn = zero
    if mask_to_bits(smooth) != NO_LANES:
        drawn, streams = draw_normal_lanes(b, inverse, scale, smooth, streams)
    if mask_to_bits(with_kink) != NO_LANES:
        sign, streams = draw_signs(b, p, rate, mask_to_bits(with_kink), streams)
        size, streams = draw_lanes(sign * b - rate, p, inverse, scale, with_kink, streams)
        drawn = select(with_kink, sign * size, drawn)
    return drawn, streams


@inlined
def draw_normal_lanes(b, inverse, scale, active, streams):
    """Draw from exp(b w - p w²/2) on the real line in the lanes of a mask, given 1 / p and its root."""
    strip_bits, first_strip, no_lane = broadcast(NORMAL_STRIP_BITS), broadcast(U64(0)), b > b
    x, streams = propose(strip_bits, first_strip, active, no_lane, streams)
    return x * scale + b * inverse, streams


@linked
def draw_signs(b, p, rate, lanes, streams):
    """Return the signs of draws in the lanes of the given bits, one by one, and 1 in the others."""
    signs = broadcast(1.0)
    s0, s1, s2, s3 = streams
    for lane in range(WIDTH):
        if (lanes >> U64(lane)) & U64(1):
            stream = extract_lane(s0, lane), extract_lane(s1, lane), extract_lane(s2, lane), extract_lane(s3, lane)
            sign, stream = draw_sign(extract_lane(b, lane), extract_lane(p, lane), extract_lane(rate, lane), stream)
            signs = insert_lane(signs, lane, sign)
            s0, s1 = insert_lane(s0, lane, stream[0]), insert_lane(s1, lane, stream[1])
            s2, s3 = insert_lane(s2, lane, stream[2]), insert_lane(s3, lane, stream[3])
    return signs, (s0, s1, s2, s3)


@inlined
def select_streams(where, x, y):
    """Return the streams x in the lanes of a mask, and y in the others."""
    return (
        select(where, x[0], y[0]),
        select(where, x[1], y[1]),
        select(where, x[2], y[2]),
        select(where, x[3], y[3]),
    )


@linked
def draw_pieces_by_mass(b, p, kink, rate, lanes, streams):
    """Draw in the lanes of the given bits, one by one: neither piece is close to the whole density there."""
    x = broadcast(0.0)
    s0, s1, s2, s3 = streams
    for lane in range(WIDTH):
        if (lanes >> U64(lane)) & U64(1):
            stream = extract_lane(s0, lane), extract_lane(s1, lane), extract_lane(s2, lane), extract_lane(s3, lane)
            number, stream = draw_two_piece(
                extract_lane(b, lane), extract_lane(p, lane), extract_lane(kink, lane), rate, stream
            )
            x = insert_lane(x, lane, number)
            s0, s1 = insert_lane(s0, lane, stream[0]), insert_lane(s1, lane, stream[1])
            s2, s3 = insert_lane(s2, lane, stream[2]), insert_lane(s3, lane, stream[3])
    return x, (s0, s1, s2, s3)


@inlined
def first_lanes(n):
    """Return a mask of the first n lanes."""
    return bits_to_mask((U64(1) << U64(n)) - U64(1))


@kernel
def fill_lanes(b, p, key_high, key_low, out):
    """Fill `out` with draws on w >= 0, entry i from the stream of row i; only the tests use it."""
    for begin in range(0, out.size, WIDTH):
        n = min(WIDTH, out.size - begin)
        s0 = s1 = s2 = s3 = broadcast(U64(0))
        b_lanes = p_lanes = inverse = scale = broadcast(1.0)
        for lane in range(n):
            i = begin + lane
            stream = stream_of(key_high, key_low, i)
            s0, s1 = insert_lane(s0, lane, stream[0]), insert_lane(s1, lane, stream[1])
            s2, s3 = insert_lane(s2, lane, stream[2]), insert_lane(s3, lane, stream[3])
            b_lanes, p_lanes = insert_lane(b_lanes, lane, b[i]), insert_lane(p_lanes, lane, p[i])
            inverse, scale = insert_lane(inverse, lane, 1.0 / p[i]), insert_lane(scale, lane, math.sqrt(1.0 / p[i]))
        draws, _ = draw_lanes(b_lanes, p_lanes, inverse, scale, first_lanes(n), (s0, s1, s2, s3))
        for lane in range(n):
            out[begin + lane] = extract_lane(draws, lane)
