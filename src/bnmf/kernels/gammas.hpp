// Gamma draws: precisions that share a distribution, and learned rates of priors.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "rows.hpp"

namespace bnmf {

// Draw from Gamma(shape, 1) (Marsaglia and Tsang 2000).
inline double gamma(double shape, Stream& stream) {
    if (shape < 1.0) return gamma(shape + 1.0, stream) * std::exp(-exponential(stream) / shape);
    const double d = shape - 1.0 / 3.0, c = 1.0 / std::sqrt(9.0 * d);
    return first_accepted([&](double& x) {
        const double z = normal(stream), u = uniform(stream), root = 1.0 + c * z, cube = root * root * root;
        x = d * cube;
        if (!(root > 0.0)) return false;
        const double square = z * z;
        return u < 1.0 - 0.0331 * square * square || std::log(u) < 0.5 * square + d * (1.0 - cube + std::log(cube));
    });
}

// Draw from Gamma(shape, rate) below a bound.
inline double bounded_gamma(double shape, double rate, double bound, Stream& stream) {
    if (!(bound > 0.0)) return NOT_A_NUMBER;
    const double at_bound = rate * bound;
    if (at_bound < std::max(0.5 * shape, shape - 0.5 * std::sqrt(shape))) {
        // Most of the mass is beyond the bound. The log density of t = log(bound / x), -shape t - at_bound exp(-t), is
        // concave. Proposals follow its tangent at t = 0, and at least two in five are accepted.
        const double t = first_accepted([&](double& t) {
            t = exponential(stream) / (shape - at_bound);
            return at_bound * (std::expm1(-t) + t) <= exponential(stream);
        });
        return bound * std::exp(-t);
    }
    return first_accepted([&](double& x) {  // of which at least three in ten are accepted
        x = gamma(shape, stream) / rate;
        return x <= bound;
    });
}

// Precisions p_i ~ Gamma(strength, strength * scale) below bounds, with scale ~ Gamma(½, ½) and a strength on a grid.
struct SharedPrecisions {
    double strength, scale;
    double total = 0.0, total_log = 0.0;  // sums over the precisions
    int64_t n = 0;

    // Draw the variance of n_entries of a squared error.
    double draw_variance(double squared_error, double n_entries, double bound, Stream& stream) {
        const double p =
            bounded_gamma(strength + 0.5 * n_entries, strength * scale + 0.5 * squared_error, bound, stream);
        total += p;
        total_log += std::log(p);
        ++n;
        return 1.0 / p;
    }

    void draw_scale(Stream& stream) {
        scale = gamma(0.5 + strength * double(n), stream) / (0.5 + strength * total);
    }

    // Draw the strength, one of `n_strengths`, each of which is equally likely before.
    void draw_strength(const double* strengths, int64_t n_strengths, Stream& stream) {
        std::vector<double> weights(n_strengths);
        for (int64_t i = 0; i < n_strengths; ++i) {
            const double a = strengths[i], of_each = a * std::log(a * scale) - std::lgamma(a);
            weights[i] = (a - 1.0) * total_log - a * scale * total + double(n) * of_each;
        }
        const double largest = *std::max_element(weights.begin(), weights.end());
        double sum = 0.0;
        for (double& weight : weights) sum += weight = std::exp(weight - largest);
        double left = uniform(stream) * sum;
        int64_t chosen = 0;
        while (chosen + 1 < n_strengths && (left -= weights[chosen]) > 0.0) ++chosen;
        strength = strengths[chosen];
    }
};

// Add the penalty of components `first` to `end` - 1 of a factor: of each component, or all of it to `penalty[0]`.
//
// A prior with a learned rate has one kind of penalty, or a normal density, ½ quadratic (w - mean)² in all.
inline void add_penalty(const double* W, int64_t n_rows, int64_t n_components, const Prior& prior, int64_t first,
                        int64_t end, bool by_component, double* penalty) {
    for (int64_t row = 0; row < n_rows; ++row) {
        const double* w = W + row * n_components;
        const double *linear = prior.linear.row(row), *quadratic = prior.quadratic.row(row);
        double sum = 0.0, squares = 0.0, largest = 0.0;
        for (int64_t k = first; k < end; ++k) {
            const double from_mean = quadratic[k] > 0.0 ? w[k] + linear[k] / quadratic[k] : 0.0;
            double of_entry = quadratic[k] > 0.0 ? 0.5 * quadratic[k] * from_mean * from_mean : linear[k] * w[k];
            if (prior.absolute.data != nullptr) of_entry += prior.absolute.row(row)[k] * std::fabs(w[k]);
            penalty[by_component ? k : 0] += of_entry;
            sum += w[k];
            squares += w[k] * w[k];
            largest = std::max(largest, w[k]);
        }
        if (!by_component) penalty[0] += 0.5 * prior.pairwise * (sum * sum - squares) + prior.max_rate * largest;
    }
}

}  // namespace bnmf
