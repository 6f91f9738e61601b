// The half-sweep: draw every entry of W, row by row, given Z. Z is drawn by the same code with the roles exchanged.
//
// A row depends on the data only through Σ z r and Σ z² over its *observed* entries, where r are its residuals. There are
// two ways to draw: rows with the same missing entries share their sums (`systems`), others carry their residuals
// (`residuals`). Both draw eight rows at a time (`rows`).
#pragma once

#include "arrays.hpp"

namespace bnmf {

// The rows of each tile: those that share their missing entries with others, and all others.
class Split {
public:
    Split(const DataArrays& data, std::optional<Pointers> sharing_indptr, std::optional<Pointers> sharing_rows,
          std::optional<Flags> repeats, std::optional<Pointers> other_indptr, std::optional<Pointers> other_rows)
        : data(&data), sharing_{sharing_indptr, sharing_rows, repeats}, others_{other_indptr, other_rows, {}} {
        if (sharing_indptr) {
            require(sharing_rows && repeats, "rows that share need sharing_rows and repeats");
            require_size(*repeats, int64_t(sharing_rows->size()), "repeats");
            check(sharing_, "sharing_rows");
            for (std::size_t i = 0; i < sharing_rows->size(); ++i)
                require(data.lists_missing[sharing_rows->data()[i]], "rows that share must list their missing positions");
        }
        if (other_indptr) {
            require(other_rows.has_value(), "other rows need other_rows");
            check(others_, "other_rows");
        }
    }

    RowList sharing(int64_t tile) const { return sharing_.of_tile(tile); }
    RowList others(int64_t tile) const { return others_.of_tile(tile); }
    int64_t n_tiles() const { return (data->n_rows + ROWS_PER_TILE - 1) / ROWS_PER_TILE; }

    const DataArrays* data;

private:
    struct ByTile {
        std::optional<Pointers> indptr, rows;
        std::optional<Flags> repeats;

        RowList of_tile(int64_t tile) const {
            if (!indptr) return {nullptr, nullptr, 0};
            const int64_t first = indptr->data()[tile], end = indptr->data()[tile + 1];
            return {rows->data() + first, repeats ? repeats->data() + first : nullptr, end - first};
        }
    };

    // Check that every row is one of its tile.
    void check(const ByTile& list, const char* name) const {
        require_size(*list.indptr, n_tiles() + 1, "the pointers of tiles");
        const int64_t *indptr = list.indptr->data(), n_listed = int64_t(list.rows->size());
        bool is_right = indptr[0] == 0 && indptr[n_tiles()] == n_listed;
        for (int64_t tile = 0; is_right && tile < n_tiles(); ++tile) {
            is_right = indptr[tile] <= indptr[tile + 1] && indptr[tile + 1] <= n_listed;
            for (int64_t i = indptr[tile]; is_right && i < indptr[tile + 1]; ++i) {
                const int64_t row = list.rows->data()[i];
                is_right = row >= 0 && row < data->n_rows && row / ROWS_PER_TILE == tile;
            }
        }
        require(is_right, " must be rows of their tiles", name);
    }

    ByTile sharing_, others_;
};

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
        require(int64_t(Z.shape(1)) == n_components && n_components > 0, "W and Z must have the same components");
        data.check_factors(n_rows, n_columns);
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
        problem_.entry_scale = scales_of(rows.entry_scale, n_columns);
        set_variances(one_or_each(row_variance, n_rows, "row_variance"), int64_t(row_variance.size()),
                      one_or_each(entry_variance, n_columns, "entry_variance"));
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
        double* numbers = memory.tile.reserve(tile_size(side, longest));
        if (int64_t(memory.offsets.size()) < max_listed(longest)) memory.offsets.resize(max_listed(longest));
        for (int64_t tile = first; tile < end; ++tile)
            draw_tile(problem_, tile, split_->sharing(tile), split_->others(tile), numbers, &memory.words,
                      memory.offsets.data());
    }

private:
    // Set the precisions of rows, and the scales of columns: unequal variances of the columns divide Z and the data by
    // their roots.
    void set_variances(Strided row_variance, int64_t n_variances, Strided entry_variance) {
        const bool is_unequal = entry_variance.stride != 0;
        precision_.resize(n_variances);
        for (int64_t i = 0; i < n_variances; ++i)
            precision_[i] = 1.0 / (is_unequal ? row_variance[i] : row_variance[i] * entry_variance[0]);
        problem_.precision = {precision_.data(), row_variance.stride};
        if (!is_unequal) return;
        inverse_deviation_.resize(problem_.n_columns);
        entry_scale_.resize(problem_.n_columns);
        for (int64_t column = 0; column < problem_.n_columns; ++column) {
            inverse_deviation_[column] = 1.0 / std::sqrt(entry_variance[column]);
            entry_scale_[column] = inverse_deviation_[column] * problem_.entry_scale[column];
        }
        problem_.entry_scale = {entry_scale_.data(), 1};
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
