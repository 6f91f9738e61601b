// Random streams, one for each row of each half-sweep, and ziggurat samplers for normals and exponentials.
//
// A stream is the state of a xoshiro256++ generator (Blackman and Vigna): four 64-bit words.
#pragma once

#include "vectors.hpp"

namespace bnmf {

// Increment of SplitMix64: 2⁶⁴ divided by the golden ratio, rounded to an odd number.
constexpr uint64_t GOLDEN_GAMMA = 0x9E3779B97F4A7C15;
// Scales 53 random bits to [0, 1).
constexpr double TO_UNIT = 0x1p-53;
// Proposals of a rejection sampler, of which each is accepted with a probability of at least a quarter. Only numbers
// beyond the range of floating point use them up, and the draw is NaN then: Ctrl-C cannot end a compiled loop.
constexpr int MAX_PROPOSALS = 1000;

struct Key {
    uint64_t high, low;
};

struct Stream {
    uint64_t s0, s1, s2, s3;
};

// Apply the finaliser of SplitMix64: a bijection of 64-bit words in which each bit affects all others.
inline uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
    return x ^ (x >> 31);
}

// Return the stream of a row, given the 128-bit key of the half-sweep.
inline Stream stream_of(Key key, uint64_t row) {
    const uint64_t high = key.high + row * GOLDEN_GAMMA;
    const uint64_t low = key.low ^ mix(high);
    // The all-zero state is the only invalid one, and the lowest bit of the last word excludes it.
    return {mix(high + GOLDEN_GAMMA), mix(low + GOLDEN_GAMMA), mix(high + GOLDEN_GAMMA + GOLDEN_GAMMA),
            mix(low + GOLDEN_GAMMA + GOLDEN_GAMMA) | 1};
}

// Return the key of one part (a half-sweep, the noise, ...) of one sweep of one chain.
inline Key key_of(Key seed, uint64_t chain, uint64_t sweep, uint64_t part) {
    uint64_t high = mix(seed.high + chain * GOLDEN_GAMMA);
    high = mix(high + sweep * GOLDEN_GAMMA);
    high = mix(high + part * GOLDEN_GAMMA);
    return {high, mix(seed.low ^ mix(high + GOLDEN_GAMMA))};
}

// Return 64 random bits.
[[gnu::always_inline]] inline uint64_t next_word(Stream& stream) {
    auto& [s0, s1, s2, s3] = stream;
    const uint64_t total = s0 + s3;
    const uint64_t word = ((total << 23) | (total >> 41)) + s0;
    const uint64_t shifted = s1 << 17;
    s2 ^= s0;
    s3 ^= s1;
    s1 ^= s2;
    s0 ^= s3;
    s2 ^= shifted;
    s3 = (s3 << 45) | (s3 >> 19);
    return word;
}

// Return the high 53 bits of a word as a number in [0, 1).
[[gnu::always_inline]] inline double to_unit(uint64_t word) { return double(int64_t(word >> 11)) * TO_UNIT; }

// Return a standard uniform in [0, 1).
[[gnu::always_inline]] inline double uniform(Stream& stream) { return to_unit(next_word(stream)); }

// --- Ziggurats (Marsaglia and Tsang): a density that decreases from its mode at 0 is covered by N_STRIPS horizontal
// strips of equal area. One word selects a strip (low 8 bits), a sign (bit 8) and a fraction of the strip's width
// (high 53 bits). That point is almost always under the density; the density is computed only near the strip's end.

constexpr int N_STRIPS = 256;

// Right edges x of the strips, the density y there, and the fraction of each strip that is certainly under the density.
// x[0] is the width of the base strip.
struct Ziggurat {
    using Function = double (*)(double);

    Function density;
    double x[N_STRIPS + 1], y[N_STRIPS + 1], inside[N_STRIPS];

