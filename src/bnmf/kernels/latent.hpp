// Latent values of entries that are only known to lie between two limits: draws from their truncated normals.
#pragma once

#include <utility>
#include <vector>

#include "arrays.hpp"
#include "errors.hpp"
#include "moves.hpp"

namespace bnmf {

// The limited entries of a matrix, row by row, and every place where their values are stored.
class Latent {
public:
    using Places = Array<const int64_t, 1>;
    using Target = std::pair<Results, Places>;  // numbers, and the place of each entry there: -1 for none

    Latent(DataArrays::Pointers indptr, DataArrays::Positions columns, Numbers lower, Numbers upper,
           std::vector<Target> targets)
        : indptr_(indptr), columns_(columns), lower_(lower), upper_(upper), targets_(std::move(targets)) {
        const int64_t n = int64_t(columns.size());
        require(indptr.size() > 0 && indptr.data()[0] == 0 && indptr.data()[indptr.size() - 1] == n,
                "indptr must end with the number of limited entries");
        for (std::size_t row = 0; row + 1 < indptr.size(); ++row)
            require(indptr.data()[row] <= indptr.data()[row + 1], "indptr must ascend");
        require_size(lower, n, "lower");
        require_size(upper, n, "upper");
        for (int64_t i = 0; i < n; ++i) {
            n_columns_ = std::max(n_columns_, int64_t(columns.data()[i]) + 1);
            require(lower.data()[i] < upper.data()[i] && (lower.data()[i] > -INFINITE || upper.data()[i] < INFINITE),
                    "limits must be apart, and one of them finite");
        }
        for (const auto& [numbers, places] : targets_) {
            require_size(places, n, "the places of a target");
            for (int64_t i = 0; i < n; ++i)
                require(-1 <= places.data()[i] && places.data()[i] < int64_t(numbers.size()),
                        "places must be inside of their target");
        }
    }

    // Draw the entries of rows `start` to `stop` given W and Z, each row from the stream of its id, in all places.
    //
    // Variances are in units of the model, and values are stored in those of the data. `weight` has a factor of the
    // precision of each limited entry.
    void draw(Matrix W, Matrix Z, std::optional<Numbers> entry_scale, Numbers row_scale, Numbers row_variance,
              Numbers column_variance, std::optional<Numbers> weight, Array<const uint64_t, 1> ids, uint64_t key_high,
              uint64_t key_low, int64_t start, int64_t stop) const {
        static const double one = 1.0;
        const int64_t n_rows = int64_t(indptr_.size()) - 1, n_columns = int64_t(Z.shape(0));
        require(int64_t(W.shape(0)) == n_rows && n_columns_ <= n_columns && W.shape(1) == Z.shape(1),
                "W and Z must be factors of the data");
        require(0 <= start && start <= stop && stop <= n_rows, "there are no such rows");
        require_size(ids, n_rows, "ids");
        const double* scale = pointer_or_null(entry_scale, n_columns, "entry_scale");
        const double* weights = pointer_or_null(weight, int64_t(columns_.size()), "weight");
        const Fit fit{W.data(), Z.data(), int64_t(W.shape(1)), scale != nullptr ? Strided{scale, 1} : Strided{&one, 0},
                      one_or_each(row_scale, n_rows, "row_scale")};
        const Strided of_row = one_or_each(row_variance, n_rows, "row_variance");
        const Strided of_column = one_or_each(column_variance, n_columns, "column_variance");
        nb::gil_scoped_release release;
        for (int64_t row = start; row < stop; ++row) {
            Stream stream = stream_of({key_high, key_low}, ids.data()[row]);
            for (int64_t i = indptr_.data()[row]; i < indptr_.data()[row + 1]; ++i) {
                const int64_t column = columns_.data()[i];
                const double low = lower_.data()[i], high = upper_.data()[i];
                const double unit = fit.entry_scale[column] * fit.row_scale[row];
                const double p = (weights != nullptr ? weights[i] : 1.0) / (of_row[row] * of_column[column]);
                const double mean = -fit.residual(row, column, 0.0);
                const double drawn = (mean + draw_between(0.0, p, low * unit - mean, high * unit - mean, stream)) / unit;
                const double value = drawn < low ? low : drawn > high ? high : drawn;  // rounding may step over a limit
                for (const auto& [numbers, places] : targets_)
                    if (places.data()[i] >= 0) numbers.data()[places.data()[i]] = value;
            }
        }
    }

private:
    DataArrays::Pointers indptr_;
    DataArrays::Positions columns_;
    Numbers lower_, upper_;
    std::vector<Target> targets_;
    int64_t n_columns_ = 0;
};

}  // namespace bnmf
