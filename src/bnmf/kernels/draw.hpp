// The draws of a half-sweep, for any prior: compiled on their own, because they take the compiler longest.
#pragma once

#include "rows.hpp"

namespace bnmf {

// A factor in the forms that draws read, in memory for (n_rows + 1) * side numbers each, and side * side for ZᵀZ. `scaled`
// may be Z itself. Both end with a row of zeros, and components are padded with zeros.
struct Factor {
    double *Z, *scaled, *gram;
    int64_t n_rows, n_components, side;

    // Fill it with `given` times the inverse deviations of the columns and, for `scaled`, their scales, if not null.
    void set(const double* given, const double* inverse_deviation, const double* entry_scale) const;
};

// Return the numbers and the offsets that `draw_tile` needs as memory if lists have up to `longest` positions.
int64_t tile_size(int64_t side, int64_t longest);
int64_t max_listed(int64_t longest);

// Draw the rows of a tile in place: those that share their missing entries, and all others.
void draw_tile(Problem problem, int64_t tile, const RowList& sharing, const RowList& others, double* numbers,
               StreamWords* words, int64_t* offsets);

}  // namespace bnmf
