// Squared errors from the residuals: slow, but nothing cancels.
#pragma once

#include <algorithm>
#include <vector>

#include "arrays.hpp"

namespace bnmf {

// Return Σ x y of numbers that are some steps apart, in four sums that do not wait for each other.
template <typename T, typename U>
[[gnu::always_inline]] inline double dot(const T* x, const U* y, int64_t n, int64_t step_x = 1, int64_t step_y = 1) {
    double sums[4] = {};
    int64_t k = 0;
    for (; k + 4 <= n; k += 4)
        for (int j = 0; j < 4; ++j) sums[j] += double(x[(k + j) * step_x]) * double(y[(k + j) * step_y]);
    for (; k < n; ++k) sums[0] += double(x[k * step_x]) * double(y[k * step_y]);
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// Both factors by rows, and the scales of the data.
struct Fit {
    const double *W, *Z;
    int64_t n_rows, n_columns, n_components;
    Strided entry_scale, row_scale;

    Fit(const Matrix& W, const Matrix& Z, Strided entry_scale, Strided row_scale)
        : W(W.data()), Z(Z.data()), n_rows(int64_t(W.shape(0))), n_columns(int64_t(Z.shape(0))),
          n_components(int64_t(W.shape(1))), entry_scale(entry_scale), row_scale(row_scale) {
        require(W.shape(1) == Z.shape(1), "W and Z must have the same components");
    }

    double unit(int64_t row, int64_t column) const { return entry_scale[column] * row_scale[row]; }
    double fitted(int64_t row, int64_t column) const {
        return dot(W + row * n_components, Z + column * n_components, n_components);
    }
    double residual(int64_t row, int64_t column, double value) const {
        return value * unit(row, column) - fitted(row, column);
    }
};

// Write a - w z at every listed position of rows `start` to `stop`, which list what was observed.
inline void listed_residuals(const Fit& fit, const Data& data, int64_t start, int64_t stop, double* out) {
    for (int64_t row = start; row < stop; ++row)
        for (int64_t i = data.indptr[row]; i < data.indptr[row + 1]; ++i)
            out[i] = fit.residual(row, data.indices[i], data.value(i));
}

// Write the squared error of rows `start` to `stop`.
inline void squared_residuals(const Fit& fit, const Data& data, int64_t start, int64_t stop, double* squared_error) {
    std::vector<double> whole(data.stored_indptr != nullptr ? data.n_columns : 0);  // a row of a sparse matrix
    for (int64_t row = start; row < stop; ++row) {
        double total = 0.0;
        const auto add = [&](int64_t column, double value) {
            const double residual = fit.residual(row, column, value);
            total += residual * residual;
        };
        if (data.lists_missing[row]) {
            const double* values = whole.data();
            if (data.dense != nullptr) {
                values = data.dense + row * data.n_columns;
            } else {
                std::fill(whole.begin(), whole.end(), 0.0);
                for (int64_t j = data.stored_indptr[row]; j < data.stored_indptr[row + 1]; ++j)
                    whole[data.stored_indices[j]] += data.stored_values[j];
            }
            data.visit_unlisted(row, [&](int64_t column) { add(column, values[column]); });
        } else {
            for (int64_t i = data.indptr[row]; i < data.indptr[row + 1]; ++i) add(data.indices[i], data.value(i));
        }
        squared_error[row] = total;
    }
}

// Draws of a factor, of any strides.
using Draws = Exact<nb::ndarray<nb::ro, nb::ndim<3>, nb::device::cpu>>;

// Bytes of a cache line, and pairs between one whose product is computed and one whose row of W is prefetched.
constexpr int64_t CACHE_LINE = 64, PAIRS_AHEAD = 8;

// Write Σ w z of n pairs of a row of W (draw, rows, K) and a column of Z (draw, K, columns), draw by draw.
template <typename T, typename U>
void paired_products(const Draws& W, const Draws& Z, const int64_t* rows, const int64_t* columns, int64_t n, double* out) {
    const int64_t n_components = int64_t(Z.shape(1)), step_w = W.stride(2), step_z = Z.stride(1);
    for (int64_t draw = 0; draw < int64_t(W.shape(0)); ++draw) {
        const T* of_W = static_cast<const T*>(W.data()) + draw * W.stride(0);
        const U* of_Z = static_cast<const U*>(Z.data()) + draw * Z.stride(0);
        for (int64_t i = 0; i < n; ++i) {
            const T* next = of_W + rows[std::min(i + PAIRS_AHEAD, n - 1)] * W.stride(1);
            for (int64_t k = 0; k < n_components; k += CACHE_LINE / sizeof(T)) __builtin_prefetch(next + k * step_w);
            const T* w = of_W + rows[i] * W.stride(1);
            out[draw * n + i] = dot(w, of_Z + columns[i] * Z.stride(2), n_components, step_w, step_z);
        }
    }
}

// Return whether each of n numbers is above its bound; NaN is not.
inline bool all_above(const double* numbers, const double* bounds, int64_t n) {
    bool is_above = true;
    for (int64_t i = 0; i < n; ++i) is_above &= numbers[i] > bounds[i];
    return is_above;
}

// Return whether all of n numbers are finite.
inline bool all_finite(const double* numbers, int64_t n) {
    bool is_finite = true;
    for (int64_t i = 0; i < n; ++i) is_finite &= std::fabs(numbers[i]) < INFINITE;
    return is_finite;
}

}  // namespace bnmf
