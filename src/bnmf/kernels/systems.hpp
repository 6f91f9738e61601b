// The half-sweep of rows with the same missing entries: they share one *system*, Σ z zᵀ over the observed columns.
//
// The system of a complete row is ZᵀZ; the missing columns of the pattern are subtracted from it. Eight rows are then
// drawn together, and each draw updates Σ z r of the components that follow: O(K²) operations for a row of any length.
// Real data are often missing in blocks (a batch of cell lines on which some drugs were not tested), and complete rows
// all have the same pattern.
#pragma once

#include "products.hpp"

namespace bnmf {

// Rows of Z that are gathered at a time, so that they stay in the L1 cache.
constexpr int64_t ROWS_PER_CHUNK = 32;

// Rows of Z that are copied to a chunk; a full one is added to the system.
struct Chunk {
    double* memory;  // ROWS_PER_CHUNK * side numbers
    double* system;
    int64_t side, width, n = 0;

    void add(double sign, const double* line) {
        std::copy_n(line, side, memory + n * side);
        if (++n == ROWS_PER_CHUNK) flush(sign);
    }

    void flush(double sign) {
        add_outer_products(sign, memory, n, system, side, width);
        n = 0;
    }
};

// Return whether too little remains of a diagonal entry of ZᵀZ.
inline bool has_cancelled(int64_t n_components, const double* gram, const double* system, int64_t side) {
    bool cancelled = false;
    for (int64_t k = 0; k < n_components; ++k) {
        const int64_t diagonal = k * side + k;
        cancelled |= system[diagonal] < MIN_REMAINING_FRACTION * gram[diagonal];
    }
    return cancelled;
}

// Write the system of a row, on and above the diagonal: ZᵀZ minus the sum over its missing positions.
inline void set_system(int64_t row, const Problem& problem, double* memory, double* system) {
    const Data& data = problem.data;
    const int64_t side = problem.side;
    Chunk chunk{memory, system, side, half_padded(problem.n_components)};
    std::copy_n(problem.gram, side * side, system);
    for (int64_t i = data.indptr[row]; i < data.indptr[row + 1]; ++i)
        chunk.add(-1.0, problem.Z + int64_t(data.indices[i]) * side);
    chunk.flush(-1.0);
    if (has_cancelled(problem.n_components, problem.gram, system, side)) {
        std::fill_n(system, side * side, 0.0);
        data.visit_unlisted(row, [&](int64_t position) { chunk.add(1.0, problem.Z + position * side); });
        chunk.flush(1.0);
    }
}

// Turn the product A Z into Σ z r = A Z - system w, and return the squared error of each row.
//
// Only entries on and above the diagonal of the system are read.
inline Vector set_residual_products(const double* system, int64_t side, int64_t n_components, const Lanes& lanes) {
    Vector error = load(lanes.squares);
    for (int64_t j = 0; j < n_components; ++j) {
        Vector above = broadcast(0.0), after = broadcast(0.0);
        for (int64_t k = 0; k < j; ++k)
            above = add_product(above, load(lanes.w + k * WIDTH), broadcast(system[k * side + j]));
        for (int64_t k = j; k < n_components; ++k)
            after = add_product(after, load(lanes.w + k * WIDTH), broadcast(system[j * side + k]));
        const Vector data = load(lanes.products + j * WIDTH);
        const Vector residual_product = data - above - after;
        error = error - load(lanes.w + j * WIDTH) * (data + residual_product);
        store(lanes.products + j * WIDTH, residual_product);
    }
    return error;
}

// Add a change times an entry of the system to Σ z r of component j.
[[gnu::always_inline]] inline void add_change(Vector change, double entry, int64_t j, const Lanes& lanes) {
    double* product = lanes.products + j * WIDTH;
    store(product, add_product(load(product), change, broadcast(entry)));
}

// Return the number of floats that `draw_sharing_rows` needs: lanes, one system, and gathered rows.
inline int64_t sharing_size(int64_t side) { return Lanes::size(side) + side * side + ROWS_PER_CHUNK * side; }

// Draw rows of W that list their missing entries and share them with others; `numbers` and `words` are memory to work in.
template <Entries E>
void draw_sharing_rows(const Problem& problem, const RowList& list, double* numbers, StreamWords* words) {
    const int64_t n_components = problem.n_components, side = problem.side, n_passes = problem.n_passes;
    const Lanes lanes(numbers, words, side);
    double* own = numbers + Lanes::size(side);
    const Prior& prior = problem.prior;
    const bool is_uniform = !(prior.linear.stride || prior.quadratic.stride || problem.precision.stride);
    set_common(problem, lanes);

    const double* system = problem.gram;
    for (int64_t begin = 0; begin < list.n_rows;) {
        const int64_t* rows = list.rows + begin;
        int n_lanes = 1;
        while (n_lanes < WIDTH && begin + n_lanes < list.n_rows && list.repeats[begin + n_lanes] != 0) ++n_lanes;
        const bool is_new = begin == 0 || list.repeats[begin] == 0;
        if (is_new) {
            system = problem.gram;
            if (problem.data.indptr[rows[0]] < problem.data.indptr[rows[0] + 1]) {
                system = own;
                set_system(rows[0], problem, own + side * side, own);
            }
        }
        for (int lane = 0; lane < n_lanes; ++lane) {
            set_lane(rows[lane], lane, problem, lanes);
            lanes.squares[lane] = problem.squares[rows[lane]];
            const double* product = problem.product + (rows[lane] - problem.first_row) * side;
            for (int64_t k = 0; k < n_components; ++k) lanes.products[k * WIDTH + lane] = product[k];
        }
        if (is_new || !is_uniform) {
            for (int64_t k = 0; k < n_components; ++k)
                store(lanes.zz + k * WIDTH, broadcast(system[k * side + k]));
            set_scales(n_components, lanes);
        }

        Vector error = set_residual_products(system, side, n_components, lanes);
        Progress progress{first_lanes(n_lanes), load(lanes.sums), broadcast(0.0), lanes.words->streams()};
        for (int64_t pass = 0; pass < n_passes; ++pass) {
            begin_pass<E>(n_components, lanes, progress);
            for (int64_t k = 0; k < n_components; ++k) {
                const Vector zr = load(lanes.products + k * WIDTH), zz = load(lanes.zz + k * WIDTH);
                const Vector change = draw_component<E>(k, zr, problem, lanes, progress);
                error = error - change * (zr + zr - zz * change);
                const Vector of_residuals = broadcast(0.0) - change;
                if (pass + 1 < n_passes)  // components up to k are drawn again
                    for (int64_t j = 0; j <= k; ++j) add_change(of_residuals, system[j * side + k], j, lanes);
                for (int64_t j = k + 1; j < n_components; ++j)
                    add_change(of_residuals, system[k * side + j], j, lanes);
            }
        }
        store(lanes.squares, error);
        write_lanes(rows, n_lanes, problem, lanes);
        begin += n_lanes;
    }
}

}  // namespace bnmf
