// Gross errors: which entries have one, and the values that they would have without it.
#pragma once

#include <cmath>

#include "latent.hpp"

namespace bnmf {

// The entries of a matrix that may be gross errors, row by row, with what was recorded of them and the error of each.
//
// An entry is y + e with y ~ N(w z, v); e is 0, or with a small probability e ~ N(0, (factor - 1) v). Dense rows list all
// columns, with NaN for entries that cannot be gross errors, so that nothing has to be gathered.
class Outliers {
public:
    Outliers(Pointers indptr, Positions columns, Numbers values, Results errors, Results sums,
             std::vector<Latent::Target> targets, int64_t n_columns, bool is_dense)
        : indptr_(indptr), columns_(columns), values_(values), errors_(errors), sums_(sums), targets_(std::move(targets)),
          n_columns_(n_columns), is_dense_(is_dense) {
        const int64_t n = int64_t(columns.size());
        require(indptr.size() > 0 && indptr.data()[0] == 0 && indptr.data()[indptr.size() - 1] == n,
                "indptr must end with the number of entries");
        for (std::size_t row = 0; row + 1 < indptr.size(); ++row)
            require(indptr.data()[row] <= indptr.data()[row + 1], "indptr must ascend");
        require_size(values, n, "values");
        require_size(errors, n, "errors");
        const int64_t n_tiles = (int64_t(indptr.size()) - 2 + ROWS_PER_TILE) / ROWS_PER_TILE;
        require_size(sums, n_tiles * 2 * n_columns, "sums");
        require(!is_dense || n == (int64_t(indptr.size()) - 1) * n_columns, "dense rows list all columns");
        for (int64_t i = 0; i < n; ++i) {
            const int64_t column = columns.data()[i];
            require(column < n_columns && (!is_dense || column == i % n_columns), "there is no such column");
        }
        for (const auto& [numbers, places] : targets_) {
            require_size(places, n, "the places of a target");
            for (int64_t i = 0; i < n; ++i)
                require(-1 <= places.data()[i] && places.data()[i] < int64_t(numbers.size()),
                        "places must be inside of their target");
        }
    }

