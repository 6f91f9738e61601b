// The draws of a half-sweep, for any prior: compiled on their own, because they take the compiler longest.
#pragma once

#include "rows.hpp"

namespace bnmf {

// Write Z, `scaled` and `gram` of a problem: `given` times the inverse deviations of the columns, if they are not null.
void set_factor(const Problem& problem, const double* given, const double* inverse_deviation);

// Return the numbers and the offsets that `draw_tile` needs as memory if lists have up to `longest` positions.
int64_t tile_size(int64_t side, int64_t longest);
int64_t max_listed(int64_t longest);

// Draw the rows of a tile in place: those that share their missing entries, and all others.
void draw_tile(Problem problem, int64_t tile, const RowList& sharing, const RowList& others, double* numbers,
               StreamWords* words, int64_t* offsets);

}  // namespace bnmf
