// Gross errors: which entries have one, and the values that they would have without it.
#pragma once

#include <cmath>

#include "latent.hpp"

namespace bnmf {

// The entries of a matrix that may have gross errors, row by row, and what was recorded of them.
//
// An entry is y + e with y ~ N(w z, v); e is 0, or with a small probability e ~ N(0, (factor - 1) v). Dense rows list all
// columns, with NaN for entries that cannot have gross errors, so that nothing has to be gathered: `rows` and `columns` are
// the matrices, by rows and by columns, that hold their y. Targets are all other places.
class Outliers {
public:
    Outliers(Pointers indptr, Positions positions, Numbers values, Results sums, std::vector<Target> targets,
             int64_t n_columns, std::optional<WritableMatrix> rows, std::optional<WritableMatrix> columns)
        : indptr_(indptr), positions_(positions), values_(values), sums_(sums), targets_(std::move(targets)),
          rows_(rows), columns_(columns), n_columns_(n_columns), had_error_(values.size() / WIDTH + indptr.size()) {
        const int64_t n = int64_t(positions.size()), n_rows = int64_t(indptr.size()) - 1;
        check_entries(indptr, n, targets_);
        require_size(values, n, "values");
        require_size(sums, (n_rows - 1 + ROWS_PER_TILE) / ROWS_PER_TILE * 2 * n_columns, "sums");
        require(rows.has_value() == columns.has_value(), "dense rows need both matrices");
        if (rows) {
            require_size(*rows, n, "rows");
            require_size(*columns, n, "columns");
            require(n == n_rows * n_columns, "dense rows list all columns");
        }
        for (int64_t i = 0; i < n; ++i) {
            const int64_t column = positions.data()[i];
            require(column < n_columns && (!rows || column == i % n_columns), "there is no such column");
        }
    }

