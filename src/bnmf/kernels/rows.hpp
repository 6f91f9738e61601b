// What both ways to draw rows have in common: eight rows side by side, one per lane of a vector.
//
// Rows are independent given the other factor. Within a row each draw depends on the one before, and a single row would
// leave most of the processor idle. Given Σ z r and Σ z² of a component, where r are the residuals of a row, its entry has
// the density exp(b w - p w²/2) on w >= 0, with a kink if the prior has a max term, or on the real line, with a kink at 0
// if the prior has a term in |w|.
#pragma once

#include "lanes.hpp"

namespace bnmf {

// Rows in one unit of work, a tile. It does not depend on the number of threads, so neither does the rounding of sums.
constexpr int64_t ROWS_PER_TILE = 256;
// Fraction of Σ z² that subtraction must leave; below it, sums are computed directly to avoid cancellation.
constexpr double MIN_REMAINING_FRACTION = 1e-6;

// What kind of numbers the entries of a factor are.
enum class Entries { nonnegative, with_max_term, real };

// Return `length` rounded up to a multiple of WIDTH.
constexpr int64_t padded_length(int64_t length) { return (length + WIDTH - 1) / WIDTH * WIDTH; }
// Return it rounded up to a multiple of half a vector, which suffices for sums over components.
constexpr int64_t half_padded(int64_t length) { return (length + HALF - 1) / HALF * HALF; }

// Numbers by row or column that may be the same for all: then the stride is 0.
struct Strided {
    const double* data;
    int64_t stride;

    double operator[](int64_t i) const { return data[i * stride]; }
    const double* row(int64_t i) const { return data + i * stride; }
};

// Coefficients of a prior: `linear`, `quadratic` and `absolute` by component, for all rows or for each.
struct Prior {
    Strided linear, quadratic, absolute;  // `absolute`, of |w|, has no data if entries are nonnegative
    double pairwise, max_rate;
    bool paper_rule;  // whether to use the update printed in the paper for the max term
};

// Rows of the data. Each lists its observed or its missing positions, whichever are fewer, in ascending order.
struct Data {
    int64_t n_rows, n_columns;
    const int64_t* indptr;         // row i lists the positions indices[indptr[i]] to indices[indptr[i + 1] - 1],
    const uint32_t* indices;       // and the data there, 0 where missing
    const double* values;
    const float* single_values;    // these in place of `values`, if they are not null,
    const uint8_t* byte_values;    // or these
    const uint8_t* lists_missing;  // whether a row lists its missing positions
    const double* dense;           // whole rows with zeros in place of missing entries; null if they are not dense
    const int64_t* stored_indptr;  // the same in CSR form; null if they are not sparse
    const uint32_t* stored_indices;
    const double* stored_values;
    int64_t longest;               // most positions that are gathered for a row: those listed, or all others

    bool has_matrix() const { return dense != nullptr || stored_indptr != nullptr; }
    double value(int64_t i) const {
        if (byte_values != nullptr) return byte_values[i];
        return single_values != nullptr ? double(single_values[i]) : values[i];
    }

