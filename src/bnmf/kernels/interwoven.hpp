// Factors that are drawn together with the latent values that follow them.
//
// Given the latent values of limited entries, a row of W hardly moves where most of its entries lie beyond a limit: the
// values follow W, and W follows the values. This draw holds the residuals of such entries instead (interweaving, Yu and
// Meng 2011): a value moves along with w z as far as its limit allows, and only the other entries of the row are data.
// Both draws leave the joint density of factors and latent values unchanged, and each is fast where the other one is slow.
#pragma once

#include <limits>

#include "latent.hpp"
#include "moves.hpp"

namespace bnmf {

// The observed entries of some rows, row by row: first those that are data, whose limit is NaN, then those that follow W.
//
// These lie above or below one limit; `above` says which, 1 or 0. `errors` holds gross errors, in units of the data, and
// `places` where that of each entry is, or -1: limits are those of a value and its error.
struct Interwoven : EntryList {
    explicit Interwoven(Arguments given)
        : EntryList(std::move(given)), limits(arguments.pointer<Numbers>("limit", n)),
          above(arguments.pointer<Flags>("above", n)), places(arguments.pointer_or_null<Pointers>("places", n)),
          errors(places != nullptr ? arguments.get<Numbers>("errors").data() : nullptr) {}

    // Draw the components `drawn` of rows `start` to `stop` of W in place, and store the values that follow them. The
    // `prior` must have no kink: no term in max(w) or |w|. `weight` has a factor of the precision of each entry.
    void draw(const Given& given, int64_t start, int64_t stop) const {
        check(given, start, stop);
        const auto W = given.arguments.get<WritableMatrix>("W");
        const auto drawn = given.arguments.get<Range>("drawn");
        const Prior prior = given.arguments.get<const PriorArrays*>("prior")->of_factor(n_rows, given.n_components);
        const double* const weights = given.arguments.pointer_or_null<Numbers>("weight", n);
        require(0 <= drawn.first && drawn.second <= given.n_components, "there are no such components");
        nb::gil_scoped_release release;
        Buffer buffer;
        for (int64_t row = start; row < stop; ++row)
            if (indptr[row] < indptr[row + 1]) draw_row(given, W.data(), prior, drawn, weights, row, buffer);
    }

    // Distance from a limit of a value that rounding has taken to it, or beyond.
    static constexpr double CLOSEST = std::numeric_limits<double>::min();

    bool follows(int64_t i) const { return limits[i] == limits[i]; }

