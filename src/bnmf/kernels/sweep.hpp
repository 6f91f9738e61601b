// The half-sweep: draw every entry of W, row by row, given Z. Z is drawn by the same code with the roles exchanged.
//
// A row depends on the data only through Σ z r and Σ z² over its *observed* entries, where r are its residuals. There are
// two ways to draw: rows with the same missing entries share their sums (`systems`), others carry their residuals
// (`residuals`). Both draw eight rows at a time (`rows`).
#pragma once

#include "arrays.hpp"
#include "draw.hpp"

namespace bnmf {

// The rows of each tile: those that share their missing entries with others, and all others.
class Split {
public:
    using Pointers = Array<const int64_t, 1>;

    Split(const DataArrays& data, std::optional<Pointers> sharing_indptr, std::optional<Pointers> sharing_rows,
          std::optional<Array<const uint8_t, 1>> repeats, std::optional<Pointers> other_indptr,
          std::optional<Pointers> other_rows)
        : data(&data), sharing_indptr_(sharing_indptr), sharing_rows_(sharing_rows), other_indptr_(other_indptr),
          other_rows_(other_rows), repeats_(repeats) {
        if (sharing_indptr) {
            require(sharing_rows && repeats, "rows that share need sharing_rows and repeats");
            require_size(*repeats, int64_t(sharing_rows->size()), "repeats");
            check(*sharing_indptr, *sharing_rows, "sharing_rows");
            for (std::size_t i = 0; i < sharing_rows->size(); ++i)
                require(data.lists_missing[sharing_rows->data()[i]], "rows that share must list their missing positions");
        }
        if (other_indptr) {
            require(other_rows.has_value(), "other rows need other_rows");
            check(*other_indptr, *other_rows, "other_rows");
        }
    }

    RowList sharing(int64_t tile) const {
        if (!sharing_indptr_) return {nullptr, nullptr, 0};
        const int64_t first = sharing_indptr_->data()[tile], end = sharing_indptr_->data()[tile + 1];
        return {sharing_rows_->data() + first, repeats_->data() + first, end - first};
    }

    RowList others(int64_t tile) const {
        if (!other_indptr_) return {nullptr, nullptr, 0};
        const int64_t first = other_indptr_->data()[tile], end = other_indptr_->data()[tile + 1];
        return {other_rows_->data() + first, nullptr, end - first};
    }

    int64_t n_tiles() const { return (data->n_rows + ROWS_PER_TILE - 1) / ROWS_PER_TILE; }

    const DataArrays* data;

private:
    // Check that every row is one of its tile.
    void check(const Pointers& indptr, const Pointers& rows, const char* name) const {
        require_size(indptr, n_tiles() + 1, "the pointers of tiles");
        bool is_right = indptr.data()[0] == 0 && indptr.data()[n_tiles()] == int64_t(rows.size());
        for (int64_t tile = 0; is_right && tile < n_tiles(); ++tile) {
            const int64_t first = indptr.data()[tile], end = indptr.data()[tile + 1];
            is_right = first <= end && end <= int64_t(rows.size());
            for (int64_t i = first; is_right && i < end; ++i) {
                const int64_t row = rows.data()[i];
                is_right = row >= 0 && row < data->n_rows && row / ROWS_PER_TILE == tile;
            }
        }
        require(is_right, " must be rows of their tiles", name);
    }

    std::optional<Pointers> sharing_indptr_, sharing_rows_, other_indptr_, other_rows_;
    std::optional<Array<const uint8_t, 1>> repeats_;
};

using Ids = Array<const uint64_t, 1>;

// What the half-sweeps of one factor read of the data in all sweeps.
struct Rows {
    Rows(const DataArrays& data, const Split& split, std::optional<Numbers> entry_scale, Numbers row_scale,
         Numbers squares, Ids ids)
        : data(&data), split(&split), entry_scale(entry_scale), row_scale(row_scale), squares(squares), ids(ids) {
        require(split.data == &data, "split must be of the same data");
        one_or_each(row_scale, data.n_rows, "row_scale");
        require_size(squares, data.n_rows, "squares");
        require_size(ids, data.n_rows, "ids");
    }