    // Fill x for a tail that starts at `tail`, and return whether the strips stay below the mode.
    bool set_edges(double tail, Function inverse, Function area_beyond) {
        const double area = tail * density(tail) + area_beyond(tail);
        x[0] = area / density(tail);
        x[1] = tail;
        x[N_STRIPS] = 0.0;
        for (int i = 2; i < N_STRIPS; ++i) {
            const double height = density(x[i - 1]) + area / x[i - 1];
            if (height >= 1.0) return false;
            x[i] = inverse(height);
        }
        return density(x[N_STRIPS - 1]) + area / x[N_STRIPS - 1] <= 1.0;
    }

    // The only unknown is where the tail starts. Bisection finds the start for which the top strip ends at the mode.
    Ziggurat(Function density, Function inverse, Function area_beyond) : density(density) {
        double too_low = 1.0, high_enough = 20.0;  // if the tail starts too low, the strips overshoot the mode
        for (int i = 0; i < 60; ++i) {
            const double middle = 0.5 * (too_low + high_enough);
            (set_edges(middle, inverse, area_beyond) ? high_enough : too_low) = middle;
        }
        set_edges(high_enough, inverse, area_beyond);
        for (int i = 0; i <= N_STRIPS; ++i) y[i] = density(x[i]);
        for (int i = 0; i < N_STRIPS; ++i) inside[i] = x[i + 1] / x[i];
    }
};

inline const Ziggurat NORMAL(
    [](double x) { return std::exp(-0.5 * x * x); }, [](double y) { return std::sqrt(-2.0 * std::log(y)); },
    [](double x) { return std::sqrt(3.141592653589793 / 2) * std::erfc(x / std::sqrt(2.0)); });
inline const Ziggurat EXPONENTIAL(
    [](double x) { return std::exp(-x); }, [](double y) { return -std::log(y); }, [](double x) { return std::exp(-x); });

template <const Ziggurat&> constexpr bool is_normal = false;
template <> inline constexpr bool is_normal<NORMAL> = true;

template <const Ziggurat& TABLE> double edge(uint64_t word, Stream& stream);

// Return a draw from one of the ziggurats.
template <const Ziggurat& TABLE> [[gnu::always_inline]] inline double draw_standard(Stream& stream) {
    const uint64_t word = next_word(stream);
    const double fraction = to_unit(word);
    const int strip = word & 0xFF;
    if (fraction < TABLE.inside[strip]) {
        const double x = fraction * TABLE.x[strip];
        return is_normal<TABLE> && (word & 0x100) ? -x : x;
    }
    return edge<TABLE>(word, stream);
}

[[gnu::always_inline]] inline double normal(Stream& stream) { return draw_standard<NORMAL>(stream); }
[[gnu::always_inline]] inline double exponential(Stream& stream) { return draw_standard<EXPONENTIAL>(stream); }

// Return a normal in the right tail, beyond the base strip (Marsaglia 1964).
inline double normal_tail(Stream& stream) {
    const double start = NORMAL.x[1];
    for (int i = 0; i < MAX_PROPOSALS; ++i) {
        const double x = exponential(stream) / start;
        const double height = exponential(stream);
        if (2.0 * height >= x * x) return start + x;
    }
    return NOT_A_NUMBER;
}

// Finish a draw whose `word` fell near the end of a strip, which about one in a hundred does.
template <const Ziggurat& TABLE> [[gnu::noinline]] inline double edge(uint64_t word, Stream& stream) {
    double offset = 0.0;
    for (int i = 0; i < MAX_PROPOSALS; ++i) {
        const int strip = word & 0xFF;
        const double fraction = to_unit(word), x = fraction * TABLE.x[strip];
        const double sign = is_normal<TABLE> && (word & 0x100) ? -1.0 : 1.0;
        if (fraction < TABLE.inside[strip]) return sign * (offset + x);
        if (strip > 0) {
            const double low = TABLE.y[strip], high = TABLE.y[strip + 1];
            const double height = uniform(stream);
            if (low + height * (high - low) < TABLE.density(x)) return sign * (offset + x);
        } else if (is_normal<TABLE>) {
            return sign * normal_tail(stream);
        } else {
            offset += TABLE.x[1];  // the exponential is memoryless: draw the excess
        }
        word = next_word(stream);
    }
    return NOT_A_NUMBER;
}

}  // namespace bnmf