    // Call visit(position) for all positions of a row but those that it lists.
    template <typename F> void visit_unlisted(int64_t row, F visit) const {
        int64_t i = indptr[row];
        for (int64_t position = 0; position < n_columns; ++position) {
            if (i < indptr[row + 1] && indices[i] == position)
                ++i;
            else
                visit(position);
        }
    }
};

// Everything that draws of rows read and write.
struct Problem {
    Data data;
    Prior prior;
    int64_t n_components, side, n_columns;  // `side` is the number of components, padded to whole vectors of zeros
    double* W;                              // (rows, n_components), drawn in place
    double* Z;                              // (n_columns + 1, side), divided by the standard deviations of the columns;
                                            // the last row has zeros
    double* scaled;                         // Z times the scales of the data in each column; Z itself if they are all 1
    double* gram;                           // (side, side), ZᵀZ
    const double* product;                  // A Z of the rows from `first_row` on
    int64_t first_row;
    const double* squares;                  // Σ a² over each row, with the scales of the data
    const double* roots;                    // roots of the weights of the listed entries, null if all are 1
    Strided precision, entry_scale, row_scale;
    Key key;
    const uint64_t* ids;                    // number of the stream of each row
    int64_t n_passes;                       // how often a row is drawn given the sums over its entries
    int64_t first_drawn, end_drawn;         // components before and from here on stay as they are
    double* squared_error;                  // of each row after its draw
};

// Rows of one tile that are drawn in the same way.
struct RowList {
    const int64_t* rows;
    const uint8_t* repeats;  // whether a row has the missing entries of the row before it
    int64_t n_rows;
};

// What eight rows need while they are drawn. Most fields hold one vector per component.
struct Lanes {
    double* w;              // the entries
    double* zz;             // Σ z²
    double* linear;         // coefficients of the prior
    double* quadratic;
    double* absolute;
    double* p;              // the precision of an entry, and below 1 / p and its root
    double* inverse;
    double* scale;
    double* products;       // sums with the data
    double* largest_after;  // the largest of the entries that are drawn later
    double* squares;        // single vectors: Σ a² over each row,
    double* sums;           // the sum of its entries,
    double* precision;      // and the precision of its noise
    StreamWords* words;

    Lanes(double* numbers, StreamWords* words, int64_t side) : words(words) {
        double** const by_component[] = {&w, &zz, &linear, &quadratic, &absolute, &p, &inverse, &scale, &products,
                                         &largest_after};
        for (double** field : by_component) {
            *field = numbers;
            numbers += WIDTH * side;
        }
        squares = numbers;
        sums = numbers + WIDTH;
        precision = numbers + 2 * WIDTH;
    }

