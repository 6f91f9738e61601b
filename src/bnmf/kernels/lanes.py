"""Vectorised versions of `draw_scaled` and `draw_two_piece`: eight rows at once, one per lane.

The rows of a half-sweep are independent given the other factor, so eight of them are drawn in parallel. Each lane reads
the words of its own row's stream, in the same order as the scalar draw, and gives the same values (tested).
"""

import math

import numpy as np

from bnmf.kernels.compile import inlined, kernel
from bnmf.kernels.processor import WIDTH
from bnmf.kernels.random import (
    EXPONENTIAL_INSIDE,
    EXPONENTIAL_X,
    MAX_PROPOSALS,
    NORMAL_INSIDE,
    NORMAL_WIDTH,
    TO_UNIT,
    U64,
    exponential_edge,
    normal_edge,
    stream_of,
)
from bnmf.kernels.truncated_normal import TAIL_START, draw_two_piece
from bnmf.kernels.vectors import (
    absolute,
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
    fraction = to_floats(word >> broadcast(U64(11))) * broadcast(TO_UNIT)
    inside, width = gather_pairs(STRIP_TABLE, (word & strip_bits) | first_strip)
    x = fraction * width
    at_edge = pending & (fraction >= inside)
    if mask_to_bits(at_edge) != NO_LANES:
        x, streams = finish_edges(x, word, at_edge, in_tail, streams)
    return x, streams


@kernel
def finish_edges(x, word, at_edge, in_tail, streams):
    """Finish the lanes whose word fell near the end of a strip: exponentials in the tail, normals elsewhere."""
    edges, tails = mask_to_bits(at_edge), mask_to_bits(in_tail)
    s0, s1, s2, s3 = streams
    for lane in range(WIDTH):
        if (edges >> U64(lane)) & U64(1):
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

    A lane proposes as in `draw_lanes`, and compares what it accepts there with the kink at once, while other lanes may
    still be at their first acceptance. Nearly every proposal is followed by an exponential, which is drawn before it is
    known whether the lane reads it: the processor then computes both at the same time.
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
        value = select(folded, absolute(x), x) * scale + mean
        x = x / (zero - b)
        rejected = select(in_tail, p * x * x > height + height, value < zero)
        value = select(in_tail, x, value)
        excess = select(beyond, kink - value, value - kink)
        compared = select(rejected, no_lane, pending & (excess > zero))
        streams = select_streams(in_tail | compared, after, streams)
        compared_tail = compared & in_tail
        if mask_to_bits(compared_tail) != NO_LANES:
            second, streams = propose(exponential_bits, first_exponential, compared_tail, compared_tail, streams)
            height = select(in_tail, second, height)
        drawn = select(pending, value, drawn)
        pending = pending & (rejected | (compared & (rates * excess > height)))
    return select(pending, broadcast(math.nan), drawn), streams


@inlined
def select_streams(where, x, y):
    """Return the streams x in the lanes of a mask, and y in the others."""
    return (
        select(where, x[0], y[0]),
        select(where, x[1], y[1]),
        select(where, x[2], y[2]),
        select(where, x[3], y[3]),
    )


@kernel
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
