"""Draws for eight rows at once, one row a lane: what `truncated_normal` does for one.

The rows of a half-sweep are independent, so eight of them are drawn side by side. A lane reads the words of its row's
own stream, in the order in which the scalar draw reads them, and gets the same values: a test compares the two.
"""

import math

import numpy as np

from bnmf.kernels.compile import inlined, kernel
from bnmf.kernels.random import (
    EXPONENTIAL_INSIDE,
    EXPONENTIAL_X,
    NORMAL_INSIDE,
    NORMAL_WIDTH,
    TO_UNIT,
    U64,
    exponential_edge,
    normal_edge,
    stream_of,
)
from bnmf.kernels.truncated_normal import TAIL
from bnmf.kernels.vectors import (
    WIDTH,
    bits_of,
    gather_pairs,
    lane_of,
    load,
    magnitude,
    mask_of,
    select,
    splat,
    to_numbers,
    with_lane,
)

# The tables of the two ziggurats, one after the other, so that lanes of both kinds read them at once: what part of a
# strip is inside for sure, and its width. Normals have every strip twice, with either sign.
STRIPS = np.column_stack(
    [
        np.concatenate([NORMAL_INSIDE, NORMAL_INSIDE, EXPONENTIAL_INSIDE]),
        np.concatenate([NORMAL_WIDTH, EXPONENTIAL_X[:-1]]),
    ]
)
NORMAL_BITS, EXPONENTIAL_BITS, EXPONENTIALS = U64(0x1FF), U64(0xFF), U64(0x200)
NO_LANE = U64(0)


@inlined
def set_stream(words, lane, stream):
    """Write the stream of one lane to an array of 4 by WIDTH words."""
    for i in range(4):
        words[i * WIDTH + lane] = stream[i]


@inlined
def stream_at(words, lane):
    """Return the stream of one lane from such an array."""
    return words[lane], words[WIDTH + lane], words[2 * WIDTH + lane], words[3 * WIDTH + lane]


@inlined
def streams_in(words):
    """Return the streams of all lanes from such an array."""
    return load(words, 0), load(words, WIDTH), load(words, 2 * WIDTH), load(words, 3 * WIDTH)


@inlined
def next_words(streams, where):
    """Return 64 random bits for every lane, and the streams moved on in the lanes that the mask names."""
    s0, s1, s2, s3 = streams
    total = s0 + s3
    word = ((total << splat(U64(23))) | (total >> splat(U64(41)))) + s0
    t2 = s2 ^ s0
    t3 = s3 ^ s1
    moved = (
        select(where, s0 ^ t3, s0),
        select(where, s1 ^ t2, s1),
        select(where, t2 ^ (s1 << splat(U64(17))), s2),
        select(where, (t3 << splat(U64(45))) | (t3 >> splat(U64(19))), s3),
    )
    return word, moved


@inlined
def draw_lanes(b, p, inverse, scale, pending, streams):
    """Draw from exp(b w - p w²/2) on w >= 0 in every lane that the mask `pending` names, as `draw_scaled` does.

    Every lane goes on until its proposal is accepted, and rests until the last one is.
    """
    zero = splat(0.0)
    start = zero - b * scale
    in_tail = start > splat(TAIL)
    folded = start > zero
    mean = b * inverse
    kept_bits = select(in_tail, splat(EXPONENTIAL_BITS), splat(NORMAL_BITS))
    first_strip = select(in_tail, splat(EXPONENTIALS), splat(U64(0)))
    drawn = zero
    while True:
        x, streams = propose(kept_bits, first_strip, pending, in_tail, streams)
        value = select(folded, magnitude(x), x) * scale + mean
        rejected = value < zero
        pending_tail = pending & in_tail
        if bits_of(pending_tail) != NO_LANE:
            height, streams = propose(splat(EXPONENTIAL_BITS), splat(EXPONENTIALS), pending_tail, in_tail, streams)
            x = x / (zero - b)
            value = select(in_tail, x, value)
            rejected = select(in_tail, p * x * x > height + height, rejected)
        drawn = select(pending, value, drawn)
        pending = pending & rejected
        if bits_of(pending) == NO_LANE:
            return drawn, streams


@inlined
def propose(kept_bits, first_strip, pending, in_tail, streams):
    """Return an exponential in the lanes of the tail and a normal in the others, from the strips that they name."""
    word, streams = next_words(streams, pending)
    place = to_numbers(word >> splat(U64(11))) * splat(TO_UNIT)
    inside, width = gather_pairs(STRIPS, (word & kept_bits) | first_strip)
    x = place * width
    on_edge = pending & (place >= inside)
    if bits_of(on_edge) != NO_LANE:
        x, streams = finish_edges(x, word, on_edge, in_tail, streams)
    return x, streams


@kernel
def finish_edges(x, word, on_edge, in_tail, streams):
    """Finish the lanes whose word fell on the edge of a strip: exponentials in the tail, else normals."""
    edges, tails = bits_of(on_edge), bits_of(in_tail)
    s0, s1, s2, s3 = streams
    for lane in range(WIDTH):
        if (edges >> U64(lane)) & U64(1):
            stream = lane_of(s0, lane), lane_of(s1, lane), lane_of(s2, lane), lane_of(s3, lane)
            if (tails >> U64(lane)) & U64(1):
                number, stream = exponential_edge(lane_of(word, lane), stream)
            else:
                number, stream = normal_edge(lane_of(word, lane), stream)
            x = with_lane(x, lane, number)
            s0, s1 = with_lane(s0, lane, stream[0]), with_lane(s1, lane, stream[1])
            s2, s3 = with_lane(s2, lane, stream[2]), with_lane(s3, lane, stream[3])
    return x, (s0, s1, s2, s3)


@inlined
def first_lanes(n):
    """Return the mask of the first n lanes."""
    return mask_of((U64(1) << U64(n)) - U64(1))


@kernel
def fill_lanes(b, p, key_high, key_low, out):
    """Fill `out` with draws on w >= 0, entry i from the stream of row i: the lanes as the tests see them."""
    words = np.zeros(4 * WIDTH, np.uint64)
    for begin in range(0, out.size, WIDTH):
        n = min(WIDTH, out.size - begin)
        b_lanes = p_lanes = inverse = scale = splat(1.0)
        for lane in range(n):
            i = begin + lane
            set_stream(words, lane, stream_of(key_high, key_low, i))
            b_lanes, p_lanes = with_lane(b_lanes, lane, b[i]), with_lane(p_lanes, lane, p[i])
            inverse, scale = with_lane(inverse, lane, 1.0 / p[i]), with_lane(scale, lane, math.sqrt(1.0 / p[i]))
        draws, _ = draw_lanes(b_lanes, p_lanes, inverse, scale, first_lanes(n), streams_in(words))
        for lane in range(n):
            out[begin + lane] = lane_of(draws, lane)
