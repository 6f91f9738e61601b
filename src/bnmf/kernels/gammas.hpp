// Gamma draws: precisions that share a distribution, and learned rates of priors.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "arrays.hpp"

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

// Draw the strength, one of some that are equally likely before, given the number of precisions and sums over them.
inline double draw_strength(const Numbers& strengths, double scale, double n, double total, double total_log,
                            Stream& stream) {
    std::vector<double> weights;
    for (std::size_t i = 0; i < strengths.size(); ++i) {
        const double a = strengths.data()[i], of_each = a * std::log(a * scale) - std::lgamma(a);
        weights.push_back((a - 1.0) * total_log - a * scale * total + n * of_each);
    }
    const double largest = *std::max_element(weights.begin(), weights.end());
    double sum = 0.0;
    for (double& weight : weights) sum += weight = std::exp(weight - largest);
    double left = uniform(stream) * sum;
    std::size_t chosen = 0;
    while (chosen + 1 < weights.size() && (left -= weights[chosen]) > 0.0) ++chosen;
    return strengths.data()[chosen];
}

// Draw variances given squared errors and the number of entries of each, and return the scale and the strength.
//
// Precisions p_i ~ Gamma(strength, strength * scale) below bounds, with scale ~ Gamma(½, ½) and a strength on a grid.
inline std::pair<double, double> draw_variances(Numbers errors, Pointers counts, Numbers bounds, double strength,
                                                double scale, bool has_scale, Numbers strengths, Pair key, Results out) {
    const int64_t n = int64_t(out.size());
    const double* const squared_error = pointer(errors, n, "errors");
    const int64_t* const n_entries = pointer(counts, n, "counts");
    const Strided bound = one_or_each(bounds, n, "bounds");
    require(strengths.size() > 0, "there must be a strength");
    nb::gil_scoped_release release;
    Stream stream = stream_of(key_of(key), 0);
    double total = 0.0, total_log = 0.0;
    for (int64_t i = 0; i < n; ++i) {
        const double shape = strength + 0.5 * double(n_entries[i]), rate = strength * scale + 0.5 * squared_error[i];
        const double p = bounded_gamma(shape, rate, bound[i], stream);
        total += p;
        total_log += std::log(p);
        out.data()[i] = 1.0 / p;
    }
    if (has_scale) scale = gamma(0.5 + strength * double(n), stream) / (0.5 + strength * total);
    return {scale, draw_strength(strengths, scale, double(n), total, total_log, stream)};
}

// Add the penalty of components `first` to `end` - 1 of a factor: of each component, or all of it to `penalty[0]`.
//
// A prior with a learned rate has one kind of penalty, or a normal density, ½ quadratic (w - mean)² in all.
inline void add_penalty(const Matrix& W, const Prior& prior, int64_t first, int64_t end, bool by_component,
                        std::vector<double>& penalty) {
    for (int64_t row = 0; row < int64_t(W.shape(0)); ++row) {
        const double* w = W.data() + row * W.shape(1);
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

// Draw a rate that has a prior Gamma(shape, rate): of both factors, or of each of their components.
inline void draw_rate(Matrix W, Matrix Z, const PriorArrays& prior_W, const PriorArrays& prior_Z, Range drawn_W,
                      Range drawn_Z, bool by_component, double degree, double shape, double rate, Pair key, Results out) {
    const int64_t n_components = int64_t(W.shape(1)), n = by_component ? n_components : 1;
    double* const rates = pointer(out, n, "out");
    std::vector<double> shapes(n, shape), penalties(n, rate);
    const auto add = [&](const Matrix& factor, const PriorArrays& prior, Range drawn) {
        const int64_t n_rows = int64_t(factor.shape(0)), first = drawn.first, end = drawn.second;
        require(0 <= first && end <= n_components, "there are no such components");
        for (int64_t k = first; k < end; ++k) shapes[by_component ? k : 0] += double(n_rows) / degree;
        add_penalty(factor, prior.of_factor(n_rows, n_components), first, end, by_component, penalties);
    };
    require(W.shape(1) == Z.shape(1), "W and Z must have the same components");
    nb::gil_scoped_release release;
    add(W, prior_W, drawn_W);
    add(Z, prior_Z, drawn_Z);
    Stream stream = stream_of(key_of(key), 0);
    for (int64_t i = 0; i < n; ++i) rates[i] = gamma(shapes[i], stream) / penalties[i];
}

}  // namespace bnmf
