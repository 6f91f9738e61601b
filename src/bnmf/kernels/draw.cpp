#include "draw.hpp"

#include "residuals.hpp"
#include "systems.hpp"

namespace bnmf {

void set_factor(const Problem& problem, const double* given, const double* inverse_deviation) {
    const int64_t n_rows = problem.n_columns, n_components = problem.n_components, side = problem.side;
    double *const Z = problem.Z, *const scaled = problem.scaled, *const gram = problem.gram;
    for (int64_t row = 0; row < n_rows; ++row) {
        const double inverse = inverse_deviation != nullptr ? inverse_deviation[row] : 1.0;
        double *z = Z + row * side, *s = scaled + row * side;
        for (int64_t k = 0; k < n_components; ++k) z[k] = given[row * n_components + k] * inverse;
        if (s != z)
            for (int64_t k = 0; k < n_components; ++k) s[k] = z[k] * problem.entry_scale[row];
        for (int64_t k = n_components; k < side; ++k) z[k] = s[k] = 0.0;
    }
    std::fill_n(Z + n_rows * side, side, 0.0);
    std::fill_n(scaled + n_rows * side, side, 0.0);
    std::fill_n(gram, side * side, 0.0);
    const int64_t width = half_padded(n_components);
    for (int64_t begin = 0; begin < n_rows; begin += LINES_PER_CHUNK)
        add_outer_products(1.0, Z + begin * side, std::min(LINES_PER_CHUNK, n_rows - begin), gram, side, width);
    for (int64_t k = 0; k < side; ++k)
        for (int64_t j = 0; j < k; ++j) gram[k * side + j] = gram[j * side + k];
}

int64_t max_listed(int64_t longest) { return most_listed(longest); }

int64_t tile_size(int64_t side, int64_t longest) {
    return ROWS_PER_TILE * side + std::max(sharing_size(side), residuals_size(side, longest));
}

template <Entries E>
void draw_tile_of(const Problem& problem, const RowList& sharing, const RowList& others, double* numbers,
                  StreamWords* words, int64_t* offsets) {
    if (sharing.n_rows > 0) draw_sharing_rows<E>(problem, sharing, numbers, words);
    if (others.n_rows > 0) draw_rows<E>(problem, others, numbers, words, offsets);
}

void draw_tile(Problem problem, int64_t tile, const RowList& sharing, const RowList& others, double* numbers,
               StreamWords* words, int64_t* offsets) {
    problem.first_row = tile * ROWS_PER_TILE;
    problem.product = numbers;
    set_product(problem, problem.first_row, std::min(problem.first_row + ROWS_PER_TILE, problem.data.n_rows), numbers);
    const Prior& prior = problem.prior;
    const auto draw = prior.absolute.data != nullptr ? draw_tile_of<Entries::real>
                      : prior.max_rate != 0.0        ? draw_tile_of<Entries::with_max_term>
                                                     : draw_tile_of<Entries::nonnegative>;
    draw(problem, sharing, others, numbers + ROWS_PER_TILE * problem.side, words, offsets);
}

}  // namespace bnmf