    void draw_row(const Given& given, double* W, const Prior& prior, Range drawn, const double* weights, int64_t row,
                  Buffer& buffer) const {
        const int64_t first = indptr[row], end = indptr[row + 1], K = given.n_components;
        int64_t n_data = 0;
        while (first + n_data < end && !follows(first + n_data)) ++n_data;
        // Data and followers each fill whole vectors: residuals and precisions of the former, of the latter the distance
        // from the limit, which is negative below it, and its sign; and for both a column of Z for each component.
        const int64_t n_padded = padded_length(n_data), length = n_padded + padded_length(end - first - n_data);
        double* const away = buffer.reserve((2 + K) * length);
        double *const precision = away + length, *const z = precision + length;
        double *const sign = precision, *const w = W + row * K;
        const double of_row = 1.0 / given.row_variance[row];
        std::fill_n(away, length, 1.0);
        std::fill_n(precision, n_padded, 0.0);
        std::fill_n(sign + n_padded, length - n_padded, 1.0);
        transpose(given, first, first + n_data, length, z);
        transpose(given, first + n_data, end, length, z + n_padded);
        for (int64_t i = first; i < end; ++i) {
            const int64_t column = columns[i], at = i - first < n_data ? i - first : i - first - n_data + n_padded;
            if (i - first < n_data) {
                away[at] = given.residual(row, column, value(i));
                precision[at] = given.column_precision[column] * of_row * (weights == nullptr ? 1.0 : weights[i]);
            } else {
                sign[at] = above[i] ? 1.0 : -1.0;
                const double distance = sign[at] * (value(i) - limit_of(i)) * given.unit(row, column);
                away[at] = sign[at] * std::max(distance, CLOSEST);
            }
        }
        Stream stream = stream_of(given.key, given.ids[row]);
        double sum = 0.0;  // of the row of W
        for (int64_t k = 0; k < K; ++k) sum += w[k];
        Vector step = broadcast(0.0);  // of the component before, which the pass of the next one applies
        const double* before = z;
        const auto moved = [&](int64_t i) {
            const Vector next = add_product(load(away + i), step, load(before + i)), side = load(sign + i);
            return select(next * side > broadcast(0.0), next, side * broadcast(CLOSEST));
        };
        for (int64_t k = drawn.first; k < drawn.second; ++k) {
            const double* const zk = z + k * length;
            const Vector back = broadcast(0.0) - step;
            Vector slope = broadcast(0.0), curvature = slope, forward = slope, backward = slope;
            for (int64_t i = 0; i < n_padded; i += WIDTH) {
                const Vector of_z = load(zk + i), weighted = load(precision + i) * of_z;
                const Vector residual = add_product(load(away + i), back, load(before + i));
                bnmf::store(away + i, residual);
                slope = add_product(slope, weighted, residual);
                curvature = add_product(curvature, weighted, of_z);
            }
            for (int64_t i = n_padded; i < length; i += WIDTH) {  // a value reaches its limit at -1 / rate
                const Vector distance = moved(i), rate = load(zk + i) / distance;
                bnmf::store(away + i, distance);
                backward = select(rate > backward, rate, backward);
                forward = select(forward > rate, rate, forward);
            }
            const double quadratic = prior.quadratic.row(row)[k], p = lane_sum(curvature) + quadratic;
            const double b = lane_sum(slope) - quadratic * w[k] - prior.linear.row(row)[k] - prior.pairwise * (sum - w[k]);
            const double lowest = prior.absolute.data != nullptr ? -INFINITE : -w[k];
            const double low = std::max(lowest, -1.0 / lane_maximum(backward));
            const double high = 1.0 / lane_maximum(broadcast(0.0) - forward), old = w[k];
            if (low < high) w[k] += draw_between(b, p, low, high, stream);
            if (lowest > -INFINITE) w[k] = std::max(w[k], 0.0);
            sum += w[k] - old;
            step = broadcast(w[k] - old);
            before = zk;
        }
        for (int64_t i = n_padded; i < length; i += WIDTH) bnmf::store(away + i, moved(i));
        for (int64_t i = first + n_data; i < end; ++i)
            store(i, limit_of(i) + away[i - first - n_data + n_padded] / given.unit(row, columns[i]));
    }

    // Write the rows of Z of entries `first` to `end` as columns, padded with zeros to whole vectors.
    void transpose(const Given& given, int64_t first, int64_t end, int64_t length, double* z) const {
        for (int64_t begin = first; begin < end; begin += WIDTH, z += WIDTH) {
            const double* from[WIDTH];
            const int64_t n = std::min<int64_t>(WIDTH, end - begin), K = given.n_components;
            for (int64_t i = 0; i < n; ++i) from[i] = given.Z + columns[begin + i] * K;
            for (int64_t k = 0; k < K; ++k) {
                double* const to = z + k * length;
                for (int64_t i = 0; i < n; ++i) to[i] = from[i][k];
                std::fill(to + n, to + WIDTH, 0.0);
            }
        }
    }

    // Return the limit of a value without its gross error.
    double limit_of(int64_t i) const {
        const int64_t place = places != nullptr ? places[i] : -1;
        return place < 0 ? limits[i] : limits[i] - errors[place];
    }

    const double* limits;
    const uint8_t* above;
    const int64_t* places;
    const double* errors;
};

}  // namespace bnmf
