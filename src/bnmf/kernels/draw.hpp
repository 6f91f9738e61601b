// The two ways to draw rows, for any prior: compiled on their own, because they take the compiler longest.
#pragma once

#include "rows.hpp"

namespace bnmf {

// Return the number of floats that the functions below need if lists have up to `longest` positions.
int64_t draws_size(int64_t side, int64_t longest);

// Return the number of offsets that `draw_rows` needs.
int64_t max_listed(int64_t longest);

// Draw rows of W that list their missing entries and share them with others.
void draw_sharing_rows(const Problem& problem, const RowList& list, double* numbers, uint64_t* words);

// Draw rows of W that share nothing.
void draw_rows(const Problem& problem, const RowList& list, double* numbers, uint64_t* words, int64_t* offsets);

}  // namespace bnmf