    const DataArrays* data;
    const Split* split;
    std::optional<Numbers> entry_scale;
    Numbers row_scale, squares;
    Ids ids;  // number of the stream of each row
};

// A half-sweep that is ready to draw: all that it reads has been checked, and the other factor is prepared.
class HalfSweep {
public:
    // Z is a matrix that may be written to or not. `squares` and `ids`, if given, replace those of the rows.
    template <typename M>
    HalfSweep(const Rows& rows, WritableMatrix W, const M& Z, const PriorArrays& prior, Memory& memory,
              Numbers row_variance, Numbers entry_variance, uint64_t key_high, uint64_t key_low, int64_t n_passes,
              int64_t first_drawn, int64_t end_drawn, Results squared_error, std::optional<Numbers> squares = {},
              std::optional<Numbers> roots = {}, std::optional<Ids> ids = {})
        : split_(rows.split), memory_(&memory), W_(W), squared_error_(squared_error),
          squares_(squares.value_or(rows.squares)), roots_(roots), ids_(ids.value_or(rows.ids)) {
        const DataArrays& data = *rows.data;
        const int64_t n_rows = int64_t(W.shape(0)), n_components = int64_t(W.shape(1)), n_columns = int64_t(Z.shape(0));
        require(n_rows == data.n_rows, "W must have as many rows as the data");
        require(int64_t(Z.shape(1)) == n_components && n_components > 0, "W and Z must have the same components");
        require(data.n_needed <= n_columns && (!data.has_matrix() || data.n_columns == n_columns),
                "Z must have as many rows as the data have columns");
        require(n_passes >= 1, "n_passes must be at least 1");
        require_size(squares_, n_rows, "squares");
        require_size(ids_, n_rows, "ids");
        require_size(squared_error, n_rows, "squared_error");
        if (roots)
            for (int64_t row = 0; row < n_rows; ++row)
                require(!data.lists_missing[row], "entries with weights must be listed");
        problem_.data = data;
        problem_.prior = prior.of_factor(n_rows, n_components);
        problem_.n_columns = n_columns;
        problem_.W = W.data();
        problem_.squares = squares_.data();
        problem_.roots = pointer_or_null(roots, data.n_listed, "roots");
        problem_.row_scale = one_or_each(rows.row_scale, n_rows, "row_scale");
        set_variances(one_or_each(row_variance, n_rows, "row_variance"), int64_t(row_variance.size()),
                      one_or_each(entry_variance, n_columns, "entry_variance"),
                      pointer_or_null(rows.entry_scale, n_columns, "entry_scale"));
        problem_.key = {key_high, key_low};
        problem_.ids = ids_.data();
        problem_.n_passes = n_passes;
        problem_.first_drawn = first_drawn;
        problem_.end_drawn = end_drawn;
        problem_.squared_error = squared_error.data();

        nb::gil_scoped_release release;
        const bool is_scaled = problem_.entry_scale.stride != 0;
        const Factor factor = memory.factor(n_columns, n_components, is_scaled);
        factor.set(Z.data(), inverse_deviation_.empty() ? nullptr : inverse_deviation_.data(),
                   is_scaled ? problem_.entry_scale.data : nullptr);
        problem_.n_components = n_components;
        problem_.side = factor.side;
        problem_.Z = factor.Z;
        problem_.scaled = factor.scaled;
        problem_.gram = factor.gram;
        n_uses_ = memory.n_uses;
    }

    void draw_all() const { draw(0, split_->n_tiles(), *memory_); }

    // Draw the rows of tiles `first` to `end` - 1 in place, and write the squared error of each row after its draw.
    void draw(int64_t first, int64_t end, Memory& memory) const {
        require(0 <= first && end <= split_->n_tiles(), "there are no such tiles");
        require(memory_->n_uses == n_uses_, "the memory of the other factor has been used for something else");
        nb::gil_scoped_release release;
        const int64_t longest = problem_.data.longest, side = problem_.side;
        double* product = memory.tile.reserve(ROWS_PER_TILE * side + draws_size(side, longest));
        if (int64_t(memory.offsets.size()) < max_listed(longest)) memory.offsets.resize(max_listed(longest));
        for (int64_t tile = first; tile < end; ++tile) draw_tile(tile, product, memory);
    }

private:
    // Set the precisions of rows, and the scales of columns: unequal variances of the columns divide Z and the data by
    // their roots.
    void set_variances(Strided row_variance, int64_t n_variances, Strided entry_variance, const double* entry_scale) {
        static const double one = 1.0;
        const bool is_unequal = entry_variance.stride != 0;
        precision_.resize(n_variances);
        for (int64_t i = 0; i < n_variances; ++i)
            precision_[i] = 1.0 / (is_unequal ? row_variance[i] : row_variance[i] * entry_variance[0]);
        problem_.precision = {precision_.data(), row_variance.stride};
        problem_.entry_scale = entry_scale != nullptr ? Strided{entry_scale, 1} : Strided{&one, 0};
        if (!is_unequal) return;
        inverse_deviation_.resize(problem_.n_columns);
        entry_scale_.resize(problem_.n_columns);
        for (int64_t column = 0; column < problem_.n_columns; ++column) {
            inverse_deviation_[column] = 1.0 / std::sqrt(entry_variance[column]);
            entry_scale_[column] = inverse_deviation_[column] * problem_.entry_scale[column];
        }
        problem_.entry_scale = {entry_scale_.data(), 1};
    }

    void draw_tile(int64_t tile, double* product, Memory& memory) const {
        Problem problem = problem_;
        const Data& data = problem.data;
        const int64_t side = problem.side, start = tile * ROWS_PER_TILE;
        const int64_t stop = std::min(start + ROWS_PER_TILE, data.n_rows);
        if (data.dense != nullptr)
            set_dense_product(data.dense, data.n_columns, problem.scaled, problem.n_components, side, problem.row_scale,
                              start, stop, product);
        else if (data.stored_indptr != nullptr)
            set_sparse_product(data.stored_indptr, data.stored_indices, data.stored_values, problem.scaled, side,
                               problem.row_scale, start, stop, product);
        problem.product = product;
        problem.first_row = start;
        double* numbers = product + ROWS_PER_TILE * side;
        draw_sharing_rows(problem, split_->sharing(tile), numbers, memory.words);
        draw_rows(problem, split_->others(tile), numbers, memory.words, memory.offsets.data());
    }

    Problem problem_{};
    const Split* split_;
    Memory* memory_;
    int64_t n_uses_ = 0;
    WritableMatrix W_;
    Results squared_error_;
    Numbers squares_;
    std::optional<Numbers> roots_;
    Ids ids_;
    std::vector<double> precision_, inverse_deviation_, entry_scale_;
};

}  // namespace bnmf
