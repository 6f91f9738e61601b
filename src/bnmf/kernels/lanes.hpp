// Vectorised versions of `draw_positive`, `draw_two_piece`, `draw_real` and `draw_within`: eight rows at once, one per lane.
//
// The rows of a half-sweep are independent given the other factor, so eight of them are drawn in parallel. Each lane reads
// the words of its own row's stream, in the same order as the scalar draw, and gives the same values (tested).
#pragma once

#include "truncated_normal.hpp"

namespace bnmf {

// The streams of all lanes.
struct Streams {
    Words s0, s1, s2, s3;

    Stream extract(int lane) const {
        return {extract_lane(s0, lane), extract_lane(s1, lane), extract_lane(s2, lane), extract_lane(s3, lane)};
    }

    void insert(int lane, const Stream& stream) {
        insert_lane(s0, lane, stream.s0);
        insert_lane(s1, lane, stream.s1);
        insert_lane(s2, lane, stream.s2);
        insert_lane(s3, lane, stream.s3);
    }
};

// The streams of all lanes in memory.
struct StreamWords {
    uint64_t words[4][WIDTH];

    void set(int64_t lane, const Stream& stream) {
        words[0][lane] = stream.s0;
        words[1][lane] = stream.s1;
        words[2][lane] = stream.s2;
        words[3][lane] = stream.s3;
    }

    Streams streams() const { return {load(words[0]), load(words[1]), load(words[2]), load(words[3])}; }
};

// The strips of both ziggurats in one table, so that normal and exponential lanes read it in one gather. Each normal strip
// is there twice, once with each sign, before the exponential strips.
struct StripTables {
    double strips[3 * N_STRIPS][2];  // the fraction of a strip that is certainly under the density, and the signed width
    double edges[3 * N_STRIPS][2];   // the density at its right end, and by how much it rises to the end of the one above

    StripTables() {
        for (int i = 0; i < N_STRIPS; ++i) {
            set(i, NORMAL, i, 1.0);
            set(N_STRIPS + i, NORMAL, i, -1.0);
            set(2 * N_STRIPS + i, EXPONENTIAL, i, 1.0);
        }
    }