    // Draw which entries of rows `start` to `stop` are gross errors, without y, and then their y, in all places.
    //
    // `log_odds` has the log odds of a gross error in each column. Errors are in units of the model, 0 for entries that
    // have none, and values are stored in units of the data. For each tile of rows there are sums over the columns: the
    // number of gross errors, and their squares.
    void draw(Matrix W, Matrix Z, std::optional<Numbers> entry_scale, Numbers row_scale, Numbers row_variance,
              Numbers column_variance, Numbers log_odds, double factor, Ids ids, uint64_t key_high,
              uint64_t key_low, int64_t start, int64_t stop) const {
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
        // What belongs to a column, padded: one over its deviation, that times its unit, log odds, and Z over the deviation.
        const int64_t padded = padded_length(n_columns_) + WIDTH;
        std::vector<double> memory((3 + (is_dense_ ? n_components : 0)) * padded), means(padded);
        double *const roots = memory.data(), *const units = roots + padded, *const odds = units + padded;
        double* const z = odds + padded;
        for (int64_t column = 0; column < n_columns_; ++column) {
            roots[column] = 1.0 / std::sqrt(of_column[column]);
            units[column] = roots[column] * scale_of_column[column];
            odds[column] = log_odds.data()[column] - 0.5 * std::log(factor);
            for (int64_t k = 0; is_dense_ && k < n_components; ++k)
                z[k * padded + column] = roots[column] * Z.data()[column * n_components + k];
        }
        const double spread = std::sqrt(1.0 - 1.0 / factor);
        const Vector half = broadcast(0.5 - 0.5 / factor), zero = broadcast(0.0);
        const Vector lowest = broadcast(-9.9), above = broadcast(1.0 + 1e-9);
        double rest[5][WIDTH] = {};
        std::vector<std::pair<double*, const int64_t*>> targets;
        for (const auto& [numbers, places] : targets_) targets.emplace_back(numbers.data(), places.data());
        for (int64_t row = start; row < stop; ++row) {
            const int64_t first = indptr_.data()[row], end = indptr_.data()[row + 1];
            double* const sums = sums_.data() + row / ROWS_PER_TILE * 2 * n_columns_;
            if (row % ROWS_PER_TILE == 0) std::fill_n(sums, 2 * n_columns_, 0.0);
            const double root_of_row = 1.0 / std::sqrt(of_row[row]), unit_of_row = root_of_row * scale_of_row[row];
            const double* const w = W.data() + row * n_components;
            if (is_dense_) multiply(w, z, n_components, padded, means.data());
            Stream seed = stream_of({key_high, key_low}, ids.data()[row]);
            uint64_t words[4 * WIDTH];  // lane i draws every eighth entry of the row from a stream of its own
            for (uint64_t& word : words) word = next_word(seed);
            Streams streams{load(words), load(words + WIDTH), load(words + 2 * WIDTH), load(words + 3 * WIDTH)};
            for (int64_t begin = first; begin < end; begin += WIDTH) {
                const int64_t n = std::min<int64_t>(WIDTH, end - begin), at = begin - first;
                const double *x_of = values_.data() + begin, *error_of = errors_.data() + begin;
                const double *mean_of = means.data() + at, *unit_of = units + at, *odds_of = odds + at;
                if (n < WIDTH) {
                    x_of = std::copy_n(x_of, n, rest[0]) - n;
                    error_of = std::copy_n(error_of, n, rest[1]) - n;
                }
                if (!is_dense_) {
                    for (int64_t i = 0; i < n; ++i) {
                        const int64_t column = columns_.data()[begin + i];
                        rest[2][i] = dot(w, Z.data() + column * n_components, n_components) * roots[column];
                        rest[3][i] = units[column];
                        rest[4][i] = odds[column];
                    }
                    mean_of = rest[2], unit_of = rest[3], odds_of = rest[4];
                }
                const Vector unit = load(unit_of) * broadcast(unit_of_row);
                const Vector residual = load(x_of) * unit - load(mean_of) * broadcast(root_of_row);
                const Vector logit = load(odds_of) + half * residual * residual;
                // The probability is exp(logit) at most: most entries are done with that.
                Vector bound = select(logit > lowest, logit, lowest);
                bound = exp_of_negative(select(zero > bound, bound, zero)) * above;
                const Mask active = first_lanes(n);
                const Vector uniform = to_units(next_words(streams, active));
                const unsigned possible = mask_to_bits(active & (bound > uniform));
                const unsigned changed = possible | mask_to_bits(active & (absolute(load(error_of)) > zero));
                if (changed == 0) continue;
                double logits[WIDTH], residuals[WIDTH], uniforms[WIDTH], scales[WIDTH];
                store(logits, logit);
                store(residuals, residual);
                store(uniforms, uniform);
                store(scales, unit);
                store(words, streams.s0);
                store(words + WIDTH, streams.s1);
                store(words + 2 * WIDTH, streams.s2);
                store(words + 3 * WIDTH, streams.s3);
                for (unsigned left = changed; left != 0; left &= left - 1) {
                    const int lane = __builtin_ctz(left);
                    double error = 0.0;
                    if (((possible >> lane) & 1) && uniforms[lane] * (1.0 + std::exp(-logits[lane])) < 1.0) {
                        uint64_t* const word = words + lane;
                        Stream stream{word[0], word[WIDTH], word[2 * WIDTH], word[3 * WIDTH]};
                        error = (1.0 - 1.0 / factor) * residuals[lane] - spread * normal(stream);
                        word[0] = stream.s0, word[WIDTH] = stream.s1;
                        word[2 * WIDTH] = stream.s2, word[3 * WIDTH] = stream.s3;
                    } else if (error_of[lane] == 0.0) {
                        continue;
                    }
                    const int64_t entry = begin + lane, column = columns_.data()[entry];
                    const double value = x_of[lane] - error / scales[lane];
                    error /= roots[column] * root_of_row;
                    errors_.data()[entry] = error;
                    if (error != 0.0) sums[column] += 1.0;
                    sums[n_columns_ + column] += error * error;
                    for (const auto& [numbers, places] : targets)
                        if (places[entry] >= 0) numbers[places[entry]] = value;
                }
                streams = {load(words), load(words + WIDTH), load(words + 2 * WIDTH), load(words + 3 * WIDTH)};
            }
        }
    }

private:
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
    Positions columns_;
    Numbers values_;
    Results errors_, sums_;
    std::vector<Latent::Target> targets_;
    int64_t n_columns_;
    bool is_dense_;
};

}  // namespace bnmf
