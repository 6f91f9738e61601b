// Gross errors: which entries have one, and the values that they would have without it.
#pragma once

#include <cmath>

#include "latent.hpp"

namespace bnmf {

// The entries of a matrix that may have gross errors, row by row, and what was recorded of them.
//
// An entry is y + e with y ~ N(w z, v); e is 0, or with a small probability e ~ N(0, (factor - 1) v). Dense rows list all
// columns, with NaN for entries that are missing or have limits, so that nothing has to be gathered. `matrix`
// holds their y, `transposed` too if it is given, and targets are all other places.
struct Outliers : EntryList {
    explicit Outliers(Arguments given)
        : EntryList(std::move(given)), values(arguments.pointer<Numbers>("values", n)), had_error(n / WIDTH + n_rows + 1),
          seen(had_error), in_targets(had_error) {
        require(sums != nullptr, "outliers need sums");
        for (int64_t row = 0; row < n_rows; ++row)
            for (int64_t i = indptr[row]; i < indptr[row + 1]; ++i) {
                const int64_t at = i - indptr[row], byte = (i - at % WIDTH) / WIDTH + row;
                if (!std::isnan(values[i])) seen[byte] |= 1u << at % WIDTH;
                if (is_in_targets(i)) in_targets[byte] |= 1u << at % WIDTH;
            }
        matrix = dense_or_null("matrix");
        transposed = dense_or_null("transposed");
    }

    // Draw which entries of rows `start` to `stop` have gross errors, without y, and then their y, in all places.
    //
    // `log_odds` has the log odds of a gross error in each column. Values are stored in units of the data. For each tile
    // of rows there are sums over the columns: the number of gross errors, and their squares in units of the model.
    void draw(const Given& given, int64_t start, int64_t stop) {
        check(given, start, stop);
        const double* const log_odds = given.arguments.pointer<Numbers>("log_odds", n_columns);
        const double factor = given.arguments.get<double>("factor");
        nb::gil_scoped_release release;
        const bool is_dense = matrix != nullptr;
        // What belongs to a column, padded: one over its deviation, that times its unit, log odds, and Z over the deviation;
        // and what belongs to the entries of a row: means, units and log odds.
        const int64_t n_components = given.n_components, padded = padded_length(n_columns) + WIDTH;
        std::vector<double> memory((6 + (is_dense ? n_components : 0)) * padded);
        double *const roots = memory.data(), *const units = roots + padded, *const odds = units + padded;
        double *const means = odds + padded, *const z = means + 3 * padded;
        double *const unit_of = is_dense ? units : means + padded, *const odds_of = is_dense ? odds : means + 2 * padded;
        for (int64_t column = 0; column < n_columns; ++column) {
            roots[column] = 1.0 / std::sqrt(given.column_variance[column]);
            units[column] = roots[column] * given.entry_scale[column];
            odds[column] = log_odds[column] - 0.5 * std::log(factor);
            for (int64_t k = 0; is_dense && k < n_components; ++k)
                z[k * padded + column] = roots[column] * given.Z[column * n_components + k];
        }
        const double spread = std::sqrt(1.0 - 1.0 / factor), rare_logit = std::log(CANDIDATES);
        const Vector half = broadcast(0.5 - 0.5 / factor), rare = broadcast(rare_logit);
        double rest[WIDTH] = {};
        for (int64_t row = start; row < stop; ++row) {
            const int64_t first = indptr[row], end = indptr[row + 1];
            if (row % ROWS_PER_TILE == 0) std::fill_n(sums_of_tile(row), 2 * n_columns, 0.0);
            const double root_of_row = 1.0 / std::sqrt(given.row_variance[row]);
            const Vector unit_of_row = broadcast(root_of_row * given.row_scale[row]);
            if (is_dense) multiply(given.W + row * n_components, z, n_components, padded, means);
            for (int64_t i = 0; !is_dense && i < end - first; ++i) {
                const int64_t column = columns[first + i];
                means[i] = given.fitted(row, column) * roots[column];
                unit_of[i] = units[column];
                odds_of[i] = odds[column];
            }
            Stream stream = stream_of(given.key, given.ids[row]);
            int64_t candidate = first + n_skipped(stream);
            for (int64_t begin = first; begin < end; begin += WIDTH) {
                const int64_t n = std::min<int64_t>(WIDTH, end - begin), at = begin - first;
                const int64_t byte = begin / WIDTH + row;
                const unsigned old_errors = had_error[byte];
                // Entries without errors are also in the matrix, which the next half-sweep reads.
                const double* x_of = (is_dense ? matrix : values) + begin;
                if (n < WIDTH || old_errors != 0) x_of = std::copy_n(values + begin, n, rest) - n;
                const Vector unit = load(unit_of + at) * unit_of_row;
                const Vector residual = load(x_of) * unit - load(means + at) * broadcast(root_of_row);
                const Vector logit = load(odds_of + at) + half * residual * residual;
                const unsigned likely = mask_to_bits(logit > rare) & seen[byte];
                unsigned possible = likely;
                for (; candidate < begin + n; candidate += 1 + n_skipped(stream)) possible |= 1u << (candidate - begin);
                possible &= seen[byte];
                if ((possible | old_errors) == 0) continue;
                double logits[WIDTH], residuals[WIDTH], scales[WIDTH];
                bnmf::store(logits, logit);
                bnmf::store(residuals, residual);
                bnmf::store(scales, unit);
                unsigned has_error = 0;
                for (unsigned left = possible | old_errors; left != 0; left &= left - 1) {
                    const int lane = __builtin_ctz(left);
                    const unsigned bit = 1u << lane;
                    double error = 0.0;
                    if ((possible & bit) && is_drawn(logits[lane], likely & bit ? 0.0 : rare_logit, stream)) {
                        error = (1.0 - 1.0 / factor) * residuals[lane] - spread * normal(stream);
                        has_error |= bit;
                    } else if (!(old_errors & bit)) {
                        continue;
                    }
                    const int64_t entry = begin + lane, column = is_dense ? at + lane : columns[entry];
                    const double value = x_of[lane] - error / scales[lane];
                    if (has_error & bit) count_gross_error(row, column, error / (roots[column] * root_of_row));
                    if (is_dense) matrix[entry] = value;
                    if (transposed != nullptr) transposed[column * n_rows + row] = value;
                    if (in_targets[byte] & bit) store(entry, value);
                }
                had_error[byte] = uint8_t(has_error);
            }
        }
    }

