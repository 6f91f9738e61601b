// Sums over complete rows, by tiles that stay in registers: ZᵀZ of a factor, and A Z for a range of rows.
//
// BLAS would be as fast for large matrices. For small ones its calls cost more than the sums, and it rounds differently
// on every processor and with every number of threads.
#pragma once

#include <algorithm>

#include "rows.hpp"

namespace bnmf {

// Columns of tiles of three, two and one vectors, and of those that end with half a vector.
constexpr int THREE = 3 * WIDTH, TWO = 2 * WIDTH, ONE = WIDTH, TWO_AND_HALF = TWO + HALF, ONE_AND_HALF = ONE + HALF;
// Rows of the factor that are summed at a time, so that they stay in the cache.
constexpr int64_t LINES_PER_CHUNK = 128;

// Lines of numbers: `line` from one to the next, and `step` from number to number of a line.
struct Lines {
    const double* data;
    int64_t line, step;
};

// Add factor * Σ x yᵀ, summed over n lines, to a tile of ROWS by REGISTERS registers of N lanes.
template <int ROWS, int REGISTERS, int N>
[[gnu::always_inline]] inline void add_registers(Lines x, const double* y, int64_t line_y, int64_t n, double factor,
                                                 double* out, int64_t line_out) {
    Register<double, N> sums[ROWS][REGISTERS] = {};
    for (int64_t i = 0; i < n; ++i) {
        Register<double, N> line[REGISTERS];
        unrolled<REGISTERS>([&](auto j) __attribute__((always_inline)) {
            line[j] = load_register<N>(y + i * line_y + j * N);
        });
        unrolled<ROWS>([&](auto row) __attribute__((always_inline)) {
            const auto number = broadcast_register<N>(x.data[i * x.line + row * x.step]);
            unrolled<REGISTERS>([&, row](auto j) __attribute__((always_inline)) {
                sums[row][j] = add_product(sums[row][j], number, line[j]);
            });
        });
    }
    const auto factors = broadcast_register<N>(factor);
    unrolled<ROWS * REGISTERS>([&](auto i) __attribute__((always_inline)) {
        double* to = out + i / REGISTERS * line_out + i % REGISTERS * N;
        store_register<N>(to, add_product(load_register<N>(to), factors, sums[i / REGISTERS][i % REGISTERS]));
    });
}

// Add factor * Σ x yᵀ, summed over n lines, to a tile of ROWS by COLUMNS, a multiple of half a vector.
//
// The sums stay in registers, so each loaded number is used many times.
template <int ROWS, int COLUMNS>
[[gnu::noinline]] void add_tile(Lines x, const double* y, int64_t line_y, int64_t n, double factor, double* out,
                                int64_t line_out) {
    constexpr int whole = COLUMNS / LANES;
    if constexpr (whole > 0) add_registers<ROWS, whole, LANES>(x, y, line_y, n, factor, out, line_out);
    if constexpr (COLUMNS % LANES != 0)
        add_registers<ROWS, 1, HALF>(x, y + whole * LANES, line_y, n, factor, out + whole * LANES, line_out);
}

// Add factor * Σ z zᵀ over n lines to the 8 x 8 submatrices on and above the diagonal of a matrix.
inline void add_outer_products(double factor, const double* lines, int64_t n, double* system, int64_t side) {
    for (int64_t k = 0; k < side; k += TILE.rows) {
        const Lines x{lines + k, side, 1};
        for (int64_t j = k / WIDTH * WIDTH; j < side;) {
            double* to = system + k * side + j;
            if (TILE.columns >= THREE && side - j >= THREE) {
                if constexpr (TILE.columns >= THREE) add_tile<TILE.rows, THREE>(x, lines + j, side, n, factor, to, side);
                j += THREE;
            } else if (TILE.columns >= TWO && side - j >= TWO) {
                if constexpr (TILE.columns >= TWO) add_tile<TILE.rows, TWO>(x, lines + j, side, n, factor, to, side);
                j += TWO;
            } else {
                add_tile<TILE.rows, ONE>(x, lines + j, side, n, factor, to, side);
                j += ONE;
            }
        }
    }
}

// Add a tile of COLUMNS columns at column j if it fits the registers and is not wider than what is left; return whether.
template <int COLUMNS, int MOST>
[[gnu::always_inline]] inline bool add_if_it_fits(Lines a, const double* z, int64_t n, double* to, int64_t side,
                                                  int64_t width, int64_t& j) {
    if constexpr (COLUMNS <= MOST) {
        if (width - j >= COLUMNS) {
            add_tile<TILE.rows, COLUMNS>(a, z + j, side, n, 1.0, to + j, side);
            j += COLUMNS;
            return true;
        }
    }
    return false;
}

// Add the products of n numbers of TILE.rows rows with the first `width` numbers of n lines of Z.
//
// The width is a multiple of half a vector. A tile with the odd half comes first, because alone it would be too small to
// keep the processor busy.
inline void add_row_products(Lines a, const double* z, int64_t n, double* to, int64_t side, int64_t width) {
    for (int64_t j = 0; j < width;) {
        if ((width - j) % WIDTH != 0) {
            if (add_if_it_fits<TWO_AND_HALF, TILE.odd_columns>(a, z, n, to, side, width, j)) continue;
            if (add_if_it_fits<ONE_AND_HALF, TILE.odd_columns>(a, z, n, to, side, width, j)) continue;
            add_if_it_fits<HALF, HALF>(a, z, n, to, side, width, j);
        } else {
            if (add_if_it_fits<THREE, TILE.columns>(a, z, n, to, side, width, j)) continue;
            if (add_if_it_fits<TWO, TILE.columns>(a, z, n, to, side, width, j)) continue;
            add_if_it_fits<ONE, TILE.columns>(a, z, n, to, side, width, j);
        }
    }
}

// Multiply the rows of a product by their scales.
inline void scale_rows(Strided row_scale, int64_t start, int64_t stop, int64_t side, double* product) {
    for (int64_t row = start; row < stop; ++row) {
        const Vector scale = broadcast(row_scale[row]);
        for (int64_t j = (row - start) * side; j < (row - start + 1) * side; j += WIDTH)
            store(product + j, load(product + j) * scale);
    }
}

// Write rows `start` to `stop` of A Z, given Z with the scales of the columns and zeros after its components.
inline void set_dense_product(const double* dense, int64_t n_columns, const double* scaled, int64_t n_components,
                              int64_t side, Strided row_scale, int64_t start, int64_t stop, double* product) {
    const int64_t width = (n_components + HALF - 1) / HALF * HALF;
    std::fill_n(product, (stop - start) * side, 0.0);
    for (int64_t begin = 0; begin < n_columns; begin += LINES_PER_CHUNK) {
        const int64_t n = std::min(LINES_PER_CHUNK, n_columns - begin);
        const double* z = scaled + begin * side;
        int64_t row = start;
        for (; row + TILE.rows <= stop; row += TILE.rows) {
            const Lines a{dense + row * n_columns + begin, 1, n_columns};
            add_row_products(a, z, n, product + (row - start) * side, side, width);
        }
        for (; row < stop; ++row) {
            const Lines a{dense + row * n_columns + begin, 1, 1};
            for (int64_t j = 0; j < side; j += WIDTH)
                add_tile<1, ONE>(a, z + j, side, n, 1.0, product + (row - start) * side + j, side);
        }
    }
    scale_rows(row_scale, start, stop, side, product);
}

// Write rows `start` to `stop` of A Z for a matrix in CSR form.
inline void set_sparse_product(const int64_t* indptr, const uint32_t* indices, const double* values,
                               const double* scaled, int64_t side, Strided row_scale, int64_t start, int64_t stop,
                               double* product) {
    std::fill_n(product, (stop - start) * side, 0.0);
    for (int64_t row = start; row < stop; ++row) {
        double* to = product + (row - start) * side;
        for (int64_t i = indptr[row]; i < indptr[row + 1]; ++i) {
            const double* line = scaled + int64_t(indices[i]) * side;
            const Vector value = broadcast(values[i]);
            for (int64_t j = 0; j < side; j += WIDTH)
                store(to + j, add_product(load(to + j), value, load(line + j)));
        }
    }
    scale_rows(row_scale, start, stop, side, product);
}

// A factor in the forms that draws read, in memory for (n_rows + 1) * side numbers each, and side * side for ZᵀZ. `scaled`
// may be Z itself. Both end with a row of zeros, and components are padded with zeros.
struct Factor {
    double *Z, *scaled, *gram;
    int64_t n_rows, n_components, side;