    void set(int to, const Ziggurat& of, int i, double sign) {
        strips[to][0] = of.inside[i];
        strips[to][1] = sign * of.x[i];
        edges[to][0] = of.y[i];
        edges[to][1] = of.y[i + 1] - of.y[i];
    }
};
alignas(64) inline const StripTables TABLES;

// Bits of a word that select a strip, and the row of the tables where the exponential strips start.
constexpr uint64_t NORMAL_STRIP_BITS = 0x1FF, EXPONENTIAL_STRIP_BITS = 0xFF, FIRST_EXPONENTIAL_STRIP = 0x200;

// The part of the tables that each lane reads: an exponential in the lanes of `in_tail` and a normal in the others.
struct Proposal {
    Mask in_tail;
    Words strip_bits, first_strip;
};

[[gnu::always_inline]] inline Proposal proposal_of(Mask in_tail) {
    return {in_tail, select(in_tail, broadcast(EXPONENTIAL_STRIP_BITS), broadcast(NORMAL_STRIP_BITS)),
            select(in_tail, broadcast(FIRST_EXPONENTIAL_STRIP), broadcast(uint64_t(0)))};
}

// Exponentials in all lanes.
[[gnu::always_inline]] inline Proposal exponentials() {
    return {first_lanes(WIDTH), broadcast(EXPONENTIAL_STRIP_BITS), broadcast(FIRST_EXPONENTIAL_STRIP)};
}

// Return 64 random bits for every lane, and advance the streams in the lanes of the mask `where`.
[[gnu::always_inline]] inline Words next_words(Streams& streams, Mask where) {
    auto& [s0, s1, s2, s3] = streams;
    const Words total = s0 + s3;
    const Words word = ((total << 23) | (total >> 41)) + s0;
    const Words t2 = s2 ^ s0, t3 = s3 ^ s1;
    s2 = select(where, t2 ^ (s1 << 17), s2);
    s0 = select(where, s0 ^ t3, s0);
    s1 = select(where, s1 ^ t2, s1);
    s3 = select(where, (t3 << 45) | (t3 >> 19), s3);
    return word;
}

// Set x to draw(lane, stream) in the lanes of a mask, one by one.
template <typename F> inline void draw_one_by_one(Vector& x, Mask where, Streams& streams, F draw) {
    const unsigned bits = mask_to_bits(where);
    for (int lane = 0; lane < WIDTH; ++lane) {
        if ((bits >> lane) & 1) {
            Stream stream = streams.extract(lane);
            insert_lane<double>(x, lane, draw(lane, stream));
            streams.insert(lane, stream);
        }
    }
}

// Return the high 53 bits of the words as numbers in [0, 1).
[[gnu::always_inline]] inline Vector to_units(Words word) { return to_floats(word >> 11) * broadcast(TO_UNIT); }

// Return exp(x) to 13 digits for -10 < x <= 0: the Taylor series at x / 256, to the power of 256.
[[gnu::always_inline]] inline Vector exp_of_negative(Vector x) {
    x = x * broadcast(1.0 / 256.0);
    Vector total = broadcast(1.0 / 5040.0);
    for (const double coefficient : {1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0})
        total = add_product(broadcast(coefficient), total, x);
    for (int i = 0; i < 8; ++i) total = total * total;
    return total;
}

// Finish the lanes whose word fell near the end of a strip, as `edge` does.
[[gnu::noinline]] inline Vector finish_edges(Vector x, Words word, Mask at_edge, const Proposal& proposal,
                                             Streams& streams) {
    const Vector zero = broadcast(0.0);
    const Mask no_lane = zero > zero, in_tail = proposal.in_tail;
    for (int i = 0; i < MAX_PROPOSALS; ++i) {
        const Mask at_base = at_edge & (broadcast(1.0) > to_floats(word & broadcast(EXPONENTIAL_STRIP_BITS)));
        if (any(at_base)) {
            const unsigned tails = mask_to_bits(in_tail);
            draw_one_by_one(x, at_base, streams, [&](int lane, Stream& stream) {
                const uint64_t own = extract_lane(word, lane);
                return (tails >> lane) & 1 ? edge<EXPONENTIAL>(own, stream) : edge<NORMAL>(own, stream);
            });
            at_edge = select(at_base, no_lane, at_edge);
        }
        const Vector height = to_units(next_words(streams, at_edge));
        Vector low, rise, inside, width;
        gather_pairs(&TABLES.edges[0][0], (word & proposal.strip_bits) | proposal.first_strip, low, rise);
        const Vector density = exp_of_negative(select(in_tail, zero - x, broadcast(-0.5) * x * x));
        at_edge = select(low + height * rise < density, no_lane, at_edge);
        if (!any(at_edge)) return x;
        word = next_words(streams, at_edge);
        const Vector fraction = to_units(word);
        gather_pairs(&TABLES.strips[0][0], (word & proposal.strip_bits) | proposal.first_strip, inside, width);
        x = select(at_edge, fraction * width, x);
        at_edge = at_edge & (fraction >= inside);
    }
    return select(at_edge, broadcast(NOT_A_NUMBER), x);
}

// Return an exponential or a normal in each lane, advancing only `pending` streams.
[[gnu::always_inline]] inline Vector propose(const Proposal& proposal, Mask pending, Streams& streams) {
    const Words word = next_words(streams, pending);
    const Vector fraction = to_units(word);
    Vector inside, width;
    gather_pairs(&TABLES.strips[0][0], (word & proposal.strip_bits) | proposal.first_strip, inside, width);
    Vector x = fraction * width;
    const Mask at_edge = pending & (fraction >= inside);
    if (any(at_edge)) {
        const Proposal same = proposal;  // copies, so that the streams stay in registers
        Streams advanced = streams;
        x = finish_edges(x, word, at_edge, same, advanced);
        streams = advanced;
    }
    return x;
}

// exp(b w - p w²/2) on w >= 0 in each lane, and what its proposals need, given 1 / p and its root.
struct PositiveLanes {
    Vector b, p, scale, mean;
    Mask in_tail, folded;
    Proposal proposal;