    // Share of the entries that are candidates for a gross error, whatever their data. Entries whose odds are lower have
    // an error only as candidates, so that most of them need no random number. All others are drawn for themselves.
    static constexpr double CANDIDATES = 1.0 / 32.0;

    // Return how many entries are passed over before the next candidate.
    static int64_t n_skipped(Stream& stream) {
        static const double mean = -1.0 / std::log1p(-CANDIDATES);
        return int64_t(exponential(stream) * mean);
    }

    // Return true with the probability of these log odds, divided by exp(log_share): first that it is below the odds, or
    // 1, which takes no exponential function.
    static bool is_drawn(double logit, double log_share, Stream& stream) {
        return exponential(stream) > log_share - logit && uniform(stream) * (1.0 + std::exp(-std::fabs(logit))) < 1.0;
    }

    // Write Σ_k w_k z_k for all columns, 32 at a time.
    static void multiply(const double* w, const double* z, int64_t n_components, int64_t padded, double* out) {
        int64_t column = 0;
        for (; column + 4 * WIDTH <= padded; column += 4 * WIDTH) {
            Vector sums[4] = {broadcast(0.0), broadcast(0.0), broadcast(0.0), broadcast(0.0)};
            for (int64_t k = 0; k < n_components; ++k)
                unrolled<4>([&](auto i) __attribute__((always_inline)) {
                    sums[i] = add_product(sums[i], broadcast(w[k]), load(z + k * padded + column + i * WIDTH));
                });
            unrolled<4>([&](auto i) __attribute__((always_inline)) { bnmf::store(out + column + i * WIDTH, sums[i]); });
        }
        for (; column < padded; column += WIDTH) {
            Vector sum = broadcast(0.0);
            for (int64_t k = 0; k < n_components; ++k)
                sum = add_product(sum, broadcast(w[k]), load(z + k * padded + column));
            bnmf::store(out + column, sum);
        }
    }

    // Return a matrix that rows which list all columns are written to, null if it is not given.
    double* dense_or_null(const char* name) const {
        const auto given = arguments.get<std::optional<WritableMatrix>>(name);
        require(!given || n == n_rows * n_columns, "dense rows list all columns");
        return pointer_or_null(given, n, name);
    }

    const double* values;
    double *matrix, *transposed;
    // A bit for each of eight entries of a row: had an error in the last sweep, was observed, is in a target.
    std::vector<uint8_t> had_error, seen, in_targets;
};

}  // namespace bnmf
