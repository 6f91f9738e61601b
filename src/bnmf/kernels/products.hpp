// Sums over complete rows, by tiles that stay in registers: ZᵀZ of a factor, and A Z for a range of rows.
//
// BLAS would be as fast for large matrices. For small ones its calls cost more than the sums, and it rounds differently
// on every processor and with every number of threads.
#pragma once

#include <algorithm>

#include "rows.hpp"

namespace bnmf {

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

// Add factor * Σ x yᵀ over n lines to the first columns of TILE.rows rows: COLUMNS, or as many vectors fewer as it takes
// for not more than `width`. Return how many columns that is.
template <int COLUMNS>
int64_t add_widest_tile(Lines x, const double* y, int64_t side, int64_t n, double factor, double* out, int64_t width) {
    if constexpr (COLUMNS > WIDTH)
        if (COLUMNS > width) return add_widest_tile<COLUMNS - WIDTH>(x, y, side, n, factor, out, width);
    add_tile<TILE.rows, COLUMNS>(x, y, side, n, factor, out, side);
    return COLUMNS;
}

// Add factor * Σ x yᵀ over n lines to columns `begin` to `end` of TILE.rows rows, a multiple of half a vector.
//
// A tile with the odd half comes first, because alone it would be too small to keep the processor busy.
inline void add_rows(Lines x, const double* y, int64_t n, double factor, double* out, int64_t side, int64_t begin,
                     int64_t end) {
    for (int64_t j = begin; j < end;) {
        const bool is_odd = (end - j) % WIDTH != 0;
        const auto add = is_odd ? add_widest_tile<TILE.odd_columns> : add_widest_tile<TILE.columns>;
        j += add(x, y + j, side, n, factor, out + j, end - j);
    }
}

// Add factor * Σ z zᵀ over n lines of `width` numbers, a multiple of half a vector, to the submatrices of a matrix on and
// above the diagonal.
inline void add_outer_products(double factor, const double* lines, int64_t n, double* system, int64_t side,
                               int64_t width) {
    for (int64_t k = 0; k < width; k += TILE.rows)
        add_rows({lines + k, side, 1}, lines, n, factor, system + k * side, side, k / WIDTH * WIDTH, width);
}

// Write rows `start` to `stop` of A Z for a dense matrix.
inline void set_dense_product(const Problem& problem, int64_t start, int64_t stop, double* product) {
    const int64_t n_columns = problem.n_columns, side = problem.side;
    const int64_t width = half_padded(problem.n_components);
    for (int64_t begin = 0; begin < n_columns; begin += LINES_PER_CHUNK) {
        const int64_t n = std::min(LINES_PER_CHUNK, n_columns - begin);
        const double* z = problem.scaled + begin * side;
        int64_t row = start;
        for (; row + TILE.rows <= stop; row += TILE.rows)
            add_rows({problem.data.dense + row * n_columns + begin, 1, n_columns}, z, n, 1.0,
                     product + (row - start) * side, side, 0, width);
        for (; row < stop; ++row)
            for (int64_t j = 0; j < side; j += WIDTH)
                add_tile<1, WIDTH>({problem.data.dense + row * n_columns + begin, 1, 1}, z + j, side, n, 1.0,
                                 product + (row - start) * side + j, side);
    }
}

// Write rows `start` to `stop` of A Z for a matrix in CSR form.
inline void set_sparse_product(const Problem& problem, int64_t start, int64_t stop, double* product) {
    const Data& data = problem.data;
    const int64_t side = problem.side;
    for (int64_t row = start; row < stop; ++row) {
        double* to = product + (row - start) * side;
        for (int64_t i = data.stored_indptr[row]; i < data.stored_indptr[row + 1]; ++i) {
            const double* line = problem.scaled + int64_t(data.stored_indices[i]) * side;
            const Vector value = broadcast(data.stored_values[i]);
            for (int64_t j = 0; j < side; j += WIDTH)
                store(to + j, add_product(load(to + j), value, load(line + j)));
        }
    }
}

// Write rows `start` to `stop` of A Z, with the scales of rows and columns, if there is a matrix.
inline void set_product(const Problem& problem, int64_t start, int64_t stop, double* product) {
    if (!problem.data.has_matrix()) return;
    const int64_t side = problem.side;
    std::fill_n(product, (stop - start) * side, 0.0);
    (problem.data.dense != nullptr ? set_dense_product : set_sparse_product)(problem, start, stop, product);
    for (int64_t row = start; row < stop; ++row) {
        const Vector scale = broadcast(problem.row_scale[row]);
        for (int64_t j = (row - start) * side; j < (row - start + 1) * side; j += WIDTH)
            store(product + j, load(product + j) * scale);
    }
}

}  // namespace bnmf
