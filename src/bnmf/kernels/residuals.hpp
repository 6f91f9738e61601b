// The half-sweep of rows with missing entries of their own: each carries the residuals of its listed positions.
//
// A row lists its observed or its missing positions, whichever are fewer, and keeps e = value - w z there, where the value
// of a missing entry is 0:
//
// - observed positions listed: Σ z r and Σ z² are sums over the list;
// - missing positions listed: they are those of the complete row, from A Z and ZᵀZ, minus the sums over the list.
//
// If entries have weights of their own, all positions listed are observed, and data and rows of Z are multiplied by the
// roots of the weights as they are read.
//
// The listed rows of Z are gathered once, component by component, so that each draw reads two contiguous columns: that of
// the last change and its own. A row costs O(listed K) operations, and K²/8 more if it lists its missing positions.
#pragma once

#include "products.hpp"

namespace bnmf {

// Numbers in the partial sums of a vector of rows.
constexpr int64_t N_PARTIAL = WIDTH * WIDTH * WIDTH;
// Numbers of the gathered rows of Z that are kept at a time, so that they stay in the L2 cache.
constexpr int64_t MAX_GATHERED = 1 << 18;
// Numbers in a factor that is assumed to fit the L2 cache; rows of larger factors are prefetched.
constexpr int64_t MAX_CACHED_NUMBERS = 1 << 15;
// Listed positions between one that is gathered and one that is prefetched.
constexpr int64_t PREFETCH_DISTANCE = 24;

// Return the largest number of listed positions of rows that are drawn together, if the longest list has `longest`.
inline int64_t most_listed(int64_t longest) { return std::max(MAX_GATHERED / WIDTH, padded_length(longest)); }

// The lists of eight rows, one after the other: residuals, offsets of rows of Z, roots of weights, and gathered rows of Z.
struct Lists {
    double *residuals, *roots, *z;
    int64_t* offsets;
    int64_t lengths[WIDTH];          // padded
    bool is_complement[WIDTH] = {};  // whether a row that lists missing positions is drawn from all others
    int n_lanes = 0;
    int64_t n_listed = 0;
};

// Components whose gathered rows of Z are in memory together, padded.
struct Panel {
    int64_t first, width;
};

// Write the values that a row lists and where the rows of Z start; the list is padded with the row of zeros.
//
// The complement of a list of missing positions has no values: the product A Z stands for them.
inline void set_list(int64_t row, bool is_complement, int64_t length, const Problem& problem, double* residuals,
                     int64_t* offsets) {
    const Data& data = problem.data;
    int64_t n = 0;
    const int64_t side = problem.side;
    if (is_complement) {
        data.visit_unlisted(row, [&](int64_t position) {
            residuals[n] = 0.0;
            offsets[n++] = position * side;
        });
    } else {
        const double scale = problem.row_scale[row];
        for (int64_t i = data.indptr[row]; i < data.indptr[row + 1]; ++i) {
            const int64_t column = data.indices[i];
            residuals[n] = data.value(i) * (problem.entry_scale[column] * scale);
            offsets[n++] = column * side;
        }
    }
    for (; n < length; ++n) {
        residuals[n] = 0.0;
        offsets[n] = problem.n_columns * side;
    }
}

// Multiply the values that a row lists by the roots of their weights, and write those roots, zeros as padding.
inline void multiply_list(int64_t row, int64_t length, const Problem& problem, double* residuals, double* listed_roots) {
    const int64_t start = problem.data.indptr[row], n = problem.data.indptr[row + 1] - start;
    for (int64_t i = 0; i < n; ++i) {
        const double root = problem.roots[start + i];
        residuals[i] *= root;
        listed_roots[i] = root;
    }
    for (int64_t i = n; i < length; ++i) listed_roots[i] = 0.0;
}

// Turn Σ z² over lists of missing positions into that over the others; return where too little remains.
inline Mask subtract_from_gram(const Problem& problem, Vector sign, Vector whole, const Lanes& lanes) {
    Mask cancelled = broadcast(0.0) > broadcast(0.0);
    for (int64_t k = 0; k < problem.n_components; ++k) {
        const Vector zz = whole * broadcast(problem.gram[k * problem.side + k]);
        const Vector remaining = zz + sign * load(lanes.zz + k * WIDTH);
        cancelled = cancelled | (zz * broadcast(MIN_REMAINING_FRACTION) > remaining);
        store(lanes.zz + k * WIDTH, remaining);
    }
    return cancelled;
}

// Copy N components of a panel, from k on, of the listed rows of Z, one component after the other for each row.
//
// Subtract the weights w times these components from the residuals, and write Σ z² over each list. If WEIGHTED, each
// listed row of Z is multiplied by its root.
template <bool WEIGHTED, int N>
[[gnu::noinline]] void gather_components(const double* factor, Panel panel, int64_t k, const Lists& lists, const double* w,
                                         bool exceeds_cache, double* partial, double* zz) {
    int64_t begin = 0, to = 0;
    const double* const from = factor + panel.first + k;
    for (int lane = 0; lane < lists.n_lanes; ++lane) {
        const int64_t length = lists.lengths[lane];
        const double* weights = w + (panel.first + k) * WIDTH + lane;
        double* column = lists.z + to + k * length;
        Vector sums[N];
        for (Vector& sum : sums) sum = broadcast(0.0);
        for (int64_t i = 0; i < length; i += WIDTH) {
            const int64_t* listed = lists.offsets + begin + i;
            if (exceeds_cache)
                for (int64_t j = PREFETCH_DISTANCE; j < std::min(PREFETCH_DISTANCE + WIDTH, length - i); ++j)
                    __builtin_prefetch(from + listed[j]);
            Vector z[N];
            load_transposed([&](int j) __attribute__((always_inline)) { return from + listed[j]; }, z);
            if constexpr (WEIGHTED) {
                const Vector root = load(lists.roots + begin + i);
                for (Vector& numbers : z) numbers = numbers * root;
            }
            Vector fitted = broadcast(weights[0]) * z[0];
            unrolled<N>([&](auto j) __attribute__((always_inline)) {
                store(column + i + j * length, z[j]);
                sums[j] = add_product(sums[j], z[j], z[j]);
                if constexpr (j > 0) fitted = add_product(fitted, broadcast(weights[j * WIDTH]), z[j]);
            });
            double* residuals = lists.residuals + begin + i;
            store(residuals, load(residuals) - fitted);
        }
        for (int j = 0; j < N; ++j) store(partial + (j * WIDTH + lane) * WIDTH, sums[j]);
        begin += length;
        to += length * panel.width;
    }
    for (int j = 0; j < N; ++j) store(zz + (panel.first + k + j) * WIDTH, row_sums(partial + j * WIDTH * WIDTH));
}

// The same for all components of a panel, of n_components in all: half a vector of them if there are no more.
template <bool WEIGHTED>
void gather(const double* factor, Panel panel, int64_t n_components, const Lists& lists, const double* w,
            bool exceeds_cache, double* partial, double* zz) {
    for (int64_t k = 0; k < panel.width; k += WIDTH) {
        const bool is_half = n_components - panel.first - k <= HALF;
        const auto copy = is_half ? gather_components<WEIGHTED, HALF> : gather_components<WEIGHTED, WIDTH>;
        copy(factor, panel, k, lists, w, exceeds_cache, partial, zz);
    }
}

// Subtract the last change from the residuals, and write partial sums of Σ z e for component k of the panel, or of Σ e².
template <bool SQUARES>
void subtract_change(int64_t last, int64_t k, int64_t width, const Lists& lists, const double* changes,
                     double* partial) {
    int64_t begin = 0, to = 0;
    for (int lane = 0; lane < lists.n_lanes; ++lane) {
        const int64_t length = lists.lengths[lane];
        const Vector change = broadcast(-changes[lane]);
        double* e = lists.residuals + begin;
        const double *changed = lists.z + to + last * length, *column = lists.z + to + k * length;
        Vector total = broadcast(0.0);
        for (int64_t i = 0; i < length; i += WIDTH) {
            const Vector residual = add_product(load(e + i), change, load(changed + i));
            store(e + i, residual);
            total = add_product(total, residual, SQUARES ? residual : load(column + i));
        }
        store(partial + lane * WIDTH, total);
        begin += length;
        to += length * width;
    }
}

// Return row k of ZᵀZ times w, summed over the components before k, and over the others.
inline void multiply_gram(const double* row, int64_t k, int64_t n_components, const Lanes& lanes, Vector& before,
                          Vector& after) {
    before = after = broadcast(0.0);
    for (int64_t j = 0; j < k; ++j) before = add_product(before, broadcast(row[j]), load(lanes.w + j * WIDTH));
    for (int64_t j = k; j < n_components; ++j) after = add_product(after, broadcast(row[j]), load(lanes.w + j * WIDTH));
}

// Return the number of floats that `draw_rows` needs if the longest list has `longest` entries.
inline int64_t residuals_size(int64_t side, int64_t longest) {
    const int64_t gathered = std::max(MAX_GATHERED, WIDTH * padded_length(longest));
    return Lanes::size(side) + 3 * WIDTH + N_PARTIAL + 2 * WIDTH * side + 2 * most_listed(longest) + gathered;
}

// Draw rows of W that share nothing; `numbers`, `words` and `offsets` are memory to work in.
template <Entries E>
void draw_rows(const Problem& problem, const RowList& list, double* numbers, StreamWords* words, int64_t* offsets) {
    const int64_t n_components = problem.n_components, side = problem.side;
    const double* gram = problem.gram;
    const Data& data = problem.data;
    const Lanes lanes(numbers, words, side);
    double* sign_of = numbers + Lanes::size(side);  // -1 for rows that list missing positions, 1 for others
    double* whole_of = sign_of + WIDTH;             // 1 for rows that list missing positions, 0 for others
    double* changes = whole_of + WIDTH;
    double* partial = changes + WIDTH;              // vectors of partial sums
    double* zeros = partial + N_PARTIAL;
    double* unused = zeros + WIDTH * side;
    Lists lists;
    lists.residuals = unused + WIDTH * side;
    lists.roots = lists.residuals + most_listed(data.longest);
    lists.z = lists.roots + most_listed(data.longest);
    lists.offsets = offsets;
    const bool exceeds_cache = problem.n_columns * side > MAX_CACHED_NUMBERS;
    const auto gather_listed = problem.roots != nullptr ? gather<true> : gather<false>;
    set_common(problem, lanes);
    std::fill_n(zeros, side * WIDTH, 0.0);

    for (int64_t begin = 0; begin < list.n_rows;) {
        // As many rows as fit, with as many components at a time as fit.
        int n_lanes = 0;
        int64_t n_listed = 0;
        bool uses_gram = false;
        for (; n_lanes < WIDTH && begin + n_lanes < list.n_rows; ++n_lanes) {
            const int64_t row = list.rows[begin + n_lanes], n_own = data.indptr[row + 1] - data.indptr[row];
            const bool is_complement = lists.is_complement[n_lanes];
            const int64_t length = padded_length(is_complement ? problem.n_columns - n_own : n_own);
            if (n_lanes > 0 && (n_listed + length) * WIDTH > MAX_GATHERED) break;
            set_lane(row, n_lanes, problem, lanes);
            set_list(row, is_complement, length, problem, lists.residuals + n_listed, offsets + n_listed);
            if (problem.roots != nullptr)
                multiply_list(row, length, problem, lists.residuals + n_listed, lists.roots + n_listed);
            const bool lists_missing = data.lists_missing[row] != 0, is_whole = lists_missing && !is_complement;
            uses_gram |= is_whole;
            sign_of[n_lanes] = is_whole ? -1.0 : 1.0;
            whole_of[n_lanes] = is_whole ? 1.0 : 0.0;
            lanes.squares[n_lanes] = lists_missing ? problem.squares[row] : 0.0;
            const double* product = problem.product + (row - problem.first_row) * side;
            for (int64_t k = 0; k < n_components; ++k)
                lanes.products[k * WIDTH + n_lanes] = lists_missing ? product[k] : 0.0;
            lists.lengths[n_lanes] = length;
            n_listed += length;
        }
        lists.n_lanes = n_lanes;
        const int64_t panel = std::max<int64_t>(WIDTH, std::min(side, MAX_GATHERED / (n_listed + 1) / WIDTH * WIDTH));
        const Vector sign = load(sign_of), whole = load(whole_of);

        for (int64_t first = 0; first < side; first += panel)
            gather_listed(problem.Z, {first, std::min(panel, side - first)}, n_components, lists, lanes.w,
                          exceeds_cache, partial, lanes.zz);
        if (uses_gram) {
            const Mask cancelled = subtract_from_gram(problem, sign, whole, lanes) & first_lanes(n_lanes);
            if (any(cancelled)) {  // draw these rows from their observed positions instead
                for (int lane = 0; lane < n_lanes; ++lane)
                    if ((mask_to_bits(cancelled) >> lane) & 1) lists.is_complement[lane] = true;
                continue;
            }
        }
        set_scales(n_components, lanes);

        Progress progress{first_lanes(n_lanes), load(lanes.sums), broadcast(0.0), lanes.words->streams()};
        Vector error = broadcast(0.0);
        for (int64_t pass = 0; pass < problem.n_passes; ++pass) {
            begin_pass<E>(n_components, lanes, progress);
            error = load(lanes.squares);
            for (int64_t first = 0; first < side; first += panel) {
                const int64_t width = std::min(panel, side - first), last = std::min(first + width, n_components);
                if (panel < side)  // the residuals are complete by now
                    gather_listed(problem.Z, {first, width}, n_components, lists, zeros, exceeds_cache, partial, unused);
                store(changes, broadcast(0.0));
                for (int64_t k = first; k < last; ++k) {
                    const int64_t previous = std::max(k - 1, first);
                    subtract_change<false>(previous - first, k - first, width, lists, changes, partial);
                    Vector before = broadcast(0.0), after = broadcast(0.0);
                    if (uses_gram) multiply_gram(gram + k * side, k, n_components, lanes, before, after);
                    const Vector product = load(lanes.products + k * WIDTH);
                    const Vector zr = product + sign * row_sums(partial) - whole * (before + after);
                    const Vector change = draw_component<E>(k, zr, problem, lanes, progress);
                    const Vector drawn = load(lanes.w + k * WIDTH);
                    const Vector of_gram = before + before + drawn * broadcast(gram[k * side + k]);
                    error = error + drawn * (whole * of_gram - product - product);
                    store(changes, change);
                }
                subtract_change<true>(last - 1 - first, 0, width, lists, changes, partial);
            }
        }
        store(lanes.squares, error + sign * row_sums(partial));
        write_lanes(list.rows + begin, n_lanes, problem, lanes);
        for (bool& is_complement : lists.is_complement)  // complements may be so long that not all of these were drawn
            is_complement = false;
        begin += n_lanes;
    }
}

}  // namespace bnmf