    // Fill it with `given` times the inverse deviations of the columns and, for `scaled`, their scales, if not null.
    void set(const double* given, const double* inverse_deviation, const double* entry_scale) const {
        for (int64_t row = 0; row < n_rows; ++row) {
            const double inverse = inverse_deviation != nullptr ? inverse_deviation[row] : 1.0;
            double *z = Z + row * side, *s = scaled + row * side;
            for (int64_t k = 0; k < n_components; ++k) z[k] = given[row * n_components + k] * inverse;
            if (entry_scale != nullptr)
                for (int64_t k = 0; k < n_components; ++k) s[k] = z[k] * entry_scale[row];
            for (int64_t k = n_components; k < side; ++k) z[k] = s[k] = 0.0;
        }
        std::fill_n(Z + n_rows * side, side, 0.0);
        std::fill_n(scaled + n_rows * side, side, 0.0);
        std::fill_n(gram, side * side, 0.0);
        for (int64_t begin = 0; begin < n_rows; begin += LINES_PER_CHUNK)
            add_outer_products(1.0, Z + begin * side, std::min(LINES_PER_CHUNK, n_rows - begin), gram, side);
        for (int64_t k = 0; k < side; ++k)
            for (int64_t j = 0; j < k; ++j) gram[k * side + j] = gram[j * side + k];
    }
};

}  // namespace bnmf