    static int64_t size(int64_t side) { return 10 * WIDTH * side + 3 * WIDTH; }
};

// What changes from draw to draw of eight rows.
struct Progress {
    Mask active;
    Vector total;    // the sum of the entries of each row
    Vector largest;  // the largest of the entries before the one that is drawn
    Streams streams;
};

// Write what is the same for all rows, and zeros as padding.
inline void set_common(const Problem& problem, const Lanes& lanes) {
    const Prior& prior = problem.prior;
    for (int64_t k = 0; k < problem.n_components; ++k) {
        store(lanes.linear + k * WIDTH, broadcast(prior.linear.data[k]));
        store(lanes.quadratic + k * WIDTH, broadcast(prior.quadratic.data[k]));
        if (prior.absolute.data != nullptr) store(lanes.absolute + k * WIDTH, broadcast(prior.absolute.data[k]));
    }
    for (int64_t k = problem.n_components; k < problem.side; ++k) store(lanes.w + k * WIDTH, broadcast(0.0));
    store(lanes.precision, broadcast(problem.precision[0]));
}

// Write a row of W, its sum, its stream, and its coefficients and precision if those differ by row.
inline void set_lane(int64_t row, int lane, const Problem& problem, const Lanes& lanes) {
    const int64_t n_components = problem.n_components;
    const Prior& prior = problem.prior;
    const double* w = problem.W + row * n_components;
    double total = 0.0;
    for (int64_t k = 0; k < n_components; ++k) {
        total += w[k];
        lanes.w[k * WIDTH + lane] = w[k];
    }
    lanes.sums[lane] = total;
    lanes.words->set(lane, stream_of(problem.key, problem.ids[row]));
    const auto copy = [&](const Strided& coefficients, double* to) {
        if (coefficients.stride == 0) return;
        const double* from = coefficients.row(row);
        for (int64_t k = 0; k < n_components; ++k) to[k * WIDTH + lane] = from[k];
    };
    copy(prior.linear, lanes.linear);
    copy(prior.quadratic, lanes.quadratic);
    copy(prior.absolute, lanes.absolute);
    lanes.precision[lane] = problem.precision[row];
}

// Write the drawn rows of W, and their squared errors, which are in `lanes.squares`.
inline void write_lanes(const int64_t* rows, int64_t n_lanes, const Problem& problem, const Lanes& lanes) {
    for (int64_t lane = 0; lane < n_lanes; ++lane) {
        const int64_t row = rows[lane];
        problem.squared_error[row] = lanes.squares[lane];
        double* w = problem.W + row * problem.n_components;
        for (int64_t k = 0; k < problem.n_components; ++k) w[k] = lanes.w[k * WIDTH + lane];
    }
}

// Write p, 1 / p and its root for every entry; a negative Σ z², due to rounding, is replaced by zero.
inline void set_scales(int64_t n_components, const Lanes& lanes) {
    const Vector precision = load(lanes.precision), zero = broadcast(0.0);
    for (int64_t offset = 0; offset < n_components * WIDTH; offset += WIDTH) {
        const Vector given = load(lanes.zz + offset);
        const Vector zz = select(given > zero, given, zero);
        const Vector p = zz * precision + load(lanes.quadratic + offset);
        const Vector inverse = broadcast(1.0) / p;
        store(lanes.zz + offset, zz);
        store(lanes.p + offset, p);
        store(lanes.inverse + offset, inverse);
        store(lanes.scale + offset, square_root(inverse));
    }
}

// Begin a pass over the components: write the largest of the entries after each one, which only a max term needs.
template <Entries E> inline void begin_pass(int64_t n_components, const Lanes& lanes, Progress& progress) {
    progress.largest = broadcast(0.0);
    if constexpr (E == Entries::with_max_term) {
        Vector largest = broadcast(0.0);
        for (int64_t k = n_components - 1; k >= 0; --k) {
            store(lanes.largest_after + k * WIDTH, largest);
            largest = larger(largest, load(lanes.w + k * WIDTH));
        }
    }
}

// Draw entry k of the active rows given Σ z r, and return by how much it changes.
template <Entries E>
[[gnu::always_inline]] inline Vector draw_component(int64_t k, Vector zr, const Problem& problem, const Lanes& lanes,
                                                    Progress& progress) {
    const int64_t offset = k * WIDTH;
    const Vector old = load(lanes.w + offset);
    if (k < problem.first_drawn || k >= problem.end_drawn) {
        progress.largest = larger(progress.largest, old);
        return broadcast(0.0);
    }
    const Prior& prior = problem.prior;
    Vector b = (zr + load(lanes.zz + offset) * old) * load(lanes.precision) - load(lanes.linear + offset);
    if (prior.pairwise != 0.0) b = b - broadcast(prior.pairwise) * (progress.total - old);
    const Vector p = load(lanes.p + offset), inverse = load(lanes.inverse + offset), scale = load(lanes.scale + offset);
    Streams streams = progress.streams;
    Vector drawn;
    if constexpr (E == Entries::real) {
        const Vector rate = load(lanes.absolute + offset);
        drawn = draw_real_lanes(b, p, inverse, scale, rate, progress.active, streams);
    } else if constexpr (E == Entries::with_max_term) {
        Vector kink = larger(progress.largest, load(lanes.largest_after + offset));
        double rate = prior.max_rate;
        if (prior.paper_rule) {
            // The rule is a plain draw: at or above the kink with a smaller b, and below it with none of the rate.
            b = select(old >= kink, b - broadcast(rate), b);
            kink = broadcast(0.0);
            rate = 0.0;
        }
        drawn = draw_two_piece_lanes(b, p, inverse, scale, kink, rate, progress.active, streams);
        progress.largest = larger(progress.largest, drawn);
    } else {
        drawn = draw_lanes(b, p, inverse, scale, progress.active, streams);
    }
    progress.streams = streams;
    store(lanes.w + offset, drawn);
    const Vector change = drawn - old;
    progress.total = progress.total + change;
    return change;
}

}  // namespace bnmf