    // Draw which entries of rows `start` to `stop` have gross errors, without y, and then their y, in all places.
    //
    // `log_odds` has the log odds of a gross error in each column. Values are stored in units of the data. For each tile
    // of rows there are sums over the columns: the number of gross errors, and their squares in units of the model.
    void draw(Matrix W, Matrix Z, std::optional<Numbers> entry_scale, Numbers row_scale, Numbers row_variance,
              Numbers column_variance, Numbers log_odds, double factor, Ids ids, uint64_t key_high,
              uint64_t key_low, int64_t start, int64_t stop) {
        const int64_t n_rows = int64_t(indptr_.size()) - 1, n_components = int64_t(Z.shape(1));
        require(int64_t(W.shape(0)) == n_rows && int64_t(Z.shape(0)) == n_columns_ && W.shape(1) == Z.shape(1),
                "W and Z must be factors of the data");
        require(0 <= start && start <= stop && stop <= n_rows, "there are no such rows");
        require(factor > 1.0, "factor must be above 1");
        require_size(ids, n_rows, "ids");
        require_size(log_odds, n_columns_, "log_odds");
        const Strided scale_of_column = scales_of(entry_scale, n_columns_);
        const Strided scale_of_row = one_or_each(row_scale, n_rows, "row_scale");
        const Strided of_row = one_or_each(row_variance, n_rows, "row_variance");
        const Strided of_column = one_or_each(column_variance, n_columns_, "column_variance");
        nb::gil_scoped_release release;
        const bool is_dense = rows_.has_value();
        // What belongs to a column, padded: one over its deviation, that times its unit, log odds, and Z over the deviation.
        const int64_t padded = padded_length(n_columns_) + WIDTH;
        std::vector<double> memory((3 + (is_dense ? n_components : 0)) * padded), means(padded);
        double *const roots = memory.data(), *const units = roots + padded, *const odds = units + padded;
        double* const z = odds + padded;
        for (int64_t column = 0; column < n_columns_; ++column) {
            roots[column] = 1.0 / std::sqrt(of_column[column]);
            units[column] = roots[column] * scale_of_column[column];
            odds[column] = log_odds.data()[column] - 0.5 * std::log(factor);
            for (int64_t k = 0; is_dense && k < n_components; ++k)
                z[k * padded + column] = roots[column] * Z.data()[column * n_components + k];
        }
        const double spread = std::sqrt(1.0 - 1.0 / factor), rare_logit = std::log(CANDIDATES);
        const Vector half = broadcast(0.5 - 0.5 / factor), rare = broadcast(rare_logit);
        double rest[4][WIDTH] = {};
        for (int64_t row = start; row < stop; ++row) {
            const int64_t first = indptr_.data()[row], end = indptr_.data()[row + 1];
            double* const sums = sums_.data() + row / ROWS_PER_TILE * 2 * n_columns_;
            if (row % ROWS_PER_TILE == 0) std::fill_n(sums, 2 * n_columns_, 0.0);
            const double root_of_row = 1.0 / std::sqrt(of_row[row]), unit_of_row = root_of_row * scale_of_row[row];
            const double* const w = W.data() + row * n_components;
            if (is_dense) multiply(w, z, n_components, padded, means.data());
            Stream stream = stream_of({key_high, key_low}, ids.data()[row]);
            int64_t candidate = first + n_skipped(stream);
            for (int64_t begin = first; begin < end; begin += WIDTH) {
                const int64_t n = std::min<int64_t>(WIDTH, end - begin), at = begin - first;
                const double *x_of = values_.data() + begin, *mean_of = means.data() + at;
                const double *unit_of = units + at, *odds_of = odds + at;
                if (n < WIDTH) x_of = std::copy_n(x_of, n, rest[0]) - n;
                if (!is_dense) {
                    for (int64_t i = 0; i < n; ++i) {
                        const int64_t column = positions_.data()[begin + i];
                        rest[1][i] = dot(w, Z.data() + column * n_components, n_components) * roots[column];
                        rest[2][i] = units[column];
                        rest[3][i] = odds[column];
                    }
                    mean_of = rest[1], unit_of = rest[2], odds_of = rest[3];
                }
                const Vector unit = load(unit_of) * broadcast(unit_of_row);
                const Vector residual = load(x_of) * unit - load(mean_of) * broadcast(root_of_row);
                const Vector logit = load(odds_of) + half * residual * residual;
                const unsigned likely = mask_to_bits(logit > rare) & ((1u << n) - 1);
                unsigned possible = likely;
                for (; candidate < begin + n; candidate += 1 + n_skipped(stream)) possible |= 1u << (candidate - begin);
                uint8_t& had_error = had_error_[begin / WIDTH + row];
                if ((possible | had_error) == 0) continue;
                double logits[WIDTH], residuals[WIDTH], scales[WIDTH];
                store(logits, logit);
                store(residuals, residual);
                store(scales, unit);
                unsigned has_error = 0;
                for (unsigned left = possible | had_error; left != 0; left &= left - 1) {
                    const int lane = __builtin_ctz(left);
                    const unsigned bit = 1u << lane;
                    double error = 0.0;
                    if ((possible & bit) && is_drawn(logits[lane], likely & bit ? 0.0 : rare_logit, stream)) {
                        error = (1.0 - 1.0 / factor) * residuals[lane] - spread * normal(stream);
                        has_error |= bit;
                    } else if (!(had_error & bit)) {
                        continue;
                    }
                    const int64_t entry = begin + lane, column = is_dense ? at + lane : positions_.data()[entry];
                    const double value = x_of[lane] - error / scales[lane];
                    if (has_error & bit) sums[column] += 1.0;
                    error /= roots[column] * root_of_row;
                    sums[n_columns_ + column] += error * error;
                    if (is_dense) {
                        rows_->data()[entry] = value;
                        columns_->data()[column * n_rows + row] = value;
                    }
                    for (const auto& [numbers, places] : targets_)
                        if (places.data()[entry] >= 0) numbers.data()[places.data()[entry]] = value;
                }
                had_error = uint8_t(has_error);
            }
        }
    }

private:
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
            unrolled<4>([&](auto i) __attribute__((always_inline)) { store(out + column + i * WIDTH, sums[i]); });
        }
        for (; column < padded; column += WIDTH) {
            Vector sum = broadcast(0.0);
            for (int64_t k = 0; k < n_components; ++k)
                sum = add_product(sum, broadcast(w[k]), load(z + k * padded + column));
            store(out + column, sum);
        }
    }

    Pointers indptr_;
    Positions positions_;
    Numbers values_;
    Results sums_;
    std::vector<Target> targets_;
    std::optional<WritableMatrix> rows_, columns_;
    int64_t n_columns_;
    std::vector<uint8_t> had_error_;  // a bit for each of eight entries of a row
};

}  // namespace bnmf