    [[gnu::always_inline]] PositiveLanes(Vector b, Vector p, Vector inverse, Vector scale)
        : b(b), p(p), scale(scale), mean(b * inverse) {
        const Vector distance = broadcast(0.0) - b * scale;
        in_tail = distance > broadcast(TAIL_START);
        folded = distance > broadcast(0.0);
        proposal = proposal_of(in_tail);
    }

    // Return proposals in the lanes of the mask `pending`, and where they are rejected.
    [[gnu::always_inline]] Vector next(Mask pending, Streams& streams, Mask& rejected) const {
        const Vector zero = broadcast(0.0);
        Vector x = propose(proposal, pending, streams);
        Vector value = select(folded, absolute(x), x) * scale + mean;
        rejected = value < zero;
        const Mask pending_tail = pending & in_tail;
        if (any(pending_tail)) {
            const Vector height = propose(exponentials(), pending_tail, streams);
            x = x / (zero - b);
            value = select(in_tail, x, value);
            rejected = select(in_tail, p * x * x > height + height, rejected);
        }
        return value;
    }
};

// Return what `next` proposes in the lanes of the mask `pending`, each until it is accepted, and `drawn` in the others.
//
// A lane that has accepted reads no more of its stream. A draw whose parameters exceed the range of floating point is NaN.
template <typename F> [[gnu::always_inline]] inline Vector accepted_lanes(Mask pending, Vector drawn, F next) {
    for (int i = 0; i < MAX_PROPOSALS; ++i) {
        Mask rejected;
        const Vector value = next(pending, rejected);
        drawn = select(pending, value, drawn);
        pending = pending & rejected;
        if (!any(pending)) return drawn;
    }
    return select(pending, broadcast(NOT_A_NUMBER), drawn);
}

// Draw from exp(b w - p w²/2) on w >= 0 in the lanes of the mask `active`, given 1 / p and its root.
[[gnu::always_inline]] inline Vector draw_lanes(Vector b, Vector p, Vector inverse, Vector scale, Mask active,
                                                Streams& streams) {
    const PositiveLanes density(b, p, inverse, scale);
    return accepted_lanes(active, broadcast(0.0), [&](Mask pending, Mask& rejected) __attribute__((always_inline)) {
        return density.next(pending, streams, rejected);
    });
}

// Draw in the lanes of a mask, one by one: neither piece is close to the whole density there.
[[gnu::noinline]] inline Vector draw_pieces_by_mass(Vector b, Vector p, Vector kink, double rate, Mask where,
                                                    Streams& streams) {
    Vector x = broadcast(0.0);
    draw_one_by_one(x, where, streams, [&](int lane, Stream& stream) {
        return draw_two_piece(extract_lane(b, lane), extract_lane(p, lane), extract_lane(kink, lane), rate, stream);
    });
    return x;
}

// Draw from exp(b w - p w²/2 - rate max(w, kink)) on w >= 0 in the lanes of a mask, as `draw_two_piece` does.
//
// A lane proposes as in `draw_lanes`, and compares what it accepts there with the kink at once, whatever the others do.
[[gnu::always_inline]] inline Vector draw_two_piece_lanes(Vector b, Vector p, Vector inverse, Vector scale, Vector kink,
                                                          double rate, Mask active, Streams& streams) {
    const Vector zero = broadcast(0.0), rates = broadcast(rate), one = broadcast(1.0);
    const Mask no_lane = zero > zero;
    const Mask below = (p * kink >= b) & (p * kink * kink >= one);
    const Mask beyond = select(below, no_lane, (one >= rates * kink) | (b - rates >= p * kink));
    const Mask piecewise = active & (beyond | below), by_mass = select(piecewise, no_lane, active);
    Vector drawn = zero;
    if (any(by_mass)) {
        Streams advanced = streams;
        drawn = draw_pieces_by_mass(b, p, kink, rate, by_mass, advanced);
        streams = advanced;
    }
    const PositiveLanes density(select(beyond, b - rates, b), p, inverse, scale);
    return accepted_lanes(piecewise, drawn, [&](Mask pending, Mask& rejected) __attribute__((always_inline)) {
        const Vector value = density.next(pending, streams, rejected);
        const Vector excess = select(beyond, kink - value, value - kink);
        const Mask compared = select(rejected, no_lane, pending & (excess > zero));
        if (any(compared)) {
            const Vector limit = propose(exponentials(), compared, streams);
            rejected = rejected | (compared & (rates * excess > limit));
        }
        return value;
    });
}

// Draw from exp(b w - p w²/2 - rate |w|) on the real line in the lanes of a mask, as `draw_real` does.
[[gnu::always_inline]] inline Vector draw_real_lanes(Vector b, Vector p, Vector inverse, Vector scale, Vector rate,
                                                     Mask active, Streams& streams) {
    const Vector zero = broadcast(0.0), one = broadcast(1.0), twice = rate + rate;
    const Mask with_kink = rate > zero;
    const Vector sign = select(with_kink & (b < zero), broadcast(-1.0), one);
    const Vector slope = sign * b - rate, mean = slope * inverse;
    const Mask in_tail = with_kink & (zero - slope * scale > broadcast(TAIL_START));
    const Proposal proposal = proposal_of(in_tail);
    return accepted_lanes(active, zero, [&](Mask pending, Mask& rejected) __attribute__((always_inline)) {
        const Mask pending_tail = pending & in_tail;
        const bool any_tail = any(pending_tail);
        Mask is_left = rejected = zero > zero;
        if (any_tail) is_left = in_tail & (to_units(next_words(streams, pending_tail)) * twice < zero - slope);
        Vector x = propose(proposal, pending, streams);
        Vector value = x * scale + mean;
        if (any_tail) {
            const Vector height = propose(exponentials(), pending_tail, streams);
            x = x / select(is_left, twice + slope, zero - slope);
            value = select(in_tail, x, value);
            rejected = in_tail & (p * x * x > height + height);
        }
        const Mask compared = pending & with_kink & (zero > value);  // none in the tail, whose sizes are positive
        if (any(compared)) {
            const Vector limit = propose(exponentials(), compared, streams);
            rejected = rejected | (compared & ((zero - twice) * value > limit));
        }
        return sign * select(is_left, zero - value, value);
    });
}

// Draw from exp(b w - p w²/2) on 0 <= w <= width in the lanes of a mask; the width may be infinite.
//
// Where the density is nearly flat, uniform proposals are accepted by their height. Elsewhere draws on w >= 0 are repeated
// until they are below the width, which more than a third of them are.
inline Vector draw_within_lanes(Vector b, Vector p, Vector width, Mask active, Streams& streams) {
    const Vector zero = broadcast(0.0), half = broadcast(0.5);
    const Mask mirrored = b > p * width;  // the density increases on the whole interval
    b = select(mirrored, p * width - b, b);
    const Mask flat = active & (broadcast(1.0) > (absolute(b) + half * p * width) * width);
    const Mask steep = select(flat, zero > zero, active);
    Vector drawn = zero;
    if (any(flat)) {
        const Vector mode = larger(b, zero) / p, highest = (b - half * p * mode) * mode;
        drawn = accepted_lanes(flat, drawn, [&](Mask pending, Mask& rejected) {
            const Vector x = to_units(next_words(streams, pending)) * width;
            rejected = highest - (b - half * p * x) * x > propose(exponentials(), pending, streams);
            return x;
        });
    }
    if (any(steep)) {
        const Vector inverse = broadcast(1.0) / p, scale = square_root(inverse);
        drawn = accepted_lanes(steep, drawn, [&](Mask pending, Mask& rejected) {
            const Vector x = draw_lanes(b, p, inverse, scale, pending, streams);
            rejected = x > width;
            return x;
        });
    }
    return select(mirrored, width - drawn, drawn);
}

}  // namespace bnmf
