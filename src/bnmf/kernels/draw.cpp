#include "draw.hpp"

#include "residuals.hpp"
#include "systems.hpp"

namespace bnmf {
namespace {

// Call f with the kind of entries as a constant.
template <typename F> void by_entries(Entries entries, F f) {
    switch (entries) {
        case Entries::nonnegative: return f(std::integral_constant<Entries, Entries::nonnegative>{});
        case Entries::with_max_term: return f(std::integral_constant<Entries, Entries::with_max_term>{});
        case Entries::real: return f(std::integral_constant<Entries, Entries::real>{});
    }
}

}  // namespace

int64_t draws_size(int64_t side, int64_t longest) {
    return std::max(sharing_size(side), residuals_size(side, longest));
}

int64_t max_listed(int64_t longest) { return most_listed(longest); }

void draw_sharing_rows(const Problem& problem, const RowList& list, double* numbers, uint64_t* words) {
    if (list.n_rows == 0) return;
    by_entries(problem.prior.entries(), [&](auto entries) {
        draw_sharing_rows_of<decltype(entries)::value>(problem, list, numbers, words);
    });
}

void draw_rows(const Problem& problem, const RowList& list, double* numbers, uint64_t* words, int64_t* offsets) {
    if (list.n_rows == 0) return;
    by_entries(problem.prior.entries(), [&](auto entries) {
        draw_rows_of<decltype(entries)::value>(problem, list, numbers, words, offsets);
    });
}

}  // namespace bnmf
