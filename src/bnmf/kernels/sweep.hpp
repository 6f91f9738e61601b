// The half-sweep: draw every entry of W, row by row, given Z. Z is drawn by the same code with the roles exchanged.
//
// A row depends on the data only through Σ z r and Σ z² over its *observed* entries, where r are its residuals. There are
// two ways to draw: rows with the same missing entries share their sums (`systems`), others carry their residuals
// (`residuals`). Both draw eight rows at a time (`rows`).
#pragma once

#include "arrays.hpp"

namespace bnmf {

// What the half-sweeps of one factor read of the data in all sweeps.
//
// Tile t draws rows[indptr[t]] to rows[indptr[t + 1] - 1]: first `n_sharing[t]` that share their missing entries.
struct Rows {
    explicit Rows(Arguments given)
        : arguments(std::move(given)), data(*arguments.get<const DataArrays*>("data")),
          entry_scale(arguments.scales_of_columns(data.n_columns)),
          row_scale(arguments.one_or_each("row_scale", data.n_rows)),
          squares(arguments.pointer<Numbers>("squares", data.n_rows)), ids(arguments.pointer<Ids>("ids", data.n_rows)),
          indptr(arguments.pointer<Pointers>("indptr", n_tiles() + 1)),
          n_sharing(arguments.pointer<Pointers>("n_sharing", n_tiles())),
          rows(arguments.pointer<Pointers>("rows", indptr[n_tiles()])),
          repeats(arguments.pointer<Flags>("repeats", indptr[n_tiles()])) {}

    int64_t n_tiles() const { return (data.n_rows + ROWS_PER_TILE - 1) / ROWS_PER_TILE; }
    RowList sharing(int64_t tile) const { return list(indptr[tile], n_sharing[tile]); }
    RowList others(int64_t tile) const {
        const int64_t first = indptr[tile] + n_sharing[tile];
        return list(first, indptr[tile + 1] - first);
    }
    RowList list(int64_t first, int64_t n) const { return {rows + first, repeats + first, n}; }

    Arguments arguments;
    const DataArrays& data;
    Strided entry_scale, row_scale;
    const double* squares;
    const uint64_t* ids;  // number of the stream of each row
    const int64_t *indptr, *n_sharing, *rows;
    const uint8_t* repeats;
};

// A half-sweep that is ready to draw: all that it reads has been checked, and the other factor is prepared.
class HalfSweep {
public:
    // Z is a matrix that may be written to or not. `squares` and `ids`, if given, replace those of the rows.
    template <typename M>
    HalfSweep(const Rows& rows, WritableMatrix W, const M& Z, const PriorArrays& prior, Memory& memory,
              Numbers row_variance, Numbers entry_variance, Pair key, int64_t n_passes, Range drawn,
              Results squared_error, std::optional<Numbers> squares = {}, std::optional<Numbers> roots = {},
              std::optional<Ids> ids = {})
        : rows_(&rows), memory_(&memory) {
        const DataArrays& data = rows.data;
        const int64_t n_rows = int64_t(W.shape(0)), n_components = int64_t(W.shape(1)), n_columns = int64_t(Z.shape(0));
        require(int64_t(Z.shape(1)) == n_components && n_components > 0, "W and Z must have the same components");
        data.check_factors(n_rows, n_columns);
        require(n_passes >= 1, "n_passes must be at least 1");
        if (roots)
            for (int64_t row = 0; row < n_rows; ++row)
                require(!data.lists_missing[row], "entries with weights must be listed");
        problem_.data = data;
        problem_.prior = prior.of_factor(n_rows, n_components);
        problem_.n_components = n_components;
        problem_.side = padded_length(n_components);
        problem_.n_columns = n_columns;
        problem_.W = W.data();
        problem_.squares = squares ? pointer(*squares, n_rows, "squares") : rows.squares;
        problem_.roots = pointer_or_null(roots, data.n_listed, "roots");
        problem_.row_scale = rows.row_scale;
        problem_.entry_scale = rows.entry_scale;
        set_variances(one_or_each(row_variance, n_rows, "row_variance"), int64_t(row_variance.size()),
                      one_or_each(entry_variance, n_columns, "entry_variance"));
        problem_.key = key_of(key);
        problem_.ids = ids ? pointer(*ids, n_rows, "ids") : rows.ids;
        problem_.n_passes = n_passes;
        problem_.first_drawn = drawn.first;
        problem_.end_drawn = drawn.second;
        problem_.squared_error = pointer(squared_error, n_rows, "squared_error");

        nb::gil_scoped_release release;
        const bool is_scaled = problem_.entry_scale.stride != 0;
        const int64_t side = problem_.side, size = (n_columns + 1) * side;
        problem_.gram = memory.take(side * side + (is_scaled ? 2 : 1) * size);
        problem_.Z = problem_.gram + side * side;
        problem_.scaled = is_scaled ? problem_.Z + size : problem_.Z;
        set_factor(problem_, Z.data(), inverse_deviation_.empty() ? nullptr : inverse_deviation_.data());
        n_uses_ = memory.n_uses;
    }

    void draw_all() const { draw(0, rows_->n_tiles(), *memory_); }

    // Draw the rows of tiles `first` to `end` - 1 in place, and write the squared error of each row after its draw.
    void draw(int64_t first, int64_t end, Memory& memory) const {
        require(0 <= first && end <= rows_->n_tiles(), "there are no such tiles");
        require(memory_->n_uses == n_uses_, "the memory of the other factor has been used for something else");
        nb::gil_scoped_release release;
        const int64_t longest = problem_.data.longest;
        double* numbers = memory.tile.reserve(tile_size(problem_.side, longest));
        if (int64_t(memory.offsets.size()) < max_listed(longest)) memory.offsets.resize(max_listed(longest));
        for (int64_t tile = first; tile < end; ++tile)
            draw_tile(problem_, tile, rows_->sharing(tile), rows_->others(tile), numbers, &memory.words,
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
    const Rows* rows_;
    Memory* memory_;
    int64_t n_uses_ = 0;
    std::vector<double> precision_, inverse_deviation_, entry_scale_;
};

}  // namespace bnmf
