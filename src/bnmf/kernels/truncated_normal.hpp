// Exact draws from exp(b w - p w²/2) on an interval, and the logarithm of its mass.
//
// The natural parameters (b, p) are used throughout instead of the mean b/p. So p = 0 gives an exponential (b < 0) or a
// uniform (b = 0) without a special case. An interval [low, high] is shifted to [0, high - low] by b -> b - p low. Draws
// use rejection sampling, so they are exact however far the interval lies in the tail. A draw whose parameters exceed the
// range of floating point is NaN.
#pragma once

#include "random.hpp"

namespace bnmf {

// Distance of zero above the mean, in standard deviations, from which an exponential proposal is accepted more often
// than a folded normal one.
constexpr double TAIL_START = 0.65;
// Gauss-Legendre quadrature on [-1, 1], symmetric: positive nodes from the largest to the smallest, and their weights.
constexpr double LEGENDRE_NODES[] = {0.9602898564975362, 0.7966664774136267, 0.525532409916329, 0.18343464249564978};
constexpr double LEGENDRE_WEIGHTS[] = {0.10122853629037706, 0.22238103445337443, 0.3137066458778869,
                                       0.36268378337836166};
constexpr double SQRT_PI = 1.7724538509055159;

// Return the first number that `propose` writes and accepts, or NaN.
template <typename F> inline double first_accepted(F propose) {
    double x;
    for (int i = 0; i < MAX_PROPOSALS; ++i)
        if (propose(x)) return x;
    return NOT_A_NUMBER;
}

// Draw from exp(b w - p w²/2) on w >= 0.
inline double draw_positive(double b, double p, Stream& stream) {
    const double inverse = 1.0 / p, scale = std::sqrt(inverse), start = -b * scale, mean = b * inverse;
    if (start > TAIL_START)
        return first_accepted([&](double& x) {
            x = exponential(stream) / -b;
            return p * x * x <= 2.0 * exponential(stream);
        });
    return first_accepted([&](double& x) {
        const double z = normal(stream);
        x = (start > 0.0 ? std::fabs(z) : z) * scale + mean;
        return x >= 0.0;
    });
}

// Draw within [0, width] if the density is decreasing there (b <= 0).
inline double draw_decreasing(double b, double p, double width, Stream& stream) {
    if ((0.5 * p * width - b) * width < 1.0)
        return first_accepted([&](double& x) {
            x = uniform(stream) * width;
            return (0.5 * p * x - b) * x <= exponential(stream);
        });
    return first_accepted([&](double& x) {
        x = draw_positive(b, p, stream);
        return !(x > width);  // NaN is accepted
    });
}

// Draw from exp(b w - p w²/2) on 0 <= w <= width; the width may be infinite.
inline double draw_within(double b, double p, double width, Stream& stream) {
    if (b > p * width)  // increasing on the whole interval: mirror it
        return width - draw_decreasing(p * width - b, p, width, stream);
    if (b <= 0.0) return draw_decreasing(b, p, width, stream);
    const double scale = 1.0 / std::sqrt(p), start = -b * scale;
    if (width < 2.0 * scale)
        return first_accepted([&](double& x) {
            x = uniform(stream) * width;
            const double distance = x - b / p;
            return p * distance * distance <= 2.0 * exponential(stream);
        });
    return first_accepted([&](double& x) {
        x = (normal(stream) - start) * scale;
        return 0.0 <= x && x <= width;
    });
}

// Return exp(x²) erfc(x) for x >= 0.
inline double scaled_erfc(double x) {
    if (x < 25.0) return std::exp(x * x) * std::erfc(x);
    const double q = 0.5 / (x * x);
    return (1.0 - q * (1.0 - 3.0 * q * (1.0 - 5.0 * q * (1.0 - 7.0 * q)))) / (x * SQRT_PI);
}

// Return the log mass if the density is decreasing, by a factor of at least e over [0, width].
inline double log_mass_decreasing(double b, double p, double width) {
    if (p == 0.0) return std::log(-std::expm1(b * width) / -b);
    const double sqrt_half_p = std::sqrt(0.5 * p), start = 0.5 * -b / sqrt_half_p;
    double mass = scaled_erfc(start);
    if (width < INFINITE)
        mass -= std::exp((b - 0.5 * p * width) * width) * scaled_erfc(start + width * sqrt_half_p);
    return std::log(0.5 * SQRT_PI * mass / sqrt_half_p);
}

// Return the log of the integral of exp(b w - p w²/2) over 0 <= w <= width; the width may be infinite.
inline double log_mass(double b, double p, double width) {
    if (width <= 0.0) return -INFINITE;
    if ((std::fabs(b) + 0.5 * p * width) * width < 1.0) {  // nearly flat: differences of Φ would cancel
        double total = 0.0;
        for (int i = 0; i < 8; ++i) {
            const double node = i < 4 ? -LEGENDRE_NODES[i] : LEGENDRE_NODES[7 - i];
            const double w = 0.5 * width * (1.0 + node);
            total += LEGENDRE_WEIGHTS[i < 4 ? i : 7 - i] * std::exp((b - 0.5 * p * w) * w);
        }
        return std::log(0.5 * width * total);
    }
    if (b > p * width) return (b - 0.5 * p * width) * width + log_mass_decreasing(p * width - b, p, width);
    if (b <= 0.0) return log_mass_decreasing(b, p, width);
    const double sqrt_half_p = std::sqrt(0.5 * p), mode = b / p;
    const double area = std::erf(mode * sqrt_half_p) + std::erf((width - mode) * sqrt_half_p);
    return 0.5 * b * mode + std::log(0.5 * SQRT_PI * area / sqrt_half_p);
}

// Draw from exp(b w - p w²/2 - max_rate max(w, kink)) on w >= 0: the conditional of an entry under L∞.
//
// If one of the two pieces, extended beyond the kink, is close to the whole density, it serves as the proposal of a
// rejection sampler that accepts more than a third of its draws: that of the mode, if it is below the kink. Otherwise a
// piece is selected by its mass first.
inline double draw_two_piece(double b, double p, double kink, double max_rate, Stream& stream) {
    if (b <= p * kink && p * kink * kink >= 1.0)
        return first_accepted([&](double& x) {
            x = draw_positive(b, p, stream);
            return !(x > kink) || max_rate * (x - kink) <= exponential(stream);
        });
    if (max_rate * kink <= 1.0 || b - max_rate >= p * kink)
        return first_accepted([&](double& x) {
            x = draw_positive(b - max_rate, p, stream);
            return !(x < kink) || max_rate * (kink - x) <= exponential(stream);
        });
    const double beyond = b - max_rate - p * kink;
    const double log_below = log_mass(b, p, kink);
    const double log_above = (b - 0.5 * p * kink) * kink + log_mass(beyond, p, INFINITE);
    if (uniform(stream) * (1.0 + std::exp(log_above - log_below)) < 1.0) return draw_within(b, p, kink, stream);
    return kink + draw_positive(beyond, p, stream);
}

// Draw from exp(b w - p w²/2 - rate |w|) on the real line: the conditional of an entry that may be negative.
//
// For b >= 0, and mirrored for b < 0. The piece on w > 0, extended to w < 0, is a normal that is never below the density.
// If its mean is too far below zero for that to be accepted often, proposals are exponential on both sides of zero, which
// the factor exp(-p w²/2) accepts. Each proposal is accepted with a probability of at least a quarter.
inline double draw_real(double b, double p, double rate, Stream& stream) {
    const double sign = rate > 0.0 && b < 0.0 ? -1.0 : 1.0;
    const double inverse = 1.0 / p, scale = std::sqrt(inverse), slope = sign * b - rate;  // of the log density beyond 0
    if (rate > 0.0 && -slope * scale > TAIL_START)
        return first_accepted([&](double& x) {
            const bool is_left = uniform(stream) * (rate + rate) < -slope;
            const double size = exponential(stream) / (is_left ? rate + rate + slope : -slope);
            x = is_left ? -sign * size : sign * size;
            return p * size * size <= 2.0 * exponential(stream);
        });
    return first_accepted([&](double& x) {
        const double value = normal(stream) * scale + slope * inverse;
        x = sign * value;
        return !(value < 0.0 && rate > 0.0) || -2.0 * rate * value <= exponential(stream);
    });
}

}  // namespace bnmf
