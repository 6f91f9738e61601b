// Latent values of entries that are only known to lie between two limits: draws from their truncated normals.
#pragma once

#include <utility>
#include <vector>

#include "arrays.hpp"
#include "lanes.hpp"

namespace bnmf {

// Return Σ x y, in four sums that do not wait for each other.
inline double dot(const double* x, const double* y, int64_t n) {
    double sums[4] = {};
    int64_t k = 0;
    for (; k + 4 <= n; k += 4)
        for (int j = 0; j < 4; ++j) sums[j] += x[k + j] * y[k + j];
    for (; k < n; ++k) sums[0] += x[k] * y[k];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// Numbers, and the place of each of some entries there: -1 for none.
using Target = std::pair<Results, Pointers>;

// Check the pointers to n entries, row by row, and the places that hold them.
inline void check_entries(const Pointers& indptr, int64_t n, const std::vector<Target>& targets) {
    require(indptr.size() > 0 && indptr.data()[0] == 0 && indptr.data()[indptr.size() - 1] == n,
            "indptr must end with the number of entries");
    for (std::size_t row = 0; row + 1 < indptr.size(); ++row)
        require(indptr.data()[row] <= indptr.data()[row + 1], "indptr must ascend");
    for (const auto& [numbers, places] : targets) {
        require_size(places, n, "the places of a target");
        for (int64_t i = 0; i < n; ++i)
            require(-1 <= places.data()[i] && places.data()[i] < int64_t(numbers.size()),
                    "places must be inside of their target");
    }
}

// The limited entries of a matrix, row by row, and every place where their values are stored.
class Latent {
public:
    Latent(Pointers indptr, Positions columns, Numbers lower, Numbers upper,
           std::vector<Target> targets)
        : indptr_(indptr), columns_(columns), lower_(lower), upper_(upper), targets_(std::move(targets)) {
        const int64_t n = int64_t(columns.size());
        check_entries(indptr, n, targets_);
        require_size(lower, n, "lower");
        require_size(upper, n, "upper");
        for (int64_t i = 0; i < n; ++i) {
            n_columns_ = std::max(n_columns_, int64_t(columns.data()[i]) + 1);
            require(lower.data()[i] < upper.data()[i] && (lower.data()[i] > -INFINITE || upper.data()[i] < INFINITE),
                    "limits must be apart, and one of them finite");
        }
    }

    // Draw the entries of rows `start` to `stop` given W and Z, each row from streams of its id, in all places.
    //
    // Variances are in units of the model, and values are stored in those of the data. `weight` has a factor of the
    // precision of each limited entry.
    void draw(Matrix W, Matrix Z, std::optional<Numbers> entry_scale, Numbers row_scale, Numbers row_variance,
              Numbers column_variance, std::optional<Numbers> weight, Ids ids, uint64_t key_high,
              uint64_t key_low, int64_t start, int64_t stop) const {
        const int64_t n_rows = int64_t(indptr_.size()) - 1, n_columns = int64_t(Z.shape(0));
        const int64_t n_components = int64_t(Z.shape(1));
        require(int64_t(W.shape(0)) == n_rows && n_columns_ <= n_columns && W.shape(1) == Z.shape(1),
                "W and Z must be factors of the data");
        require(0 <= start && start <= stop && stop <= n_rows, "there are no such rows");
        require_size(ids, n_rows, "ids");
        const double* weights = pointer_or_null(weight, int64_t(columns_.size()), "weight");
        const Strided scale_of_column = scales_of(entry_scale, n_columns);
        const Strided scale_of_row = one_or_each(row_scale, n_rows, "row_scale");
        const Strided of_row = one_or_each(row_variance, n_rows, "row_variance");
        const Strided of_column = one_or_each(column_variance, n_columns, "column_variance");
        nb::gil_scoped_release release;
        const int64_t* const indptr = indptr_.data();
        const uint32_t* const columns = columns_.data();
        const double *const lower = lower_.data(), *const upper = upper_.data(), *const z = Z.data();
        std::vector<double> precision_of(n_columns);
        for (int64_t column = 0; column < n_columns; ++column) precision_of[column] = 1.0 / of_column[column];
        for (int64_t row = start; row < stop; ++row) {
            const int64_t first = indptr[row], end = indptr[row + 1];
            StreamWords words{};  // lane i draws every eighth entry of the row from a stream of its own
            for (int64_t lane = 0; lane < std::min<int64_t>(WIDTH, end - first); ++lane)
                words.set(lane, stream_of({mix(key_high + lane), key_low}, ids.data()[row]));
            Streams streams = words.streams();
            const double* w = W.data() + row * n_components;
            for (int64_t begin = first; begin < end; begin += WIDTH) {
                const int64_t n = std::min<int64_t>(WIDTH, end - begin);
                double low_of[WIDTH] = {}, high_of[WIDTH] = {}, mean_of[WIDTH] = {}, p_of[WIDTH], unit_of[WIDTH];
                std::fill_n(p_of, WIDTH, 1.0);
                std::fill_n(unit_of, WIDTH, 1.0);
                std::copy_n(lower + begin, n, low_of);
                std::copy_n(upper + begin, n, high_of);
                if (weights != nullptr) std::copy_n(weights + begin, n, p_of);
                for (int64_t i = 0; i < n; ++i) {
                    const int64_t column = columns[begin + i];
                    mean_of[i] = dot(w, z + column * n_components, n_components);
                    p_of[i] *= precision_of[column];
                    unit_of[i] = scale_of_column[column];
                }
                const Vector low = load(low_of), high = load(high_of), mean = load(mean_of);
                const Vector p = load(p_of) / broadcast(of_row[row]), unit = load(unit_of) * broadcast(scale_of_row[row]);
                // What is drawn is the distance from the lower limit, or from the upper one if there is no lower one.
                const Mask from_lower = low > broadcast(-INFINITE);
                const Vector b = p * select(from_lower, mean - low * unit, high * unit - mean);
                const Vector drawn = draw_within_lanes(b, p, (high - low) * unit, first_lanes(n), streams) / unit;
                const Vector value = select(from_lower, low + drawn, high - drawn);
                double values[WIDTH];
                store(values, select(value > high, high, value));  // rounding may step over a limit
                for (const auto& [numbers, places] : targets_) {
                    double* const to = numbers.data();
                    const int64_t* const at = places.data() + begin;
                    for (int64_t i = 0; i < n; ++i)
                        if (at[i] >= 0) to[at[i]] = values[i];
                }
            }
        }
    }

private:
    Pointers indptr_;
    Positions columns_;
    Numbers lower_, upper_;
    std::vector<Target> targets_;
    int64_t n_columns_ = 0;
};

}  // namespace bnmf
